#!/usr/bin/env python3
"""varve drop and gc: what is named goes, what is left stays whole and becomes smaller."""
import subprocess
import unittest

import command

N = 50000


class Drop(command.Case):
    def setUp(self):
        """Epochs 1 to 8; each changes some bytes of the one before."""
        super().setUp()
        data = bytearray(command.noise(N))
        self.file("start", data)
        self.content = {1: bytes(data)}
        words = ["region", "x", "bytes", N, "load", "x", "start", "checkpoint"]
        for e in range(2, 9):
            for at in (e * 4096, e * 4096 + 100):
                data[at:at + 2] = bytes([e, 0xFF])
                words += ["poke", "x", at, f"{e:02x}ff"]
            words.append("checkpoint")
            self.content[e] = bytes(data)
        self.write(*words)

    def epochs(self):
        return [e["epoch"] for e in self.json("ls", self.store, "heat")["epochs"]]

    def check(self, *want):
        """These are there, whole, with the content they had."""
        self.assertEqual(self.epochs(), list(want))
        self.varve("verify", self.store)
        for e in want:
            p = self.run_raw("extract", self.store, f"heat@{e}:x")
            self.assertEqual((p.returncode, p.stdout), (0, self.content[e]))

    def bytes(self):
        return sum(p.stat().st_size for p in self.store.rglob("*.layer"))

    def test_named(self):
        self.assertIn("dropped epoch 3\n", self.varve("drop", self.store, "heat@3"))
        self.check(1, 2, 4, 5, 6, 7, 8)
        found = self.json("drop", self.store, "heat@5..6", "1", "8..20")
        self.assertEqual(found["dropped"], [1, 5, 6, 8])
        self.check(2, 4, 7)

    def test_numbers_alone(self):
        self.assertEqual(self.json("drop", self.store, "heat", "5..6", "1")["dropped"], [1, 5, 6])
        self.check(2, 3, 4, 7, 8)

    def test_all(self):
        """All epochs go only with --yes, as a whole lineage does."""
        for words in ["heat@1..8"], ["heat", "1..4", "5..9"]:
            self.assertIn("--yes", self.fails("drop", self.store, *words))
        self.check(*range(1, 9))
        self.assertEqual(len(self.json("drop", self.store, "heat@1..8", "--dry-run")["dropped"]), 8)
        self.varve("drop", self.store, "heat@1..7")
        self.assertIn("--yes", self.fails("drop", self.store, "heat@8"))
        self.varve("drop", self.store, "heat@8", "--yes")
        self.assertEqual(self.epochs(), [])

    def test_keep_counts_what_is_whole(self):
        """A damaged record is not one of the newest, and a stray one with a huge number is not the newest."""
        self.flip(self.commit(8), 50)
        stray = self.commit(9999999999)
        stray.parent.mkdir()
        stray.write_bytes(b"stray")
        self.assertEqual(self.json("drop", self.store, "heat", "--keep", "2")["dropped"], [1, 2, 3, 4, 5])
        self.assertEqual(self.json("drop", self.store, "heat", "--keep", "7")["dropped"], [])
        stray.unlink()
        self.flip(self.commit(8), 50)
        self.check(6, 7, 8)

    def test_gc(self):
        before = self.bytes()
        self.varve("drop", self.store, "heat@1..7")
        self.assertEqual(self.json("verify", self.store)["n_problems"], 0)
        plan = self.json("gc", self.store, "--dry-run")
        self.assertEqual(self.bytes(), before)
        done, = self.json("gc", self.store)["lineages"]
        self.assertEqual((done["lineage"], done["bytes_before"], done["bytes_after"]), ("heat", before, self.bytes()))
        self.assertEqual(plan["lineages"][0]["bytes_before"], before)
        self.assertTrue(plan["dry_run"])
        self.assertLess(self.bytes(), before)
        self.check(8)
        self.assertLess(self.bytes(), 1.2 * N)
        self.assertEqual(self.varve("gc", self.store, "-q"), "")
        again, = self.json("gc", self.store, "heat")["lineages"]
        self.assertEqual((again["removed"], again["bytes_after"]), (0, self.bytes()))
        # and a writer goes on from there
        self.write("region", "x", "bytes", N, "restart", 0, "poke", "x", 0, "00", "checkpoint")
        self.varve("verify", self.store)

    def test_gc_text(self):
        self.varve("drop", self.store, "heat@1..8", "--yes")
        self.assertIn("7 removed", self.varve("gc", self.store, "heat"))
        self.assertLess(self.bytes(), 1024)  # the newest stays, emptied: its number must not come again
        self.assertIn("no epoch", self.varve("ls", self.store, "heat"))

    def test_gc_and_verify_agree(self):
        """The layer that stays for its number is not told of as garbage; what gc would still take away is."""
        self.varve("drop", self.store, "heat@6..8")
        self.assertEqual(self.json("verify", self.store)["orphans"], 3)
        self.varve("gc", self.store)
        self.assertEqual(self.json("verify", self.store)["orphans"], 0)
        self.assertNotIn("no epoch needs", self.varve("verify", self.store))
        left = sorted(p.name for p in self.store.rglob("*.layer"))
        self.varve("gc", self.store)
        self.assertEqual(sorted(p.name for p in self.store.rglob("*.layer")), left)
        self.check(1, 2, 3, 4, 5)
        # the next epoch has a number of its own, and then the empty layer is garbage, to both
        self.assertEqual(self.write("region", "x", "bytes", N, "restart", 0, "poke", "x", 0, "00", "checkpoint"), [9])
        self.assertEqual(self.json("verify", self.store)["orphans"], 1)
        self.assertIn("1 removed", self.varve("gc", self.store, "heat"))
        self.assertEqual(self.json("verify", self.store)["orphans"], 0)

    def test_keep(self):
        self.assertEqual(self.json("drop", self.store, "heat", "--keep", 2, "--keep-every", 3, "--dry-run")["dropped"],
                         [1, 2, 4, 5])
        self.check(*range(1, 9))
        self.varve("drop", self.store, "heat", "--keep=2", "--keep-every=3")
        self.varve("gc", self.store)
        self.check(3, 6, 7, 8)
        self.assertEqual(self.json("drop", self.store, "heat", "--keep", 100)["dropped"], [])
        self.varve("drop", self.store, "heat", "--keep", 1, "-q")
        self.check(8)

    def test_unknown(self):
        """Nothing goes if one of them is not there."""
        self.assertIn("no epoch 9", self.fails("drop", self.store, "heat@2", "9"))
        self.assertIn("no epoch from 20 to 30", self.fails("drop", self.store, "heat@1..2", "20..30"))
        self.check(*range(1, 9))

    def test_usage(self):
        for words in ["heat@3..2"], ["heat", "3..2"], ["heat@latest..2"]:
            self.assertIn("..2 of lineage 'heat': the first is after the last", self.fails("drop", self.store, *words))
        for words in (["heat"], ["heat@2", "x"], ["heat@3..2"], ["heat@0"], ["heat", "x"], ["heat@1", "--keep", 2],
                      ["heat", "--keep", 0], ["heat", "--keep", "x"], ["heat", "--keep-every", 2], ["heat", "--lineage"],
                      ["heat@1", "--lineage", "--yes"], ["cold@1"]):
            self.fails("drop", self.store, *words)
        self.assertEqual(self.epochs(), list(range(1, 9)))

    def test_lineage(self):
        self.write("region", "y", "u8", 4, "checkpoint", lineage="other")
        self.assertIn("--yes", self.fails("drop", self.store, "heat", "--lineage"))
        self.assertIn("8 epochs", self.varve("drop", self.store, "heat", "--lineage", "--dry-run"))
        self.check(*range(1, 9))
        (self.store / "heat" / "ended").write_text("8\n")
        self.assertIn("8 epochs", self.varve("drop", self.store, "heat", "--lineage", "--yes"))
        self.assertFalse((self.store / "heat").exists())
        self.assertEqual([x["lineage"] for x in self.json("ls", self.store)["lineages"]], ["other"])
        self.varve("verify", self.store)
        self.write("region", "x", "u8", 4, "checkpoint")
        self.assertEqual(self.epochs(), [1])

    def test_damaged_record(self):
        """A lost epoch can be dropped, and then gc runs again."""
        self.flip(self.commit(8), 60)
        self.assertEqual(self.run_raw("gc", self.store).returncode, 1)
        self.fails("gc", self.store, "heat", status=1)
        self.varve("drop", self.store, "heat@8")
        self.varve("gc", self.store)
        self.check(*range(1, 8))

    def test_busy(self):
        """Nobody takes anything from under a writer."""
        p = subprocess.Popen([command.WRITER, self.store, "heat", "", "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             env=self.env)
        self.assertEqual(p.stdout.readline(), b"held\n")
        self.write("region", "y", "u8", 4, "checkpoint", lineage="other")
        for words in ["drop", "heat@1"], ["drop", "heat", "--lineage", "--yes"], ["gc", "heat"]:
            self.assertIn("being written", self.fails(words[0], self.store, *words[1:]))
        self.assertEqual(self.json("drop", self.store, "heat@1", status=2)["code"], -6)
        found = self.json("gc", self.store, status=2)["lineages"]
        self.assertEqual([x.get("code", 0) for x in found], [-6, 0])
        self.assertEqual(self.json("drop", self.store, "heat@1", "--dry-run")["dropped"], [1])
        p.communicate()
        self.check(*range(1, 9))


if __name__ == "__main__":
    unittest.main()
