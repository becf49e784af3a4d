#!/usr/bin/env python3
"""Files as ncgen, nccopy, netCDF4, NumPy, SciPy and gfortran write them: readers find each variable, and the bytes of its pieces are its values.

Debian's packages are found by Debian's python3, so the test runs itself by that one."""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

DEBIAN = "/usr/bin/python3"
if sys.executable != DEBIAN and os.path.exists(DEBIAN) and "VARVE_AGAIN" not in os.environ:
    os.execve(DEBIAN, [DEBIAN, *sys.argv], {**os.environ, "VARVE_AGAIN": "1"})

CHECK = pathlib.Path(os.environ["VARVE_BUILD"]) / "tests" / "outline_check"
try:
    import numpy as np
except ImportError:
    print("skip: there is no NumPy", file=sys.stderr)
    sys.exit(77)

TYPES = {"i1": "i8", "u1": "u8", "i2": "i16", "u2": "u16", "i4": "i32", "u4": "u32", "i8": "i64", "u8": "u64", "f4": "f32", "f8": "f64",
         "c8": "c64", "c16": "c128", "f2": "f16"}
done, left_out = [], []


def outline(path):
    """The outline, with the bytes of each variable's pieces in the order of their ordinals."""
    o = json.loads(subprocess.run([CHECK, path], check=True, capture_output=True, text=True).stdout)
    data = path.read_bytes()
    found = {}
    for number, v in enumerate(o["variables"]):
        pieces = sorted((p for p in o["pieces"] if p[0] == number), key=lambda p: p[3])
        v["bytes"] = b"".join(data[p[1]:p[1] + p[2]] for p in pieces)
        v["pieces"] = len(pieces)
        found[v["name"]] = v
    return o["format"], found


def same(what, got, want):
    assert got == want, f"{what}: {got!r}, not {want!r}"


def compare(where, v, values):
    """An array as a tool knows it, whatever its byte order there."""
    dtype = np.dtype(TYPES_BACK[v["type"]]).newbyteorder(">" if v["swapped"] else "<")
    same(f"{where}: type", v["type"], TYPES[values.dtype.str[1:]])
    same(f"{where}: shape", tuple(v["shape"]), values.shape)
    same(f"{where}: values", v["bytes"], values.astype(dtype).tobytes())


TYPES_BACK = {b: a for a, b in TYPES.items()}


def smooth(*shape, dtype="f8"):
    n = int(np.prod(shape))
    return (300 + 20 * np.sin(np.arange(n) / 17.0)).reshape(shape).astype(dtype)


def classic(path, kind):
    """netCDF4 writes what it likes of the classic formats."""
    import netCDF4
    wide = kind == "NETCDF3_64BIT_DATA"
    with netCDF4.Dataset(path, "w", format=kind) as d:
        d.createDimension("time", None)
        d.createDimension("y", 5)
        d.createDimension("x", 7)
        d.createDimension("len", 12)
        d.title = "a test"
        types = ["i1", "i2", "i4", "f4", "f8"] + (["u1", "u2", "u4", "i8", "u8"] if wide else [])
        for t in types:
            v = d.createVariable(f"fixed_{t}", t, ("y", "x"))
            v.units = "K"
            v[:] = smooth(5, 7).astype(t) if t not in ("i1", "u1") else np.arange(35).reshape(5, 7)
            r = d.createVariable(f"record_{t}", t, ("time", "y"))
            r[0:4] = (np.arange(20) * 3).reshape(4, 5)
        d.createVariable("scalar", "f8", ())[...] = 1.5
        d.createVariable("names", "S1", ("y", "len"))[:] = np.full((5, 12), b"a")


def check_classic(path):
    import netCDF4
    form, found = outline(path)
    same(path.name, form, "netcdf")
    with netCDF4.Dataset(path) as d:
        d.set_auto_maskandscale(False)
        same(f"{path.name}: variables", sorted(found), sorted("/" + n for n in d.variables))
        for name, var in d.variables.items():
            v = found["/" + name]
            if var.dtype == "S1":
                same(name, (v["type"], v["width"], v["shape"], v["bytes"]), ("bytes", var.shape[-1], list(var.shape[:-1]), var[:].tobytes()))
                continue
            compare(f"{path.name}: {name}", v, np.asarray(var[...]))
            records = name.startswith("record")
            same(f"{path.name}: {name}: pieces", v["pieces"], 4 if records else 1)


def netcdf(folder):
    try:
        import netCDF4  # noqa: F401
    except ImportError:
        left_out.append("netCDF4")
        return
    for kind in ("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"):
        path = folder / f"{kind}.nc"
        classic(path, kind)
        check_classic(path)
        done.append(kind)
    copies = {"classic": "1", "64-bit offset": "2", "cdf5": "5"}
    if not shutil.which("nccopy"):
        left_out.append("nccopy")
        return
    for kind, version in copies.items():
        path = folder / f"copy{version}.nc"
        subprocess.run(["nccopy", "-k", kind, folder / "NETCDF3_CLASSIC.nc", path], check=True)
        check_classic(path)
        done.append(f"nccopy {kind}")


CDL = """netcdf odd {
dimensions: time = UNLIMITED ; x = 3 ;
variables: short only(time, x) ;
data: only = 1, 2, 3, 4, 5, 6, 7, 8, 9 ;
}
"""


def ncgen(folder):
    """One record variable of 6 bytes: its slabs are not padded."""
    if not shutil.which("ncgen"):
        left_out.append("ncgen")
        return
    (folder / "odd.cdl").write_text(CDL)
    for kind in ("classic", "64-bit offset", "cdf5"):
        subprocess.run(["ncgen", "-k", kind, "-o", folder / "odd.nc", folder / "odd.cdl"], check=True)
        form, found = outline(folder / "odd.nc")
        same("odd.nc", form, "netcdf")
        compare("odd.nc", found["/only"], np.arange(1, 10, dtype="i2").reshape(3, 3))
        done.append(f"ncgen {kind}")


