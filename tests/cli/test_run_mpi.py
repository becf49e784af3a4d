#!/usr/bin/env python3
# ctest: TIMEOUT 240 COST 20
"""`varve run` with many ranks: through a launcher of its own, and under somebody else's."""
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

import command
import run_case
from command import PATIENCE, wait_for
from run_case import BUILD, EACH, REAL, Case

MPIRUN = os.environ.get("VARVE_MPIEXEC")


def ranks_of(program):
    """Processes that run it."""
    out = subprocess.run(["pgrep", "-f", f"^{re.escape(str(program))} "], capture_output=True, text=True).stdout
    return [int(pid) for pid in out.split()]


class Ranks(Case):
    LIBRARY, PROGRAM = "stand-in-mpi.so", "program-mpi"

    def setUp(self):
        super().setUp()
        self.env["VARVE_MPIRUN"] = MPIRUN
        self.program = shutil.copy(self.program, self.folder / "program")  # a name by which its processes are found

    def finish_all(self, p):
        self.hear(p)
        self.out = p.stdout.read()
        p.wait(PATIENCE)
        self.assertEqual(list(self.folder.glob(".varve-run-*")), [])
        return p.heard[-1]

    def test_crashes(self):
        p = self.start(self.program, 40, 20, "15=1:9", "30=1:-3", options=("-n", 2, *EACH))
        s = self.finish_all(p)
        self.assertEqual((s["status"], s["restarts"]), (0, 2), p.heard)
        self.assertEqual(self.out, "right after 40 steps\n" * 2)
        self.assertEqual(self.words(p).count("restored"), 2)
        self.assertEqual(self.steps(0).count(1), 1)
        self.assertEqual(self.steps(1).count(1), 1)

    def test_last_checkpoint(self):
        p = self.start(self.program, 10000, 20, options=("-n", 2, "--every", "1h"))
        self.hear(p, "fresh")
        wait_for(lambda: len(self.steps(1)) > 3, "it works")
        p.send_signal(signal.SIGTERM)
        self.hear(p, "durable", epoch=1)
        self.assertNotEqual(self.finish_all(p)["status"], 0)
        self.assertNotIn("restart", self.words(p))
        self.assertIn("the program ended, as asked: it ", self.texts(p))
        self.assertEqual(ranks_of(self.program), [])
        end = self.beyond()
        p = self.start(self.program, end, 0, options=("-n", 2))
        self.hear(p, "restored", epoch=1)
        self.finish_all(p)
        self.assertEqual(self.out, f"right after {end} steps\n" * 2)

    def test_killed_itself(self):
        p = self.start(self.program, 10000, 20, options=("-n", 2, "--every", "0.1"))
        self.hear(p, "durable")
        self.assertEqual(len(ranks_of(self.program)), 2)
        p.kill()
        wait_for(lambda: not ranks_of(self.program), "the ranks are gone, too")
        for left in self.folder.glob(".varve-run-*"):
            left.unlink()
        end = self.beyond()
        p = self.start(self.program, end, 0, options=("-n", 2))
        self.hear(p, "restored")
        self.finish_all(p)
        self.assertEqual(self.out, f"right after {end} steps\n" * 2)

    def test_damage(self):
        """What one rank exits with reaches us through the launcher, more or less; the event counts."""
        p = self.start(self.program, 20, 5, options=("-n", 2, "--every", "0"))
        self.finish_all(p)
        n = max(e["epoch"] for e in p.heard if e["event"] == "durable")
        layer = self.layer(n, "a", 1)
        self.flip(layer, layer.stat().st_size // 2)
        p = self.start(self.program, 40, 5, options=("-n", 2, "--restart", n, "--retries", 0))
        self.hear(p, "fallback", epoch=n - 1)
        self.hear(p, "restored", epoch=n - 1)
        self.finish_all(p)
        self.assertEqual(self.out, "right after 40 steps\n" * 2)

    def test_under_a_launcher(self):
        """Started by mpirun itself, each becomes its rank, and one of them speaks."""
        run = [MPIRUN, "-n", "2", command.BIN, "run", "-s", self.store, "-l", "a", *EACH, "--", self.program, "20", "20"]
        env = {**self.env, "VARVE_OVERHEAD": "7%"}
        p = subprocess.run([*run, "15=1:-3"], capture_output=True, text=True, env=env, cwd=self.folder, timeout=100)
        self.assertNotEqual(p.returncode, 0)
        self.assertEqual(p.stderr.count("varve run:"), 1, p.stderr)
        self.assertIn("not varve", p.stderr)
        p = subprocess.run(run, capture_output=True, text=True, env=env, cwd=self.folder, timeout=100)
        self.assertEqual(p.stdout, "right after 20 steps\n" * 2, p.stderr)
        self.assertEqual(self.steps(1).count(1), 1)
        p = subprocess.run([MPIRUN, "-n", "2", command.BIN, "run", "-n", "2", "--", "true"], capture_output=True, text=True, env=env, cwd=self.folder, timeout=100)
        self.assertIn("this was started by one", p.stderr)


@unittest.skipUnless(REAL.exists() and REAL.with_stem(REAL.stem + "_mpi").exists(), f"{REAL.name} is not built, or not for MPI")
class RealRanks(Ranks):
    def setUp(self):
        super().setUp()
        del self.env["VARVE_PRELOAD"]

    def kill_after_taken(self, *options):
        """A rank dies between a checkpoint and the next call, which is a minute away."""
        p = self.start(self.program, 3, 60000, options=("-n", 2, "--every", "0", *options))
        taken = self.hear(p, "taken", epoch=1)
        if not options:
            self.hear(p, "durable", epoch=1)
        wait_for(lambda: self.steps(0) and self.steps(1), "both compute")
        os.kill(ranks_of(self.program)[0], signal.SIGKILL)
        self.hear(p, "restart")
        self.assertEqual((self.steps(0), self.steps(1)), ([1], [1]))
        return p, taken["text"]

    def test_plain_init(self):
        """The program says MPI_Init: an epoch counts all the same before the next call."""
        p, text = self.kill_after_taken()
        self.assertEqual(text, "epoch 1 is taken")
        self.hear(p, "restored", epoch=1)

    def test_plain_init_as_asked(self):
        """With the level of the program the next call commits, and the line says so."""
        p, text = self.kill_after_taken("--mpi-as-asked")
        self.assertEqual(text, "epoch 1 is taken, committed at the next call")
        self.hear(p, "fresh")

    def test_level_of_the_user(self):
        p = self.start("sh", "-c", "echo $OMPI_MPI_THREAD_LEVEL", options=("-n", 1), env={"OMPI_MPI_THREAD_LEVEL": "1"})
        self.finish_all(p)
        self.assertEqual(self.out, "1\n")


class Launchers(Case):
    """Whatever starts them, ranks find the library, fixed addresses and the terms."""

    def check(self, launcher):
        say = "echo $LD_PRELOAD $VARVE_RUN_LINEAGE $VARVE_INTERVAL $(grep stack /proc/self/maps | cut -d' ' -f1); echo $0 $VARVE_RUN_STORE"
        p = self.run_raw("run", "-q", "-n", "2", "-s", self.store, "-l", "x", "--every", "7s", "--", "sh", "-c", say, "a b", env={"VARVE_MPIRUN": launcher})
        self.assertEqual(p.returncode, 0, p.stderr)
        lines = sorted(p.stdout.decode().splitlines())
        self.assertEqual(lines[2:], [f"a b {self.store}"] * 2)
        self.assertEqual(lines[0], lines[1])
        self.assertRegex(lines[0], r"stand-in\.so x 7s [0-9a-f]+-[0-9a-f]+$")

    def test_open_mpi(self):
        self.check(f" {MPIRUN}  ")

    @unittest.skipUnless(shutil.which("mpiexec.hydra"), "no mpiexec.hydra")
    def test_hydra(self):
        self.check("mpiexec.hydra")

    def test_slurm_is_asked_in_its_jobs(self):
        """srun is found on the PATH there; this one only says what it was given."""
        srun = self.file("srun", b"#!/bin/sh\necho srun \"$1\" \"$2\" \"$3\"\n")
        srun.chmod(0o755)
        p = self.run_raw("run", "-q", "-n", "3", "--", "true", env={"SLURM_JOB_ID": "1", "PATH": f"{self.folder}:{os.environ['PATH']}"})
        self.assertEqual(p.stdout, b"srun -n 3 env\n")

    def test_no_program(self):
        """It is looked for before a launcher is started, or, where the launcher is the user's, not a second time."""
        starts = self.file("mpirun", f"#!/bin/sh\necho start >>{self.folder}/starts\nexec {MPIRUN} \"$@\"\n".encode())
        starts.chmod(0o755)
        p = self.run_raw("run", "-n", "2", "-s", self.store, "--", "./missing", env={"PATH": f"{self.folder}:{os.environ['PATH']}"})
        self.assertEqual((p.returncode, p.stderr), (127, b"varve run: cannot start './missing': No such file or directory\n"))
        self.assertFalse(self.store.exists() or (self.folder / "starts").exists())
        p = self.run_raw("run", "-n", "2", "-s", self.store, "--", "./missing", env={"VARVE_MPIRUN": str(starts)})
        self.assertEqual(p.returncode, 127, p.stderr)
        self.assertIn(b"not started again", p.stderr)
        self.assertEqual((self.folder / "starts").read_text(), "start\n")

    def test_no_launcher(self):
        p = self.run_raw("run", "-n", "2", "--", "true", env={"VARVE_MPIRUN": "no-such-launcher"})
        self.assertEqual(p.returncode, 2)
        self.assertIn(b"cannot start 'no-such-launcher'", p.stderr)


if __name__ == "__main__":
    compiler = re.search(r"^MPI_C_COMPILER:FILEPATH=(.+)$", (BUILD / "CMakeCache.txt").read_text(), re.M)
    if not MPIRUN or not compiler:
        print("skipped: built without MPI")
        sys.exit(77)
    run_case.main(compiler[1], "-mpi", ["-DMPI"], ["-lvarve_mpi"])
