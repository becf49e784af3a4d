"""Every golden store decodes: by the library, by `varve verify`, and by the independent reader.

test_golden.py delta STORE    writes the store of packed files with blocks that are differences
test_golden.py match STORE    the same with blocks that recur in their base at other places
test_golden.py text STORE     the same with text in columns"""
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

build, source = pathlib.Path(os.environ["VARVE_BUILD"]), pathlib.Path(os.environ["VARVE_SOURCE"])


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True)


def codecs_missing():
    shown = run(os.environ["VARVE_BIN"], "config").stdout
    return [codec for codec in ("lz4", "zstd") if codec not in shown]


def packed(epoch):
    """The files of an epoch: numbers, of which more and more are a little larger, with the low byte first or the high one; and bytes."""
    rng = random.Random(1)
    numbers = [rng.getrandbits(24) for _ in range(12000)]
    files = {}
    for i in range(0, len(numbers), 7):
        numbers[i] += epoch * 3
    for name, order in (("little.npy", "little"), ("big.npy", "big")):
        head = "{'descr': '%si4', 'fortran_order': False, 'shape': (%d,), }" % ("<" if order == "little" else ">", len(numbers))
        body = b"".join(number.to_bytes(4, order) for number in numbers)
        files[name] = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + head.ljust(117).encode() + b"\n" + body
    files["bytes"] = bytes(rng.getrandbits(8) for _ in range(40000))
    files["bytes"] = bytes(byte ^ (epoch if i % 50 == 0 else 0) for i, byte in enumerate(files["bytes"]))
    return files


def moved(epoch):
    """Lines of text: some more in front in each epoch, and another order."""
    rng = random.Random(2)
    lines = [b"%d %x %d\n" % (i, rng.getrandbits(60), i * i) for i in range(3000)]
    lines = lines[400 * epoch:] + [b"epoch %d line %d\n" % (epoch, i) for i in range(epoch)] + lines[:400 * epoch]
    return {"text": b"".join(lines)}


def table(epoch):
    """A table as text, of which a tenth of the rows changes; numbers of many forms."""
    rng, odd = random.Random(3), ["-0", "00012", "1e5", "+3", "NaN", "1.", ".5", "12345678901234567890", "-0.50", "x"]
    rows = [[i, rng.randrange(40), rng.gauss(20, 5), rng.random() * 100, rng.choice(odd), rng.gauss(0, 1)] for i in range(3000)]
    for i in range(0, len(rows), 10):
        rows[i][2] += epoch
    rows = rows[5 * epoch:] + rows[:epoch]
    return {"table.csv": "".join("%d,sensor_%d,%.2f,%8.3f %s %16.8E\r\n" % tuple(row) for row in rows)[:-2].encode()}


PACKED = {"v1-delta": packed, "v1-match": moved, "v1-text": table}


def make_packed(store, files):
    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(1, 4):
            for name, data in files(epoch).items():
                (pathlib.Path(folder) / name).write_bytes(data)
            done = run(os.environ["VARVE_BIN"], "pack", "-o", "delta=max", "-C", folder, store, "golden", *files(epoch))
            assert done.returncode == 0, done.stderr


def check_packed(store):
    for epoch in range(1, 4):
        back = store.with_suffix(".%d" % epoch)
        done = run(os.environ["VARVE_BIN"], "unpack", store, "golden@%d" % epoch, "-C", back)
        assert done.returncode == 0, done.stderr
        assert {file.name: file.read_bytes() for file in back.iterdir()} == PACKED[store.name](epoch), "epoch %d" % epoch


def check(store):
    if store.name in PACKED:
        check_packed(store)
    for command in ([build / "tests/golden_check", "check", store], [os.environ["VARVE_BIN"], "verify", store],
                    [sys.executable, source / "tools/layer_read.py", "check", store]):
        done = run(*command) if store.name not in PACKED or command[1] != "check" else None
        assert not done or done.returncode == 0, "%s: %s%s" % (command, done.stdout, done.stderr)


def refuse(store):
    """A build that lacks a codec says so, and gives nothing wrong."""
    for command in ([build / "tests/golden_check", "check", store], [os.environ["VARVE_BIN"], "verify", store]):
        if store.name in PACKED and command[1] == "check":
            command = [os.environ["VARVE_BIN"], "unpack", store, "golden@3", "--test"]
        done = run(*command)
        told = done.stdout + done.stderr
        assert done.returncode in (1, 2) and "built without" in told, "%s: %d, %s" % (command, done.returncode, told)


def main():
    stores = sorted(path for path in (source / "tests/golden").iterdir() if path.is_dir())
    assert stores, "no golden store"
    able = not codecs_missing()
    folder = pathlib.Path(tempfile.mkdtemp(dir=build))
    try:
        for golden in stores:
            shutil.copytree(golden, folder / golden.name)
            (check if able else refuse)(folder / golden.name)
            print(golden.name, "decodes" if able else "is refused: built without " + ", ".join(codecs_missing()))
    finally:
        shutil.rmtree(folder)


if sys.argv[1:]:
    make_packed(pathlib.Path(sys.argv[2]), PACKED["v1-" + sys.argv[1]])
else:
    main()
