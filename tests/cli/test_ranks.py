#!/usr/bin/env python3
"""Every verb with epochs of several ranks: one that shares a region, and has another for itself."""
import random
import re
import shutil
import subprocess
import unittest

import command

PAGE = 4096
SHARED, OWN = 24, 5     # pages
RANKS = 3


class Ranks(command.Case):
    def setUp(self):
        super().setUp()
        self.file("shared", command.noise(SHARED * PAGE, 99))
        for r in range(RANKS):
            self.file(f"own{r}", self.own(r))
        self.lay_down(self.store)

    def own(self, rank, epoch=1):
        """What rank's own region holds in this epoch: in the second, rank 1 has changed two bytes."""
        data = bytearray(command.noise(OWN * PAGE, 1000 * (rank + 1)))
        if rank == 1 and epoch == 2:
            data[5000:5002] = b"\xaa\xbb"
        return bytes(data)

    def lay_down(self, store, options="codec=none"):
        """Two epochs."""
        self.assertEqual(self.write("ranks", RANKS, "region", "shared", "bytes", SHARED * PAGE, "load", "shared", "shared",
                                    "region", "own", "f64", f"{OWN}x512", "load", "own", "own%r", "checkpoint",
                                    "only", 1, "poke", "own", 5000, "aabb", "checkpoint",
                                    options=options, store=store), [1, 2])

    def dump(self, epoch, store=None):
        """What the ranks get at a restart."""
        self.write("ranks", RANKS, "region", "shared", "bytes", SHARED * PAGE, "region", "own", "f64", f"{OWN}x512",
                   "restart", epoch, "dump", "own", "out%r", "dump", "shared", "out.shared%r", store=store or self.store)
        shared = [(self.folder / f"out.shared{r}").read_bytes() for r in range(RANKS)]
        self.assertEqual(shared, [(self.folder / "shared").read_bytes()] * RANKS)
        return [(self.folder / f"out{r}").read_bytes() for r in range(RANKS)]

    def extracted(self, epoch, region, rank, store=None):
        return self.run_raw("extract", store or self.store, f"heat@{epoch}:{region}", "--rank", rank).stdout

    def test_show_table(self):
        text = self.varve("show", self.store, "heat@1")
        self.assertRegex(text, r"(?m)^  RANK +MEMORY +UNCHANGED +KNOWN +OF OTHERS +NEW +STORED +FOR OTHERS +LAYER +CODEC$")
        self.assertEqual(re.findall(r"(?m)^ +(0|1|2|all)  ", text), ["0", "1", "2", "all"])
        self.assertRegex(text, r"(?m)^ +all +348 KiB +0 B +0 B +192 KiB +156 KiB +156 KiB +96\.0 KiB ")
        self.assertRegex(text, r"(?m)^  balance +rank \d stored most")  # a few KiB are no reason for a factor
        self.assertEqual(re.findall(r"(?m)^ +(?:\d|all)  .* (\S+)$", text), ["none"] * (RANKS + 1))
        self.assertRegex(text, r"(?m)^  alone +up to 348 KiB would be new .*, 2\.23x as much$")
        self.assertNotIn("REGION", text)
        self.assertLess(len(text.splitlines()), 16)

    def test_show_uneven(self):
        """Which rank compressed with what; and a factor only where much lies on one rank."""
        if "zstd" not in self.json("config")["codecs"]:
            self.skipTest("built without zstd")
        n = 33 << 20
        for r, data in enumerate([random.Random(5).randbytes(n), bytes(range(1, 251)) * (n // 250 + 1)]):
            self.file(f"big{r}", data[:n])
        words = ["ranks", 2, "region", "big", "bytes", n, "load", "big", "big%r", "checkpoint"]
        self.write(*words, options="codec=zstd", lineage="uneven")
        text = self.varve("show", self.store, "uneven")
        self.assertRegex(text, r"(?m)^  balance +[12]\.\d\d: rank 0 stored most")
        self.assertEqual(re.findall(r"(?m)^ +(?:\d|all)  .*iB  (\S.*)$", text), ["none", "zstd", "none, zstd"])
        self.assertEqual([r["codecs"] for r in self.json("show", self.store, "uneven")["per_rank"]], ["none", "zstd"])
        self.assertIn("; codec: zstd\n", self.varve("show", self.store, "uneven", "--rank", 1))

    def test_show_one_and_all(self):
        one = self.varve("show", self.store, "heat", "--rank", 1)
        self.assertIn("rank 1: heat/", one)
        self.assertNotIn("rank 0: heat/", one)
        self.assertNotIn("FOR OTHERS", one)
        self.assertIn("[5,512]", one)
        every = self.varve("show", self.store, "heat", "--all")
        for words in ["FOR OTHERS", "rank 0: heat/", "rank 1: heat/", "rank 2: heat/"]:
            self.assertIn(words, every)
        for option in "--runs", "--blocks":
            self.assertIn("--rank R", self.fails("show", self.store, "heat", option))
            self.varve("show", self.store, "heat", option, "--all")
        self.assertRegex(self.varve("show", self.store, "heat@1", "--runs", "--rank", 1), r"epoch 1, rank [02]\b")
        self.assertIn("3 rank(s), there is no rank 3", self.fails("show", self.store, "heat", "--rank", 3))

    def test_show_json(self):
        e = self.json("show", self.store, "heat@1")
        self.assertEqual([r["rank"] for r in e["per_rank"]], [0, 1, 2])
        t = e["totals"]
        for r in e["per_rank"]:
            self.assertEqual(r["bytes_memory"], (SHARED + OWN) * PAGE)
            self.assertEqual(r["bytes_memory"], r["bytes_new"] + r["bytes_dup_ranks"])
            self.assertEqual(r["stats"]["bytes.lent"], r["bytes_new"] - OWN * PAGE)
            self.assertEqual(len(r["regions"]), 2)
        self.assertEqual(t["bytes_new"], (SHARED + RANKS * OWN) * PAGE)
        self.assertEqual(t["bytes_lent"], SHARED * PAGE)
        self.assertEqual(t["bytes_dup_ranks"], (RANKS - 1) * SHARED * PAGE)
        self.assertEqual(t["bytes_alone"], RANKS * (SHARED + OWN) * PAGE)
        self.assertEqual(t["bytes_stored_most"], max(r["bytes_stored"] for r in e["per_rank"]))
        self.assertAlmostEqual(t["balance"], t["bytes_stored_most"] * RANKS / t["bytes_stored"])
        self.assertEqual(t["bytes_layer"], sum(self.layer(1, rank=r).stat().st_size for r in range(RANKS)))
        e = self.json("show", self.store, "heat@2")
        self.assertEqual([r["bytes_new"] for r in e["per_rank"]], [0, PAGE, 0])
        self.assertEqual(e["totals"]["bytes_unchanged"], e["totals"]["bytes_memory"] - PAGE)
        one = self.json("show", self.store, "heat@2", "--rank", 2)
        self.assertEqual([r["rank"] for r in one["per_rank"]], [2])
        self.assertNotIn("totals", one)

    def test_ls(self):
        epochs = self.json("ls", self.store, "heat")["epochs"]
        shown = [self.json("show", self.store, f"heat@{n}")["totals"] for n in (1, 2)]
        for e, t in zip(epochs, shown):
            self.assertEqual(e["ranks"], RANKS)
            self.assertEqual([e[k] for k in ("bytes_memory", "bytes_stored", "bytes_layer")],
                             [t[k] for k in ("bytes_memory", "bytes_stored", "bytes_layer")])
        self.assertRegex(self.varve("ls", self.store), r"(?m)^heat +2 .* 3 +348 KiB +\d+ KiB$")

    def test_extract(self):
        for r in range(RANKS):
            self.assertEqual(self.extracted(1, "own", r), self.own(r))
            self.assertEqual(self.extracted(2, "own", r), self.own(r, 2))
            self.assertEqual(self.extracted(2, "shared", r), (self.folder / "shared").read_bytes())
        message = self.fails("extract", self.store, "heat:own", "-o", "out")
        self.assertIn("3 ranks", message)
        self.assertIn("--rank R, 0 to 2", message)
        self.assertFalse((self.folder / "out").exists())
        self.assertIn("no rank 3", self.fails("extract", self.store, "heat:own", "--rank", 3, "-o", "out"))
        self.assertEqual(self.json("extract", self.store, "heat:own", "--rank", 2, "-o", "out.npy")["rank"], 2)
        self.assertEqual(command.read_npy((self.folder / "out.npy").read_bytes()), ("<f8", (OWN, 512), self.own(2)))

    def test_diff(self):
        """All ranks, or one; a rank that only one side has is a difference."""
        found = self.json("diff", self.store, "heat@1", "heat@2", status=1)
        self.assertEqual([(r["region"], r["rank"]) for r in found["regions"] if not r["equal"]], [("own", 1)])
        self.assertEqual(len(found["regions"]), 2 * RANKS)
        text = self.varve("diff", self.store, "heat@1", "heat@2", status=1)
        self.assertIn("region 'own' of rank 1", text)
        self.assertIn("5 regions equal, 1 different", text)
        self.varve("diff", self.store, "heat@1", "heat@2", "--rank", 0)
        self.varve("diff", self.store, "heat@1", "heat@2", "--rank", 1, status=1)
        self.assertIn("no rank 3", self.fails("diff", self.store, "heat@1", "heat@2", "--rank", 3))
        self.write("ranks", 2, "region", "own", "f64", f"{OWN}x512", "load", "own", "own%r", "checkpoint", lineage="two")
        self.assertIn("ranks: 3 and 2", self.varve("diff", self.store, "heat@1", "two", "own", status=1))
        self.varve("diff", self.store, "heat@1", "two", "own", "--rank", 1)

    def test_verify(self):
        said = self.json("verify", self.store)
        self.assertEqual((said["problems"], said["epochs"], said["layers"]), ([], 2, 2 * RANKS))
        self.flip(self.layer(1, rank=2), 2000)
        problem, = self.json("verify", self.store, status=1)["problems"]
        self.assertIn("0000000001.r2.layer", problem)
        self.assertIn("r2.layer", self.json("verify", self.store, "heat@2", status=1)["problems"][0])

    def test_lost_layer(self):
        """A layer that is gone: the table says so, the others are still told; what needs it says which it is."""
        self.layer(2, rank=1).unlink()
        text = self.varve("show", self.store, "heat")
        self.assertRegex(text, r"(?m)^ +1 +116 KiB +- +- +- +- +4\.00 KiB +- ")
        self.assertRegex(text, r"(?m)^ +all +348 KiB +- ")
        self.assertIn("1 layer is not in this store", text)
        e = self.json("show", self.store, "heat")
        self.assertEqual([r.get("elsewhere", False) for r in e["per_rank"]], [False, True, False])
        self.assertEqual(e["totals"]["elsewhere"], 1)
        self.assertIn("r1.layer", self.fails("show", self.store, "heat", "--rank", 1, status=1))
        self.assertIn("r1.layer", self.json("verify", self.store, status=1)["problems"][0])
        self.assertIn("gc stopped", self.fails("gc", self.store, "heat", status=1))

    def test_damaged_head(self):
        at, _ = command.sections(self.layer(2, rank=1).read_bytes())["STATS"]
        self.flip(self.layer(2, rank=1), at)
        self.assertIn("r1.layer", self.fails("show", self.store, "heat", status=1))
        self.assertEqual(self.json("show", self.store, "heat", status=1)["code"], -5)
        self.varve("show", self.store, "heat", "--rank", 0)

    def test_drop_and_gc(self):
        """What other ranks refer to stays, whoever stored it. In the third epoch rank 0 holds what rank 1 has stored."""
        self.assertEqual(self.write("ranks", RANKS, "region", "shared", "bytes", SHARED * PAGE, "region", "own", "f64",
                                    f"{OWN}x512", "restart", 0, "only", 0, "load", "own", "own1", "checkpoint"), [3])
        self.assertEqual(self.json("show", self.store, "heat")["totals"]["bytes_new"], 0)
        want = [self.own(1), self.own(1, 2), self.own(2)]
        before = sum(self.layer(1, rank=r).stat().st_size for r in range(RANKS))
        self.assertEqual(self.json("drop", self.store, "heat@1")["bytes_layer"], before)
        self.varve("drop", self.store, "heat@2")
        said, = self.json("gc", self.store)["lineages"]
        self.assertLess(said["bytes_after"], said["bytes_before"] - 3 * PAGE)
        self.assertEqual(self.json("verify", self.store)["problems"], [])
        self.assertEqual([self.extracted(3, "own", r) for r in range(RANKS)], want)
        self.assertEqual(self.dump(3), want)
        self.varve("drop", self.store, "heat", "--lineage", "--yes")
        self.assertIn("is empty", self.fails("ls", self.store))

    def test_own_stores(self):
        """Each rank has its own: one of them tells what it knows, and all of them copied together are a store like any other."""
        own = self.folder / "own"
        self.lay_down(f"{own}/%r")
        text = self.varve("show", own / "1", "heat@1")
        self.assertIn("2 layers are not in this store", text)
        self.assertRegex(text, r"(?m)^ +0 +116 KiB +- ")
        self.assertRegex(text, r"(?m)^ +1 +116 KiB +0 B ")
        self.assertEqual(self.json("ls", own / "2", "heat")["epochs"][1]["ranks"], RANKS)
        self.assertIn("one of several stores", self.fails("gc", own / "0", "heat"))
        for r in range(RANKS):
            shutil.copytree(own / str(r), self.folder / "both", dirs_exist_ok=True)
        both = self.folder / "both"
        self.assertEqual(self.json("verify", both)["problems"], [])
        self.varve("diff", self.store, "heat", "heat", "--with", both)
        self.assertEqual(self.dump(2, both), [self.own(r, 2) for r in range(RANKS)])

    def test_many(self):
        """A line each, however many."""
        self.write("ranks", 40, "region", "x", "bytes", PAGE, "load", "x", "shared", "checkpoint", lineage="many")
        text = self.varve("show", self.store, "many")
        self.assertEqual(len(re.findall(r"(?m)^ +\d+ +4\.00 KiB ", text)), 40)
        self.assertLess(len(text.splitlines()), 40 + 13)
        self.assertEqual(self.json("show", self.store, "many")["totals"]["bytes_new"], PAGE)

    def test_no_regions(self):
        """Ranks that hold nothing, and an epoch that stores nothing."""
        self.write("ranks", RANKS, "only", 1, "region", "x", "bytes", PAGE, "checkpoint", lineage="empty")
        text = self.varve("show", self.store, "empty")
        self.assertRegex(text, r"(?m)^ +0 +0 B ")
        self.assertRegex(text, r"(?m)^ +1 +4\.00 KiB +0 B +4\.00 KiB ")
        self.assertNotIn("balance", text)
        self.assertEqual(self.json("show", self.store, "empty")["totals"]["balance"], 1)
        self.assertIn("holds none", self.fails("extract", self.store, "empty:x", "--rank", 0, "-o", "out"))

    def test_none_shared(self):
        self.lay_down(self.folder / "alone", "codec=none collective=none")
        t = self.json("show", self.folder / "alone", "heat@1")["totals"]
        self.assertEqual((t["bytes_lent"], t["bytes_dup_ranks"]), (0, 0))
        self.assertEqual(t["bytes_new"], t["bytes_alone"])
        self.varve("diff", self.store, "heat", "heat", "--with", self.folder / "alone")

    def test_busy(self):
        p = subprocess.Popen([command.WRITER, self.store, "heat", "", "ranks", "2", "only", "0", "hold"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, env=self.env)
        self.assertEqual(p.stdout.readline(), b"held\n")
        self.fails("drop", self.store, "heat@1")
        self.varve("show", self.store, "heat")
        p.stdin.close()
        p.stdout.close()
        self.assertEqual(p.wait(60), 0)
        self.varve("drop", self.store, "heat@1")


if __name__ == "__main__":
    unittest.main()
