"""What the tests of the Fortran library share: how a program is built against it."""
import os
import pathlib
import subprocess
import sys

BUILD, FC, CC = pathlib.Path(os.environ["VARVE_BUILD"]), os.environ.get("FC", ""), os.environ.get("CC", "cc")
SANITIZE = [w for w in (BUILD / "CMakeCache.txt").read_text().splitlines() if w.startswith("VARVE_SANITIZE:")][0].split("=")[1]
FLAGS = [f"-fsanitize={SANITIZE.replace(';', ',')}"] if SANITIZE else []
LINK = [f"-L{BUILD}", "-lvarve_fortran", *(["-Wl,--no-as-needed", "-lvarve_interpose"] if (BUILD / "libvarve_interpose.so").exists() else []), "-lvarve", f"-Wl,-rpath,{BUILD}"]


def need_compiler():
    if not FC:
        print("skip: varve was built without Fortran")
        sys.exit(77)


def compile(folder, source, *flags):
    """Was it compiled, and what was said to it?"""
    done = subprocess.run([FC, f"-I{BUILD / 'fortran'}", f"-J{folder}", *FLAGS, *map(str, flags)], cwd=folder, text=True,
                          input=source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode == 0, done.stdout


def build(folder, name, source, *flags):
    path = pathlib.Path(folder, name)
    path.with_suffix(".f90").write_text(source)
    fine, said = compile(folder, None, path.with_suffix(".f90"), "-o", path, *flags)
    assert fine, said
    return path
