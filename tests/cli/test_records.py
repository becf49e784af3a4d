#!/usr/bin/env python3
"""Records in the command: show lists their fields, extract makes a structured array, diff names the field."""
import ast
import os
import pathlib
import shutil
import struct
import unittest

import command

GOLDEN = pathlib.Path(os.environ["VARVE_SOURCE"]) / "tests/golden/v1-records/golden"
FIELDS = [("x", "f64", 0, 24), ("id", "i32", 24, 4), ("kind", "u8", 28, 1)]


class Records(command.Case):
    def setUp(self):
        super().setUp()
        if "zstd" not in self.varve("config"):
            self.skipTest("the golden store needs zstd")
        os.makedirs(self.store, exist_ok=True)
        shutil.copytree(GOLDEN, pathlib.Path(self.store) / "golden")

    def test_show(self):
        out = self.varve("show", self.store, "golden")
        self.assertIn("records of 'particles' have 32 bytes: x f64[3], id i32, kind u8", out)
        found = self.json("show", self.store, "golden")
        region = [r for layer in found["per_rank"] for r in layer["regions"] if r["name"] == "particles"][0]
        self.assertEqual((region["type"], region["shape"], region["element"]), ("record", [500], 32))
        self.assertEqual([(f["name"], f["type"], f["offset"], f["bytes"]) for f in region["fields"]], FIELDS)

    def test_npy(self):
        out = self.folder / "p.npy"
        self.varve("extract", self.store, "golden@2:particles", "-o", out)
        data = out.read_bytes()
        size = struct.unpack_from("<H", data, 8)[0]
        header = ast.literal_eval(data[10:10 + size].decode())
        self.assertEqual(header["descr"], [("x", "<f8", (3,)), ("id", "<i4"), ("kind", "|u1"), ("", "|V3")])
        self.assertEqual(header["shape"], (500,))
        rows = list(struct.iter_unpack("<3diB3x", data[10 + size:]))
        self.assertEqual(rows, [(i, i * 0.5, 2 if i < 14 else 0, i, i % 3) for i in range(500)])
        raw = self.run_raw("extract", self.store, "golden@2:particles").stdout
        self.assertEqual(raw, data[10 + size:])

    def test_diff(self):
        out = self.varve("diff", self.store, "golden@1", "golden@2", "particles", status=1)
        self.assertIn("elements  14 of 500", out)
        self.assertIn("max abs   2 at [7].x", out)
        found = self.json("diff", self.store, "golden@1", "golden@2", "particles", status=1)["regions"][0]
        self.assertEqual((found["elements"], found["max_abs"], found["max_abs_at"], found["max_abs_field"]), (14, 2, 7, "x"))


if __name__ == "__main__":
    unittest.main()
