#!/usr/bin/env python3
# ctest: COST 10
"""Sessions over mpi4py: restart, load, labels, and values that are damaged on one rank."""
import os
import pathlib
import subprocess
import sys
import tempfile

import package

np = package.numpy()
if "OMPI_COMM_WORLD_RANK" not in os.environ and "PMI_RANK" not in os.environ:
    mpiexec = os.environ.get("VARVE_MPIEXEC", "")
    if not mpiexec or not (package.BUILD / "libvarve_mpi.so.0").exists():
        package.skip("varve was built without MPI")
    if subprocess.run([sys.executable, "-c", "import mpi4py"], stderr=subprocess.DEVNULL).returncode:
        package.skip(f"no mpi4py for {sys.executable} (package python3-mpi4py)")
    with tempfile.TemporaryDirectory() as folder:
        for ranks in (1, 3):
            subprocess.run([*mpiexec.split(), "-n", str(ranks), sys.executable, __file__, f"{folder}/{ranks}"], check=True, timeout=300)
    sys.exit(0)

from mpi4py import MPI
import varve.mpi

comm, store = MPI.COMM_WORLD, pathlib.Path(sys.argv[1])
with varve.mpi.open(comm, store, "l", keep=3) as v:
    assert (v.rank, v.size) == (comm.rank, comm.size)
    x = v["x"] = np.full(10000 + comm.rank, comm.rank + 1.0)
    v["n"] = 0
    assert not v.restart() and not v.load()
    for i in range(3):
        v["n"], v["text"] = i, f"needle{i}-{comm.rank}"
        x += 1
        v.label(f"step-{i}")
        v.checkpoint()
    assert v.wait() and v.due() and v.epoch == 3
with varve.mpi.open(comm, store, "l") as v:
    x[:] = 0
    v["x"] = x
    assert v.restart("step-1") and v["n"] == 1 and (x == comm.rank + 3).all()
with varve.mpi.open(comm, store, "l") as v:
    assert v.load() and v["n"] == 2
    assert v["x"].shape == x.shape and (v["x"] == comm.rank + 4).all()
if comm.rank == comm.size - 1:  # the values of the newest epoch of one rank
    needle = f"needle2-{comm.rank}".encode()
    layer, = [p for p in store.rglob("*.layer") if needle in p.read_bytes()]
    layer.chmod(0o644)
    layer.write_bytes(layer.read_bytes().replace(needle, needle[::-1]))
comm.Barrier()
for call in ("restart", "load"):
    with varve.mpi.open(comm, store, "l", log="error") as v:
        v["x"] = x
        import warnings
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert getattr(v, call)() and v.epoch == 2 and v["n"] == 1, (call, v.epoch)
        try:
            v.restart(3)
            raise AssertionError("a damaged epoch")
        except varve.Damaged:
            pass
try:
    varve.mpi.open(None, store, "l")
    raise AssertionError("no communicator")
except varve.Invalid:
    pass
