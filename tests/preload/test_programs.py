#!/usr/bin/env python3
# ctest: TIMEOUT 120
"""Programs as users build them: with -D_FORTIFY_SOURCE, in C++, with a sanitizer. Their calls, and those of the C++ library, go
to libvarve_interpose.so; and reading into a fenced buffer works."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = pathlib.Path(os.environ.get("VARVE_SOURCE", HERE.parents[1]))
BUILD = pathlib.Path(os.environ.get("VARVE_BUILD", SOURCE / "build"))
CC, CXX = os.environ.get("CC", "cc"), os.environ.get("CXX", "")
LINK = [f"-L{BUILD}", "-Wl,--no-as-needed", "-lvarve_interpose", "-lvarve", f"-Wl,-rpath,{BUILD}"]
INTERPOSE = BUILD / "libvarve_interpose.so"
FORTIFY = ["-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"]


def run(*command, **env):
    p = subprocess.run([str(c) for c in command], capture_output=True, text=True, env={**os.environ, **env}, timeout=240)
    if p.returncode != 0:
        sys.exit(f"{' '.join(str(c) for c in command)}: exit {p.returncode}\n{p.stdout}{p.stderr}")
    return p.stdout + p.stderr


def bindings(program, **env):
    """{(who, name)} of what the program and its libraries take from libvarve_interpose."""
    text = run(program, LD_DEBUG="bindings", LD_BIND_NOW="1", **env)
    found = re.findall(r"binding file (\S+) \[0\] to \S*libvarve_interpose\.so\S* \[0\]: normal symbol `(\w+)'", text)
    return {(pathlib.Path(who).name, name) for who, name in found}


def expect(what, ok):
    print(f"{what}: {'yes' if ok else 'NO'}")
    if not ok:
        sys.exit(1)


def static_libs():
    """What libvarve.a needs, from its pkg-config file."""
    text = (BUILD / "varve.pc").read_text()
    return re.search(r"^Libs\.private:(.*)$", text, re.M).group(1).split()


def check_c(work):
    source = HERE / "program.c"
    run(CC, *FORTIFY, source, "-o", work / "c", *LINK)
    run(work / "c")
    found = bindings(work / "c")
    for name in ("__read_chk", "__fread_chk", "__recv_chk"):
        expect(f"C, fortified: {name} is ours", ("c", name) in found)
    run(CC, *FORTIFY, source, "-o", work / "plain")
    found = bindings(work / "plain", LD_PRELOAD=str(INTERPOSE))
    expect("preloaded: __read_chk is ours", ("plain", "__read_chk") in found)
    run(CC, *FORTIFY, "-DFENCED", f"-I{SOURCE / 'src'}", source, "-o", work / "fenced", BUILD / "libvarve.a", *static_libs())
    run(work / "fenced")
    print("C, fortified, fenced: fine")


def check_cxx(work):
    source = HERE / "program.cpp"
    run(CXX, "-O2", source, "-o", work / "cxx", *LINK)
    run(work / "cxx")
    callers = {who for who, name in bindings(work / "cxx") if name == "read"}
    expect(f"C++: read is ours, for {', '.join(sorted(callers))}", any("++" in who for who in callers))
    run(CXX, "-O2", "-DFENCED", f"-I{SOURCE / 'src'}", source, "-o", work / "fenced++", BUILD / "libvarve.a", *static_libs())
    run(work / "fenced++")
    print("C++, fenced: fine")


def check_sanitized(work, sanitizer):
    """A program with a sanitizer and libvarve_interpose.so without: both stand before the C library."""
    flags = [f"-fsanitize={sanitizer}", "-g", "-O1"]
    probe = subprocess.run([CC, *flags, "-x", "c", "-", "-o", work / "probe"], input="int main(void) { return 0; }",
                           text=True, capture_output=True)
    if probe.returncode != 0 or subprocess.run([work / "probe"], capture_output=True).returncode != 0:
        print(f"{sanitizer}: not to be had here")
        return
    run(CC, *flags, HERE / "program.c", "-o", work / sanitizer, *LINK)
    run(work / sanitizer, ASAN_OPTIONS="detect_leaks=0")
    print(f"{sanitizer}: fine")


if not INTERPOSE.exists():
    print("skip: this build does not stand in front of the C library")
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    check_c(pathlib.Path(folder))
    check_sanitized(pathlib.Path(folder), "address")
    check_sanitized(pathlib.Path(folder), "thread")
    if CXX:
        check_cxx(pathlib.Path(folder))
    else:
        print("note: no C++ compiler, its part is left out")
