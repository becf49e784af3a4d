"""Which memory a value of Python is: its address, type and shape."""
from __future__ import annotations

import ctypes
import re
import sys
import typing

from ._native import MAX_DIMS

BYTES, U8, RECORD = 0, 2, 17
_TYPES = {"i1": 1, "u1": 2, "i2": 3, "u2": 4, "i4": 5, "u4": 6, "i8": 7, "u8": 8, "f4": 9, "f8": 10, "c8": 11, "c16": 12, "f2": 14}
_ML_DTYPES = {"bfloat16": 13, "float8_e4m3fn": 15, "float8_e5m2": 16}  # NumPy knows them if ml_dtypes is imported
NAMES = {number: name for name, number in _TYPES.items()} | {13: "u2", 15: "u1", 16: "u1"}
ML_NAMES = {number: name for name, number in _ML_DTYPES.items()}
_UNSIGNED = {1: 2, 2: 4, 4: 6, 8: 8}
_FORMATS = {"b": "i", "h": "i", "i": "i", "l": "i", "q": "i", "n": "i", "B": "u", "H": "u", "I": "u", "L": "u", "Q": "u",
            "N": "u", "c": "u", "e": "f", "f": "f", "d": "f", "?": "b", "Zf": "c", "Zd": "c"}
_NATIVE = "<" if sys.byteorder == "little" else ">"
PLAIN = (type(None), bool, int, float, str, list, dict)


class Memory(typing.NamedTuple):
    """The memory of a value, as the library sees it."""
    address: int
    type: int
    shape: tuple[int, ...]
    dtype: str
    note: list | None  # dtype and number of dimensions in Python, where they differ from type and shape
    keep: typing.Any   # while this object lives, the memory stays where it is
    fields: tuple[tuple[str, int, int, int], ...] = ()  # of records: name, type, offset and bytes of each
    record: int = 0    # bytes of a record

    def declares_as(self, other: "Memory") -> bool:
        """Do both declare the same region? Then it does not matter who keeps the memory."""
        return self._replace(keep=None) == other._replace(keep=None)


def _memory(name: str, address: int, typestr: str, dtype: str, shape: tuple[int, ...], keep: typing.Any) -> Memory:
    order, kind, size, _ = re.fullmatch(r"([<>|=])(\w)(\d+)(.*)", typestr).groups()  # type: ignore[union-attr]
    element = int(size) * (4 if kind == "U" else 1)
    native = _ML_DTYPES.get(dtype) or _TYPES.get(kind + size) if order in ("|", _NATIVE) else None
    seen = shape or (1,)
    type_ = native or _UNSIGNED.get(element)
    if type_ is None:  # elements of another size: a dimension of bytes
        type_, seen = U8, (*shape, element)
    if len(seen) > MAX_DIMS:
        raise ValueError(f"array '{name}' has too many dimensions: the limit is {MAX_DIMS}")
    return Memory(address, type_, seen, dtype, None if native and shape else [dtype, len(shape)], keep)


def _fields(dtype: typing.Any) -> tuple[tuple[str, int, int, int], ...]:
    """The fields of a structured dtype as the library takes them; none if one of them is no number, or they overlap."""
    out, end = [], 0
    for name, (kind, offset, *_) in sorted((dtype.fields or {}).items(), key=lambda f: f[1][1]):
        text = (kind.subdtype[0] if kind.subdtype else kind).str
        type_ = U8 if text == "|b1" else _TYPES.get(text[1:]) if text[0] in ("|", _NATIVE) else None
        if type_ is None or not kind.itemsize or offset < end or not re.fullmatch(r"\w{1,63}", name, re.ASCII):
            return ()
        out.append((name, type_, offset, kind.itemsize))
        end = offset + kind.itemsize
    return tuple(out) if len(out) <= 128 and dtype.itemsize <= 1 << 20 else ()


def _of_interface(name: str, value: typing.Any) -> Memory:
    """An array of NumPy, or of a package with the same interface."""
    interface, dtype = value.__array_interface__, getattr(value, "dtype", None)
    address, read_only = interface["data"]
    typestr = interface["typestr"]
    if type(value).__name__ == "MaskedArray":
        raise TypeError(f"array '{name}' is masked; declare its data and its mask as two arrays")
    if typestr[1] == "O" or getattr(dtype, "hasobject", False):
        raise TypeError(f"array '{name}' has elements of type object, which are addresses; use a numeric dtype")
    if interface.get("strides") is not None:
        raise ValueError(f"array '{name}' is not contiguous in C order; copy it with numpy.ascontiguousarray, or declare {name}.T if it is in "
                         f"Fortran order")
    if read_only:
        raise ValueError(f"array '{name}' is read-only, and a restart could not fill it; declare a writable array")
    fields = _fields(dtype) if len(interface["shape"]) == 1 and hasattr(dtype, "fields") else ()
    if fields and dtype is not None:
        return Memory(address, RECORD, tuple(interface["shape"]), str(dtype), None, value, fields, dtype.itemsize)
    special = typestr[1] == "V" or typestr[1:] == "f1"
    return _memory(name, address, typestr, str(dtype) if special else typestr, tuple(interface["shape"]), value)


