"""A storage for PyTorch's Distributed Checkpoint: the protocol of 1.13 (torch.distributed._shard.checkpoint) and of 2.x
(torch.distributed.checkpoint). Planners work unchanged.

Each rank's items are regions of its layer. A text in each layer lists them, with what is needed to make the metadata: no pickle is
stored or read by varve. (The default planners of PyTorch pickle values that are not tensors.)
"""
from __future__ import annotations

import dataclasses
import importlib
import io
import itertools
import json
import math
import os
import threading
import typing

import torch
from torch.futures import Future

from ._checkpointer import group_of
from ._declare import Memory
from ._native import Damaged, NotFound, check, encode, native
from ._session import Session
from ._store import Epoch, Region, Store
from ._tensors import Layout, View, view_of
from ._tree import Decoder, Encoder, dtype_of

ITEMS = "torch.items.json"
_FORMAT = 1


def _protocol() -> typing.Any:
    """The package of Distributed Checkpoint: its classes StorageWriter and StorageReader, and the modules planner and metadata."""
    for name in ("torch.distributed.checkpoint", "torch.distributed._shard.checkpoint"):
        try:
            package = importlib.import_module(name)
        except ImportError:
            continue
        except ValueError as e:
            raise ImportError(f"PyTorch {torch.__version__} cannot import its Distributed Checkpoint with this version of Python: {e}") from None
        if hasattr(package, "StorageWriter"):
            return package
    raise ImportError(f"PyTorch {torch.__version__} has no Distributed Checkpoint; varve.torch.Writer needs 1.13 or later")


_package = _protocol()
_storage, _planner, _metadata = (importlib.import_module(f"{_package.__name__}.{m}") for m in ("storage", "planner", "metadata"))


def _properties_class() -> typing.Any:
    """In 2.x it is beside the metadata, in 1.13 beside ShardedTensor."""
    found = getattr(_metadata, "TensorProperties", None)
    return found or importlib.import_module("torch.distributed._shard.sharded_tensor.metadata").TensorProperties


_LAYOUTS = {str(x): x for x in (torch.strided,)}
_FORMATS = {str(x): x for x in (torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d)}


def _put_properties(p: typing.Any) -> dict[str, typing.Any]:
    return {"dtype": str(p.dtype), "layout": str(p.layout), "requires_grad": bool(p.requires_grad), "memory_format": str(p.memory_format),
            "pin_memory": bool(p.pin_memory)}


def _get_properties(p: dict[str, typing.Any]) -> typing.Any:
    return _properties_class()(dtype=dtype_of(p["dtype"]), layout=_LAYOUTS[p["layout"]], requires_grad=bool(p["requires_grad"]),
                               memory_format=_FORMATS[p["memory_format"]], pin_memory=bool(p["pin_memory"]))


class _Item(typing.NamedTuple):
    """Where an item of a plan is: a view of a region, or the bytes of one."""
    rank: int
    view: View | None
    region: str | None


