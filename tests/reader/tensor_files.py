"""Writes files of tensors as their programs do, without these programs: safetensors, torch.save and torch.distributed.checkpoint."""
import collections
import io
import json
import pickle
import struct
import sys
import types
import zipfile

STORAGES = {"f8": "Double", "f4": "Float", "f2": "Half", "bf16": "BFloat16", "i8": "Long", "i4": "Int", "i2": "Short", "i1": "Char", "u1": "Byte", "b1": "Bool",
            "c8": "ComplexFloat", "c16": "ComplexDouble"}
WIDTHS = {"bf16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1}


def width(kind):
    return WIDTHS.get(kind) or int(kind[1:])


def safetensors(path, tensors, metadata=None, spaces=6):
    """tensors: name -> (type, shape, bytes)."""
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    for name, (kind, shape, data) in tensors.items():
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode() + b" " * spaces
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


def fake(module, name):
    """A function or class that a pickle names and that need not be here."""
    names = module.split(".")
    for i in range(len(names)):
        sys.modules.setdefault(".".join(names[:i + 1]), types.ModuleType(".".join(names[:i + 1])))
    made = getattr(sys.modules[module], name, None)
    if made is None:
        made = type(name, (), {"__module__": module, "__qualname__": name})
        setattr(sys.modules[module], name, made)
    return made


class Dtype:
    """torch.float8_e4m3fn, which is pickled as a name."""

    def __init__(self, name):
        self.name = name
        sys.modules.setdefault("torch", types.ModuleType("torch"))
        setattr(sys.modules["torch"], name, self)
        self.__module__ = "torch"

    def __reduce__(self):
        return self.name


class Storage:
    def __init__(self, kind, data):
        self.kind, self.data = kind, data


class Tensor:
    """A tensor: part of a storage, with strides in elements."""

    def __init__(self, storage, shape, stride=None, offset=0):
        self.storage, self.shape, self.offset = storage, tuple(shape), offset
        if stride is None:
            stride, step = [], 1
            for n in reversed(self.shape):
                stride.insert(0, step)
                step *= n
        self.stride = tuple(stride)

    def __reduce__(self):
        arguments = (self.storage, self.offset, self.shape, self.stride, False, collections.OrderedDict())
        if self.storage.kind in STORAGES:
            return fake("torch._utils", "_rebuild_tensor_v2"), arguments
        return fake("torch._utils", "_rebuild_tensor_v3"), (*arguments, Dtype(self.storage.kind), {})


class Parameter:
    def __init__(self, tensor):
        self.tensor = tensor

    def __reduce__(self):
        return fake("torch._utils", "_rebuild_parameter"), (self.tensor, True, collections.OrderedDict())


class Pickler(pickle.Pickler):
    def __init__(self, to, protocol):
        super().__init__(to, protocol)
        self.keys = {}

    def persistent_id(self, x):
        if not isinstance(x, Storage):
            return None
        key = self.keys.setdefault(id(x), (str(len(self.keys)), x))[0]
        known = STORAGES.get(x.kind)
        # a storage without a type is one of bytes
        kind = fake("torch", known + "Storage") if known else fake("torch.storage", "UntypedStorage")
        return "storage", kind, key, "cpu", len(x.data) // (width(x.kind) if known else 1)


def torch(value, protocol=2, big=False, name="archive", method=zipfile.ZIP_STORED, wide=False):
    """What torch.save writes: data.pkl, the order of the bytes, and the storages, each at a multiple of 64 bytes."""
    text, file = io.BytesIO(), io.BytesIO()
    pickler = Pickler(text, protocol)
    pickler.dump(value)
    with zipfile.ZipFile(file, "w", method) as z:
        def add(member, data):
            info = zipfile.ZipInfo(f"{name}/{member}")
            info.compress_type = method
            pad = -(file.tell() + 30 + len(info.filename) + 4) % 64
            info.extra = struct.pack("<HH", 0x4246, pad) + b"Z" * pad
            with z.open(info, "w", force_zip64=wide) as f:
                f.write(data)
        add("data.pkl", text.getvalue())
        if big:
            add("byteorder", b"big")
        for key, storage in pickler.keys.values():
            add(f"data/{key}", storage.data)
        add("version", b"3\n")
    return file.getvalue()


def distributed(folder, name, objects, more=()):
    """A .distcp file of (fully qualified name, offset, value), and .metadata beside it, which also has what `more` adds of other files."""
    index, info = fake("torch.distributed.checkpoint.metadata", "MetadataIndex"), fake("torch.distributed.checkpoint.filesystem", "_StorageInfo")
    data, places = b"", list(more)
    for fqn, offset, value in objects:
        archive = torch(value)
        places.append((fqn, offset, name, len(data), len(archive)))
        data += archive
    (folder / name).write_bytes(data)
    storage_data = {}
    for fqn, offset, path, at, n in places:
        key, value = index(), info()
        size = fake("torch", "Size")
        key.__dict__.update(fqn=fqn, offset=None if offset is None else Call(size, (tuple(offset),)), index=0)
        value.__dict__.update(relative_path=path, offset=at, length=n)
        storage_data[key] = value
    metadata = fake("torch.distributed.checkpoint.metadata", "Metadata")()
    metadata.__dict__.update(state_dict_metadata={}, planner_data=None, storage_data=storage_data)
    (folder / ".metadata").write_bytes(pickle.dumps(metadata, 4))
    return places


class Call:
    """A value that is pickled as a call."""

    def __init__(self, function, arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call
