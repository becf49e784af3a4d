#!/usr/bin/env python3
# ctest: TIMEOUT 120
"""varve watch: sets are packed when they are complete, once each, and also what was there before."""
import json
import os
import resource
import shutil
import signal
import subprocess
import time
import unittest

import command


class Watch(command.Case):
    def setUp(self):
        super().setUp()
        self.dir = self.folder / "run"
        self.dir.mkdir()
        self.running = []
        self.addCleanup(self.end_all)

    def end_all(self):
        for p in self.running:
            with p:
                p.kill()

    def start(self, *words, **more):
        p = subprocess.Popen([command.BIN, "watch", self.store, "w", self.dir, "--json", "--settle", "300ms", *map(str, words)], cwd=self.folder,
                             env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
        self.running.append(p)
        return p

    def stop(self, p, warned=rb"\A\Z"):
        """Told to end, it does, and says what it has done. warned: what its standard error matches."""
        p.send_signal(signal.SIGTERM)
        out, err = p.communicate(timeout=command.PATIENCE)
        self.assertEqual(p.returncode, 0, err)
        self.assertRegex(err, warned)
        return json.loads(out)

    def epochs(self):
        p = self.run_raw("ls", self.store, "w", "--json")
        return [e["epoch"] for e in json.loads(p.stdout)["epochs"]] if p.returncode == 0 else []

    def wait_for(self, n):
        command.wait_for(lambda: len(self.epochs()) >= n, f"{n} epochs")

    def pack_and_leave(self, ranks):
        """A run that packs the one set there is, and deletes nothing."""
        p = self.start("--ranks", ranks)
        self.wait_for(1)
        self.stop(p)

    def write_noise(self):
        for r in 0, 1:
            (self.dir / f"a.{r}").write_bytes(command.noise(70000, r))

    def wait_for_deletion(self, pattern):
        command.wait_for(lambda: not [f for f in self.dir.rglob(pattern) if f.is_file()], "what is stored is deleted")

    def delete_left(self, *words, **more):
        """A run that deletes all of a set of two; what it says."""
        p = self.start("--ranks", 2, "--delete", *words)
        self.wait_for_deletion("a.*")
        return self.stop(p, **more)

    def unpacked(self, lineage, name):
        self.varve("unpack", self.store, lineage, "-C", "back")
        return (self.folder / "back" / name).read_bytes()

    def names(self, epoch):
        return [f["name"] for f in self.json("unpack", self.store, f"w@{epoch}", "--list")["files"]]

    def test_the_digit_of_a_format_is_no_rank(self):
        for r in 0, 1:
            (self.dir / f"step7.rank{r}.h5").write_bytes(b"h5")
            (self.dir / f"x{r}.NC4").write_bytes(b"nc")
        self.start("--ranks", 2)
        self.wait_for(2)
        self.assertEqual(sorted(self.names(1) + self.names(2)), ["step7.rank0.h5", "step7.rank1.h5", "x0.NC4", "x1.NC4"])

    def test_sets(self):
        for r in 0, 2, 10:
            (self.dir / f"a.{r}").write_bytes(b"old")
        p = self.start("--ranks", 3)
        self.wait_for(1)
        with open(self.dir / "b.0", "wb") as f:
            f.write(b"b")
            f.flush()
            (self.dir / "b.1").write_bytes(b"b")
            (self.dir / "b.2").write_bytes(b"b")
            time.sleep(0.8)
            self.assertEqual(self.epochs(), [1])  # one of them is still being written
        self.wait_for(2)
        (self.dir / "new").mkdir()
        for r in range(2):
            (self.dir / "new" / f"c{r}").write_bytes(b"c")
        time.sleep(0.8)
        self.assertEqual(self.epochs(), [1, 2])   # one is missing
        (self.folder / "c2").write_bytes(b"c")
        (self.folder / "c2").rename(self.dir / "new" / "c2")
        self.wait_for(3)
        self.assertEqual([e["files"] for e in self.stop(p)["epochs"]], [3, 3, 3])
        self.assertEqual(self.names(1), ["a.0", "a.2", "a.10"])
        self.assertEqual(self.names(2), ["b.0", "b.1", "b.2"])
        self.assertEqual(self.names(3), ["new/c0", "new/c1", "new/c2"])
        p = self.start("--ranks", 3)
        time.sleep(0.8)
        (self.dir / "a.2").write_bytes(b"changed")
        self.wait_for(4)
        self.assertEqual([e["epoch"] for e in self.stop(p)["epochs"]], [4])

    def test_rule_and_delete(self):
        for d in "DD01", "DD02":
            (self.dir / d).mkdir()
            for n in "x", "x.cpu0", "x.cpu1":
                (self.dir / d / n).write_bytes(n.encode())
        (self.dir / "other").write_bytes(b"other")
        p = self.start("--set", "^(DD[0-9]+)/", "--pattern", "x*", "--delete")
        self.wait_for_deletion("x*")
        self.assertEqual([e["deleted"] for e in self.stop(p)["epochs"]], [3, 3])
        self.assertEqual([f for f in self.dir.rglob("*") if f.is_file()], [self.dir / "other"])
        self.assertEqual(sorted(self.names(1) + self.names(2)), [f"{d}/{n}" for d in ("DD01", "DD02") for n in ("x", "x.cpu0", "x.cpu1")])

    def test_left(self):
        """What a run had packed and not deleted, because it was killed or not told to, the next one deletes: what it would watch, and what is still as it was packed."""
        for r in 0, 1:
            (self.dir / f"a.{r}").write_bytes(b"%d" % r * 70000)
            (self.dir / f"b.{r}").write_bytes(b"%d" % r * 50)
        p = self.start("--ranks", 2)
        self.wait_for(2)
        p.kill()
        p.wait()
        (self.dir / "b.1").write_bytes(b"new")
        found = self.delete_left("--pattern", "a*")
        self.assertEqual((found["left_deleted"], found["left_kept"], found["epochs"]), (2, 0, []))
        self.assertEqual(sorted(f.name for f in self.dir.iterdir()), ["b.0", "b.1"])
        self.assertEqual(self.unpacked(f"w@{1 if 'a.1' in self.names(1) else 2}", "a.1"), b"1" * 70000)

    def test_left_damaged(self):
        """What the store cannot give back is not deleted, but packed again."""
        self.write_noise()
        self.pack_and_leave(2)
        self.flip(self.layer(1, "w"), 5000)
        found = self.delete_left(warned=b"its content is stored again where it is needed")
        self.assertIn("is not known to be what epoch 1 has: layer ", found["left_said"][0])
        self.assertEqual([e["deleted"] for e in found["epochs"]], [2])
        self.assertEqual(self.unpacked("w@2", "a.1"), command.noise(70000, 1))

    def test_open_before(self):
        """A file that a program has had open since before is waited for."""
        with open(self.dir / "late.1", "wb") as f:
            f.write(b"a" * 1000)
            f.flush()
            p = self.start("--delete", "--settle", "0.2s")
            time.sleep(1.5)
            self.assertTrue((self.dir / "late.1").exists())
            f.write(b"b" * 1000)
        self.wait_for(1)
        self.stop(p)
        self.assertEqual(self.unpacked("w", "late.1"), b"a" * 1000 + b"b" * 1000)

    def test_left_other(self):
        """Other bytes under the same name, size and time: packed again, and then deleted."""
        self.write_noise()
        self.pack_and_leave(2)
        was = (self.dir / "a.1").stat()
        (self.dir / "a.1").write_bytes(command.noise(70000, 7))
        os.utime(self.dir / "a.1", ns=(was.st_atime_ns, was.st_mtime_ns))
        found = self.delete_left()
        self.assertIn("a.1' is not known to be what epoch 1 has: its bytes are not those that were packed", found["left_said"][0])
        self.assertEqual(self.unpacked("w@2", "a.1"), command.noise(70000, 7))

    def test_left_in_use(self):
        """While another works on the lineage nothing is deleted, and nothing waits for it."""
        (self.dir / "a.0").write_bytes(b"a")
        self.pack_and_leave(1)
        held = subprocess.Popen([command.WRITER, self.store, "w", "", "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.env)
        self.running.append(held)
        self.assertEqual(held.stdout.readline(), b"held\n")
        p = self.start("--ranks", 1, "--delete")
        self.assertIn(b"what earlier runs have left is not deleted: ", p.stderr.readline())
        self.assertEqual(self.stop(p)["epochs"], [])
        self.assertTrue((self.dir / "a.0").exists())

    def test_keep_and_ranks(self):
        p = subprocess.Popen([command.BIN, "watch", self.store, "w", self.dir, "--delete", "-o", "keep=2"], cwd=self.folder, env=self.env, stderr=subprocess.PIPE)
        self.running.append(p)
        self.assertIn(b"with keep = 2 only the newest sets stay", p.stderr.readline())
        p = self.run_raw("watch", self.store, "w", self.dir, env={"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1"})
        self.assertEqual((p.returncode, b"rank 0 watches, and this is rank 1" in p.stderr), (2, True))

    def test_steps(self):
        """A number that counts steps: what was packed before is not packed again."""
        p = self.start()
        for n, step in enumerate([0, 50, 100, 150]):
            (self.dir / f"dump.{step}.lammpstrj").write_bytes(b"step %d" % step)
            self.wait_for(n + 1)
        found = self.stop(p, rb"\Avarve: set 'dump.#.lammpstrj' only ever grows: [^\n]*\n\Z")
        self.assertEqual([e["files"] for e in found["epochs"]], [1] * 4)
        self.assertEqual([self.names(e) for e in (1, 4)], [["dump.0.lammpstrj"], ["dump.150.lammpstrj"]])
        (self.dir / "dump.200.lammpstrj").write_bytes(b"step 200")  # the next run finds the others in the store
        p = self.start("--ranks", 3)
        self.wait_for(5)
        self.assertEqual([e["files"] for e in self.stop(p, b"only ever grows")["epochs"]], [1])

    def test_the_last_rank_comes_late(self):
        """Once it is a rank; more often they are frames."""
        for r in 0, 1, 2:
            (self.dir / f"part{r}.dat").write_bytes(b"%d" % r)
        p = self.start()
        self.wait_for(1)
        for r, files in (3, 4), (4, 1), (5, 1):
            (self.dir / f"part{r}.dat").write_bytes(b"%d" % r)
            self.wait_for(r - 1)
            self.assertEqual(len(self.names(r - 1)), files)
        (self.dir / "part0.dat").write_bytes(b"again")
        self.wait_for(5)
        self.assertEqual(self.names(5), ["part0.dat"])
        self.stop(p, rb"\Avarve: set 'part#.dat' only ever grows: [^\n]*\n\Z")

    def test_a_rule_that_grows(self):
        """What the rule says is done, and that it takes more and more is said."""
        p = self.start("--set", "^(x)")
        for n in range(1, 4):
            (self.dir / f"x{n}").write_bytes(b"x")
            self.wait_for(n)
        found = self.stop(p, rb"\Avarve: set 'x' only ever grows, and all of it is packed again each time[^\n]*\n\Z")
        self.assertEqual([e["files"] for e in found["epochs"]], [1, 2, 3])

    @unittest.skipUnless(shutil.which("lmp"), "LAMMPS is not here")
    def test_lammps(self):
        """Dumps and restarts of the program itself, a file each and one for each rank."""
        self.file("in", b"""
units lj
lattice fcc 0.8442
region box block 0 4 0 4 0 4
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
fix 1 all nve
dump 1 all atom 50 run/dump.*.lammpstrj
run 150 every 50 "write_restart run/restart.*" "write_restart run/multi.*.%" "shell sleep 1.5"
""")
        p = self.start("--pattern", "[drm]*", "--settle", "1s")
        lmp = subprocess.run(["lmp", "-in", "in", "-log", "none"], cwd=self.folder, env=self.env, capture_output=True)
        if lmp.returncode:
            self.skipTest(f"LAMMPS does not run here: {lmp.stdout[-300:]}")
        packed = lambda: {n for e in self.epochs() for n in self.names(e)}
        wanted = {f"{n}.{step}{end}" for step in (50, 100, 150) for n, end in (("dump", ".lammpstrj"), ("restart", ""), ("multi", ".0"), ("multi", ".base"))}
        command.wait_for(lambda: wanted <= packed(), "every file is packed")
        found = self.stop(p, b"only ever grows")
        self.assertEqual(sum(e["files"] for e in found["epochs"]), len(wanted | {"dump.0.lammpstrj"}))
        multi = [sorted(self.names(e["epoch"])) for e in found["epochs"] if "multi" in self.names(e["epoch"])[0]]
        self.assertEqual(multi, [[f"multi.{step}.0", f"multi.{step}.base"] for step in (50, 100, 150)])

    def test_others_do_not_wait_for_a_set_that_fails(self):
        (self.dir / "large.0").write_bytes(command.noise(4 << 20, 1))
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        p = self.start(preexec_fn=limit, restore_signals=False)
        self.assertIn(b"'large.#' is tried again later: ", p.stderr.readline())
        (self.dir / "small.0").write_bytes(b"small")
        self.wait_for(1)
        self.assertEqual(self.names(self.epochs()[-1]), ["small.0"])

    def test_a_file_that_changes_while_it_is_packed(self):
        """It is tried again, and the command does not end."""
        (self.dir / "x.0").write_bytes(command.noise(4 << 20, 1) * 16)
        p = self.start()
        command.wait_for(lambda: list(self.folder.rglob("*.layer*")), "its layer begins")
        end = time.time() + 1
        while time.time() < end:
            for mode in 0o600, 0o640:
                os.chmod(self.dir / "x.0", mode)
                time.sleep(0.005)
        self.assertIn(b"'x.#' is tried again later: ", p.stderr.readline())
        self.assertIsNone(p.poll())
        self.wait_for(1)
        self.stop(p)

    def test_deep_folders(self):
        """Each is entered, those that were there before and those that come."""
        deep = "a/" * 250
        (self.dir / deep).mkdir(parents=True)
        (self.dir / deep / "y.0").write_bytes(b"y")
        p = self.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (2 << 20, 2 << 20)))
        self.wait_for(1)
        (self.folder / "new" / deep).mkdir(parents=True)
        (self.folder / "new" / deep / "z.0").write_bytes(b"z")
        (self.folder / "new").rename(self.dir / "new")
        (self.dir / "x.0").write_bytes(b"x")
        self.wait_for(3)
        self.assertEqual([e["files"] for e in self.stop(p)["epochs"]], [1] * 3)
        self.assertEqual(sorted(n[-3:] for e in (1, 2, 3) for n in self.names(e)), ["x.0", "y.0", "z.0"])

    def test_a_link_in_place_of_a_file(self):
        """It comes after the last look at the file, and is not followed."""
        self.file("secret", b"secret")
        (self.dir / "x.0").write_bytes(b"x")
        self.env["LD_PRELOAD"] = str(command.replacing(self, "x.0", self.folder / "secret"))
        p = self.start()
        self.assertRegex(p.stderr.readline(), b"'x.#' is tried again later: '[^']*x.0' changed while it was being packed")
        (self.dir / "y").write_bytes(b"y")
        self.wait_for(1)
        self.assertEqual(self.names(1), ["y"])

    def test_a_folder_that_is_moved_away(self):
        """Its files are gone, its later ones are none of ours; under its new name they are found again."""
        away = self.folder / "away"
        for n in "gone", "kept":
            (self.dir / n).mkdir()
            (self.dir / n / "a.0").write_bytes(b"a")
        p = self.start("--ranks", 2)
        time.sleep(0.8)
        (self.dir / "gone").rename(away)
        (self.dir / "kept").rename(self.dir / "named")
        (away / "a.1").write_bytes(b"a")
        (self.dir / "gone").mkdir()
        (self.dir / "gone" / "a.1").write_bytes(b"a")
        (self.dir / "named" / "a.1").write_bytes(b"a")
        self.wait_for(1)
        time.sleep(0.8)
        found = self.stop(p)
        self.assertEqual([e["files"] for e in found["epochs"]], [2])
        self.assertEqual(self.names(1), ["named/a.0", "named/a.1"])

    def test_wrong(self):
        self.assertIn("no folder", self.fails("watch", self.store, "w", "nix"))
        self.assertIn("regular expression", self.fails("watch", self.store, "w", "run", "--set", "("))
        self.assertIn("settle", self.fails("watch", self.store, "w", "run", "--settle", "x"))


if __name__ == "__main__":
    unittest.main()
