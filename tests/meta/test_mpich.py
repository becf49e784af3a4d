#!/usr/bin/env python3
# ctest: COST 15
"""libvarve_mpi builds without a warning with MPICH as well, and its tests pass there. A library that was built with another MPI says so."""
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import tree

FLAGS = ["-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wshadow", "-Wmissing-prototypes", "-Wcast-qual", "-Werror"]
CC, RUN = (shutil.which(f"{word}.mpich") for word in ("mpicc", "mpirun"))


def run(*command):
    p = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)
    print(shlex.join(str(c) for c in command[-4:]), "->", p.returncode)
    if p.returncode not in (0, 77):
        sys.exit(p.stdout)


if not CC or not RUN:
    print("skip: no mpicc.mpich and mpirun.mpich here")
    sys.exit(77)
pc = {**os.environ, "PKG_CONFIG_PATH": str(tree.BUILD)}
private = shlex.split(subprocess.run(["pkg-config", "--libs", "--static", "varve"], env=pc, check=True, text=True,
                                     capture_output=True).stdout)
with tempfile.TemporaryDirectory() as folder:
    library = pathlib.Path(folder) / "mpi.o"
    include = [f"-I{tree.ROOT / d}" for d in ("include", "src", "tests")]
    run(CC, *FLAGS, *include, "-c", tree.ROOT / "src/comm/mpi.c", "-o", library)
    for source in sorted((tree.ROOT / "tests/comm").glob("test_mpi_*.c")):
        program = pathlib.Path(folder) / source.stem
        run(CC, *FLAGS, *include, source, library, tree.BUILD / "tests/libvv_testlib.a", tree.BUILD / "libvarve.a",
            *(f for f in private if f != "-lvarve"), "-o", program)
        for ranks in (2, 3):
            run(RUN, "-n", ranks, program)
    other = tree.BUILD / "libvarve_preload_mpi.so"
    if other.exists() and "libmpich" not in subprocess.run(["ldd", other], text=True, capture_output=True).stdout:
        source = pathlib.Path(folder) / "here.c"
        source.write_text("#include <mpi.h>\n#include <varve/varve_here.h>\n"
                          "int main(int argc, char **argv) { MPI_Init(&argc, &argv); varve_checkpoint_here(); return MPI_Finalize(); }\n")
        run(CC, *FLAGS, *include, source, "-o", source.with_suffix(""))
        p = subprocess.run([tree.BUILD / "varve", "run", "-n", "2", "--retries", "0", "--every", "0", "--", source.with_suffix("")],
                           env={**os.environ, "VARVE_MPIRUN": RUN}, cwd=folder, text=True, capture_output=True, timeout=100)
        print("varve of another MPI ->", p.returncode)
        if "the program runs with another MPI (MPICH" not in p.stderr:
            sys.exit(p.stderr)
