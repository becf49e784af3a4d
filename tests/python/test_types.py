#!/usr/bin/env python3
"""The package is typed without an error, and a checker finds errors in programs that use it."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["VARVE_SOURCE"])
GOOD = """
import varve
with varve.open("ckpt", "run1", keep=3) as v:
    v["step"] = 0
    restarted: bool = v.restart()
    epoch: int = v.checkpoint()
for e in varve.Store("ckpt")["run1"]:
    label: str | None = e.label
    part: varve.Region = e["T"]
"""
BAD = """
import varve
with varve.open("ckpt", "run1") as v:
    text: str = v.checkpoint()
    v.restrat()
    v.wait("soon")
"""
if not shutil.which("mypy"):
    print("skipped: no mypy (package mypy)")
    sys.exit(77)


class Types(unittest.TestCase):
    def check(self, *arguments):
        p = subprocess.run(["mypy", "--no-error-summary", "--cache-dir", os.devnull, "--python-version", "3.10", *arguments], capture_output=True, text=True,
                           env={**os.environ, "MYPYPATH": str(SOURCE / "python")})
        return p.stdout + p.stderr

    def test_package(self):
        self.assertEqual(self.check("--ignore-missing-imports", "-p", "varve"), "")

    def test_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            for text, lines in (GOOD, []), (BAD, [4, 5, 6]):
                program = pathlib.Path(folder) / "program.py"
                program.write_text(text)
                said = self.check(str(program)).splitlines()
                found = sorted({int(line.split(":")[1]) for line in said if ": error:" in line})
                self.assertEqual(found, lines, said)


if __name__ == "__main__":
    unittest.main(verbosity=1)
