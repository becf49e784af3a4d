#!/usr/bin/env python3
# ctest: TIMEOUT 300 COST 20
"""varve cp: the copy has the same bytes, a second run copies only new layers, and an interrupted one can be repeated."""
import os
import pathlib
import random
import re
import shutil
import subprocess
import time
import unittest

import command

N = 200000
HEAT = pathlib.Path(os.environ["VARVE_BUILD"]) / "examples" / "heat3d"
MAKER = pathlib.Path(os.environ["VARVE_BUILD"]) / "tests" / "places_check"


class Cp(command.Case):
    def setUp(self):
        super().setUp()
        self.copy = self.folder / "copy"

    def history(self, epochs=8, lineage="heat", options=""):
        """Epochs 1 to 8; each changes some bytes of the one before. {epoch: content}."""
        data = bytearray(command.noise(N))
        self.file("start", data)
        content = {1: bytes(data)}
        words = ["region", "x", "bytes", N, "load", "x", "start", "checkpoint"]
        for e in range(2, epochs + 1):
            for at in (e * 4096, e * 4096 + 100):
                data[at:at + 2] = bytes([e, 0xFF])
                words += ["poke", "x", at, f"{e:02x}ff"]
            words.append("checkpoint")
            content[e] = bytes(data)
        self.write(*words, lineage=lineage, options=options)
        return content

    def epochs(self, store, lineage="heat"):
        return [e["epoch"] for e in self.json("ls", store, lineage)["epochs"]]

    def check(self, content, *want, store=None):
        """The copy has these epochs, intact, with the content that they had."""
        store = store or self.copy
        self.assertEqual(self.epochs(store), list(want))
        self.varve("verify", store)
        for e in want:
            p = self.run_raw("extract", store, f"heat@{e}:x")
            self.assertTrue(p.returncode == 0 and p.stdout == content[e], f"epoch {e}: {p.stderr}")

    def objects(self, store):
        return {str(p.relative_to(store)): p.read_bytes() for p in sorted(store.rglob("*")) if p.suffix in (".layer", ".commit") or p.name == "lineage"}

    def test_whole(self):
        content = self.history()
        self.assertIn("8 epochs to be copied", self.varve("cp", self.store, self.copy, "heat", "--dry-run"))
        self.assertFalse(self.copy.exists())
        self.assertIn("heat: 8 epochs copied (8 layers", self.varve("cp", self.store, self.copy, "heat"))
        self.assertTrue(self.objects(self.copy) == self.objects(self.store))
        self.check(content, *range(1, 9))
        self.assertIn("0 epochs copied (0 layers, 0 B), 8 there already", self.varve("cp", self.store, self.copy, "heat"))
        self.assertEqual(self.varve("cp", self.store, self.copy, "heat", "-q"), "")
        self.assertFalse(list(self.copy.rglob(".tmp-*")))

    def test_same_store(self):
        self.history(2)
        link = self.folder / "link"
        link.symlink_to(self.store)
        for name in (self.store, f"{self.store}/", f"dir:{self.store}", link):
            for dry in ((), ("--dry-run",)):
                self.assertIn("are one store: name another one", self.fails("cp", *dry, self.store, name, "heat"))

    def test_incremental(self):
        """The copy of a lineage follows it."""
        self.history()
        self.varve("cp", self.store, self.copy, "heat")
        before = {p: p.stat().st_mtime_ns for p in self.copy.rglob("*.layer")}
        self.write("region", "x", "bytes", N, "restart", "0", "poke", "x", "7", "77", "checkpoint", "poke", "x", "9", "99", "checkpoint")
        found = self.json("cp", self.store, self.copy, "heat")
        self.assertEqual((found["epochs"], found["layers"], found["epochs_there"]), (2, 2, 8))
        for path, mtime in before.items():
            self.assertEqual(path.stat().st_mtime_ns, mtime)
        self.assertTrue(self.objects(self.copy) == self.objects(self.store))

    def labels(self, store):
        return {e["epoch"]: e["labels"] for e in self.json("ls", store, "heat")["epochs"] if e["labels"]}

    def test_labels(self):
        """Labels come along, also those that were given later, and name epochs."""
        content = self.history()
        self.varve("label", self.store, "heat@3", "third")
        self.varve("cp", self.store, self.copy, "heat@third", "-2")
        self.check(content, 3, 7)
        self.assertEqual(self.labels(self.copy), {3: ["third"]})
        self.varve("label", self.store, "heat@7", "last-but-one")
        self.assertIn("2 there already", self.varve("cp", self.store, self.copy, "heat@3", "7"))
        self.assertEqual(self.labels(self.copy), {3: ["third"], 7: ["last-but-one"]})

    def test_some_epochs(self):
        """One epoch comes with the layers that it refers to, and no other."""
        content = self.history()
        self.varve("cp", self.store, self.copy, "heat@5")
        self.check(content, 5)
        layers = [int(p.name[:10]) for p in self.copy.rglob("*.layer")]
        self.assertLessEqual(max(layers), 5)
        self.varve("cp", self.store, self.copy, "heat@2", "7..8")
        self.check(content, 2, 5, 7, 8)
        self.varve("cp", self.store, self.copy, "heat")
        self.check(content, *range(1, 9))

    def test_refused(self):
        self.history(3)
        self.assertIn("no epoch 9", self.fails("cp", self.store, self.copy, "heat@2", "9"))
        self.assertIn("no epoch from 20 to 30", self.fails("cp", self.store, self.copy, "heat@20..30"))
        self.assertIn("varve cp", self.fails("cp", self.store, self.copy, "heat", "3"))
        self.assertIn("did you mean 'heat'", self.fails("cp", self.store, self.copy, "head"))
        self.assertIn("is missing", self.fails("cp", self.store, self.copy))
        self.write("region", "y", "u8", 4, "checkpoint", store=self.copy)
        for more in [], ["--dry-run"]:
            self.assertIn("another lineage 'heat'", self.fails("cp", self.store, self.copy, "heat", *more))
        self.assertEqual(self.epochs(self.copy), [1])
        self.assertIn("is a lineage itself", self.fails("cp", self.store, self.copy / "heat", "heat"))
        for inside in (f"{self.store}/sub", f"dir:{self.store}/heat/sub"):
            self.assertIn("where only layers belong", self.fails("cp", self.store, inside, "heat"))
        self.assertEqual(sorted(os.listdir(self.store)), ["heat"])

    def test_both_continued(self):
        """Numbers that collide, and numbers that do not."""
        for numbers in "collide", "differ":
            with self.subTest(numbers):
                shutil.rmtree(self.store, ignore_errors=True)
                shutil.rmtree(self.copy, ignore_errors=True)
                self.history(3)
                self.varve("cp", self.store, self.copy, "heat")
                on = ["region", "x", "bytes", N, "restart", "0"]
                self.write(*on, "poke", "x", "7", "77", "checkpoint", store=self.copy)
                self.write(*on, "poke", "x", "7", "88", "checkpoint", "checkpoint")
                if numbers == "differ":
                    self.varve("drop", self.store, "heat@4")
                    self.varve("gc", self.store)
                before = self.objects(self.copy)
                self.assertIn("both copies", self.fails("cp", self.store, self.copy, "heat"))
                self.assertTrue(self.objects(self.copy) == before)

    def test_copy_continues(self):
        """A program goes on in the copy, and the copy goes home."""
        content = self.history(3)
        self.varve("cp", self.store, self.copy, "heat")
        self.write("region", "x", "bytes", N, "restart", "0", "poke", "x", "7", "77", "checkpoint", store=self.copy)
        content[4] = content[3][:7] + b"\x77" + content[3][8:]
        self.check(content, 1, 2, 3, 4)
        self.assertEqual(self.json("cp", self.copy, self.store, "heat")["epochs"], 1)
        self.check(content, 1, 2, 3, 4, store=self.store)
        self.assertIn("0 epochs copied", self.varve("cp", self.store, self.copy, "heat"))

    def test_number_is_not_used_again(self):
        """The newest epochs were dropped: the copy does not give their numbers to others."""
        self.history(4)
        self.varve("drop", self.store, "heat@3..4")
        self.varve("gc", self.store)
        self.varve("cp", self.store, self.copy, "heat")
        self.assertEqual(self.write("region", "x", "bytes", N, "restart", "0", "checkpoint", store=self.copy)[-1], 5)

    def test_program_restarts(self):
        def checksum(*words):
            p = subprocess.run([HEAT, "--n", "24", "--every", "5", *map(str, words)], capture_output=True, text=True, env=self.env)
            self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
            return re.search(r"checksum\s+(\w+)", p.stdout).group(1), p.stdout
        want, _ = checksum("--steps", "60")
        checksum("--steps", "30", "--store", self.store, "--lineage", "heat")
        self.varve("cp", self.store, self.copy, "heat")
        shutil.rmtree(self.store)
        got, said = checksum("--steps", "60", "--store", self.copy, "--lineage", "heat")
        self.assertIn("restarted", said)
        self.assertEqual(got, want)
        self.varve("verify", self.copy)

    def test_writers(self):
        """A writer at the source is welcome, one at the destination is not."""
        content = self.history(3)
        p = subprocess.Popen([command.WRITER, self.store, "heat", "", "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.env)
        self.assertEqual(p.stdout.readline(), b"held\n")
        self.varve("cp", self.store, self.copy, "heat")
        self.assertIn("being written", self.fails("cp", self.copy, self.store, "heat"))
        p.communicate()
        self.check(content, 1, 2, 3)

    def test_writer_drops(self):
        """The source's writer drops epochs and runs gc all the time: each copied epoch is intact."""
        self.file("start", command.noise(N))
        p = subprocess.Popen([command.WRITER, self.store, "heat", "keep=2", "region", "x", "bytes", str(N), "load", "x", "start",
                              "tick", "x", "3000"], stdout=subprocess.PIPE, env=self.env, cwd=self.folder)
        try:
            command.wait_for(lambda: list(self.store.rglob("*.commit")), "the first epoch")
            for _ in range(20):
                self.varve("cp", self.store, self.copy, "heat")
                if p.poll() is not None:
                    break
        finally:
            p.kill()
            p.communicate()
        self.assertTrue(self.epochs(self.copy))
        self.assertEqual(self.json("verify", self.copy)["n_problems"], 0)

    def test_damage(self):
        """Each part of a layer: it is named, the epochs that need it are left out, the others are copied."""
        content = self.history()
        whole = self.layer(5).read_bytes()
        places = {name: at for name, (at, n) in command.sections(whole).items() if n}
        places.update(header=3, block=20, directory=len(whole) - 60, trailer=len(whole) - 20)
        for name, at in places.items():
            with self.subTest(name):
                shutil.rmtree(self.copy, ignore_errors=True)
                self.flip(self.layer(5), at)
                out = self.varve("cp", self.store, self.copy, "heat", status=1)
                self.assertIn("0000000005.r0.layer", out)
                self.assertIn("epoch 5 is not copied", out)
                got = self.epochs(self.copy)
                self.assertTrue(set(range(1, 5)) <= set(got) and 5 not in got, got)
                self.check(content, *got)
                self.layer(5).write_bytes(whole)
                self.varve("cp", self.store, self.copy, "heat")
                self.check(content, *range(1, 9))

    def test_missing_and_records(self):
        content = self.history()
        shutil.move(self.layer(8), self.folder / "away")
        self.flip(self.commit(2), 60)
        found = self.json("cp", self.store, self.copy, "heat", status=1)
        self.assertEqual((found["epochs"], found["epochs_damaged"]), (6, 2))
        self.check(content, 1, 3, 4, 5, 6, 7)
        self.assertIn("epoch 8 is not copied", self.varve("cp", self.store, self.copy, "heat@8", status=1))

    def test_damaged_copy_is_mended(self):
        """A damaged record or layer at the destination is replaced."""
        content = self.history(3)
        self.varve("cp", self.store, self.copy, "heat")
        folder = self.copy / "heat" / "00000000"
        self.flip(folder / "0000000002.commit", 60)
        self.flip(folder / "0000000002.r0.layer", len((folder / "0000000002.r0.layer").read_bytes()) - 20)
        p = self.run_raw("cp", self.store, self.copy, "heat")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.check(content, 1, 2, 3)

    def test_gc_at_the_destination(self):
        """The copy lacks bytes that a further epoch needs: the layer comes once more, as a whole."""
        a, b = command.noise(65536, 5), command.noise(65536, 6)
        for name, data in ("a", a), ("b", b):
            self.file(name, data)
        self.write("region", "x", "bytes", 65536, "load", "x", "a", "checkpoint", "load", "x", "b", "checkpoint",
                   "load", "x", "a", "checkpoint")
        self.varve("cp", self.store, self.copy, "heat@1..2")
        self.varve("drop", self.copy, "heat@1")
        self.varve("gc", self.copy)
        self.varve("cp", self.store, self.copy, "heat@3")
        self.check({1: a, 2: b, 3: a}, 2, 3)

    def test_ranks(self):
        """All ranks, and stores of which each has some ranks: copied together they are whole."""
        self.write("ranks", "3", "region", "x%r", "u8", "50000", "checkpoint", "poke", "x%r", "7", "aa", "checkpoint", lineage="many")
        found = self.json("cp", self.store, self.copy, "many")
        self.assertEqual((found["epochs"], found["layers"]), (2, 6))
        self.varve("verify", "--whole", self.copy)
        jobs = self.folder / "job"
        jobs.mkdir()
        subprocess.run([MAKER, jobs, "4", "3", "mode=sync copies=2"], check=True, env=self.env)
        gathered = self.folder / "gathered"
        for rank in range(4):
            self.varve("cp", jobs / f"p{rank}", gathered, "job")
        self.varve("verify", "--whole", gathered)
        self.assertEqual(self.json("cp", jobs / "p2", gathered, "job")["epochs"], 0)

    def test_bundles(self):
        """Layers of several ranks in one file are objects like others."""
        self.write("ranks", "4", "region", "x%r", "u8", "50000", "checkpoint", "poke", "x%r", "7", "aa", "checkpoint", lineage="many",
                   options="aggregate=4")
        self.assertTrue(list(self.store.rglob("*.bundle")))
        self.varve("cp", self.store, self.copy, "many")
        self.varve("verify", "--whole", self.copy)

    def test_killed(self):
        """Killed at any moment: what is there is intact, and the next run finishes."""
        content = self.history(12)
        start = time.monotonic()
        self.varve("cp", self.store, self.folder / "timed", "heat")
        takes = time.monotonic() - start
        for i in range(25):
            p = subprocess.Popen([command.BIN, "cp", self.store, self.copy, "heat"], env=self.env, stdout=subprocess.DEVNULL)
            time.sleep(takes * i / 24)
            p.kill()
            p.wait()
            if (self.copy / "heat" / "lineage").exists():
                self.assertEqual(self.json("verify", self.copy)["n_problems"], 0)
            if i % 3 == 2:
                self.varve("cp", self.store, self.copy, "heat")
                self.check(content, *range(1, 13))
                self.assertFalse(list(self.copy.rglob(".tmp-*")))
                shutil.rmtree(self.copy)

    def test_full_disk(self):
        """The message names the file; the epochs that are there are intact; with room the next run finishes."""
        content = self.history(8)
        self.copy.mkdir()
        if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
            self.skipTest("no mount namespaces")
        script = '''set -e
mount -t tmpfs -o size=230k tmpfs "$2"
rc=0; "$1" cp "$3" "$2" heat || rc=$?
test $rc = 2
"$1" ls "$2" heat || true
"$1" verify "$2"
mount -o remount,size=10m "$2"
"$1" cp "$3" "$2" heat
cp -r "$2" "$4"
'''
        p = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", command.BIN, self.copy, self.store, self.folder / "out"],
                           capture_output=True, text=True, env=self.env)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertRegex(p.stderr, r"varve: .*(layer|commit).*[Nn]o space left")
        self.check(content, *range(1, 9), store=self.folder / "out")

    def test_random_histories(self):
        """Random checkpoints, drops and gcs of the source and the copy, and random selections: the copy always has the right content."""
        for seed in range(6):
            with self.subTest(seed):
                self.random_history(random.Random(seed))

    def random_history(self, rng):
        for store in self.store, self.copy:
            shutil.rmtree(store, ignore_errors=True)
        n, page = 40960, 4096
        pages = [command.noise(page, 100 + i) for i in range(6)]
        data, content, have, newest = bytearray(n), {}, set(), 0
        for _ in range(14):
            act = rng.choice(["write", "write", "copy", "copy", "drop", "gc", "drop copy", "gc copy"]) if content else "write"
            live = sorted(content if "copy" not in act else have)
            if act == "write":
                for _ in range(rng.randint(1, 4)):
                    at = rng.randrange(n // page) * page
                    data[at:at + page] = rng.choice(pages)
                self.file("now", data)
                newest = self.write("region", "x", "bytes", n, "load", "x", "now", "checkpoint", options="keep=0")[-1]
                content[newest] = bytes(data)
            elif act == "copy":
                some = rng.sample(sorted(content), rng.randint(1, len(content)))
                p = self.run_raw("cp", self.store, self.copy, f"heat@{some[0]}", *some[1:])
                self.assertIn(p.returncode, (0, 2), p.stdout + p.stderr)
                if p.returncode == 0:
                    have |= {(e, content[e]) for e in some}
                else:
                    self.assertIn(b"gc has run in both", p.stderr)
                    have = {(e, c) for e, c in have if e in self.epochs(self.copy)} | {(e, content[e]) for e in some if e in self.epochs(self.copy)}
            elif act == "drop" and len(live) > 1:
                e = rng.choice(live)
                self.varve("drop", self.store, f"heat@{e}")
                del content[e]
            elif act == "drop copy" and len(live) > 1:
                e = rng.choice(live)
                self.varve("drop", self.copy, f"heat@{e[0]}")
                have.discard(e)
            elif act == "gc" or (act == "gc copy" and have):
                self.varve("gc", self.copy if "copy" in act else self.store)
            if have:
                self.check(dict(have), *sorted(e for e, _ in have))
            if content:
                self.check(content, *sorted(content), store=self.store)


if __name__ == "__main__":
    unittest.main()
