"""The communicator of a session over torch.distributed: the table of functions of varve_comm.h.

The library also calls these functions on its own thread, while the program goes on. A function takes the interpreter's lock. The
program may hold this lock while it writes a protected page. It does not wait then: as long as ranks are asked, such a page is copied
(write_fault.c).
"""
from __future__ import annotations

import ctypes
import typing

import torch
import torch.distributed as dist

from ._native import Invalid, native
from ._session import Group, called
from ._deferred_signals import DeferredSignals

_NOBODY = 2**32 - 1
_PEER = -11
_SIGN = -2**63
_int, _u32, _u64, _size, _void = ctypes.c_int, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p
_out = ctypes.POINTER(ctypes.c_void_p)
_FUNCTIONS: dict[str, list[typing.Any]] = {
    "bcast": [_void, _void, _size, _u32, _out],
    "allreduce": [_void, _void, _size, _int, _out],
    "allgather": [_void, _void, _void, _size, _out],
    "alltoall": [_void, _void, _void, _size, _out],
    "alltoallv": [_void, _void, ctypes.POINTER(_u64), _void, ctypes.POINTER(_u64), _out],
    "sendrecv": [_void, _void, _size, _u32, _void, _size, _u32, _out],
    "test": [_void, _void],
    "message": [_void],
    "absent": [_void],
    "close": [_void],
}
_RESULTS: dict[str, typing.Any] = {"message": _void, "absent": _void, "close": None}
_TYPES: dict[str, typing.Any] = {name: ctypes.CFUNCTYPE(_RESULTS.get(name, _int), *arguments) for name, arguments in _FUNCTIONS.items()}


class _Comm(ctypes.Structure):
    """struct varve_comm"""
    _fields_ = [("rank", _u32), ("size", _u32), ("any_thread", _int), ("ctx", _void), ("side", _void),
                *((name, type_) for name, type_ in _TYPES.items())]


def _bytes(address: int, length: int) -> torch.Tensor:
    """The memory at an address as a tensor."""
    if not length:
        return torch.empty(0, dtype=torch.uint8, device="cpu")
    return torch.frombuffer((ctypes.c_char * length).from_address(address), dtype=torch.uint8)


def _copy(to: torch.Tensor, source: torch.Tensor) -> None:
    to.copy_(source)


class _Channel:
    """A gloo group of its own, and the operation in progress."""

    def __init__(self, size: int):
        self.group = dist.new_group(list(range(size)), backend="gloo")
        self.works: list[typing.Any] = []
        self.after: typing.Callable[[], None] | None = None
        self.message = ctypes.create_string_buffer(b"", 512)

    def begin(self, works: list[typing.Any], after: typing.Callable[[], None] | None = None) -> None:
        self.works, self.after = [w for w in works if w is not None], after

    def test(self) -> int:
        while self.works:
            if not self.works[0].is_completed():
                return 0
            self.works.pop(0).wait()  # raises its error
        if self.after:
            self.after()
        self.after = None
        return 1

    def close(self) -> None:
        works, group = self.works, self.group
        self.works, self.after, self.group = [], None, None
        if not works:  # else the end of the group would wait for ranks that may be missing
            _destroy(group)


def _destroy(group: typing.Any) -> None:
    """Ends the threads and connections of a group, unless the program has ended all groups already."""
    try:
        if group is not None and dist.is_initialized():
            dist.destroy_process_group(group)
    except (RuntimeError, ValueError, AssertionError):
        pass


