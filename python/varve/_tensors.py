"""The memory of many tensors as regions: memory that several tensors share is one region, and each tensor is a view of a region."""
from __future__ import annotations

import hashlib
import itertools
import operator
import typing

import torch

from ._declare import MAX_DIMS, Memory
from ._native import NoMemory
from ._tree import Refused, dtype_of

_LONGEST = 1023
_TYPES = {"int8": 1, "uint8": 2, "int16": 3, "uint16": 4, "int32": 5, "uint32": 6, "int64": 7, "uint64": 8, "float32": 9, "float64": 10,
          "complex64": 11, "complex128": 12, "bfloat16": 13, "float16": 14, "float8_e4m3fn": 15, "float8_e5m2": 16, "bool": 2, "complex32": 6}
BY_DTYPE = {getattr(torch, name): number for name, number in _TYPES.items() if hasattr(torch, name)}
_DEVICES = ("cpu", "cuda")
_SHAPE, _KIND = operator.attrgetter("shape"), operator.attrgetter("layout", "dtype", "device", "is_quantized")


class View(typing.NamedTuple):
    """A tensor as a part of a region."""
    path: str
    region: str | None  # None: it has no element
    offset: int         # in bytes
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]  # in elements
    device: str
    flags: str          # g: requires grad, p: a Parameter

    def span(self, itemsize: int) -> int:
        """The bytes from its first to its last element."""
        return (1 + sum((n - 1) * s for n, s in zip(self.shape, self.stride))) * itemsize


def check_tensor(path: str, t: torch.Tensor) -> None:
    """Raises Refused, with the name, for a tensor that has no plain memory."""
    def refuse(what: str, remedy: str) -> typing.NoReturn:
        raise Refused(f"tensor '{path}' {what}, which is not stored: {remedy}")

    if hasattr(t, "local_shards") or hasattr(t, "placements"):
        refuse("is sharded over ranks", "use varve.torch.Writer with Distributed Checkpoint")
    if t.layout is not torch.strided:
        refuse(f"is sparse ({t.layout})", "store its indices() and values(), or to_dense()")
    if t.is_quantized:
        refuse("is quantized", "store its int_repr(), scale and zero point")
    if getattr(t, "is_nested", False):
        refuse("is nested", "store its parts")
    if t.device.type not in _DEVICES:
        refuse(f"is on device '{t.device}'", "varve reaches the memory of the host and of NVIDIA GPUs")
    if t.dtype not in BY_DTYPE:
        refuse(f"has dtype {t.dtype}", "convert it")


def _order(t: torch.Tensor) -> list[int]:
    """The dimensions, slowest in memory first."""
    stride = t.stride()
    return sorted(range(t.dim()), key=lambda d: (-stride[d], d))


def _is_dense(t: torch.Tensor) -> bool:
    """Does the tensor fill its memory, in any order of its dimensions?"""
    if t.is_contiguous():
        return True
    expected = 1
    for d in reversed(_order(t)):
        if t.shape[d] != 1 and t.stride(d) != expected:
            return False
        expected *= t.shape[d]
    return True


def without_repeats(t: torch.Tensor) -> torch.Tensor:
    """An expanded tensor (stride 0) has each element in memory once; this is a view of those."""
    for d in range(t.dim()):
        if t.stride(d) == 0 and t.shape[d] > 1:
            t = t.narrow(d, 0, 1)
    return t


class _Place(typing.NamedTuple):
    device: str
    start: int
    end: int
    leaf: int
    tensor: torch.Tensor


