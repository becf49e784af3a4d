#!/usr/bin/env python3
"""varve verify: whole stores are fine, every kind of damage is found and named, and what is not there is an error."""
import time
import unittest

import command


class Verify(command.Case):
    def setUp(self):
        super().setUp()
        self.file("blob", command.noise(100000))
        self.write("region", "blob", "bytes", 100000, "load", "blob", "blob", "checkpoint", "poke", "blob", 9, "01",
                   "checkpoint", "poke", "blob", 70000, "02", "checkpoint")

    def test_fine(self):
        self.write("region", "y", "f32", "7x9", "checkpoint", lineage="other")
        self.assertIn("4 epochs, 4 layers", self.varve("verify", self.store))
        self.assertIn("no problem", self.varve("verify", self.store, "heat@2"))
        found = self.json("verify", self.store)
        self.assertEqual((found["problems"], found["n_problems"], found["epochs"], found["layers"]), ([], 0, 4, 4))
        self.assertEqual(found["orphans"], 0)
        self.assertGreater(found["bytes"], 100000)
        self.assertEqual(self.json("verify", self.store, "other")["epochs"], 1)
        self.assertEqual(self.varve("verify", self.store, "-q"), "")

    def test_empty(self):
        """A lineage without epochs: there is nothing that could be right."""
        self.write("region", "y", "f32", "7x9", lineage="other")
        self.assertTrue((self.store / "other").is_dir())
        self.assertIn("lineage 'other' of store", self.fails("verify", self.store, "other"))
        self.assertIn("other: no epoch yet\n", self.varve("verify", self.store))
        self.assertEqual(self.json("verify", self.store, "other", status=2)["code"], -4)

    def test_every_section(self):
        path = self.layer(3)
        whole = path.read_bytes()
        places = {name: off for name, (off, length) in command.sections(whole).items() if length}
        self.assertEqual(len(places), 8)
        for name, at in places.items():
            with self.subTest(section=name):
                self.flip(path, at)
                out = self.varve("verify", self.store, status=1)
                self.assertIn("0000000003.r0.layer", out)
                self.assertIn(name, out)
                self.assertIn("problem", out.splitlines()[-1])
                path.write_bytes(whole)
        self.varve("verify", self.store)

    def test_every_part(self):
        path = self.layer(1)
        whole = path.read_bytes()
        for at, words in (3, "header"), (5000, "block"), (len(whole) - 1, "trailer"), (len(whole) - 60, "directory"):
            with self.subTest(part=words):
                self.flip(path, at)
                found = self.json("verify", self.store, status=1)
                self.assertEqual(len(found["problems"]), found["n_problems"])
                self.assertGreaterEqual(found["n_problems"], 1)
                self.assertTrue(any(words in p and "0000000001.r0.layer" in p for p in found["problems"]), found)
                path.write_bytes(whole)

    def test_affected(self):
        """The epochs that need damaged bytes are named, and no others."""
        self.assertEqual(self.json("verify", self.store)["affected"], [])
        first, second = self.layer(1).read_bytes(), self.layer(2).read_bytes()
        self.flip(self.layer(1), 5000)  # a page that no later epoch has changed
        self.assertEqual(self.json("verify", self.store, status=1)["affected"], [{"lineage": "heat", "epochs": [1, 2, 3]}])
        self.assertIn("heat: affected: epochs 1..3; none of the checked epochs is intact\n", self.varve("verify", self.store, status=1))
        self.layer(1).write_bytes(first)
        self.write("region", "blob", "bytes", 100000, "load", "blob", "blob", "checkpoint", "poke", "blob", 9, "05", "checkpoint",
                   "poke", "blob", 9, "06", "checkpoint", lineage="pages")
        layer = self.store / "pages" / "00000000" / "0000000002.r0.layer"
        self.flip(layer, 30)
        out = self.varve("verify", self.store, status=1)
        self.assertIn("pages: affected: epoch 2; the newest intact epoch is 3\n", out)
        self.assertEqual(self.json("verify", self.store, "pages@3")["affected"], [])
        self.assertNotIn("heat: affected", out)
        self.assertEqual(self.layer(2).read_bytes(), second)

    def test_no_epoch_is_affected(self):
        record = self.store / "heat" / "lineage"
        self.flip(record, 30)
        self.assertIn("heat: affected: no epoch\n", self.varve("verify", self.store, status=1))

    def test_result_is_kept(self):
        kept = self.store / "heat" / "verified"
        self.varve("verify", self.store, "heat@2")
        self.assertFalse(kept.exists())  # not the whole lineage
        before = time.time_ns()
        self.varve("verify", self.store)
        at, problems, epochs, newest = map(int, kept.read_text().split())
        self.assertTrue(before <= at <= time.time_ns())
        self.assertEqual((problems, epochs, newest), (0, 3, 3))
        self.flip(self.layer(1), 5000)
        self.varve("verify", self.store, status=1)
        self.assertEqual(kept.read_text().split()[1], "1")
        kept.unlink()
        kept.mkdir()  # a result that cannot be kept changes nothing
        self.assertIn("1 problem", self.varve("verify", self.store, status=1))

    def test_missing_and_cut(self):
        path = self.layer(1)
        whole = path.read_bytes()
        path.write_bytes(whole[:-1])
        self.varve("verify", self.store, status=1)
        path.write_bytes(b"")
        self.varve("verify", self.store, status=1)
        path.unlink()
        self.assertIn("missing", self.varve("verify", self.store, status=1))
        self.varve("verify", self.store, "heat@1", status=1)

    def test_records(self):
        whole = self.commit(2).read_bytes()
        self.flip(self.commit(2), 50)
        self.assertIn("0000000002.commit", self.varve("verify", self.store, status=1))
        self.assertIn("0000000002.commit", self.varve("verify", self.store, "heat@2", status=1))
        self.varve("verify", self.store, "heat@1")
        self.commit(2).write_bytes(whole)
        record = self.store / "heat" / "lineage"
        whole = record.read_bytes()
        self.flip(record, 30)
        self.assertIn("heat/lineage", self.varve("verify", self.store, status=1))
        record.write_bytes(whole)
        self.varve("verify", self.store)

    def test_told_once(self):
        """A damaged head is met by its epoch, by its children and by whoever reads the file; it is one damage."""
        path = self.layer(1)
        self.flip(path, command.sections(path.read_bytes())["REGIONS"][0])
        found = self.json("verify", self.store, status=1)
        self.assertEqual((len(found["problems"]), found["n_problems"]), (1, 1), found)
        self.assertIn(" 1 problem\n", self.varve("verify", self.store, status=1))

    def test_index_cache(self):
        self.write("region", "n", "u64", 1000, "tick", "n", 70, lineage="long")
        path = self.store / "long" / "index.r0"
        whole = path.read_bytes()
        self.varve("verify", self.store)
        for at in 0, 30, len(whole) // 2, len(whole) - 1:
            with self.subTest(at=at):
                self.flip(path, at)
                found = self.json("verify", self.store, "long", status=1)
                self.assertEqual(found["n_problems"], 1)
                self.assertIn("long/index.r0", found["problems"][0])
                self.assertIn("index cache", found["problems"][0])
                self.varve("verify", self.store, "long@70")
                path.write_bytes(whole)
        path.unlink()
        self.varve("verify", self.store)

    def test_quiet_names_problems(self):
        self.flip(self.layer(1), 5000)
        self.assertEqual(len(self.varve("verify", self.store, "-q", status=1).splitlines()), 1)

    def test_not_there(self):
        self.assertIn("no epoch 9", self.fails("verify", self.store, "heat@9"))
        self.assertIn("'cold'", self.fails("verify", self.store, "cold"))
        self.fails("verify", self.folder / "nowhere")


if __name__ == "__main__":
    unittest.main()
