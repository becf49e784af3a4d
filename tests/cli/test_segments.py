#!/usr/bin/env python3
# ctest: TIMEOUT 300
"""Images of processes as files: what varve finds in them by segment, how each is cut and coded, and that they come back byte for byte."""
import filecmp
import os
import pathlib
import shutil
import struct
import subprocess
import unittest

import command

PAGE = 4096
READ, WRITE, EXECUTE = 4, 2, 1
RULES = ["all=pages", "all=pages:512", "all=rabin", "all=gear:512/4096/32768", "heap=rabin+trail,stack=gear+zstd,anon=pages+none"]


def core(areas):
    """A core file of (address, flags, path or None, bytes); the program is at the first of them, the stack is the last."""
    maps = [(a, a + len(b), p) for a, _, p, b in areas if p]
    files = struct.pack("<QQ", len(maps), PAGE) + b"".join(struct.pack("<QQQ", a, e, 0) for a, e, _ in maps) + b"".join(p.encode() + b"\0" for _, _, p in maps)
    auxv = struct.pack("<6Q", 3, areas[0][0] + 64, 25, areas[-1][0] + 100, 0, 0)
    notes = b"".join(struct.pack("<III", 5, len(b), t) + b"CORE\0\0\0\0" + b + bytes(-len(b) % 4) for t, b in ((6, auxv), (0x46494C45, files)))
    at = 64 + 56 * (len(areas) + 1)
    headers = struct.pack("<IIQQQQQQ", 4, 0, at, 0, 0, len(notes), 0, 1)
    at += len(notes)
    for address, flags, _, data in areas:
        headers += struct.pack("<IIQQQQQQ", 1, flags, at, address, 0, len(data), len(data), 1)
        at += len(data)
    front = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, 0, 0, 64, 56, len(areas) + 1, 0, 0, 0)
    return front + headers + notes + b"".join(b for *_, b in areas)


def process(heap):
    return [(0x400000, READ | EXECUTE, "/usr/bin/prog", command.noise(2 * PAGE, 1)),
            (0x402000, READ | WRITE, "/usr/bin/prog", command.noise(PAGE, 2)),
            (0x1000000, READ | WRITE, None, heap),
            (0x7F0000000000, READ | WRITE, "/lib/libm.so.6", command.noise(PAGE, 3)),
            (0x7F1000000000, READ | WRITE, None, command.noise(3 * PAGE, 4) + bytes(2 * PAGE)),
            (0x7FFC00000000, READ | WRITE, None, bytes(PAGE) + command.noise(PAGE, 5) * 2)]


