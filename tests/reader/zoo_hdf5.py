"""A zoo of HDF5 files: every kind of layout, index, group, type and format that the libraries at hand can write."""
import ctypes
import shutil
import subprocess

import h5py
import numpy as np

try:
    import netCDF4
except ImportError:
    netCDF4 = None

VERSIONS = ["earliest", "v108", "v110", "latest"]
UNLIMITED = h5py.h5s.UNLIMITED


def library():
    """libhdf5 itself, for what h5py does not offer; None if it is not found."""
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps}
    return next((ctypes.CDLL(p) for p in sorted(paths) if "libhdf5" in p and "_hl" not in p), None)


def call(name, *words):
    """A function of libhdf5 with these arguments (numbers of 64 bits where they are identifiers); False if it is not there."""
    lib = library()
    if not lib or not hasattr(lib, name):
        return False
    return getattr(lib, name)(*words) >= 0


def numbers(*shape, dtype="<f8"):
    return (np.arange(int(np.prod(shape)), dtype="<f8") * 1.25 + 3).reshape(shape).astype(dtype)


def types(f):
    g = f.create_group("types")
    for k in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"):
        for order in "<>":
            g[("le_" if order == "<" else "be_") + k] = numbers(5, 3, dtype=order + k)
    g["long double"] = numbers(7, dtype="g")
    g["bool"] = np.array([True, False, True])
    g["text"] = np.array([b"alpha", b"beta", b"a longer one"], dtype="S17")
    g["scalar"] = 3.5
    g["opaque"] = np.array([b"1234567", b"abcdefg"], dtype="V7")
    g["record"] = np.zeros(9, dtype=[("a", "<f8"), ("b", "<i2"), ("c", "S5"), ("d", "<f4", (2, 3)), ("e", [("x", "u1"), ("y", ">f8")])])
    g["long record"] = np.zeros(3, dtype=[("a", "S300"), ("b", "<f8"), ("c", "S70000")])
    g.create_dataset("record with text", shape=(2,), dtype=[("a", "<f8"), ("t", h5py.string_dtype())])[0] = (1, "text")
    g["pair"] = np.zeros(4, dtype=[("r", "<f4"), ("j", "<f4")])
    g.create_dataset("array", data=np.zeros(6, dtype=("<i4", ())))
    g.create_dataset("arrays", shape=(4,), dtype=np.dtype(("<f8", (3, 2))))
    g["arrays"][...] = numbers(4, 3, 2)
    g.create_dataset("enum", data=np.array([1, 2, 1], dtype="i2"), dtype=h5py.enum_dtype({"RED": 1, "GREEN": 2}, basetype="<i2"))
    g.create_dataset("words", data=["one", "two", "three"], dtype=h5py.string_dtype())
    v = g.create_dataset("ragged", shape=(3,), dtype=h5py.vlen_dtype(np.int32))
    v[0], v[1] = [1, 2, 3], [4]
    r = g.create_dataset("references", shape=(2,), dtype=h5py.ref_dtype)
    r[0] = g.ref
    space = h5py.h5s.create_simple((4,))
    h5py.h5d.create(g.id, b"bits", h5py.h5t.STD_B16BE, space)
    odd = h5py.h5t.STD_I32LE.copy()
    odd.set_precision(24)
    h5py.h5d.create(g.id, b"24 bits of 32", odd, space)
    g["empty"] = h5py.Empty("f4")
    f["named"] = np.dtype("<f8")
    g.create_dataset("of a named type", data=numbers(4), dtype=f["named"])


def layouts(f):
    g = f.create_group("layouts")
    g["contiguous"] = numbers(11, 7)
    g.create_dataset("never written", shape=(10, 10), dtype="<f4")
    g.create_dataset("filled", shape=(100,), dtype="<i4", fillvalue=-7, chunks=(10,))[20:35] = 5
    g.create_dataset("no elements", shape=(0, 5), maxshape=(None, 5), dtype="<f8")
    compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    compact.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple((6,))
    d = h5py.h5d.create(g.id, b"compact", h5py.h5t.IEEE_F64LE, space, compact)
    d.write(h5py.h5s.ALL, h5py.h5s.ALL, numbers(6))
    external = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    external.set_external(b"elsewhere.bin", 0, 48)
    h5py.h5d.create(g.id, b"external", h5py.h5t.IEEE_F64LE, space, external)


