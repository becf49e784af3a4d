#!/usr/bin/env python3
"""An installed varve serves pkg-config and find_package, shared and static, in C, C++ and Fortran, also after its folder was moved."""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import tree

CONSUMER = pathlib.Path(__file__).resolve().parent / "consumer"
CC, CXX, FC = os.environ.get("CC", "cc"), os.environ.get("CXX", ""), os.environ.get("FC", "")
CACHE = (tree.BUILD / "CMakeCache.txt").read_text()
MPICC, MPIFC = ((re.search(rf"^MPI_{language}_COMPILER:FILEPATH=(.+)$", CACHE, re.M) or [None, ""])[1] for language in ("C", "Fortran"))
CONFIG = (tree.BUILD / "include/vv_config.h").read_text()
BUILT_MPI, BUILT_FORTRAN = (f"#define VV_HAVE_{what} 1" in CONFIG for what in ("MPI", "FORTRAN"))
BOTH = ["libvarve", *(["libvarve_interpose"] if (tree.BUILD / "libvarve_interpose.so").exists() else [])]
BUILT_FORTRAN_MPI = (tree.BUILD / "libvarve_fortran_mpi.a").exists()


def run(*command, **env):
    p = subprocess.run([str(c) for c in command], capture_output=True, text=True, env={**os.environ, **env})
    if p.returncode != 0:
        print(f"{shlex.join(str(c) for c in command)}\n{p.stdout}{p.stderr}")
        sys.exit(1)
    return p.stdout.strip()


def expect(what, got, wanted):
    print(f"{what}: {got}")
    if got != wanted:
        print(f"{what}: wanted {wanted}")
        sys.exit(1)


def needed(program, but=None):
    """Varve's libraries that the program itself needs. libvarve_interpose must come before the C library."""
    names = re.findall(r"\(NEEDED\).*\[(\w+)\.so", run("readelf", "-d", program))
    if "libvarve_interpose" in names and names.index("libvarve_interpose") > names.index("libc"):
        print(f"{program}: the C library comes first: {names}")
        sys.exit(1)
    return sorted(name for name in names if name.startswith("libvarve") and name != but)


def has(prefix, what, built, *names):
    """All of these files, or none."""
    found = {name: bool(list(prefix.rglob(name))) for name in names}
    expect(f"of {what} installed", found, dict.fromkeys(found, built))
    return built


def has_mpi(prefix):
    return has(prefix, "MPI", BUILT_MPI, "varve_mpi.h", "varve_mpi.hpp", "libvarve_mpi.so", "libvarve_mpi.a", "varve_mpi.pc",
               "varveMpiTargets.cmake")


def has_fortran(prefix):
    return has(prefix, "Fortran", BUILT_FORTRAN, "varve.mod", "varve_here.mod", "libvarve_fortran.a", "varve_fortran.pc",
               "varveFortranTargets.cmake")


def has_fortran_mpi(prefix):
    return has(prefix, "Fortran with MPI", BUILT_FORTRAN_MPI, "varve_mpi.mod", "libvarve_fortran_mpi.a", "varve_fortran_mpi.pc",
               "varveFortranMpiTargets.cmake")


def has_manuals(prefix):
    return has(prefix, "the command's manual pages and completions", (tree.BUILD / "man" / "varve.1").exists(), "man1/varve.1", "man1/varve-ls.1",
               "bash-completion/completions/varve", "zsh/site-functions/_varve", "fish/vendor_completions.d/varve.fish")


def expect_mpi(what, program):
    expect(what, run(program).split(";")[0], "varve_open_mpi: MPI is not initialised")


WHOLLY_STATIC = """
#include <stdio.h>
#include <varve/varve.h>
int main(void)
{
	varve *v = NULL;
	int rc = varve_open("mem:a", "a", NULL, &v);

	puts(rc ? varve_last_error() : "open");
	return rc ? 0 : varve_close(v);
}
"""


def without_linker(work, flags):
    """A program linked with -static works, or says why not."""
    source, program = work / "wholly_static.c", work / "wholly_static"
    source.write_text(WHOLLY_STATIC)
    if subprocess.run([CC, "-static", "-o", program, source, *flags], capture_output=True).returncode:
        print("not checked: nothing can be linked with -static here")
        return
    said = run(program).strip()
    expect("-static", said == "open" or "linked with -static" in said, True)


