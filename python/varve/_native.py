"""libvarve.so: where it is, its functions, and its errors as exceptions.

A thread that waits in a page fault may hold the interpreter's lock, and the thread of the library that it waits for must
not need this lock. So no thread of the library calls a function of Python, but for the communicator of _group.py, and
for this communicator no page fault waits.
"""
from __future__ import annotations

import ctypes
import itertools
import os
import typing

__version__ = "0.1.0"

LATEST = 2**64 - 1
MAX_DIMS = 16
GLOBAL = 2**32 - 1  # a rank: what all ranks have together
SONAME = "libvarve.so.0"
INTERPOSE = "libvarve_interpose.so.0"


class Error(Exception):
    """A call of the library failed. `code` is its number in varve.h; the text says what, where and what to do."""
    code = 0

    def __init__(self, sentence: str, code: int | None = None):
        super().__init__(sentence)
        if code is not None:
            self.code = code


class Invalid(Error):
    """A bad argument, a bad option, a wrong order of calls."""
    code = -1


class NoMemory(Error):
    """Out of memory, or of file descriptors."""
    code = -2


class Failed(Error):
    """A disk, a network or a system call failed."""
    code = -3


class NotFound(Error):
    """No such store, lineage, epoch or region."""
    code = -4


class Damaged(Error):
    """Stored bytes differ from the bytes written."""
    code = -5


class Busy(Error):
    """Another writer has the lineage."""
    code = -6


class Mismatch(Error):
    """A region's size or type differs from the stored one."""
    code = -7


class NoSpace(Error):
    """The store is full."""
    code = -8


class NotSupported(Error):
    """Not built in."""
    code = -9


class Denied(Error):
    """Permission or credentials."""
    code = -10


class PeerFailed(Error):
    """Another rank failed, or did not answer in time."""
    code = -11


for _class in [Error, *Error.__subclasses__()]:
    _class.__module__ = "varve"  # as users know it
_BY_CODE = {c.code: c for c in (Invalid, NoMemory, Failed, NotFound, Damaged, Busy, Mismatch, NoSpace, NotSupported, Denied,
                                PeerFailed)}


class RegionInfo(ctypes.Structure):
    """struct varve_region_info"""
    _fields_ = [("bytes", ctypes.c_uint64), ("type", ctypes.c_int), ("ndim", ctypes.c_int),
                ("shape", ctypes.c_uint64 * MAX_DIMS)]


class Array(ctypes.Structure):
    """struct varve_array"""
    _fields_ = [("name", ctypes.c_char_p), ("p", ctypes.c_void_p), ("type", ctypes.c_int), ("ndim", ctypes.c_int),
                ("shape", ctypes.POINTER(ctypes.c_size_t))]


class StoredEpoch(ctypes.Structure):
    """struct varve_stored_epoch"""
    _fields_ = [("epoch", ctypes.c_uint64), ("parent", ctypes.c_uint64), ("time_ns", ctypes.c_uint64),
                ("bytes_memory", ctypes.c_uint64), ("bytes_stored", ctypes.c_uint64), ("bytes_layer", ctypes.c_uint64),
                ("ranks", ctypes.c_uint32), ("complete", ctypes.c_int), ("problem", ctypes.c_char_p),
                ("label", ctypes.POINTER(ctypes.c_char_p)), ("n_labels", ctypes.c_size_t)]


class Field(ctypes.Structure):
    """struct varve_field"""
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("offset", ctypes.c_size_t), ("bytes", ctypes.c_size_t)]


class StoredRegion(ctypes.Structure):
    """struct varve_stored_region"""
    _fields_ = [("name", ctypes.c_char_p), ("bytes", ctypes.c_uint64), ("type", ctypes.c_int), ("element", ctypes.c_uint32),
                ("ndim", ctypes.c_int), ("shape", ctypes.c_uint64 * MAX_DIMS),
                ("field", ctypes.POINTER(Field)), ("n_fields", ctypes.c_size_t)]


