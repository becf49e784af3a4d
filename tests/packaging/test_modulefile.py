#!/usr/bin/env python3
"""The installed module file leads to its own prefix, also after a move; Environment Modules or Lmod loads and unloads it."""
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ["VARVE_BUILD"])
CACHE = (BUILD / "CMakeCache.txt").read_text()
LIBDIR = re.search(r"^CMAKE_INSTALL_LIBDIR:\w+=(.+)$", CACHE, re.M)[1]
CONSUMER = pathlib.Path(os.environ["VARVE_SOURCE"]) / "tests/meta/consumer/main.c"
WANTED = {"PATH": "bin", "LD_LIBRARY_PATH": LIBDIR, "LIBRARY_PATH": LIBDIR, "CPATH": "include", "PKG_CONFIG_PATH": f"{LIBDIR}/pkgconfig",
          "CMAKE_PREFIX_PATH": ""}
if re.search(r"^VARVE_WITH_PYTHON:\w+=(ON|TRUE|1)$", CACHE, re.M | re.I):
    WANTED["PYTHONPATH"] = re.search(r"^VARVE_PYTHONDIR:\w+=(.+)$", CACHE, re.M)[1]


def run(*command, **options):
    p = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    if p.returncode != 0:
        sys.exit(f"{command}: exit {p.returncode}\n{p.stdout}{p.stderr}")
    return p.stdout


def read_as_text(path, prefix):
    """The file's own words, for machines without any of the two: each variable once, each folder there."""
    text = path.read_text()
    if not text.startswith("#%Module") or "@" in text:
        sys.exit(f"{path} is no module file:\n{text}")
    up = re.search(r"\$ModulesCurrentModulefile\] (\S+)\]\]", text)[1]
    if (path.parent / up).resolve() != prefix.resolve():
        sys.exit(f"'{up}' does not lead from {path} to {prefix}")
    found = dict(re.findall(r"^prepend-path (\w+) \$prefix/?(\S*)$", text, re.M))
    if found != WANTED:
        sys.exit(f"paths {found}, wanted {WANTED}")
    missing = [value for value in found.values() if not (prefix / value).is_dir()]
    if missing:
        sys.exit(f"not installed: {missing}")


def loader():
    """The program that turns a module file into commands for a shell."""
    found = shutil.which("modulecmd"), *glob.glob("/usr/share/lmod/*/libexec/lmod")
    return next((f for f in found if f), None)


def load(command, prefix, work):
    script = f'eval "$({command} sh load varve)"; cc=$1; shift; varve --version; ' \
             f'$cc -o "$2" "$1" -lvarve && "$2"; pkg-config --modversion varve; eval "$({command} sh unload varve)"; echo "${{CPATH-}}"'
    env = {k: v for k, v in os.environ.items() if k not in (*WANTED, "LOADEDMODULES", "_LMFILES_")}
    env.update(MODULEPATH=str(prefix / "share/modulefiles"), PATH=os.environ["PATH"], HOME=str(work))
    said = run("sh", "-c", script, "sh", os.environ.get("CC", "cc"), CONSUMER, work / "program", env=env).split("\n")
    version = re.search(r"^CMAKE_PROJECT_VERSION:\w+=(.+)$", CACHE, re.M)[1]
    print(said)
    if version not in said[0] or said[1:4] != [version, version, ""]:
        sys.exit(f"wanted the version {version} of the command, the library and the .pc file, then nothing")


with tempfile.TemporaryDirectory() as folder:
    work = pathlib.Path(folder)
    run("cmake", "--install", BUILD, "--prefix", work / "first", env={k: v for k, v in os.environ.items() if k != "DESTDIR"})
    prefix = (work / "first").rename(work / "moved")
    path, = (prefix / "share/modulefiles/varve").iterdir()
    read_as_text(path, prefix)
    command = loader()
    if not command:
        print("skipped in part: neither Environment Modules nor Lmod is installed; the file was read as text")
    else:
        load(command, prefix, work)
