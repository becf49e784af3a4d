"""Sessions of the ranks of an MPI program, over mpi4py.

    from mpi4py import MPI
    import varve.mpi
    with varve.mpi.open(MPI.COMM_WORLD, "ckpt", "run1", keep=3) as v:
        ...

restart(), load(), checkpoint(), due() and close() are collective: every rank calls them, in the same order. Everything else concerns
one rank. Close the session before MPI is finalized, which mpi4py does at the end of the program.
"""
from __future__ import annotations

import ctypes
import os
import typing

from ._native import Invalid, beside
from ._session import Group, Session

__all__ = ["open"]
_library: typing.Any = None


def _native_mpi() -> typing.Any:
    global _library
    if _library is None:
        _library = beside("libvarve_mpi.so.0")
    return _library


class _MpiGroup(Group):
    def __init__(self, comm: typing.Any):
        from mpi4py import MPI
        if not isinstance(comm, MPI.Intracomm) or comm == MPI.COMM_NULL:
            raise Invalid("varve.mpi.open() needs a communicator of mpi4py, such as MPI.COMM_WORLD")
        self._comm, self._min = comm, MPI.MIN
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self.any_thread = MPI.Query_thread() == MPI.THREAD_MULTIPLE
        handle = ctypes.c_void_p if MPI._sizeof(MPI.Comm) == ctypes.sizeof(ctypes.c_void_p) else ctypes.c_int  # Open MPI, MPICH
        self._handle = handle.from_address(MPI._addressof(comm))

    def open(self, *arguments: typing.Any) -> int:
        function = _native_mpi().varve_open_mpi
        function.argtypes = [type(self._handle), *[ctypes.c_char_p] * 3, ctypes.POINTER(ctypes.c_void_p)]
        return function(self._handle, *arguments)

    def least(self, number: int) -> int:
        return self._comm.allreduce(number, op=self._min)


def open(comm: typing.Any, store: str | os.PathLike, lineage: str, **options: typing.Any) -> Session:
    """One session of all ranks of a communicator: the collective form of varve.open()."""
    return Session(store, lineage, _group=_MpiGroup(comm), **options)
