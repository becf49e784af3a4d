#!/usr/bin/env python3
"""varve diff: known differences are found with their places and sizes; equality is exit 0, a difference 1, an error 2."""
import math
import struct
import unittest

import command


def pack(fmt, values):
    return struct.pack(f"<{len(values)}{fmt}", *values)


class Diff(command.Case):
    def pair(self, kind, shape, one, two, lineage="heat"):
        """Two epochs of a region 'x' with this content."""
        self.file("one", one)
        self.file("two", two)
        self.write("region", "x", kind, shape, "load", "x", "one", "checkpoint", "load", "x", "two", "checkpoint",
                   lineage=lineage)

    def region(self, *words, status=1, lineage="heat"):
        found = self.json("diff", self.store, lineage + "@1", lineage + "@2", *words, status=status)
        self.assertEqual(found["equal"], status == 0)
        return found["regions"][0]

    def test_equal(self):
        self.write("region", "x", "f64", "10x10", "region", "y", "bytes", 5, "checkpoint", "checkpoint")
        out = self.varve("diff", self.store, "heat@1", "heat@2")
        self.assertEqual(out.strip(), "2 regions equal, 0 different")
        self.assertTrue(self.region(status=0)["equal"])
        self.varve("diff", self.store, "heat", "heat")

    def test_doubles(self):
        one = [1.0] * 200
        two = list(one)
        two[7], two[150], two[151] = 1.5, -99.0, 1.25
        self.pair("f64", "10x20", pack("d", one), pack("d", two))
        r = self.region()
        self.assertEqual((r["elements"], r["nan"], r["max_abs"], r["max_abs_at"]), (3, 0, 100.0, 150))
        self.assertAlmostEqual(r["max_rel"], 100 / 99)
        self.assertEqual(r["max_rel_at"], 150)
        a, b = pack("d", one), pack("d", two)
        differing = [i for i in range(len(a)) if a[i] != b[i]]
        self.assertEqual((r["bytes"], r["first"], r["last"], r["ranges"]), (len(differing), differing[0], differing[-1], 2))
        text = self.varve("diff", self.store, "heat@1", "heat@2", status=1)
        for words in ["region 'x'", "3 of 200", "100 at [7,10]", "2 stretches", "0 regions equal, 1 different"]:
            self.assertIn(words, text)
        self.assertEqual(self.varve("diff", self.store, "heat@1", "heat@2", "-q", status=1), "")

    def test_nan(self):
        nan = math.nan
        one, two = [1.0, nan, nan, 4.0, 5.0], [nan, nan, 3.0, 4.0, 5.5]
        self.pair("f64", "5", pack("d", one), pack("d", two))
        r = self.region()
        self.assertEqual((r["elements"], r["nan"], r["max_abs"], r["max_abs_at"]), (3, 2, 0.5, 4))
        self.assertIn("2 on one side only", self.varve("diff", self.store, "heat@1", "heat@2", status=1))

    def test_infinity(self):
        self.pair("f64", "3", pack("d", [1, 2, 3]), pack("d", [1, math.inf, 3]))
        r = self.region()
        self.assertEqual((r["elements"], r["max_abs"], r["max_abs_at"]), (1, None, 1))
        self.assertEqual((r["max_rel"], r["max_rel_at"]), (1, 1))

    def test_huge(self):
        self.pair("f64", "3", pack("d", [1, 1e308, 3]), pack("d", [1.5, -1e308, 3]))
        r = self.region()
        self.assertEqual((r["max_abs"], r["max_rel"], r["max_rel_at"]), (None, 2, 1))
        self.pair("f64", "1", pack("d", [1.5e308]), pack("d", [-7.5e307]), lineage="uneven")
        self.assertEqual(self.region(lineage="uneven")["max_rel"], 1.5)

    def test_integers_and_complex(self):
        cases = [("i8", "b", [-128, 5], [127, 5], 255), ("u8", "B", [0, 9], [255, 9], 255), ("i16", "h", [1, 2], [1, -2], 4),
                 ("u16", "H", [1, 2], [1, 65535], 65533), ("i32", "i", [-5, 0], [5, 0], 10),
                 ("u32", "I", [0, 0], [0, 4000000000], 4e9), ("i64", "q", [1, -(1 << 40)], [1, 1 << 40], 2.0 ** 41),
                 ("u64", "Q", [0, 0], [1 << 63, 0], 2.0 ** 63), ("f32", "f", [0.5, 1], [0.5, 3], 2)]
        for kind, fmt, one, two, gap in cases:
            with self.subTest(kind=kind):
                self.pair(kind, "2", pack(fmt, one), pack(fmt, two), lineage="l" + kind)
                r = self.region(lineage="l" + kind)
                at = 0 if one[0] != two[0] else 1
                self.assertEqual((r["elements"], r["max_abs"], r["max_abs_at"]), (1, gap, at))
        self.pair("c128", "2", pack("d", [1, 2, 3, 4]), pack("d", [1, 2, 3, 4.5]), lineage="c")
        r = self.region(lineage="c")
        self.assertEqual((r["elements"], r["max_abs"], r["max_abs_at"]), (1, 0.5, 1))

    def test_small_floats(self):
        """Bits, and the numbers that they are: normal, subnormal, negative, infinite, none."""
        cases = [("bf16", "H", [(0x3f80, 1.0), (0xc049, -3.140625), (0x0001, 2.0**-133), (0x7f7f, 3.3895313892515355e38)], 0x7f80, 0x7fc0),
                 ("f16", "H", [(0x3c00, 1.0), (0xbe00, -1.5), (0x0001, 2.0**-24), (0x7bff, 65504.0)], 0x7c00, 0x7e00),
                 ("f8_e4m3", "B", [(0x38, 1.0), (0xbc, -1.5), (0x01, 2.0**-9), (0x7e, 448.0), (0x78, 256.0)], None, 0x7f),
                 ("f8_e5m2", "B", [(0x3c, 1.0), (0xbe, -1.5), (0x01, 2.0**-16), (0x7b, 57344.0)], 0x7c, 0x7e)]
        for kind, fmt, numbers, infinite, none in cases:
            for bits, number in numbers:
                with self.subTest(kind=kind, bits=hex(bits)):
                    name = f"l{kind}-{bits}"
                    self.pair(kind, "2", pack(fmt, [0, 0]), pack(fmt, [0, bits]), lineage=name)
                    r = self.region(lineage=name)
                    self.assertEqual((r["elements"], r["max_abs"], r["max_abs_at"], r["max_rel"]), (1, abs(number), 1, 1))
            self.pair(kind, "2", pack(fmt, [0, numbers[0][0]]), pack(fmt, [0, numbers[1][0]]), lineage="sign" + kind)
            self.assertEqual(self.region(lineage="sign" + kind)["max_abs"], numbers[0][1] - numbers[1][1])
            self.pair(kind, "2", pack(fmt, [0, 0]), pack(fmt, [0, none]), lineage="none" + kind)
            self.assertEqual(self.region(lineage="none" + kind)["nan"], 1)
            if infinite:
                self.pair(kind, "2", pack(fmt, [0, 0]), pack(fmt, [0, infinite]), lineage="inf" + kind)
                self.assertEqual((self.region(lineage="inf" + kind)["max_abs"], self.region(lineage="inf" + kind)["max_rel"]), (None, 1))

    def test_shapes_and_presence(self):
        self.write("region", "old", "u8", 4, "region", "x", "u8", "2x3", "region", "y", "u8", 8, "checkpoint")
        self.write("region", "x", "u8", "3x2", "region", "y", "u8", 9, "poke", "y", 1, "ff", "region", "new", "u8", 1,
                   "checkpoint")
        found = self.json("diff", self.store, "heat@1", "heat@2", status=1)
        by = {r["region"]: r for r in found["regions"]}
        self.assertEqual(sorted(by), ["new", "old", "x", "y"])
        self.assertIsNone(by["new"]["a"])
        self.assertIsNone(by["old"]["b"])
        self.assertEqual((by["x"]["equal"], by["x"]["bytes"]), (False, 0))
        self.assertEqual((by["y"]["bytes"], by["y"]["a"]["bytes"], by["y"]["b"]["bytes"]), (1, 8, 9))
        text = self.varve("diff", self.store, "heat@1", "heat@2", status=1)
        self.assertIn("'old': only in heat@1", text)
        self.assertIn("'new': only in heat@2", text)
        self.assertIn("not the same shape", text)

    def test_some_regions(self):
        self.write("region", "a", "u8", 4, "region", "b", "u8", 4, "checkpoint", "poke", "b", 0, "01", "checkpoint")
        self.varve("diff", self.store, "heat@1", "heat@2", "a")
        self.varve("diff", self.store, "heat@1", "heat@2", "b", status=1)
        self.varve("diff", self.store, "heat@1", "heat@2", "a", "b", status=1)
        self.varve("diff", self.store, "heat@2", "heat@2", "b")
        self.write("region", "b", "u8", 4, "poke", "b", 0, "01", "region", "z", "u8", 1, "checkpoint", lineage="other")
        found = self.json("diff", self.store, "heat@2", "other", "b")
        self.assertEqual([(r["region"], r["equal"]) for r in found["regions"]], [("b", True)])
        self.assertIn("'z': only in other@1", self.varve("diff", self.store, "other", "heat@2", "z", "b", status=1))
        self.assertIn("'a', 'b'", self.fails("diff", self.store, "heat@1", "heat@2", "a", "c"))

    def test_other_store(self):
        other = self.folder / "other"
        self.pair("bytes", 1000, command.noise(1000), command.noise(1000, 2))
        self.write("region", "x", "bytes", 1000, "load", "x", "two", "checkpoint", store=other)
        self.varve("diff", self.store, "heat@2", "heat@1", "--with", other)
        self.varve("diff", self.store, "heat@1", "heat@1", "--with", other, status=1)
        self.fails("diff", self.store, "heat@1", "heat@1", "--with", self.folder / "nowhere")

    def test_wrong(self):
        self.pair("bytes", 9000, command.noise(9000), command.noise(9000, 2))
        self.fails("diff", self.store, "heat@1")
        self.fails("diff", self.store, "heat@1", "heat@3")
        self.fails("diff", self.store, "heat@1", "cold@1")
        self.flip(self.layer(1), 4000)
        self.assertIn("block", self.fails("diff", self.store, "heat@1", "heat@2", status=2))


if __name__ == "__main__":
    unittest.main()