def early(g, name, shape, chunk, maximum=None):
    """Chunks that have their places from the start: in new files an implicit index."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk(chunk)
    plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    d = h5py.h5d.create(g.id, name.encode(), h5py.h5t.STD_I32LE, h5py.h5s.create_simple(shape, maximum or shape), plist)
    g[name][...] = numbers(*shape, dtype="<i4")
    return d


def chunks(f):
    g = f.create_group("chunks")
    for kind, more in [("plain", {}), ("coded", dict(compression=4, shuffle=True)), ("summed", dict(fletcher32=True)),
                       ("all", dict(compression=1, shuffle=True, fletcher32=True)), ("lzf", dict(compression="lzf"))]:
        def put(name, shape, chunk, maxshape=None):
            g.create_dataset(f"{kind}_{name}", data=numbers(*shape), chunks=chunk, maxshape=maxshape, **more)
        put("single", (5, 7), (5, 7))
        put("fixed", (23, 31), (5, 7))
        put("fixed_larger", (23, 31), (5, 7), (40, 64))
        put("extensible", (23, 31), (5, 7), (None, 31))
        put("extensible_inner", (6, 23, 31), (2, 5, 7), (6, None, 50))
        put("tree", (23, 31), (5, 7), (None, None))
        put("five", (2, 3, 4, 5, 6), (1, 2, 3, 2, 4))
        d = g.create_dataset(f"{kind}_holes", shape=(5000,), chunks=(2,), dtype="<f8", **more)
        for at in (0, 77, 2050, 4999):
            d[at] = at
        if kind not in ("plain", "coded"):
            continue
        d = g.create_dataset(f"{kind}_holes_endless", shape=(400000,), chunks=(1,), maxshape=(None,), dtype="<i2", **more)
        for at in (0, 3, 4, 20, 100, 1000, 5000, 40000, 150000, 150001, 300000, 399999):
            d[at] = at % 1000 + 1
    early(g, "implicit", (23, 31), (5, 7))
    early(g, "early_endless", (30, 8), (4, 4), (UNLIMITED, 8))
    g.create_dataset("arrays", shape=(10, 3), chunks=(4, 2), dtype=np.dtype(("<f4", (2,))), compression=1)[...] = numbers(10, 3, 2)
    d = g.create_dataset("masks", shape=(4, 6), chunks=(2, 6), dtype="<f8", compression=1, shuffle=True)
    d[...] = numbers(4, 6)
    d.id.write_direct_chunk((0, 0), numbers(2, 6).tobytes(), 3)
    d = g.create_dataset("shrunk", data=numbers(40, 40), chunks=(4, 4), maxshape=(None, 60))
    d.resize((13, 9))
    grown = g.create_dataset("grown", data=numbers(10), chunks=(4,), maxshape=(None,))
    grown.resize((999,))
    grown[700:] = 5
    plain_edges(g)


def plain_edges(g):
    """Chunks at the edges without filters."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((5, 7))
    plist.set_deflate(3)
    if call("H5Pset_chunk_opts", ctypes.c_int64(plist.id), ctypes.c_uint(2)):
        h5py.h5d.create(g.id, b"plain_edges", h5py.h5t.IEEE_F64LE, h5py.h5s.create_simple((23, 31)), plist)
        g["plain_edges"][...] = numbers(23, 31)


def groups(f):
    g = f.create_group("groups")
    deep = g
    for i in range(40):
        deep = deep.create_group(f"d{i}")
    deep["bottom"] = 1
    deep["up"] = f["/groups"]  # a circle
    many = g.create_group("many")
    for i in range(300):
        many[f"a dataset with a name that is quite long {i * 7919 % 300:04}"] = np.int32(i)
    g["again"] = many
    g["same data"] = deep["bottom"]
    g["soft"] = h5py.SoftLink("/groups/many")
    g["lost"] = h5py.SoftLink("/nowhere")
    g["other"] = h5py.ExternalLink("other.h5", "/x")
    g["h\u00e4\u00df \u4e2d"] = 5
    busy = g.create_dataset("busy", data=numbers(3))
    for i in range(120):
        busy.attrs[f"attribute {i}"] = "x" * i
    ordered = g.create_group("ordered", track_order=True)
    for i in range(30):
        ordered[f"z{30 - i}"] = i
    g.create_group("nothing")
    h5py.h5o.link(h5py.h5d.create(f.id, None, h5py.h5t.STD_I8LE, h5py.h5s.create(h5py.h5s.SCALAR)), g.id, b"linked later")


