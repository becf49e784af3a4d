#!/usr/bin/env python3
"""Parts of global arrays, lists and shared arrays from Python: stored in two parts, restarted in one, read as a whole."""
import pathlib
import tempfile
import unittest

import package

np = package.numpy()
import varve


class Parts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.store = pathlib.Path(folder.name) / "store"
        self.T = np.arange(60.0).reshape(10, 6)
        self.particles = np.arange(30, dtype="f4").reshape(10, 3)
        with varve.open(self.store, "run", mode="sync") as v:
            v.slab("T#0", self.T[:4].copy(), (10, 6), (0, 0))
            v.slab("T#1", self.lower(), (10, 6), (4, 0), ghost=(1, 0))
            v.list("particles", self.particles.copy())
            v.shared("table", np.arange(5))
            v["step"] = 7
            v.checkpoint()

    def lower(self):
        """Rows 4 to 9, with a ghost row at each end."""
        rows = np.zeros((8, 6))
        rows[:7] = self.T[3:]
        return rows

    def test_restart_in_one_part(self):
        with varve.open(self.store, "run", mode="sync") as v:
            self.assertEqual(v.list_share("particles"), (10, 10))
            T, particles, table = np.zeros((10, 6)), np.zeros((10, 3), "f4"), np.zeros(5, int)
            v.slab("T", T, (10, 6), (0, 0))
            v.list("particles", particles)
            v.shared("table", table)
            self.assertTrue(v.restart())
            self.assertTrue((T == self.T).all() and (particles == self.particles).all() and (table == np.arange(5)).all())
            self.assertEqual(v["step"], 7)
            self.assertIs(v["T"], T)

    def test_load(self):
        """Parts are still parts."""
        with varve.open(self.store, "run", mode="sync") as v:
            v.slab("T#0", np.zeros((4, 6)), (10, 6), (0, 0))
            v.slab("T#1", np.zeros((8, 6)), (10, 6), (4, 0), ghost=(1, 0))
            v.list("particles", np.zeros((10, 3), "f4"))
            v.shared("table", np.zeros(5, int))
            self.assertTrue(v.load())
            self.assertEqual(v.checkpoint(), 2)
        self.test_whole()

    def test_load_after_change(self):
        """The program uses its lists again for another part."""
        parts, start, ghost = [np.zeros((4, 6)), np.zeros((8, 6))], [0, 0], [0, 0]
        with varve.open(self.store, "run", mode="sync") as v:
            for i, part in enumerate(parts):
                v.slab(f"T#{i}", part, (10, 6), start, ghost)
                start[0], ghost[0] = 4, 1
            start[0], ghost[0] = 9, 3
            v.list("particles", np.zeros((10, 3), "f4"))
            v.shared("table", np.zeros(5, int))
            self.assertTrue(v.load())
            self.assertTrue((parts[0] == self.T[:4]).all() and (parts[1][1:7] == self.T[4:]).all())
            v.checkpoint()
        self.test_whole()

    def test_whole(self):
        whole = varve.Store(self.store)["run"][-1].whole
        self.assertEqual(set(whole), {"T", "particles", "table"})
        self.assertTrue((np.asarray(whole["T"]) == self.T).all())
        self.assertTrue((whole["T"][2:7] == self.T[2:7]).all())
        self.assertTrue((np.asarray(whole["particles"]) == self.particles).all())

    def test_no_epoch_yet(self):
        with varve.open(self.store, "empty") as v:
            self.assertIsNone(v.list_share("particles"))

    def test_refused(self):
        with varve.open(self.store, "other") as v:
            with self.assertRaisesRegex(varve.Invalid, "for each of them"):
                v.slab("T", np.zeros((2, 3)), (2, 3), (0,))
            with self.assertRaisesRegex(varve.Invalid, "below 0"):
                v.slab("T", np.zeros((2, 3)), (2, 3), (0, 0), ghost=2)
            with self.assertRaisesRegex(varve.Invalid, "not within"):
                v.slab("T", np.zeros((2, 3)), (2, 3), (1, 0))
            with self.assertRaises(TypeError):
                v.list("objects", np.array([object()]))


unittest.main()
