#!/usr/bin/env python3
# ctest: TIMEOUT 300
"""The C++ header in a later standard than the build's, and what it does not let pass: each forbidden use is refused with its reason."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE, BUILD, CXX = pathlib.Path(os.environ["VARVE_SOURCE"]), pathlib.Path(os.environ["VARVE_BUILD"]), os.environ.get("CXX", "")
if not CXX:
    print("skip: no C++ compiler")
    sys.exit(77)
SANITIZE = re.search(r"^VARVE_SANITIZE:\w+=(.+)$", (BUILD / "CMakeCache.txt").read_text(), re.M)
FLAGS = [f"-fsanitize={SANITIZE[1].replace(';', ',')}"] if SANITIZE else []

FORBIDDEN = {  # a use: a part of the reason
    "int *p = nullptr; s.protect(\"x\", p);": "a pointer cannot be saved",
    "std::vector<int *> x; s.protect(\"x\", x);": "a pointer cannot be saved",
    "int *x[3] = {}; s.protect(\"x\", x);": "a pointer cannot be saved",
    "int y = 0; auto x = std::ref(y); s.protect(\"x\", x);": "a pointer cannot be saved",
    "int with_virtual::*x = nullptr; s.protect(\"x\", x);": "a pointer cannot be saved",
    "with_virtual x; s.protect(\"x\", x);": "virtual functions",
    "std::vector<with_virtual> x; s.protect(\"x\", x);": "virtual functions",
    "std::vector<std::string> x; s.protect(\"x\", x);": "not trivially copyable",
    "std::map<int, int> x; s.protect(\"x\", x);": "not trivially copyable",
    "auto x = std::make_unique<int>(1); s.protect(\"x\", x);": "not trivially copyable",
    "const int x = 1; s.protect(\"x\", x);": "const",
    "const std::vector<int> x; s.protect(\"x\", x);": "const",
    "std::string_view x = \"a\"; s.protect(\"x\", x);": "const",
    "const double x[2] = {}; s.protect(\"x\", x + 0, { 2 });": "const",
    "s.protect(\"x\", 1);": "a temporary cannot be saved",
    "s.protect(\"x\", std::vector<int>(3));": "a temporary cannot be saved",
    "std::vector<bool> x; s.protect(\"x\", x);": "std::vector<bool>",
    "int x = 0; s.protect(\"x\", x, varve::pinned);": "need be pinned",
    "s.alloc<std::string>(\"x\", 1);": "not trivially copyable",
    "varve::session t = s;": "deleted|no matching|copy constructor",
}
HEAD = """
#include <map>
#include <string_view>
#include <varve/varve.hpp>
struct with_virtual { virtual ~with_virtual() = default; int i = 0; };
"""
HERE = """
#include <cstdio>
#include <varve/varve.hpp>
int main() { std::printf("%d\\n", varve::checkpoint_here()); }
"""


def run_compiler(*words, text=None):
    done = subprocess.run([CXX, "-std=c++17", "-Wall", "-Wextra", f"-I{SOURCE / 'include'}", *map(str, words)], input=text,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode == 0, done.stdout


def compile(text, *flags):
    return run_compiler(*flags, "-x", "c++", "-", text=text)


def check_forbidden(folder):
    head = pathlib.Path(folder, "head.hpp")
    head.write_text(HEAD)
    fine, said = run_compiler("-x", "c++-header", head, "-o", f"{head}.gch")  # read once, not twenty times
    assert fine, said
    for use, reason in {"": "", **FORBIDDEN}.items():
        fine, said = compile(f"void use(varve::session &s) {{ (void)s; {use} }}\n", "-include", head, "-fsyntax-only")
        reasons = re.findall(r"error: .*", said)
        assert fine == (use == "") and (fine or any(re.search(reason, r) for r in reasons)), f"{use}\n{said}"
        assert sum("varve:" in r for r in reasons) <= 1, f"more than one reason: {use}\n{said}"


def check_standard(folder):
    program = pathlib.Path(folder, "session")
    subprocess.run([CXX, "-std=c++20", "-Wall", "-Wextra", "-Wshadow", "-Werror", *FLAGS, f"-I{SOURCE / 'include'}",
                    SOURCE / "tests/cpp/test_session.cpp", "-o", program, f"-L{BUILD}", *(["-Wl,--no-as-needed", "-lvarve_interpose"] if (BUILD / "libvarve_interpose.so").exists() else []), "-lvarve",
                    f"-Wl,-rpath,{BUILD}"], check=True)
    subprocess.run([program], check=True)


def check_here(folder):
    """Needs no library of varve; finds the preloaded one, whether the program has a fixed address or not."""
    preload = pathlib.Path(folder, "preload.so")
    fine, said = compile('extern "C" int varve_checkpoint_here() { return 1; }', "-shared", "-fPIC", "-o", preload)
    assert fine, said
    for flags in (("-fpie", "-pie"), ("-fno-pie", "-no-pie")):
        program = pathlib.Path(folder, "here")
        fine, said = compile(HERE, *flags, "-o", program, "-ldl")
        assert fine, said
        for env, expected in (({}, "0\n"), ({"LD_PRELOAD": str(preload)}, "1\n")):
            assert subprocess.check_output([program], env={**os.environ, **env}, text=True) == expected


with tempfile.TemporaryDirectory() as folder:
    check_forbidden(folder)
    check_standard(folder)
    if not SANITIZE:
        check_here(folder)
