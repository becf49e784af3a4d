#!/usr/bin/env python3
"""The benchmark mount.read: a packed file read through `varve mount`, against a file of as many bytes beside the store. bench/run starts it.

usage: mount.py --build DIR --dir DIR [--full] [--size N] [--rounds N] NAME...

Both are read in turn by `dd bs=1M`, after the page cache has dropped the files; each round begins with the other one, and the ratio is the median of the
rounds' ratios. A request waits until two processes get a core: on a machine that has other work, run it as `chrt -r 20 bench/run mount.read`. The file is
noise, which is stored as it is. The memory is the most that the process of the mount had; `compressed` is a file of text-like bytes, stored compressed.
"""
import contextlib
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

from telling import arguments, die, entry, say, skip, tell

MiB = 1 << 20
CACHE = 128  # MiB of decoded blocks, as the documentation says
TABLES = 64  # MiB: the process without blocks: code, tables, stacks and buffers of threads


def make(path, size, compressed):
    with open(path, "wb") as f:
        for i in range(0, size, MiB):
            f.write(b"".join(b"%015d\n" % (k * k) for k in range(i >> 4, (i + MiB) >> 4)) if compressed else os.urandom(MiB))
        f.flush()
        os.fsync(f.fileno())


def drop(*files):
    """From the page cache. The files are on the disk already."""
    for file in files:
        with open(file, "rb") as f:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def seconds(path):
    start = time.monotonic()
    subprocess.run(["dd", f"if={path}", "of=/dev/null", "bs=1M", "status=none"], check=True)
    return time.monotonic() - start


@contextlib.contextmanager
def mounted(varve, store, at):
    at.mkdir()
    process = subprocess.Popen([varve, "mount", "-f", store, at], stderr=subprocess.PIPE)
    while process.poll() is None and not os.path.ismount(at):
        time.sleep(0.01)
    if process.poll() is not None:
        skip(f"mount.read: {process.stderr.read().decode(errors='replace').strip()}")
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def most_memory(pid):
    """Of a process that runs, bytes: its own, without pages of mapped files."""
    status = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) * 1024 - int(status["RssFile"].split()[0]) * 1024


def measure(args, folder, name):
    varve, store, at = pathlib.Path(args.build) / "varve", folder / "store", folder / name
    file, plain, compressed = folder / f"{name}.file", folder / f"{name}.plain", name == "compressed"
    make(file, args.size, compressed)
    shutil.copyfile(file, plain)
    subprocess.run([varve, "pack", store, name, file.name], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    file.unlink()
    os.sync()
    layers = [p for p in (store / name).rglob("*") if p.is_file()]
    direct, through = [], []
    for i in range(args.rounds):
        for which in ("plain", "mount") if i % 2 else ("mount", "plain"):
            drop(plain, *layers)
            if which == "plain":
                direct.append(seconds(plain))
                continue
            with mounted(varve, store, folder / f"{name}.{i}") as pid:
                through.append(seconds(folder / f"{name}.{i}" / name / "latest" / file.name))
                most = most_memory(pid)
                if i == 0 and subprocess.run(["cmp", plain, folder / f"{name}.{i}" / name / "latest" / file.name]).returncode:
                    die("mount.read: other bytes came back")
                most = max(most, most_memory(pid))
    ratio = statistics.median(d / t for d, t in zip(direct, through))
    tell("mount.read", name, "rate", args.size / statistics.median(through) / 1e6, "MB/s")
    tell("mount.read", name, "rate_direct", args.size / statistics.median(direct) / 1e6, "MB/s", baseline=True)
    tell("mount.read", name, "rate_ratio", ratio, "x", at_least=None if compressed else 0.8)
    tell("mount.read", name, "memory", most / MiB, "MiB", at_most=CACHE + TABLES)


def main():
    args = arguments(["mount.read"], "1 GiB instead of 512 MiB").parse_args()
    args.size = args.size or (1024 if args.full else 512) * MiB
    args.rounds = args.rounds or (9 if args.full else 3)
    say(f"mount.read: {args.size >> 20} MiB, {args.rounds} rounds")
    with tempfile.TemporaryDirectory(dir=args.dir, prefix="mount-") as folder:
        for name in "stored", "compressed":
            measure(args, pathlib.Path(folder), name)
    return 0


if __name__ == "__main__":
    entry(main)
