#!/usr/bin/env python3
# ctest: COST 10
"""The protocol of Distributed Checkpoint of PyTorch 2.x: a stand-in for its package, written from its documentation, drives Writer and Reader."""
import concurrent.futures
import copy
import dataclasses
import enum
import io
import itertools
import json
import pathlib
import sys
import tempfile
import time
import types
import typing
import unittest

import package

torch = package.torch()
import varve


def modules():
    """torch.distributed.checkpoint: its public classes with the members that its documentation names, and a planner."""
    top, storage, planner, metadata = (types.ModuleType("torch.distributed.checkpoint" + m) for m in ("", ".storage", ".planner", ".metadata"))

    @dataclasses.dataclass
    class TensorProperties:
        dtype: torch.dtype = torch.float32
        layout: torch.layout = torch.strided
        requires_grad: bool = False
        memory_format: torch.memory_format = torch.contiguous_format
        pin_memory: bool = False

    @dataclasses.dataclass
    class ChunkStorageMetadata:
        offsets: torch.Size
        sizes: torch.Size

    @dataclasses.dataclass
    class TensorStorageMetadata:
        properties: TensorProperties
        size: torch.Size
        chunks: list

    @dataclasses.dataclass
    class BytesStorageMetadata:
        pass

    @dataclasses.dataclass
    class Metadata:
        state_dict_metadata: dict
        planner_data: typing.Any = None
        storage_data: typing.Any = None
        storage_meta: typing.Any = None

    @dataclasses.dataclass(frozen=True)
    class MetadataIndex:
        fqn: str
        offset: typing.Optional[torch.Size] = None
        index: typing.Optional[int] = dataclasses.field(hash=False, compare=False, default=None)

    class WriteItemType(enum.Enum):
        TENSOR, SHARD, BYTE_IO = range(3)

    class LoadItemType(enum.Enum):
        TENSOR, BYTE_IO = range(2)

    @dataclasses.dataclass(frozen=True)
    class TensorWriteData:
        chunk: ChunkStorageMetadata
        properties: TensorProperties
        size: torch.Size

    @dataclasses.dataclass(frozen=True)
    class WriteItem:
        index: MetadataIndex
        type: WriteItemType
        bytes_io_data: typing.Any = None  # of later versions of 2.x
        tensor_data: typing.Optional[TensorWriteData] = None

    @dataclasses.dataclass(frozen=True)
    class ReadItem:
        type: LoadItemType
        dest_index: MetadataIndex
        dest_offsets: torch.Size
        storage_index: MetadataIndex
        storage_offsets: torch.Size
        lengths: torch.Size

    @dataclasses.dataclass(frozen=True)
    class SavePlan:
        items: list
        storage_data: typing.Any = None
        planner_data: typing.Any = None

    @dataclasses.dataclass
    class LoadPlan:
        items: list
        storage_data: typing.Any = None
        planner_data: typing.Any = None

    @dataclasses.dataclass(frozen=True)
    class WriteResult:
        index: MetadataIndex
        size_in_bytes: int
        storage_data: typing.Any

    class StorageWriter:
        pass

    class StorageReader:
        pass

    class FileSystemWriter(StorageWriter):
        def __init__(self, path, **_):
            self.path = pathlib.Path(path)

        def reset(self, checkpoint_id=None):
            pass

        def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
            self.path.mkdir(parents=True, exist_ok=True)

        def prepare_local_plan(self, plan):
            return plan

        def prepare_global_plan(self, plans):
            return plans

        def write_data(self, plan, planner):
            results = []
            with open(self.path / "__0_0.distcp", "wb") as file:
                for item in plan.items:
                    data, begin = planner.resolve_data(item), file.tell()
                    torch.save(data, file) if isinstance(data, torch.Tensor) else file.write(data.getbuffer())
                    results.append(WriteResult(item.index, file.tell() - begin, ("__0_0.distcp", begin, file.tell() - begin)))
            future = torch.futures.Future()
            future.set_result(results)
            return future

        def finish(self, metadata, results):
            self.kept[self.path] = dataclasses.replace(metadata, storage_data={r.index: r.storage_data for part in results for r in part})
            (self.path / ".metadata").write_bytes(b"")  # a pickle of it, where its classes have a module

    class FileSystemReader(StorageReader):
        def __init__(self, path):
            self.path = pathlib.Path(path)

        def reset(self, checkpoint_id=None):
            pass

        def read_metadata(self, *args, **kwargs):
            return FileSystemWriter.kept[self.path]

        def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
            self.places = metadata.storage_data

        def prepare_local_plan(self, plan):
            return plan

        def prepare_global_plan(self, plans):
            return plans

        def read_data(self, plan, planner):
            for item in plan.items:
                name, begin, length = self.places[item.storage_index]
                data = io.BytesIO((self.path / name).read_bytes()[begin:begin + length])
                if item.type is LoadItemType.BYTE_IO:
                    planner.load_bytes(item, data)
                    continue
                t = torch.load(data)
                for d, (at, n) in enumerate(zip(item.storage_offsets, item.lengths)):
                    t = t.narrow(d, at, n)
                target = planner.resolve_tensor(item).detach()
                target.copy_(t)
                planner.commit_tensor(item, target)
            future = torch.futures.Future()
            future.set_result(None)
            return future

    FileSystemWriter.kept = {}

    for module, names in ((metadata, (TensorProperties, ChunkStorageMetadata, TensorStorageMetadata, BytesStorageMetadata, Metadata, MetadataIndex)),
                          (planner, (WriteItemType, LoadItemType, TensorWriteData, WriteItem, ReadItem, SavePlan, LoadPlan)),
                          (storage, (StorageWriter, StorageReader, WriteResult))):
        for name in names:
            setattr(module, name.__name__, name)
    top.FileSystemWriter, top.FileSystemReader = FileSystemWriter, FileSystemReader
    top.StorageWriter, top.StorageReader, top.storage, top.planner, top.metadata = StorageWriter, StorageReader, storage, planner, metadata
    return {m.__name__: m for m in (top, storage, planner, metadata)}


