#!/usr/bin/env python3
# ctest: TIMEOUT 120 COST 10
"""Programs that free their memory, then close: each of their epochs is stored, and nothing is said. In C with the shared library, the static one and
libvarve_preload.so; by C++'s delete and Fortran's deallocate."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = pathlib.Path(os.environ.get("VARVE_SOURCE", HERE.parents[1]))
BUILD = pathlib.Path(os.environ.get("VARVE_BUILD", SOURCE / "build"))
CC, CXX, FC = os.environ.get("CC", "cc"), os.environ.get("CXX", ""), os.environ.get("FC", "")
VARVE = os.environ.get("VARVE_BIN", BUILD / "varve")
EARLY = """#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
char *early_copy;
__attribute__((constructor)) static void begin(void) { dlsym(RTLD_DEFAULT, "varve_none_such"); free(early_copy = strdup("early")); }
"""  # the text of that error is freed by the next dlsym
SLOW = {"VARVE_BANDWIDTH": "60MiB", "VARVE_BUFFER": "64KiB", "VARVE_CODEC": "none"}  # so that the last epoch is being stored when the memory goes


def run(*command, **env):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env={**os.environ, **env}, timeout=240)
    if done.returncode != 0:
        sys.exit(f"FAILED {' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def epochs(store):
    return len(run(VARVE, "ls", store, "heatdis").splitlines()) - 1


def check(what, program, work, **env):
    for tracker in ("auto", "mprotect"):
        store = work / f"{program.name}-{len(env)}-{tracker}"
        said = run(program, store, VARVE_TRACKER=tracker, **SLOW, **env)
        if said or epochs(store) != 3:
            sys.exit(f"FAILED {what}, {tracker}: {epochs(store)} epochs of 3; {said}")
        run(VARVE, "verify", store, "heatdis")
    print(f"{what}: fine")


def check_all(work):
    link = [f"-L{BUILD}", "-Wl,--no-as-needed", "-lvarve_interpose", "-lvarve", f"-Wl,-rpath,{BUILD}"]
    include = [f"-I{SOURCE / 'include'}"]
    static = re.search(r"^Libs\.private:(.*)$", (BUILD / "varve.pc").read_text(), re.M).group(1).split()
    run(CC, "-O2", *include, HERE / "freed.c", "-o", work / "c", *link)
    check("C", work / "c", work)
    (work / "early.c").write_text(EARLY)
    run(CC, "-shared", "-fPIC", work / "early.c", "-o", work / "libearly.so")
    run(CC, "-O2", *include, HERE / "freed.c", "-o", work / "early", f"-L{BUILD}", *link, f"-L{work}", "-learly", f"-Wl,-rpath,{work}")
    check("C, beside a library that frees memory first", work / "early", work)
    run(CC, "-O2", *include, HERE / "freed.c", "-o", work / "static", BUILD / "libvarve.a", *static)
    check("C, libvarve.a", work / "static", work)
    if (BUILD / "libvarve_preload.so").exists():
        check("C, libvarve_preload.so", work / "c", work, LD_PRELOAD=str(BUILD / "libvarve_preload.so"))
    if CXX:
        run(CXX, "-O2", *include, HERE / "freed.cpp", "-o", work / "cxx", *link)
        check("C++", work / "cxx", work)
    if FC:
        run(FC, "-O2", f"-I{BUILD / 'fortran'}", HERE / "freed.f90", "-o", work / "fortran", f"-L{BUILD}", "-lvarve_fortran", *link)
        check("Fortran", work / "fortran", work)


if not (BUILD / "libvarve_interpose.so").exists():
    print("skip: this build does not stand in front of the C library")
    sys.exit(77)
with tempfile.TemporaryDirectory(prefix="varve-freed-") as folder:
    check_all(pathlib.Path(folder))
