#!/usr/bin/env python3
# ctest: TIMEOUT 480 COST 50
"""Several processes are saved as one epoch, one by each rank, and all of them come back or none does."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import command
from command import PATIENCE, is_alive, wait_for
from image_case import Several, kill

MPIEXEC = os.environ.get("VARVE_MPIEXEC")
PROGRAM = None  # set in main
RANK = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"


class Group(Several):
    def setUp(self):
        super().setUp()
        self.env["OMPI_MCA_odls_base_sigkill_timeout"] = "0"  # when a rank fails, all have heard of it: mpirun need not give the others a second

    def start(self, n, *words):
        """n programs of one kind, each in a session of its own: their processes, and FILE.pid for each."""
        self.launch(PROGRAM, n, *words)
        for i, p in enumerate(self.running):
            self.file(f"{i}.pid", b"%d\n" % p.pid)
        self.goes_on()
        return self.running

    def end_all(self):
        for p in self.running:
            self.end(p)

    def goes_on(self, steps=3):
        first = [self.step(i) for i in range(len(self.running))]
        for i, at in enumerate(first):
            wait_for(lambda: self.step(i) >= at + steps, f"program {i} goes on")

    def stands_still(self):
        """What was rebuilt of them when one could not be is killed, or dies with its rank: mpirun ends those at once."""
        for p in self.running:
            wait_for(lambda: not is_alive(p.pid), f"process {p.pid} is gone")

    def mpi(self, n, *words, store=None):
        """store: a path for the shell, other on each rank."""
        command_line = [command.BIN, *map(str, words)]
        if store:
            at = command_line.index("STORE")
            command_line = ["sh", "-c", f'"$@" "{store}" {" ".join(command_line[at + 1:])}', "sh", *command_line[:at]]
        return subprocess.run([*MPIEXEC.split(), "-n", str(n), *command_line], capture_output=True, text=True, env=self.env, cwd=self.folder, timeout=100)

    def dump(self, n, *more, lineage="a", store=None):
        p = self.mpi(n, "image", "dump", "--json", *more, "--pid-file", "%r.pid", "STORE" if store else self.store, lineage, store=store)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        return json.loads(p.stdout)

    def restore(self, n, *more, spec="a", store=None):
        """They have ended, and their parent has heard of it: their numbers are free."""
        for p in self.running:
            p.wait(PATIENCE)
        p = self.mpi(n, "image", "restore", "--json", "-d", *more, "STORE" if store else self.store, spec, store=store)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertEqual(json.loads(p.stdout)["pids"], [p.pid for p in self.running])

    def says(self, p, status=2):
        """The one sentence of a command that failed; mpirun has words of its own to say, and ranks that look for other copies a warning."""
        self.assertEqual(p.returncode, status, p.stdout + p.stderr)
        lines = [line for line in p.stderr.splitlines() if line.startswith("varve: ") and not line.startswith("varve: warning: ")]
        self.assertEqual(len(lines), 1, p.stderr)
        return lines[0][len("varve: "):]

    def commits(self, store=None):
        return [path.name for path in (store or self.store).rglob("*.commit")]

    def test_back_together(self):
        self.start(3, "grow", 4)
        first = self.dump(3, "--leave-running")
        self.assertGreater(first["frozen_seconds"], 0)
        self.goes_on()
        at = [self.step(i) for i in range(3)]
        self.assertEqual(self.dump(3)["epoch"], 2)
        for p in self.running:
            self.assertEqual(p.wait(PATIENCE), -signal.SIGKILL)
        for spec, later in ("a", True), ("a@1", False):
            for i in range(3):
                self.forget(i)
            self.restore(3, spec=spec)
            self.goes_on()
            self.assertEqual([self.first(i) > at[i] for i in range(3)], [later] * 3)
            self.end_all()
        self.varve("verify", self.store)

    def test_status(self):
        """Who restores waits for all; and the ranks whose programs have ended leave the processor to the others."""
        self.start(2, "grow", 1)
        self.dump(2)
        for p in self.running:
            p.wait()
        r = subprocess.Popen([*MPIEXEC.split(), "-n", "2", command.BIN, "image", "restore", str(self.store), "a"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, env=self.env, cwd=self.folder)
        lines = sorted(r.stdout.readline() for _ in range(2))
        self.assertEqual(lines, sorted(f"process {p.pid} runs again, from epoch 1\n" for p in self.running))
        os.kill(self.running[0].pid, signal.SIGKILL)
        self.assertRaises(subprocess.TimeoutExpired, r.wait, 0.5)
        os.kill(self.running[1].pid, signal.SIGTERM)
        self.assertIn(r.wait(PATIENCE), (128 + signal.SIGKILL, 128 + signal.SIGTERM))
        r.communicate()

    def test_other_numbers_of_ranks(self):
        self.start(3, "grow", 1)
        self.dump(3)
        for n in (2, 4):
            self.restore(n)
            self.goes_on()
            self.end_all()
        got = self.json("image", "restore", "-d", self.store, "a")  # without mpirun: all of them
        self.assertEqual(got["pids"], [p.pid for p in self.running])
        self.goes_on()
        self.end_all()
        self.varve("unpack", "-q", "-C", self.folder / "images", self.store, "a")
        for i, p in enumerate(self.running):
            self.assertTrue((self.folder / "images" / str(i) / f"core-{p.pid}.img").exists())

    def test_common_pages_are_stored_once(self):
        """Noise that all of them hold: two and four store it as often as one."""
        self.start(4, "grow", 8)
        for n in (2, 4):
            got = self.dump(n, "--leave-running", lineage=f"of{n}")
            self.assertGreater(got["bytes"], n * 8 << 20)
            most = (8 << 20) + max(self.step(i) for i in range(n)) * (64 << 10)  # noise of the one that has grown most
            self.assertLess(got["bytes_layer"], most * 1.2 + (1 << 20))
            again = self.dump(n, "--leave-running", lineage=f"of{n}")
            grown = (again["bytes"] - got["bytes"]) / n  # by noise, that all of them hold as well; on a slow machine there is much time for it
            self.assertLess(again["bytes_layer"], grown * 1.5 + (2 << 20))
        self.varve("verify", self.store)
        self.end_all()
        self.restore(4, spec="of4")
        self.goes_on(steps=20)

    def test_several_by_one(self):
        """No MPI is needed for those of one host; and a rank may have several."""
        p, q, r = self.start(3, "grow", 2)
        pids = [x.pid for x in self.running]
        got = self.json("image", "dump", "--leave-running", "--pid", f"{p.pid},{q.pid},{r.pid}", self.store, "a")
        self.assertLess(got["bytes_layer"], got["bytes"] / 2)
        self.goes_on()
        self.json("image", "dump", "--pid", f"{p.pid},{q.pid},{r.pid}", self.store, "a")
        for x in self.running:
            self.assertEqual(x.wait(PATIENCE), -signal.SIGKILL)
        for spec in "a", "a@1":
            self.assertEqual(self.json("image", "restore", "-d", self.store, spec)["pids"], pids)
            self.goes_on()
            if spec == "a":
                self.end_all()
        self.file("0.pid", b"%d\n%d\n" % (p.pid, q.pid))
        self.file("1.pid", b" %d " % r.pid)
        self.assertEqual(self.dump(2)["epoch"], 3)
        wait_for(lambda: not any(map(is_alive, pids)), "all end")
        self.restore(2)
        self.goes_on()
        self.end_all()
        self.restore(1)
        self.goes_on()

    def test_stores_of_their_own(self):
        """Each rank has its disk. They come back on other hosts, which have the pages of others: all of them are asked."""
        self.start(3, "grow", 4)
        mine = f"host{RANK}"
        first = self.dump(3, "--leave-running", store=mine)
        self.assertLess(first["bytes_layer"], first["bytes"] / 2)
        self.dump(3, store=mine)
        hosts = [self.folder / f"host{i}" for i in range(3)]
        for i, host in enumerate(hosts):
            self.assertEqual([p.name for p in host.rglob("*2.r*.layer")], [f"0000000002.r{i}.layer"])
        self.restore(3, store=mine)
        self.goes_on()
        self.end_all()
        for i, host in enumerate(hosts):
            host.rename(self.folder / f"moved{i}")
        for i in range(3):
            (self.folder / f"moved{i}").rename(hosts[(i + 1) % 3])
        self.restore(3, store=mine)
        self.goes_on()
        self.end_all()
        said = self.says(self.mpi(2, "image", "restore", "STORE", "a", store=mine))
        self.assertIn("saved by 3 ranks", said)
        said = self.says(self.mpi(3, "image", "restore", "--memory", "1M", "STORE", "a", store=mine))
        self.assertIn("--memory", said)
        shutil.rmtree(hosts[1])
        self.assertIn("no rank's store", self.says(self.mpi(3, "image", "restore", "STORE", "a", store=mine), status=1))
        self.stands_still()

    def test_one_cannot_be_saved(self):
        """It has a network socket: its rank says so, all processes run on, and there is no epoch."""
        p, q = self.start(2, "grow", 1)
        other = subprocess.Popen(["/usr/bin/python3", "-c", "import socket, time\ns = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()\n"
                                  "open('up', 'w')\ntime.sleep(99)"], start_new_session=True, cwd=self.folder, stdin=subprocess.DEVNULL)
        self.addCleanup(self.end, other)
        wait_for((self.folder / "up").exists, "it listens")
        for more in (), ("--leave-running",):
            tried = self.mpi(3, "image", "dump", *more, "--pid", f"{p.pid},{other.pid},{q.pid}", self.store, "a")
            if tried.returncode == 0:
                self.skipTest("criu can save network sockets here")
            said = self.says(tried)
            self.assertIn(f"rank 1: cannot save process {other.pid}: criu says", said)
            self.assertIsNone(other.poll())
            self.goes_on()
            self.assertEqual(self.commits(), [])
        self.dump(2, "--leave-running")
        self.varve("verify", self.store)

    def test_one_number_is_taken(self):
        """None of the others takes a step: what had been rebuilt of them is gone again."""
        self.start(3, "grow", 1)
        self.dump(3, "--leave-running")
        p, q, r = self.running
        self.end(p)
        self.end(r)
        at = self.step(0), self.step(2)
        for command_line in self.restores(3):
            said = self.says(self.run_text(*command_line))
            self.assertIn("taken", said)
            self.assertIn(str(q.pid), said)
            wait_for(lambda: not is_alive(p.pid) and not is_alive(r.pid), "the others are gone")
            self.end_strays()
        self.assertEqual((self.step(0), self.step(2)), at)
        self.assertIsNone(q.poll())
        self.end(q)
        self.restore(3)
        self.goes_on()

    def restores(self, n):
        """By ranks, and by one command; one after the other: what the first has rebuilt must be gone before the second begins."""
        alone = [command.BIN, "image", "restore", str(self.store), "a"]
        return [*MPIEXEC.split(), "-n", str(n), *alone], alone

    def run_text(self, *words):
        return subprocess.run(words, capture_output=True, text=True, env=self.env, cwd=self.folder, timeout=100)

    def test_damage(self):
        self.start(2, "churn", 4)
        self.dump(2, "-o", "codec=none")
        layer = self.layer(1, "a", rank=1)
        self.flip(layer, layer.stat().st_size // 2)
        for command_line in self.restores(2):
            self.assertIn("nothing was restored", self.says(self.run_text(*command_line), status=1))
            self.stands_still()
        self.flip(layer, layer.stat().st_size // 2)
        self.restore(2)

    def test_damage_of_what_is_shared(self):
        """Ranks read for each other what they have in common: who misses it says of which image."""
        self.start(3, "grow", 8)
        self.dump(3)
        for p in self.running:
            p.wait(PATIENCE)
        for rank in range(3):
            layer = self.layer(1, "a", rank=rank)
            self.flip(layer, layer.stat().st_size // 2)
            said = self.says(self.mpi(3, "image", "restore", self.store, "a"), status=1)
            self.assertIn("nothing was restored", said)
            self.assertIn("pages-1.img", said)
            self.stands_still()
            self.flip(layer, layer.stat().st_size // 2)
        self.restore(3)
        self.goes_on()

    def test_killed_rank(self):
        """However far they are: all processes run on, unless the epoch counts."""
        self.start(2, "churn", 48)
        start = time.time()
        self.dump(2, "--leave-running", lineage="b")
        whole = time.time() - start
        killed = 0
        for part in (0, 0.35, 0.45, 0.55, 0.65, 0.8, 0.9):  # the first hits, whatever else the machine does
            end = time.time() + part * whole
            d = subprocess.Popen([*MPIEXEC.split(), "-n", "2", command.BIN, "image", "dump", "-q", "--pid-file", "%r.pid", str(self.store), "a"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.env, cwd=self.folder)
            self.are_under_way(d)
            time.sleep(max(0, end - time.time()))
            ranks = self.ranks_of(d.pid)
            if ranks:
                kill(ranks[-1])
            if d.wait(PATIENCE) == 0 or self.commits(self.store / "a"):
                break
            killed += bool(ranks)
            self.goes_on(steps=1)
        self.assertGreater(killed, 0)
        self.varve("verify", self.store)

    def test_mistakes(self):
        p, q = self.start(2, "family")

        def tried(n, *words):
            said = self.says(self.mpi(n, "image", *words))
            self.assertEqual(self.commits() if self.store.exists() else [], [])
            self.goes_on()
            return said

        child = int(pathlib.Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text().split()[0])
        self.assertIn("names 2 processes for 3 ranks", tried(3, "dump", "--pid", f"{p.pid},{q.pid}", self.store, "a"))
        self.assertIn("rank 1: there is no process", tried(2, "dump", "--pid", f"{p.pid},{2 ** 22 + 1}", self.store, "a"))
        self.file("0.none", b"%d" % p.pid)
        self.assertIn("rank 1: cannot read '1.none'", tried(2, "dump", "--pid-file", "%r.none", self.store, "a"))
        self.file("1.none", b"12 monkeys")
        self.assertIn("'1.none' does not hold", self.fails("image", "dump", "--pid-file", "1.none", self.store, "a"))
        self.assertIn("nothing else", self.fails("image", "dump", "--pid-file", "%d.none", self.store, "a"))
        self.assertIn("not both", self.fails("image", "dump", "--pid", "1,2", "--pid-file", "x", self.store, "a"))
        self.assertIn("commas", self.fails("image", "dump", "--pid", "1,,2", self.store, "a"))
        self.assertIn("commas", self.fails("image", "dump", "--pid", "1 2", self.store, "a"))
        self.assertFalse(self.store.exists())
        self.assertIn("to be saved twice", tried(2, "dump", "--pid", f"{p.pid},{p.pid}", self.store, "a"))
        self.assertIn("name one of the two", tried(2, "dump", "--pid", f"{p.pid},{child}", self.store, "a"))
        self.assertIn("to be saved twice", self.fails("image", "dump", "--pid", f"{p.pid},{q.pid},{p.pid}", self.store, "a"))
        self.assertIn("name one of the two", self.fails("image", "dump", "--pid", f"{child},{p.pid}", self.store, "a"))
        self.assertIn("cannot save itself", tried(2, "dump", "--pid", f"{p.pid},{os.getpid()}", self.store, "a"))
        self.assertIn("without mpirun", tried(2, "run", self.store, "a", "--", "true"))
        self.assertIn("No such file", tried(2, "restore", self.folder / "nowhere", "a"))
        self.assertFalse((self.folder / "nowhere").exists())
        self.assertIn("no lineage", tried(2, "restore", self.store, "a"))


if __name__ == "__main__":
    if not MPIEXEC:
        print("skipped: built without MPI")
        sys.exit(77)
    command.main_with_images("image_program.c")