sys.modules.update(modules())
import torch.distributed.checkpoint as stub  # noqa: the stand-in
from varve import _dcp
from varve.torch import Reader, Writer

P, M = stub.planner, stub.metadata


class SavePlanner:
    """Writes each tensor in two pieces of its first dimension."""

    def __init__(self, state):
        self.state = state

    def plan(self):
        items = []
        for name, value in self.state.items():
            if not isinstance(value, torch.Tensor):
                items.append(P.WriteItem(M.MetadataIndex(name), P.WriteItemType.BYTE_IO))
                continue
            half = value.shape[0] // 2
            for at, length in ((0, half), (half, value.shape[0] - half)):
                offset, sizes = torch.Size([at] + [0] * (value.dim() - 1)), torch.Size([length, *value.shape[1:]])
                data = P.TensorWriteData(M.ChunkStorageMetadata(offset, sizes), M.TensorProperties(dtype=value.dtype), value.shape)
                items.append(P.WriteItem(M.MetadataIndex(name, offset), P.WriteItemType.SHARD, tensor_data=data))
        return P.SavePlan(items, planner_data={name: tuple(name.split(".")) for name in self.state})

    def resolve_data(self, item):
        value = self.state[item.index.fqn]
        if item.type is P.WriteItemType.BYTE_IO:
            return io.BytesIO(repr(value).encode())
        chunk = item.tensor_data.chunk
        return value.narrow(0, chunk.offsets[0], chunk.sizes[0])


class LoadPlanner:
    """Reads each tensor in columns, from each piece that has rows of it."""

    def __init__(self, state, metadata):
        self.state, self.metadata, self.committed = state, metadata, 0

    def plan(self):
        items = []
        for name, entry in self.metadata.state_dict_metadata.items():
            if isinstance(entry, M.BytesStorageMetadata):
                items.append(P.ReadItem(P.LoadItemType.BYTE_IO, M.MetadataIndex(name), torch.Size(), M.MetadataIndex(name), torch.Size(), torch.Size()))
                continue
            for chunk in entry.chunks:
                for column in range(entry.size[1]):
                    items.append(P.ReadItem(P.LoadItemType.TENSOR, M.MetadataIndex(name), torch.Size([chunk.offsets[0], column]), M.MetadataIndex(name, chunk.offsets),
                                            torch.Size([0, column]), torch.Size([chunk.sizes[0], 1])))
        return P.LoadPlan(items)

    def load_bytes(self, item, value):
        self.state[item.dest_index.fqn] = value.read().decode()

    def resolve_tensor(self, item):
        t = self.state[item.dest_index.fqn]
        for d, (at, length) in enumerate(zip(item.dest_offsets, item.lengths)):
            t = t.narrow(d, at, length)
        return t

    def commit_tensor(self, item, tensor):
        self.committed += 1


