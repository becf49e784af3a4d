#!/usr/bin/env python3
# ctest: COST 15
"""`pip install .` gives a package that needs nothing else: a program in another folder takes a checkpoint and restarts."""
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import package

package.numpy()  # the interpreter of the other tests
if any(importlib.util.find_spec(name) is None for name in ("pip", "setuptools", "wheel")):
    package.skip(f"no pip, setuptools and wheel for {sys.executable} (packages python3-pip, python3-wheel)")
PROGRAM = """
import varve
from varve import _native
x = bytearray(4096)
with varve.open("ckpt", "l") as v:
    v["x"], v["n"] = x, 0
    print(v.restart(), v["n"], bytes(x[:3]), _native.is_interposed())
    x[:3], v["n"] = b"hot", 7
    v.checkpoint()
for line in sorted({line.split()[-1] for line in open("/proc/self/maps") if "libvarve" in line}):
    print(line)
"""


class Pip(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def install(self, build):
        """From a copy of the sources: pip builds in the tree."""
        tree = self.folder / "tree"
        tree.mkdir()
        for name in ("pyproject.toml", "setup.py"):
            shutil.copy(package.SOURCE / name, tree)
        shutil.copytree(package.SOURCE / "python", tree / "python", ignore=shutil.ignore_patterns("__pycache__"))
        return subprocess.run([sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--no-build-isolation", "--target", self.folder / "site", tree],
                              env={**os.environ, "VARVE_BUILD": str(build)}, capture_output=True, text=True)

    def program(self, *command):
        """Its lines, in a folder without sources, where nothing names the library."""
        unnamed = {k: v for k, v in os.environ.items() if k not in ("VARVE_LIBRARY", "VARVE_BUILD", "LD_LIBRARY_PATH")}
        away = self.folder / "away"
        away.mkdir(exist_ok=True)
        done = subprocess.run([sys.executable, *command, "-c", PROGRAM], cwd=away, env={**unnamed, "PYTHONPATH": str(self.folder / "site")}, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()

    def test_install(self):
        done = self.install(package.BUILD)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        own = self.folder / "site/varve"
        self.assertEqual(self.program(), ["False 0 b'\\x00\\x00\\x00' False", f"{own}/libvarve.so.0"])
        if (own / "libvarve_interpose.so.0").exists():
            self.assertEqual(self.program("-m", "varve"), ["True 7 b'hot' True", f"{own}/libvarve.so.0", f"{own}/libvarve_interpose.so.0"])
        wheel, = (self.folder / "site").glob("varve-*.dist-info/WHEEL")
        self.assertIn("\nTag: py3-none-linux", wheel.read_text())

    def test_no_wheel(self):
        if subprocess.run([sys.executable, "-c", "import setuptools.command.bdist_wheel"], stderr=subprocess.DEVNULL).returncode == 0:
            self.skipTest("this setuptools needs no package wheel")
        (self.folder / "wheel").mkdir()
        (self.folder / "wheel/__init__.py").touch()
        done = subprocess.run([sys.executable, package.SOURCE / "setup.py", "--version"], env={**os.environ, "PYTHONPATH": str(self.folder)}, cwd=self.folder, capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "^error: .* has no package wheel.*python3-wheel.*system-site-packages")

    def test_no_library(self):
        done = self.install(self.folder)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("has no libvarve.so.0", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=1)
