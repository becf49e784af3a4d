#!/usr/bin/env python3
# ctest: TIMEOUT 180 RUN_SERIAL PROCESSORS 2
"""Several processes come back from one epoch, and the command that brings them back is killed: then all of them run, or none does."""
import os
import shutil
import signal
import subprocess
import time
import unittest

import command
from command import PATIENCE, is_alive, wait_for
from image_case import Several, children_of_all, kill, strays

MPIEXEC = os.environ.get("VARVE_MPIEXEC")
PROGRAM = None  # set in main
REAL = shutil.which("criu", path=os.environ["PATH"] + ":/usr/local/sbin:/usr/sbin:/sbin")


def below(pid):
    """All that are below a process."""
    return [kin for c in children_of_all(pid) for kin in (c, *below(c))]


class Kill(Several):
    def start(self, n):
        """Programs that are saved by one epoch, and have ended."""
        self.launch(PROGRAM, n, "grow", 1)
        self.pids = [p.pid for p in self.running]
        self.stepped([0] * n)

    def save(self, n):
        self.start(n)
        self.assertEqual(self.begin("dump").wait(PATIENCE), 0)
        for p in self.running:
            p.wait(PATIENCE)
        self.at = self.steps()

    def steps(self):
        return [self.step(i) for i in range(len(self.running))]

    def stepped(self, since):
        wait_for(lambda: all(a > b for a, b in zip(self.steps(), since)), "all go on")

    def restore(self, *launcher, slow=0):
        return self.begin("restore", *launcher, slow=slow)

    def begin(self, verb, *launcher, slow=0):
        """slow: criu takes so many seconds to end when all is done."""
        env = dict(self.env)
        if slow:
            wrap = self.file("wrap", f'#!/bin/sh\n{REAL} "$@"; status=$?\n[ "$1" = {verb} ] && sleep {slow}\nexit $status\n'.encode())
            wrap.chmod(0o755)
            env["VARVE_CRIU"] = str(wrap)
        whom = ["--pid", ",".join(map(str, self.pids))] if verb == "dump" else []
        r = subprocess.Popen([*launcher, command.BIN, "image", verb, "-q", *whom, self.store, "a"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             env=env, cwd=self.folder)
        self.addCleanup(lambda: (r.poll() is None and r.kill(), r.wait()))
        return r

    def settled(self, kin):
        """criu, which has lost us, has ended what it had not finished. How many run. What was killed may take a moment to be gone, and is alive until then, so those
        that run must take a step."""
        wait_for(lambda: not strays(self.folder) and not [p for p in kin if p not in self.pids and is_alive(p)], "criu and the watchdogs have ended")
        at, end = self.steps(), time.time() + PATIENCE
        while time.time() < end:
            go_on = [a > b for a, b in zip(self.steps(), at)]
            alive = [is_alive(p) for p in self.pids]
            if not any(alive) or all(alive) and all(go_on):
                break
            time.sleep(0.02)
        for p in self.running:
            self.end(p)
        return sum(alive)

    def test_ending(self):
        """They are to end when their epoch is durable. It is killed when the first has ended: the others end, too."""
        self.start(3)
        d = self.begin("dump", slow=0.5)
        wait_for(lambda: any(p.poll() is not None for p in self.running), "one of them ends")
        d.kill()
        for p in self.running:
            self.assertEqual(p.wait(PATIENCE), -signal.SIGKILL)
        self.restore()
        self.stepped(self.steps())

    def test_letting_go(self):
        """It is killed when the first has taken a step. The others do so, too."""
        self.save(3)
        r = self.restore(slow=0.5)
        wait_for(lambda: any(a != b for a, b in zip(self.steps(), self.at)), "one of them runs")
        kin = below(r.pid)
        r.kill()
        r.wait()
        self.assertEqual(self.settled(kin), 3)

    def test_any_time(self):
        self.save(3)
        start = time.time()
        r = self.restore()
        wait_for(lambda: any(a != b for a, b in zip(self.steps(), self.at)), "one of them runs")
        whole = time.time() - start
        kin = below(r.pid)
        r.kill()
        self.assertEqual(self.settled(kin), 3)
        for part in (0.5, 0.8, 0.95, 1):
            r = self.restore()
            time.sleep(part * whole)
            kin = below(r.pid)
            r.kill()
            r.wait()
            self.assertIn(self.settled(kin), (0, 3), part)

    @unittest.skipUnless(MPIEXEC, "built without MPI")
    def test_rank(self):
        """One of the ranks is killed before all have said that their processes run: those that do end."""
        self.start(2)
        for i, p in enumerate(self.pids):
            self.file(f"{i}.pid", b"%d" % p)
        subprocess.run([*MPIEXEC.split(), "-n", "2", command.BIN, "image", "dump", "-q", "--pid-file", "%r.pid", self.store, "a"], check=True, env=self.env,
                       cwd=self.folder)
        for p in self.running:
            p.wait(PATIENCE)
        at = self.steps()
        for victim in (0, 1):
            r = self.restore(*MPIEXEC.split(), "-n", "2", slow=3)
            wait_for(lambda: all(a != b for a, b in zip(self.steps(), at)), "both run")
            kin = below(r.pid)
            kill(self.ranks_of(r.pid)[victim])
            self.assertNotEqual(r.wait(PATIENCE), 0)
            wait_for(lambda: not any(map(is_alive, self.pids)), "both have ended")
            self.assertEqual(self.settled(kin), 0)
            at = self.steps()


if __name__ == "__main__":
    command.main_with_images("image_program.c")
