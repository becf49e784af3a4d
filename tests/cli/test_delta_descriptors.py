"""A layer whose blocks are differences to those of many older layers: its readers keep few descriptors open, however many layers the bases lie in."""
import array
import os
import pathlib
import random
import resource
import subprocess
import tempfile

VARVE = os.environ["VARVE_BIN"]
LAYERS, FEW = 24, 16


def run(*command, files=None, **more):
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, preexec_fn=limit if files else None, **more)
    assert done.returncode == 0, "%s: %d\n%s%s" % (command, done.returncode, done.stdout, done.stderr)
    return done.stdout


def npy(values):
    head = "{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }" % len(values)
    return b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + head.ljust(117).encode() + b"\n" + values.tobytes()


def main():
    if "zstd" not in run(VARVE, "config"):
        print("built without zstd: no differences")
        return
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        store, names = folder / "store", ["v%d.npy" % i for i in range(LAYERS)]

        def pack(values):
            for name, v in zip(names, values):
                (folder / name).write_bytes(npy(v))
            run(VARVE, "pack", "-c", "delta=max", store, "run", *names, cwd=folder)

        values = [array.array("d", [rng.gauss(0, 1) for _ in range(16000)]) for _ in range(LAYERS)]
        pack(values)
        for v in values:
            v[:] = array.array("d", [rng.gauss(0, 1) for _ in v])
            pack(values)
        for v in values:
            v[:] = array.array("d", [x * 1.0000001 for x in v])
        pack(values)
        blocks = run(VARVE, "show", "--blocks", store, "run")
        assert blocks.count(" delta ") == LAYERS, blocks
        run(VARVE, "verify", store, "run", files=FEW)
        run(VARVE, "unpack", "-C", folder / "out", store, "run", files=FEW)
        for name, v in zip(names, values):
            assert (folder / "out" / name).read_bytes() == npy(v), name


main()