def save(state, writer, checkpoint_id=None):
    """The calls of dcp.save(), in the order of the documentation of StorageWriter."""
    writer.reset(checkpoint_id)
    planner = SavePlanner(state)
    writer.set_up_storage_writer(True)
    plan = writer.prepare_local_plan(planner.plan())
    plan, = writer.prepare_global_plan([plan])
    future = writer.write_data(plan, planner)
    future.wait()
    results = future.value()
    assert [r.index for r in results] and all(isinstance(r, stub.storage.WriteResult) for r in results)
    writer.finish(M.Metadata({}, storage_meta=writer.storage_meta()), [results])


class Executor:
    """dcp.async_save(): it sets up the storage, stages the state in memory of the host, and saves it in a thread, whose future it returns."""

    def __init__(self):
        self.pool = concurrent.futures.ThreadPoolExecutor(max_workers=1)

    def async_save(self, state, writer, checkpoint_id=None):
        writer.reset(checkpoint_id)
        staged = {k: v.detach().clone() if isinstance(v, torch.Tensor) else copy.deepcopy(v) for k, v in state.items()}
        return self.pool.submit(save, staged, writer, checkpoint_id)


def load(state, reader, checkpoint_id=None):
    reader.reset(checkpoint_id)
    metadata = reader.read_metadata()
    planner = LoadPlanner(state, metadata)
    reader.set_up_storage_reader(metadata, True)
    plan = reader.prepare_local_plan(planner.plan())
    plan, = reader.prepare_global_plan([plan])
    reader.read_data(plan, planner).wait()
    return metadata, planner


