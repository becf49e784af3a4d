#!/usr/bin/env python3
"""Golden blocks of codec 4, decoded by tools/layer_read.py, which knows docs/format.md and nothing else."""
import os
import pathlib
import sys

source = pathlib.Path(os.environ["VARVE_SOURCE"])
sys.path.insert(0, str(source / "tools"))
import layer_read

golden = source / "tests/codec/golden"
decoded = 0
for line in (golden / "list").read_text().splitlines():
    name, length, digest = line.split()
    try:
        data = layer_read.decode_typed((golden / name).read_bytes(), int(length))
    except layer_read.Unable as unable:
        print(unable)
        continue
    if data is None or layer_read.DIGESTS[2](data).hex() != digest:
        sys.exit(f"block {name} decodes to other bytes")
    decoded += 1
print(f"{decoded} blocks")
sys.exit(0 if decoded else 77)
