#!/usr/bin/env python3
# ctest: TIMEOUT 300 COST 10
"""varve pack --each and --set: several checkpoints become as many epochs, by one command; varve unpack --each and --by-epoch: all of them come back."""
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


def field(n, step):
    """Doubles of a field that moves a little with each step."""
    return struct.pack(f"<{n}d", *[(i % 97) * 0.25 + step * (i % 5) * 1e-3 + (i // 97) * 1e-3 for i in range(n)])


class Series(command.Case):
    def setUp(self):
        super().setUp()
        self.run_folder = self.folder / "run"
        for step in 1, 2, 3:
            for rank in 0, 2, 10:
                self.put(f"ckpt.{step}/rank{rank}", field(3000 + rank, step + rank))
            self.put(f"ckpt.{step}/log", b"step %d\n" % step)
        self.out = self.folder / "out"

    def put(self, name, data):
        path = self.run_folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, ns=(1, 1234567890123456789 + len(name)))

    def tree(self, folder):
        return {str(p.relative_to(folder)): (p.read_bytes(), p.stat().st_mode, p.stat().st_mtime_ns)
                for p in pathlib.Path(folder).rglob("*") if p.is_file()}

    def pack(self, *words, **more):
        return self.varve("pack", self.store, "run", "-C", self.run_folder, *words, **more)

    def pack_json(self, *words, **more):
        return self.json("pack", self.store, "run", "-C", self.run_folder, *words, **more)

    def unpack(self, *words, **more):
        shutil.rmtree(self.out, ignore_errors=True)
        return self.varve("unpack", self.store, "run", "-C", self.out, *words, **more)

    def epochs(self):
        return [e["epoch"] for e in self.json("ls", self.store, "run")["epochs"]] if self.store.exists() else []

    def files(self, epoch):
        return [f["name"] for f in self.json("unpack", self.store, f"run@{epoch}", "--list")["files"]]

    # ---- packing ----

    def test_tiers(self):
        """The last epoch of a series is copied, whatever its number; that of a command with one epoch by its number only."""
        tier = self.folder / "tier"
        self.pack_json("--each", "ckpt.1", "ckpt.2", "ckpt.3", "-o", f"tiers={tier} every=1000")
        self.assertEqual([e["epoch"] for e in self.json("ls", tier, "run")["epochs"]], [3])
        self.pack_json("ckpt.1", "-o", f"tiers={tier} every=1000")
        self.assertEqual([e["epoch"] for e in self.json("ls", tier, "run")["epochs"]], [3])

    def test_as_one_by_one(self):
        """The same epochs, of the same content and size, as by a command for each."""
        found = self.pack_json("--each", "ckpt.1", "ckpt.2", "ckpt.3")
        self.assertEqual([(e["set"], e["epoch"], e["files"]) for e in found["epochs"]], [("ckpt.1", 1, 4), ("ckpt.2", 2, 4), ("ckpt.3", 3, 4)])
        self.assertEqual((found["passed_over"], found["skipped"]), (0, 0))
        together = self.store
        self.store = self.folder / "alone"
        for step, e in enumerate(found["epochs"], 1):
            alone = self.pack_json(f"ckpt.{step}")
            self.assertEqual({k: alone[k] for k in ("epoch", "bytes", "bytes_new", "bytes_stored")},
                             {k: e[k] for k in ("epoch", "bytes", "bytes_new", "bytes_stored")})
        for store in self.store, together:
            self.store = store
            self.unpack("--each")
            self.assertEqual(self.tree(self.out), self.tree(self.run_folder))
            self.varve("verify", store)

    def test_table(self):
        text = self.pack("--each", "ckpt.1", "ckpt.3", "ckpt.2/rank0")
        self.assertRegex(text, r"^SET +EPOCH +FILES .*\nckpt.1 +1 +4 .*\nckpt.3 +2 +4 .*\nckpt.2/rank0 +3 +1 .*\n$")
        self.assertEqual(self.pack("-q", "--each", "ckpt.2"), "")
        self.assertEqual(self.epochs(), [1, 2, 3, 4])
        self.assertEqual(self.files(3), ["ckpt.2/rank0"])

    def test_goes_on(self):
        """What an epoch has, by name, size and time, is passed over; one that was written since is not, nor one that has become more."""
        self.pack("--each", "ckpt.1", "ckpt.2")
        text = self.pack("--each", "ckpt.1", "ckpt.2", "ckpt.3")
        self.assertRegex(text, r"\nckpt.3 +3 .*\n2 passed over, which the lineage has\n$")
        self.put("ckpt.1/more", b"more")
        (self.run_folder / "ckpt.2/log").write_bytes(b"step 9\n")
        found = self.pack_json("--each", "ckpt.1", "ckpt.2", "ckpt.3")
        self.assertEqual(([e["set"] for e in found["epochs"]], found["passed_over"]), (["ckpt.1", "ckpt.2"], 1))
        self.assertEqual(self.pack("--each", "ckpt.1", "ckpt.2", "ckpt.3"), "3 passed over, which the lineage has\n")
        self.assertEqual(self.epochs(), [1, 2, 3, 4, 5])

    def test_twice(self):
        for words in ("ckpt.1", "ckpt.2", "ckpt.1"), ("ckpt.1", "."), ("ckpt.1", "ckpt.1/rank2"), ("ckpt.1", "./ckpt.1//"):
            self.assertIn("is named twice, and would be in two epochs", self.fails("pack", self.store, "run", "-C", self.run_folder, "--each", *words))
        self.assertEqual(self.epochs(), [])

    def test_without_files(self):
        (self.run_folder / "empty/inside").mkdir(parents=True)
        p = self.run_raw("pack", self.store, "run", "-C", self.run_folder, "--each", "ckpt.1", "empty", "ckpt.2")
        self.assertEqual((p.returncode, p.stderr), (0, b"varve: 'empty' is without a file and is left out\n"))
        self.assertEqual(self.epochs(), [1, 2])
        self.assertEqual(self.pack_json("--each", "empty", "ckpt.3")["skipped"], 1)
        self.assertIn("no file to pack in what was named", self.fails("pack", self.store, "run", "-q", "-C", self.run_folder, "--each", "empty"))
        self.assertIn("cannot look at", self.fails("pack", self.store, "run", "-C", self.run_folder, "--each", "ckpt.1", "missing"))

    def test_from_a_list(self):
        names = self.file("names", b"ckpt.3\nckpt.1/rank2\n")
        self.pack("--each", "--files-from", names)
        self.assertEqual([len(self.files(e)) for e in (1, 2)], [4, 1])

    def test_one_fails(self):
        """Those before it stand, the words tell which it was, and the same command continues from there."""
        self.put("ckpt.2/large", command.noise(1 << 20))
        words = ["pack", self.store, "run", "-C", self.run_folder, "--each", "ckpt.1", "ckpt.2", "ckpt.3"]

        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, 1 << 19))
        p = self.run_raw(*words, preexec_fn=small_files, restore_signals=False)
        self.assertEqual(p.returncode, 2, p.stderr)
        self.assertRegex(p.stderr.decode(), r"^varve: 'ckpt.2', 2 of 3: .*\nvarve: the 1 before it is packed; the same command continues from there\n$")
        self.assertRegex(p.stdout.decode(), r"\nckpt.1 +1 ")
        self.assertEqual(self.epochs(), [1])
        p = self.run_raw(*words, "--json", preexec_fn=small_files, restore_signals=False)
        self.assertEqual((p.returncode, p.stderr), (2, b""))
        self.assertIn(b'"epochs": [], "passed_over": 1, "skipped": 0, "failed": "ckpt.2", "error": ', p.stdout)
        self.varve(*words)
        self.unpack("--each")
        self.assertEqual(self.tree(self.out), self.tree(self.run_folder))
        self.varve("verify", self.store)

    def test_killed(self):
        """Wherever it is killed, what counts is whole, and the same command continues from there."""
        for step in range(4, 30):
            self.put(f"ckpt.{step}/rank0", field(5000, step))
        words = [command.BIN, "pack", str(self.store), "run", "-C", str(self.run_folder), "-q", "--each", *[f"ckpt.{step}" for step in range(1, 30)]]
        for epoch in 1, 7:
            p = subprocess.Popen(words, env=self.env)
            command.wait_for(lambda: self.commit(epoch, "run").exists() or p.poll() is not None, f"epoch {epoch}")
            p.kill()
            p.wait()
            self.varve("verify", self.store)
        subprocess.run(words, env=self.env, check=True)
        self.assertEqual(len(list(self.store.rglob("*.commit"))), 29)
        self.unpack("--each")
        self.assertEqual(self.tree(self.out), self.tree(self.run_folder))

    def test_delete(self):
        before = self.tree(self.run_folder)
        found = self.pack_json("--each", "--delete", "ckpt.1", "ckpt.2", "ckpt.3")
        self.assertEqual([(e["deleted"], e["kept"]) for e in found["epochs"]], [(4, 0)] * 3)
        self.assertEqual(self.tree(self.run_folder), {})
        self.unpack("--each")
        self.assertEqual(self.tree(self.out), before)

    def flip_in_place(self, name):
        """Another bit, the same size, the same times: that fools pack, but not --delete."""
        path = self.run_folder / name
        was, data = path.stat(), path.read_bytes()
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))

    def test_delete_what_was_left(self):
        """Sets that the lineage has are passed over, and deleted all the same; but one that is not as it was packed is packed again."""
        self.pack_json("--each", "ckpt.1", "ckpt.2")
        self.flip_in_place("ckpt.2/rank0")
        (self.run_folder / "ckpt.3/rank0").chmod(0o600)
        before = self.tree(self.run_folder)
        found = self.pack_json("--each", "--delete", "ckpt.1", "ckpt.2", "ckpt.3")
        self.assertEqual((found["passed_over"], found["left_deleted"], found["left_kept"]), (1, 4, 0))
        self.assertEqual([w.split("/")[-2:] for w in found["left_said"]], [["ckpt.2", "rank0' is not known to be what epoch 2 has: its bytes are not those that were packed"]])
        self.assertEqual([(e["set"], e["deleted"], e["kept"]) for e in found["epochs"]], [("ckpt.2", 4, 0), ("ckpt.3", 4, 0)])
        self.assertEqual(self.tree(self.run_folder), {})
        for epoch in 1, 3, 4:
            self.varve("unpack", self.store, f"run@{epoch}", "-q", "-C", self.out)
        self.assertEqual(self.tree(self.out), before)

    def test_delete_by_a_later_epoch(self):
        """What the older of two epochs with the same names has not, the newer has."""
        self.pack_json("--each", "ckpt.1")
        self.flip_in_place("ckpt.1/rank0")
        self.varve("pack", self.store, "run", "-q", "-C", self.run_folder, "ckpt.1")
        found = self.pack_json("--each", "--delete", "ckpt.1")
        self.assertEqual((found["passed_over"], found["left_deleted"], self.epochs()), (1, 4, [1, 2]))

    def test_mode_and_delete(self):
        """A mode that was changed since is in no epoch yet: the set is packed again."""
        self.pack_json("--each", "ckpt.1")
        (self.run_folder / "ckpt.1/rank0").chmod(0o400)
        self.assertEqual(len(self.pack_json("--each", "--delete", "ckpt.1")["epochs"]), 1)
        self.varve("unpack", self.store, "run", "-q", "-C", self.out)
        self.assertEqual((self.out / "ckpt.1/rank0").stat().st_mode & 0o777, 0o400)

    def test_delete_and_damage(self):
        """A set whose epoch cannot be read any more is packed again, and the others with it."""
        before = self.tree(self.run_folder)
        self.pack_json("--each", "ckpt.1", "ckpt.2")
        self.flip(self.layer(1, "run"), 200)
        p = self.run_raw("pack", self.store, "run", "-C", self.run_folder, "--each", "--delete", "ckpt.1", "ckpt.2", "ckpt.3")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertRegex(p.stderr.decode(), r"^varve: '[^']*/ckpt.1/[a-z0-9]+' is not known to be what epoch 1 has: layer ")
        self.assertEqual(self.tree(self.run_folder), {})
        for epoch in self.epochs()[1:]:
            self.run_raw("unpack", self.store, f"run@{epoch}", "-q", "-C", self.out, "--force")
        self.assertEqual(self.tree(self.out), before)

    def test_delete_many(self):
        """However many descriptors there are, odd or even, fewer or more than files: all are compared, and all are deleted."""
        many = [f"many/f.{i}" for i in range(1100)]
        for k, limit in enumerate((40, 41, 1024, 1025, 1200, 1201, 2000, 2001, 2130, 2131)):
            (self.run_folder / "many").mkdir(exist_ok=True)
            for i, name in enumerate(many):
                (self.run_folder / name).write_bytes(b"%d %d" % (i, k))
            limits = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))}
            for words in ["--each"], ["--each", "--delete"] if k % 4 < 2 else ["--delete"]:
                p = subprocess.run([command.BIN, "pack", str(self.store), f"many{k}", "-q", "-C", str(self.run_folder), *words, "many"], env=self.env,
                                   capture_output=True, timeout=100, **limits)
                self.assertEqual((p.returncode, p.stderr), (0, b""), limit)
            self.assertEqual(list((self.run_folder / "many").iterdir()), [], limit)
        self.varve("unpack", self.store, "many9", "-q", "-C", self.out)
        self.assertEqual((self.out / "many/f.1099").read_bytes(), b"1099 9")

    def test_delete_and_keep(self):
        """Epochs that the same command drops again are not the only place of files that it deletes."""
        words = ["--each", "--delete", "ckpt.1", "ckpt.2", "ckpt.3"]
        before = self.tree(self.run_folder)
        self.assertIn("-c keep=0", self.fails("pack", self.store, "run", "-C", self.run_folder, "-o", "keep=2", *words))
        self.assertEqual((self.tree(self.run_folder), self.store.exists()), (before, False))
        self.varve("pack", self.store, "run", "-q", "-C", self.run_folder, *words, env={"VARVE_KEEP": "3"})
        self.assertEqual(self.tree(self.run_folder), {})

    def test_delete_left_and_keep(self):
        """Where epochs are dropped, what an earlier run has left stays: its epoch may be the next to go."""
        self.pack_json("--each", "ckpt.1")
        before = self.tree(self.run_folder)
        self.assertIn("-c keep=0", self.fails("pack", self.store, "run", "-C", self.run_folder, "-o", "keep=1", "--each", "--delete", "ckpt.1", "ckpt.2"))
        self.assertEqual(self.tree(self.run_folder), before)
        found = self.pack_json("-o", "keep=2", "--each", "--delete", "ckpt.1", "ckpt.2")
        self.assertEqual((found["passed_over"], "left_deleted" in found, len(found["epochs"])), (1, False, 1))
        self.assertEqual(set(self.tree(self.run_folder)), {n for n in before if not n.startswith("ckpt.2/")})

    def test_delete_left_in_use(self):
        """Nothing is deleted while others may drop the epoch."""
        self.pack_json("--each", "ckpt.1")
        before = self.tree(self.run_folder)
        p = subprocess.Popen([command.WRITER, self.store, "run", "", "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.env)
        self.assertEqual(p.stdout.readline(), b"held\n")
        self.assertIn("one writer at a time", self.fails("pack", self.store, "run", "-C", self.run_folder, "--each", "--delete", "ckpt.1"))
        self.assertEqual(self.tree(self.run_folder), before)
        p.stdin.close()
        p.stdout.close()
        self.assertEqual(p.wait(60), 0)
        self.assertEqual(self.pack_json("--each", "--delete", "ckpt.1")["left_deleted"], 4)

    # ---- sets ----

    def flat(self):
        for moment in 20, 100, 9:
            for rank in "0", "1", "base":
                self.put(f"flat/restart.melt.{moment}.{rank}", b"%d %s\n" % (moment, rank.encode()) * 400)
        self.put("flat/input", b"not of a checkpoint")

    def test_sets(self):
        self.flat()
        p = self.run_raw("pack", self.store, "run", "-C", self.run_folder, "--set", r"melt\.([0-9]+)\.", "flat")
        self.assertEqual((p.returncode, p.stderr.decode()), (0, f"varve: '{self.run_folder}/flat/input' is of no set and is left out\n"))
        self.assertRegex(p.stdout.decode(), r"\n9 +1 +3 .*\n20 +2 +3 .*\n100 +3 +3 ")
        self.assertEqual(self.files(3), [f"flat/restart.melt.100.{rank}" for rank in ("0", "1", "base")])
        self.put("flat/restart.melt.120.0", b"new")
        found = self.pack_json("--set", r"melt\.([0-9]+)\.", "flat")
        self.assertEqual(([e["set"] for e in found["epochs"]], found["passed_over"], found["skipped"]), (["120"], 3, 1))
        (self.run_folder / "flat/input").unlink()
        self.unpack("--each")
        self.assertEqual(self.tree(self.out / "flat"), self.tree(self.run_folder / "flat"))
        (self.run_folder / "flat/restart.melt.9.0").unlink()
        self.pack("--set", r"melt\.([0-9]+)\.", "--delete", "flat")
        self.assertEqual(self.epochs(), [1, 2, 3, 4])

    def test_sets_of_folders(self):
        """Without groups all that it matches is compared; with several, all of them."""
        self.pack("--set", r"^ckpt\.[0-9]+", ".")
        self.pack("--set", r"ckpt\.([0-9]+)/([a-z]+)", ".")
        self.assertEqual([len(self.files(e)) for e in range(1, 4)], [4, 4, 4])
        self.store = self.folder / "other"
        self.assertEqual([e["set"] for e in self.pack_json("--set", r"ckpt\.([0-9]+)/([a-z]+)", ".")["epochs"]],
                         ["1/log", "1/rank", "2/log", "2/rank", "3/log", "3/rank"])

    def test_mistakes(self):
        def say(*words):
            return self.fails("pack", self.store, "run", "-q", "-C", self.run_folder, *words)
        self.assertIn("only one of them", say("--each", "--set", "x", "."))
        self.assertIn("is no regular expression", say("--set", "(", "."))
        self.assertIn("no file is of a set", say("--set", "nothing like it", "."))
        self.assertEqual(self.epochs(), [])

    # ---- unpacking ----

    def test_same_names(self):
        """Two epochs with a file of one name: nothing is written, and the words tell what would do."""
        for step in 1, 2, 3:
            self.put("state", b"state %d" % step)
            self.pack("state")
        told = self.fails("unpack", self.store, "run", "-C", self.out, "--each")
        self.assertIn("epochs 1 and 2 both have 'state': --by-epoch gives each a folder of its own", told)
        self.assertFalse(self.out.exists())
        text = self.unpack("--by-epoch")
        self.assertRegex(text, r"^3 files of 3 epochs, ")
        self.assertEqual({k: v[0] for k, v in self.tree(self.out).items()}, {f"{e}/state": b"state %d" % e for e in (1, 2, 3)})
        self.assertIn("already", self.fails("unpack", self.store, "run", "-C", self.out, "--by-epoch"))
        self.varve("unpack", self.store, "run@2..3", "-C", self.folder / "some", "--by-epoch", "state")
        self.assertEqual(sorted(self.tree(self.folder / "some")), ["2/state", "3/state"])
        self.varve("unpack", self.store, "run@2", "-C", self.folder / "one", "--each")
        self.assertEqual(self.tree(self.folder / "one")["state"][0], b"state 2")

    def test_unpack_mistakes(self):
        self.pack("--each", "ckpt.1", "ckpt.2")
        self.assertIn("has no such epoch", self.fails("unpack", self.store, "run@7..9", "-C", self.out, "--each"))
        self.assertIn("--list is of one epoch", self.fails("unpack", self.store, "run", "--each", "--list"))
        self.assertIn("has no file 'ckpt.1'", self.fails("unpack", self.store, "run", "-C", self.out, "--by-epoch", "ckpt.1"))
        self.assertFalse(self.out.exists())
        (self.out / "ckpt.2").mkdir(parents=True)
        (self.out / "ckpt.2/log").write_bytes(b"mine")
        self.assertIn("nothing was unpacked", self.fails("unpack", self.store, "run", "-C", self.out, "--each"))
        self.assertEqual(list(self.tree(self.out)), ["ckpt.2/log"])
        self.varve("unpack", self.store, "run", "-C", self.out, "--each", "--force", "-q")
        self.assertEqual(len(self.tree(self.out)), 8)

    def test_damage(self):
        """What is damaged in one epoch costs no other: what cannot be read is named."""
        self.pack("--each", "ckpt.1", "ckpt.2", "ckpt.3")
        payload = self.layer(2, "run")
        self.flip(payload, 100)
        p = self.run_raw("unpack", self.store, "run", "-C", self.out, "--each")
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertRegex(p.stderr.decode(), r"^varve: epoch 2: \d files? could not be unpacked: ")
        found = self.tree(self.out)
        self.assertTrue(all(found[name] == what for name, what in self.tree(self.run_folder).items() if not name.startswith("ckpt.2/")))
        payload.write_bytes(payload.read_bytes()[:-40])
        p = self.run_raw("unpack", self.store, "run", "-C", self.folder / "again", "--each", "--json")
        self.assertEqual((p.returncode, p.stderr), (1, b""))
        self.assertEqual(sorted(os.listdir(self.folder / "again")), ["ckpt.1", "ckpt.3"])
        self.assertIn(b'"meaning": ', p.stdout)

    # ---- many ranks ----

    def mpi(self, n, *words):
        return subprocess.run([*MPIEXEC.split(), "-n", str(n), command.BIN, *map(str, words)], capture_output=True, cwd=self.folder, env=self.env, timeout=100)

    @unittest.skipUnless(MPIEXEC, "built without MPI")
    def test_ranks(self):
        self.flat()
        for words in ["--each", "ckpt.1", "ckpt.2", "ckpt.3"], ["--set", r"melt\.([0-9]+)\.", "-q", "flat"]:
            for passed in 0, 3:
                p = self.mpi(2, "pack", self.store, "run", "-C", self.run_folder, "--json", *words)
                self.assertEqual(p.returncode, 0, p.stderr)
                self.assertIn(b'"passed_over": %d' % passed, p.stdout)
        self.assertEqual(self.epochs(), [1, 2, 3, 4, 5, 6])
        p = self.mpi(3, "unpack", self.store, "run", "-C", self.out, "--each")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn(b"21 files of 6 epochs", p.stdout)
        (self.run_folder / "flat/input").unlink()
        self.assertEqual(self.tree(self.out), self.tree(self.run_folder))
        p = self.mpi(2, "pack", self.store, "run", "-C", self.run_folder, "--each", "ckpt.1", "ckpt.1")
        self.assertNotEqual(p.returncode, 0)
        self.assertEqual(p.stderr.count(b"is named twice"), 1)


if __name__ == "__main__":
    unittest.main()
