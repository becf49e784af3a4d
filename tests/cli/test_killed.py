#!/usr/bin/env python3
# ctest: TIMEOUT 300 COST 15 PROCESSORS 2
"""Verbs that change a store, killed at any moment: no other epoch is lost or changed, nothing is damaged, and the same command ends the work.

VARVE_KILLS=2000 kills as many."""
import os
import random
import subprocess
import time
import unittest

import command

KILLS = int(os.environ.get("VARVE_KILLS", "80"))
N = 300000


class Killed(command.Case):
    def history(self, epochs):
        words = ["region", "x", "bytes", N, "load", "x", "x"]
        for _ in range(epochs):
            words += ["poke", "x", self.random.randrange(N), f"{self.random.randrange(256):02x}", "checkpoint"]
        self.write(*words, options=self.random.choice(["", "codec=none", "keep-every=3 keep=4"]))

    def epochs(self, store):
        p = self.run_raw("ls", "--all", "-q", store, "heat")
        return [int(line.split()[0]) for line in p.stdout.splitlines()] if p.returncode == 0 else []

    def content(self, store, epoch):
        p = self.run_raw("extract", store, f"heat@{epoch}:x")
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stdout

    def kill(self, *words):
        p = subprocess.Popen([command.BIN, *map(str, words)], cwd=self.folder, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(self.random.random() ** 2 * 0.05)
        p.kill()
        p.wait()

    def look(self, store):
        if self.epochs(store):
            self.varve("verify", "-q", store)

    def turn(self, copy):
        """One command, killed; what must be there afterwards is there."""
        there = self.epochs(self.store)
        before = {e: self.content(self.store, e) for e in self.random.sample(there, 2)}
        one = self.random.choice(there)
        words = self.random.choice([("cp", self.store, copy, "heat"), ("label", self.store, f"heat@{one}", "here"), ("drop", self.store, f"heat@{one}"),
                                    ("gc", self.store), ("gc", copy)])
        self.kill(*words)
        left = self.epochs(self.store)
        self.assertLessEqual(set(there) - set(left), {one} if words[0] == "drop" else set(), words)
        for e in before.keys() & set(left):
            self.assertTrue(self.content(self.store, e) == before[e], (words, e))
        self.look(self.store)
        self.look(copy)

    def test_any_moment(self):
        seed = random.randrange(1 << 32)
        print("seed", seed, flush=True)
        self.random = random.Random(seed)
        copy = self.folder / "copy"
        self.file("x", command.noise(N, seed))
        self.history(6)
        for i in range(KILLS):
            if len(self.epochs(self.store)) < 4 or i % 10 == 9:
                self.history(3)
            self.turn(copy)
            if i % 20 == 19:
                self.varve("cp", self.store, copy, "heat")
                for e in self.epochs(self.store):
                    self.assertTrue(self.content(copy, e) == self.content(self.store, e), e)


if __name__ == "__main__":
    unittest.main()
