#!/usr/bin/env python3
# ctest: TIMEOUT 480 COST 40
"""Groups whose pages come while they already run: from one store, or from the stores of several ranks. No program ever sees a page that is not its own, and if
one of them cannot have its memory, all of them end."""
import json
import os
import pathlib
import subprocess
import sys
import time

import command
from command import PATIENCE, is_alive, wait_for
from image_case import Several, has_told, kill

MPIEXEC = os.environ.get("VARVE_MPIEXEC")
PROGRAM = None  # set in main
RANK = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"
MIB = 8


class LazyGroup(Several):
    def setUp(self):
        super().setUp()
        self.env["OMPI_MCA_odls_base_sigkill_timeout"] = "0"

    def start(self, *modes, mib=MIB):
        """Programs that wait for a word."""
        self.running = []
        for i, mode in enumerate(modes):
            p = subprocess.Popen([PROGRAM, mode, self.folder / f"state.{i}", str(mib)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, start_new_session=True, cwd=self.folder)
            self.addCleanup(self.end, p)
            self.running.append(p)
            self.file(f"{i}.pid", b"%d\n" % p.pid)
        for i in range(len(modes)):
            wait_for(lambda: has_told(self.folder / f"state.{i}"), f"program {i} has filled its memory")

    def words(self, *words, store=None):
        words = [command.BIN, "image", *map(str, words)]
        if not store:
            return [*words[:-1], str(self.store), words[-1]]
        return ["sh", "-c", f'"$@" "{store}" {words[-1]}', "sh", *words[:-1]]

    def mpi(self, n, *words, store=None):
        return subprocess.run([*MPIEXEC.split(), "-n", str(n), *self.words(*words, store=store)], capture_output=True, text=True, env=self.env,
                              cwd=self.folder, timeout=100)

    def save(self, n, *more, store=None):
        p = self.mpi(n, "dump", "--json", *more, "--pid-file", "%r.pid", "a", store=store)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        for p in self.running:
            p.wait(PATIENCE)

    def go(self):
        for i in range(len(self.running)):
            (self.folder / f"state.{i}.go").touch()

    def goes_on(self, n=2):
        for i, p in enumerate(self.running):
            wait_for(lambda: self.step(i) >= n or not is_alive(p.pid), f"program {i} has looked at all its pages")
            self.assertGreaterEqual(self.step(i), n)

    def end_all(self):
        for i, p in enumerate(self.running):
            self.end(p)
            (self.folder / f"state.{i}").write_text("0 ok" + " " * 27 + "\n")

    def are_gone(self):
        """None of them has seen what is not its own."""
        for i, p in enumerate(self.running):
            wait_for(lambda: not is_alive(p.pid), f"program {i} is gone")
            self.step(i)
            wait_for(lambda: not pathlib.Path(f"/proc/{p.pid}").exists(), "its number is free")

    def comes_back(self, p):
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        out = json.loads(p.stdout)
        self.assertEqual(out["pids"], [p.pid for p in self.running])
        self.assertLessEqual(out["seconds_to_run"], out["seconds"])
        self.goes_on()
        self.end_all()

    def test_one_store(self):
        """By as many ranks, by fewer, by more, and by a command alone."""
        self.start("alone", "forks", "moves", "family")
        self.save(4)
        self.go()
        for n in (4, 3, 5):
            self.comes_back(self.mpi(n, "restore", "--lazy", "--json", "-d", "a"))
        p = subprocess.run(self.words("restore", "--lazy", "--json", "-d", "a"), capture_output=True, text=True, env=self.env, cwd=self.folder)
        self.comes_back(p)

    def test_two_epochs(self):
        """What has not changed lies in the first; and pages that two of them have in common in the layer of one."""
        self.start("alone", "alone", "threads")
        p = self.mpi(3, "dump", "--json", "--leave-running", "--pid-file", "%r.pid", "a")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.save(3)
        self.go()
        self.comes_back(self.mpi(3, "restore", "--lazy", "--json", "-d", "a"))

    def test_stores_of_their_own(self):
        """They come back where others were saved: most of their pages are fetched while they look at them."""
        self.start("alone", "forks", "moves", mib=24)
        mine = f"host{RANK}"
        self.save(3, store=mine)
        self.go()
        self.comes_back(self.mpi(3, "restore", "--lazy", "--json", "-d", "a", store=mine))
        hosts = [self.folder / f"host{i}" for i in range(3)]
        for i, host in enumerate(hosts):
            host.rename(self.folder / f"moved{i}")
        for i in range(3):
            (self.folder / f"moved{i}").rename(hosts[(i + 1) % 3])
        self.comes_back(self.mpi(3, "restore", "--lazy", "--json", "-d", "a", store=mine))
        for layer in hosts[0].rglob("*.layer"):
            layer.unlink()
        p = self.mpi(3, "restore", "--lazy", "a", store=mine)
        self.assertEqual(p.returncode, 1, p.stdout + p.stderr)
        self.assertIn("no rank's store", p.stderr)
        self.are_gone()

    def check_damage(self, flips, *where):
        """*where: the words of mpi's `store`, and the layer. It is tried until once, at least, they ran already: on a slow machine the damage may be found before all
        ranks know, and can tell, that all do."""
        store, layer = where
        good = layer.read_bytes()
        late = tries = 0
        while tries < flips or (not late and tries < 5 * flips):
            bad = bytearray(good)
            bad[100 + (len(good) - 200) * (tries % flips) // flips] ^= 0x10
            tries += 1
            layer.write_bytes(bad)
            p = self.mpi(2, "restore", "--lazy", "a", store=store)
            self.assertEqual(p.returncode, 1, p.stdout + p.stderr)
            late += "runs again" in p.stdout or "was killed" in p.stderr
            self.are_gone()
        layer.write_bytes(good)
        self.go()
        self.comes_back(self.mpi(2, "restore", "--lazy", "--json", "-d", "a", store=store))
        self.assertGreater(late, 0, p.stdout + p.stderr)

    def test_late_damage(self):
        """Found when all of them run already: all of them end."""
        self.start("alone", "alone", mib=24)
        self.save(2, "-o", "codec=none")
        self.check_damage(4, None, self.layer(1, "a", rank=1))

    def test_late_damage_afar(self):
        self.start("alone", "alone", mib=24)
        mine = f"host{RANK}"
        self.save(2, "-o", "codec=none", store=mine)
        self.check_damage(4, mine, next((self.folder / "host1").rglob("*.r1.layer")))

    def test_killed_rank(self):
        """However far they are: they have their own pages, or are gone."""
        self.start("alone", "threads", mib=48)
        self.save(2, "-o", "codec=none")
        self.go()
        for part in (0, 0.02, 0.05, 0.1, 0.2, 0.3):
            r = subprocess.Popen([*MPIEXEC.split(), "-n", "2", *self.words("restore", "--lazy", "a")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 env=self.env, cwd=self.folder)
            self.addCleanup(lambda r: (r.kill(), r.wait()), r)
            self.are_under_way(r)
            time.sleep(part)
            for pid in self.ranks_of(r.pid)[-1:]:
                kill(pid)
            r.wait(PATIENCE)
            self.end_strays()  # who makes them anew must not be at work any more
            for i, p in enumerate(self.running):  # who had all its pages may run on, and is right
                self.step(i)
            self.end_all()
            self.are_gone()

    def test_one_number_is_taken(self):
        """None of the others takes a step."""
        self.start("alone", "alone", "alone")
        p = self.mpi(3, "dump", "--json", "--leave-running", "--pid-file", "%r.pid", "a")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.end(self.running[0])
        self.end(self.running[2])
        self.go()
        tried = self.mpi(3, "restore", "--lazy", "a")
        self.assertEqual(tried.returncode, 2, tried.stdout + tried.stderr)
        self.assertIn("taken", tried.stderr)
        for p in (self.running[0], self.running[2]):  # their ranks may have been ended by mpirun
            wait_for(lambda: not is_alive(p.pid), "it is gone")
        self.assertEqual((self.step(0), self.step(2)), (0, 0))


if __name__ == "__main__":
    if not MPIEXEC:
        print("skipped: built without MPI")
        sys.exit(77)
    command.main_with_images("lazy_program.c")