def by_pkg_config(work, prefix):
    pc = next(prefix.rglob("varve.pc")).parent
    ask = lambda *what, name="varve": shlex.split(run("pkg-config", *what, name, PKG_CONFIG_PATH=str(pc)))
    version, libdir = ask("--modversion")[0], ask("--variable=libdir")[0]
    source, cflags = CONSUMER / "main.c", ask("--cflags")
    run(CC, "-o", work / "shared", source, *cflags, *ask("--libs"), f"-Wl,-rpath,{libdir}")
    expect("pkg-config, shared", run(work / "shared"), version)
    expect("pkg-config, libraries", needed(work / "shared"), BOTH)
    run(CC, "-o", work / "core", source, *cflags, *ask("--libs", name="varve_core"), f"-Wl,-rpath,{libdir}")
    expect("pkg-config, varve_core", run(work / "core"), version)
    expect("pkg-config, varve_core, libraries", needed(work / "core"), ["libvarve"])
    private = [f for f in ask("--libs", "--static", name="varve_core") if f != "-lvarve"]
    run(CC, "-o", work / "static", source, *cflags, pathlib.Path(libdir) / "libvarve.a", *private)
    expect("pkg-config, static", run(work / "static"), version)
    without_linker(work, [*cflags, *ask("--libs", "--static")])
    flags = lambda name: [*ask("--cflags", "--libs", name=name), f"-Wl,-rpath,{libdir}"]
    if has_mpi(prefix):
        run(MPICC or "mpicc", "-o", work / "mpi", CONSUMER / "mpi.c", *flags("varve_mpi"))
        expect_mpi("pkg-config, MPI", work / "mpi")
        expect("pkg-config, MPI, libraries", needed(work / "mpi", but="libvarve_mpi"), BOTH)
    if CXX:
        run(CXX, "-std=c++17", "-o", work / "cpp", CONSUMER / "session.cpp", *flags("varve"))
        expect("pkg-config, C++", run(work / "cpp"), version)
    if has_fortran(prefix):
        run(FC, "-o", work / "fortran", CONSUMER / "module.f90", *flags("varve_fortran"))
        expect("pkg-config, Fortran", run(work / "fortran"), version)
        expect("pkg-config, Fortran, libraries", needed(work / "fortran"), BOTH)
    if has_fortran_mpi(prefix):
        run(MPIFC or "mpifort", "-o", work / "fortran_mpi", CONSUMER / "module_mpi.f90", *flags("varve_fortran_mpi"))
        expect_mpi("pkg-config, Fortran, MPI", work / "fortran_mpi")
    return version


def by_find_package(work, prefix, version):
    build = work / "build"
    languages = [f"-DCMAKE_{name}_COMPILER={c}" for name, c in (("CXX", CXX), ("Fortran", FC)) if c]
    run("cmake", "-S", CONSUMER, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_COMPILER={CC}",
        f"-DVARVE_VERSION_WANTED={version}", *languages, f"-DVARVE_LANGUAGES={'CXX;' * bool(CXX)}{'Fortran' * bool(FC)}")
    run("cmake", "--build", build)
    expect("find_package, shared", run(build / "consumer"), version)
    expect("find_package, libraries", needed(build / "consumer"), BOTH)
    expect("find_package, varve_core", run(build / "consumer_core"), version)
    expect("find_package, varve_core, libraries", needed(build / "consumer_core"), ["libvarve"])
    expect("find_package, static", run(build / "consumer_static"), version)
    if has_mpi(prefix):
        expect_mpi("find_package, MPI, shared", build / "consumer_mpi")
        expect("find_package, MPI, libraries", needed(build / "consumer_mpi", but="libvarve_mpi"), BOTH)
        expect_mpi("find_package, MPI, static", build / "consumer_mpi_static")
    if CXX:
        expect("find_package, C++", run(build / "consumer_cpp"), version)
    if has_fortran(prefix):
        expect("find_package, Fortran", run(build / "consumer_fortran"), version)
    if has_fortran_mpi(prefix):
        expect_mpi("find_package, Fortran, MPI", build / "consumer_fortran_mpi")


os.environ.pop("DESTDIR", None)
with tempfile.TemporaryDirectory() as folder:
    work = pathlib.Path(folder)
    run("cmake", "--install", tree.BUILD, "--prefix", work / "first")
    prefix = (work / "first").rename(work / "moved")
    by_find_package(work, prefix, by_pkg_config(work, prefix))
    if (prefix / "bin" / "varve").exists():
        run(prefix / "bin" / "varve", "--help")
        has_manuals(prefix)
