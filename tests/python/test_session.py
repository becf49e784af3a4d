#!/usr/bin/env python3
# ctest: COST 8
"""The Python package against the real library: sessions, values, errors, kills, threads and readers."""
import array
import asyncio
import copy
import ctypes
import datetime
import doctest
import gc
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
import warnings

import package

np = package.numpy()
import varve
from varve import _native

RUN = dict(env=os.environ, capture_output=True, text=True)


def python(text, *arguments, **more):
    return subprocess.run([sys.executable, "-c", text, *map(str, arguments)], **{**RUN, **more})


def interrupted_at(number, call):
    """Ctrl-C before the operation of this number in the module that calls the library. True: the call has fewer."""
    left = [number]

    def trace(frame, event, _):
        if frame.f_code.co_filename != _native.__file__:
            return None
        frame.f_trace_opcodes = True
        left[0] -= event == "opcode"
        if left[0] == 0 and event == "opcode":
            raise KeyboardInterrupt
        return trace
    sys._getframe().f_trace_opcodes = True  # Python 3.12 wants to know before it begins
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    return left[0] > 0


class Interrupted:
    """memory_of(), with Ctrl-C before the call of this number."""

    def __init__(self, number):
        self.number, self.real = number, varve._session.memory_of

    def __call__(self, name, value):
        self.number -= 1
        if self.number == 0:
            raise KeyboardInterrupt
        return self.real(name, value)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.store = self.folder / "store"

    def open(self, lineage="l", **options):
        v = varve.open(self.store, lineage, **options)
        self.addCleanup(v.close)
        return v

    def around(self, value, lineage="l"):
        """Saves an array and restores it into another one. Returns this one, and the stored region."""
        with varve.open(self.store, lineage) as v:
            v["x"] = value
            v.checkpoint()
        again = np.zeros_like(value) if isinstance(value, np.ndarray) else type(value)(bytes(len(value)))
        with varve.open(self.store, lineage) as v:
            v["x"] = again
            self.assertTrue(v.restart())
            self.assertIs(v["x"], again)
        return again, varve.Store(self.store)[lineage][-1]["x"]


