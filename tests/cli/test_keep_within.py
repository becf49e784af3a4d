#!/usr/bin/env python3
"""keep-within: epochs of the last days stay, besides those that keep and keep-every keep; by a session, by many ranks, by varve drop."""
import os
import pathlib
import struct
import sys
import time
import unittest

import command

sys.path.insert(0, str(pathlib.Path(os.environ["VARVE_SOURCE"]) / "tools"))
import layer_read

DAY = 86400


class KeepWithin(command.Case):
    def forge(self, epoch, age, store=None):
        """The epoch was taken `age` seconds ago."""
        path = (store or self.store) / "heat" / "00000000" / f"{epoch:010}.commit"
        data = bytearray(path.read_bytes())
        struct.pack_into("<Q", data, 48, int((time.time() - age) * 1e9))
        struct.pack_into("<Q", data, len(data) - 8, layer_read.xxh3_64(bytes(data[:-8])))
        path.write_bytes(data)

    def lay_down(self, *days):
        self.write("region", "x", "u64", 4, "tick", "x", len(days))
        for i, d in enumerate(days):
            self.forge(i + 1, d * DAY)

    def epochs(self, store=None):
        return [e["epoch"] for e in self.json("ls", store or self.store, "heat")["epochs"]]

    def take(self, options, n=1):
        self.write("region", "x", "u64", 4, "restart", 0, "tick", "x", n, options=options)
        return self.epochs()

    def test_session(self):
        self.lay_down(30, 20, 10, 6, 5, 1)
        self.assertEqual(self.take("keep-within=40d"), [1, 2, 3, 4, 5, 6, 7])
        self.assertEqual(self.take("keep-within=15d"), [3, 4, 5, 6, 7, 8])
        self.assertEqual(self.take("keep-within=1w"), [4, 5, 6, 7, 8, 9])
        self.varve("verify", self.store)
        self.assertEqual(self.take("keep-within=1h"), [7, 8, 9, 10])
        self.assertEqual(self.take("keep-within=0"), [7, 8, 9, 10, 11])

    def test_with_keep(self):
        """An epoch stays if either keeps it."""
        self.lay_down(30, 20, 10, 6, 5, 1)
        self.assertEqual(self.take("keep=6 keep-within=7d"), [2, 3, 4, 5, 6, 7])
        self.assertEqual(self.take("keep=2 keep-within=7d"), [4, 5, 6, 7, 8])
        self.assertEqual(self.take("keep=2 keep-every=5 keep-within=12h"), [5, 7, 8, 9])

    def test_newest_stays(self):
        """However short the time."""
        self.lay_down(3, 2)
        self.assertEqual(self.take("keep-within=1ms")[-1], 3)
        self.assertNotIn(1, self.epochs())

    def test_odd_clocks(self):
        """A clock that was wrong once: what might be recent stays; an unreadable record decides nothing."""
        self.lay_down(30, -30, 20, 10, 1)
        self.assertEqual(self.take("keep-within=7d"), [2, 3, 4, 5, 6])  # behind the one of the future all stay: their order is not known
        self.varve("drop", self.store, "heat@2")
        self.assertEqual(self.take("keep-within=7d"), [5, 6, 7])
        self.forge(5, 20 * DAY)
        self.flip(self.commit(5), 40)
        self.forge(6, 10 * DAY)
        self.assertEqual(self.take("keep-within=7d"), [7, 8])

    def test_drop(self):
        self.lay_down(30, 20, 10, 6, 5, 1)

        def would(*words):
            return self.json("drop", self.store, "heat", "--dry-run", *words)["dropped"]
        self.assertEqual(would("--keep-within", "7d"), [1, 2, 3])
        self.assertEqual(would("--keep-within", "1w", "--keep", "5"), [1])
        self.assertEqual(would("--keep-within", "7d", "--keep-every", "2"), [1, 3])
        self.assertEqual(would("--keep-within", "1s"), [1, 2, 3, 4, 5])
        self.forge(6, -1000 * DAY)  # the clock was wrong: ages are relative to the present
        self.assertEqual(would("--keep-within", "7d"), [1, 2, 3])
        self.forge(6, 100 * DAY)    # nobody writes any more: nothing goes by itself
        self.assertEqual(would("--keep-within", "7d"), [])
        self.forge(6, 1 * DAY)
        self.varve("drop", self.store, "heat", "--keep-within=7d")
        self.assertEqual(self.epochs(), [4, 5, 6])
        for bad in ("0", "-1", "7y", "d", "seven", ""):
            self.assertIn("--keep-within", self.fails("drop", self.store, "heat", f"--keep-within={bad}"))
        self.assertIn("exclude each other", self.fails("drop", self.store, "heat@4", "--keep-within", "7d"))
        self.assertIn("keep-within", self.fails("config", "-o", "keep-within=7y"))

    def test_ranks_with_own_stores(self):
        """Rank 0 decides for all."""
        stores = [self.folder / f"s{r}" for r in (0, 1)]
        words = ["ranks", 2, "region", "x", "u64", 4]
        self.write(*words, "tick", "x", 4, store=self.folder / "s%r")
        for store in stores:
            for epoch, days in enumerate((30, 20, 6, 5), 1):
                self.forge(epoch, days * DAY, store)
        self.write(*words, "restart", 0, "tick", "x", 1, store=self.folder / "s%r", options="keep-within=7d")
        for store in stores:
            self.assertEqual(self.epochs(store), [3, 4, 5])

    def test_pack_delete(self):
        """Files whose epochs may be dropped are not deleted."""
        for name in ("a", "b"):
            self.file(name, name.encode())
        self.assertIn("keep-within = 1s may drop epochs", self.fails("pack", self.store, "files", "--each", "a", "b", "--delete", "-o", "keep-within=1s"))
        self.assertTrue((self.folder / "a").exists())


if __name__ == "__main__":
    unittest.main()
