#!/usr/bin/env python3
# ctest: TIMEOUT 240
"""The HDF5 reader says what h5py says, for every file of the zoo: names, types, shapes, filters, and where each byte is."""
import hashlib
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import h5py
    import numpy as np
except ImportError:
    system = "/usr/bin/python3"  # a distribution's packages are with its own python
    if os.path.realpath(sys.executable) != os.path.realpath(system) and os.path.exists(system):
        os.execv(system, [system, *sys.argv])
    print("skip: python3-h5py is not installed")
    sys.exit(77)

import zoo_hdf5 as zoo

CHECK = pathlib.Path(os.environ["VARVE_BUILD"]) / "tests" / "outline_check"
UNDONE = {1, 2, 3, 5, 6, 32000}  # filters that need no library, but for the first
NAMES = {"i": "i%d", "u": "u%d", "f": "f%d", "b": "i%d"}


def outline(path, *flags):
    done = subprocess.run([CHECK, *flags, path], capture_output=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def type_of(dtype):
    """Our word for a type of numpy's: (name, the high byte first)."""
    swapped = dtype.byteorder == ">"
    if dtype.kind == "c" and dtype.itemsize in (8, 16):
        return f"c{dtype.itemsize * 8}", swapped
    if dtype.kind in NAMES and dtype.itemsize <= 8:
        return NAMES[dtype.kind] % (dtype.itemsize * 8), swapped and dtype.itemsize > 1
    return "bytes", False


def datasets(f):
    """{address: dataset} of all that hard links lead to."""
    found, seen = {}, set()

    def visit(group):
        for name in group:
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                continue
            thing = group[name]
            address = h5py.h5o.get_info(thing.id).addr
            if address in seen:
                continue
            seen.add(address)
            if isinstance(thing, h5py.Group):
                visit(thing)
            elif isinstance(thing, h5py.Dataset) and thing.shape is not None:
                found[address] = thing
    visit(f)
    return found


def contains_references(dtype):
    return dtype.kind == "O" or (dtype.names and any(contains_references(dtype[n]) for n in dtype.names))


def is_ragged(dtype):
    if dtype.names:
        return any(is_ragged(dtype[n]) for n in dtype.names)
    return dtype.kind == "O" and h5py.check_ref_dtype(dtype) is None


class Compare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="varve-hdf5-"))
        cls.files = zoo.build(cls.folder)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def variable(self, d, v):
        """What it is."""
        base, inner = d.dtype.subdtype or (d.dtype, ())
        kind = d.id.get_type()
        odd = kind.get_class() == h5py.h5t.BITFIELD or (kind.get_class() == h5py.h5t.INTEGER and
                                                        kind.get_precision() != 8 * kind.get_size())
        self.assertEqual((v["type"], bool(v["swapped"])), ("bytes", False) if odd else type_of(base))
        self.assertEqual(v["shape"], list(d.shape + inner))
        ragged = is_ragged(d.dtype)
        self.assertEqual(bool(v["variable_length"]), ragged)
        if not (ragged and d.dtype.names):  # h5py says how much memory the text takes that it makes of it
            self.assertEqual(v["width"] * math.prod(inner), 16 if ragged else kind.get_size())
        self.assertEqual(v["chunk"], list(d.chunks + inner) if d.chunks else [])
        plist = d.id.get_create_plist()
        self.assertEqual([x[:1] + x[1:9] for x in v["filters"]],
                         [[plist.get_filter(i)[0], *plist.get_filter(i)[2][:8]] for i in range(plist.get_nfilters())])
        self.assertEqual(bool(v["partial"]), bool(d.is_virtual or d.external))
        if plist.fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED and d.dtype.kind in "iufc":
            self.assertEqual(v["fill"], np.asarray(d.fillvalue, dtype=d.dtype).tobytes().hex())

    def bytes_of(self, d, v, place=None):
        """A chunk, or all of it, as it is in memory; None where h5py shows something else than there is."""
        if contains_references(d.dtype) or d.dtype.kind == "b":
            return None
        base, inner = d.dtype.subdtype or (d.dtype, ())
        if place is None:
            return d[()].tobytes() if d.shape else np.asarray(d[()], dtype=d.dtype).tobytes()
        whole = np.empty(d.chunks + inner, dtype=base)
        whole[...] = d.fillvalue if d.dtype.kind in "iufc" else np.zeros((), dtype=base)
        part = d[tuple(slice(p, min(p + c, n)) for p, c, n in zip(place, d.chunks, d.shape))]
        whole[tuple(slice(0, n) for n in part.shape)] = part
        return whole.tobytes()

    def chunked(self, f, d, v, pieces):
        grid = [-(-n // c) for n, c in zip(d.shape, d.chunks)]
        user = f.userblock_size
        count = d.id.get_num_chunks() if math.prod(d.shape) else 0
        self.assertEqual(len(pieces), count)
        for _, at, length, ordinal, coded, mask, digest in pieces:
            place, rest = [], ordinal
            for n, c in zip(reversed(grid), reversed(d.chunks)):
                place.insert(0, rest % n * c)
                rest //= n
            if not d.name.endswith("extensible_inner"):  # libhdf5 1.10 takes its dimensions for each other; the bytes tell
                info = d.id.get_chunk_info_by_coord(tuple(place))
                self.assertIn(at, (info.byte_offset, info.byte_offset + user, info.byte_offset + self.moved))
                self.assertEqual(length, info.size)
                self.assertEqual(mask, 1 if d.name.endswith("plain_edges") and not coded else info.filter_mask)
            if coded and any(x[0] not in UNDONE or (x[0] == 1 and not self.zlib) for x in v["filters"]):
                self.assertIsNone(digest)
                continue
            expected = self.bytes_of(d, v, place)
            if expected is not None and not d.name.endswith(("shrunk", "grown")):
                self.assertEqual(digest, hashlib.sha256(expected).hexdigest(), (place, at))

    def contiguous(self, d, v, pieces):
        at = d.id.get_offset()
        if at is not None and (at >= 1 << 62 or at < d.file.userblock_size):  # nowhere, counted from the end of a user block
            at = None
        if d.external or d.is_virtual or (at is None and d.id.get_create_plist().get_layout() != h5py.h5d.COMPACT):
            self.assertEqual(pieces, [])
            return
        (_, found, length, ordinal, coded, mask, digest), = pieces
        self.assertEqual((length, ordinal, coded, mask), (v["width"] * math.prod(v["shape"]), 0, 0, 0))
        if at is not None:
            self.assertIn(found, (at, at + self.moved))
        expected = self.bytes_of(d, v)
        if expected is not None:
            self.assertEqual(digest, hashlib.sha256(expected).hexdigest())

    def file(self, path):
        o = outline(path, "-b")
        self.zlib = o["zlib"]
        self.moved = 1024 if path.name == "moved.h5" else 0
        self.assertEqual(o["format"], "hdf5")
        with h5py.File(path) as f:
            left = datasets(f)
            for i, v in enumerate(o["variables"]):
                d = f[v["name"]]
                pieces = [p for p in o["pieces"] if p[0] == i]
                with self.subTest(file=path.name, dataset=v["name"][:100]):
                    self.assertIsNotNone(left.pop(h5py.h5o.get_info(d.id).addr, None), "not there, or twice")
                    self.variable(d, v)
                    if d.chunks:
                        self.chunked(f, d, v, pieces)
                    else:
                        self.contiguous(d, v, pieces)
            self.assertEqual([d.name for d in left.values()], [])

    def test_zoo(self):
        self.assertGreater(len(self.files), 12)
        for path in self.files:
            with self.subTest(file=path.name):
                self.file(path)

    def test_zoo_has_all(self):
        """Every kind of block that the reader knows is in some file."""
        blocks = "TREE SNOD HEAP OHDR OCHK FRHP FHDB FHIB BTHD BTLF BTIN FAHD FADB EAHD EAIB EASB EADB SMTB".split()
        data = b"".join(path.read_bytes() for path in self.files)
        self.assertEqual([b for b in blocks if b.encode() not in data], [])

    def test_many_chunks(self):
        for name, n, how in [("tree1", 100000, ("earliest", (0,))), ("fixed", 100000, ("latest", (0,), 1)),
                             ("implicit", 20000, ("latest", (0,))), ("extensible", 200000, ("latest", (None,))),
                             ("extensible_coded", 20000, ("latest", (None,), 1)), ("tree2", 100000, ("latest", (None, None))),
                             ("tree2_coded", 20000, ("latest", (None, None), 1))]:
            path = self.folder / f"many_{name}.h5"
            zoo.many_chunks(path, n, *how)
            o = outline(path)
            with self.subTest(index=name), h5py.File(path) as f:
                print(f"{name}: {n} chunks in {o['seconds']:.3f} s")
                self.assertLess(o["seconds"], 5)  # a tenth of it even on a slow machine; quadratic would be minutes
                self.assertEqual(len(o["pieces"]), n)
                self.assertEqual(len({p[3] for p in o["pieces"]}), n)
                width = f["d"].shape[1] if f["d"].ndim == 2 else 1
                for p in o["pieces"][::9973]:
                    place = (p[3] // width, p[3] % width) if f["d"].ndim == 2 else (p[3],)
                    info = f["d"].id.get_chunk_info_by_coord(place)
                    self.assertEqual((p[1], p[2]), (info.byte_offset, info.size))
            path.unlink()


if __name__ == "__main__":
    unittest.main()
