"""Checkpoints of programs that use PyTorch: Checkpointer, a storage of Distributed Checkpoint, save() and load().

docs/start/pytorch.md is the beginning, docs/migrate/torch.md compares with torch.save and other ways.
"""
from __future__ import annotations

import importlib
import os
import sys
import typing

import torch

from ._checkpointer import NODES, VIEWS, Checkpointer, Collected, Filling, Plan, Stored, nodes_text
from ._native import Damaged, Invalid, NotFound, RegionInfo, check, encode, native
from ._safetensors import load as load_safetensors, save as save_safetensors
from ._session import Session
from ._store import Epoch, Region, Store
from ._tree import Decoder, Refused

if typing.TYPE_CHECKING:
    from ._dcp import Reader, Writer
    from ._folder import export_dcp, import_dcp

__all__ = ["Checkpointer", "RandomState", "Reader", "Refused", "Writer", "export_dcp", "import_dcp", "load", "load_safetensors", "save",
           "save_safetensors"]
_LATER = {"Reader": "_dcp", "Writer": "_dcp", "export_dcp": "_folder", "import_dcp": "_folder"}  # they import Distributed Checkpoint


def __getattr__(name: str) -> typing.Any:
    if name in _LATER:
        return getattr(importlib.import_module(f"varve.{_LATER[name]}"), name)
    raise AttributeError(f"module 'varve.torch' has no attribute {name!r}")


class RandomState:
    """The random generators of PyTorch, of all its GPUs, of Python, and of NumPy if it is used: an object to protect."""

    def state_dict(self) -> dict[str, typing.Any]:
        import random
        state = {"torch": torch.get_rng_state(), "python": random.getstate()}
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            state["cuda"] = torch.cuda.get_rng_state_all()
        if "numpy" in sys.modules:
            state["numpy"] = sys.modules["numpy"].random.get_state()
        return state

    def load_state_dict(self, state: dict[str, typing.Any]) -> None:
        import random
        torch.set_rng_state(state["torch"])
        random.setstate(state["python"])
        if "cuda" in state and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(state["cuda"])
        if "numpy" in state:
            importlib.import_module("numpy").random.set_state(state["numpy"])


def _split(place: str | os.PathLike) -> tuple[str, str, str | None]:
    """STORE://LINEAGE or STORE://LINEAGE@EPOCH."""
    store, mark, rest = os.fspath(place).rpartition("://") if isinstance(place, (str, os.PathLike)) else ("", "", "")
    lineage, _, epoch = rest.partition("@")
    if not store or not lineage:
        raise Invalid(f"{place!r} is no place of an epoch: it is a store, '://', and the name of a lineage, such as 'ckpt://run1'")
    return store, lineage, epoch or None


def save(obj: typing.Any, place: str | os.PathLike, *, label: str | None = None, **options: typing.Any) -> int:
    """As torch.save(): stores tensors, arrays and plain values, in any nesting. Returns the number of the epoch, which is durable.

    >>> import tempfile, torch, varve.torch
    >>> folder = tempfile.TemporaryDirectory()
    >>> varve.torch.save({"w": torch.arange(3.0), "step": 7}, folder.name + "://run1")
    1
    >>> varve.torch.load(folder.name + "://run1")
    {'w': tensor([0., 1., 2.]), 'step': 7}
    >>> folder.cleanup()
    """
    store, lineage, epoch = _split(place)
    if epoch is not None:
        raise Invalid(f"{place!r} names an epoch; save() makes the next one, and label= gives it a name")
    collected = Collected({"": obj}, keeps=False)
    plan = Plan(collected)
    options.setdefault("mode", "sync")
    with Session(store, lineage, **options) as v:
        plan.refresh()
        v._declare_all(plan.memory)
        if label is not None:
            v.label(label)
        with v._handle as pointer:
            v._write(pointer, NODES, nodes_text(collected.nodes))
            v._write(pointer, VIEWS, plan.text)
        return v.checkpoint()


def load(place: str | os.PathLike, map_location: typing.Any = None, *, rank: int = 0, **options: typing.Any) -> typing.Any:
    """As torch.load(), but reading executes nothing. 'ckpt://run1' is the newest epoch, 'ckpt://run1@7' or '@LABEL' another one.

    Of an epoch that a Checkpointer wrote it returns a dict of the states by name; a function in them is None.
    """
    store, lineage, which = _split(place)
    if map_location is not None and not isinstance(map_location, (str, torch.device)):
        raise TypeError("map_location is a device or its name")
    found = Store(store, **options)[lineage] if lineage in Store(store, **options) else None
    if found is None or (which is None and not len(found)):
        raise NotFound(f"store '{store}' has no epoch of lineage '{lineage}'")
    epoch = found[-1 if which is None else int(which) if which.isdigit() else which]
    return _read(epoch.rank(rank) if rank else epoch, map_location)


def _read(epoch: Epoch, device: typing.Any) -> typing.Any:
    where = repr(epoch)
    texts = [epoch[name].read_bytes() if name in epoch else None for name in (NODES, VIEWS)]
    if texts[0] is None or texts[1] is None:
        raise NotFound(f"{where} was not written by varve.torch; varve.Store reads its regions")
    stored = Stored(texts[0], texts[1], where)

    def size(name: str) -> RegionInfo:
        region = epoch[name] if name in epoch else None
        if not isinstance(region, Region):
            raise ValueError(f"there is no region '{name}'")
        type_, bytes_, shape, _ = epoch._content()[0][name]
        info = RegionInfo(bytes_, type_, len(shape))
        info.shape[:len(shape)] = shape
        return info

    filling = Filling(stored, stored.leaves(stored.objects), Collected({}, keeps=False), size, device)
    for name, m in filling.memory.items():
        check(native().varve_reader_read(epoch._reader.pointer, epoch.number, epoch._rank, encode("name", name), 0, size(name).bytes, m.address))
    decoder = _Loader(filling.finished)
    try:
        objects = {name: decoder.decode(node) for name, node in stored.objects.items()}
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as e:
        raise Damaged(f"{where} is not what varve.torch writes: {e}") from None
    return objects[""] if list(objects) == [""] else objects


class _Loader(Decoder):
    def _tagged(self, kind: str, v: typing.Any, present: typing.Any) -> typing.Any:
        return None if kind == "kept" else super()._tagged(kind, v, present)
