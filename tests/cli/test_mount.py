#!/usr/bin/env python3
# ctest: TIMEOUT 300 COST 10
"""varve mount: a store as a folder. What is read there are the bytes of the store, or an error."""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import command

N = 300000

# libfuse frees the folder's name when it unmounts, which the parent of a mount in the background does not
os.environ["ASAN_OPTIONS"] = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "detect_leaks=0"]))


class Mount(command.Case):
    def setUp(self):
        super().setUp()
        self.at = self.folder / "mounted"
        self.at.mkdir()
        self.process = None
        self.addCleanup(self.unmount)

    def mount(self, *options, store=None):
        """In the foreground; the process. Its messages go to the file `said`."""
        with open(self.folder / "said", "wb") as said:
            self.process = subprocess.Popen([command.BIN, "mount", "-f", *options, store or self.store, self.at], env=self.env, cwd=self.folder,
                                            stderr=said)
        command.wait_for(lambda: os.path.ismount(self.at) or self.process.poll() is not None, "the mount")
        self.assertIsNone(self.process.poll(), self.said())

    def said(self):
        return (self.folder / "said").read_text()

    def unmount(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=command.PATIENCE)
        self.process = None

    def names(self, path=""):
        return sorted(p.name for p in (self.at / path).iterdir())

    def test_regions(self):
        data, values = command.noise(N), command.noise(80, 3)
        self.file("x", data)
        self.file("v", values)
        self.write("region", "x", "bytes", N, "load", "x", "x", "region", "v", "f64", "2x5", "load", "v", "v", "region", "a/b%", "u8", 4,
                   "checkpoint", "poke", "x", 100, "ff", "checkpoint")
        self.write("region", "y", "i32", 3, "checkpoint", lineage="other")
        self.mount()
        self.assertEqual(self.names(), ["heat", "other"])
        self.assertEqual(self.names("heat"), ["1", "2", "latest"])
        self.assertEqual(os.readlink(self.at / "heat/latest"), "2")
        self.assertEqual(self.names("heat/1"), ["a%2Fb%25.npy", "v.npy", "x.bin"])
        self.assertTrue((self.at / "heat/1/x.bin").read_bytes() == data)
        changed = data[:100] + b"\xff" + data[101:]
        self.assertTrue((self.at / "heat/latest/x.bin").read_bytes() == changed)
        self.assertEqual(command.read_npy((self.at / "heat/1/v.npy").read_bytes()), ("<f8", (2, 5), values))
        self.assertEqual(command.read_npy((self.at / "heat/2/a%2Fb%25.npy").read_bytes()), ("|u1", (4,), bytes(4)))
        p = self.run_raw("extract", self.store, "heat@1:v", "--npy")
        self.assertEqual((self.at / "heat/1/v.npy").read_bytes(), p.stdout)
        self.assertEqual(self.names("other/latest/"), ["y.npy"])
        stat = (self.at / "heat/1/x.bin").stat()
        self.assertEqual((stat.st_size, stat.st_mode & 0o7777), (N, 0o444))
        self.assertLess(abs(stat.st_mtime - time.time()), 1000)
        for path in "nobody", "heat/3", "heat/01", "heat/1/z", "heat/1/x.bin/z", "heat/oldest", "heat/1/rank0", "heat/0", "a:b", "heat/1/x":
            self.assertFalse(os.path.lexists(self.at / path), path)
        for act in (lambda: (self.at / "new").write_bytes(b""), lambda: (self.at / "heat/1/x.bin").unlink(),
                    lambda: open(self.at / "heat/1/x.bin", "r+b")):
            with self.assertRaises(OSError) as raised:
                act()
            self.assertEqual(raised.exception.errno, 30)  # EROFS

    def test_labels(self):
        """A label is a link to its epoch, the newest of several."""
        self.write("region", "y", "i32", 3, "checkpoint", "checkpoint", "checkpoint")
        self.varve("label", self.store, "heat@2", "step-400")
        (self.store / "heat/00000000/0000000009.later.label").write_bytes(b"")  # of an epoch that is not committed
        self.mount()
        self.assertEqual(self.names("heat"), ["1", "2", "3", "latest", "step-400"])
        self.assertEqual(os.readlink(self.at / "heat/step-400"), "2")
        self.assertEqual(self.names("heat/step-400/"), ["y.npy"])

    def test_random_reads(self):
        """Any piece of a region, of stored, compressed and shared bytes, by many readers, is that piece."""
        rng = random.Random(1)
        data = bytearray(b"".join(rng.choice([bytes(4096), b"abcd" * 1024, command.noise(4096, i % 7)]) for i in range(1500)))
        self.file("x", data)
        words = ["region", "x", "bytes", len(data), "load", "x", "x", "checkpoint"]
        for e in range(4):
            at = rng.randrange(len(data))
            data[at] ^= 0xFF
            words += ["poke", "x", at, f"{data[at]:02x}", "checkpoint"]
        self.write(*words, options="codec=zstd block=64KiB")
        self.mount()
        path = self.at / "heat/latest/x.bin"
        for _ in range(3):
            with open(path, "rb", buffering=0) as f, open(path, "rb", buffering=0) as g:
                for _ in range(150):
                    at, n = rng.randrange(len(data) + 10), rng.randrange(1, 50000)
                    h = rng.choice([f, g])
                    h.seek(at)
                    self.assertTrue(h.read(n) == data[at:at + n], (at, n))
            self.assertTrue(path.read_bytes() == data)
        readers = [subprocess.Popen(["cmp", path, self.file(f"want{i}", data)], stdout=subprocess.PIPE) for i in range(4)]
        for r in readers:
            self.assertEqual(r.communicate()[0], b"")
            self.assertEqual(r.returncode, 0)

    def test_memory(self):
        """Decoded blocks have a bound, also when several readers of a file larger than it come back to what they have read."""
        size = 288 << 20
        (self.folder / "large").write_text(random.Random(2).randbytes(size // 2).hex())
        self.varve("pack", self.store, "run", "large", "--level", "fast")
        self.mount()
        path = self.at / "run/latest/large"
        at = random.Random(1)
        with open(path, "rb", buffering=0) as f, open(path, "rb", buffering=0) as g, open(self.folder / "large", "rb") as want:
            for step in range(3 * size >> 20):
                where = (step << 20) % size if step < 2 * size >> 20 else at.randrange(size)
                want.seek(where)
                bytes_there = want.read(1 << 16)
                for h in f, g:
                    h.seek(where)
                    self.assertTrue(h.read(1 << 16) == bytes_there, where)
        status = dict(words.split(":", 1) for words in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines())
        mib = (int(status["VmHWM"].split()[0]) - int(status["RssFile"].split()[0])) / 1024
        self.assertLess(mib, 128 + 64)
        self.assertGreater(mib, 64, "the cache is not used: this says nothing")

    def test_ranks(self):
        self.write("ranks", "3", "region", "x%r", "u8", "5000", "poke", "x%r", "7", "a%r", "checkpoint")
        self.mount()
        self.assertEqual(self.names("heat/1"), ["rank0", "rank1", "rank2"])
        for r in range(3):
            self.assertEqual(self.names(f"heat/1/rank{r}"), [f"x{r}.npy"])
            self.assertEqual(command.read_npy((self.at / f"heat/1/rank{r}/x{r}.npy").read_bytes())[2], bytes(7) + bytes([0xA0 + r]) + bytes(4992))
        for path in "heat/1/rank3", "heat/1/rank00", "heat/1/rank", "heat/1/rank1/x0.npy", "heat/1/x0.npy":
            self.assertFalse(os.path.lexists(self.at / path), path)

    def test_packed_files(self):
        """The tree, with modes and times; several ranks are one tree."""
        tree = self.folder / "tree"
        (tree / "a/b").mkdir(parents=True)
        (tree / "empty").mkdir()
        (tree / "a/one").write_bytes(command.noise(70000))
        (tree / "a/b/two").write_bytes(b"two")
        (tree / "a-b").write_bytes(b"dash")
        (tree / "none").write_bytes(b"")
        os.symlink("a/one", tree / "link")
        os.chmod(tree / "a/one", 0o640)
        os.utime(tree / "a/one", ns=(10**18 + 5, 10**18 + 5))
        self.varve("pack", self.store, "run", "tree")
        self.mount()
        top = self.at / "run/1/tree"
        self.assertEqual(self.names("run/1"), ["tree"])
        found = sorted(str(p.relative_to(top)) for p in top.rglob("*"))
        self.assertEqual(found, sorted(str(p.relative_to(tree)) for p in tree.rglob("*")))
        for p in tree.rglob("*"):
            q = top / p.relative_to(tree)
            self.assertEqual(p.lstat().st_mode & 0o170000, q.lstat().st_mode & 0o170000, p)
            if p.is_symlink():
                self.assertEqual(os.readlink(p), os.readlink(q))
            elif p.is_file():
                self.assertTrue(p.read_bytes() == q.read_bytes())
                self.assertEqual((p.stat().st_mode, p.stat().st_mtime_ns), (q.stat().st_mode, q.stat().st_mtime_ns))
        self.assertEqual(sorted(p.name for p in (top / "a").iterdir()), ["b", "one"])

    def test_epochs_come_and_go(self):
        """New epochs appear; one that is dropped, with its space, goes; a file that is open has its bytes or an error."""
        data = command.noise(N)
        self.file("x", data)
        self.write("region", "x", "bytes", N, "load", "x", "x", "checkpoint")
        self.mount()
        self.assertEqual(self.names("heat"), ["1", "latest"])
        with open(self.at / "heat/1/x.bin", "rb", buffering=0) as f:
            self.assertEqual(f.read(10), data[:10])
            other = command.noise(N, 9)
            self.file("x", other)
            self.write("region", "x", "bytes", N, "load", "x", "x", "checkpoint")
            command.wait_for(lambda: self.names("heat") == ["1", "2", "latest"], "epoch 2")
            command.wait_for(lambda: os.readlink(self.at / "heat/latest") == "2", "the link")
            self.assertTrue((self.at / "heat/latest/x.bin").read_bytes() == other)
            self.varve("drop", self.store, "heat@1")
            self.varve("gc", self.store)
            command.wait_for(lambda: not os.path.lexists(self.at / "heat/1"), "the end of epoch 1")
            self.assertEqual(self.names("heat"), ["2", "latest"])
            try:
                f.seek(100)
                self.assertTrue(f.read() == data[100:])
            except OSError as e:
                self.assertEqual(e.errno, 5)
        self.varve("drop", self.store, "heat", "--lineage", "--yes")
        self.file("x", data)
        self.write("region", "x", "bytes", N, "load", "x", "x", "checkpoint", "checkpoint", lineage="heat")
        time.sleep(1.1)
        self.assertTrue((self.at / "heat/2/x.bin").read_bytes() == data)

    def test_bundle_dropped(self):
        """Layers of one file: their bytes are freed in place, and never read as zeros."""
        self.write("ranks", "2", "region", "x%r", "bytes", str(1 << 20), "load", "x%r", self.file("x", command.noise(1 << 20)), "checkpoint",
                   "load", "x%r", self.file("y", command.noise(1 << 20, 7)), "checkpoint", options="aggregate=2 codec=none collective=none")
        self.mount()
        want = command.noise(1 << 20)
        with open(self.at / "heat/1/rank1/x1.bin", "rb", buffering=0) as f:
            self.assertEqual(f.read(4096), want[:4096])
            self.varve("drop", self.store, "heat@1")
            self.varve("gc", self.store)
            try:
                for at in range(0, 1 << 20, 65536):
                    f.seek(at)
                    got = f.read(65536)
                    self.assertTrue(got and got == want[at:at + len(got)], (at, len(got)))
            except OSError as e:
                self.assertEqual(e.errno, 5)

    def test_damage(self):
        """EIO, and a sentence that names the layer. The rest can be read."""
        data = command.noise(N)
        self.file("x", data)
        self.write("region", "x", "bytes", N, "load", "x", "x", "checkpoint", "region", "y", "u8", 10, "checkpoint", options="codec=none block=64KiB")
        self.flip(self.layer(1), 150000)
        self.write("region", "x", "bytes", N, "checkpoint", lineage="headless")
        head = self.layer(1, "headless")
        self.flip(head, command.sections(head.read_bytes())["RUNS"][0])
        self.write("region", "x", "bytes", N, "checkpoint", lineage="uncommitted")
        self.flip(self.commit(1, "uncommitted"), 60)
        self.mount()
        for path in "heat/1/x.bin", "heat/2/x.bin", "uncommitted/1":
            with self.assertRaises(OSError) as raised:
                (self.at / path).read_bytes()
            self.assertEqual(raised.exception.errno, 5, path)
        with self.assertRaises(OSError) as raised:
            self.names("headless/1")
        self.assertEqual(raised.exception.errno, 5)
        self.assertTrue((self.at / "headless/1").is_dir())
        self.assertIn("0000000001.r0.layer': block", self.said())
        self.assertIn("RUNS", self.said())
        with open(self.at / "heat/1/x.bin", "rb", buffering=0) as f:
            self.assertTrue(f.read(50000) == data[:50000])
        self.assertEqual(len((self.at / "heat/2/y.npy").read_bytes()), 138)

    def test_background(self):
        """It returns when the folder is there, and ends with the mount; with a relative path, too."""
        self.write("region", "x", "u8", 10, "checkpoint")
        p = self.run_raw("mount", self.store.name, self.at.name)
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        try:
            self.assertEqual(self.names("heat/latest/"), ["x.npy"])
        finally:
            subprocess.run(["fusermount3", "-u", self.at], check=True)
        self.assertEqual(list(self.at.iterdir()), [])

    def test_ends(self):
        self.write("region", "x", "u8", 10, "checkpoint")
        for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
            self.mount()
            self.process.send_signal(number)
            self.assertEqual(self.process.wait(timeout=command.PATIENCE), 0)
            self.assertFalse(os.path.ismount(self.at))

    def test_killed(self):
        """The folder of a killed process is a dead mount: readers get an error, and the next command does not hide it."""
        self.write("region", "x", "u8", 10, "checkpoint")
        self.mount()
        self.process.kill()
        self.process.wait()
        with self.assertRaises(OSError):
            os.listdir(self.at)
        try:
            for _ in range(2):
                self.assertIn(f"fusermount3 -u {self.at}", self.fails("mount", self.store, self.at))
                time.sleep(1.1)  # the kernel forgets the folder's attributes
        finally:
            subprocess.run(["fusermount3", "-u", self.at], check=True)
        self.mount()
        self.assertEqual(self.names("heat/latest/"), ["x.npy"])

    def test_refused(self):
        self.write("region", "x", "u8", 10, "checkpoint")
        self.assertIn("No such file", self.fails("mount", self.store, self.folder / "nothing"))
        self.assertIn("no folder", self.fails("mount", self.store, self.file("file", b"")))
        (self.folder / "else").mkdir()
        self.assertIn("is empty", self.fails("mount", self.folder / "else", self.at))
        self.assertIn("a lineage, not a store", self.fails("mount", self.store / "heat", self.at))
        self.assertIn("inside the store", self.fails("mount", self.store, self.store / "heat"))
        (self.folder / "else/kept").write_bytes(b"x")
        self.assertIn("is not empty (it has 'kept')", self.fails("mount", self.store, self.folder / "else"))
        self.mount()
        self.assertIn("is mounted there already", self.fails("mount", self.store, self.at))


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def try_it():
    """Can anything be mounted here?"""
    if not os.path.exists("/dev/fuse") or not shutil.which("fusermount3"):
        skip("no /dev/fuse, or no fusermount3")
    with tempfile.TemporaryDirectory() as d:
        store, at = pathlib.Path(d) / "store", pathlib.Path(d) / "at"
        at.mkdir()
        subprocess.run([command.WRITER, store, "a", "", "region", "x", "u8", "1", "checkpoint"], check=True, stdout=subprocess.DEVNULL)
        p = subprocess.run([command.BIN, "mount", store, at], capture_output=True, text=True)
        if p.returncode:
            skip(p.stderr.strip())
        subprocess.run(["fusermount3", "-u", at], check=True)


if __name__ == "__main__":
    try_it()
    unittest.main()
