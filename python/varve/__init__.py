"""Checkpoint-restart that stores only changed data.

A session saves arrays in place, and plain values:

>>> import tempfile, varve
>>> folder = tempfile.TemporaryDirectory()
>>> T = bytearray(4096)
>>> with varve.open(folder.name, "run1", keep=3) as v:
...     v["T"] = T
...     v["step"] = 0
...     v.restart()
...     T[:3] = b"hot"
...     v["step"] = 400
...     v.label("step-400")
...     v.checkpoint()
False
1

A program that starts again continues from there:

>>> T = bytearray(4096)
>>> with varve.open(folder.name, "run1") as v:
...     v["T"] = T
...     v.restart(), v["step"], bytes(T[:3])
(True, 400, b'hot')

Any program can read the epochs of a store:

>>> for e in varve.Store(folder.name)["run1"]:
...     e.number, e.label, e["step"], e["T"].read_bytes(0, 3)
(1, 'step-400', 400, b'hot')
>>> folder.cleanup()

docs/python.md is the reference.
"""
from ._native import (Busy, Damaged, Denied, Error, Failed, Invalid, Mismatch, NoMemory, NoSpace, NotFound, NotSupported,
                       PeerFailed, __version__, native_version)
from ._session import Session, open
from ._store import Epoch, Lineage, Region, Store

__all__ = ["Busy", "Damaged", "Denied", "Epoch", "Error", "Failed", "Invalid", "Lineage", "Mismatch", "NoMemory", "NoSpace",
           "NotFound", "NotSupported", "PeerFailed", "Region", "Session", "Store", "native_version", "open"]
