#!/usr/bin/env python3
# ctest: TIMEOUT 120 COST 6
"""varve pack and unpack: trees of many small files, and files with holes."""
import os
import pathlib
import random
import shutil
import subprocess
import sys
import unittest

import command

READER = pathlib.Path(os.environ["VARVE_SOURCE"]) / "tools" / "layer_read.py"


def tree(folder):
    """{name: (type and mode, time, bytes or target)} of all that is below; of folders the mode alone."""
    found = {}
    for path in pathlib.Path(folder).rglob("*"):
        st = path.lstat()
        data = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(folder))] = (st.st_mode, None if path.is_dir() else st.st_mtime_ns, data)
    return found


class Tree(command.Case):
    def setUp(self):
        super().setUp()
        self.set = self.folder / "set"
        self.set.mkdir()
        self.out = self.folder / "out"

    def layers(self):
        return sorted(self.store.rglob("*.layer"))

    def pack(self, *words, status=0):
        return self.varve("pack", self.store, "run", "-C", self.set, *words, ".", status=status)

    def unpack(self, *words, status=0):
        return self.varve("unpack", self.store, "run", "-C", self.out, *words, status=status)

    def second_reader(self):
        subprocess.run([sys.executable, READER, "check", self.store], check=True)


class Small(Tree):
    def test_small_files(self):
        """A digest for each would take more than its bytes."""
        files = 5000
        for i in range(files):
            (self.set / f"f{i}").write_text(f"file {i}\n")
            os.utime(self.set / f"f{i}", ns=(1, 10 ** 18))
        (self.set / "nothing").write_bytes(b"")
        self.pack()
        layer = self.layers()[0].read_bytes()
        self.assertLess(command.sections(layer)["DIGESTS"][1], files)
        self.assertLess(len(layer), 10 * files)
        (self.set / "f2500").write_text("another\n")
        told = self.json("pack", self.store, "run", "-C", self.set, ".")
        kind = [k for k in told["variables"] if k["key"] == "(small files)"][0]
        self.assertEqual(kind["instances"], files)
        self.assertLess(kind["bytes_new"], 40000)
        self.unpack()
        self.assertEqual(tree(self.set), tree(self.out))
        self.varve("verify", self.store)
        self.second_reader()


class Sparse(Tree):
    def poke(self, name, size, pieces):
        with open(self.set / name, "wb") as f:
            for at, data in pieces:
                f.seek(at)
                f.write(data)
            f.truncate(size)

    def test_holes_are_not_read(self):
        """To read this file would take the better part of an hour."""
        size = 900 << 30
        pieces = [(0, b"begin"), (5 << 30, b"x" * 5000), ((800 << 30) + 12345, b"odd"), (size - 3, b"end")]
        self.poke("vast", size, pieces)
        (self.set / "other").write_bytes(command.noise(100000))
        self.assertEqual(self.json("pack", self.store, "run", "-C", self.set, ".")["bytes"], size + 100000)
        self.unpack()
        self.assertEqual((self.out / "vast").stat().st_size, size)
        self.assertLess((self.out / "vast").stat().st_blocks * 512, 64 << 20)
        with open(self.out / "vast", "rb") as f:
            for at, data in pieces:
                f.seek(at)
                self.assertEqual(f.read(len(data)), data)
        self.second_reader()
        self.assertIn("2 files deleted, 0 kept", self.pack("--delete"))

    def test_any_holes(self):
        """Of bytes of no known format, of arrays, and of both at odd places."""
        head = b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '<f8', 'fortran_order': False, 'shape': (1048576,), }".ljust(117) + b"\n"
        pick = random.Random(3)
        for i in range(3):
            pieces = [(pick.randrange(8 << 20), command.noise(pick.choice([1, 4096, 100000]), i * 9 + k)) for k in range(5)]
            self.poke(f"x{i}", 9 << 20, pieces)
            self.poke(f"y{i}.npy", len(head) + (8 << 20), [(0, head), *((128 + at // 2, data) for at, data in pieces)])
        self.poke("only a hole", 3 << 20, [])
        for words in [], ["-o", "codec=none"], ["--scheme", "aware-block"]:
            shutil.rmtree(self.store, ignore_errors=True)
            shutil.rmtree(self.out, ignore_errors=True)
            if self.run_raw("pack", self.store, "run", "-C", self.set, *words, ".").returncode and words[0] == "--scheme":
                continue  # built without zlib
            self.unpack()
            self.assertEqual(tree(self.set), tree(self.out))
            self.varve("verify", self.store)


if __name__ == "__main__":
    unittest.main()
