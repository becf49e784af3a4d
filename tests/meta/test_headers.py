#!/usr/bin/env python3
"""Each public header compiles alone, in C17 and in C++17, without a warning."""
import os
import re
import subprocess
import tree

WARNINGS = ["-pedantic", "-Wall", "-Wextra", "-Werror"]
LANGUAGES = [("CC", ["-x", "c", "-std=c17", "-Wstrict-prototypes"]), ("CXX", ["-x", "c++", "-std=c++17"])]
CACHE = (tree.BUILD / "CMakeCache.txt").read_text()
FOLDERS = re.search(r"^MPI_C_COMPILER_INCLUDE_DIRS:\w+=(.+)$", CACHE, re.M)  # where the compiler wrapper finds mpi.h
MPI = [f for folder in FOLDERS[1].split(";") for f in ("-isystem", folder)] if FOLDERS else []


def compiles(compiler, flags, text):
    run = subprocess.run([compiler, *flags, *WARNINGS, *MPI, f"-I{tree.ROOT / 'include'}", "-fsyntax-only", "-"],
                         input=text, capture_output=True, text=True)
    return run.returncode == 0, run.stderr


problems, count = [], 0
headers = tree.c_files("include")
for variable, flags in LANGUAGES:
    compiler = os.environ.get(variable) or {"CC": "cc", "CXX": ""}[variable]
    if not compiler:
        print(f"note: no {variable}, its language is left out")
        continue
    has_mpi, _ = compiles(compiler, flags, "#include <mpi.h>\n")
    for header in headers:
        if "<mpi.h>" in header.read_text() and not has_mpi:
            print(f"note: no mpi.h, {header.name} is left out")
            continue
        include = f"#include <{header.relative_to(tree.ROOT / 'include')}>\n"
        ok, errors = compiles(compiler, flags, include * 2)  # twice: the guard counts too
        count += 1
        if not ok:
            problems.append(f"{tree.name(header)} ({compiler}):\n{errors}")
if not headers:
    problems.append("no headers under include/")
tree.finish(problems, f"{count} compilations")
