#!/usr/bin/env python3
# ctest: TIMEOUT 300 COST 10
"""varve unpack --test: everything is read, decoded and checked as if it were to be written, the same faults are told, and nothing is written.
varve unpack when a rank's layer is lost, when it is killed, when the disk is full, and beside those who take epochs away."""
import os
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import unittest

import command

MPIEXEC = os.environ.get("VARVE_MPIEXEC")


def doubles(n, seed=0):
    return struct.pack(f"<{n}d", *[(i % 97) * 0.25 + seed + (i // 97) * 1e-3 for i in range(n)])


class Files(command.Case):
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


class Tested(Files):
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
                self.assertEqual(sorted(errors.splitlines()), sorted(p.stderr.decode().replace("could not be unpacked", "could not be read").splitlines()), at)
                found.add(p.returncode)
                if p.returncode == 0:
                    self.assertRegex(said, "read and checked")
            both = [self.json("unpack", self.store, "run", *words, status=p.returncode) for words in (["--test"], ["-C", self.out, "--force"])]
            self.assertTrue(all(a.pop("seconds", 0) >= 0 for a in both))
            self.assertEqual([a.pop("test", None) for a in both], [None, None] if "files" not in both[0] else [True, False])
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
        self.assertRegex(errors, r"^varve: epoch 2: \d+ files? could not be read: ")
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
        self.assertIn(b"could not be read: ", p.stderr)
        self.assertIn(b"missing: ", p.stderr)


class Killed(Files):
    def large(self):
        """Two hundred more files; many have much in common."""
        for i in range(200):
            self.put(f"part{i}", command.noise(100000 + 999 * i, i % 40) + doubles(5000, i))
        self.pack()

    def whole(self, below):
        """Names of those that are there: each has all of its bytes."""
        there = [p for p in below.rglob("*") if p.is_file() and not p.name.startswith(".varve-")]
        for p in there:
            self.assertEqual(p.read_bytes(), (self.set / p.relative_to(below)).read_bytes(), p)
        return {str(p.relative_to(below)) for p in there}

    def test_killed(self):
        """Wherever it dies, each file is whole or not there; the same command, told to replace what is there, does the rest."""
        self.large()
        some = 0
        for k in range(12):
            shutil.rmtree(self.out, ignore_errors=True)
            p = subprocess.Popen([command.BIN, "unpack", str(self.store), "run", "-q", "-C", str(self.out)], env=self.env)
            command.wait_for(lambda: p.poll() is not None or len(list(self.out.glob("part*"))) >= 17 * k, "files")
            p.kill()
            p.wait()
            some += 0 < len(self.whole(self.out)) < 208
        self.assertGreater(some, 0)
        self.varve("unpack", self.store, "run", "-q", "-C", self.out, "--force")
        self.assertEqual(len(self.whole(self.out)), 208)
        self.assertEqual(len(list(self.out.rglob("*"))), 208 + 3)

    @unittest.skipIf(os.getuid(), "only root mounts")
    def test_full_disk(self):
        """Those that are whole stay, all others are named, and nothing else is left."""
        self.large()
        self.out.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "none", str(self.out)], capture_output=True).returncode:
            self.skipTest("nothing can be mounted here")
        self.addCleanup(lambda: subprocess.run(["umount", str(self.out)], check=True))
        for words in [], ["-j", "1"]:
            p = self.unpack("run", "-C", self.out, *words)
            self.assertEqual(p.returncode, 2, p.stderr)
            self.assertIn(b"could not be unpacked: ", p.stderr)
            whole = self.whole(self.out)
            self.assertGreater(len(whole), 10)
            missing = {line[len("varve: missing: "):] for line in p.stderr.decode().splitlines() if line.startswith("varve: missing: ")}
            self.assertEqual(missing | whole, {str(p.relative_to(self.set)) for p in self.set.rglob("*") if p.is_file()})
            self.assertEqual(missing & whole, set())
            self.assertEqual([p for p in self.out.rglob(".varve-*")], [])
            for p in self.out.iterdir():
                shutil.rmtree(p) if p.is_dir() else p.unlink()

    @unittest.skipIf(os.getuid(), "only root mounts")
    def test_full_disk_of_several(self):
        """What was not begun is named, too."""
        for step in range(3):
            self.varve("pack", self.store, "run", "-q", "-C", self.folder, self.file(f"e{step}", command.noise(900000, step)).name)
        self.out.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(self.out)], capture_output=True).returncode:
            self.skipTest("nothing can be mounted here")
        self.addCleanup(lambda: subprocess.run(["umount", str(self.out)], check=True))
        p = self.unpack("run", "-C", self.out, "--each")
        self.assertEqual(p.returncode, 2)
        self.assertIn(b"varve: missing: e1\nvarve: missing: e2 of epoch 3, which was not begun\n", p.stderr)
        self.assertEqual([f.name for f in self.out.iterdir()], ["e0"])
        (self.out / "e0").unlink()
        found = self.json("unpack", self.store, "run", "-C", self.out, "--each", status=2)
        self.assertEqual([e["missing"] for e in found["epochs"]], [[], ["e1"], ["e2"]])

    def test_beside_drop_and_gc(self):
        """An epoch that is taken away meanwhile: it comes back whole, or what is missing is named; no file has other bytes."""
        self.large()
        for k in range(6):
            for r in range(3):
                self.put(f"rank{r}/field", doubles(20000, k + r))
            self.pack()
            shutil.rmtree(self.out, ignore_errors=True)
            p = subprocess.Popen([command.BIN, "unpack", str(self.store), "run", "-q", "-C", str(self.out)], env=self.env, stderr=subprocess.PIPE)
            command.wait_for(lambda: p.poll() is not None or len(list(self.out.glob("part*"))) >= 20 * k, "files")
            self.varve("drop", self.store, f"run@{k + 2}")
            self.varve("gc", self.store)
            said = p.communicate(timeout=100)[1].decode()
            whole = self.whole(self.out)
            self.assertEqual(len(whole) + said.count("missing: "), 208 if p.returncode == 0 or whole else 0, said)
            self.assertEqual(p.returncode == 0, len(whole) == 208)

    def stop_early(self, *words):
        """A run that is stopped after its first files; None: it was too quick for that."""
        p = subprocess.Popen([command.BIN, "unpack", str(self.store), "run", "-q", "-j", "1", "-C", str(self.out), *words], env=self.env, stderr=subprocess.PIPE)
        command.wait_for(lambda: p.poll() is not None or any(self.out.glob("part*")), "files")
        p.send_signal(signal.SIGSTOP)
        self.addCleanup(p.kill)
        if os.waitid(os.P_PID, p.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT).si_code == os.CLD_STOPPED:
            return p
        p.communicate()
        return None

    def test_dropped_under_force(self):
        """The newest epoch is dropped when some of its files are unpacked: those can be replaced, so the next epoch is taken. Without --force they cannot."""
        self.large()
        for epoch, words in enumerate([["--force"], []], 1):
            shutil.rmtree(self.out, ignore_errors=True)
            layer = self.layer(epoch, "run")
            self.flip(layer, layer.stat().st_size // 3)  # so that a file is missing, however late the epoch is dropped
            p = command.wait_for(lambda: self.stop_early(*words), "a run that can be stopped")
            for part in self.set.glob("part*"):
                part.write_bytes(part.read_bytes()[::-1])
            subprocess.run([command.BIN, "pack", str(self.store), "run", "-q", "-C", str(self.set), "."], env=self.env, capture_output=True, check=True)  # it warns of the damage
            self.varve("drop", self.store, f"run@{epoch}")
            p.send_signal(signal.SIGCONT)
            said = p.communicate(timeout=100)[1].decode()
            self.assertIn(f"epoch {epoch} of lineage 'run' was dropped by its writer while it was read", said)
            self.assertEqual(p.returncode, 0 if words else 2, said)
            if words:
                self.assertEqual(len(self.whole(self.out)), 208)


@unittest.skipUnless(MPIEXEC, "built without MPI")
class Lost(Files):
    """The layer of one of three ranks is gone, or damaged where it says what files there are."""
    def setUp(self):
        super().setUp()
        p = self.mpi("pack", self.store, "run", "-q", "-C", self.set, ".")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.of = {f["name"]: f["rank"] for f in self.json("unpack", self.store, "run", "--list")["files"]}
        self.assertEqual(set(self.of.values()), {0, 1, 2})
        self.layers = {r: next(self.store.rglob(f"*1.r{r}.layer")) for r in range(3)}

    def mpi(self, *words):
        return subprocess.run([*MPIEXEC.split(), "-n", "3", command.BIN, *map(str, words)], cwd=self.here, capture_output=True, env=self.env, timeout=100)

    def tree(self):
        return {str(p.relative_to(self.out)): p.read_bytes() for p in self.out.rglob("*") if p.is_file()}

    def lose(self, rank, how):
        layer, aside = self.layers[rank], self.folder / "aside"
        aside.write_bytes(layer.read_bytes())
        if how == "gone":
            layer.unlink()
        elif how == "cut":
            layer.write_bytes(aside.read_bytes()[:-100])
        else:
            layer.write_bytes(b"")
        return lambda: layer.write_bytes(aside.read_bytes())

    def names(self, *ranks):
        return {name for name, rank in self.of.items() if rank in ranks}

    def test_the_others_come(self):
        for rank in range(3):
            for how in "gone", "cut", "empty":
                back = self.lose(rank, how)
                shutil.rmtree(self.out, ignore_errors=True)
                p = self.unpack("run", "-C", self.out)
                said = p.stderr.decode()
                self.assertEqual(p.returncode, 1, said)
                self.assertIn(f"varve: missing: the files of rank {rank}, whose names cannot be read\n", said)
                there = self.tree()
                for name, data in there.items():
                    self.assertEqual(data, (self.set / name).read_bytes())
                named = {line[len("varve: missing: "):] for line in said.splitlines() if line.startswith("varve: missing: ")}
                self.assertLessEqual(self.names(*{0, 1, 2} - {rank}), set(there) | named)  # some may need bytes that the lost layer had
                self.assertGreater(len(there), 0)
                found = self.json("unpack", self.store, "run", "--test", status=1)
                self.assertEqual((found["lost_ranks"], found["test"], found["files"]), ([rank], True, len(there)))
                self.assertIn("layer", found["error"])
                found = self.json("unpack", self.store, "run", "--list", status=1)
                self.assertEqual(({f["name"] for f in found["files"]}, found["lost_ranks"]), (self.names(*{0, 1, 2} - {rank}), [rank]))
                self.assertIn(f"the files of rank {rank}", self.look("--each", status=1)[1])
                back()

    def test_by_name(self):
        """A file that is there comes alone, and all is well; one that is not known may be of the rank that is lost. A folder may have had more."""
        back = self.lose(1, "gone")
        own = sorted(n for n in self.names(0, 2) if self.unpack("run", "--test", n).returncode == 0)
        self.assertGreater(len(own), 0)
        for name in own:
            self.assertRegex(self.look(name)[0], "^1 file read and checked")
            self.assertEqual(self.run_raw("extract", self.store, "run", name).stdout, (self.set / name).read_bytes())
        for name in sorted(self.names(1)):
            said = self.look(name, status=1)[1]
            self.assertIn(f"no file '{name}' is among the {len(self.names(0, 2))} that epoch 1 of lineage 'run' is known to have; those of 1 of its ranks cannot be told: ", said)
            self.assertIn("cannot be told", self.fails("extract", self.store, "run", name, status=1))
        for folder in {n.split("/")[0] for n in own if "/" in n}:
            self.look(folder, status=1)
        back()
        self.look()

    def test_all_lost(self):
        for r in range(3):
            self.layers[r].unlink()
        said = self.look(status=1)[1]
        self.assertIn("0000000001.r0.layer", said)
        self.assertNotIn("cannot be told", said)
        self.assertFalse(self.out.exists())

    def as_other(self, *words):
        """As somebody who may not read everything."""
        self.folder.chmod(0o755)
        for p in self.store, *self.store.rglob("*"):
            if p.stat().st_mode & 0o777:
                p.chmod(0o755 if p.is_dir() else 0o644)
        user = 65534 if os.getuid() == 0 else os.getuid()
        return subprocess.run([command.copy_for_others(self), *map(str, words)], cwd=self.here, capture_output=True, env=self.env, timeout=100, user=user)

    def test_out_of_reach(self):
        """A layer that may not be read costs its own rank and epoch, and no other."""
        self.assertEqual(self.as_other("ls", self.store).returncode, 0)
        self.put("zeros", bytes(2 << 20))
        self.assertEqual(self.mpi("pack", self.store, "run", "-q", "-C", self.set, ".").returncode, 0)
        self.layers[0].chmod(0)
        p = self.as_other("unpack", self.store, "run", "--each", "--test")
        self.assertEqual(p.returncode, 2, p.stderr)
        self.assertIn(b"varve: epoch 1: ", p.stderr)
        self.assertIn(b"the files of rank 0", p.stderr)
        self.assertIn(b" of 2 epochs read and checked", p.stdout)
        for name in sorted(self.names(1, 2) - {"zeros"}):
            if self.as_other("unpack", self.store, "run@1", "--test", name).returncode == 0:
                self.assertEqual(self.as_other("extract", self.store, "run@1", name).stdout, (self.set / name).read_bytes(), name)
        for rank in 1, 2:
            self.layers[rank].chmod(0)
        p = self.as_other("unpack", self.store, "run", "--each", "--test")
        self.assertEqual(p.returncode, 2, p.stderr)
        self.assertIn(b"varve: epoch 1 could not be read: ", p.stderr)
        self.assertIn(b" of 1 epoch read and checked", p.stdout)

    def test_stores_that_differ(self):
        """Readers that do not see the same epochs say so."""
        other = self.folder / "other"
        shutil.copytree(self.store, other)
        self.put("zeros", bytes(2 << 20))
        self.assertEqual(self.mpi("pack", self.store, "run", "-q", "-C", self.set, ".").returncode, 0)
        renamed = self.folder / "renamed"
        (self.set / "empty").rename(self.set / "other")
        for n in 1, 2:
            self.assertEqual(self.mpi("pack", renamed, "run", "-q", "-C", self.set, ".").returncode, 0)
        for other, words in (other, ["--each", "--test"]), (other, ["--test"]), (renamed, ["--each", "--test"]), (renamed, ["--test"]):
            p = subprocess.run([*MPIEXEC.split(), "-n", "1", command.BIN, "unpack", str(self.store), "run", *words, ":", "-n", "1", command.BIN, "unpack", str(other),
                                "run", *words], cwd=self.here, capture_output=True, env=self.env, timeout=100)
            self.assertNotEqual(p.returncode, 0)
            self.assertIn(b"is the store the same everywhere, and at rest?", p.stderr)

    def test_readers_together(self):
        back = self.lose(2, "cut")
        p = self.mpi("unpack", self.store, "run", "-C", self.out)
        self.assertNotEqual(p.returncode, 0)
        self.assertEqual(p.stderr.count(b"the files of rank 2, whose names"), 1, p.stderr)
        alone = self.unpack("run", "-C", self.folder / "alone")
        self.assertEqual(alone.returncode, 1)
        self.assertEqual(sorted(self.tree()), sorted(str(p.relative_to(self.folder / "alone")) for p in (self.folder / "alone").rglob("*") if p.is_file()))
        back()
        p = self.mpi("unpack", self.store, "run", "-C", self.out, "--force")
        self.assertEqual((p.returncode, set(self.tree())), (0, set(self.of)), p.stderr)

    def test_rank_and_file(self):
        """A file, or a variable, of a rank that is named."""
        for name, rank in self.of.items():
            for r in range(3):
                if r == rank:
                    self.assertEqual(self.run_raw("extract", self.store, "run", name, "--rank", r).stdout, (self.set / name).read_bytes())
                else:
                    self.assertIn(f"no file '{name}'", self.fails("extract", self.store, "run", name, "--rank", r, status=2))


if __name__ == "__main__":
    unittest.main()
