#!/usr/bin/env python3
"""Every block of code in docs/fortran.md and docs/cpp.md compiles as it stands, without a warning."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT, BUILD = pathlib.Path(os.environ["VARVE_SOURCE"]), pathlib.Path(os.environ["VARVE_BUILD"])
CACHE = (BUILD / "CMakeCache.txt").read_text()
FC, CXX = os.environ.get("FC", ""), os.environ.get("CXX", "")


def folders(language, flag):
    found = re.search(rf"^MPI_{language}_COMPILER_INCLUDE_DIRS:\w+=(.+)$", CACHE, re.M)
    return [word for folder in found[1].split(";") for word in (flag, folder)] if found else []


def blocks(name, language):
    found = re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / "docs" / name).read_text(), re.M | re.S)
    assert len(found) > 3, f"docs/{name}: the blocks are not found"
    return found


def compile(name, language, command, mpi, has_mpi):
    count = 0
    for text in blocks(name, language):
        if re.search(mpi, text) and not has_mpi:
            print(f"note: docs/{name}: a block that needs MPI is left out")
            continue
        done = subprocess.run([*command, "-fsyntax-only", "-Werror", "-Wall", "-Wextra", "-"], input=text, text=True, cwd=folder,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, f"docs/{name}:\n{text}\n{done.stdout}"
        count += 1
    print(f"docs/{name}: {count} blocks")


if not FC and not CXX:
    print("skip: no compiler for either language")
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    if FC:
        compile("fortran.md", "fortran", [FC, "-x", "f95", "-ffree-form", f"-I{BUILD / 'fortran'}", *folders("Fortran", "-I")], "use mpi_f08",
                (BUILD / "fortran/varve_mpi.mod").exists())
    if CXX:
        mpi = folders("C", "-isystem")
        compile("cpp.md", "cpp", [CXX, "-x", "c++", "-std=c++17", f"-I{ROOT / 'include'}", *mpi], "varve_mpi", mpi)
