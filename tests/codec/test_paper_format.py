#!/usr/bin/env python3
"""Blocks of codec 5 as the library wrote them, read by tools/layer_read.py, which knows docs/format.md and nothing else."""
import hashlib
import os
import pathlib
import sys

source = pathlib.Path(os.environ["VARVE_SOURCE"])
sys.path.insert(0, str(source / "tools"))
import layer_read

DOUBLES, FLOATS, BYTES = "5ca5521cd6ffbeb1", "5361e2c483a48623", "d33cb1581636300c"  # begins of the SHA-256 of what was coded
WHOLE = {"fpc": (803, DOUBLES), "fpc-deflated": (803, DOUBLES), "fpzip-8": (803, DOUBLES), "fpzip-8-deflated": (803, DOUBLES),
         "fpzip-4-swapped": (401, FLOATS), "fpzip-4-swapped-deflated": (401, FLOATS), "lz": (401, BYTES), "lz-deflated": (401, BYTES),
         "deflated": (401, BYTES)}
DAMAGED = {"fpzip-8-cut": 803, "fpzip-beyond-range": 64, "first-pass-too-long": 800}
corpus = source / "fuzz/corpus/paper"


def decode(name, length):
    return layer_read.decode_paper((corpus / name).read_bytes(), length)


for name, (length, digest) in WHOLE.items():
    try:
        data = decode(name, length)
    except layer_read.Unable as missing:
        print(f"{name}: {missing}")
        continue
    assert data is not None and len(data) == length, name
    assert hashlib.sha256(data).hexdigest().startswith(digest), name
    assert decode(name, length - 1) is None and decode(name, length + 1) is None, name
for name, length in DAMAGED.items():
    assert decode(name, length) is None, name
