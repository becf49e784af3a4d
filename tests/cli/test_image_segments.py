#!/usr/bin/env python3
# ctest: TIMEOUT 240 COST 10
"""Pages that are streamed out of a frozen process have the segments that they have in the images of it, and are cut and coded as these are to be."""
import os
import shutil
import signal
import subprocess
import time

import command
from command import PATIENCE, wait_for

PROGRAM = None  # set in main
KIB, MIB = 1 << 10, 1 << 20
HUGE = "n" * 255


class Segments(command.Case):
    IN_MEMORY = False  # files that are mapped from there are shared memory, by their names

    def setUp(self):
        super().setUp()
        self.env["TMPDIR"] = str(self.folder)
        self.state = self.folder / "state"

    def start(self, *words):
        with open(self.folder / "out", "ab") as out:
            p = subprocess.Popen([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, cwd=self.folder)
        self.addCleanup(lambda: (p.poll() is None and p.kill(), p.wait()))
        return p

    def program(self, mode, *words):
        p = self.start(PROGRAM, mode, self.state, *words)
        self.goes_on()
        return p

    def step(self):
        words = (self.state.read_text().split() if self.state.exists() else []) or ["0", "ok"]
        self.assertEqual(words[1], "ok")
        return int(words[0])

    def goes_on(self):
        first, end = self.step(), time.time() + PATIENCE
        while self.step() < first + 3:
            self.assertLess(time.time(), end, "the program does not go on")
            time.sleep(0.01)

    def dump(self, p, *more, lineage="a"):
        return self.json("image", "dump", "--leave-running", "--pid", p.pid, self.store, lineage, *more)

    def kinds(self, report):
        return {v["key"]: (v["segment"], v["bytes"], v["instances"]) for v in report["variables"] if "segment" in v}

    def segments(self, report):
        return {s["segment"]: s for s in report["segments"]}

    def check_sums(self, report):
        for s in report["segments"]:
            self.assertEqual(s["bytes"], s["bytes_zero"] + s["bytes_dup_time"] + s["bytes_dup_space"] + s["bytes_new"], s)

    def coded(self, report):
        return {v["key"]: v["coded"] for v in report["variables"] if "segment" in v}

    def packed(self, *more):
        """The same images, as files, through `varve pack`."""
        images, store = self.folder / "images", self.folder / "packed"
        shutil.rmtree(images, ignore_errors=True)
        shutil.rmtree(store, ignore_errors=True)
        self.varve("unpack", "-q", "-C", images, self.store, "a")
        return self.json("pack", store, "job", "-C", images, ".", *more)

    def check_same(self, p, *more):
        """What the stream is told to be is what the images say."""
        report = self.dump(p, *more)
        self.check_sums(report)
        self.assertEqual(self.kinds(report), self.kinds(self.packed()))
        return report

    def test_known_program(self):
        (self.folder / "maps").mkdir()
        found = self.segments(self.check_same(self.program("map", self.folder / "maps")))
        for segment, least, most in (("heap", 3 * MIB, 3 * MIB + 512 * KIB), ("anon", 5 * MIB, 5 * MIB + 512 * KIB), ("shared", 3 * MIB, 3 * MIB),
                                     ("file", 496 * KIB, 496 * KIB), ("stack", 256 * KIB, 512 * KIB)):
            self.assertTrue(least <= found[segment]["bytes"] <= most, (segment, found[segment]))
        shown = self.json("show", self.store, "a")["per_rank"][0]
        kinds = self.kinds(shown)
        self.assertEqual(kinds["libodd.so.1/data"][:2], ("library", 48 * KIB))
        self.assertEqual(kinds["program/data"][0], "code")
        self.assertTrue(any(k.startswith("libc.so") for k in kinds), kinds)
        self.assertEqual(self.segments(shown), found)
        self.assertIn("DUP IN TIME", self.varve("show", self.store, "a"))

    def test_second_dump(self):
        """Nothing but what changed is new, segment by segment."""
        (self.folder / "maps").mkdir()
        p = self.program("map", self.folder / "maps")
        self.dump(p)
        again = self.dump(p)
        self.check_sums(again)
        found = self.segments(again)
        for segment in "heap", "anon", "shared", "file":
            self.assertLess(found[segment]["bytes_new"], 64 * KIB, found[segment])
            self.assertGreater(found[segment]["bytes_dup_time"], 400 * KIB, found[segment])

    def test_other_programs(self):
        self.check_same(self.start("/usr/bin/python3", "-c", "import json, time\nx = ['%d' % i for i in range(30000)]\nwhile 1: time.sleep(1)"))

    def test_alike_afar(self):
        """The second of two large arrays is found to be like the first."""
        if "zstd" not in self.json("config")["codecs"]:
            self.skipTest("built without zstd")
        found = self.segments(self.dump(self.program("twins", 12)))["anon"]
        self.assertGreaterEqual(found["bytes_new"], 24 * MIB)
        self.assertLess(found["bytes_stored"], 12 * MIB, found)

    def test_family(self):
        self.check_same(self.program("family"))

    def test_threads(self):
        """Threads run all the time: what stands on their stacks is found where they were stopped."""
        self.check_same(self.program("churn", 8))

    def test_deleted_program(self):
        own = self.folder / "own"
        shutil.copy(PROGRAM, own)
        p = self.start(own, "count", 100000)
        wait_for(lambda: (self.folder / "out").read_text(), "it runs")
        own.unlink()
        report = self.check_same(p)
        self.assertEqual(self.kinds(report)["own/data"][0], "code")

    def test_little_memory(self):
        """Pages that do not fit are stored while the process stands still. They come back, and what was known when they were stored is right."""
        (self.folder / "maps").mkdir()
        p = self.program("map", self.folder / "maps")
        whole = self.dump(p, lineage="b")
        report = self.dump(p, "--memory", "1M")
        self.check_sums(report)
        self.assertLessEqual(set(self.kinds(report)), set(self.kinds(whole)))
        self.assertEqual(sum(s["bytes"] for s in report["segments"]) // MIB, sum(s["bytes"] for s in whole["segments"]) // MIB)
        self.varve("verify", self.store)
        p.kill()
        p.wait()
        r = subprocess.Popen([command.BIN, "image", "restore", self.store, "a"], stdout=subprocess.DEVNULL, env=self.env, cwd=self.folder)
        try:
            self.goes_on()
            os.kill(p.pid, signal.SIGKILL)
        finally:
            self.assertEqual(r.wait(PATIENCE), 128 + signal.SIGKILL)

    def test_rules(self):
        """Cut and coded as it is said, and found again when the rule is the same."""
        (self.folder / "maps").mkdir()
        p = self.program("map", self.folder / "maps")
        rules = ["--segments", "heap=rabin+deflate,anon=pages:512+none,stack=gear:512/4096/32768+zstd"]
        first = self.dump(p, *rules)
        found = self.segments(first)
        self.assertEqual(self.coded(first), self.coded(self.packed(*rules)))
        self.assertEqual(found["anon"]["bytes_stored"], found["anon"]["bytes_new"])  # not coded at all
        again = self.segments(self.dump(p, *rules))
        self.assertLess(again["heap"]["bytes_new"], 128 * KIB)
        self.assertLess(again["anon"]["bytes_new"], 64 * KIB)
        other = self.segments(self.dump(p, "--segments", "anon=pages:1024"))
        self.assertGreater(other["anon"]["bytes_new"], 4 * MIB)  # cut otherwise, nothing is found
        self.varve("verify", self.store)
        self.assertIn("no way to cut", self.fails("image", "dump", "--pid", p.pid, self.folder / "none", "a", "--segments", "heap=sliding"))
        self.assertFalse((self.folder / "none").exists())
        self.goes_on()

    def test_long_tmpdir(self):
        """Paths of sockets are short: another place is taken."""
        place = self.folder / ("t" * 90)
        place.mkdir()
        p = self.program("threads")
        got = self.run_raw("image", "dump", "--leave-running", "--pid", p.pid, self.store, "a", env={"TMPDIR": str(place)})
        self.assertEqual(got.returncode, 0, got.stderr)
        self.goes_on()
        self.assertEqual(list(place.iterdir()), [])

    def test_children_come_and_go(self):
        p = self.program("breed")
        for _ in range(4):
            got = self.run_raw("image", "dump", "--leave-running", "--pid", p.pid, self.store, "a")
            self.assertIn(got.returncode, (0, 2), got.stderr)
            self.goes_on()
        if self.store.exists() and any(self.store.iterdir()):
            self.varve("verify", self.store)

    def test_dies_meanwhile(self):
        """It is killed at some moment of its dump: there is an epoch of it, or none, and nobody waits for the dead."""
        for delay in (0.01, 0.03, 0.05, 0.08):
            self.state.unlink(missing_ok=True)
            p = self.program("grow", 48)
            d = subprocess.Popen([command.BIN, "image", "dump", "-q", "--leave-running", "--pid", str(p.pid), self.store, "a"], env=self.env,
                                 stderr=subprocess.PIPE, text=True, cwd=self.folder)
            time.sleep(delay)
            p.kill()
            p.wait(PATIENCE)
            said = d.communicate(timeout=PATIENCE)[1]
            self.assertIn(d.returncode, (0, 2), said)
            self.assertEqual(bool(said), d.returncode == 2, said)
        if self.store.exists() and any(self.store.iterdir()):
            self.varve("verify", self.store)


if __name__ == "__main__":
    command.main_with_images("image_program.c")