def _of_buffer(name: str, value: typing.Any) -> Memory:
    try:
        view = memoryview(value)
    except TypeError:
        raise TypeError(f"'{name}' is of type {type(value).__name__}; a session saves arrays, objects with a writable buffer, and plain "
                        f"values (None, bool, int, float, str, list, dict)") from None
    if view.readonly:
        raise ValueError(f"'{name}' is read-only, and a restart could not fill it; declare a bytearray or a writable array")
    if not view.c_contiguous:
        raise ValueError(f"'{name}' is not contiguous in C order; declare a contiguous copy")
    kind = _FORMATS.get(view.format.lstrip("@"))
    size = view.itemsize
    typestr = f"{'|' if size == 1 else _NATIVE}{kind}{size}" if kind else f"|V{size}"
    address = ctypes.addressof((ctypes.c_char * view.nbytes).from_buffer(view))
    return _memory(name, address, typestr, typestr, tuple(view.shape or ()), view)


class _DLTensor(ctypes.Structure):
    """The beginning of dlpack.h's DLManagedTensor."""
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_DL_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
_DL_BFLOAT = 4
_DL_REACHABLE = {1: "cpu", 2: "cuda", 3: "cuda_host", 13: "cuda_managed"}


def _is_dense(shape: tuple[int, ...], strides: typing.Sequence[int]) -> bool:
    """Are the elements one after the other, in C order? Strides are in elements."""
    expected = 1
    for n, stride in zip(reversed(shape), reversed(list(strides))):
        if n > 1 and stride != expected:
            return 0 in shape
        expected *= n
    return True


def _of_dlpack(name: str, value: typing.Any) -> Memory:
    """A tensor of another package, in the memory of the host or of a GPU."""
    capsule = value.__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    t = _DLTensor.from_address(pointer(capsule, b"dltensor"))
    shape = tuple(t.shape[:t.ndim])
    if t.device not in _DL_REACHABLE:
        raise TypeError(f"tensor '{name}' is on a device of DLPack's kind {t.device}; varve reaches the host and NVIDIA GPUs")
    if t.lanes != 1 or t.bits % 8 or (t.code not in _DL_KINDS and t.code != _DL_BFLOAT):
        raise TypeError(f"tensor '{name}' has elements of DLPack's kind {t.code} of {t.bits} bits; use a numeric type of whole bytes")
    if t.strides and not _is_dense(shape, t.strides[:t.ndim]):
        raise ValueError(f"tensor '{name}' is not contiguous in C order; declare a contiguous copy")
    size = t.bits // 8
    dtype = "bfloat16" if t.code == _DL_BFLOAT else f"{'|' if size == 1 else _NATIVE}{_DL_KINDS[t.code]}{size}"
    typestr = f"{_NATIVE}V2" if t.code == _DL_BFLOAT else dtype
    return _memory(name, (t.data or 0) + t.byte_offset, typestr, dtype, shape, (value, capsule))


def _of_cuda(name: str, value: typing.Any) -> Memory:
    """An array of CuPy, Numba and others in a GPU's memory."""
    interface = value.__cuda_array_interface__
    address, read_only = interface["data"]
    typestr, shape, strides = interface["typestr"], tuple(interface["shape"]), interface.get("strides")
    size = int(re.sub(r"\D", "", typestr))
    if strides is not None and not _is_dense(shape, [s // size for s in strides]):
        raise ValueError(f"array '{name}' is not contiguous in C order; declare a contiguous copy")
    if read_only:
        raise ValueError(f"array '{name}' is read-only, and a restart could not fill it; declare a writable array")
    if interface.get("mask") is not None:
        raise TypeError(f"array '{name}' is masked; declare its data and its mask as two arrays")
    return _memory(name, address or 0, typestr, typestr, shape, value)


def memory_of(name: str, value: typing.Any) -> Memory:
    """The memory of an array or a buffer. Raises TypeError or ValueError with the name if it cannot be declared."""
    for attribute, read in (("__array_interface__", _of_interface), ("__cuda_array_interface__", _of_cuda), ("__dlpack__", _of_dlpack)):
        if hasattr(value, attribute):
            return read(name, value)
    return _of_buffer(name, value)


def plain(value: typing.Any) -> typing.Any:
    """A scalar of NumPy as Python's; any other value as it is."""
    numpy = sys.modules.get("numpy")
    return value.item() if numpy and isinstance(value, numpy.generic) else value


def check_plain(name: str, value: typing.Any, depth: int = 0) -> None:
    """Raises TypeError unless JSON gives the value back as it is."""
    if depth > 100:
        raise TypeError(f"'{name}' is nested too deeply, or contains itself")
    if type(value) not in PLAIN:
        raise TypeError(f"'{name}' is of type {type(value).__name__}, which is no plain value (None, bool, int, float, str, list, dict)")
    if type(value) is list:
        for i, item in enumerate(value):
            check_plain(f"{name}[{i}]", item, depth + 1)
    elif type(value) is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise TypeError(f"'{name}' has a key of type {type(key).__name__}; keys of a plain dict are of type str")
            check_plain(f"{name}[{key!r}]", item, depth + 1)