class Protocol(unittest.TestCase):
    def test_protocol(self):
        with tempfile.TemporaryDirectory() as folder:
            store = pathlib.Path(folder) / "store"
            state = {"a.w": torch.randn(9, 4), "b": torch.arange(15).reshape(5, 3), "c": torch.randn(6, 7).half().t(), "o.step": 7, "text": "x"}
            with Writer(store, "l", keep=5) as writer:
                save(state, writer)
                first = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in state.items()}
                state["a.w"] += 1
                save(state, writer, "step-2")
                self.assertFalse(Writer.validate_checkpoint_id("x"))
                for bad in (torch.eye(2).to_sparse(),):
                    with self.assertRaisesRegex(TypeError, "'b'.*sparse|sparse"):
                        planner = SavePlanner(state)
                        planner.resolve_data = lambda item: bad
                        writer.write_data(planner.plan(), planner)
                save(state, writer)
            for which, expected in ((None, state), ("step-2", state), ("1", first)):
                again = {k: torch.zeros_like(v).contiguous() if isinstance(v, torch.Tensor) else None for k, v in state.items()}
                metadata, planner = load(again, Reader(store, "l"), which)
                for k, v in expected.items():
                    self.assertTrue(torch.equal(again[k], v) if isinstance(v, torch.Tensor) else again[k] == repr(v), k)
                self.assertEqual(metadata.planner_data["a.w"], ("a", "w"))
                self.assertEqual(metadata.state_dict_metadata["b"].size, torch.Size([5, 3]))
                self.assertEqual(metadata.state_dict_metadata["c"].properties, M.TensorProperties(dtype=torch.float16))
                self.assertEqual(planner.committed, 2 * (4 + 3 + 6))
            place = f"{store}://l"
            varve.torch.export_dcp(f"{place}@step-2", pathlib.Path(folder) / "dcp")
            self.assertEqual(varve.torch.import_dcp(pathlib.Path(folder) / "dcp", f"{store}://again", label="x"), 1)
            for reader in (stub.FileSystemReader(pathlib.Path(folder) / "dcp"), Reader(store, "again", "x")):
                again = {k: torch.zeros_like(v).contiguous() if isinstance(v, torch.Tensor) else None for k, v in state.items()}
                metadata, _ = load(again, reader)
                self.assertTrue(all(torch.equal(again[k], v) if isinstance(v, torch.Tensor) else again[k] == repr(v) for k, v in state.items()))
                self.assertEqual(metadata.planner_data["a.w"], ("a", "w"))
            reader = Reader(store, "l")
            reader.reset("\N{SUPERSCRIPT TWO}")  # a label: int() does not take this digit
            with self.assertRaises(varve.NotFound):
                reader.read_metadata()
            for lineage, which in (("none", None), ("l", 9), ("l", "nothing")):
                with self.assertRaises(varve.NotFound):
                    Reader(store, lineage, which).read_metadata()
            varve.torch.save({}, f"{store}://other")
            with self.assertRaisesRegex(varve.NotFound, "Writer"):
                Reader(store, "other").read_metadata()

    def test_damaged_items(self):
        """A text that leaves elements out would leave what the program's memory held before."""
        with tempfile.TemporaryDirectory() as folder:
            store = pathlib.Path(folder) / "store"
            with Writer(store, "l") as writer:
                save({"a": torch.ones(4, 3)}, writer)
            e = varve.Store(store)["l"][-1]
            good = json.loads(e["torch.items.json"].read_bytes())
            held, first = torch.ones(4, 3).numpy(), good["items"][0]
            row = {**first, "offset": [0, 0], "at": [0, 0], "shape": [4, 3], "view": ["a", "a", 0, "torch.float32", [4, 3], [3, 1], "cpu", ""]}
            shrunk = {**row, "at": [0, 0], "shape": [2, 3]}
            lower = {**row, "at": [1, 0], "shape": [2, 3]}
            cases = {"whole": [row], "equal": [row, row], "part": [shrunk], "outside": [{**row, "at": [1, 0]}], "overlap": [shrunk, lower],
                     "region": [{**row, "view": ["a", None, *row["view"][2:]]}], "stride": [{**row, "view": [*row["view"][:5], ["x", 1], *row["view"][6:]]}]}
            for stride in ([1 << 50, 1], [3], [3, 1, 1], [-3, 1], [1 << 70, 1], [3, 2]):
                cases[f"stride{len(cases)}"] = [{**row, "view": [*row["view"][:5], stride, *row["view"][6:]]}]
            for offset in (-4, 4, 1 << 70, "x"):
                cases[f"offset{len(cases)}"] = [{**row, "view": ["a", "a", offset, *row["view"][3:]]}]
            cases["size"] = [{**row, "size": [1 << 70, 3]}]
            for name, rows in cases.items():
                with varve.open(store, name) as v:
                    v["a"] = held
                    with v._handle as pointer:
                        v._write(pointer, "torch.items.json", json.dumps({**good, "items": rows}).encode())
                    v.checkpoint()
                found = {"a": torch.zeros(4, 3)}
                if name in ("whole", "equal"):
                    load(found, Reader(store, name))
                    self.assertTrue(bool((found["a"] == 1).all()))
                    continue
                with self.assertRaises(varve.Damaged, msg=name):
                    load(found, Reader(store, name))

    def test_many_pieces(self):
        """Of a tensor cut along any dimension."""
        n = 8000
        for size, wide in (([n, 4], [1, 4]), ([4, n], [4, 1]), ([2, n, 2], [2, 1, 2]), ([120, 120], [2, 1])):
            starts = itertools.product(*(range(0, m, w) for m, w in zip(size, wide)))
            chunks = [M.ChunkStorageMetadata(torch.Size(at), torch.Size(wide)) for at in starts]
            begin = time.process_time()
            self.assertTrue(_dcp._covers(M.TensorStorageMetadata(None, torch.Size(size), chunks)))
            self.assertLess(time.process_time() - begin, 5, size)  # a twentieth of that on an idle machine
            double = chunks[:-1] + [M.ChunkStorageMetadata(torch.Size([0] * len(size)), torch.Size(wide[::-1] if len(set(size)) == 1 else wide))]
            self.assertFalse(_dcp._covers(M.TensorStorageMetadata(None, torch.Size(size), double)), size)

    def test_async(self):
        """The state changes while the thread saves its copy. Each epoch has the label of its own call, though calls overlap."""
        with tempfile.TemporaryDirectory() as folder, Writer(pathlib.Path(folder) / "store", "l", keep=50) as writer:
            state, executor, futures = {"w": torch.zeros(20000, 3), "n": 0}, Executor(), []
            for step in range(1, 11):
                state["w"] += 1
                state["n"] = step
                futures.append(executor.async_save(state, writer, f"step-{step}" if step % 3 else None))
            for future in futures:
                self.assertIsNone(future.result(60))
            executor.pool.shutdown()
            labels = {e.number: e.label for e in varve.Store(pathlib.Path(folder) / "store")["l"]}
            self.assertEqual(labels, {i: f"step-{i}" if i % 3 else None for i in range(1, 11)})
            for step in labels:
                again = {"w": torch.zeros(20000, 3), "n": None}
                load(again, Reader(pathlib.Path(folder) / "store", "l", step))
                self.assertTrue(bool((again["w"] == step).all()) and again["n"] == str(step), step)
            executor = Executor()
            future = executor.async_save({"w": torch.eye(2).to_sparse()}, writer)
            self.assertIsInstance(future.exception(60), Exception)
            executor.pool.shutdown()
            save({"w": torch.ones(3, 2)}, writer, "after")


if __name__ == "__main__":
    unittest.main(verbosity=1)