def everything(path, **how):
    with h5py.File(path, "w", **how) as f:
        types(f)
        layouts(f)
        chunks(f)
        groups(f)


def small(path, **how):
    """A few KiB that have most of it."""
    with h5py.File(path, "w", **how) as f:
        f["a"] = numbers(6)
        f.create_dataset("g/b", data=numbers(4, 4, dtype=">i2"), chunks=(2, 3), maxshape=(None, 4), compression=1, shuffle=True)
        f.create_dataset("g/t", data=numbers(6), chunks=(2,), maxshape=(None,))
        f.create_dataset("g/c", data=numbers(5, dtype="<c8"), chunks=(2,))
        f.create_dataset("g/f", data=numbers(5, dtype="<f4"), chunks=(2,), fillvalue=1.5)
        f["link"] = f["g"]
        f.create_dataset("r", data=np.zeros(3, dtype=[("x", "<f8"), ("k", "i1")]))


def with_property_list(path, change):
    plist = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    change(plist)
    fid = h5py.h5f.create(str(path).encode(), h5py.h5f.ACC_TRUNC, plist)
    with h5py.File(fid) as f:
        f["a"] = numbers(12)
        f.create_dataset("g/b", data=numbers(9, 9), chunks=(2, 3), compression=1)
        f.create_dataset("g/c", data=numbers(9), chunks=(2,), maxshape=(None,))


def shared_messages(path, n=60, version=h5py.h5f.LIBVER_EARLIEST):
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_libver_bounds(version, h5py.h5f.LIBVER_LATEST)
    plist = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    hid = ctypes.c_int64(plist.id)
    if not (call("H5Pset_shared_mesg_nindexes", hid, ctypes.c_uint(2)) and
            call("H5Pset_shared_mesg_index", hid, ctypes.c_uint(0), ctypes.c_uint(1 << 3 | 1 << 1), ctypes.c_uint(1)) and
            call("H5Pset_shared_mesg_index", hid, ctypes.c_uint(1), ctypes.c_uint(1 << 5 | 1 << 11), ctypes.c_uint(8))):
        return []
    fid = h5py.h5f.create(str(path).encode(), h5py.h5f.ACC_TRUNC, plist, access)
    with h5py.File(fid) as f:
        for i in range(n):
            f.create_dataset(f"d{i}", data=numbers(6, 4), chunks=(2, 3), compression=1, shuffle=True, fillvalue=2.0)
            f[f"scalar{i}"] = np.int8(i)  # its shape is so short that it fits into an ID of the heap
    return [path]


def wide(path):
    """A group whose heap needs blocks of addresses of blocks of addresses, and has objects outside of them."""
    with h5py.File(path, "w", libver="latest") as f:
        for i in range(280):
            f["w" * 3000 + str(i)] = np.int16(i)
        for i in range(12):
            f["h" * 4090 + str(i)] = np.int16(i)  # too long for a block of the heap
    return [path]


def old_layouts(path):
    """Layout messages of version 1, which no library writes any more: those of version 3, changed in place."""
    with h5py.File(path, "w", libver="earliest") as f:
        f["a"] = numbers(6)
        f.create_dataset("b", data=numbers(9), chunks=(4,))
        a, size = f["a"].id.get_offset(), 48
    data = bytearray(path.read_bytes())
    at = data.index(bytes([3, 1]) + a.to_bytes(8, "little") + size.to_bytes(8, "little"))
    data[at:at + 24] = bytes([1, 1, 1]) + bytes(5) + a.to_bytes(8, "little") + (6).to_bytes(4, "little") + bytes(4)
    at = data.index(bytes([3, 2, 2]))
    tree, dims = data[at + 3:at + 11], data[at + 11:at + 19]
    data[at:at + 24] = bytes([1, 2, 2]) + bytes(5) + tree + dims
    path.write_bytes(data)
    return [path]


