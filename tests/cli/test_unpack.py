#!/usr/bin/env python3
# ctest: TIMEOUT 300 COST 10
"""varve unpack --test: everything is read, decoded and checked as if it were to be written, the same faults are told, and nothing is written."""
import os
import pathlib
import resource
import shutil
import struct
import subprocess
import unittest

import command

MPIEXEC = os.environ.get("VARVE_MPIEXEC")


def doubles(n, seed=0):
    return struct.pack(f"<{n}d", *[(i % 97) * 0.25 + seed + (i // 97) * 1e-3 for i in range(n)])


class Tested(command.Case):
    def setUp(self):
        super().setUp()
        self.set = self.folder / "set"
        self.set.mkdir()
        for r in range(3):
            (self.set / f"rank{r}").mkdir()
            self.put(f"rank{r}/field", doubles(20000, r))
            self.put(f"rank{r}/noise", command.noise(60000, r))
        self.put("empty", b"")
        self.put("zeros", bytes(1 << 20))
        self.here = self.folder / "here"  # where the command is run
        self.here.mkdir()
        self.out = self.folder / "out"

    def put(self, name, data):
        (self.set / name).write_bytes(data)

    def pack(self, *words):
        self.varve("pack", self.store, "run", "-q", "-C", self.set, *words or ["."])

    def everything(self):
        return {p: (p.lstat().st_mode, p.lstat().st_mtime_ns, p.read_bytes() if p.is_file() else None) for p in self.folder.rglob("*")}

    def unpack(self, *words, **more):
        return subprocess.run([command.BIN, "unpack", str(self.store), *map(str, words)], cwd=self.here, capture_output=True, env=self.env,
                              timeout=100, **more)

    def look(self, *words, lineage="run", status=0, **more):
        """The words on both streams of a run of --test, which changes nothing at all."""
        before = self.everything()
        p = self.unpack(lineage, "--test", *words, **more)
        self.assertEqual(p.returncode, status, p.stderr)
        self.assertEqual(self.everything(), before)
        return p.stdout.decode(), p.stderr.decode()

    def test_whole(self):
        self.pack()
        for words in [], ["-j", "1"], ["-j", "3"], ["-C", self.out], ["--force"], ["-C", self.store], ["--by-epoch"]:
            said, errors = self.look(*words)
            self.assertRegex(said, r"^8 files( of 1 epoch)? read and checked, 1\.63 MiB in ")
            self.assertEqual(errors, "")
        self.assertEqual(self.look("-q"), ("", ""))
        self.assertRegex(self.look("rank1", "empty")[0], r"^3 files read and checked, ")
        self.assertRegex(self.look("rank1/field")[0], r"^1 file read and checked, ")
        found = self.json("unpack", self.store, "run", "--test")
        self.assertEqual((found["epoch"], found["files"], found["bytes"], found["n_missing"]), (1, 8, sum(p.stat().st_size for p in self.set.rglob("*") if p.is_file()), 0))

    def test_what_is_there(self):
        """Files that stand in the way of unpacking are none in the way of this."""
        self.pack()
        shutil.copytree(self.set, self.here, dirs_exist_ok=True)
        self.assertEqual(self.unpack("run").returncode, 2)
        self.assertIn("8 files", self.look()[0])

    def test_mistakes(self):
        self.pack()
        self.assertIn("has no file 'nothing'", self.look("nothing", status=2)[1])
        self.assertIn("--list reads no files", self.look("--list", status=2)[1])
        self.assertIn("no epoch 7", self.look(lineage="run@7", status=2)[1])
        self.assertIn("has no such epoch", self.look("--each", lineage="run@7..9", status=2)[1])
        self.write("region", "x", "u8", 4, "checkpoint")
        self.assertIn("not packed from files", self.look(lineage="heat", status=2)[1])

    def test_damage(self):
        """Wherever a bit flips, or the layer ends, it finds what unpacking finds: the same words, the same status."""
        self.pack()
        layer = self.layer(1, "run")
        good = layer.read_bytes()
        found = set()
        for k in range(24):
            at = k * (len(good) - 1) // 23
            layer.write_bytes(good[:at] + bytes([good[at] ^ 0x40]) + good[at + 1:] if k % 6 else good[:at])
            for words in [], ["rank0", "zeros"], ["--each"]:
                shutil.rmtree(self.out, ignore_errors=True)
                p = self.unpack("run", "-j", "1", "-C", self.out, *words)
                said, errors = self.look("-j", "1", *words, status=p.returncode)
                self.assertEqual(sorted(errors.splitlines()), sorted(p.stderr.decode().splitlines()), at)
                found.add(p.returncode)
                if p.returncode == 0:
                    self.assertRegex(said, "read and checked")
            both = [self.json("unpack", self.store, "run", *words, status=p.returncode) for words in (["--test"], ["-C", self.out, "--force"])]
            self.assertTrue(all(a.pop("seconds", 0) >= 0 for a in both))
            self.assertEqual(both[0], both[1])
        self.assertEqual(found, {0, 1})

    def test_series(self):
        """--each, of epochs whose files have the same names, too; damage in one costs no other."""
        for step in range(3):
            for r in range(3):
                self.put(f"rank{r}/field", doubles(20000, step + r))
            self.put("noise", command.noise(100000, step))
            self.pack()
        self.assertIn("--by-epoch", self.fails("unpack", self.store, "run", "--each", "-C", self.out))
        for words, lineage, n in (["--each"], "run", 27), (["--by-epoch"], "run", 27), (["--each"], "run@2..3", 18), (["--each", "noise", "rank1"], "run", 9):
            self.assertRegex(self.look(*words, lineage=lineage)[0], rf"^{n} files of {3 if lineage == 'run' else 2} epochs read and checked, ")
        self.flip(self.layer(2, "run"), 100)
        said, errors = self.look("--each", status=1)
        self.assertRegex(errors, r"^varve: epoch 2: \d+ files? could not be unpacked: ")
        self.assertRegex(said, r"^\d\d files of 3 epochs read and checked, ")
        self.layer(2, "run").unlink()
        self.assertEqual([e["epoch"] for e in self.json("unpack", self.store, "run", "--each", "--test", status=1)["epochs"]], [2, 1, 3])

    def test_nothing_can_be_written(self):
        """A folder without space, no right to write anywhere, few descriptors: nothing of that is needed."""
        self.pack()
        self.assertIn("8 files", self.look(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))[0])
        if os.getuid():
            self.here.chmod(0o500)
            self.store.chmod(0o500)
            self.assertIn("8 files", self.look()[0])
            self.store.chmod(0o700)
        for i in range(300):
            self.put(f"more{i}", b"%d" % i)
        self.pack()
        p = subprocess.run(["sh", "-c", 'ulimit -n 24; exec "$0" unpack --test -j 1 "$1" run', command.BIN, str(self.store)], capture_output=True, cwd=self.here)
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        self.assertRegex(p.stdout.decode(), "^308 files read and checked")

    @unittest.skipUnless(shutil.which("strace"), "no strace")
    def test_makes_nothing(self):
        """Not even a file without a name."""
        self.pack()
        log = self.folder / "calls"
        p = subprocess.run(["strace", "-f", "-o", log, "-e", "trace=openat,mkdirat,linkat,pwritev,pwrite64,ftruncate,fchmod", command.BIN, "unpack", "--test",
                            str(self.store), "run"], capture_output=True, cwd=self.here, env=self.env)
        if p.returncode and b"ptrace" in p.stderr:
            self.skipTest("no tracing here")
        self.assertEqual(p.returncode, 0, p.stderr)
        calls = pathlib.Path(log).read_text(errors="replace")
        for word in "O_TMPFILE", "O_CREAT", "mkdirat(", "linkat(", "pwritev(", "pwrite64(", "ftruncate(", "fchmod(":
            self.assertNotIn(word, calls)

    @unittest.skipUnless(MPIEXEC, "built without MPI")
    def test_ranks(self):
        self.pack()

        def run(*words):
            before = self.everything()
            p = subprocess.run([*MPIEXEC.split(), "-n", "3", command.BIN, "unpack", str(self.store), "run", *words], cwd=self.here, capture_output=True,
                               env=self.env, timeout=100)
            self.assertEqual(self.everything(), before)
            return p
        for words in ["--test"], ["--test", "--each"]:
            p = run(*words)
            self.assertEqual((p.returncode, b"varve: " in p.stderr), (0, False), p.stderr)
            self.assertRegex(p.stdout.decode(), r"^8 files( of 1 epoch)? read and checked, [^\n]*\n$")
        self.flip(self.layer(1, "run"), self.layer(1, "run").stat().st_size // 3)
        p = run("--test")
        self.assertNotEqual(p.returncode, 0)
        self.assertIn(b"could not be unpacked: ", p.stderr)
        self.assertIn(b"missing: ", p.stderr)


if __name__ == "__main__":
    unittest.main()
