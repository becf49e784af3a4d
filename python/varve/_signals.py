"""Signals of the program while the package takes a step that must not end half-way."""
from __future__ import annotations

import ctypes
import importlib
import itertools
import signal
import threading
import typing

_NUMBERS = sorted(map(int, signal.valid_signals()))
_python = importlib.import_module("_signal")  # the module signal looks for names of handlers, which takes long
_Action = ctypes.c_char * 512  # more than a struct sigaction has
_sigaction = ctypes.PyDLL(None).sigaction
_sigaction.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]


def _set(number: int, handler: typing.Any) -> bool:
    """Changes Python's table alone. The function that the kernel calls stays: the library counts requests there (signal_request.c).
    False: Python refuses, as in an interpreter that is not the main one."""
    action = _Action()
    known = _sigaction(number, None, action) == 0
    try:
        _python.signal(number, handler)
        return True
    except ValueError:
        if _python.getsignal(number) == handler:  # it is set, and a handler has raised the error
            raise
        return False
    finally:
        if known:
            _sigaction(number, action, None)


class Signals:
    """Holds Python's signal handlers back until the block ends. An exception of a handler would separate a call of the library from its
    record here. A function that the library calls would return nothing. Python runs handlers on the main thread only: on others, and
    inside another such block, this one does nothing."""
    _held = False  # on the main thread

    def __init__(self) -> None:
        self._away: list[tuple[int, typing.Any]] = []  # handlers to put back
        self._came: list[tuple[int, typing.Any]] = []  # handlers to call

    def __enter__(self) -> None:
        if threading.get_ident() != threading.main_thread().ident or Signals._held:
            return
        try:
            self._take_away()
            Signals._held = bool(self._away)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        if self._away:
            Signals._held = False
        try:
            self._put_back()
        finally:
            self._handle()

    def _take_away(self) -> None:
        handlers = list(map(_python.getsignal, _NUMBERS))
        for each in itertools.compress(zip(_NUMBERS, handlers), map(callable, handlers)):
            self._away.append(each)
            if not _set(each[0], self._note):
                self._away.pop()

    def _note(self, number: int, _frame: typing.Any) -> None:
        came = (number, dict(self._away)[number])
        if came not in self._came:
            self._came.append(came)

    def _put_back(self) -> None:
        """All of them, even if one of them is called already and raises an exception."""
        try:
            while self._away:
                _set(*self._away[-1])
                self._away.pop()
        finally:
            if self._away:
                self._put_back()

    def _handle(self) -> None:
        try:
            while self._came:
                number, handler = self._came.pop(0)
                handler(number, None)
        finally:
            if self._came:
                self._handle()
