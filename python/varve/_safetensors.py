"""Files of safetensors: eight bytes with the length of a header, the header in JSON, and the bytes of the tensors."""
from __future__ import annotations

import contextlib
import io
import json
import os
import struct
import typing

import torch

from ._native import Damaged, Invalid
from ._tensors import check_tensor

_DTYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "I64": "int64",
           "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64", "BOOL": "bool"}
_BY_NAME = {name: getattr(torch, found) for name, found in _DTYPES.items() if hasattr(torch, found)}
_BY_DTYPE = {dtype: name for name, dtype in _BY_NAME.items()}
_LONGEST = 100_000_000  # bytes of a header, as in the library of safetensors


def load(path: str | os.PathLike) -> dict[str, torch.Tensor]:
    """The tensors of a file of safetensors, by name. Nothing in the file is executed.

    >>> import tempfile, torch, varve.torch
    >>> folder = tempfile.TemporaryDirectory()
    >>> varve.torch.save_safetensors({"w": torch.arange(3.0), "step": 7}, folder.name + "/w.safetensors")
    ['step']
    >>> varve.torch.load_safetensors(folder.name + "/w.safetensors")
    {'w': tensor([0., 1., 2.])}
    >>> folder.cleanup()
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        begin = file.read(8)
        length = struct.unpack("<Q", begin)[0] if len(begin) == 8 else size
        if length > min(size - 8, _LONGEST):
            raise Damaged(f"'{os.fspath(path)}' is no file of safetensors: its header does not fit into {size} bytes")
        try:
            header = json.loads(file.read(length).decode())
            places = [_place(name, row, size - 8 - length) for name, row in header.items() if name != "__metadata__"]
            _check_order(places, size - 8 - length)
            return {name: _read(file, 8 + length + start, dtype, shape) for name, dtype, shape, start, _ in places}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, RuntimeError, OverflowError) as e:
            raise Damaged(f"'{os.fspath(path)}' is no file of safetensors: {e}") from None


def _place(name: str, row: dict[str, typing.Any], room: int) -> tuple[str, torch.dtype, list[int], int, int]:
    dtype, shape, (start, end) = _BY_NAME.get(row["dtype"]), row["shape"], row["data_offsets"]
    if dtype is None:
        raise ValueError(f"tensor '{name}' has dtype {row['dtype']!r}, which this PyTorch does not have")
    if not all(type(n) is int and n >= 0 for n in [*shape, start, end]):
        raise ValueError(f"tensor '{name}' has no possible shape and place")
    bytes_ = torch.empty(0, dtype=dtype).element_size()
    for n in shape:
        bytes_ *= n
    if end - start != bytes_ or end > room:
        raise ValueError(f"tensor '{name}' of {bytes_} bytes is not at {start} to {end} of {room} bytes")
    return name, dtype, shape, start, end


def _check_order(places: list[tuple[str, torch.dtype, list[int], int, int]], room: int) -> None:
    """Each byte belongs to one tensor. Else a small file could ask for any amount of memory, or hide something."""
    at = 0
    for name, _, _, start, end in sorted(places, key=lambda place: place[3:]):
        if start != at:
            raise ValueError(f"tensor '{name}' begins at {start}, and the tensors before it end at {at}")
        at = end
    if at != room:
        raise ValueError(f"its tensors end at {at} of {room} bytes")


def _read(file: io.BufferedReader, start: int, dtype: torch.dtype, shape: list[int]) -> torch.Tensor:
    t = torch.empty(shape, dtype=dtype, device="cpu")
    if t.numel():
        file.seek(start)
        whole = memoryview(t.view(-1).view(torch.uint8).numpy())
        if file.readinto(whole) != len(whole):
            raise Damaged("the file has become shorter")
    return t


def _flat(value: typing.Any, path: str, tensors: dict[str, torch.Tensor], rest: list[str]) -> None:
    if isinstance(value, torch.Tensor):
        if path in tensors:
            raise Invalid(f"two tensors have the name '{path}'; rename one of them")
        tensors[path] = value
    elif isinstance(value, (dict, list, tuple)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            _flat(item, f"{path}.{key}" if path else str(key), tensors, rest)
    else:
        rest.append(path)


def save(obj: typing.Any, path: str | os.PathLike) -> list[str]:
    """Writes all tensors of nested dicts and lists into a file of safetensors; a name is the path to a tensor, as in "model.weight".

    The file has no place for other values: their paths are returned. The file appears when it is complete and durable. Tensors that
    share memory are written each.
    """
    tensors: dict[str, torch.Tensor] = {}
    rest: list[str] = []
    _flat(obj, "", tensors, rest)
    header, at = {}, 0
    for name, t in sorted(tensors.items(), key=lambda item: -item[1].element_size()):  # aligned, if the header is
        check_tensor(name, t)
        if t.dtype not in _BY_DTYPE:
            raise Invalid(f"tensor '{name}' has dtype {t.dtype}, which safetensors does not have; convert it")
        size = t.numel() * t.element_size()
        header[name] = {"dtype": _BY_DTYPE[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    _publish(os.fsdecode(path), struct.pack("<Q", len(text)) + text, [tensors[name] for name in header])
    return rest


def _publish(path: str, header: bytes, tensors: list[torch.Tensor]) -> None:
    part = f"{path}.part"
    file = open(part, "wb")
    try:
        with file:
            file.write(header)
            for t in tensors:
                t = t.detach().cpu().resolve_conj().resolve_neg().contiguous()
                if t.numel():
                    file.write(memoryview(t.view(-1).view(torch.uint8).numpy()))
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)  # the name
    finally:
        os.close(folder)