class Writer(_storage.StorageWriter):  # type: ignore[misc,name-defined]
    """A StorageWriter of Distributed Checkpoint: each save is an epoch of a lineage, with all ranks of torch.distributed.

        writer = varve.torch.Writer("ckpt", "run1", keep=3)
        dcp.save(state_dict, storage_writer=writer)

    A save returns when the epoch is durable on all ranks. With wait=False it returns as soon as the tensors may be changed (in the
    background mode), and the next save or close() reports an error. One writer serves all saves. Content that is stored already, of
    any rank and any epoch, is not stored again.
    """

    def __init__(self, store: str | os.PathLike, lineage: str, *, label: str | None = None, wait: bool = True, group: typing.Any = "auto",
                 **options: typing.Any):
        super().__init__()
        self._place, self._group, self._options = (store, lineage), group, options
        self._labels = threading.local()  # dcp.async_save() calls reset() here, and again in the thread that saves
        self._first_label, self._wait = label, wait
        self._session: Session | None = None
        self._opening = threading.Lock()

    def open(self) -> Session:
        """The session, opened by all ranks together at their first save."""
        with self._opening:
            if self._session is None:
                self._session = Session(*self._place, _group=group_of(self._group), **self._options)
            return self._session

    def close(self) -> None:
        """Waits for the last epoch, on all ranks."""
        if self._session is not None:
            self._session.close()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *error: typing.Any) -> None:
        if self._session is not None:
            self._session.__exit__(*error)

    # ---- the protocol ------------------------------------------------------------------------------------------------

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """2.x: the checkpoint_id of dcp.save() is the label of the epoch.

        dcp.async_save() makes this call before its thread begins. So groups are made where the program makes its own.
        """
        self.open()
        self._labels.next = None if checkpoint_id is None else os.fspath(checkpoint_id)

    def init(self, is_coordinator: bool) -> None:
        """1.13."""

    def set_up_storage_writer(self, is_coordinator: bool, *_: typing.Any, **_more: typing.Any) -> None:
        """2.x."""

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """2.x: whether a storage can be found from an id alone. It cannot: name the writer."""
        return False

    def storage_meta(self) -> typing.Any:
        """2.x."""
        return None

    def prepare_local_plan(self, plan: typing.Any) -> typing.Any:
        return plan

    def prepare_global_plan(self, plans: list[typing.Any]) -> list[typing.Any]:
        return plans

    def write_data(self, plan: typing.Any, planner: typing.Any) -> Future:
        results = self._write(plan, planner)
        future: Future = Future()
        future.set_result(results)
        return future

    def finish(self, metadata: typing.Any, results: typing.Any) -> None:
        """The epoch is committed by all ranks in write_data(), and the layers have the metadata."""

    # ---- an epoch ----------------------------------------------------------------------------------------------------

    def _write(self, plan: typing.Any, planner: typing.Any) -> list[typing.Any]:
        tensors: list[typing.Any] = []
        texts: list[typing.Any] = []
        for item in plan.items:
            data = planner.resolve_data(item)
            is_tensor = isinstance(data, torch.Tensor)
            (tensors if is_tensor else texts).append((item, data if is_tensor else data.getvalue()))
        layout = Layout([_path(item) for item, _ in tensors], [t for _, t in tensors])
        layout.refresh()
        memory, rows = dict(layout.memory), []
        for (item, t), view in zip(tensors, layout.views):
            size, properties = getattr(item.tensor_data, "size", t.shape), getattr(item.tensor_data, "properties", None)
            chunk = item.tensor_data.chunk
            rows.append({"name": item.index.fqn, "offset": None if item.index.offset is None else list(item.index.offset), "index": item.index.index,
                         "view": view, "size": list(size), "at": list(chunk.offsets), "shape": list(chunk.sizes), "properties": _put_properties(properties)})
        for item, text in texts:
            name = item.index.fqn
            while name in memory:
                name += "#"
            buffer = torch.frombuffer(bytearray(text or b"\0"), dtype=torch.uint8)
            memory[name] = Memory(buffer.data_ptr(), 2, (len(text),), "", None, buffer)
            rows.append({"name": item.index.fqn, "region": name, "bytes": len(text)})
        planned = Encoder(_no_leaf, keeps=False).encode(plan.planner_data, "planner_data")
        self._save(memory, json.dumps({"format": _FORMAT, "items": rows, "planner": planned}).encode())
        return [_storage.WriteResult(index=item.index, size_in_bytes=_size(data), storage_data=None) for item, data in tensors + texts]

    def _label(self) -> str | None:
        """The label of this thread's save, or that of the first save."""
        mine, self._labels.next = getattr(self._labels, "next", None), None
        first, self._first_label = self._first_label, None
        return mine or first

    def _save(self, memory: dict[str, Memory], text: bytes) -> None:
        session = self.open()
        with session._handle.lock:
            epoch = self._take_epoch(session, memory, text)
        if self._wait:
            session.wait(epoch=epoch)

    def _take_epoch(self, session: Session, memory: dict[str, Memory], text: bytes) -> int:
        held = session._handle.memory
        session._delete(n for n in held if n not in memory)
        session._declare_all({name: m for name, m in memory.items() if name not in held or not held[name].declares_as(m)})
        held.update(memory)
        label = self._label()
        if label is not None:
            session.label(label)
        with session._handle as pointer:
            session._write(pointer, ITEMS, text)
        return session.checkpoint()


def _no_leaf(where: str, value: typing.Any) -> None:
    return None


def _size(data: typing.Any) -> int:
    return data.numel() * data.element_size() if isinstance(data, torch.Tensor) else len(data)


def _path(item: typing.Any) -> str:
    """A shard has its place in the name."""
    at = item.index.offset
    return item.index.fqn if at is None or not any(at) else f"{item.index.fqn}[{','.join(map(str, at))}]"


