"""A session: the only writer of a lineage."""
from __future__ import annotations

import collections
import collections.abc
import ctypes
import functools
import itertools
import operator
import os
import queue
import struct
import sys
import threading
import typing
import warnings
import weakref

from . import _values
from ._declare import PLAIN, Memory, memory_of, plain
from ._native import ABSENT, LATEST, Array, Damaged, Error, Field, Invalid, Mismatch, NotFound, PeerFailed, RegionInfo
from ._native import check, encode, is_interposed, native, options_text, recorded
from ._parts import Parts

_NOTE = operator.attrgetter("note")
_SLICE = 0.1  # seconds of a wait, after which Python may handle a signal
DoneFunction = typing.Callable[[int, typing.Optional[Error]], object]


def open(store: str | os.PathLike, lineage: str, **options: typing.Any) -> Session:
    """Opens a lineage as its only writer. The store and the lineage are created if they do not exist.

    Options are those of varve.conf(5), with underscores for dashes: keep=3, keep_every=10, codec="zstd", interval="10m".

    Without libvarve_interpose.so (`python3 -m varve PROGRAM` loads it) the default is mode="sync": checkpoint() returns when the epoch is
    durable. Otherwise it is "async". The keyword and the variable VARVE_MODE decide before this default.
    """
    return Session(store, lineage, **options)


class Group:
    """The processes of a session: this one. varve.mpi and varve.torch have groups of several."""
    rank, size = 0, 1
    any_thread = True  # may any thread of a process wait for an epoch?

    def open(self, *arguments: typing.Any) -> int:
        """varve_open, or its collective form."""
        return native().varve_open(*arguments)

    def call(self, function: typing.Callable[..., typing.Any], *arguments: typing.Any) -> typing.Any:
        """Calls a function of the library in which the processes meet."""
        return function(*arguments)

    def close(self) -> None:
        """After varve_close, or a varve_open that failed."""

    def least(self, number: int) -> int:
        """The least of the numbers of all processes."""
        return number


class _Handle:
    """The session of the library, with the memory that it may read. It outlives its Session until it is closed."""

    def __init__(self, pointer: int, about: str, group: Group):
        self.pointer = pointer
        self.about = about
        self.group = group  # the library calls it until the session is closed
        self.pid = os.getpid()
        self.memory: dict[str, Memory] = {}
        self.texts: dict[str, _values.Buffer] = {}
        self.lock = threading.RLock()  # of calls that consist of several calls of the library
        self.change = threading.Condition()
        self.inside: collections.Counter[int] = collections.Counter()  # calls in progress, by thread
        self.is_closing = self.is_closed = False
        self._open = iter([pointer])  # varve_close takes the pointer from here, once
        self._results: list[int] = []  # of varve_close

    def __enter__(self) -> int:
        """The beginning of a call."""
        if self.pid != os.getpid():
            raise Invalid(f"{self.about} belongs to process {self.pid}; a child of fork opens a session of its own")
        with self.change:
            if self.is_closing:
                raise Invalid(f"{self.about} is closed; open another one")
            self.inside[threading.get_ident()] += 1
        return self.pointer

    def __exit__(self, *_: object) -> None:
        with self.change:
            self.inside[threading.get_ident()] -= 1
            self.change.notify_all()

    def check_outside(self) -> None:
        """A handler of a signal has interrupted a call of its own thread, which goes on only after the handler."""
        if self.inside[threading.get_ident()]:
            raise Invalid(f"{self.about}: close() in a signal handler, in the midst of another call of this session; let the handler set a "
                          f"flag, or raise an exception")

    def close(self) -> None:
        """Lets calls of other threads end, then closes. Where a KeyboardInterrupt ends it, another call goes on."""
        if self.pid == os.getpid():
            with self.change:
                self.is_closing = True
                while any(self.inside.values()):
                    self.change.wait()
        # one step for Python: no signal comes between the call and its result
        self.group.call(self._results.extend, map(native().varve_close, self._open))
        if self._results:
            self.memory.clear()
            self.is_closed = True
            self.group.close()
            check(self._results.pop())

    def call(self, function: typing.Callable[..., int], *arguments: typing.Any) -> int:
        """The result of a function of the library in which the processes meet."""
        return check(self.group.call(function, self.pointer, *arguments))

    def wait_for(self, epoch: int, seconds: float) -> bool:
        with self:
            return self.call(native().varve_wait_for, epoch, seconds) == 1


