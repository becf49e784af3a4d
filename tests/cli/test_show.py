#!/usr/bin/env python3
"""varve show: what an epoch holds and where it comes from."""
import os
import re
import unittest

import command

STATS = ["bytes_unchanged", "bytes_zero", "bytes_dup_time", "bytes_dup_space", "bytes_dup_ranks", "bytes_new"]


class Show(command.Case):
    def setUp(self):
        super().setUp()
        page = command.noise(4096, 7)
        self.file("blob", command.noise(8 * 4096) + page + page + bytes(4096))
        self.write("region", "T", "f64", "16x32", "region", "blob", "bytes", 11 * 4096, "load", "blob", "blob",
                   "checkpoint", "poke", "blob", 4096 * 3 + 1, "aabb", "checkpoint", options="codec=none")

    def test_json(self):
        e = self.json("show", self.store, "heat@1")
        self.assertEqual((e["lineage"], e["epoch"], e["parent"], e["ranks"]), ("heat", 1, 0, 1))
        r, = e["per_rank"]
        self.assertEqual(r["rank"], 0)
        self.assertEqual(r["bytes_memory"], 16 * 32 * 8 + 11 * 4096)
        self.assertEqual([r[k] for k in STATS], [0, 4096 + 4096, 0, 4096, 0, 9 * 4096])
        self.assertEqual(r["bytes_stored"], 9 * 4096)
        self.assertEqual(r["bytes_layer"], self.layer(1).stat().st_size)
        self.assertEqual(r["bytes_layer_now"], r["bytes_layer"])
        self.assertAlmostEqual(r["ratio"], r["bytes_memory"] / r["bytes_layer"])
        self.assertGreater(r["seconds_blocked"], 0)
        self.assertEqual((r["depth"], r["heads_read"], r["layers_read"]), (0, 1, 1))
        t, blob = r["regions"]
        self.assertEqual((t["name"], t["type"], t["shape"], t["bytes"]), ("T", "f64", [16, 32], 4096))
        self.assertEqual((blob["name"], blob["type"], blob["shape"], blob["bytes"]), ("blob", "bytes", [], 11 * 4096))
        self.assertNotIn("run_list", t)
        self.assertNotIn("block_list", r)

    def test_newest(self):
        r, = self.json("show", self.store, "heat")["per_rank"]
        self.assertEqual([r[k] for k in STATS], [11 * 4096, 0, 0, 0, 0, 4096])
        self.assertEqual(r["layers_read"], 2)

    def test_runs_and_blocks(self):
        r, = self.json("show", self.store, "heat@2", "--runs", "--blocks")["per_rank"]
        t, blob = r["regions"]
        self.assertEqual(t["run_list"], [{"at": 0, "length": 4096, "source": "zero"}])
        self.assertEqual(len(blob["run_list"]), blob["runs"])
        end = 0
        for run in blob["run_list"]:
            self.assertEqual(run["at"], end)
            end += run["length"]
        self.assertEqual(end, blob["bytes"])
        self.assertEqual([x["epoch"] for x in blob["run_list"] if x["source"] == "layer" and x["at"] == 3 * 4096], [2])
        b, = r["block_list"]
        self.assertEqual((b["offset"], b["codec"], b["bytes"], b["bytes_stored"]), (16, "none", 4096, 4096))
        text = self.varve("show", self.store, "heat@2", "--runs", "--blocks")
        self.assertIn("runs of 'blob'", text)
        self.assertIn("epoch 1", text)
        self.assertIn("OFFSET", text)

    def test_text(self):
        text = self.varve("show", self.store, "heat@1")
        for words in ["epoch 1 of lineage 'heat'", "dup in time", "dup in space", "unchanged", "blocked", "depth 0",
                      "[16,32]", "rank 0"]:
            self.assertIn(words, text)

    def test_stats(self):
        r, = self.json("show", self.store, "heat")["per_rank"]
        s = r["stats"]
        self.assertEqual((s["bytes.memory"], s["bytes.new"]), (r["bytes_memory"], r["bytes_new"]))
        self.assertAlmostEqual(s["ns.blocked"] / 1e9, r["seconds_blocked"])
        for kind in "wait", "cow", "avoided", "after":
            self.assertGreaterEqual(s.get("bytes." + kind, 0), s.get("n." + kind, 0))
        self.assertLessEqual(s.get("ns.waits", 0), s.get("ns.faults", 0))
        text = self.varve("show", self.store, "heat")
        for words, stat in [("dirty", "dirty"), ("copied", "copied"), ("writes waited", "wait"), ("writes copied", "cow"),
                            ("avoided", "avoided"), ("written after", "after")]:
            line = re.search(rf"(?m)^  {words} +[0-9]+(\.[0-9]+)? [KMGT]?i?B .*%(  [0-9]+ pages?)?$", text)
            self.assertEqual(bool(line), "bytes." + stat in s, words)  # what is 0 is left out
            self.assertTrue(not line or bool(line[2]) == ("n." + stat in s), words)
        for words, stat in [("in faults", "ns.faults"), ("in waits", "ns.waits"), ("flush", "ns.flush")]:
            self.assertEqual(bool(re.search(rf"(?m)^  {words} +[0-9.]+ (us|ms|s)$", text)), stat in s, words)
        self.assertIn("ns.flush", s)
        self.assertIn("bytes.dirty", s)
        self.assertNotRegex(text, r"(?m)^  (n|ns|bytes)\.")

    def test_tiny_regions(self):
        """What is looked at and copied is counted in bytes of regions, not in pages: no share is more than all."""
        self.write("region", "step", "u8", 3, "poke", "step", 0, "01", "region", "t", "u8", 20, "checkpoint",
                   "poke", "step", 0, "02", "checkpoint", lineage="tiny")
        for epoch in 1, 2:
            r, = self.json("show", self.store, f"tiny@{epoch}")["per_rank"]
            for name in "bytes.dirty", "bytes.copied":
                self.assertLessEqual(r["stats"].get(name, 0), 23, name)
            self.assertGreaterEqual(r["stats"].get("bytes.dirty", 0), 3)
            text = self.varve("show", self.store, f"tiny@{epoch}")
            shares = [float(s) for s in re.findall(r"([0-9.]+) %", text.split("  stored ")[0] + text.split("layer file")[1])]
            self.assertGreater(len(shares), 6)
            self.assertLessEqual(max(shares), 100)

    def test_wrong(self):
        self.assertIn("no epoch 7", self.fails("show", self.store, "heat@7"))
        self.assertIn("no rank 1", self.fails("show", self.store, "heat", "--rank", 1))
        self.assertEqual(len(self.json("show", self.store, "heat", "--rank", 0)["per_rank"]), 1)
        for bad in "heat@", "heat@x", "heat@0", "heat@1..2", "heat@1:T", "@1", "", "heat@99999999999":
            self.fails("show", self.store, bad)

    def test_damaged(self):
        at, _ = command.sections(self.layer(2).read_bytes())["RUNS"]
        self.flip(self.layer(2), at)
        self.assertIn("RUNS", self.fails("show", self.store, "heat", status=1))
        self.assertEqual(self.json("show", self.store, "heat", status=1)["code"], -5)

    def test_strange_names(self):
        """A name cannot steer the terminal, and JSON stays JSON."""
        names = ["a\x1b[2Jb", 'q"\\/', "new\nline", "höhe 温度", "x" * 1023, "a@1:b"]
        words = [w for n in names for w in ("region", n, "u8", "4")]
        self.write(*words, "checkpoint", lineage="odd")
        r, = self.json("show", self.store, "odd")["per_rank"]
        self.assertEqual([x["name"] for x in r["regions"]], names)
        text = self.varve("show", self.store, "odd")
        self.assertNotIn("\x1b", text)
        self.assertIn("a\\x1b[2Jb", text)
        self.assertIn("höhe 温度", text)
        self.write("region", os.fsdecode(b"a\xff\xc0\x80"), "u8", 4, "checkpoint", lineage="broken")
        r, = self.json("show", self.store, "broken")["per_rank"]
        self.assertEqual(r["regions"][0]["name"], "a\ufffd\ufffd\ufffd")
        self.assertIn("a\\xff\\xc0\\x80", self.varve("show", self.store, "broken"))


if __name__ == "__main__":
    unittest.main()