class Reader(_storage.StorageReader):  # type: ignore[misc,name-defined]
    """A StorageReader of Distributed Checkpoint: an epoch that Writer has written, by any number of ranks.

        dcp.load(state_dict, storage_reader=varve.torch.Reader("ckpt", "run1"))

    epoch is a number or a label, by default the newest. All ranks see the same store.
    """

    def __init__(self, store: str | os.PathLike, lineage: str, epoch: int | str | None = None, **options: typing.Any):
        super().__init__()
        self._place, self._which, self._options = (store, lineage), epoch, options
        self._epoch: Epoch | None = None
        self._items: dict[typing.Any, _Item] = {}
        self._ranks: dict[int, Epoch] = {}

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """2.x: the checkpoint_id of dcp.load() is the label of an epoch, or its number."""
        if checkpoint_id is not None:
            text = os.fspath(checkpoint_id)
            self._which = int(text) if text.isdecimal() else text
        self._epoch = None

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """2.x: see Writer."""
        return False

    def _open(self) -> Epoch:
        store, lineage = self._place
        found = Store(store, **self._options)
        if lineage not in found or not len(found[lineage]):
            raise NotFound(f"store '{os.fspath(store)}' has no epoch of lineage '{lineage}'")
        return found[lineage][-1 if self._which is None else self._which]

    def read_metadata(self, *_: typing.Any, **_more: typing.Any) -> typing.Any:
        """The metadata of all ranks' items, made from their lists."""
        self._epoch = self._open()
        self._items, self._ranks = {}, {}
        tensors: dict[str, typing.Any] = {}
        planned: typing.Any = None
        for rank in range(self._epoch.ranks):
            where = f"rank {rank} of {self._epoch!r}"
            self._ranks[rank] = self._epoch.rank(rank)
            if ITEMS not in self._ranks[rank]:
                raise NotFound(f"{where} was not written by varve.torch.Writer")
            try:
                top = json.loads(self._ranks[rank][ITEMS].read_bytes().decode())
                if top["format"] != _FORMAT:
                    raise Damaged(f"{where} has format {top['format']!r}, and this version knows format {_FORMAT}; update varve")
                for row in top["items"]:
                    self._take(rank, row, tensors)
                data = Decoder(_refuse_leaf).decode(top["planner"])
            except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RuntimeError) as e:
                raise Damaged(f"{where}: '{ITEMS}' is not the text that varve.torch writes: {e}") from None
            planned = {**planned, **data} if isinstance(planned, dict) and isinstance(data, dict) else data if planned is None else planned
        for name, entry in tensors.items():
            if hasattr(entry, "chunks") and not _covers(entry):
                raise Damaged(f"'{ITEMS}' of {self._epoch!r} does not have every element of '{name}' once")
        metadata = _metadata.Metadata(state_dict_metadata=tensors)
        if planned is not None:
            metadata = dataclasses.replace(metadata, planner_data=planned)
        return dataclasses.replace(metadata, storage_data=dict(self._items))

    def _take(self, rank: int, row: dict[str, typing.Any], tensors: dict[str, typing.Any]) -> None:
        name = row["name"]
        if "bytes" in row:
            tensors[name] = _metadata.BytesStorageMetadata()
            self._items[_metadata.MetadataIndex(name)] = _Item(rank, None, row["region"])
            return
        path, region, offset, dtype, shape, stride, device, flags = row["view"]
        if {*map(type, (offset, *shape, *stride))} != {int}:
            raise ValueError("a tensor without a place")
        view = View(path, region, offset, dtype, tuple(shape), tuple(stride), device, flags)
        entry = tensors.get(name)
        if entry is None:
            entry = tensors[name] = _metadata.TensorStorageMetadata(properties=_get_properties(row["properties"]), size=torch.Size(row["size"]), chunks=[])
        entry.chunks.append(_metadata.ChunkStorageMetadata(offsets=torch.Size(row["at"]), sizes=torch.Size(row["shape"])))
        for at in (row["offset"], row["at"]):
            self._items[_metadata.MetadataIndex(name, None if at is None else torch.Size(at))] = _Item(rank, view, region)

    def init(self, metadata: typing.Any, is_coordinator: bool) -> None:
        """1.13."""
        self._set(metadata)

    def set_up_storage_reader(self, metadata: typing.Any, is_coordinator: bool, *_: typing.Any, **_more: typing.Any) -> None:
        """2.x."""
        self._set(metadata)

    def _set(self, metadata: typing.Any) -> None:
        """The metadata may be that of another rank's reader."""
        self._items = metadata.storage_data
        if self._epoch is None:
            self._epoch = self._open()

    def prepare_local_plan(self, plan: typing.Any) -> typing.Any:
        return plan

    def prepare_global_plan(self, plans: list[typing.Any]) -> list[typing.Any]:
        return plans

    def read_data(self, plan: typing.Any, planner: typing.Any) -> Future:
        for item in plan.items:
            self._read(item, planner)
        future: Future = Future()
        future.set_result(None)
        return future

    def _of(self, rank: int) -> Epoch:
        if rank not in self._ranks:
            self._ranks[rank] = typing.cast(Epoch, self._epoch).rank(rank)
        return self._ranks[rank]

    def _read(self, item: typing.Any, planner: typing.Any) -> None:
        found = self._items[item.storage_index]
        epoch = self._of(found.rank)
        if found.view is None:
            planner.load_bytes(item, io.BytesIO(epoch[typing.cast(str, found.region)].read_bytes()))
            return
        target = planner.resolve_tensor(item)
        to = target.detach()
        source = found.view._replace(device="")
        if to.numel():
            try:
                self._read_part(epoch, source, list(item.storage_offsets), list(item.lengths), to)
            except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RuntimeError) as e:
                raise Damaged(f"'{ITEMS}' of {epoch!r} is not the text that varve.torch writes: {e}") from None
        planner.commit_tensor(item, target)

    def _read_part(self, epoch: Epoch, view: View, start: list[int], count: list[int], to: torch.Tensor) -> None:
        """Reads the wanted rows only, straight into the tensor if it takes them as they are stored."""
        if not len(view.shape) == len(view.stride) == len(start) == len(count) or min(view.stride, default=0) < 0:
            raise ValueError(f"'{view.path}' has impossible strides")
        size = torch.empty(0, dtype=dtype_of(view.dtype)).element_size()
        first = view.offset + sum(s * n for s, n in zip(start, view.stride)) * size
        part = View(view.path, view.region, 0, view.dtype, tuple(count), view.stride, "", "")
        length = part.span(size)
        same = str(to.dtype) == view.dtype and tuple(to.shape) == tuple(count) and not to.is_conj()
        straight = same and to.is_contiguous() and length == to.numel() * size and _in_order(tuple(count), view.stride)
        region = epoch[typing.cast(str, view.region)]
        if not isinstance(region, Region) or first < 0 or length < 1 or first + length > region.nbytes:
            raise Damaged(f"'{view.path}' of {epoch!r} is not inside its region")
        buffer = None if straight else torch.empty(length, dtype=torch.uint8, device="cpu")
        address = to.data_ptr() if buffer is None else buffer.data_ptr()
        check(native().varve_reader_read(epoch._reader.pointer, epoch.number, epoch._rank, encode("name", region.name), first, length, address))
        if buffer is not None:
            to.copy_(view_of(buffer, part))


