#!/usr/bin/env python3
"""The Makefile: Ninja builds where it is, make where it is not; `make demo` installs the packages of the build only, and none that starts a service."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["VARVE_SOURCE"])
SERVICES = {"slurmctld", "slurmd", "munge", "chromium", "lammps"}


def lists():
    """{list: {package: words of its line}} of packages.txt."""
    found, packages = {}, None
    for line in (SOURCE / "packages.txt").read_text().splitlines():
        words = line.partition("#")[0].split()
        if words and words[0].startswith("["):
            packages = found.setdefault(words[0].strip("[]"), {})
        elif words:
            packages[words[0]] = words
    return found


class Make(unittest.TestCase):
    def says(self, target, *commands):
        """What make would run for the target, with these commands on PATH and no others."""
        with tempfile.TemporaryDirectory() as path:
            for command in ("make", "sh", "nproc", *commands):
                os.symlink(shutil.which(command) or "/bin/true", pathlib.Path(path, command))
            environment = {k: v for k, v in os.environ.items() if k not in ("CMAKE_GENERATOR", "MAKEFLAGS")}
            p = subprocess.run([shutil.which("make"), "-n", "-C", SOURCE, target], capture_output=True, text=True, env={**environment, "PATH": path})
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stdout

    def test_generator(self):
        self.assertIn("CMAKE_GENERATOR='Ninja'", self.says("build", "ninja"))
        self.assertIn("CMAKE_GENERATOR='Unix Makefiles'", self.says("build"))

    def test_the_demo_installs_for_the_build_only(self):
        self.assertIn("tools/setup build\n", self.says("demo"))
        self.assertNotIn("tools/setup\n", self.says("demo"))

    def test_nothing_starts_a_service(self):
        packages = lists()
        self.assertEqual(SERVICES & set(packages["build"]), set())
        for name in packages.values():
            for service in ("slurmctld", "slurmd", "munge"):
                if service in name:
                    self.assertIn("unpacked", name[service])


if __name__ == "__main__":
    unittest.main()
