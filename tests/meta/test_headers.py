#!/usr/bin/env python3
"""Each public header compiles alone without a warning: .h in C17 and C++17, .hpp in C++17 and C++20; and without the old names."""
import os
import re
import subprocess
import tree

WARNINGS = ["-pedantic", "-Wall", "-Wextra", "-Werror"]
LANGUAGES = [("CC", ["-x", "c", "-std=c17", "-Wstrict-prototypes"], ".h"), ("CXX", ["-x", "c++", "-std=c++17"], ".h .hpp"),
             ("CXX", ["-x", "c++", "-std=c++20", "-Wshadow"], ".hpp"), ("CC", ["-x", "c", "-std=c17", "-DVARVE_NO_OLD_NAMES"], ".h"),
             ("CXX", ["-x", "c++", "-std=c++17", "-DVARVE_NO_OLD_NAMES"], ".h .hpp")]
CACHE = (tree.BUILD / "CMakeCache.txt").read_text()
FOLDERS = re.search(r"^MPI_C_COMPILER_INCLUDE_DIRS:\w+=(.+)$", CACHE, re.M)  # where the compiler wrapper finds mpi.h
MPI = [f for folder in FOLDERS[1].split(";") for f in ("-isystem", folder)] if FOLDERS else []


def compiles(compiler, flags, text):
    run = subprocess.run([compiler, *flags, *WARNINGS, *MPI, f"-I{tree.ROOT / 'include'}", "-fsyntax-only", "-"],
                         input=text, capture_output=True, text=True)
    return run.returncode == 0, run.stderr


problems, count = [], 0
headers = sorted(p for p in (tree.ROOT / "include").rglob("*") if p.suffix in (".h", ".hpp"))
for variable, flags, suffixes in LANGUAGES:
    compiler = os.environ.get(variable) or {"CC": "cc", "CXX": ""}[variable]
    if not compiler:
        print(f"note: no {variable}, its language is left out")
        continue
    has_mpi, _ = compiles(compiler, flags, "#include <mpi.h>\n")
    for header in headers:
        if header.suffix not in suffixes.split():
            continue
        if re.search(r"<mpi\.h>|varve_mpi\.h", header.read_text()) and not has_mpi:
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
