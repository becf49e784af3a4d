"""Nested values as JSON: tensors and arrays are numbers of leaves, everything else is plain. Reading executes nothing.

A node is a plain value, a list, a dict with names as keys, or {"$": kind, "v": content} for what JSON does not return unchanged.
"""
from __future__ import annotations

import base64
import collections
import sys
import types
import typing

TAG = "$"
_ATOMS = (type(None), bool, int, float, str)
_DEEPEST = 100
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, type)
LeafFunction = typing.Callable[[str, typing.Any], typing.Optional[int]]
LeavesFunction = typing.Callable[[str, typing.Dict[str, typing.Any]], typing.Optional[int]]


class Refused(TypeError):
    """A value that is not stored."""


def _torch_atoms() -> dict[type, str]:
    torch = sys.modules.get("torch")
    return {torch.dtype: "torch.dtype", torch.device: "torch.device"} if torch else {}


def _join(where: str, key: typing.Any) -> str:
    return f"{where}.{key}" if where else str(key)


class Encoder:
    """leaf(path, value) returns the number of a tensor or an array, or None for any other value. leaves(path, dict) returns the number of
    the first one if all values of the dict are tensors, and numbers them in turn. With `keeps`, functions are allowed:
    only their names are stored, and the reader takes its own."""

    def __init__(self, leaf: LeafFunction, keeps: bool, leaves: LeavesFunction | None = None):
        self.leaf, self.keeps, self.atoms, self.leaves = leaf, keeps, _torch_atoms(), leaves

    def encode(self, value: typing.Any, where: str, depth: int = 0) -> typing.Any:
        kind = type(value)
        if kind in _ATOMS:
            return value
        if depth > _DEEPEST:
            raise Refused(f"'{where}' is nested too deeply, or contains itself")
        leaf = self.leaf(where, value)
        if leaf is not None:
            return {TAG: "leaf", "v": leaf}
        if kind is list:
            return value if set(map(type, value)) <= {int} else self._items(value, where, depth)
        if kind is dict and set(map(type, value)) <= {str} and TAG not in value:
            first = self.leaves(where, value) if self.leaves and value else None
            if first is not None:
                return {TAG: "leaves", "v": [first, list(value)]}
            return {k: self.encode(v, _join(where, k), depth + 1) for k, v in value.items()}
        return self._tagged(kind, value, where, depth)

    def _items(self, values: typing.Iterable[typing.Any], where: str, depth: int) -> list[typing.Any]:
        return [self.encode(v, _join(where, i), depth + 1) for i, v in enumerate(values)]

    def _pairs(self, value: typing.Any, where: str, depth: int) -> list[typing.Any]:
        return [[self.encode(k, f"a key of {where}", depth + 1), self.encode(v, _join(where, k), depth + 1)] for k, v in value.items()]

    def _tagged(self, kind: type, value: typing.Any, where: str, depth: int) -> typing.Any:
        numpy = sys.modules.get("numpy")
        if kind in _MAPS:
            return {TAG: _MAPS[kind], "v": self._pairs(value, where, depth)}
        if kind in _SEQUENCES or f"{kind.__module__}.{kind.__qualname__}" == "torch.Size":
            return {TAG: _SEQUENCES.get(kind, "torch.Size"), "v": self._items(value, where, depth)}
        if kind in (bytes, bytearray):
            return {TAG: kind.__name__, "v": base64.b64encode(value).decode()}
        if kind is complex:
            return {TAG: "complex", "v": [value.real, value.imag]}
        if kind in self.atoms:
            return {TAG: self.atoms[kind], "v": str(value)}
        if numpy and isinstance(value, numpy.generic) and not value.dtype.hasobject and value.dtype.fields is None:
            return {TAG: "numpy", "v": [value.dtype.str, base64.b64encode(value.tobytes()).decode()]}
        if self.keeps and isinstance(value, _FUNCTIONS):
            return {TAG: "kept", "v": _name(value)}
        raise Refused(f"'{where}' is of type {kind.__module__}.{kind.__qualname__}, which is not stored: varve stores tensors, arrays and plain values, "
                      f"and never pickles; store its state_dict() or its parts")


