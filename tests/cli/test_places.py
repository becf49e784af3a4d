#!/usr/bin/env python3
"""verify and gc on stores of which each holds some ranks' layers only."""
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import command

MAKER = pathlib.Path(os.environ["VARVE_BUILD"]) / "tests" / "places_check"


class Places(command.Case):
    def make(self, options):
        self.jobs = self.folder / "job"
        self.jobs.mkdir()
        subprocess.run([MAKER, self.jobs, "4", "3", options], check=True, env=self.env)
        return [self.jobs / ("p%d" % r) for r in range(4)]

    def layer_of(self, store, epoch, rank):
        return store / "job" / "00000000" / ("%010d.r%d.layer" % (epoch, rank))

    def test_verify(self):
        stores = self.make("mode=sync copies=2")
        for rank, store in enumerate(stores):
            out = self.varve("verify", store)
            self.assertIn("no problem", out)
            self.assertIn("one of several stores", out)
            others = {0: "1-3", 1: "0, 2-3", 2: "0-1, 3", 3: "0-2"}[rank]
            self.assertIn("ranks %s of 4" % others, out)
            self.assertIn("no problem", self.varve("verify", store, "job@2"))
            found = self.json("verify", store)
            self.assertEqual((found["n_problems"], found["epochs"], found["layers"], found["elsewhere"]), (0, 3, 3, 9))
            self.assertEqual(self.varve("verify", store, "-q"), "")
            oracle = [sys.executable, pathlib.Path(os.environ["VARVE_SOURCE"]) / "tools" / "layer_read.py", "check", store]
            self.assertEqual(subprocess.run(oracle, capture_output=True).stdout, b"")

    def merge(self, stores):
        """The stores of some hosts in one folder, as rsync does it."""
        merged = self.folder / "all"
        shutil.rmtree(merged, ignore_errors=True)
        for store in stores:
            shutil.copytree(store, merged, dirs_exist_ok=True)
        return merged

    def test_whole(self):
        stores = self.make("mode=sync")
        self.assertIn("no problem", self.varve("verify", "--whole", self.merge(stores)))
        part = self.merge(stores[:2])
        self.assertIn("ranks 2-3 of 4", self.varve("verify", part))
        out = self.varve("verify", "--whole", part, status=1)
        self.assertNotIn("no problem", out)
        for epoch in 1, 2, 3:
            self.assertIn("epoch %d is not whole: the layers of 2 of its 4 ranks are not in this store (2-3)" % epoch, out)
        out = self.varve("verify", "--whole", part, "job@2", status=1)
        self.assertIn("epoch 2 is not whole", out)
        self.assertNotIn("epoch 3 is not whole", out)
        found = self.json("verify", "--whole", part, status=1)
        self.assertEqual((found["n_problems"], found["elsewhere"]), (len(found["problems"]), 6))
        self.assertGreaterEqual(found["n_problems"], 3)
        self.varve("verify", "-q", "--whole", part, status=1)
        self.varve("verify", "--whole", stores[1], status=1)

    def test_whole_counts_what_is_referred_to(self):
        """Of an epoch that was dropped nobody knows whether a layer was in another store; but it is needed."""
        stores = self.make("mode=sync")
        for store in stores:
            (store / "job" / "00000000" / "0000000001.commit").unlink()
        merged = self.merge(stores)
        self.varve("verify", "--whole", merged)
        for rank in range(4):
            self.layer_of(merged, 1, rank).unlink()
        self.varve("verify", "--whole", merged)  # every page of epoch 1 was replaced: nobody misses them
        self.layer_of(merged, 2, 3).unlink()
        self.assertIn("(3)", self.varve("verify", "--whole", merged, status=1))

    def test_drop(self):
        """What is dropped in one of several stores is not gone, and varve says so; in all of them it is."""
        stores = self.make("mode=sync")
        self.assertIn("one of several stores", self.varve("drop", "--dry-run", stores[2], "job@2"))
        self.assertIn("one of several stores", self.varve("drop", stores[2], "job@2"))
        self.assertTrue(self.json("drop", stores[1], "job@2")["elsewhere"])
        merged = self.merge(stores)
        self.varve("verify", "--whole", merged)
        self.assertFalse(self.json("drop", "--dry-run", merged, "job@2")["elsewhere"])
        self.assertNotIn("one of several stores", self.varve("drop", merged, "job@2"))

    def test_damage_is_found(self):
        store = self.make("mode=sync copies=2")[2]
        path = self.layer_of(store, 2, 2)
        whole = path.read_bytes()
        found = command.sections(whole)
        self.assertIn("COPIES", found)
        for name, (at, length) in found.items():
            with self.subTest(section=name):
                self.assertGreater(length, 0)
                self.flip(path, at)
                out = self.varve("verify", store, status=1)
                self.assertIn("0000000002.r2.layer", out)
                self.assertIn(name, out)
                path.write_bytes(whole)
        self.flip(path, 5000)
        self.assertIn("block", self.varve("verify", store, status=1))

    def test_gc_refuses(self):
        for store in self.make("mode=sync"):
            before = {p: p.stat().st_size for p in store.rglob("*.*")}
            for dry in [], ["--dry-run"]:
                said = self.fails("gc", store, "job", *dry)
                self.assertIn("one of several stores", said)
                self.assertIn("of the 4 ranks", said)
                self.assertIn("keep", said)
            self.assertEqual(before, {p: p.stat().st_size for p in store.rglob("*.*")})
            self.assertIn("one of several stores", self.json("gc", store, status=2)["lineages"][0]["error"])

    def test_what_nobody_can_tell(self):
        """A layer that is gone from the store of a single rank might as well never have been there."""
        store = self.make("mode=sync")[1]
        self.layer_of(store, 3, 1).unlink()
        out = self.varve("verify", store)
        self.assertIn("ranks 0-3 of 4", out)
        self.assertIn("no problem", out)


if __name__ == "__main__":
    unittest.main()
