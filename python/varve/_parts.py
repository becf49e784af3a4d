"""Parts of the state of all ranks: a restart on another number of ranks fills them."""
from __future__ import annotations

import collections.abc
import ctypes
import typing

from ._declare import memory_of
from ._native import ABSENT, LATEST, Change, Invalid, check, encode, native, recorded


def _numbers(name: str, what: str, values: collections.abc.Sequence[int], n: int) -> typing.Any:
    if len(values) != n or any(value < 0 for value in values):
        raise Invalid(f"array '{name}' has {n} dimensions; {what} needs a number for each of them, none below 0")
    return (ctypes.c_size_t * n)(*values)


class Parts:
    """The calls of a Session for a program with several ranks."""
    _handle: typing.Any
    _arrays: dict[str, typing.Any]
    _plain: dict[str, typing.Any]
    _parts: dict[str, tuple[typing.Callable[..., None], tuple]]  # of the arrays that are parts: how to declare them again

    def slab(self, name: str, array: typing.Any, shape: collections.abc.Sequence[int], start: collections.abc.Sequence[int],
             ghost: int | collections.abc.Sequence[int] = 0) -> None:
        """Declares this rank's part of a global array of that shape. It begins at element `start`.

        The array includes the ghost cells, so many at each end of each dimension. A rank with several parts declares each under a name of
        its own: "T#0", "T#1".
        """
        memory = memory_of(name, array)
        n = len(memory.shape)
        shape, start = tuple(shape), tuple(start)  # the program may change its lists
        ghosts = (ghost,) * n if isinstance(ghost, int) else tuple(ghost)
        around = _numbers(name, "ghost", ghosts, n)
        count = _numbers(name, "ghost", [extent - 2 * g for extent, g in zip(memory.shape, ghosts)], n)
        extents, first = _numbers(name, "shape", shape, n), _numbers(name, "start", start, n)
        with self._handle as pointer:
            recorded(self._kept(name, array, memory, Parts.slab, shape, start, ghosts), native().varve_protect_slab, pointer, encode("name", name),
                     memory.address, memory.type, n, extents, first, count, around)

    def shared(self, name: str, array: typing.Any) -> None:
        """Declares an array that is equal on all ranks."""
        memory = memory_of(name, array)
        size = array.nbytes if hasattr(array, "nbytes") else memoryview(array).nbytes
        with self._handle as pointer:
            recorded(self._kept(name, array, memory, Parts.shared), native().varve_protect_shared, pointer, encode("name", name), memory.address, size)

    def list(self, name: str, array: typing.Any) -> None:
        """Declares this rank's part of a list. The first dimension of the array counts the items."""
        memory = memory_of(name, array)
        width = 1
        for extent in memory.shape[1:]:
            width *= extent
        with self._handle as pointer:
            recorded(self._kept(name, array, memory, Parts.list), native().varve_protect_list, pointer, encode("name", name), memory.address,
                     memory.type, width, memory.shape[0])

    def list_share(self, name: str, epoch: int | None = None) -> tuple[int, int] | None:
        """The items of a list that this rank is to have after a restart, and those of all ranks. None: there is no epoch yet."""
        share, total = ctypes.c_uint64(), ctypes.c_uint64()
        with self._handle as pointer:
            found = check(native().varve_list_share(pointer, LATEST if epoch is None else epoch, encode("name", name), ctypes.byref(share),
                                                    ctypes.byref(total)))
        return (share.value, total.value) if found else None

    def _kept(self, name: str, array: typing.Any, memory: typing.Any, how: typing.Callable[..., None], *where: typing.Any) -> typing.List[Change]:
        """The records of a part."""
        return [(self._handle.memory, {name: memory}), (self._arrays, {name: array}), (self._parts, {name: (how, where)}), (self._plain, {name: ABSENT})]