_MAPS: dict[type, str] = {dict: "dict", collections.OrderedDict: "OrderedDict", collections.Counter: "Counter"}
_SEQUENCES: dict[type, str] = {tuple: "tuple", set: "set", frozenset: "frozenset"}
_MAKERS: dict[str, typing.Callable[[typing.Any], typing.Any]] = {
    "dict": dict, "OrderedDict": collections.OrderedDict, "Counter": lambda pairs: collections.Counter(dict(pairs)),
    "tuple": tuple, "set": set, "frozenset": frozenset,
}


def _name(function: typing.Any) -> str:
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"


def _at(present: typing.Any, key: typing.Any) -> typing.Any:
    """The program's own value in the same place, or None."""
    try:
        return present[key]
    except (TypeError, KeyError, IndexError):
        return None


class Decoder:
    """leaf(number) returns a tensor or an array, and leaves(first, n) a list of n tensors. Raises ValueError, KeyError or TypeError for what
    no Encoder writes."""

    def __init__(self, leaf: typing.Callable[[int], typing.Any], leaves: typing.Callable[[int, int], list[typing.Any]] | None = None):
        self.leaf, self.leaves = leaf, leaves or (lambda first, n: [leaf(first + i) for i in range(n)])

    def decode(self, node: typing.Any, present: typing.Any = None) -> typing.Any:
        if type(node) in _ATOMS:
            return node
        if type(node) is list:
            return [self.decode(v, _at(present, i)) for i, v in enumerate(node)]
        if type(node) is not dict:
            raise ValueError(f"a node of type {type(node).__name__}")
        if TAG not in node:
            return {k: self.decode(v, _at(present, k)) for k, v in node.items()}
        return self._tagged(node[TAG], node["v"], present)

    def _tagged(self, kind: str, v: typing.Any, present: typing.Any) -> typing.Any:
        if kind == "leaf":
            return self.leaf(v)
        if kind == "leaves":
            first, names = v
            return dict(zip(map(str, names), self.leaves(first, len(names))))
        if kind in ("dict", "OrderedDict", "Counter"):
            pairs = [(self.decode(k), value) for k, value in v]
            return _MAKERS[kind]([(k, self.decode(value, _at(present, k))) for k, value in pairs])
        if kind in _MAKERS:
            return _MAKERS[kind]([self.decode(item, _at(present, i)) for i, item in enumerate(v)])
        if kind == "torch.Size":
            return sys.modules["torch"].Size(v)
        if kind in ("bytes", "bytearray"):
            content = base64.b64decode(v, validate=True)
            return content if kind == "bytes" else bytearray(content)
        if kind == "complex":
            return complex(*v)
        if kind == "torch.dtype":
            return dtype_of(v)
        if kind == "torch.device":
            return sys.modules["torch"].device(v)
        if kind == "numpy":
            import numpy
            dtype = numpy.dtype(v[0])
            if dtype.hasobject:
                raise ValueError("objects are not stored")
            return numpy.frombuffer(base64.b64decode(v[1], validate=True), dtype)[0]
        if kind == "kept":
            if not isinstance(present, _FUNCTIONS) or _name(present) != v:
                raise Kept(v)
            return present
        raise ValueError(f"a node of kind {kind!r}")


def leaves_of(node: typing.Any) -> typing.Iterator[int]:
    """The numbers of all leaves below a node."""
    if type(node) is dict and node.get(TAG) == "leaf":
        yield node.get("v", "")
    elif type(node) is dict and node.get(TAG) == "leaves":
        first, names = node["v"]
        yield from range(first, first + len(names))
    elif type(node) in (dict, list):
        for child in node.values() if type(node) is dict else node:
            if type(child) in (dict, list):
                yield from leaves_of(child)


class Kept(Exception):
    """A function that the epoch names, and the program does not have in this place."""


def dtype_of(name: str) -> typing.Any:
    """The dtype of the name "torch.float32"."""
    torch = sys.modules["torch"]
    found = getattr(torch, name.removeprefix("torch."), None) if type(name) is str else None
    if not isinstance(found, torch.dtype):
        raise ValueError(f"{name!r} is no dtype of this PyTorch")
    return found
