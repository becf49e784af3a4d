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


HERE = """#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <varve/varve_here.h>
int main(int argc, char **argv)
{
	char *state = malloc(2 << 20);
	double sum[10] = { 0 };

	MPI_Init(&argc, &argv);
	for (int i = 0; i < 10; i++) {
		memset(state, i, 2 << 20);
		varve_checkpoint_here();
		for (int k = 0; k < 10; k++)
			MPI_Allreduce(MPI_IN_PLACE, sum, 10, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	}
	return MPI_Finalize();
}
"""


DERIVATIVE = """
#include <mpi.h>
#include <string.h>
int MPI_Get_library_version(char *version, int *len)
{
	*len = (int)strlen(strcpy(version, "Intel(R) MPI Library 2021.9 for Linux* OS"));
	return MPI_SUCCESS;
}
"""


def check_here(folder, include):
    """Nothing declared: with varve of another MPI a sentence says so; with MPICH's own all epochs are there, and MPI_Finalize is well."""
    preload, other = (tree.BUILD / f"libvarve_preload{word}.so" for word in ("", "_mpi"))
    if " " in str(tree.BUILD) or ":" in str(tree.BUILD):
        print("left out: ld.so takes no blank and no colon in the path of libvarve_preload.so")
        return
    if not preload.exists() or not other.exists() or "libmpich" in subprocess.run(["ldd", other], text=True, capture_output=True).stdout:
        return
    source = folder / "here.c"
    source.write_text(HERE)
    run(CC, *FLAGS, *include, source, "-o", folder / "here")
    own = folder / "own"
    own.mkdir()
    for path in (tree.BUILD / "varve", preload):
        shutil.copy(path, own)
    run(CC, *FLAGS, *include, "-fPIC", "-shared", *sorted((tree.ROOT / "src/comm").glob("mpi*.c")), "-o", own / other.name)
    for varve, words, times in ((tree.BUILD / "varve", "the program runs with another MPI (MPICH", 1), (own / "varve", "10 epochs", 6)):
        for i in range(times):
            p = subprocess.run([varve, "run", "-n", "4", "--retries", "0", "--every", "0", "--store", f"store{i}", "--", "./here"],
                               env={**os.environ, "VARVE_MPIRUN": RUN}, cwd=folder, text=True, capture_output=True, timeout=100)
            print("a program that declares nothing ->", p.returncode)
            if words not in p.stderr or p.returncode:
                sys.exit(p.stderr)


if not CC or not RUN:
    print("skip: no mpicc.mpich and mpirun.mpich here")
    sys.exit(77)
pc = {**os.environ, "PKG_CONFIG_PATH": str(tree.BUILD)}
private = shlex.split(subprocess.run(["pkg-config", "--libs", "--static", "varve_core"], env=pc, check=True, text=True,
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
    other_name = pathlib.Path(folder) / "derivative.c"  # a library with MPICH's interface and a name of its own
    other_name.write_text(DERIVATIVE)
    run(CC, *FLAGS, *include, source, other_name, library, tree.BUILD / "tests/libvv_testlib.a", tree.BUILD / "libvarve.a",
        *(f for f in private if f != "-lvarve"), "-o", program)
    run(RUN, "-n", 2, program)
    check_here(pathlib.Path(folder), include)