class Layout:
    """Regions and views of a list of tensors."""

    def __init__(self, paths: typing.Sequence[str], tensors: typing.Sequence[torch.Tensor]):
        self.paths = paths
        self.tensors = list(map(torch.Tensor.detach, tensors))  # while they live, their memory stays
        self.memory: dict[str, Memory] = {}
        self.copies: list[tuple[torch.Tensor, torch.Tensor]] = []  # to, from
        self._flags = list(map(_flags, tensors))
        self._views: list[View | None] = [None] * len(tensors)
        self._used: set[str] = set()
        self._place(self._place_alone())

    @property
    def views(self) -> list[View]:
        return typing.cast("list[View]", self._views)

    def refresh(self) -> None:
        """Copies the tensors that have gaps in memory into the regions that stand for them."""
        for to, source in self.copies:
            to.copy_(source)

    def _place_alone(self) -> typing.Iterable[int]:
        """Places contiguous tensors whose memory no other one has: thousands of them in a few passes. Returns the numbers of the others."""
        tensors, everything = self.tensors, range(len(self.tensors))
        if not set(map(type, tensors)) <= {torch.Tensor} or not _are_names(self.paths):
            return everything
        try:
            kinds = list(map(_KIND, tensors))
            known = {kind: _usual(*kind) for kind in set(kinds)}
            if not all(known.values()):
                return everything
            shapes, starts = list(map(_SHAPE, tensors)), list(map(torch.Tensor.data_ptr, tensors))
            sizes = list(map(operator.mul, map(torch.Tensor.nelement, tensors), map(torch.Tensor.element_size, tensors)))
            plain = map(torch.Tensor.is_contiguous, tensors), map(torch.Tensor.is_neg, tensors), map(torch.Tensor.is_conj, tensors)
            odd = {i for i, kind in enumerate(zip(*plain)) if kind != (True, False, False)}
            for i in odd:
                sizes[i] = sizes[i] and _place(i, tensors[i]).end - starts[i]
        except (RuntimeError, NotImplementedError):  # a tensor without memory, which check_tensor refuses by name
            return everything
        for i in _without_overlaps(starts, sizes):
            if i not in odd and len(shapes[i]) <= MAX_DIMS:
                self._add_alone(i, starts[i], shapes[i], *known[kinds[i]])  # type: ignore[misc]
        return [i for i, view in enumerate(self._views) if view is None]

    def _add_alone(self, i: int, start: int, shape: tuple[int, ...], type_: int, dtype: str, device: str) -> None:
        path, t, shape = self.paths[i], self.tensors[i], tuple(shape)
        self._used.add(path)
        self._views[i] = View(path, path, 0, dtype, shape, t.stride(), device, self._flags[i])
        note = ["|b1", len(shape) or 1] if dtype == "torch.bool" else None
        self.memory[path] = Memory(start, type_, shape or (1,), dtype, note, t)

    def _place(self, numbers: typing.Iterable[int]) -> None:
        dense, gapped = [], []
        for i in numbers:
            t = self.tensors[i]
            check_tensor(self.paths[i], t)
            if t.numel() == 0:
                self._set(i, None, 0, t)
            elif t.is_conj() or t.is_neg() or not _is_dense(t):
                gapped.append(i)
            else:
                dense.append(_place(i, t))
        groups = _merge(dense)
        copied = []
        for i in gapped:
            t = self.tensors[i]
            around = None if t.is_conj() or t.is_neg() else _around(groups, _place(i, t))
            if around is not None:
                around.append(_place(i, t))
                continue
            source = without_repeats(t)
            copy = torch.empty(source.shape, dtype=t.dtype, device=t.device)
            self.copies.append((copy, source))
            shown = copy.expand(t.shape)
            copied.append([_place(i, shown, copy.numel())])
        for group in groups + copied:
            self._add(group)

    def _set(self, i: int, region: str | None, offset: int, t: torch.Tensor) -> None:
        self._views[i] = View(self.paths[i], region, offset, str(t.dtype), tuple(t.shape), tuple(t.stride()), str(t.device), self._flags[i])

    def _add(self, group: list[_Place]) -> None:
        first = group[0]
        start, end = first.start, max(p.end for p in group)
        name = self.name(self.paths[first.leaf])
        for p in group:
            self._set(p.leaf, name, p.start - start, p.tensor)
        t, size = first.tensor, first.tensor.element_size()
        type_ = BY_DTYPE[t.dtype]
        if first.end == end:  # the first one is the whole region
            t = without_repeats(t)
            shape = tuple(t.shape[d] for d in _order(t)) or (1,)
            if len(shape) > MAX_DIMS:
                shape = (t.numel(),)
        elif len({p.tensor.dtype for p in group}) == 1:
            shape = ((end - start) // size,)
        else:
            type_, shape = 2, (end - start,)
        is_bool = all(p.tensor.dtype is torch.bool for p in group)
        note = ["|b1", len(shape)] if is_bool else None
        self.memory[name] = Memory(start, type_, shape, str(t.dtype), note, [p.tensor for p in group])

    def name(self, path: str) -> str:
        """The path, or its end if it is no name of a region, unless another region has this name."""
        name, encoded = path, path.encode(errors="surrogatepass").replace(b"\0", b"?")
        if len(encoded) > _LONGEST or "\0" in path or any("\ud800" <= c <= "\udfff" for c in path):
            name = f"...{encoded[-900:].decode(errors='ignore')}#{hashlib.sha256(encoded).hexdigest()[:16]}"
        unique, n = name, 1
        while unique in self._used:
            n += 1
            unique = f"{name}#{n}"
        self._used.add(unique)
        return unique


def _flags(t: torch.Tensor) -> str:
    is_parameter = type(t) is not torch.Tensor and isinstance(t, torch.nn.Parameter)
    return ("p" if is_parameter else "") + ("g" if t.requires_grad else "")


def _are_names(paths: typing.Sequence[str]) -> bool:
    """Is each path the name of a region as it is?"""
    joined = "".join(paths)
    return joined.isascii() and "\0" not in joined and max(map(len, paths), default=0) <= _LONGEST and len(set(paths)) == len(paths) and "" not in paths


def _usual(layout: typing.Any, dtype: torch.dtype, device: torch.device, is_quantized: bool) -> tuple[int, str, str] | None:
    """The type of a region, the names of dtype and device."""
    if layout is not torch.strided or dtype not in BY_DTYPE or device.type not in _DEVICES or is_quantized:
        return None
    return BY_DTYPE[dtype], str(dtype), str(device)


def _without_overlaps(starts: list[int], sizes: list[int]) -> list[int]:
    """The numbers of tensors with memory that no other one has, in the order of memory."""
    order = sorted((i for i, size in enumerate(sizes) if size), key=starts.__getitem__)
    ends: list[int] = list(itertools.accumulate([starts[i] + sizes[i] for i in order], max))
    follows = [starts[i] >= end for i, end in zip(order[1:], ends)]  # all before it
    return [i for i, after, before in zip(order, [True, *follows], [*follows, True]) if after and before]


def _place(i: int, t: torch.Tensor, numel: int | None = None) -> _Place:
    """The first and last byte; of a tensor with gaps these are around other bytes."""
    start = t.data_ptr()
    size = t.element_size()
    if numel is None:
        numel = 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride()))
    return _Place(str(t.device), start, start + numel * size, i, t)


