#!/usr/bin/env python3
"""Epochs by name: labels, latest, -N; in every verb that takes an epoch, in ranges, and from hostile stores."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

import command

READER = pathlib.Path(os.environ["VARVE_SOURCE"]) / "tools" / "layer_read.py"


class Label(command.Case):
    def setUp(self):
        super().setUp()
        self.write("region", "x", "u8", 4, "label", "one", "checkpoint", "poke", "x", 0, "02", "checkpoint", "poke", "x", 0, "03", "label", "step-400", "checkpoint")

    def labels(self, *words):
        return {e["epoch"]: e["labels"] for e in self.json("ls", self.store, "heat", *words)["epochs"]}

    def object(self, epoch, label):
        return self.store / "heat" / "00000000" / f"{epoch:010}.{label}.label"

    def epoch(self, name):
        return self.json("show", self.store, f"heat@{name}")["epoch"]

    def test_names(self):
        for name, want in (("one", 1), ("step-400", 3), ("latest", 3), ("-1", 3), ("-2", 2), ("-3", 1), ("2", 2)):
            self.assertEqual(self.epoch(name), want, name)
        self.assertIn("has 3 epochs: there is no epoch '-4'", self.fails("show", self.store, "heat@-4"))
        said = self.fails("show", self.store, "heat@step-40")
        self.assertIn("lineage 'heat' has no epoch with the label 'step-40'; did you mean 'step-400'? ('varve ls ", said)
        for bad in ("", "-", "-0", "--1", "-1x", "..", "1..", "..1", "a b", "a/b", "0", "99999999999", "-99999999999", ".a", "latest..", "x" * 65, "a@b", "one..step-400"):
            with self.subTest(bad):
                self.assertIn("is not of the form LINEAGE[@EPOCH]", self.fails("show", self.store, f"heat@{bad}"))

    def test_every_verb(self):
        for name, n in (("one", 1), ("latest", 3), ("-2", 2), ("step-400", 3)):
            with self.subTest(name):
                self.assertEqual(self.run_raw("extract", self.store, f"heat@{name}:x").stdout, bytes([{1: 0, 2: 2, 3: 3}[n], 0, 0, 0]))
                self.assertEqual(self.json("verify", self.store, f"heat@{name}")["epochs"], 1)
                self.assertEqual(self.json("diff", self.store, f"heat@{name}", f"heat@{n}")["equal"], True)
                self.assertEqual(self.json("drop", self.store, f"heat@{name}", "--dry-run")["dropped"], [n])
        self.assertIn("no epoch with the label 'none'", self.fails("verify", self.store, "heat@none"))
        self.assertIn("no epoch with the label 'none'", self.fails("drop", self.store, "heat@1", "none"))
        self.assertEqual(self.labels(), {1: ["one"], 2: [], 3: ["step-400"]})

    def test_ranges(self):
        for text, want in (("one..step-400", [1, 2, 3]), ("-2..latest", [2, 3]), ("one..-2", [1, 2]), ("1..-1", [1, 2, 3]), ("latest..3", [3])):
            with self.subTest(text):
                self.assertEqual(self.json("drop", self.store, f"heat@{text}", "--dry-run")["dropped"], want)
                self.assertEqual(self.json("drop", self.store, "heat@1", text, "--dry-run")["dropped"], sorted({1, *want}))
        self.assertIn("the first is after the last", self.fails("drop", self.store, "heat@latest..one"))
        self.assertIn("is no epoch", self.fails("drop", self.store, "heat@1", "1.."))

    def test_files_of_ranges(self):
        for n in (1, 2, 3):
            self.file(f"f{n}", b"%d" % n)
        self.varve("pack", self.store, "files", "--each", "f1", "f2", "f3")
        out = self.folder / "out"
        self.varve("unpack", self.store, "files@f2..latest", "--each", "-C", out)
        self.assertEqual(sorted(p.name for p in out.iterdir()), ["f2", "f3"])
        self.varve("unpack", self.store, "files@f1", "-C", out)
        self.assertEqual((out / "f1").read_bytes(), b"1")

    def test_set_and_removed(self):
        self.assertEqual(self.varve("label", self.store, "heat@2", "middle"), "epoch 2 of 'heat' has the label middle\n")
        self.varve("label", self.store, "heat@2", "middle")  # again: the same
        self.varve("label", self.store, "heat", "best")      # the newest
        self.varve("label", self.store, "heat@one", "worst")
        self.assertEqual(self.labels(), {1: ["one", "worst"], 2: ["middle"], 3: ["best", "step-400"]})
        rows = self.varve("ls", self.store, "heat").splitlines()
        self.assertTrue(rows[0].endswith("LABELS"))
        self.assertEqual([row.split()[-1] for row in rows[1:]], ["worst", "middle", "step-400"])
        self.assertIn("epoch 1 of lineage 'heat' has the label 'one'; take it away first", self.fails("label", self.store, "heat@2", "one"))
        self.assertEqual(self.json("label", self.store, "heat@1", "one", "--remove"), {"lineage": "heat", "epoch": 1, "removed": "one"})
        self.varve("label", self.store, "heat@2", "one")
        self.assertEqual(self.epoch("one"), 2)
        self.assertIn("has no label 'two'", self.fails("label", self.store, "heat@2", "two", "--remove"))
        self.assertIn("has no epoch 7", self.fails("label", self.store, "heat@7", "two"))
        for bad in ("7", "latest", "-1", "a..b", "a b", ".x", "x" * 65, "\x1b[2J"):
            self.assertIn("label '", self.fails("label", self.store, "heat@2", "--", bad))
        self.assertEqual(self.labels()[2], ["middle", "one"])

    def test_while_written(self):
        """A writer that holds the lineage does not mind."""
        p = subprocess.Popen([command.WRITER, self.store, "heat", "", "region", "x", "u8", "4", "checkpoint", "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.env)
        self.addCleanup(p.wait)
        self.addCleanup(p.stdin.close)
        self.assertEqual([p.stdout.readline(), p.stdout.readline()], [b"4\n", b"held\n"])
        self.varve("label", self.store, "heat@4", "now")
        self.assertEqual(self.epoch("now"), 4)
        p.stdout.close()

    def test_newest_wins(self):
        self.write("region", "x", "u8", 4, "restart", 0, "label", "one", "checkpoint")
        self.assertEqual(self.epoch("one"), 4)
        self.varve("drop", self.store, "heat@4")
        self.assertEqual(self.epoch("one"), 1)
        self.varve("gc", self.store)
        self.assertFalse(self.object(4, "one").exists())
        self.assertTrue(self.object(1, "one").exists())

    def test_few_shown(self):
        """The labels of the newest epochs, also if numbers between them are missing."""
        self.write("region", "x", "u64", 4, "label", "four", "checkpoint", "tick", "x", 30)
        self.varve("drop", self.store, "heat@5..33")
        self.assertEqual(self.labels("-n", 2), {4: ["four"], 34: []})
        self.assertNotIn("LABELS", self.varve("ls", self.store, "heat", "-n", 1))

    def test_shown(self):
        """By show, top and report; a column or a line appears only if there is a label."""
        self.varve("label", self.store, "heat@3", "best")
        self.assertEqual(self.json("show", self.store, "heat@3")["labels"], ["best", "step-400"])
        self.assertEqual(self.json("show", self.store, "heat@2")["labels"], [])
        self.assertIn("\n  labels        best step-400\n", self.varve("show", self.store, "heat@3"))
        self.assertNotIn("labels", self.varve("show", self.store, "heat@2"))
        self.assertEqual([e["labels"] for e in self.json("top", self.store, "heat")["epochs"]], [["one"], [], ["best", "step-400"]])
        rows = self.varve("top", "--once", self.store, "heat").splitlines()[-4:]
        self.assertTrue(rows[0].endswith("LABELS"))
        self.assertTrue(rows[1].endswith("  best step-400") and rows[3].endswith("  one"), rows)
        report = self.json("report", self.store, "heat")["lineages"][0]["epochs"]
        self.assertEqual([e.get("labels") for e in report], [["one"], None, ["best", "step-400"]])
        for epoch, label in ((1, "one"), (3, "best"), (3, "step-400")):
            self.varve("label", self.store, f"heat@{epoch}", label, "--remove")
        self.assertNotIn("LABELS", self.varve("top", "--once", self.store, "heat"))

    def test_many_reported(self):
        for i in range(10):
            self.varve("label", self.store, "heat@2", f"x{i}")
        row = self.json("report", self.store, "heat")["lineages"][0]["epochs"][1]
        self.assertEqual((row["labels"], row["labels_total"]), ([f"x{i}" for i in range(8)], 10))

    def test_hostile(self):
        """A name that cannot be a label is ignored; the label of an epoch that does not exist means nothing."""
        here = self.store / "heat" / "00000000"
        for name in ("0000000002.7.label", "0000000002.latest.label", "0000000002.a\nb.label", "0000000002.\x1b[2J.label", "0000000002..label", "0000000002.-1.label",
                     "0000000002." + "y" * 65 + ".label", "0000000009.ghost.label", "2.short.label", "0000000102.elsewhere.label"):
            (here / name).write_bytes(b"")
        (here / "0000000002.folder.label").mkdir()
        self.assertEqual(self.labels(), {1: ["one"], 2: [], 3: ["step-400"]})
        self.assertIn("no epoch with the label 'ghost'", self.fails("show", self.store, "heat@ghost"))
        self.varve("verify", self.store)
        self.assertEqual(self.write("region", "x", "u8", 4, "checkpoint"), [10])  # no number that a label has is used again
        self.assertEqual(self.labels(), {1: ["one"], 2: [], 3: ["step-400"], 10: []})

    def test_second_reader(self):
        p = subprocess.run([sys.executable, READER, "show", self.store, "heat@3", "--json"], capture_output=True, text=True, check=True)
        self.assertEqual(json.loads(p.stdout)["labels"], ["step-400"])
        subprocess.run([sys.executable, READER, "check", self.store], check=True)

    def test_pack(self):
        self.file("a file.h5", b"1")
        self.file(".hidden..x", b"2")
        self.file("400", b"3")
        (self.folder / "d" / "step_7").mkdir(parents=True)
        (self.folder / "d" / "step_7" / "f").write_bytes(b"4")
        self.varve("pack", self.store, "files", "--each", "a file.h5", ".hidden..x", "400", "d/step_7")
        found = [e["labels"] for e in self.json("ls", self.store, "files")["epochs"]]
        self.assertEqual(found, [["a_file.h5"], ["_hidden._x"], [], ["step_7"]])
        self.varve("pack", self.store, "files", "400", "--label", "all-of-it")
        self.assertEqual(self.json("show", self.store, "files@all-of-it")["epoch"], 5)
        self.assertIn("--label is of one epoch", self.fails("pack", self.store, "files", "400", "--each", "--label", "x"))
        self.assertIn("label '7'", self.fails("pack", self.store, "files", "400", "--label", "7"))


if __name__ == "__main__":
    unittest.main()
