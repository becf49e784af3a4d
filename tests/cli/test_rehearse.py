#!/usr/bin/env python3
# ctest: TIMEOUT 240 COST 25
"""`varve run --rehearse`: a restart that is only tried, and what of the program's state it does not bring back."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import unittest

import command
from command import wait_for
from run_case import BUILD, REAL, SOURCE

MPICC = re.search(r"^MPI_C_COMPILER:FILEPATH=(.+)$", (BUILD / "CMakeCache.txt").read_text(), re.M)
SAME = "a restart from epoch 4 gives the same"
LOST = "a restart from epoch 4 does not bring back all of the state"


class Rehearse(command.Case):
    def setUp(self):
        super().setUp()
        self.env["TMPDIR"] = str(self.folder)

    def build(self, *defines, mpi=False):
        program = self.folder / "springs"
        subprocess.run([MPICC[1] if mpi else os.environ["CC"], "-O1", "-w", *(f"-D{d}" for d in defines), *(["-DMPI"] if mpi else []), "-o", program,
                        SOURCE / "tests/cli/rehearse_program.c", f"-I{SOURCE}/include", f"-L{BUILD}", *(["-lvarve_mpi"] if mpi else []),
                        *(["-Wl,--no-as-needed", "-lvarve_interpose"] if (BUILD / "libvarve_interpose.so").exists() else []), "-lvarve", "-ldl",
                        f"-Wl,-rpath,{BUILD}"], check=True)
        return program

    def rehearse(self, *words, status, options=()):
        for folder in self.folder.glob("varve-rehearse-*"):  # of the case before
            shutil.rmtree(folder)
        p = self.run_raw("run", "--rehearse", "3", *options, "--", *words)
        said = p.stderr.decode()
        self.assertEqual(p.returncode, status, said)
        self.assertEqual(p.stdout, b"")
        self.assertFalse((self.folder / "own-store").exists())
        left = [str(p) for p in self.folder.rglob("varve-rehearse-*/*")]
        log = re.search(r"its output is in '(.*)'", said)
        self.assertEqual((log and log[1] in left, [p for p in left if not p.endswith(".out")]), (log and True, []))
        if not log:
            self.assertEqual(list(self.folder.glob("varve-rehearse-*")), [])
        return said

    def test_sound(self):
        for defines in ([], ["FIRST"], ["HEAP"], ["HEAP", "FIRST"]):
            said = self.rehearse(self.build(*defines), status=0)
            self.assertIn(f"{SAME}: 3 regions agree at epoch 7", said)
            self.assertNotIn("differs", said)

    def test_forgotten(self):
        """The region that is computed from it is named, and the array itself; not the scratch and the handles beside it."""
        for place in ([], ["HEAP"]):
            for order in ([], ["FIRST"]):
                said = self.rehearse(self.build("FORGETS", *place, *order), status=1)
                self.assertRegex(said, r"region 'position' differs from byte \d+, element \[1\] on \(\d+ of 8000 bytes\) at epoch 5, 1 after that of the restart")
                self.assertNotIn("region 'step'", said)
                self.assertIn(LOST, said)
                named = re.findall(r"varve run: (.*) of (?:up to )?(\d+) bytes at 0x\w+, which is in no region", said)
                self.assertIn(("heap object", "8192") if place else ("variable variable", "8000"), named)
                self.assertLessEqual({name for name, _ in named}, {"heap object", "variable variable", "variable now"})

    def test_no_restart(self):
        said = self.rehearse(self.build("NEVER"), status=1)
        self.assertIn("region 'step' differs", said)

    def test_by_itself(self):
        said = self.rehearse(self.build("CLOCK=1"), status=0)
        self.assertRegex(said, "region 'now' differs from byte .* by itself")
        self.assertIn(f"{SAME}: 3 regions agree", said)
        said = self.rehearse(self.build("CLOCK=1", "FORGETS"), status=1)
        self.assertIn("region 'position' differs", said)
        self.assertIn("all regions differ by themselves", self.rehearse(self.build("CLOCK=2"), status=2))

    def test_poison(self):
        """Regions are filled with a pattern before a restart, so that none is right by chance: seen where the restart fails."""
        self.build("LARGER")
        (self.folder / "again").unlink(missing_ok=True)
        starts = self.file("starts", b"#!/bin/sh\n# the third run ends after epoch 4, and the fourth is started again\n"
                           b"echo >>count; [ $(wc -l <count) = 4 ] || rm -f again\nexec ./springs\n")
        starts.chmod(0o755)
        said = self.rehearse("./starts", status=2)
        self.assertIn("3.out", said)
        log = pathlib.Path(re.search(r"its output is in '(.*)'", said)[1]).read_text()
        self.assertIn("step is a5a5a5a5a5a5a5a5", log)

    def test_too_short(self):
        said = self.rehearse(self.build(), "5", status=2)
        self.assertIn("ended with status 0 after 5 checkpoints, and --rehearse 3 needs 7", said)
        self.assertTrue(pathlib.Path(re.search(r"its output is in '(.*)'", said)[1]).exists())
        self.assertIn("took no checkpoint, and ended with status 3", self.rehearse("sh", "-c", "exit 3", status=2))

    def test_kept(self):
        said = self.rehearse(self.build("FORGETS"), status=1, options=("--store", self.store))
        p = self.run_raw("diff", self.store / "1", "springs@5", "springs@5", "--with", self.store / "3")
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"region 'position'", p.stdout)
        self.assertIn("wants a new folder", self.fails("run", "--rehearse", "3", "-s", self.store, "--", "true"))
        self.assertIn("--every does not go with it", self.fails("run", "--rehearse", "3", "--every", "1s", "--", "true"))
        self.assertIn("is not a whole number", self.fails("run", "--rehearse", "x", "--", "true"))

    def test_interrupted(self):
        p = subprocess.Popen([command.BIN, "run", "--rehearse", "3", "--", "sleep", "60"], env=self.env, cwd=self.folder, stderr=subprocess.DEVNULL)
        wait_for(lambda: list(self.folder.glob("varve-rehearse-*/1.out")), "it runs")
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(command.PATIENCE), -signal.SIGTERM)
        self.assertEqual(list(self.folder.glob("varve-rehearse-*")), [])

    def test_nothing_declared(self):
        program = self.build("HERE")
        said = self.rehearse(program, status=1)
        self.assertRegex(said, r"region 'heap/\S+' differs")
        self.assertIn("variable variable of 8000 bytes", said)
        self.rehearse(self.build("HERE", "HEAP"), status=0)
        self.assertIn("allocates after its first call", self.rehearse(self.build("HERE", "HEAP", "GROWS"), status=2))

    def test_option(self):
        """VARVE_REHEARSE=3 PROGRAM: the program becomes a rehearsal of itself."""
        env = {**self.env, "PATH": f"{BUILD}:{os.environ['PATH']}", "VARVE_REHEARSE": "3"}
        for defines, status, word in ((), 0, SAME), (("FORGETS",), 1, LOST):
            p = subprocess.run([self.build(*defines), "10"], cwd=self.folder, env=env, capture_output=True, text=True)
            self.assertEqual((p.returncode, word in p.stderr), (status, True), p.stderr)
        p = subprocess.run([self.build(), "10"], cwd=self.folder, env={**env, "PATH": "/nowhere"}, capture_output=True, text=True)
        self.assertNotEqual(p.returncode, 0, "there is no such command")

    @unittest.skipUnless(MPICC and REAL.with_stem(REAL.stem + "_mpi").exists(), "built without MPI")
    def test_ranks(self):
        self.env["VARVE_MPIRUN"] = os.environ["VARVE_MPIEXEC"]
        said = self.rehearse(self.build("FORGETS", mpi=True), status=1, options=("-n", "2"))
        self.assertIn("region 'position' of rank 1 differs", said)
        self.assertRegex(said, r"variable variable of 8000 bytes at \w+ of rank 1, which is in no region")
        self.assertNotIn("of rank 0", said)
        self.assertIn(f"{SAME}: 6 regions agree", self.rehearse(self.build(mpi=True), status=0, options=("-n", "2")))


if __name__ == "__main__":
    if not REAL.exists():
        print(f"skipped: {REAL.name} is not built")
        sys.exit(77)
    if re.search(r"^VARVE_SANITIZE:\w+=.", (BUILD / "CMakeCache.txt").read_text(), re.M):
        print("skipped: what is preloaded into any program cannot be built with a sanitizer")
        sys.exit(77)
    command.unittest.main()
