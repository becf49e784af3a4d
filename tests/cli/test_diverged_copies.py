#!/usr/bin/env python3
"""Two copies of a store that both went on, and an rsync from one into the other: nothing that the two do not have in common is taken for what it is not, gc takes nothing away, and what was mixed
can be taken apart again. The reader in Python says the same."""
import pathlib
import shutil
import subprocess
import sys
import unittest

import command

READER = pathlib.Path(__file__).resolve().parents[2] / "tools" / "layer_read.py"
COPY = "another copy of the lineage"


class DivergedCopies(command.Case):
    def setUp(self):
        super().setUp()
        self.file("blob", command.noise(100000))
        self.write("region", "blob", "bytes", 100000, "load", "blob", "blob", "checkpoint", "poke", "blob", 9, "01", "checkpoint")
        self.twin = self.folder / "twin"
        shutil.copytree(self.store, self.twin)
        for store, pokes in (self.store, "a1 a2 a3"), (self.twin, "b1 b2 b3"):
            words = []
            for n, byte in enumerate(pokes.split()):
                words += ["poke", "blob", 30000 * n + 5000, byte * 3000, "checkpoint"]
            self.write("region", "blob", "bytes", 100000, "restart", 2, *words, store=store)

    def mix(self, *names):
        """Files of the twin's come into the store."""
        for name in names:
            shutil.copy(self.twin / "heat" / "00000000" / name, self.store / "heat" / "00000000" / name)

    def read(self, epoch, store=None, status=0):
        done = self.run_raw("extract", store or self.store, f"heat@{epoch}", "blob", "-o", f"out{epoch}")
        self.assertEqual(done.returncode, status, done.stderr)
        return (self.folder / f"out{epoch}").read_bytes() if status == 0 else done.stderr.decode()

    def python(self, *words):
        done = subprocess.run([sys.executable, READER, *map(str, words)], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_whole_copies(self):
        for store in self.store, self.twin:
            self.varve("verify", store)
            self.assertEqual(self.python("check", store)[0], 0)
        self.assertNotEqual(self.read(5), self.read(5, self.twin))

    def test_one_layer(self):
        whole = self.layer(4).read_bytes()
        self.commit(4).unlink()  # as if it had been dropped: nothing but the layers tells
        self.mix("0000000004.r0.layer")
        self.assertIn(COPY, self.read(5, status=1))
        self.assertIn(COPY, self.varve("verify", self.store, status=1))
        self.assertNotEqual(self.python("check", self.store)[0], 0)
        before = sorted(path.name for path in self.store.rglob("*"))
        self.assertNotEqual(self.run_raw("gc", self.store).returncode, 0)
        self.assertEqual(sorted(path.name for path in self.store.rglob("*")), before)
        for epoch in 1, 2, 3:
            self.read(epoch)
        self.layer(4).write_bytes(whole)
        self.varve("verify", self.store)

    def test_an_older_copy_over_it(self):
        """What the store lacked comes from the twin, and what it had stays: rsync --ignore-existing."""
        want = self.read(4)
        self.commit(5).unlink()
        self.layer(5).unlink()
        self.mix("0000000005.r0.layer", "0000000005.commit")
        self.assertIn(COPY, self.read(5, status=1))
        self.assertEqual(self.read(4), want)
        found = self.json("verify", self.store, status=1)
        self.assertTrue(any(COPY in problem and "0000000005" in problem for problem in found["problems"]), found)
        self.write("region", "blob", "bytes", 100000, "restart", 0, "poke", "blob", 1, "cc", "checkpoint")  # the newest that is whole
        self.assertEqual(self.read(6), want[:1] + b"\xcc" + want[2:])
        self.varve("drop", self.store, "heat@5")
        self.varve("gc", self.store)
        self.varve("verify", self.store)
        self.assertEqual(self.read(6), want[:1] + b"\xcc" + want[2:])

    def test_gc_keeps_it(self):
        """A layer that gc has rewritten still says whose it is."""
        for epoch in 1, 3:
            self.varve("drop", self.store, f"heat@{epoch}")
        self.varve("gc", self.store)
        self.varve("verify", self.store)
        self.commit(4).unlink()
        self.mix("0000000004.r0.layer")
        self.assertIn(COPY, self.read(5, status=1))


if __name__ == "__main__":
    unittest.main()