def virtual(path):
    source = path.with_name("source.h5")
    small(source)
    layout = h5py.VirtualLayout(shape=(6,), dtype="<f8")
    layout[:] = h5py.VirtualSource(str(source), "a", shape=(6,))
    with h5py.File(path, "w", libver="latest") as f:
        f.create_virtual_dataset("v", layout)
    return [path]


def netcdf(path):
    with netCDF4.Dataset(path, "w", format="NETCDF4") as f:
        f.createDimension("time", None)
        f.createDimension("x", 40)
        f.createDimension("y", 30)
        f.createVariable("x", "f8", ("x",))[:] = numbers(40)
        t = f.createVariable("T", "f4", ("time", "x", "y"), zlib=True, shuffle=True, chunksizes=(1, 16, 16), fill_value=-999)
        for i in range(5):
            t[i] = numbers(40, 30) * i
        f.createVariable("endian", ">i4", ("x",), endian="big")[:] = numbers(40)
        f.createVariable("words", str, ("x",))[0] = "text"
        g = f.createGroup("inner")
        g.createVariable("U", "f8", ("time", "y"), fletcher32=True)[:] = numbers(5, 30)
        f.title = "a file"
    return [path]


def many_chunks(path, n, libver, maximum, compression=None):
    """n chunks of one element in one dataset, or, in two dimensions without end, n in all."""
    with h5py.File(path, "w", libver=libver) as f:
        shape = (n,) if len(maximum) == 1 else (n // 100, 100)
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((1,) * len(shape))
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        if compression:
            plist.set_deflate(compression)
        maximum = tuple(UNLIMITED if m is None else n for m in maximum)
        h5py.h5d.create(f.id, b"d", h5py.h5t.STD_I32LE, h5py.h5s.create_simple(shape, maximum), plist)


def build(folder):
    """All of them; their paths."""
    out = []
    for version in VERSIONS:
        try:
            everything(folder / f"all_{version}.h5", libver=version)
        except ValueError:  # the library does not know the version
            continue
        if any(p.read_bytes() == (folder / f"all_{version}.h5").read_bytes() for p in out):
            continue  # the newest of an older library
        out.append(folder / f"all_{version}.h5")
        small(folder / f"small_{version}.h5", libver=version)
        out.append(folder / f"small_{version}.h5")
    for block, version in ((512, "earliest"), (4096, "latest")):
        path = folder / f"user_{block}.h5"
        everything(path, libver=version, userblock_size=block)
        out.append(path)
    moved = folder / "moved.h5"
    moved.write_bytes(b"#" * 1024 + (folder / "all_earliest.h5").read_bytes())
    out.append(moved)
    for sizes in ((4, 4), (8, 4), (4, 8), (2, 2)):
        path = folder / f"sizes_{sizes[0]}_{sizes[1]}.h5"
        with_property_list(path, lambda plist: plist.set_sizes(*sizes))
        out.append(path)
    def narrow(plist):  # trees of many levels, and a superblock of version 1
        hid = ctypes.c_int64(plist.id)
        call("H5Pset_sym_k", hid, ctypes.c_uint(1), ctypes.c_uint(1))
        call("H5Pset_istore_k", hid, ctypes.c_uint(1))
    with_property_list(folder / "narrow.h5", narrow)
    out.append(folder / "narrow.h5")
    with h5py.File(folder / "nothing.h5", "w"):
        out.append(folder / "nothing.h5")
    out += shared_messages(folder / "shared.h5") + shared_messages(folder / "shared_latest.h5", version=h5py.h5f.LIBVER_LATEST)
    out += old_layouts(folder / "old_layouts.h5") + virtual(folder / "virtual.h5") + wide(folder / "wide.h5")
    if netCDF4:
        out += netcdf(folder / "netcdf4.nc")
    if shutil.which("h5repack"):
        for name, words in [("chunked", ["-l", "CHUNK=3x2", "-f", "SHUF", "-f", "GZIP=3"]), ("newest", ["-L"]), ("contiguous", ["-l", "CONTI"])]:
            path = folder / f"repacked_{name}.h5"
            done = subprocess.run(["h5repack", *words, folder / "small_earliest.h5", path], capture_output=True)
            out += [path] if done.returncode == 0 else []
    return out