class TorchGroup(Group):
    """All ranks of torch.distributed. Operations use gloo groups of their own, whatever backend the program uses."""

    def __init__(self) -> None:
        if not dist.is_available() or not dist.is_initialized():
            raise Invalid("torch.distributed is not initialised; call torch.distributed.init_process_group() before the session is opened")
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self._channels = {1: _Channel(self.size), 2: _Channel(self.size)}
        self._least = dist.new_group(list(range(self.size)), backend="gloo")
        self._comm = _Comm(self.rank, self.size, 1, 1, 2, *(type_(self._guard(name)) for name, type_ in _TYPES.items()))

    def open(self, *arguments: typing.Any) -> int:
        function = native().varve_open_comm
        function.argtypes = [ctypes.POINTER(_Comm), *[ctypes.c_char_p] * 3, _out]
        return self.call(function, ctypes.byref(self._comm), *arguments)

    def call(self, function: typing.Callable[..., typing.Any], *arguments: typing.Any) -> typing.Any:
        with DeferredSignals():
            return function(*arguments)

    def least(self, number: int) -> int:
        box = torch.tensor([number], device="cpu")
        dist.all_reduce(box, dist.ReduceOp.MIN, group=self._least)
        return int(box)

    def close(self) -> None:
        for channel in self._channels.values():
            channel.close()
        least, self._least = self._least, None
        _destroy(least)

    def _guard(self, name: str) -> typing.Callable[..., typing.Any]:
        """A function of the table. No exception leaves it."""
        function = getattr(self, f"_{name}")

        def call(ctx: int, *arguments: typing.Any) -> typing.Any:
            channel, before = self._channels[ctx], getattr(called, "by_library", False)
            try:
                called.by_library = True
                if name in ("test", "message", "absent", "close"):
                    return function(channel, *arguments)
                arguments[-1][0] = 1  # one operation at a time, so any number will do
                function(channel, *arguments[:-1])
                return 0
            except BaseException as e:
                channel.message.value = f"torch.distributed: {type(e).__name__}: {e}".encode()[:500]
                return _PEER if _RESULTS.get(name, _int) is _int else None
            finally:
                called.by_library = before
        return call

    def _bcast(self, c: _Channel, p: int, length: int, root: int) -> None:
        c.begin([dist.broadcast(_bytes(p, length), root, group=c.group, async_op=True)] if length else [])

    def _allreduce(self, c: _Channel, p: int, n: int, how: int) -> None:
        mine = _bytes(p, 8 * n).view(torch.int64)
        if how == 0:
            c.begin([dist.all_reduce(mine, dist.ReduceOp.SUM, group=c.group, async_op=True)] if n else [])
            return
        signed = mine ^ _SIGN  # the order of unsigned numbers as that of signed ones
        op = dist.ReduceOp.MIN if how == 1 else dist.ReduceOp.MAX
        c.begin([dist.all_reduce(signed, op, group=c.group, async_op=True)] if n else [], lambda: _copy(mine, signed ^ _SIGN))

    def _allgather(self, c: _Channel, mine: int, everything: int, length: int) -> None:
        parts = list(_bytes(everything, length * self.size).split(length)) if length else []
        c.begin([dist.all_gather(parts, _bytes(mine, length), group=c.group, async_op=True)] if length else [])

    def _alltoall(self, c: _Channel, to: int, source: int, length: int) -> None:
        total = length * self.size
        c.begin([dist.all_to_all_single(_bytes(source, total), _bytes(to, total), group=c.group, async_op=True)] if length else [])

    def _alltoallv(self, c: _Channel, to: int, to_len: typing.Any, source: int, source_len: typing.Any) -> None:
        out, arrives = to_len[:self.size], source_len[:self.size]
        c.begin([dist.all_to_all_single(_bytes(source, sum(arrives)), _bytes(to, sum(out)), arrives, out, group=c.group, async_op=True)])

    def _sendrecv(self, c: _Channel, out: int, out_len: int, to: int, source: int, source_len: int, sender: int) -> None:
        """Every rank makes this call, so it is an exchange of all ranks. A send of gloo cannot be polled."""
        sent, arrives = [0] * self.size, [0] * self.size
        if to != _NOBODY:
            sent[to] = out_len
        if sender != _NOBODY:
            arrives[sender] = source_len
        c.begin([dist.all_to_all_single(_bytes(source, sum(arrives)), _bytes(out, sum(sent)), arrives, sent, group=c.group, async_op=True)])

    def _test(self, c: _Channel, _op: int) -> int:
        return c.test()

    def _message(self, c: _Channel) -> int:
        return ctypes.addressof(c.message)

    def _absent(self, c: _Channel) -> None:
        return None

    def _close(self, c: _Channel) -> None:
        c.close()