called = threading.local()  # by_library: this thread is in a function that the library has called


def _finish(handle: _Handle) -> None:
    """At the end of the program, or of a Session that nobody closed. The garbage collector runs on any thread: also on the one that
    stores epochs, which cannot wait for itself."""
    if getattr(called, "by_library", False):
        threading.Thread(target=_finish, args=(handle,), name="varve-close").start()
        return
    try:
        handle.close()
    except Error as e:
        print(f"varve: {handle.about}: {e}", file=sys.stderr)


class _Done:
    """A thread that waits for each epoch and calls functions."""

    def __init__(self, handle: _Handle):
        self.handle = handle
        self.function: DoneFunction | None = None
        self.epochs: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.ended = threading.Event()  # an interrupted join() takes the thread for ended
        self.thread = threading.Thread(target=self._run, name="varve-done", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        called.by_library = True  # close() waits for calls of this thread
        while epoch := self.epochs.get():
            error = None
            try:
                while not self.handle.wait_for(epoch, _SLICE):
                    pass
            except Error as e:
                error = e
            try:
                if self.function:
                    self.function(epoch, error)
            except Exception:
                sys.excepthook(*sys.exc_info())
        self.ended.set()

    def end(self) -> None:
        self.epochs.put(0)
        if self.thread is not threading.current_thread():
            self.ended.wait()


_Call = typing.TypeVar("_Call", bound=typing.Callable[..., typing.Any])


def alone(call: _Call) -> _Call:
    """A method of a session that other threads do not enter meanwhile. In a child of fork, and after close(), it raises Invalid."""
    @functools.wraps(call)
    def locked(self: typing.Any, *arguments: typing.Any, **more: typing.Any) -> typing.Any:
        with self._handle:
            pass
        with self._handle.lock:
            return call(self, *arguments, **more)
    return typing.cast(_Call, locked)


class _Arrays:
    """A table of struct varve_array, made of a few blocks of memory: thousands of arrays are declared at once."""
    _row = struct.Struct("@PPiiP").pack

    def __init__(self, memory: dict[str, Memory]):
        joined = "\0".join(memory)
        if joined.isascii() and joined.count("\0") == len(memory) - 1:
            names = joined.encode().split(b"\0")
        else:
            names = [encode("name", name) for name in memory]
        self.names = ctypes.create_string_buffer(b"\0".join(names) + b"\0")
        sizes = [len(m.shape) for m in memory.values()]
        self.shapes = (ctypes.c_size_t * sum(sizes))(*[n for m in memory.values() for n in m.shape])
        name_at = _offsets(ctypes.addressof(self.names), [len(name) + 1 for name in names])
        shape_at = _offsets(ctypes.addressof(self.shapes), [ctypes.sizeof(ctypes.c_size_t) * n for n in sizes])
        rows = map(self._row, name_at, [m.address for m in memory.values()], [m.type for m in memory.values()], sizes, shape_at)
        self.table = (Array * len(names)).from_buffer_copy(b"".join(rows))


def _offsets(start: int, lengths: list[int]) -> typing.Iterator[int]:
    """Where parts of these lengths begin, one after the other."""
    return itertools.accumulate(lengths, initial=start)


class Session(Parts, collections.abc.MutableMapping):
    """A lineage that this process writes: a mapping of names to arrays and plain values. See open().

    Arrays are declared in place: a checkpoint saves their present content, and a restart fills them. The session keeps a reference to
    each array. Plain values (None, bool, int, float, str, list, dict) are saved as JSON.
    """

    def __init__(self, store: str | os.PathLike, lineage: str, *, _group: Group | None = None, **options: typing.Any):
        group = _group or Group()
        pointer = ctypes.c_void_p()
        if options.get("mode") is None and "VARVE_MODE" not in os.environ and not is_interposed():
            options["mode"] = "sync"
        self._store, self._lineage, self._options = store, lineage, options
        try:
            check(group.open(encode("store", store), encode("lineage", lineage), options_text(options), ctypes.byref(pointer)))
        except Exception:
            group.close()
            raise
        self._handle = _Handle(typing.cast(int, pointer.value), f"the session of lineage '{lineage}'", group)
        self._arrays: dict[str, typing.Any] = {}
        self._plain: dict[str, typing.Any] = {}
        self._parts = {}
        self._assigned: set[str] = set()  # plain values since the last restart
        self._done: _Done | None = None
        self._finish = weakref.finalize(self, _finish, self._handle)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.close()
        except Error as e:
            if error is None:
                raise
            warnings.warn(f"{self._handle.about}: {e}", RuntimeWarning, stacklevel=2)

    def __repr__(self) -> str:
        return f"<varve.Session {os.fspath(self._store)!r} {self._lineage!r}{', closed' if self._handle.is_closing else ''}>"

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @property
    def rank(self) -> int:
        """The number of this process in the session, from 0 on."""
        return self._handle.group.rank

    @property
    def size(self) -> int:
        """The number of processes in the session."""
        return self._handle.group.size

    # ---- names and values --------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> typing.Any:
        return self._plain[name] if name in self._plain else self._arrays[name]

    @alone
    def __setitem__(self, name: str, value: typing.Any) -> None:
        value = plain(value)
        if type(name) is not str or not name or name == _values.REGION:
            raise Invalid(f"{name!r} cannot be the name of a region; use another text")
        if type(value) in PLAIN:
            with self._handle:
                pass
            if name in self._arrays:
                del self[name]
            self._plain[name] = value
            self._assigned.add(name)
        else:
            self._declare(name, value)

    def _declare(self, name: str, value: typing.Any) -> None:
        memory = memory_of(name, value)
        known = self._handle.memory.get(name)
        if known and self._arrays.get(name) is value and name not in self._parts and known.declares_as(memory):
            return
        shape = (ctypes.c_size_t * len(memory.shape))(*memory.shape)
        records = [(self._handle.memory, {name: memory}), (self._arrays, {name: value}), (self._plain, {name: ABSENT}), (self._parts, {name: ABSENT})]
        with self._handle as pointer:
            if memory.fields:
                fields = (Field * len(memory.fields))(*[Field(f.encode(), *rest) for f, *rest in memory.fields])
                recorded(records, native().varve_protect_records, pointer, encode("name", name), memory.address, shape[0], memory.record, fields, len(fields))
            else:
                recorded(records, native().varve_protect_array, pointer, encode("name", name), memory.address, memory.type, len(shape), shape)

    def _declare_all(self, memory: dict[str, Memory]) -> None:
        """Declares many arrays in one call of the library: all of them, or none if it fails."""
        arrays = _Arrays(memory)
        records = [(self._handle.memory, memory), (self._arrays, {name: m.keep for name, m in memory.items()})]
        with self._handle as pointer:
            recorded(records, native().varve_protect_arrays, pointer, arrays.table, len(memory))

    @alone
    def __delitem__(self, name: str) -> None:
        if name in self._plain:
            del self._plain[name]
            return
        self._arrays[name]
        records = [(record, {name: ABSENT}) for record in (self._handle.memory, self._arrays, self._parts)]
        with self._handle as pointer:
            recorded(records, native().varve_unprotect, pointer, encode("name", name))

    def _delete(self, names: typing.Iterable[str]) -> None:
        """Many of them."""
        for name in list(names):
            del self[name]

    def __iter__(self) -> typing.Iterator[str]:
        return iter([*self._arrays, *self._plain])

    def __len__(self) -> int:
        return len(self._arrays) + len(self._plain)

    # ---- checkpoint --------------------------------------------------------------------------------------------------

    @alone
    def checkpoint(self) -> int:
        """Saves the present content as a new epoch, and returns its number.

        With mode="async" the epoch is stored in the background; the arrays may be changed at once. If the previous epoch failed, the call
        raises its error and takes no epoch.
        """
        with self._handle as pointer:
            self._write_text(pointer)
            self._handle.call(native().varve_checkpoint)
            epoch = native().varve_epoch(pointer)
        if self._done:
            self._done.epochs.put(epoch)
        return epoch

    def _write_text(self, pointer: int) -> None:
        """Declares the region of the plain values, with their present content."""
        memory = self._handle.memory
        notes = {name: m.note for name, m in memory.items() if m.note} if any(map(_NOTE, memory.values())) else {}
        if not self._plain and not notes:
            if _values.REGION in self._handle.texts:
                self._drop_text(pointer, _values.REGION)
            return
        self._write(pointer, _values.REGION, _values.pack(self._plain, notes))

    def _write(self, pointer: int, region: str, text: bytes) -> None:
        """Declares a region with this text."""
        texts = self._handle.texts
        if region in texts and texts[region].fits(text):
            texts[region].fill(text)
            return
        buffer = _values.Buffer(len(text))
        buffer.fill(text)
        recorded([(texts, {region: buffer})], native().varve_protect, pointer, region.encode(), buffer.memory, len(buffer.memory))

    def _drop_text(self, pointer: int, *regions: str) -> None:
        """Removes these regions, or all that have texts."""
        for region in regions or list(self._handle.texts):
            recorded([(self._handle.texts, {region: ABSENT})], native().varve_unprotect, pointer, region.encode())

    def _read(self, pointer: int, epoch: int, region: str) -> bytes:
        """The text of a region."""
        info = RegionInfo()
        check(native().varve_region_sized(pointer, epoch, region.encode(), ctypes.byref(info), ctypes.sizeof(info)))
        text = ctypes.create_string_buffer(info.bytes)
        check(native().varve_restart_region(pointer, epoch, region.encode(), text, info.bytes))
        return text.raw

    def label(self, label: str | None) -> None:
        """Gives the epoch of the next checkpoint a label, such as "step-400". None removes a label that is not used yet."""
        with self._handle as pointer:
            check(native().varve_label(pointer, encode("label", label or "")))

    def due(self) -> bool:
        """Is a checkpoint due, by the options interval, overhead and mtbf, or on request? Without these options always."""
        with self._handle:
            return self._handle.call(native().varve_due) == 1

    @property
    def epoch(self) -> int:
        """The number of the newest epoch of this session, taken or restarted from; 0 if there is none."""
        with self._handle as pointer:
            return native().varve_epoch(pointer)

    @property
    def protected_epoch(self) -> int:
        """The newest epoch of this session that bears the loss of nodes (option redundancy); 0 if there is none."""
        with self._handle as pointer:
            return native().varve_protected_epoch(pointer)

    def wait(self, timeout: float | None = None, epoch: int | None = None) -> bool:
        """Waits until an epoch is durable, the newest by default. False: it is not yet, after so many seconds. Raises the epoch's error."""
        import time
        epoch = self.epoch or LATEST if epoch is None else epoch
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _SLICE if end is None else min(_SLICE, max(0.0, end - time.monotonic()))
            if self._handle.wait_for(epoch, left):
                return True
            if end is not None and time.monotonic() >= end:
                return False

    async def durable(self, epoch: int | None = None) -> int:
        """Waits as wait() does, without blocking the event loop. Returns the number of the epoch."""
        import asyncio
        epoch = self.epoch if epoch is None else epoch
        if self._handle.group.any_thread:
            while epoch and not await asyncio.to_thread(self._handle.wait_for, epoch, _SLICE):
                pass
        else:
            while epoch and not self._handle.wait_for(epoch, 0.0):
                await asyncio.sleep(0.01)
        return epoch

    def on_done(self, function: DoneFunction | None) -> None:
        """From the next checkpoint on, a thread calls function(epoch, error) once for each epoch. error is None if the epoch is durable.

        The function may use the session. None ends the calls.
        """
        if not self._handle.group.any_thread:
            raise Invalid(f"{self._handle.about}: on_done() needs a thread of its own, and only the calling thread may use the communicator; "
                          f"use wait(), or MPI_THREAD_MULTIPLE")
        with self._handle:
            if self._done is None:
                self._done = _Done(self._handle)
            self._done.function = function

    # ---- restart -----------------------------------------------------------------------------------------------------

    @alone
    def restart(self, epoch: int | str | None = None) -> bool:
        """Fills all arrays and values from an epoch: a number, a label, or the newest intact epoch.

        Returns False if the lineage has no epoch yet. After an exception the content of the arrays is undefined.
        """
        number = self._number(epoch)
        with self._handle as pointer:
            self._drop_text(pointer)
            if self._handle.call(native().varve_restart, number) == 0:
                return False
            damage = self._try_values(pointer)
            if damage and epoch is not None:
                raise damage
            if damage:
                self._restart_older(pointer, damage)
        return True

    @alone
    def load(self, epoch: int | str | None = None) -> bool:
        """As restart(), but arrays that are not declared are made and declared: v[name] is then a new array of NumPy.

        >>> import tempfile, numpy, varve
        >>> folder = tempfile.TemporaryDirectory()
        >>> with varve.open(folder.name, "run1") as v:
        ...     v["T"] = numpy.arange(3.0)
        ...     v.checkpoint()
        1
        >>> with varve.open(folder.name, "run1") as v:
        ...     v.load(), v["T"]
        (True, array([0., 1., 2.]))
        >>> folder.cleanup()
        """
        number = self._number(epoch)
        if number == LATEST:
            number = self._newest()
            if not number:
                return False
        damage = self._try_load(number)
        if damage and epoch is not None:
            raise damage
        for e in self._older(number) if damage else ():
            warnings.warn(f"{damage}; epoch {e} is tried", RuntimeWarning, stacklevel=2)
            damage = self._try_load(e)
            if damage is None:
                break
        if damage:
            raise damage
        return True

    def _newest(self) -> int:
        """The number of the newest intact epoch, the same on all ranks; 0: there is none. A restart without arrays finds it."""
        declared, parts = dict(self._arrays), dict(self._parts)
        self._check_declarable(declared)
        try:
            self._delete(declared)
            with self._handle as pointer:
                self._drop_text(pointer)
                found = self._handle.call(native().varve_restart, LATEST)
                return native().varve_epoch(pointer) if found else 0
        finally:
            try:
                self._declare_again(declared, parts)
            finally:
                self._declare_again(declared, parts)  # those that a handler of a signal has left out

    def _check_declarable(self, arrays: dict[str, typing.Any]) -> None:
        """An array may have become read-only, or have another memory."""
        error: Exception | None = None
        try:
            for name, array in arrays.items():
                memory_of(name, array)
        except Exception as e:
            error = e
        self._agree(error)

    def _declare_again(self, declared: dict[str, typing.Any], parts: dict[str, typing.Any]) -> None:
        """Those of these arrays that are not declared. The first error is raised at the end."""
        error: BaseException | None = None
        for name in [n for n in declared if n not in self._arrays]:
            how, where = parts.get(name, (Session.__setitem__, ()))
            try:
                how(self, name, declared[name], *where)
            except BaseException as e:
                error = error or e
        if error:
            raise error

    def _try_load(self, number: int) -> Damaged | None:
        """New arrays stay if the epoch is loaded; another epoch may have them in another shape."""
        made: dict[str, typing.Any] = {}
        try:
            damage = self._load_with(made, number)
            if damage is None:
                made = {}
            return damage
        finally:
            self._delete(name for name, array in made.items() if self._arrays.get(name) is array)

    def _load_with(self, made: dict[str, typing.Any], number: int) -> Damaged | None:
        error: Exception | None = None
        try:
            self._make_arrays(made, number)
        except Exception as e:
            error = e
        damage = self._agree(error)
        if damage:
            return damage
        try:
            self.restart(number)
        except Damaged as e:
            return e
        return None

    def _make_arrays(self, made: dict[str, typing.Any], number: int) -> None:
        """Declares a new array for each of the epoch's that is not declared, and puts it into `made`."""
        import numpy
        from ._store import Region
        e = self._stored()[number]
        stored = e.rank(self.rank) if self.size > 1 else e
        made.update({name: numpy.empty(region.shape, region.dtype) for name, region in stored.items()
                     if isinstance(region, Region) and name not in self._arrays})
        self.update(made)

    def _stored(self) -> typing.Any:
        from ._store import Store
        return Store(self._store, **self._options)[self._lineage]

    def _older(self, number: int) -> typing.Iterator[int]:
        """The numbers of the epochs before this one that every process has, newest first."""
        stored: list[int] = []
        error: Exception | None = None
        try:
            stored = sorted((e.number for e in self._stored() if e.number < number), reverse=True)
        except Exception as e:
            error = e
        damage = self._agree(error)
        if damage:
            raise damage
        while True:
            mine = next((n for n in stored if n < number), 0)
            number = self._handle.group.least(mine)
            if not number:
                return
            if not self._handle.group.least(int(number in stored)):
                continue
            yield number

    def _number(self, epoch: int | str | None) -> int:
        return self._stored()[epoch].number if isinstance(epoch, str) else LATEST if epoch is None else epoch

    def _try_values(self, pointer: int) -> Damaged | None:
        """Takes the values of the epoch. Returns an error if those of any process are damaged."""
        error: Exception | None = None
        try:
            self._take_values(pointer)
        except Exception as e:
            error = e
        return self._agree(error)

    def _agree(self, error: Exception | None, other: type[Error] = PeerFailed) -> Damaged | None:
        """What all processes make of the error of this one, and of those of others. Damage to an epoch is returned, as another epoch may
        be tried. Anything else is raised on all of them; `other` is for those that had no such error."""
        mine = 2 if error is None else 1 if isinstance(error, Damaged) else 0
        least = self._handle.group.least(mine)
        if error and mine == 0:
            raise error
        if least == 0:
            raise other("another rank could not restart; its message says why")
        return error if isinstance(error, Damaged) else Damaged("the epoch is damaged on another rank") if least == 1 else None

    def _restart_older(self, pointer: int, damage: Damaged) -> None:
        """The library skips epochs with a damaged array. Here the values of the newest one are damaged."""
        for e in self._older(native().varve_epoch(pointer)):
            warnings.warn(f"{damage}; epoch {e} is tried", RuntimeWarning, stacklevel=4)
            try:
                self._handle.call(native().varve_restart, e)
            except Damaged as older:
                damage = older
                continue
            found = self._try_values(pointer)
            if found is None:
                return
            damage = found
        raise damage

    def _take_values(self, pointer: int) -> None:
        epoch = native().varve_epoch(pointer)
        where = f"epoch {epoch} of lineage '{self._lineage}'"
        values: dict[str, typing.Any] = {}
        notes: dict[str, list] = {}
        try:
            values, notes = _values.unpack(self._read(pointer, epoch, _values.REGION), where)
        except NotFound:
            pass  # an epoch with arrays alone, or written by a program in another language
        for name in self._assigned:
            if name in self._plain and name not in values:
                raise NotFound(f"{where} has no value '{name}'; assign it after the restart")
        for name, memory in self._handle.memory.items():
            stored = notes.get(name)
            if stored and stored[0] != memory.dtype:
                raise Mismatch(f"array '{name}' is declared as {memory.dtype}, in {where} it is {stored[0]}")
        self._plain = {name: value for name, value in values.items() if name not in self._arrays}
        self._assigned.clear()

    # ---- the end -----------------------------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Has close() been called?"""
        return self._handle.is_closing

    def close(self) -> None:
        """Waits for the last epoch, and closes the session. Raises the error of the last epoch if no call has raised it yet."""
        if not self._finish.alive:
            return
        if self._handle.pid == os.getpid():
            self._handle.check_outside()
        if self._done and self._handle.pid == os.getpid():
            self._done.end()
        try:
            self._handle.close()
        finally:
            if self._handle.is_closed:
                self._finish.detach()
