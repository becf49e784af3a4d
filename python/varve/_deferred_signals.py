"""DeferredSignals of the program while the library calls functions of Python."""
from __future__ import annotations

import ctypes
import importlib
import itertools
import os
import signal
import threading
import typing

_NUMBERS = sorted(map(int, signal.valid_signals()))
_python = importlib.import_module("_signal")  # the module signal looks for names of handlers, which takes long
_Action = ctypes.c_char * 512  # more than a struct sigaction has
_sigaction = ctypes.PyDLL(None).sigaction
_sigaction.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
_here, _main = ctypes.pythonapi.PyInterpreterState_Get, ctypes.pythonapi.PyInterpreterState_Main
_here.restype = _main.restype = ctypes.c_void_p


def _may_set() -> bool:
    """Python refuses to change handlers on other threads than the main one, and in other interpreters."""
    return threading.get_ident() == threading.main_thread().ident and _here() == _main()


def _set(number: int, handler: typing.Any) -> None:
    """Changes Python's table, and puts back the function that the kernel calls: the library counts requests there (signal_request.c). A
    signal that comes between these two steps is seen by Python alone."""
    action = _Action()
    known = _sigaction(number, None, action) == 0
    try:
        _python.signal(number, handler)  # after it has called handlers of signals that have come
    finally:
        if known:
            _sigaction(number, action, None)


class DeferredSignals:
    """Holds Python's signal handlers back until the block ends: a function that the library calls must return a value, not raise an
    exception of a handler. Python runs handlers on the main thread only: on others, and inside another such block, this one does nothing.
    """
    _held = False  # on the main thread
    _last: DeferredSignals | None = None

    def __init__(self) -> None:
        self._away: list[tuple[int, typing.Any]] = []  # handlers to put back
        self._came: list[tuple[int, typing.Any]] = []  # handlers to call

    def __enter__(self) -> None:
        if DeferredSignals._held or not _may_set():
            return
        DeferredSignals._last, DeferredSignals._held = self, True
        try:
            self._take_away()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        if DeferredSignals._last is self:
            DeferredSignals._held = False
        try:
            self._put_back()
        finally:
            self._handle()

    @staticmethod
    def after_fork() -> None:
        """In a child forked by another thread, the main thread never ends the block: puts the handlers back."""
        last, DeferredSignals._last, DeferredSignals._held = DeferredSignals._last, None, False
        if last:
            last._came.clear()  # these signals came to the parent
            last._put_back()

    def _take_away(self) -> None:
        handlers = list(map(_python.getsignal, _NUMBERS))
        for each in itertools.compress(zip(_NUMBERS, handlers), map(callable, handlers)):
            self._away.append(each)
            _set(each[0], self._note)

    def _note(self, number: int, _frame: typing.Any) -> None:
        came = (number, dict(self._away)[number])
        if came not in self._came:
            self._came.append(came)

    def _put_back(self) -> None:
        """Puts all handlers back, even if one of them already runs and raises an exception."""
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


os.register_at_fork(after_in_child=DeferredSignals.after_fork)
