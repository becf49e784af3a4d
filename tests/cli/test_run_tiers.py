#!/usr/bin/env python3
# ctest: TIMEOUT 120 COST 5
"""`varve run` with a store in shared memory: the newest epoch is in the tier when the program has died or ended, and the program comes back from
there when the memory is lost, and without a tier that cannot be reached."""
import os
import pathlib
import shutil
import signal
import sys

import run_case
from run_case import EACH, Case

SHM = pathlib.Path(f"/dev/shm/varve-{os.getuid()}")


class Tiers(Case):
    def setUp(self):
        super().setUp()
        self.name = f"run-{os.getpid()}-{self._testMethodName.replace('_', '-')}"
        self.memory = SHM / self.name
        self.tier = self.folder / "tier"
        self.options = (*EACH, "-o", f"tiers={self.tier} every=1000")
        self.addCleanup(self.clean)

    def clean(self):
        shutil.rmtree(self.memory, ignore_errors=True)
        try:
            SHM.rmdir()
        except OSError:
            pass

    def epochs(self, store):
        return sorted(int(p.name.split(".")[0]) for p in store.glob("a/*/*.commit"))

    def test_drained_and_lost(self):
        p = self.start(self.program, 20, 1, "12=1:9", options=(*self.options, "--retries", 0), store=f"ram:{self.name}")
        self.finish(p, status=137)
        newest = self.epochs(self.memory)[-1]
        self.assertEqual([e["epoch"] for e in p.heard if e["event"] == "drained"], [newest])
        self.assertEqual(self.epochs(self.tier)[-1], newest)
        shutil.rmtree(self.memory)  # the machine was switched off
        p = self.start(self.program, 20, 1, options=self.options, store=f"ram:{self.name}")
        self.hear(p, "restored", epoch=newest)
        self.finish(p, result=20)
        self.assertEqual(self.epochs(self.tier)[-1], self.epochs(self.memory)[-1])

    def test_restart_without_the_tier(self):
        """The command has watched the store: its newest epoch is the newest of all."""
        p = self.start(self.program, 20, 1, "stays", options=self.options, store=f"ram:{self.name}")
        self.hear(p, "durable", epoch=5)
        self.assertFalse(self.tier.exists())  # no epoch was due
        self.tier.write_text("no folder")
        os.kill(p.pid_of_program, signal.SIGKILL)
        self.hear(p, "undrained")
        self.hear(p, "restored")
        (self.folder / "go").touch()
        self.finish(p, result=20)

    def test_no_tier(self):
        p = self.start(self.program, 5, 1, options=EACH, store=f"ram:{self.name}")
        self.finish(p, result=5)
        self.assertFalse([e for e in p.heard if "drained" in e["event"]])


if __name__ == "__main__":
    if not os.access("/dev/shm", os.W_OK):
        print("no /dev/shm")
        sys.exit(77)
    run_case.main()
