#!/usr/bin/env python3
"""An installed varve serves pkg-config and find_package, shared and static, also after its folder was moved."""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import tree

CONSUMER = pathlib.Path(__file__).resolve().parent / "consumer"
CC = os.environ.get("CC", "cc")
CACHE = (tree.BUILD / "CMakeCache.txt").read_text()
MPICC = (re.search(r"^MPI_C_COMPILER:FILEPATH=(.+)$", CACHE, re.M) or [None, "mpicc"])[1]
BUILT_MPI = "#define VV_HAVE_MPI 1" in (tree.BUILD / "include/vv_config.h").read_text()


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


def has_mpi(prefix):
    """The header, both libraries and the .pc file of varve_mpi: all of them, or none."""
    found = {name: bool(list(prefix.rglob(name))) for name in
             ("varve_mpi.h", "libvarve_mpi.so", "libvarve_mpi.a", "varve_mpi.pc", "varveMpiTargets.cmake")}
    expect("of MPI installed", found, dict.fromkeys(found, BUILT_MPI))
    return BUILT_MPI


def expect_mpi(what, program):
    expect(what, run(program).split(";")[0], "varve_open_mpi: MPI is not initialised")


def by_pkg_config(work, prefix):
    pc = next(prefix.rglob("varve.pc")).parent
    ask = lambda *what: shlex.split(run("pkg-config", *what, "varve", PKG_CONFIG_PATH=str(pc)))
    version, libdir = ask("--modversion")[0], ask("--variable=libdir")[0]
    source, cflags = CONSUMER / "main.c", ask("--cflags")
    run(CC, "-o", work / "shared", source, *cflags, *ask("--libs"), f"-Wl,-rpath,{libdir}")
    expect("pkg-config, shared", run(work / "shared"), version)
    private = [f for f in ask("--libs", "--static") if f != "-lvarve"]
    run(CC, "-o", work / "static", source, *cflags, pathlib.Path(libdir) / "libvarve.a", *private)
    expect("pkg-config, static", run(work / "static"), version)
    if has_mpi(prefix):
        ask_mpi = lambda *what: shlex.split(run("pkg-config", *what, "varve_mpi", PKG_CONFIG_PATH=str(pc)))
        run(MPICC, "-o", work / "mpi", CONSUMER / "mpi.c", *ask_mpi("--cflags", "--libs"), f"-Wl,-rpath,{libdir}")
        expect_mpi("pkg-config, MPI", work / "mpi")
    return version


def by_find_package(work, prefix, version):
    build = work / "build"
    run("cmake", "-S", CONSUMER, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_COMPILER={CC}",
        f"-DVARVE_VERSION_WANTED={version}")
    run("cmake", "--build", build)
    expect("find_package, shared", run(build / "consumer"), version)
    expect("find_package, static", run(build / "consumer_static"), version)
    if has_mpi(prefix):
        expect_mpi("find_package, MPI, shared", build / "consumer_mpi")
        expect_mpi("find_package, MPI, static", build / "consumer_mpi_static")


os.environ.pop("DESTDIR", None)
with tempfile.TemporaryDirectory() as folder:
    work = pathlib.Path(folder)
    run("cmake", "--install", tree.BUILD, "--prefix", work / "first")
    prefix = (work / "first").rename(work / "moved")
    by_find_package(work, prefix, by_pkg_config(work, prefix))
    if (prefix / "bin" / "varve").exists():
        run(prefix / "bin" / "varve", "--help")