class Values(Case):
    def test_dtypes(self):
        for i, dtype in enumerate("i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 c8 c16 ? >f8 >i2 S5 U3 g M8[s] m8[ns]".split()):
            for shape in ((7, 3), (0, 4), (1,), ()):
                with self.subTest(dtype=dtype, shape=shape):
                    value = np.array((np.arange(np.prod(shape, dtype=int)) % 2).reshape(shape), dtype)
                    again, region = self.around(value, f"l{i}-{len(shape)}-{value.size}")
                    np.testing.assert_array_equal(again, value)
                    self.assertEqual((region.dtype, region.shape, region.nbytes), (value.dtype, shape, value.nbytes))
                    np.testing.assert_array_equal(np.asarray(region), value)

    def test_small_floats(self):
        """As arrays of ml_dtypes show themselves to others."""
        class Shown:
            def __init__(self, dtype, typestr, bits):
                self.bits, self.dtype = bits, dtype
                self.__array_interface__ = {**bits.__array_interface__, "typestr": typestr}

        for dtype, typestr, stored in (("bfloat16", "<V2", "u2"), ("float8_e4m3fn", "<V1", "u1"), ("float8_e5m2", "<f1", "u1")):
            with self.subTest(dtype=dtype):
                bits = np.arange(100, dtype=stored).reshape(4, 25)
                with varve.open(self.store, dtype) as v:
                    v["x"] = Shown(dtype, typestr, bits)
                    v.checkpoint()
                    expected, bits[...] = bits.copy(), 0
                    self.assertTrue(v.restart())
                    np.testing.assert_array_equal(bits, expected)
                region = varve.Store(self.store)[dtype][-1]["x"]
                self.assertIn(f"{dtype} [4, 25]", repr(region))
                np.testing.assert_array_equal(np.asarray(region).view(stored), expected)
                self.assertEqual(region[1:3].view(stored).tolist(), expected[1:3].tolist())
                try:
                    import ml_dtypes
                    self.assertEqual(region.dtype, np.dtype(getattr(ml_dtypes, dtype)))
                except ImportError:
                    self.assertEqual(region.dtype, np.dtype(stored))

    def test_other_packages(self):
        """Arrays that show themselves by DLPack, or as memory of a GPU; here the memory is the host's."""
        class Dlpack:
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **_):
                return self.array.__dlpack__()

        class Cuda:
            def __init__(self, array, **more):
                self.array = array
                self.__cuda_array_interface__ = {**array.__array_interface__, "version": 3, **more}

        for kind in (Dlpack, Cuda):
            x = np.arange(12, dtype="f4").reshape(3, 4)
            with varve.open(self.store, kind.__name__) as v:
                v["x"] = kind(x)
                v.checkpoint()
                x[:] = 0
                self.assertTrue(v.restart())
                for wrong, word in ((kind(x.T), "contiguous"), (kind(x[:, ::2]), "contiguous")):
                    with self.assertRaisesRegex(ValueError, f"'y'.*{word}"):
                        v["y"] = wrong
            self.assertEqual(x.ravel().tolist(), list(range(12)))
            self.assertEqual(varve.Store(self.store)[kind.__name__][1]["x"][1].tolist(), [4, 5, 6, 7])
        v = self.open()
        for more, error in (({"data": (x.ctypes.data, True)}, ValueError), ({"mask": x}, TypeError)):
            with self.assertRaisesRegex(error, "'y'"):
                v["y"] = Cuda(x, **more)

    def test_load(self):
        x = np.arange(6.0).reshape(2, 3)
        with varve.open(self.store, "l") as v:
            self.assertFalse(v.load())
            v["x"], v["flag"], v["n"] = x, np.array([True, False]), 1
            v.checkpoint()
            v["n"], x[0, 0] = 2, 9
            v.checkpoint()
        mine = np.zeros((2, 3))
        with varve.open(self.store, "l") as v:
            v["x"] = mine
            self.assertTrue(v.load())
            self.assertIs(v["x"], mine)
            self.assertEqual((mine[0, 0], v["flag"].tolist(), v["flag"].dtype, v["n"]), (9, [True, False], np.dtype(bool), 2))
            self.assertTrue(v.load(1))
            self.assertEqual((mine[0, 0], v["n"]), (0, 1))
            self.assertEqual(v.checkpoint(), 3)

    def test_structured(self):
        value = np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "i4"), ("b", "f8")])
        again, region = self.around(value)
        self.assertEqual(again.tolist(), value.tolist())
        self.assertEqual(np.asarray(region).tolist(), value.tolist())
        self.assertEqual((region.dtype, region.shape), (value.dtype, (2,)))
        self.assertEqual(region[1:]["b"].tolist(), [4.5])

    def test_records(self):
        """Also records with arrays, gaps and flags; other structured arrays are stored as bytes."""
        gaps = np.dtype({"names": ["x", "on"], "formats": [("<f4", (3,)), "?"], "offsets": [4, 20], "itemsize": 24})
        value = np.zeros(5, gaps)
        value["x"], value["on"] = np.arange(15).reshape(5, 3), [1, 0, 1, 1, 0]
        again, region = self.around(value, "gaps")
        self.assertEqual(again.tobytes(), value.tobytes())
        self.assertEqual((region.dtype.names, region.dtype.itemsize, region.dtype.fields["x"][1]), (("x", "on"), 24, 4))
        np.testing.assert_array_equal(region[...]["x"], value["x"])
        for i, dtype in enumerate(([("a", ">i4")], [("a b", "i4")], [("a", [("b", "i4")])], [("a", "S3")], [("a" * 70, "i4")],
                                   {"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [0, 2]})):
            value = np.zeros(3, dtype)
            value.view("u1")[:] = np.arange(value.nbytes)
            again, region = self.around(value, f"l{i}")
            self.assertEqual(again.tobytes(), value.tobytes())
            self.assertEqual(region.read_bytes(), value.tobytes())
        value = np.ones((2, 2), [("a", "i4")])
        self.assertEqual(self.around(value, "two")[0].tolist(), value.tolist())

    def test_buffers(self):
        self.assertEqual(self.around(bytearray(b"abc"), "a")[0], b"abc")
        self.assertEqual(self.around(bytearray(), "b")[0], b"")
        for code in "bBhHiIlLqQfd":
            value = array.array(code, [1, 2, 3])
            with varve.open(self.store, f"c{code}") as v:
                v["x"] = value
                v.checkpoint()
                value[1] = 9
                self.assertTrue(v.restart())
            self.assertEqual(value.tolist(), [1, 2, 3])
            self.assertEqual(np.asarray(varve.Store(self.store)[f"c{code}"][-1]["x"]).tolist(), [1, 2, 3])
        with varve.open(self.store, "d") as v:
            value = v["x"] = bytearray(10)
            with self.assertRaises(BufferError):  # it cannot move while it is declared
                value.extend(b"more")
            del v["x"]
            gc.collect()
            value.extend(b"more")

    def test_refused(self):
        v = self.open()
        read_only = np.zeros(4)
        read_only.flags.writeable = False
        masked = np.ma.masked_array(np.zeros(3), [0, 1, 0])
        for value, error, word in ((np.zeros((4, 4))[:, 1], ValueError, "contiguous"), (np.zeros((4, 4), order="F"), ValueError, "Fortran"),
                                   (read_only, ValueError, "read-only"), (np.array([{}, None]), TypeError, "object"), (b"bytes", ValueError, "read-only"),
                                   (np.array([(1, {})], dtype=[("a", "i4"), ("b", "O")]), TypeError, "object"), (masked, TypeError, "mask"),
                                   ({1, 2}, TypeError, "set"), (object(), TypeError, "object"), (np.zeros([1] * 17), ValueError, "16"),
                                   ((1, 2), TypeError, "tuple"), (memoryview(bytearray(8))[::2], ValueError, "contiguous")):
            with self.assertRaisesRegex(error, "'field'.*" + word):
                v["field"] = value
        for value, word in (({"a": [1, (2,)]}, r"field\['a'\]\[1\].*tuple"), ({1: 2}, "key of type int"), ([b""], "bytes")):
            v["field"] = value
            with self.assertRaisesRegex(TypeError, word):
                v.checkpoint()
        endless = v["field"] = []
        endless.append(endless)
        with self.assertRaisesRegex(TypeError, "contains itself"):
            v.checkpoint()
        v["field"] = 1
        self.assertEqual(v.checkpoint(), 1)

    def test_names(self):
        v = self.open()
        longest, value = "n" * 1023, np.arange(3.0)
        v[longest] = value
        v["Größe/T x"] = value.copy()
        for name in ("n" * 1024, "", "a\0b", "python.json", 3):
            with self.assertRaises(varve.Invalid):
                v[name] = value
        v.checkpoint()
        v.close()
        self.assertEqual(np.asarray(varve.Store(self.store)["l"][-1][longest]).tolist(), [0, 1, 2])
        self.assertIn("Größe/T x", varve.Store(self.store)["l"][1])

    def test_plain(self):
        values = {"a": None, "b": True, "c": 2**70, "d": 0.1, "e": "ä\n", "f": [1, [2.5, {}]], "g": {"x": {"y": []}}, "inf": float("inf")}
        expected = copy.deepcopy(values)
        with varve.open(self.store, "l") as v:
            v.update(values)
            v["h"], v["rng"] = np.float32(0.5), np.random.default_rng(1).bit_generator.state
            v.checkpoint()
            v["text"] = "x" * 100000  # a larger region
            v.checkpoint()
            del v["text"]
            v["f"].append(3)
            v.checkpoint()
        with varve.open(self.store, "l") as v:
            v["a"] = "old"
            self.assertTrue(v.restart(1))
            self.assertEqual({k: v[k] for k in values}, expected)
            self.assertEqual((v["h"], type(v["h"]), v["b"]), (0.5, float, True))
            rng = np.random.default_rng()
            rng.bit_generator.state = v["rng"]
            self.assertEqual(rng.random(), np.random.default_rng(1).random())
            self.assertTrue(v.restart(2))
            self.assertEqual(len(v["text"]), 100000)
            self.assertTrue(v.restart())
            self.assertEqual(v["f"], [1, [2.5, {}], 3])
            self.assertNotIn("text", v)
            v["new"] = 1
            with self.assertRaisesRegex(varve.NotFound, "no value 'new'"):
                v.restart()
        e = varve.Store(self.store)["l"][1]
        self.assertEqual({k: e[k] for k in values}, expected)

    def test_kinds_change(self):
        v, x = self.open(), np.zeros(3)
        v["x"] = 1
        v["x"] = x
        self.assertEqual(list(v), ["x"])
        v["x"] += 1
        self.assertEqual(x.tolist(), [1, 1, 1])
        v["x"] = "text"
        v.checkpoint()
        self.assertEqual(dict(varve.Store(self.store)["l"][-1]), {"x": "text"})
        del v["x"]
        with self.assertRaises(KeyError):
            v["x"]
        with self.assertRaises(KeyError):
            del v["x"]
        v["y"] = np.zeros(3, "f2")
        v.checkpoint()
        v["y"] = np.zeros(3, "i2")
        with self.assertRaises(varve.Mismatch):
            v.restart()

    def test_half_is_not_integer(self):
        v = self.open()
        v["y"] = np.zeros(3, "f2")
        v.checkpoint()
        for dtype in ("u2", ">u2"):
            v["y"] = np.zeros(3, dtype)
            with self.assertRaises(varve.Mismatch):
                v.restart()

    def test_ten_thousand(self):
        arrays = {f"layer{i}": np.full(20, i, "f4") for i in range(10000)}
        v = self.open()
        begin = time.process_time()
        v.update(arrays)
        took = time.process_time() - begin
        print(f"10000 arrays declared in {took:.2f} s", file=sys.stderr)
        v.checkpoint()
        for a in arrays.values():
            a[:] = -1
        self.assertTrue(v.restart())
        self.assertTrue(all((a == i).all() for i, a in enumerate(arrays.values())))
        self.assertEqual(len(v), 10000)
        self.assertLess(took, 5)  # a fifth of that on an idle machine


class Lifetime(Case):
    def test_reference(self):
        v = self.open()
        v["x"] = np.full(300000, 7.0)
        gc.collect()
        v.checkpoint()
        with self.assertRaises(ValueError):
            v["x"].resize(5)
        self.assertTrue((v["x"] == 7).all())

    def test_closed(self):
        v = self.open()
        v["x"] = np.zeros(3)
        v.close()
        v.close()
        self.assertTrue(v.closed)
        for call in (v.checkpoint, v.restart, v.wait, v.due, lambda: v.epoch, lambda: v.label("a"), lambda: v.__setitem__("a", 1),
                     lambda: v.__setitem__("a", np.zeros(1)), lambda: v.__delitem__("x"), lambda: v.on_done(print), lambda: asyncio.run(v.durable())):
            with self.assertRaisesRegex(varve.Invalid, "is closed"):
                call()

    def test_interrupted_close(self):
        """A signal ends close() while a function of on_done() goes on. The next close() does the rest."""
        text = """
import os, sys, threading, signal, varve
v, go, told = varve.open(sys.argv[1], 'l'), threading.Event(), []
v['n'] = 1
def done(epoch, error):
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    go.wait()
    told.append((epoch, error))
v.on_done(done)
v.checkpoint()
v.checkpoint()
try:
    v.close()
except KeyboardInterrupt:
    print('interrupted')
signal.signal(signal.SIGINT, signal.SIG_IGN)
threading.Timer(0.3, go.set).start()
v.close()
v.close()
print(told)
varve.open(sys.argv[1], 'l').close()
"""
        done = python(text, self.store, timeout=100)
        self.assertEqual((done.stdout, done.stderr), ("interrupted\n[(1, None), (2, None)]\n", ""))

    def test_close_in_handler(self):
        """A handler of a signal cannot wait for the call that it interrupts. The session goes on."""
        text = """
import os, sys, signal, varve
from varve import _native
v, told, real = varve.open(sys.argv[1], 'l', mode='sync'), [], _native.native().varve_checkpoint
def handler(number, frame):
    try:
        v.close()
    except varve.Error as e:
        print(type(e).__name__, 'let the handler set a flag' in str(e))
def checkpoint(pointer):
    os.kill(os.getpid(), signal.SIGALRM)
    return real(pointer)
signal.signal(signal.SIGALRM, handler)
v.on_done(lambda epoch, error: told.append(epoch))
v['n'] = 1
_native.native().varve_checkpoint = checkpoint
v.checkpoint()
_native.native().varve_checkpoint = real
v.checkpoint()
v.close()
print(told)
os.kill(os.getpid(), signal.SIGALRM)
"""
        done = python(text, self.store, timeout=100)
        self.assertEqual((done.stdout, done.stderr), ("Invalid True\n[1, 2]\n", ""))

    def interrupted(self, name, call):
        """Ctrl-C comes in a function of the library, which then succeeds."""
        real, library = getattr(_native.native(), name), _native.native()

        def function(*arguments):
            result = real(*arguments)
            os.kill(os.getpid(), signal.SIGINT)
            return result
        before = signal.getsignal(signal.SIGINT)
        with unittest.mock.patch.object(library, name, function), self.assertRaises(KeyboardInterrupt):
            call()
        self.assertIs(signal.getsignal(signal.SIGINT), before)

    def test_interrupted(self):
        """An exception of a signal's handler does not separate the library's regions from the session's."""
        v, t = self.open(), np.arange(5)
        v["T"], v["n"] = t, 1
        self.assertEqual(v.checkpoint(), 1)
        self.interrupted("varve_unprotect", lambda: v.__delitem__("T"))
        self.assertNotIn("T", v)
        v["T"] = t
        self.interrupted("varve_protect_array", lambda: v.__setitem__("T", np.arange(6)))
        self.assertEqual(v["T"].size, 6)
        self.interrupted("varve_protect_shared", lambda: v.shared("T", t))
        self.assertIs(v["T"], t)
        v["n"] = "x" * 10000
        self.interrupted("varve_protect", v.checkpoint)
        del v["n"]
        self.interrupted("varve_unprotect", v.checkpoint)
        self.assertEqual(v.checkpoint(), 2)
        self.assertEqual(list(varve.Store(self.store)["l"][2]), ["T"])
        v["n"] = 2
        v.checkpoint()
        self.interrupted("varve_unprotect", v.restart)
        v["n"] = 3
        v.checkpoint()
        self.assertTrue(v.restart())
        self.assertEqual(v["n"], 3)

    def test_load_fails(self):
        """The arrays are still declared."""
        with varve.open(self.store, "l") as v:
            v["T"] = np.arange(5)
            v.checkpoint()
        layer, = self.store.rglob("*.layer")
        layer.chmod(0o644)
        layer.write_bytes(bytes(layer.stat().st_size))
        v, t, u = self.open(log="error"), np.arange(5), np.arange(6)
        v["T"], v["U"] = t, u
        with self.assertRaises(varve.Error):
            v.load()
        self.assertEqual(list(v), ["T", "U"])
        self.assertEqual(list(varve.Store(self.store)["l"][v.checkpoint()]), ["T", "U"])
        self.interrupted("varve_restart", v.load)
        self.assertIs(v["T"], t)

    def test_load_older_shape(self):
        """The newest epoch is damaged. An older one has arrays of other shapes; without one, no array stays declared."""
        with varve.open(self.store, "l", codec="none") as v:
            v["T"] = np.arange(500.0)
            v.checkpoint()
            first = set(self.store.rglob("*.layer"))
            v["T"], v["X"] = x, _ = np.random.default_rng(0).random((2, 600))
            v.checkpoint()
        new, = set(self.store.rglob("*.layer")) - first
        new.chmod(0o644)
        new.write_bytes(new.read_bytes().replace(x.tobytes()[80:88], bytes(8)))
        v = self.open(log="error")
        with self.assertRaises(varve.Damaged):
            v.load(2)
        self.assertEqual(list(v), [])
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            self.assertTrue(v.load())
        self.assertEqual((v.epoch, list(v), len(heard)), (1, ["T"], 1))
        np.testing.assert_array_equal(v["T"], np.arange(500.0))

    def test_load_read_only(self):
        """One array cannot be declared again: all of them still are."""
        v = self.open()
        for name in "ABC":
            v[name] = np.arange(5)
        v.checkpoint()
        v["A"].flags.writeable = False
        with self.assertRaisesRegex(ValueError, "'A' is read-only"):
            v.load()
        self.assertEqual(list(v), ["A", "B", "C"])
        self.assertEqual(list(varve.Store(self.store)["l"][v.checkpoint()]), ["A", "B", "C"])

    def test_load_interrupted(self):
        """Ctrl-C comes while the arrays are declared again."""
        v = self.open()
        for name in "ABC":
            v[name] = np.arange(5)
        v.checkpoint()
        self.interrupted("varve_protect_array", v.load)
        with unittest.mock.patch.object(varve._session, "memory_of", Interrupted(4)), self.assertRaises(KeyboardInterrupt):
            v.load()
        self.assertEqual(sorted(v), ["A", "B", "C"])
        self.assertEqual(sorted(varve.Store(self.store)["l"][v.checkpoint()]), ["A", "B", "C"])

    def test_interrupted_anywhere(self):
        """The exception comes before any operation of Python that goes with a call of the library."""
        v, states = self.open(keep=1), (np.arange(5), None, np.arange(6), 7)
        for before, after in ((0, 1), (1, 2), (2, 3), (2, 0)):
            at, is_over = 0, False
            while not is_over:
                at += 1
                self.put(v, states[before])
                is_over = interrupted_at(at, lambda: self.put(v, states[after]))
                if at % 7 and not is_over:
                    continue
                stored = varve.Store(self.store)["l"][v.checkpoint()]
                self.assertEqual({n: getattr(r, "shape", r) for n, r in stored.items()}, {n: getattr(r, "shape", r) for n, r in v.items()})
            self.assertGreater(at, 50)

    def put(self, v, value):
        if value is None:
            v.pop("T", None)
        else:
            v["T"] = value

    def test_refused(self):
        """The library keeps the array that it has, and so does the session."""
        v, t = self.open(), np.arange(5)
        v["T"] = t
        for name in ("varve_protect_array", "varve_protect_shared", "varve_unprotect"):
            with unittest.mock.patch.object(_native.native(), name, lambda *_: -1), self.assertRaises(varve.Error):
                v.shared("T", np.arange(6)) if "shared" in name else self.put(v, None if "un" in name else np.arange(6))
            self.assertIs(v["T"], t)
        odd = unittest.mock.Mock(__array_interface__={"data": (1.5, False), "typestr": "|u1", "shape": (5,)}, dtype=None)
        with self.assertRaises(ctypes.ArgumentError):
            v["T"] = odd
        self.assertIs(v["T"], t)
        self.assertEqual(varve.Store(self.store)["l"][v.checkpoint()]["T"].shape, (5,))

    def test_handlers_stay(self):
        """Python's functions of signals are not called: a request for a checkpoint would be lost meanwhile."""
        from varve import _deferred_signals
        v, called = self.open(), []
        sys.setprofile(lambda frame, event, function: called.append(function.__name__) if event == "c_call" else None)
        try:
            with unittest.mock.patch.object(_deferred_signals, "_sigaction", side_effect=AssertionError("the kernel's function is changed")):
                v["T"], v["n"] = np.arange(5), 1
                v.checkpoint()
                del v["T"]
        finally:
            sys.setprofile(None)
        self.assertFalse({"signal", "getsignal"} & set(called), set(called))

    def test_part_becomes_plain(self):
        v, t = self.open(), np.arange(5)
        v.shared("T", t)
        v["T"] = t
        with unittest.mock.patch.object(varve._parts.Parts, "shared", side_effect=AssertionError("it is a plain array now")):
            v.checkpoint()
            self.assertTrue(v.load())

    def test_forgotten(self):
        v = varve.open(self.store, "l")
        v["x"] = np.arange(5)
        v.checkpoint()
        del v
        gc.collect()
        with varve.open(self.store, "l") as v:  # not busy
            v["x"] = np.zeros(5, int)
            v.restart()
            self.assertEqual(v["x"].tolist(), [0, 1, 2, 3, 4])

    def test_end_of_program(self):
        done = python("import sys, varve; v = varve.open(sys.argv[1], 'l', mode='async', interpose=False)\nv['x'] = bytearray(8 << 20)\n"
                      "v['x'][:] = b'z' * (8 << 20); v.checkpoint()", self.store)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(varve.Store(self.store)["l"][-1]["x"].read_bytes(100, 3), b"zzz")

    def test_fork(self):
        v = self.open()
        v["x"] = np.zeros(3)
        v.checkpoint()
        pid = os.fork()
        if pid == 0:
            try:
                v.checkpoint()
            except varve.Invalid as e:
                v.close()
                os._exit(0 if "belongs to process" in str(e) else 2)
            os._exit(1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertEqual(v.checkpoint(), 2)

    def test_body_fails(self):
        with self.assertRaises(ZeroDivisionError), varve.open(self.store, "l"):
            1 // 0

    def test_threads(self):
        v = self.open()
        xs = [np.zeros(1000) for _ in range(4)]
        errors = []

        def use(i):
            try:
                for k in range(20):
                    v[f"x{i}"] = xs[i]
                    v[f"n{i}"] = k
                    v.due(), v.wait(0), v.epoch
                    if i == 0:
                        v.checkpoint()
            except varve.Invalid as e:
                errors.append(str(e))

        threads = [threading.Thread(target=use, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        time.sleep(0.02)
        v.close()
        for t in threads:
            t.join()
        self.assertTrue(all("is closed" in e for e in errors), errors)


class Waiting(Case):
    def test_on_done(self):
        told = []
        with varve.open(self.store, "l", mode="async", interpose=False) as v:
            x = v["x"] = np.zeros(1 << 20)
            v.on_done(lambda epoch, error: told.append((epoch, error, v.epoch)))
            for i in range(3):
                x += 1  # while an epoch is being stored; the interpreter's lock is held in the page fault
                v.checkpoint()
        self.assertEqual([(e, error) for e, error, _ in told], [(1, None), (2, None), (3, None)])

    def test_forgotten(self):
        """The garbage collector finds a session on the thread that waits for its epochs."""
        text = """
import gc, sys, threading, time, varve
from varve import _session
dropped = threading.Event()
check = _session.check
def collect(rc):
    if threading.current_thread().name == 'varve-done':
        dropped.wait(60)
        gc.collect()
    return check(rc)
gc.disable()
v = varve.open(sys.argv[1], 'l')
v['n'], v.itself = 1, v
v.on_done(lambda epoch, error: None)
handle = v._handle
_session.check = collect
v.checkpoint()
del v
dropped.set()
end = time.monotonic() + 20
while not handle.is_closed and time.monotonic() < end:
    time.sleep(0.01)
print(handle.is_closed, flush=True)
import os
os._exit(0)
"""
        self.assertEqual(python(text, self.store, timeout=100).stdout, "True\n")

    def test_done_fails(self):
        done = python("import sys, varve\nwith varve.open(sys.argv[1], 'l') as v:\n v['n'] = 1; v.on_done(lambda e, err: 1 // 0); v.checkpoint()", self.store)
        self.assertEqual(done.returncode, 0)
        self.assertIn("ZeroDivisionError", done.stderr)

    def test_durable(self):
        async def main():
            with varve.open(self.store, "l", mode="async", interpose=False) as v:
                self.assertEqual(await v.durable(), 0)
                v["x"] = np.ones(1 << 20)
                v.checkpoint()
                self.assertEqual(await v.durable(), 1)
                return len(varve.Store(self.store)["l"])
        self.assertEqual(asyncio.run(main()), 1)

    def test_wait(self):
        v = self.open(mode="async", interpose=False)
        self.assertTrue(v.wait())
        x = v["x"] = np.random.default_rng(0).random(4 << 20)
        for i in range(3):
            x += 1
            v.checkpoint()
        v.wait(0)
        self.assertTrue(v.wait(60))
        self.assertTrue(v.wait(epoch=1))
        with self.assertRaises(varve.Error):
            v.wait(epoch=99)

    def test_interrupt(self):
        """The epoch takes many seconds to compress; a signal ends the wait for it."""
        text = """
import os, sys, threading, signal, varve
x = bytearray(os.urandom(1 << 20) + bytes(range(256)) * (1 << 18))
try:
    v = varve.open(sys.argv[1], 'l', mode='async', interpose=False, codec='zstd:19', threads=1)
except varve.Error as e:
    os._exit(print(type(e).__name__, flush=True) or 0)
v['x'] = x
for i in range(0, len(x), 97):
    x[i] = i * 31 % 251
v.checkpoint()
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    v.wait()
except KeyboardInterrupt:
    os._exit(print('interrupted', flush=True) or 0)
"""
        self.assertIn(python(text, self.store, timeout=100).stdout, ("interrupted\n", "NotSupported\n", "Invalid\n"))

    def test_due(self):
        self.assertTrue(self.open("a").due())
        v = self.open("b", interval="1h")
        v["n"] = 1
        v.checkpoint()
        self.assertFalse(v.due())


CAN_INTERPOSE = package.INTERPOSE.exists() and not set(" :") & set(str(package.INTERPOSE))  # ld.so takes neither in a path


class Modes(Case):
    def mode(self, *command, **env):
        text = "import sys, varve; from varve import _native; v = varve.open(sys.argv[1], 'l'); print(_native.is_interposed(), v._options.get('mode'))"
        done = subprocess.run([sys.executable, *command, "-c", text, self.store], **{**RUN, "env": {**os.environ, **env}})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def test_default(self):
        self.assertEqual(self.mode(), ["False", "sync"])
        self.assertEqual(self.mode(VARVE_MODE="async"), ["False", "None"])
        if CAN_INTERPOSE:
            self.assertEqual(self.mode("-m", "varve"), ["True", "None"])

    def test_reads_into_arrays(self):
        """The kernel writes into an array while its epoch is stored: no error in either default."""
        (self.folder / "data").write_bytes(bytes(range(256)) * (1 << 16))
        text = """
import sys, numpy as np, varve
with varve.open(sys.argv[1], 'l', buffer='1MiB') as v:
    x = v['x'] = np.random.default_rng(0).integers(0, 256, 16 << 20, np.uint8)
    for i in range(3):
        x[:8] = i
        v.checkpoint()
        with open(sys.argv[2], 'rb', buffering=0) as f:
            assert f.readinto(x) == len(x)
    assert (x == np.tile(np.arange(256, dtype=np.uint8), 1 << 16)).all()
print([int(np.asarray(e['x'][0])) for e in varve.Store(sys.argv[1])['l']])
"""
        for command in ([], ["-m", "varve"]) if CAN_INTERPOSE else ([],):
            done = subprocess.run([sys.executable, *command, "-c", text, self.folder / f"s{len(command)}", self.folder / "data"], **RUN)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "[0, 1, 2]\n", ""))


class Errors(Case):
    def test_classes(self):
        v = self.open()
        v["x"] = np.arange(1000.0)
        v.checkpoint()
        done = python("import os, sys, varve\ntry: varve.open(sys.argv[1], 'l')\nexcept varve.Busy as e: print(e.code, str(os.getppid()) in str(e))", self.store)
        self.assertEqual(done.stdout, "-6 True\n")
        v["x"] = np.zeros(5)
        with self.assertRaisesRegex(varve.Mismatch, "'x'") as caught:
            v.restart()
        self.assertEqual(caught.exception.code, -7)
        v["y"] = np.zeros(5)
        del v["x"]
        with self.assertRaises(varve.NotFound):
            v.restart()
        with self.assertRaises(varve.NotFound):
            v.restart(77)
        with self.assertRaises(varve.NotFound):
            v.restart("nothing")
        for options in (dict(no_such_option=1), dict(keep="many"), dict(log="a\0b")):
            with self.assertRaises(varve.Invalid):
                self.open("m", **options)
        with self.assertRaises(varve.NotFound):
            varve.Store(self.folder / "none")
        with self.assertRaises(KeyError):
            varve.Store(self.store)["none"]

    def test_options(self):
        v = self.open(keep=2, keep_every=None, dedup=True, codec="none", stats=self.folder / 'a "file" \\ with blanks')
        for i in range(4):
            v["n"] = i
            v.checkpoint()
        v.close()
        self.assertEqual([e.number for e in varve.Store(self.store)["l"]], [3, 4])
        self.assertTrue((self.folder / 'a "file" \\ with blanks').exists())

    def test_damage(self):
        """An array, then the values, of the newest epoch are damaged: an older epoch is taken; asked for by number: an exception."""
        for what in ("x", "n"):
            with varve.open(self.store, what, codec="none") as v:
                x = v["x"] = np.zeros(50000)
                for i in range(3):
                    v["n"], v["text"] = i, "needle " + str(i)
                    x[:] = np.random.default_rng(i).random(50000)
                    v.checkpoint()
            needle = x[1000:1002].tobytes() if what == "x" else b"needle 2"
            layer = [p for p in (self.store / what).rglob("*") if p.is_file() and needle in p.read_bytes()]
            self.assertEqual(len(layer), 1)
            data = layer[0].read_bytes()
            layer[0].chmod(0o644)
            layer[0].write_bytes(data.replace(needle, bytes([needle[0] ^ 1]) + needle[1:]))
            with self.assertRaises(varve.Damaged):
                e = varve.Store(self.store)[what][3]
                e["text"], np.asarray(e["x"])
            with varve.open(self.store, what, log="error") as v, warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                v["x"], v["n"] = x, 0
                x[:] = 0
                with self.assertRaises(varve.Damaged):
                    v.restart(3)
                self.assertTrue(v.restart())
                self.assertEqual((v.epoch, v["n"], v["text"]), (2, 1, "needle 1"))
                np.testing.assert_array_equal(x, np.random.default_rng(1).random(50000))
                self.assertEqual(len(heard), what == "n")
                v["n"] = 10
                v.checkpoint()
            self.assertEqual(varve.Store(self.store)[what][-1]["n"], 10)

    def test_foreign_text(self):
        """A region of this name that the package has not written."""
        for i, text in enumerate((b"", b"[]", b"{", b'{"format": 2}', b'{"format": 1, "values": [], "arrays": {}}', b"\xff", b"[" * 100000,
                                  b'{"format": 1, "values": {}, "arrays": {"x": "O"}}')):
            v, buffer = self.open(f"l{i}"), ctypes.create_string_buffer(text, len(text) or 1)
            v["x"] = np.zeros(3)
            from varve import _native
            with v._handle as pointer:
                _native.check(_native.native().varve_protect(pointer, b"python.json", buffer, len(text)))
                _native.check(_native.native().varve_checkpoint(pointer))
            with self.assertRaisesRegex(varve.Damaged, "python.json"):
                v.restart(1)
            with self.assertRaisesRegex(varve.Damaged, "python.json"):
                varve.Store(self.store)[f"l{i}"][1]["x"]

    def test_no_library(self):
        for path, word in ((self.folder / "none.so", "none.so"), ("libc.so.6", "not libvarve|varve_version")):
            done = python("import varve; varve.open('s', 'l')", env={**os.environ, "VARVE_LIBRARY": str(path)}, cwd=self.folder)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr.splitlines()[-1], f"^ImportError: .*({word})")
        done = python("import varve; varve._native.__version__ = '9.9.9'; varve.open('s', 'l')", cwd=self.folder)
        self.assertRegex(done.stderr.splitlines()[-1], r"^ImportError: libvarve.so is version .* 9\.9\.9")


class Reading(Case):
    def test_parts(self):
        x = np.arange(4 * 5 * 6, dtype="i4").reshape(4, 5, 6)
        region = self.around(x)[1]
        for index in (np.s_[1], np.s_[1:3], np.s_[-1], np.s_[..., 2], np.s_[1, 2, 3], np.s_[:, 1:4:2], np.s_[::-1], np.s_[3:0:-2, ..., -2:], np.s_[2:2],
                      np.s_[:, :, :], np.s_[...], np.s_[np.int64(1)], np.s_[10:20], np.s_[0, ..., ::3], ()):
            np.testing.assert_array_equal(region[index], x[index], str(index))
            self.assertEqual(region[index].dtype, x.dtype)
        for index in (4, -5, (0, 0, 0, 0), (..., ...), [1, 2], 1.5, None, "x"):
            with self.assertRaises(IndexError):
                region[index]
        self.assertEqual((len(region), region.ndim, region.name), (4, 3, "x"))
        self.assertEqual(region.read_bytes(4, 8), x.tobytes()[4:12])
        with self.assertRaises(varve.Invalid):
            region.read_bytes(1, 10**6)
        self.assertEqual(np.asarray(region, "f8").dtype, np.dtype("f8"))
        self.assertIn("i4 [4, 5, 6]", repr(region))

    def test_epochs(self):
        v = self.open()
        for i in range(3):
            v["n"] = i
            if i == 1:
                v.label("step-1")
            v.checkpoint()
        lineage = varve.Store(self.store)["l"]
        self.assertEqual([(e.number, e.label, e.parent, e.ranks, e.complete, e.problem) for e in lineage],
                         [(1, None, 0, 1, True, None), (2, "step-1", 1, 1, True, None), (3, None, 2, 1, True, None)])
        self.assertEqual((lineage["step-1"].number, lineage[3]["n"], lineage[-3].number, len(lineage)), (2, 2, 1, 3))
        self.assertLess(abs(datetime.datetime.now(datetime.timezone.utc) - lineage[1].time), datetime.timedelta(hours=1))
        for which in (4, 0, -4, "step-2"):
            with self.assertRaises(varve.NotFound):
                lineage[which]
        with self.assertRaises(varve.Invalid):
            lineage[1].rank(1)
        self.assertEqual(list(varve.Store(self.store)), ["l"])
        self.assertTrue(v.restart("step-1"))
        self.assertEqual(v["n"], 1)

    def test_beside_writer(self):
        text = """
import sys, numpy as np, varve
v = varve.open(sys.argv[1], 'l', keep=2)
x = v['x'] = np.zeros(20000)
print(flush=True)
for i in range(1, 10**9):
    x[:] = v['n'] = i
    v.checkpoint()
"""
        writer = subprocess.Popen([sys.executable, "-c", text, self.store], stdout=subprocess.PIPE)
        try:
            writer.stdout.readline()
            seen, end = set(), time.monotonic() + 60
            while len(seen) < 10 and time.monotonic() < end:
                for e in varve.Store(self.store)["l"]:
                    try:
                        n, x = e["n"], np.asarray(e["x"])
                    except varve.NotFound:
                        continue  # dropped in the meantime
                    self.assertTrue(n == e.number and (x == n).all())
                    seen.add(n)
            self.assertGreaterEqual(len(seen), 10)
        finally:
            writer.kill()
            writer.wait()
            writer.stdout.close()

    def test_without_numpy(self):
        text = "import sys; sys.modules['numpy'] = None\nimport varve\nx = bytearray(b'abcd')\n" \
            "with varve.open(sys.argv[1], 'l') as v: v['x'] = x; v['n'] = 5; v.checkpoint()\n" \
            "e = varve.Store(sys.argv[1])['l'][-1]; print(e['n'], e['x'].read_bytes(), e['x'].shape)"
        done = python(text, self.store)
        self.assertEqual((done.stdout, done.stderr), ("5 b'abcd' (4,)\n", ""))


class Import(Case):
    def test_import(self):
        text = "import sys, varve; print([m for m in ('numpy', 'torch', 'mpi4py') if m in sys.modules])"
        self.assertEqual(python(text).stdout, "[]\n")

    def test_doctests(self):
        for module in (varve, varve._native, varve._session, varve._store):
            self.assertEqual(doctest.testmod(module).failed, 0)

    def test_page(self):
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        page = pathlib.Path(os.environ["VARVE_SOURCE"]) / "docs/python.md"
        self.assertEqual(doctest.testfile(str(page), module_relative=False, optionflags=doctest.IGNORE_EXCEPTION_DETAIL).failed, 0)


class Kill(Case):
    def test_heat(self):
        """Killed at many moments, in both modes, the example ends with the same bits as without a kill."""
        example = pathlib.Path(os.environ["VARVE_SOURCE"]) / "examples/python/heat.py"
        run = lambda store, out, **more: subprocess.Popen([sys.executable, example, store, out, "300"], stdout=subprocess.DEVNULL, **more)
        self.assertEqual(run(self.folder / "whole", self.folder / "whole.npy").wait(), 0)
        whole = (self.folder / "whole.npy").read_bytes()
        for mode in ("sync", "async"):
            store, out = self.folder / mode, self.folder / f"{mode}.npy"
            for i in range(6):
                p = run(store, out, env={**os.environ, "VARVE_MODE": mode, "VARVE_INTERPOSE": "no"})
                begin, before = time.monotonic(), count(store)
                while p.poll() is None and count(store) <= before and time.monotonic() < begin + 60:
                    time.sleep(0.002)
                time.sleep(0.01 * i)
                p.kill()
                p.wait()
            self.assertEqual(run(store, out).wait(), 0)
            self.assertEqual(out.read_bytes(), whole)


def count(store):
    """The number of the newest epoch."""
    return max((int(p.stem) for p in store.rglob("*.commit")), default=0)


if __name__ == "__main__":
    unittest.main(verbosity=1)