_handle, _text, _out = ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)
_u64, _u32, _size = ctypes.c_uint64, ctypes.c_uint32, ctypes.c_size_t
_u64s = ctypes.POINTER(_u64)
_FUNCTIONS: dict[str, list] = {
    "varve_open": [_text, _text, _text, _out],
    "varve_close": [_handle],
    "varve_protect": [_handle, _text, ctypes.c_void_p, _size],
    "varve_protect_array": [_handle, _text, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.POINTER(_size)],
    "varve_protect_arrays": [_handle, ctypes.POINTER(Array), _size],
    "varve_protect_records": [_handle, _text, ctypes.c_void_p, _size, _size, ctypes.POINTER(Field), _size],
    "varve_protect_slab": [_handle, _text, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, *4 * [ctypes.POINTER(_size)]],
    "varve_protect_shared": [_handle, _text, ctypes.c_void_p, _size],
    "varve_protect_list": [_handle, _text, ctypes.c_void_p, ctypes.c_int, _size, _size],
    "varve_list_share": [_handle, _u64, _text, _u64s, _u64s],
    "varve_unprotect": [_handle, _text],
    "varve_checkpoint": [_handle],
    "varve_label": [_handle, _text],
    "varve_wait_for": [_handle, _u64, ctypes.c_double],
    "varve_due": [_handle],
    "varve_restart": [_handle, _u64],
    "varve_restart_region": [_handle, _u64, _text, ctypes.c_void_p, _size],
    "varve_region_sized": [_handle, _u64, _text, ctypes.POINTER(RegionInfo), _size],
    "varve_reader_open": [_text, _text, _text, _out],
    "varve_reader_close": [_handle],
    "varve_reader_lineages": [_handle, ctypes.POINTER(ctypes.POINTER(_text)), ctypes.POINTER(_size)],
    "varve_reader_epochs": [_handle, ctypes.POINTER(ctypes.POINTER(ctypes.POINTER(StoredEpoch))), ctypes.POINTER(_size)],
    "varve_reader_regions": [_handle, _u64, _u32, ctypes.POINTER(ctypes.POINTER(ctypes.POINTER(StoredRegion))),
                             ctypes.POINTER(_size)],
    "varve_reader_read": [_handle, _u64, _u32, _text, _u64, _u64, ctypes.c_void_p],
    "varve_reader_read_part": [_handle, _u64, _u32, _text, _u64s, _u64s, ctypes.c_void_p],
}


def places(name: str) -> list[str]:
    """Where a library may be: beside this package, in a folder above it, or anywhere that the dynamic linker looks."""
    folders, folder = [], os.path.dirname(os.path.realpath(__file__))
    for _ in range(6):
        folders += [folder, os.path.join(folder, "lib64")]
        folder = os.path.dirname(folder)
    return [*filter(os.path.isfile, (os.path.join(f, name) for f in folders)), name]