def _merge(places: list[_Place]) -> list[list[_Place]]:
    """Groups of tensors whose memory overlaps, the first and longest in front."""
    groups: list[list[_Place]] = []
    device, end = "", 0
    for p in sorted(places, key=lambda p: (p.device, p.start, -p.end, p.leaf)):
        if groups and p.device == device and p.start < end:
            groups[-1].append(p)
        else:
            groups.append([p])
            device, end = p.device, p.end
        end = max(end, p.end)
    return groups


def _around(groups: list[list[_Place]], p: _Place) -> list[_Place] | None:
    """The group that has all memory of p."""
    lo, hi = 0, len(groups)
    while lo < hi:
        mid = (lo + hi) // 2
        if (groups[mid][0].device, groups[mid][0].start) <= (p.device, p.start):
            lo = mid + 1
        else:
            hi = mid
    for group in groups[max(0, lo - 1):lo]:
        if group[0].device == p.device and group[0].start <= p.start and p.end <= max(q.end for q in group):
            return group
    return None


def allocate(make: typing.Callable[..., typing.Any], size: int, *arguments: typing.Any, **more: typing.Any) -> typing.Any:
    """New memory of so many bytes. A lack of memory is no damage: older epochs need as much."""
    try:
        return make(*arguments, **more)
    except (RuntimeError, MemoryError) as e:
        raise NoMemory(f"no memory for {size} bytes of the epoch: {e}; free some, and restart again") from None


def view_of(buffer: torch.Tensor, view: View) -> torch.Tensor:
    """The tensor of a view in the bytes of its region. Raises ValueError if they are not its bytes."""
    dtype = dtype_of(view.dtype)
    if view.region is None:
        return torch.empty_strided(view.shape, view.stride, dtype=dtype, device=buffer.device)
    size = torch.empty(0, dtype=dtype).element_size()
    span = view.span(size)
    if view.offset < 0 or min(view.stride, default=0) < 0 or min(view.shape, default=1) < 1 or view.offset + span > buffer.numel():
        raise ValueError(f"'{view.path}' is not inside its region")
    part = buffer[view.offset:view.offset + span]
    if part.data_ptr() % size or part.storage_offset() % size:
        part = allocate(part.clone, span)  # of bytes that tensors of several types share
    return part.view(dtype).as_strided(view.shape, view.stride)
