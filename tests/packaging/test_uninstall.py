#!/usr/bin/env python3
"""`make uninstall` removes the files and the folders that `make install` made, and nothing else."""
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE, BUILD = (pathlib.Path(os.environ[name]) for name in ("VARVE_SOURCE", "VARVE_BUILD"))


def tool(*words, dest="", fails=False):
    p = subprocess.run([SOURCE / "tools/install", *words], capture_output=True, text=True, env={**os.environ, "DESTDIR": str(dest)})
    if (p.returncode != 0) != fails:
        sys.exit(f"tools/install {words}: exit {p.returncode}\n{p.stdout}{p.stderr}")
    return p.stderr


def paths(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*"))


def expect(what, got, wanted):
    print(f"{what}: {got if len(str(got)) < 200 else len(got)}")
    if got != wanted:
        sys.exit(f"{what}: wanted {wanted}")


def make_says(target, *words):
    p = subprocess.run(["make", "-n", "-C", SOURCE, target, *words], capture_output=True, text=True)
    return p.stdout


def in_place(work, prefix, dest=""):
    """Twice, as after an update of the source; then removed."""
    before = paths(work)
    for _ in range(2):
        tool(BUILD, prefix, dest=dest)
    top = pathlib.Path(f"{dest}{prefix}")
    got = paths(top)
    expect("the command is installed", "bin/varve" in got and "include/varve/varve.h" in got, True)
    listed = {line.split(" ", 1)[1] for line in (BUILD / f"installed{dest}{prefix}" / "list").read_text().splitlines()}
    expect("files that are not in the record", [g for g in got if not (top / g).is_dir() and str(top / g) not in listed], [])
    tool("--remove", BUILD, prefix, dest=dest)
    expect("left behind", paths(work), before)


with tempfile.TemporaryDirectory() as folder:
    work = pathlib.Path(folder)
    in_place(work, work / "a prefix")
    in_place(work, "/opt/varve", work / "dest")

    # a folder and a file of others stay, and so does another installation of the same build
    (work / "p/bin").mkdir(parents=True)
    (work / "p/lib").mkdir()
    (work / "p/bin/mine").write_text("x")
    tool(BUILD, work / "p")
    tool(BUILD, work / "q")
    (work / "p/include/varve/mine.h").write_text("x")
    tool("--remove", BUILD, work / "p")
    expect("of others", paths(work / "p"), ["bin", "bin/mine", "include", "include/varve", "include/varve/mine.h", "lib"])
    expect("the other installation", "bin/varve" in paths(work / "q"), True)
    expect("a second removal", "has installed nothing" in tool("--remove", BUILD, work / "p", fails=True), True)
    tool("--remove", BUILD, work / "q")
    expect("the other installation", (work / "q").exists(), False)

for target, flag in (("install", ""), ("uninstall", "--remove ")):
    wanted = f'DESTDIR="/d" tools/install {flag}build "/p"'
    expect(f"make {target}", wanted in make_says(target, "PREFIX=/p", "DESTDIR=/d"), True)