def _loaded(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return None


def beside(name: str) -> ctypes.CDLL:
    """Another library of varve, from the folder of libvarve.so if that is known."""
    native()
    named = os.environ.get("VARVE_LIBRARY")
    first = [os.path.join(os.path.dirname(os.path.abspath(named)), name)] if named else []
    failures = []
    for place in [*first, *places(name)]:
        try:
            return ctypes.CDLL(place)
        except OSError as e:
            failures.append(str(e))
    raise ImportError(f"cannot load {name}: {'; '.join(failures)} (build varve with MPI, and install it)")


def _find() -> ctypes.CDLL:
    named = os.environ.get("VARVE_LIBRARY")
    failures = []
    found = None if named else _loaded(SONAME)  # a preloaded libvarve_interpose.so has brought it along
    for place in [] if found else [named] if named else places(SONAME):
        try:
            return ctypes.CDLL(place)
        except OSError as e:
            failures.append(str(e))
    if found:
        return found
    remedy = "VARVE_LIBRARY names this file" if named else \
        "install varve, run ldconfig, or set VARVE_LIBRARY to the path of libvarve.so"
    raise ImportError(f"cannot load libvarve.so: {'; '.join(failures)} ({remedy})")


def _check_version(library: ctypes.CDLL) -> None:
    library.varve_version.restype = _text
    version = library.varve_version().decode()
    if version.split(".")[:2] != __version__.split(".")[:2]:
        raise ImportError(f"libvarve.so is version {version}, and this Python package is version {__version__}; install the "
                          f"package of the same version, or set VARVE_LIBRARY to the path of the other libvarve.so")


_opened: ctypes.CDLL | None = None


def native() -> typing.Any:
    """libvarve.so, loaded at the first call."""
    global _opened
    if _opened is None:
        found = _find()
        try:
            _check_version(found)
            for name, arguments in _FUNCTIONS.items():
                getattr(found, name).argtypes = arguments
        except AttributeError as e:
            raise ImportError(f"this is not libvarve.so of version {__version__}: {e}") from None
        found.varve_epoch.argtypes, found.varve_epoch.restype = [_handle], _u64
        found.varve_protected_epoch.argtypes, found.varve_protected_epoch.restype = [_handle], _u64
        found.varve_last_error.restype = _text
        _opened = found
    return _opened


def native_version() -> str:
    """The version of libvarve.so.

    >>> import varve
    >>> varve.native_version().split(".")[:2] == varve.__version__.split(".")[:2]
    True
    """
    return native().varve_version().decode()


def is_interposed() -> bool:
    """Do the functions of libvarve_interpose.so come before those of the C library?"""
    interpose = _loaded(INTERPOSE)
    address = lambda of: ctypes.cast(of.read, ctypes.c_void_p).value
    return interpose is not None and address(ctypes.CDLL(None)) == address(interpose)


def check(rc: int) -> int:
    """The result of a call, or its error as an exception."""
    if rc >= 0:
        return rc
    sentence = native().varve_last_error().decode(errors="replace")
    raise _BY_CODE.get(rc, Error)(sentence or f"error {rc}", rc)


ABSENT = object()
Change = typing.Tuple[typing.Dict[str, typing.Any], typing.Dict[str, typing.Any]]  # a record, and its new values or ABSENT


def _put(changes: typing.Iterable[Change]) -> None:
    for record, values in changes:
        for name, value in values.items():
            if value is ABSENT:
                record.pop(name, None)
            else:
                record[name] = value


def recorded(changes: list[Change], function: typing.Callable[..., int], *arguments: typing.Any) -> None:
    """Changes records, then calls a function of the library. A handler of a signal may raise an exception before the call or after it.

    If the library was not called, or returns an error, the records get their old values. Until then the old values keep the arrays' memory alive.
    """
    before = [(record, {name: record.get(name, ABSENT) for name in values}) for record, values in changes]
    waiting = iter([arguments])
    results: list[int] = []
    step = itertools.starmap(function, waiting)
    try:
        _put(changes)
        results.extend(step)  # one step for Python: no handler comes between the call and its result
    except ctypes.ArgumentError:  # the library was not called
        _put(before)
        raise
    finally:
        if next(waiting, None) is not None or (results and results[0] < 0):
            _put(before)
    check(results[0])


def encode(what: str, text: str | os.PathLike) -> bytes:
    """A text for the library, which ends at a zero byte."""
    encoded = os.fsencode(text)
    if b"\0" in encoded:
        raise Invalid(f"{what} {text!r} has a zero byte")
    return encoded


def options_text(options: dict[str, typing.Any]) -> bytes:
    """Keywords as a string of options: keep_every=10 is keep-every=10."""
    words = []
    for name, value in options.items():
        if value is None:
            continue
        text = ("no", "yes")[value] if isinstance(value, bool) else os.fspath(value) if isinstance(value, os.PathLike) else str(value)
        text = text.replace("\\", "\\\\").replace('"', '\\"')
        words.append(f'{name.replace("_", "-")}="{text}"')
    return encode("the option string", " ".join(words))
