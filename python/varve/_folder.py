"""A folder of Distributed Checkpoint becomes an epoch, and an epoch a folder. Chunks and bytes stay as they are; nothing is unpickled
here. (PyTorch reads and writes the metadata of a folder by pickle.)"""
from __future__ import annotations

import io
import os
import typing

import torch

from ._dcp import Reader, Writer, _metadata, _package, _planner
from ._native import Invalid, NotFound
from .torch import _split


class _Target:
    """A planner that takes one item."""

    def __init__(self, tensor: torch.Tensor | None):
        self.value: typing.Any = tensor

    def load_bytes(self, _item: typing.Any, value: io.BytesIO) -> None:
        self.value = io.BytesIO(value.read())

    def resolve_tensor(self, _item: typing.Any) -> torch.Tensor:
        return self.value

    def commit_tensor(self, _item: typing.Any, _tensor: torch.Tensor) -> None:
        pass


class _Source:
    """A planner whose data is read when it is to be written."""

    def __init__(self, reader: typing.Any):
        self._reader = reader

    def resolve_data(self, item: typing.Any) -> typing.Any:
        kind, target, sizes = _planner.LoadItemType.BYTE_IO, _Target(None), torch.Size()
        if item.tensor_data is not None:
            kind, sizes = _planner.LoadItemType.TENSOR, item.tensor_data.chunk.sizes
            target = _Target(torch.empty(sizes, dtype=item.tensor_data.properties.dtype))
        start = torch.Size([0] * len(sizes))
        wanted = _planner.ReadItem(type=kind, dest_index=item.index, dest_offsets=start, storage_index=item.index, storage_offsets=start, lengths=sizes)
        self._reader.read_data(_planner.LoadPlan([wanted]), target).wait()
        return target.value


def _items(metadata: typing.Any) -> list[typing.Any]:
    """What there is to write: the values that are bytes, and each chunk of each tensor."""
    kinds, index, items = _planner.WriteItemType, _metadata.MetadataIndex, []
    for name, entry in metadata.state_dict_metadata.items():
        if not hasattr(entry, "chunks"):
            items.append(_planner.WriteItem(index=index(name), type=kinds.BYTE_IO))
            continue
        for i, chunk in enumerate(entry.chunks):
            data = _planner.TensorWriteData(chunk=chunk, properties=entry.properties, size=entry.size)
            items.append(_planner.WriteItem(index=index(name, chunk.offsets, i), type=kinds.SHARD, tensor_data=data))
    return items


def _call(storage: typing.Any, name: str, *arguments: typing.Any) -> None:
    """The first call of 2.x, which is init() in 1.13."""
    getattr(storage, name if hasattr(storage, name) else "init")(*arguments)


def _copy(reader: typing.Any, writer: typing.Any) -> None:
    """The calls of a load and a save on one process: those of 2.x, or those of 1.13."""
    metadata = reader.read_metadata()
    _call(reader, "set_up_storage_reader", metadata, True)
    _call(writer, "set_up_storage_writer", True)
    plan = writer.prepare_local_plan(_planner.SavePlan(_items(metadata), planner_data=metadata.planner_data))
    plan, = writer.prepare_global_plan([plan])
    written = writer.write_data(plan, _Source(reader))
    written.wait()
    writer.finish(metadata, [written.value()])


def import_dcp(folder: str | os.PathLike, place: str | os.PathLike, *, label: str | None = None, **options: typing.Any) -> int:
    """Stores a folder of Distributed Checkpoint as an epoch that varve.torch.Reader reads. Returns the number of the epoch.

    The place is STORE://LINEAGE. One process makes the call, which needs memory for the whole state. PyTorch unpickles the metadata
    of the folder: import folders that you trust.
    """
    store, lineage, epoch = _split(place)
    if epoch is not None:
        raise Invalid(f"{place!r} names an epoch; import_dcp() makes the next one, and label= gives it a name")
    if not os.path.exists(os.path.join(folder, ".metadata")):
        raise NotFound(f"'{os.fspath(folder)}' has no file '.metadata': it is no complete folder of Distributed Checkpoint")
    options.setdefault("mode", "sync")
    with Writer(store, lineage, label=label, group=None, **options) as writer:
        _copy(_package.FileSystemReader(folder), writer)
        return writer.open().epoch


def export_dcp(place: str | os.PathLike, folder: str | os.PathLike, **options: typing.Any) -> None:
    """Writes an epoch of varve.torch.Writer into a folder that Distributed Checkpoint loads, on any number of ranks.

    The place is STORE://LINEAGE, or STORE://LINEAGE@EPOCH with a number or a label. The chunks of tensors go through memory one by one.
    """
    store, lineage, epoch = _split(place)
    if os.path.exists(os.path.join(folder, ".metadata")):
        raise Invalid(f"'{os.fspath(folder)}' has a checkpoint already; name another folder")
    which = int(epoch) if epoch is not None and epoch.isdigit() else epoch
    _copy(Reader(store, lineage, which, **options), _package.FileSystemWriter(folder, single_file_per_rank=True))
