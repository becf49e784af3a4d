"""The epochs of a store, read without being their writer."""
from __future__ import annotations

import collections.abc
import ctypes
import datetime
import importlib
import operator
import os
import threading
import typing
import weakref

from . import _values
from ._declare import ML_NAMES, NAMES, RECORD, U8
from ._native import (GLOBAL, Invalid, NotFound, StoredEpoch, StoredRegion, check, encode, native, options_text)


def _fields(e: StoredEpoch) -> dict[str, typing.Any]:
    """A copy of what the reader lists, which it frees with its next list."""
    plain = {name: getattr(e, name) for name, _ in StoredEpoch._fields_ if name not in ("label", "n_labels")}
    return {**plain, "labels": tuple(e.label[i].decode() for i in range(e.n_labels))}


class _Record(typing.NamedTuple):
    """The fields of a record: name, type, offset and bytes of each."""
    size: int
    fields: list[tuple[str, int, int, int]]

    def dtype(self) -> typing.Any:
        import numpy
        formats = [(NAMES.get(type_, "u1"), (size // numpy.dtype(NAMES.get(type_, "u1")).itemsize,)) for _, type_, _, size in self.fields]
        return numpy.dtype({"names": [f[0] for f in self.fields], "formats": [one if n == (1,) else (one, n) for one, n in formats],
                            "offsets": [f[2] for f in self.fields], "itemsize": self.size})


def _record(r: StoredRegion) -> _Record | None:
    fields = [(f.name.decode(), f.type, f.offset, f.bytes) for f in r.field[:r.n_fields]] if r.type == RECORD else []
    return _Record(r.element, fields) if fields else None


class _Reader:
    """A reader of the library. It is closed when no object refers to it any more."""

    def __init__(self, store: str | os.PathLike, lineage: str | None, options: dict[str, typing.Any]):
        pointer = ctypes.c_void_p()
        name = None if lineage is None else encode("lineage", lineage)
        check(native().varve_reader_open(encode("store", store), name, options_text(options), ctypes.byref(pointer)))
        self.pointer = typing.cast(int, pointer.value)
        self.lock = threading.Lock()  # for lists, which are valid until the next call
        weakref.finalize(self, native().varve_reader_close, self.pointer)

    def _list(self, function: typing.Any, kind: typing.Any, *arguments: int) -> typing.Iterator[typing.Any]:
        out, n = ctypes.POINTER(kind)(), ctypes.c_size_t()
        check(function(self.pointer, *arguments, ctypes.byref(out), ctypes.byref(n)))
        return (out[i] for i in range(n.value))

    def lineages(self) -> list[str]:
        with self.lock:
            return [os.fsdecode(name) for name in self._list(native().varve_reader_lineages, ctypes.c_char_p)]

    def epochs(self) -> list[dict[str, typing.Any]]:
        with self.lock:
            found = self._list(native().varve_reader_epochs, ctypes.POINTER(StoredEpoch))
            return [_fields(e.contents) for e in found]

    def regions(self, epoch: int, rank: int) -> dict[str, tuple[int, int, tuple[int, ...], _Record | None]]:
        """Name: type, bytes, shape, record."""
        with self.lock:
            found = self._list(native().varve_reader_regions, ctypes.POINTER(StoredRegion), epoch, rank)
            return {os.fsdecode(r.contents.name): (r.contents.type, r.contents.bytes, tuple(r.contents.shape[:r.contents.ndim]),
                                                   _record(r.contents)) for r in found}


class Store(collections.abc.Mapping):
    """A store, read-only: a mapping of the names of its lineages to Lineage. It takes no lock and changes nothing."""

    def __init__(self, store: str | os.PathLike, **options: typing.Any):
        self._store, self._options = store, options
        self._reader = _Reader(store, None, options)

    def __repr__(self) -> str:
        return f"<varve.Store {os.fspath(self._store)!r}>"

    def __getitem__(self, lineage: str) -> Lineage:
        if lineage not in self._reader.lineages():
            raise KeyError(lineage)
        return Lineage(self._store, lineage, self._options)

    def __iter__(self) -> typing.Iterator[str]:
        return iter(self._reader.lineages())

    def __len__(self) -> int:
        return len(self._reader.lineages())


class Lineage:
    """The epochs of a lineage, oldest first. Each iteration lists them anew.

    lineage[12] is epoch 12, lineage["step-400"] the newest epoch with this label, lineage[-1] the newest epoch.
    """

    def __init__(self, store: str | os.PathLike, name: str, options: dict[str, typing.Any]):
        self.name = name
        self._reader = _Reader(store, name, options)

    def __repr__(self) -> str:
        return f"<varve.Lineage {self.name!r}>"

    def __iter__(self) -> typing.Iterator[Epoch]:
        return iter([Epoch(self._reader, self.name, fields) for fields in self._reader.epochs()])

    def __len__(self) -> int:
        return len(self._reader.epochs())

    def __getitem__(self, which: int | str) -> Epoch:
        epochs = list(self)
        if not isinstance(which, str) and operator.index(which) < 0:
            if -operator.index(which) > len(epochs):
                raise NotFound(f"lineage '{self.name}' has {len(epochs)} epoch(s), and {which} counts from the newest")
            return epochs[operator.index(which)]
        for e in reversed(epochs):
            if which in e.labels if isinstance(which, str) else e.number == which:
                return e
        what = f"with the label '{which}'" if isinstance(which, str) else which
        raise NotFound(f"lineage '{self.name}' has no epoch {what}")


class Epoch(collections.abc.Mapping):
    """An epoch: a mapping of names to regions (lazy arrays) and plain values, those of rank 0 first."""

    def __init__(self, reader: _Reader, lineage: str, fields: dict[str, typing.Any], rank: int = 0):
        self._reader, self._lineage, self._fields, self._rank = reader, lineage, fields, rank
        self._found: tuple[dict, dict, dict] | None = None
        self.number: int = fields["epoch"]
        self.parent: int = fields["parent"]
        self.ranks: int = fields["ranks"]
        self.complete: bool = fields["complete"] != 0
        self.problem: str | None = fields["problem"].decode(errors="replace") if fields["problem"] else None
        self.labels: tuple[str, ...] = fields["labels"]
        self.label: str | None = self.labels[-1] if self.labels else None
        self.time = datetime.datetime.fromtimestamp(fields["time_ns"] // 10**9, datetime.timezone.utc) + \
            datetime.timedelta(microseconds=fields["time_ns"] % 10**9 // 1000)
        self.nbytes: int = fields["bytes_memory"]

    def __repr__(self) -> str:
        return f"<varve.Epoch {self._lineage}@{self.number}>"

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @property
    def whole(self) -> Epoch:
        """The same epoch with the global arrays, lists and shared arrays of all ranks, each as one region."""
        return Epoch(self._reader, self._lineage, self._fields, GLOBAL)

    def rank(self, rank: int) -> Epoch:
        """The same epoch with the regions of another rank."""
        if not 0 <= rank < self.ranks:
            raise Invalid(f"{self!r} has the ranks 0 to {self.ranks - 1}, not {rank}")
        return Epoch(self._reader, self._lineage, self._fields, rank)

    def _content(self) -> tuple[dict, dict, dict]:
        """Regions, values and notes."""
        if self._found is None:
            regions = self._reader.regions(self.number, self._rank)
            values: dict[str, typing.Any] = {}
            notes: dict[str, list] = {}
            if _values.REGION in regions:
                type_, size, shape, _ = regions.pop(_values.REGION)
                text = Region(self, _values.REGION, type_, size, shape, None).read_bytes()
                values, notes = _values.unpack(text, f"epoch {self.number} of lineage '{self._lineage}'")
            self._found = regions, values, notes
        return self._found

    def __getitem__(self, name: str) -> typing.Any:
        regions, values, notes = self._content()
        if name in values:
            return values[name]
        type_, size, shape, record = regions[name]
        return Region(self, name, type_, size, shape, notes.get(name), record)

    def __iter__(self) -> typing.Iterator[str]:
        regions, values, _ = self._content()
        return iter([*regions, *values])

    def __len__(self) -> int:
        regions, values, _ = self._content()
        return len(regions) + len(values)


class Region:
    """A stored array. region[10:20] reads only these rows; numpy.asarray(region) reads all. Needs NumPy, except read_bytes()."""

    def __init__(self, epoch: Epoch, name: str, type_: int, size: int, shape: tuple[int, ...], note: list | None,
                 record: _Record | None = None):
        self.name, self.nbytes = name, size
        self._epoch, self._stored = epoch, shape or (size,)
        self._type = type_ or U8  # plain bytes are an array of them
        self._note, self._record = note, record

    def __repr__(self) -> str:
        return f"<varve.Region {self.name!r} of {self._epoch!r}, {'record' if self._record else ML_NAMES.get(self._type) or NAMES[self._type]} {list(self.shape)}>"

    @property
    def dtype(self) -> typing.Any:
        """The dtype of NumPy; that of the stored elements if NumPy does not know the declared one (bfloat16 without ml_dtypes)."""
        return self._layout()[0]

    @property
    def shape(self) -> tuple[int, ...]:
        if self._note is None:
            return self._stored
        return self._layout()[1]

    def _layout(self) -> tuple[typing.Any, tuple[int, ...]]:
        import numpy
        plain = self._record.dtype() if self._record else numpy.dtype(NAMES[self._type])
        if self._type in ML_NAMES:
            try:
                plain = numpy.dtype(getattr(importlib.import_module("ml_dtypes"), ML_NAMES[self._type]))
            except ImportError:
                pass
        if self._note is None:
            return plain, self._stored
        try:
            dtype = numpy.dtype(self._note[0])
        except (TypeError, ValueError, SyntaxError):
            dtype = plain
        for shape in (self._stored, self._stored[:-1]):  # the second: a dimension of the bytes of an element
            fits = dtype.itemsize == plain.itemsize * (1 if shape is self._stored else self._stored[-1])
            if fits and not dtype.hasobject and dtype.fields is None:
                return dtype, shape if self._note[1] else ()
        return plain, self._stored

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"region '{self.name}' has no dimension")
        return self.shape[0]

    def read_bytes(self, start: int = 0, length: int | None = None) -> bytes:
        """So many bytes from byte `start` on; all by default."""
        length = self.nbytes - start if length is None else length
        if start < 0 or length < 0 or start + length > self.nbytes:
            raise Invalid(f"region '{self.name}' has {self.nbytes} bytes, not {length} from {start} on")
        to = ctypes.create_string_buffer(length)
        check(native().varve_reader_read(self._epoch._reader.pointer, self._epoch.number, self._epoch._rank,
                                          encode("name", self.name), start, length, to))
        return to.raw

    def __array__(self, dtype: typing.Any = None, copy: bool | None = None) -> typing.Any:
        if copy is False:
            raise ValueError(f"region '{self.name}' is in a store: reading it makes a copy")
        import numpy
        return numpy.asarray(self[...], dtype)

    def __getitem__(self, index: typing.Any) -> typing.Any:
        import numpy
        dtype, shape = self._layout()
        ranges, rest = _ranges(index, shape, self.name)
        out = numpy.empty([len(r) for r in ranges], dtype)
        if out.size:
            starts, counts = [r.start for r in ranges], [len(r) for r in ranges]
            if not shape:
                starts, counts = [0] * len(self._stored), list(self._stored)
            if len(self._stored) > len(starts):
                starts, counts = [*starts, 0], [*counts, self._stored[-1]]
            self._read_part(starts, counts, out)
        return out[rest]

    def _read_part(self, starts: list[int], counts: list[int], out: typing.Any) -> None:
        start, count = ((ctypes.c_uint64 * len(x))(*x) for x in (starts, counts))
        check(native().varve_reader_read_part(self._epoch._reader.pointer, self._epoch.number, self._epoch._rank,
                                               encode("name", self.name), start, count, out.ctypes.data))


def _ranges(index: typing.Any, shape: tuple[int, ...], name: str) -> tuple[list[range], tuple]:
    """The box of elements to read, and the index of the wanted ones in it."""
    index = index if isinstance(index, tuple) else (index,)
    if sum(i is Ellipsis for i in index) > 1:
        raise IndexError(f"region '{name}': an index has one '...' at most")
    if Ellipsis not in index:
        index = (*index, Ellipsis)
    at = index.index(Ellipsis)
    if len(index) - 1 > len(shape):
        raise IndexError(f"region '{name}' has {len(shape)} dimension(s), and the index has {len(index) - 1}")
    index = (*index[:at], *[slice(None)] * (len(shape) - len(index) + 1), *index[at + 1:])
    box: list[range] = []
    rest: list[slice | int] = []
    for i, n in zip(index, shape):
        if isinstance(i, slice):
            wanted = range(*i.indices(n))
            ordered = wanted if wanted.step > 0 else wanted[::-1]
            box.append(range(ordered[0], ordered[-1] + 1) if ordered else range(0))
            rest.append(slice(None, None, wanted.step))
            continue
        try:
            i = operator.index(i)
        except TypeError:
            raise IndexError(f"region '{name}': an index is a number, a slice or '...'; read the rows first, then select") from None
        if not -n <= i < n:
            raise IndexError(f"region '{name}': index {i} is out of bounds for a dimension of {n}")
        box.append(range(i % n, i % n + 1))
        rest.append(0)
    return box, tuple(rest)