def numpy_files(folder):
    arrays = [smooth(4, 5, 6), smooth(4, 5, dtype="f4"), smooth(4, 5, dtype=">f8"), np.arange(10, dtype="u2"), smooth(7).astype("c16"), np.float32(7),
              np.zeros((3, 0)), np.arange(6, dtype="i8").reshape(1, 6)]
    for i, a in enumerate(arrays):
        path = folder / f"a{i}.npy"
        np.save(path, a)
        form, found = outline(path)
        same(path.name, form, "npy")
        if np.asarray(a).size:
            compare(path.name, found[f"/a{i}"], np.asarray(a))
    np.save(folder / "f.npy", np.asfortranarray(smooth(4, 5, 6)))
    v = outline(folder / "f.npy")[1]["/f"]
    compare("f.npy", v, smooth(4, 5, 6).transpose().copy())
    table = np.zeros(9, dtype=[("x", "<f4"), ("v", ">f8", (3,)), ("name", "S7")])
    np.save(folder / "t.npy", table)
    v = outline(folder / "t.npy")[1]["/t"]
    same("t.npy", (v["type"], v["width"], v["bytes"]), ("bytes", table.dtype.itemsize, table.tobytes()))
    np.save(folder / "o.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
    same("o.npy", outline(folder / "o.npy"), ("npy", {}))
    np.savez(folder / "z.npz", density=smooth(4, 5), velocity=smooth(3, 4, 5, dtype="f4"))
    form, found = outline(folder / "z.npz")
    same("z.npz", form, "npz")
    compare("z.npz", found["/density"], smooth(4, 5))
    compare("z.npz", found["/velocity"], smooth(3, 4, 5, dtype="f4"))
    np.savez_compressed(folder / "c.npz", density=smooth(4, 5))
    same("c.npz", outline(folder / "c.npz"), ("npz", {}))
    done.append("NumPy")


FORTRAN = """
program p
  real(4) :: level(40, 30)
  real(8) :: array(50, 60)
  integer :: i, j, k
  open(10, file='f.dat', form='unformatted', access='sequential')
  write(10) 42, 1.5d0
  do k = 1, 9
    do j = 1, 30
      do i = 1, 40
        level(i, j) = 300 + sin(i * 0.1 + j * 0.2 + k)
      end do
    end do
    write(10) level
  end do
  do j = 1, 60
    do i = 1, 50
      array(i, j) = exp(-i * 0.01d0) * j
    end do
  end do
  write(10) array
end program
"""


def series(record, n, marks, swapped):
    """n records as one piece, with the marks between them."""
    mark = len(record).to_bytes(marks, "big" if swapped else "little") * 2
    return len(record) * n + len(mark) * (n - 1)


def gfortran(folder):
    if not shutil.which("gfortran"):
        left_out.append("gfortran")
        return
    (folder / "p.f90").write_text(FORTRAN)
    for flags in ([], ["-fconvert=big-endian"], ["-frecord-marker=8"], ["-fmax-subrecord-length=20000"]):
        subprocess.run(["gfortran", "-O1", *flags, "-o", "p", "p.f90"], cwd=folder, check=True)
        subprocess.run([folder / "p"], cwd=folder, check=True)
        form, found = outline(folder / "f.dat")
        same(f"gfortran {flags}", form, "fortran")
        level = found["/a/4800"]
        same("levels", (level["type"], level["swapped"], level["pieces"]), ("f32", int("big" in str(flags)), 1))
        same("levels", len(level["bytes"]), series(bytes(4800), 9, 8 if "=8" in str(flags) else 4, level["swapped"]))
        array = found["/b/20000" if "subrecord" in str(flags) else "/b/24000"]
        same("array", (array["type"], array["pieces"]), ("f64", 1))
        done.append(" ".join(["gfortran", *flags]))


def scipy_files(folder):
    try:
        from scipy.io import FortranFile, netcdf_file
    except ImportError:
        left_out.append("SciPy")
        return
    with FortranFile(folder / "s.dat", "w") as f:
        f.write_record(smooth(5000))
        f.write_record(smooth(5000) + 1)
    form, found = outline(folder / "s.dat")
    same("s.dat", form, "fortran")
    compare("s.dat", found["/a/40000"], np.stack([smooth(5000), smooth(5000) + 1]))
    with netcdf_file(folder / "s.nc", "w") as f:
        f.createDimension("x", 9)
        f.createVariable("v", "f8", ("x",))[:] = smooth(9)
    compare("s.nc", outline(folder / "s.nc")[1]["/v"], smooth(9))
    done.append("SciPy")


def by_hand(folder):
    """A header that claims 2^31 variables, and a sparse file of 2 GiB: neither takes time nor memory."""
    (folder / "h.nc").write_bytes(b"CDF\1" + struct.pack(">8I", 0, 0, 0, 0, 0, 11, 1 << 31, 0))
    same("h.nc", outline(folder / "h.nc"), ("netcdf", {}))
    with open(folder / "sparse", "wb") as f:
        f.truncate(1 << 31)
    o = json.loads(subprocess.run([CHECK, folder / "sparse"], check=True, capture_output=True, text=True, timeout=20).stdout)
    same("sparse", o["format"], "opaque")
    done.append("by hand")


with tempfile.TemporaryDirectory() as name:
    for test in (by_hand, numpy_files, netcdf, ncgen, gfortran, scipy_files):
        test(pathlib.Path(name))
print("done:", ", ".join(done))
if left_out:
    print("left out, not installed:", ", ".join(left_out))
