#!/usr/bin/env python3
"""Signal handlers of Python are put back after a call of the library that calls functions of Python."""
import os
import signal
import threading
import unittest
import unittest.mock

import package
from varve import _deferred_signals


def fail(number, frame):
    raise ValueError("a handler's own")


class DeferredSignals(unittest.TestCase):
    def setUp(self):
        for number, handler in ((signal.SIGUSR2, fail), (signal.SIGTERM, lambda number, frame: os._exit(7))):
            self.addCleanup(signal.signal, number, signal.signal(number, handler))
        self.before = self.handlers()

    def handlers(self):
        return [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGUSR2, signal.SIGTERM)]

    def test_value_error(self):
        """It is raised by a handler while handlers are put back, or taken away."""
        for number in (signal.SIGINT, signal.SIGUSR2, signal.SIGTERM):
            for is_back in (False, True):
                with unittest.mock.patch.object(_deferred_signals, "_python", Python(number, is_back)), self.assertRaisesRegex(ValueError, "own"):
                    with _deferred_signals.DeferredSignals():
                        pass
                self.assertEqual(self.handlers(), self.before)
        with self.assertRaises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)

    def test_other_thread(self):
        """Python would refuse."""
        seen = []

        def block():
            with _deferred_signals.DeferredSignals():
                seen.append(self.handlers())
        thread = threading.Thread(target=block)
        thread.start()
        thread.join()
        self.assertEqual(seen, [self.before])

    def test_fork(self):
        """Another thread forks: the child has the program's handlers."""
        ended = []

        def fork():
            child = os.fork()
            if child == 0:
                with _deferred_signals.DeferredSignals():
                    os.kill(os.getpid(), signal.SIGTERM)
                os._exit(0)
            ended.append(os.waitpid(child, 0)[1])
        thread = threading.Thread(target=fork)
        with _deferred_signals.DeferredSignals():
            thread.start()
            thread.join()
        self.assertEqual([os.WEXITSTATUS(status) for status in ended], [7])
        self.assertEqual(self.handlers(), self.before)


class Python:
    """The module _signal. A signal comes before a handler is set: once, for this number."""

    def __init__(self, number, is_back):
        self.number, self.is_back = number, is_back

    def __getattr__(self, name):
        return getattr(_python, name)

    def signal(self, number, handler):
        if number == self.number and self.is_back != hasattr(handler, "__func__"):
            self.number = None
            os.kill(os.getpid(), signal.SIGUSR2)
        return _python.signal(number, handler)


_python = _deferred_signals._python

if __name__ == "__main__":
    unittest.main(verbosity=1)
