#!/usr/bin/env python3
"""varve extract of variables of HDF5 files, against h5py: every filter that is undone, names that are links, virtual datasets."""
import io
import os
import sys
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

import command

SHAPE, CHUNK = (45, 37), (16, 10)
VERSIONS = [("earliest", "latest"), ("latest", "latest")]
SIGNED, UNSIGNED = h5py.h5t.STD_I32LE, h5py.h5t.STD_U32LE


def numbers(dtype, low=-1000, high=1000):
    return np.random.default_rng(7).integers(low, high, SHAPE).astype(dtype)


def create(f, name, kind, data, *filters, fill=None, before=None):
    """A dataset of a type of HDF5's, with filters (number, values)."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk(CHUNK)
    if fill is not None:
        plist.set_fill_value(np.array(fill, dtype=data.dtype))
    for number, values in filters:
        if number == h5py.h5z.FILTER_SCALEOFFSET:
            plist.set_scaleoffset(*values)
        else:
            plist.set_filter(number, h5py.h5z.FLAG_MANDATORY, values)
    h5py.h5d.create(f.id, name.encode(), kind, h5py.h5s.create_simple(SHAPE), plist)
    f[name][...] = data


def create_odd(*words):
    """The same; newer libraries refuse types of which they think that a file is damaged. How many were made: 1 or 0."""
    try:
        create(*words)
    except ValueError as e:
        if "unusual datatype" not in str(e):
            raise
        return 0
    return 1


def odd_type(base, size, precision, offset, big=False):
    kind = base.copy()
    kind.set_precision(precision)
    kind.set_offset(offset)
    kind.set_size(size)
    kind.set_order(h5py.h5t.ORDER_BE if big else h5py.h5t.ORDER_LE)
    return kind


class Extract(command.Case):
    def pack(self, name):
        self.varve("pack", "-q", self.store, "set", name)

    def get(self, file, variable):
        done = self.run_raw("extract", "--npy", self.store, f"set:{file}", variable)
        if b"built without" in done.stderr:
            self.skipTest(done.stderr.decode().strip())
        self.assertEqual(done.returncode, 0, (variable, done.stderr))
        return np.load(io.BytesIO(done.stdout))

    def refused(self, file, variable, *words):
        done = self.run_raw("extract", self.store, f"set:{file}", variable, "-o", "out")
        text = done.stderr.decode()
        if "built without" in text:
            self.skipTest(text.strip())
        self.assertGreater(done.returncode, 0, text)
        self.assertTrue(text.startswith("varve: ") and text.count("\n") == 1, text)
        for word in words:
            self.assertIn(word, text, variable)

    def check(self, file, *names, at_least=1):
        """All datasets of the file, or these, as h5py reads them."""
        with h5py.File(self.folder / file) as f:
            if not names:
                names = []
                f.visititems(lambda name, thing: names.append(name) if isinstance(thing, h5py.Dataset) else None)
            self.assertGreaterEqual(len(names), at_least)
            for name in names:
                with self.subTest(file=file, variable=name):
                    want, got = f[name][()], self.get(file, name)
                    self.assertEqual((got.dtype, got.shape), (f[name].dtype, want.shape))
                    self.assertEqual(got.tobytes(), np.asarray(want, dtype=f[name].dtype).tobytes())

    def test_scaleoffset(self):
        with h5py.File(self.folder / "s.h5", "w") as f:
            for kind in "<i1", ">i2", "<u4", ">u8":
                small = kind[2] == "1"
                data = numbers(kind, 0 if "u" in kind else -50, 50 if small else 30000)
                f.create_dataset("int" + kind, data=data, chunks=CHUNK, scaleoffset=0)
                f.create_dataset("full" + kind, data=np.frombuffer(command.noise(data.nbytes), kind).reshape(SHAPE), chunks=CHUNK, scaleoffset=0)
                f.create_dataset("filled" + kind, shape=SHAPE, dtype=kind, chunks=CHUNK, scaleoffset=0, fillvalue=7)[3:30, 5:9] = data[3:30, 5:9]
                f.create_dataset("constant" + kind, data=np.full(SHAPE, 5, kind), chunks=CHUNK, scaleoffset=0)
                f.create_dataset("deflated" + kind, data=data, chunks=CHUNK, scaleoffset=0, compression=6, shuffle=True)
            for kind in "<f4", ">f4", "<f8", ">f8":
                for digits in 0, 4:
                    data = numbers("<f8") / 77
                    f.create_dataset(f"real{digits}{kind}", data=data.astype(kind), chunks=CHUNK, scaleoffset=digits)
                    d = f.create_dataset(f"holes{digits}{kind}", shape=SHAPE, dtype=kind, chunks=CHUNK, scaleoffset=digits, fillvalue=-3.5)
                    d[7:40, 2:30] = data[7:40, 2:30]
        self.pack("s.h5")
        self.check("s.h5", at_least=36)

    def test_nbit(self):
        nbit, deflate = (h5py.h5z.FILTER_NBIT, ()), (h5py.h5z.FILTER_DEFLATE, (4,))
        made = 0
        with h5py.File(self.folder / "n.h5", "w") as f:
            for size in 1, 2, 4, 8:
                for bits, offset in [(8 * size - 1, 0), (8 * size - 3, 3), (5, 1)]:
                    limit = 1 << min(bits - 1, 30)
                    name = f"{size} {bits} {offset}"
                    made += create_odd(f, f"{name} big", odd_type(UNSIGNED, size, bits, offset, True), numbers("u8", 0, 2 * limit), nbit)
                    made += create_odd(f, f"{name} plain", odd_type(UNSIGNED, size, bits, offset), numbers("u8", 0, 2 * limit))
                    # libhdf5 itself forgets the sign of what is one byte long and the high byte first
                    made += create_odd(f, f"{name} signed", odd_type(SIGNED, size, bits, offset, size > 1), numbers("i8", -limit, limit), nbit, deflate)
            create(f, "whole", h5py.h5t.IEEE_F64LE, numbers("f8"), nbit)
            create(f, "full", SIGNED, numbers("i4"), nbit)
        self.pack("n.h5")
        self.check("n.h5", at_least=made + 2)

    def test_lzf(self):
        with h5py.File(self.folder / "l.h5", "w") as f:
            for kind in "<f8", ">i2", "<u4", "i1":
                f.create_dataset("some" + kind, data=numbers(kind, 0, 90), chunks=CHUNK, compression="lzf")
                f.create_dataset("zero" + kind, data=np.zeros(SHAPE, kind), chunks=CHUNK, compression="lzf", shuffle=True, fletcher32=True)
                f.create_dataset("long" + kind, data=np.tile(numbers(kind, 0, 90), (50, 1)), chunks=(2000, 37), compression="lzf")
            f.create_dataset("noise", data=np.frombuffer(command.noise(60000), "u1"), chunks=(7000,), compression="lzf")
        self.pack("l.h5")
        self.check("l.h5", at_least=13)

    def test_szip(self):
        if not h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP):
            self.skipTest("this h5py has no szip")
        with h5py.File(self.folder / "z.h5", "w") as f:
            for kind in "<f8", ">f4", "<i2", "u1":
                for how in ("nn", 8), ("ec", 16), ("ec", 10):
                    f.create_dataset(f"{kind} {how}", data=numbers(kind, 0, 200), chunks=CHUNK, compression="szip", compression_opts=how)
                f.create_dataset(f"{kind} more", data=numbers(kind, 0, 200), chunks=CHUNK, compression="szip", shuffle=True, fletcher32=True)
        self.pack("z.h5")
        self.check("z.h5", at_least=16)

    def test_unknown(self):
        """What is not undone says so, and writes nothing."""
        with h5py.File(self.folder / "u.h5", "w") as f:
            pair = np.zeros(SHAPE, [("a", "<i4"), ("b", "<f4")])
            pair["a"] = numbers("<i4")
            odd = h5py.h5t.create(h5py.h5t.COMPOUND, 8)
            odd.insert(b"a", 0, odd_type(SIGNED, 4, 20, 0))
            odd.insert(b"b", 4, h5py.h5t.IEEE_F32LE)
            create(f, "record", odd, pair, (h5py.h5z.FILTER_NBIT, ()))
        self.pack("u.h5")
        self.refused("u.h5", "record", "n-bit of records")
        self.assertFalse((self.folder / "out").exists())

    def test_links(self):
        for i, versions in enumerate(VERSIONS):
            name = f"k{i}.h5"
            with h5py.File(self.folder / name, "w", libver=versions) as f:
                g = f.create_group("a/b")
                g["x"] = numbers("<f4")
                f["second"] = g["x"]
                f["again"] = g
                f["soft"] = h5py.SoftLink("/a/b/x")
                g["relative"] = h5py.SoftLink("./x")
                f["group"] = h5py.SoftLink("a//b")
                f["to a link"] = h5py.SoftLink("/group/relative")
                g["up"] = f["/"]
                f["circle"] = h5py.SoftLink("/circle2")
                f["circle2"] = h5py.SoftLink("/circle")
                f["growing"] = h5py.SoftLink("/growing/more")
                f["dangling"] = h5py.SoftLink("/a/nothing")
                f["outside"] = h5py.ExternalLink("other.h5", "/x")
                for k in range(40):  # enough for links in a heap
                    f[f"many{k}"] = h5py.SoftLink("/a/b/x")
            self.pack(name)
            self.check(name, "a/b/x", "second", "again/x", "soft", "a/b/relative", "group/x", "again/relative", "to a link", "a/b/up/soft",
                       "again/up/a/b/up/group/up/second", "many0", "many39", "/./a//b/x")
            self.refused(name, "circle", "circle")
            self.refused(name, "growing", "circle, or too far")
            self.refused(name, "dangling", "/a/nothing")
            self.refused(name, "outside", "another file", "other.h5")
            self.refused(name, "many", "no variable 'many'")

    def make_virtual(self, f, name, shape, *parts, dtype="<f8", **more):
        layout = h5py.VirtualLayout(shape, dtype=dtype)
        for to, source, what in parts:
            layout[to] = h5py.VirtualSource(f[source])[what]
        f.create_virtual_dataset(name, layout, **more)

    def test_virtual(self):
        every = np.s_[...]
        for i, versions in enumerate(VERSIONS):
            name = f"v{i}.h5"
            with h5py.File(self.folder / name, "w", libver=versions) as f:
                for k in range(4):
                    f[f"row{k}"] = np.arange(100, dtype="<f8") + 1000 * k
                f.create_dataset("grid", data=numbers("<f8"), chunks=CHUNK, compression=4)
                f["link"] = h5py.SoftLink("grid")
                self.make_virtual(f, "stack", (5, 100), *[(np.s_[k, :], f"row{k}", every) for k in range(4)], fillvalue=-1)
                self.make_virtual(f, "half", (4, 50), *[(np.s_[k, :], f"row{k}", np.s_[1::2]) for k in range(4)])
                self.make_virtual(f, "woven", (200,), (np.s_[0::2], "row0", every), (np.s_[1::2], "row1", every))
                self.make_virtual(f, "part", (20, 30), (np.s_[5:15, 3:23], "grid", np.s_[10:20, 7:27]), fillvalue=9)
                self.make_virtual(f, "blocks", (20, 30), (np.s_[0:20:4, 0:30:3], "grid", np.s_[1:16:3, 2:32:3]))
                self.make_virtual(f, "of stack", (100,), (every, "stack", np.s_[2, :]))
                self.make_virtual(f, "whole", SHAPE, (every, "grid", every))
                self.make_virtual(f, "through a link", SHAPE, (every, "link", every))
                with h5py.File(self.folder / "other.h5", "w") as other:
                    other["x"] = np.arange(10.0)
                layout = h5py.VirtualLayout((10,), dtype="<f8")
                layout[:] = h5py.VirtualSource("other.h5", "x", (10,))
                f.create_virtual_dataset("elsewhere", layout)
                layout = h5py.VirtualLayout((10,), dtype="<f8")
                layout[:] = h5py.VirtualSource(".", "itself", (10,))
                f.create_virtual_dataset("itself", layout)
                self.make_virtual(f, "other type", SHAPE, (every, "grid", every), dtype="<f4")
                layout = h5py.VirtualLayout((10,), dtype="<f8")
                layout[:] = h5py.VirtualSource(".", "nowhere", (10,))
                f.create_virtual_dataset("nothing", layout)
            self.pack(name)
            self.check(name, "stack", "half", "woven", "part", "blocks", "of stack", "whole", "through a link")
            self.refused(name, "elsewhere", "other files")
            self.refused(name, "itself", "made of itself")
            self.refused(name, "other type", "another type")
            self.refused(name, "nothing", "nowhere")

    def test_virtual_datasets_that_multiply(self):
        """Each of eight levels reads the next one a hundred times, which would never end."""
        with h5py.File(self.folder / "m.h5", "w") as f:
            f["v0"] = np.arange(100.0)
            for level in range(1, 8):
                self.make_virtual(f, f"v{level}", (100,), *[(np.s_[k:k + 1], f"v{level - 1}", np.s_[k:k + 1]) for k in range(100)])
        self.pack("m.h5")
        self.check("m.h5", "v1", "v2")
        self.refused("m.h5", "v7", "are read too often")


if __name__ == "__main__":
    unittest.main()