class Segments(command.Case):
    def setUp(self):
        super().setUp()
        self.set = self.folder / "images"
        self.set.mkdir()

    def pack(self, *words):
        return self.json("pack", self.store, "job", "-C", self.set, ".", *words)

    def segments(self, of):
        return {s["segment"]: s for s in of["segments"]}

    def check_back(self, lineage="job"):
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        self.varve("unpack", self.store, lineage, "-C", out, "--quiet")
        for path in self.set.rglob("*"):
            if path.is_file():
                self.assertTrue(filecmp.cmp(path, out / path.relative_to(self.set), shallow=False), path)

    def check_sums(self, report):
        """Whatever a byte of memory is, it is counted once."""
        for s in report["segments"]:
            self.assertEqual(s["bytes"], s["bytes_zero"] + s["bytes_dup_time"] + s["bytes_dup_space"] + s["bytes_new"], s)

    def test_tables(self):
        heap = command.noise(8 * PAGE, 7)
        (self.set / "core").write_bytes(core(process(heap)))
        first = self.pack()
        self.check_sums(first)
        found = self.segments(first)
        self.assertEqual({k: v["bytes"] // PAGE for k, v in found.items()}, {"heap": 8, "stack": 3, "code": 3, "library": 1, "anon": 5})
        self.assertEqual({k: v["bytes_zero"] // PAGE for k, v in found.items()}, {"heap": 0, "stack": 1, "code": 0, "library": 0, "anon": 2})
        self.assertEqual(found["stack"]["bytes_dup_space"], PAGE)
        self.assertEqual({v["key"] for v in first["variables"]} - {"(skeleton)"}, {"prog/text", "prog/data", "heap", "libm.so.6/data", "anon", "stack"})
        self.check_back()

        (self.set / "core").write_bytes(core(process(heap[:2 * PAGE] + command.noise(PAGE, 8) + heap[3 * PAGE:])))
        second = self.pack()
        self.check_sums(second)
        found = self.segments(second)
        self.assertEqual((found["heap"]["bytes_new"], found["heap"]["bytes_dup_time"]), (PAGE, 7 * PAGE))
        self.assertTrue(all(found[s]["bytes_new"] == 0 for s in found if s != "heap"), found)
        self.check_back()
        self.check_back("job@2")

        shown = self.varve("show", self.store, "job")
        lines = [line.split() for line in shown.splitlines()]
        self.assertIn(["SEGMENT", "BYTES", "ZERO", "DUP", "IN", "TIME", "DUP", "IN", "SPACE", "NEW", "STORED", "RATIO"], lines)
        self.assertTrue(any(line[:3] == ["heap", "32.0", "KiB"] for line in lines), shown)
        self.assertEqual(self.segments(self.json("show", self.store, "job")["per_rank"][0]), found)

    def test_every_rule(self):
        """Cuts and codes cost space or time, and nothing else; what moved by less than a page is found by content-defined chunks alone."""
        heap = command.noise(64 * PAGE, 7)
        for rules in RULES:
            with self.subTest(rules):
                shutil.rmtree(self.store, ignore_errors=True)
                (self.set / "core").write_bytes(core(process(heap)))
                self.pack("--segments", rules)
                self.check_back()
                (self.set / "core").write_bytes(core(process(command.noise(8, 9) + heap[:-8])))
                new = self.segments(self.pack("--segments", rules))["heap"]["bytes_new"]
                self.check_back()
                self.assertTrue(new < 32 * PAGE if "rabin" in rules or "all=gear" in rules else new == 64 * PAGE, (rules, new))

    def test_refuses_rules(self):
        (self.set / "core").write_bytes(core(process(bytes(PAGE))))
        for rules, why in ("heap", "SEGMENT=CUT"), ("heep=pages", "SEGMENT=CUT"), ("heap=sliding", "no way to cut"), ("heap=pages+gzip", "no way to code"):
            self.assertIn(why, self.fails("pack", self.store, "job", "-C", self.set, ".", "--segments", rules))

    def test_one_segment(self):
        heap = command.noise(3 * PAGE, 7)
        (self.set / "core").write_bytes(core(process(heap)))
        self.pack()
        self.varve("extract", self.store, "job:core:/heap", "-o", "heap", "--quiet")
        self.assertEqual((self.folder / "heap").read_bytes()[-len(heap):], heap)

    # ---- real ones

    def start(self):
        program = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        proc = pathlib.Path("/proc", str(program.pid))
        command.wait_for(lambda: "[heap]" in (proc / "maps").read_text() and (proc / "stat").read_text().rsplit(")", 1)[1].split()[0] == "S", "it sleeps")
        return program.pid

    def check_real(self, dump):
        pid = self.start()
        dump(pid, "a")
        first = self.pack()
        self.check_sums(first)
        found = self.segments(first)
        self.assertTrue({"heap", "stack", "code", "library", "anon"} <= set(found), found)
        self.check_back()
        dump(pid, "b")
        second = self.pack()
        self.check_sums(second)
        self.check_back()
        self.assertLess(second["bytes_layer"], first["bytes_layer"] / 4)

    @unittest.skipUnless(shutil.which("gcore"), "there is no gcore here: apt-get install gdb")
    def test_gcore(self):
        def dump(pid, name):
            got = subprocess.run(["gcore", "-o", self.set / name, str(pid)], capture_output=True, text=True)
            if got.returncode:
                self.skipTest(f"gcore may not look at processes here: {got.stderr.strip()[-200:]}")
        self.check_real(dump)

    @unittest.skipUnless(shutil.which("criu") and os.geteuid() == 0, "there is no criu here, or no root to run it")
    def test_criu(self):
        def dump(pid, name):
            folder = pathlib.Path(self.set) / name
            folder.mkdir()
            got = subprocess.run(["criu", "dump", "-t", str(pid), "-D", folder, "--leave-running", "-o", "log"], stdin=subprocess.DEVNULL, capture_output=True)
            if got.returncode:
                self.skipTest("criu cannot dump a process here: " + (folder / "log").read_text(errors="replace")[-200:])
        self.check_real(dump)


if __name__ == "__main__":
    unittest.main()