def _covers(entry: typing.Any) -> bool:
    """Do the chunks of a tensor have each of its elements? A chunk may be there several times: that of a rank with the same weights."""
    boxes = list({(tuple(c.offsets), tuple(c.sizes)) for c in entry.chunks})
    for at, sizes in boxes:
        if len(at) != len(entry.size) or len(sizes) != len(at) or any(a < 0 or n < 0 or a + n > m for a, n, m in zip(at, sizes, entry.size)):
            return False
    if sum(math.prod(sizes) for _, sizes in boxes) != math.prod(entry.size):
        return False
    boxes = [box for box in boxes if 0 not in box[1]]
    if not len(entry.size):
        return len(boxes) == 1
    cut = max(range(len(entry.size)), key=lambda d: len({at[d] for at, _ in boxes}))  # the dimension with the most pieces
    boxes.sort(key=lambda box: box[0][cut])
    for i, (at, sizes) in enumerate(boxes):
        for other, its in itertools.islice(boxes, i + 1, None):
            if other[cut] >= at[cut] + sizes[cut]:
                break
            if all(a < b + m and b < a + n for a, n, b, m in zip(at, sizes, other, its)):
                return False
    return True


def _in_order(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    expected = 1
    for n, s in zip(reversed(shape), reversed(stride)):
        if n > 1 and s != expected:
            return False
        expected *= n
    return True


def _refuse_leaf(_number: int) -> typing.NoReturn:
    raise ValueError("a tensor in the planner's data")
