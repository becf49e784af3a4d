#!/usr/bin/env python3
"""varve extract: exactly the bytes, raw and as .npy; a file appears whole or not at all."""
import os
import pty
import signal
import struct
import subprocess
import time
import unittest

import command

NPY = {"bytes": "|u1", "i8": "|i1", "u8": "|u1", "i16": "<i2", "u16": "<u2", "i32": "<i4", "u32": "<u4", "i64": "<i8",
       "u64": "<u8", "f32": "<f4", "f64": "<f8", "c64": "<c8", "c128": "<c16",
       "bf16": "<V2", "f16": "<f2", "f8_e4m3": "|V1", "f8_e5m2": "|V1"}


class Extract(command.Case):
    def setUp(self):
        super().setUp()
        self.one = command.noise(123457)
        two = bytearray(self.one)
        two[40000:40003] = b"\1\2\3"
        self.two = bytes(two)
        self.file("blob", self.one)
        self.values = struct.pack("<24d", *[i / 3 for i in range(24)])
        self.file("T", self.values)
        self.write("region", "blob", "bytes", len(self.one), "load", "blob", "blob", "region", "T", "f64", "2x3x4",
                   "load", "T", "T", "checkpoint", "poke", "blob", 40000, "010203", "checkpoint")

    def get(self, *words):
        p = self.run_raw("extract", self.store, *words)
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        return p.stdout

    def test_stdout(self):
        self.assertEqual(self.get("heat@1:blob"), self.one)
        self.assertEqual(self.get("heat@2:blob"), self.two)
        self.assertEqual(self.get("heat:blob"), self.two)
        self.assertEqual(self.get("heat:blob", "-o", "-"), self.two)
        self.assertEqual(self.get("heat@1", "blob"), self.one)
        self.assertEqual(self.get("heat", "T"), self.values)

    def test_file(self):
        out = self.folder / "out file"
        self.assertEqual(self.get("heat@1:blob", "-o", out), b"")
        self.assertEqual(out.read_bytes(), self.one)
        self.get("heat@2:blob", f"--output={out}")
        self.assertEqual(out.read_bytes(), self.two)
        link = self.folder / "link"
        link.symlink_to(out)
        self.get("heat@1:blob", "-o", link)
        self.assertTrue(link.is_symlink())
        self.assertEqual(out.read_bytes(), self.one)
        found = self.json("extract", self.store, "heat:T", "-o", out)
        self.assertEqual((found["region"], found["type"], found["shape"], found["bytes"], found["format"]),
                         ("T", "f64", [2, 3, 4], 192, "raw"))
        self.get("heat:T", "-o", "/dev/null")

    def test_npy(self):
        out = self.folder / "T.npy"
        self.get("heat:T", "-o", out)
        self.assertEqual(command.read_npy(out.read_bytes()), ("<f8", (2, 3, 4), self.values))
        self.assertEqual(command.read_npy(self.get("heat:T", "--npy")), ("<f8", (2, 3, 4), self.values))
        self.assertEqual(command.read_npy(self.get("heat@1:blob", "--npy")), ("|u1", (len(self.one),), self.one))
        self.assertEqual(self.json("extract", self.store, "heat:T", "-o", out)["format"], "npy")

    def test_every_type(self):
        self.file("x", command.noise(96, 3))
        words = []
        for t in NPY:
            words += ["region", t, t, 6, "load", t, "x"]
        self.write(*words, "checkpoint", lineage="types")
        for t, descr in NPY.items():
            size = int(descr[2:])
            self.assertEqual(command.read_npy(self.get("types:" + t, "--npy")), (descr, (6,), command.noise(96, 3)[:6 * size]))

    def test_empty_and_large(self):
        big = command.noise(3 << 20) + bytes(5 << 20) + command.noise(1 << 20, 9)
        self.file("big", big)
        self.write("region", "none", "bytes", 0, "region", "flat", "f32", "0x5", "region", "big", "bytes", len(big), "load",
                   "big", "big", "checkpoint", lineage="sizes")
        self.assertEqual(self.get("sizes:none"), b"")
        self.assertEqual(command.read_npy(self.get("sizes:flat", "--npy")), ("<f4", (0, 5), b""))
        self.assertEqual(self.get("sizes:big"), big)

    def test_holes(self):
        """Long zeros are holes in a file and bytes in a pipe; what was in the file before does not shine through."""
        size = 64 << 20
        self.write("region", "z", "bytes", size, "poke", "z", 40 << 20, "abcd", "region", "all", "u64", 1 << 22, "region",
                   "end", "bytes", size, "poke", "end", size - 2, "0102", "checkpoint", lineage="zeros")
        zero = bytes(size)
        middle = zero[:40 << 20] + b"\xab\xcd" + zero[:(24 << 20) - 2]
        out = self.folder / "z"
        for region, want in ("z", middle), ("all", zero[:32 << 20]), ("end", zero[:-2] + b"\1\2"):
            with self.subTest(region=region):
                self.get("zeros:" + region, "-o", out)
                self.assertLess(out.stat().st_blocks * 512, 1 << 20)
                self.assertTrue(out.read_bytes() == want)
                self.assertTrue(self.get("zeros:" + region) == want)
                self.get("zeros:" + region, "--npy", "-o", out)
                self.assertLess(out.stat().st_blocks * 512, 1 << 20)
                self.assertTrue(command.read_npy(out.read_bytes())[2] == want)
        for mode, old in ("wb", b""), ("ab", b"old"), ("r+b", b"x" * size):
            with self.subTest(mode=mode):
                out.write_bytes(old)
                with open(out, mode) as f:
                    self.assertEqual(self.run_raw("extract", self.store, "zeros:z", stdout=f).returncode, 0)
                self.assertTrue(out.read_bytes() == (old if mode == "ab" else b"") + middle)

    def test_strange_names(self):
        names = ["a@1:b", ":", "x/y z", "@2", "-o"]
        words = []
        for i, n in enumerate(names):
            words += ["region", n, "u8", 3, "poke", n, 0, f"{i:02x}"]
        self.write(*words, "checkpoint", lineage="odd")
        for i, n in enumerate(names):
            self.assertEqual(self.get("odd:" + n), bytes([i, 0, 0]))
            self.assertEqual(self.get("odd@1:" + n), bytes([i, 0, 0]))
            self.assertEqual(self.get("--", "odd", n), bytes([i, 0, 0]))

    def test_wrong(self):
        message = self.fails("extract", self.store, "heat:nix", "-o", "out")
        self.assertIn("'blob', 'T'", message)
        self.assertIn("no epoch 5", self.fails("extract", self.store, "heat@5:T", "-o", "out"))
        self.assertIn("which region", self.fails("extract", self.store, "heat", "-o", "out"))
        self.assertIn("-o FILE", self.json("extract", self.store, "heat:T", status=2)["error"])
        self.assertIn("no rank 3", self.fails("extract", self.store, "heat:T", "--rank=3", "-o", "out"))
        self.assertIn("nowhere", self.fails("extract", self.store, "heat:T", "-o", "nowhere/out"))
        self.fails("extract", self.store, "heat:T", "-o", "")
        self.assertIn("No space", self.fails("extract", self.store, "heat:T", "-o", "/dev/full"))
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["T", "a store", "blob"])

    def test_a_private_file_stays_private(self):
        path = self.file("mine", b"old")
        for mode in 0o600, 0o640:
            path.chmod(mode)
            self.varve("extract", self.store, "heat:T", "-o", path)
            self.assertEqual(path.stat().st_mode & 0o777, mode)
            self.assertNotEqual(path.read_bytes(), b"old")

    def test_not_into_the_store(self):
        """What is taken out never takes the place of a layer, by whatever name it is called."""
        before = {p: p.read_bytes() for p in self.store.rglob("*") if p.is_file()}
        (self.folder / "way").symlink_to(self.store)
        (self.folder / "name").symlink_to(self.layer(1))
        for path in (self.layer(1), self.commit(2), self.store / "new", self.store / "new" / "newer" / "x", self.store, "a store/heat/../new", "way/new", "way/heat/lineage", "name"):
            for store in (self.store, f"dir:{self.store}", "way"):
                self.assertIn("inside the store", self.fails("extract", store, "heat:T", "-o", path))
        self.assertEqual({p: p.read_bytes() for p in self.store.rglob("*") if p.is_file()}, before)
        beside = self.folder / "a store.npy"  # its name begins like the store's
        self.get("heat:T", "-o", beside)
        self.assertTrue(beside.exists())
        (self.folder / "dangling").symlink_to(self.store / "not there")
        self.get("heat:T", "-o", "dangling")  # the link is replaced
        self.assertFalse((self.store / "not there").exists())

    def test_damage_leaves_nothing(self):
        self.flip(self.layer(1), 60000)
        out = self.file("out", b"as it was")
        self.assertIn("block", self.fails("extract", self.store, "heat@1:blob", "-o", out, status=1))
        self.assertEqual(out.read_bytes(), b"as it was")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["T", "a store", "blob", "out"])
        self.assertEqual(self.json("extract", self.store, "heat@1:blob", "-o", out, status=1)["code"], -5)

    def test_terminal(self):
        try:
            master, slave = pty.openpty()
        except OSError as e:
            self.skipTest(f"no terminals here: {e}")
        p = subprocess.run([command.BIN, "extract", self.store, "heat:blob"], stdout=slave, stderr=subprocess.PIPE)
        os.close(slave)
        os.close(master)
        self.assertEqual(p.returncode, 2)
        self.assertIn(b"terminal", p.stderr)

    def test_interrupt(self):
        """Ctrl-C while a slow reader keeps it waiting: it dies of the signal."""
        big = self.file("big", command.noise(1 << 20))
        self.write("region", "b", "bytes", 1 << 20, "load", "b", big, "checkpoint", lineage="big")
        p = subprocess.Popen([command.BIN, "extract", self.store, "big:b"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(len(p.stdout.read(10)), 10)
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(60), -signal.SIGINT)
        p.stdout.close()
        p.stderr.close()

    def test_interrupt_file(self):
        """Wherever it is interrupted: either there is a whole file, or none, and nothing else."""
        size = 64 << 20
        self.file("noise", os.urandom(size))
        self.write("region", "b", "bytes", size, "load", "b", "noise", "checkpoint", lineage="big")
        for wait in 0, 0.01, 0.03:
            folder = self.folder / f"out{wait}"
            folder.mkdir()
            p = subprocess.Popen([command.BIN, "extract", self.store, "big:b", "-o", folder / "b"])
            while p.poll() is None and not list(folder.iterdir()):
                continue
            time.sleep(wait)
            p.terminate()
            self.assertIn(p.wait(60), [0, -signal.SIGTERM])
            self.assertIn([(f.name, f.stat().st_size) for f in folder.iterdir()], [[], [("b", size)]])


if __name__ == "__main__":
    unittest.main()
