#!/usr/bin/env python3
# ctest: TIMEOUT 120 COST 6
"""varve pack and unpack: trees of many small files."""
import os
import pathlib
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


if __name__ == "__main__":
    unittest.main()
