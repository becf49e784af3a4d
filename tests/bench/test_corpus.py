#!/usr/bin/env python3
# ctest: TIMEOUT 600 COST 60
"""The corpus: one seed gives the same bytes twice and another seed gives others; packed at each level every kind comes back,
and a higher level is never larger than a lower one by more than 0.1 %. The seed is another one in each run, and is printed."""
import filecmp
import os
import pathlib
import subprocess
import sys
import tempfile
import time

CORPUS = pathlib.Path(os.environ["VARVE_SOURCE"]) / "bench" / "corpus"
VARVE = os.environ["VARVE_BIN"]
LEVELS = ("fast", "default", "max")
LAYER_NAMES = 64  # bytes by which times and identities of a lineage make two stores differ, for each epoch


def make(folder, seed, *words):
    done = subprocess.run([CORPUS, "--seed", str(seed), "--size", "300000", "--epochs", "3", *words, folder], capture_output=True, text=True)
    if done.returncode == 77:
        print(f"skip: {done.stderr.strip()}", file=sys.stderr)
        sys.exit(77)
    assert done.returncode == 0, done.stderr
    return dict(reversed(line.split()) for line in done.stdout.splitlines()[1:])


def files(folder):
    return sorted(p.relative_to(folder) for p in folder.rglob("*") if p.is_file())


def size(folder):
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())


def pack(kind, level, folder):
    store, back = folder / f"{kind.name}.{level}", folder / "back"
    subprocess.run([VARVE, "pack", "-q", "--level", level, store, "set", "--each", *sorted(e.name for e in kind.iterdir())], cwd=kind, check=True)
    subprocess.run([VARVE, "unpack", "-q", store, "set", "--each", "-C", back], check=True)
    same, different, failed = filecmp.cmpfiles(kind, back, files(kind), shallow=False)
    assert not different and not failed, f"{kind.name}, {level}: {different} {failed}"
    subprocess.run([VARVE, "verify", "-q", store], check=True)
    subprocess.run(["rm", "-r", back], check=True)
    return size(store)


with tempfile.TemporaryDirectory() as name:
    folder, seed = pathlib.Path(name), time.time_ns() % (1 << 31)
    print(f"seed {seed}")
    uses = make(folder / "one", seed)
    assert len(uses) >= 20 and 10 <= list(uses.values()).count("judging") <= len(uses) - 10, uses
    kinds = "ocean,log,amr,heap,train_sgd"
    make(folder / "again", seed, "--kinds", kinds)
    make(folder / "other", seed + 1, "--kinds", kinds)
    for k in kinds.split(","):
        for f in files(folder / "one" / k):
            data = [(folder / which / k / f).read_bytes() for which in ("one", "again")]
            assert data[0] == data[1], f"{k}/{f}: one seed, two contents"
        assert any((folder / "other" / k / f).read_bytes() != (folder / "one" / k / f).read_bytes() for f in files(folder / "other" / k)
                   if (folder / "one" / k / f).exists()), f"{k}: two seeds, one content"
    failed = []
    for kind in sorted((folder / "one").iterdir()):
        kept = [pack(kind, level, folder / "stores") for level in LEVELS]
        for low, high, a, b in zip(LEVELS, LEVELS[1:], kept, kept[1:]):
            if b > a * 1.001 + 3 * LAYER_NAMES:
                failed.append(f"{kind.name}: {high} has {b} bytes, {low} {a}")
    assert not failed, "\n".join(failed)
