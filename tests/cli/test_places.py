#!/usr/bin/env python3
"""verify and gc on stores of which each holds some ranks' layers only."""
import os
import pathlib
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
