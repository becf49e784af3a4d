#!/usr/bin/env python3
# ctest: TIMEOUT 480 COST 50
"""Those who bring the pages of programs that run already (the command, and two watchdogs) are killed, in any number, at any moment. No program ever sees a page that is
not its own, zeros for example: if nobody is left, the kernel kills it. When all pages are there nothing of this is left in it."""
import os
import pathlib
import random
import resource
import signal
import subprocess
import time

import command
from command import PATIENCE, is_alive, wait_for
from image_case import Several, children, children_of_all, has_told, kill, links_of, name_of, open_files, strays

MPIEXEC = os.environ.get("VARVE_MPIEXEC")
PROGRAM = None  # set in main
MIB = 64


def stat_of(pid):
    """The letter of its state, and its session; None: there is no such process."""
    try:
        words = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()
        return words[0], int(words[3])
    except (FileNotFoundError, ProcessLookupError):
        return None


def session(sid):
    """All of it, also those that have ended and were not waited for: its number is taken as long as there is one."""
    pids = [int(path.name) for path in pathlib.Path("/proc").glob("[0-9]*")]
    return [pid for pid in pids if (stat_of(pid) or ("", 0))[1] == sid]


class Orphan(Several):
    def save(self, *modes, mib=MIB, most=None):
        """most: descriptors that it may have, beyond those that it has."""
        self.running, self.modes = [], modes
        for i, mode in enumerate(modes):
            for name in (f"state.{i}", f"state.{i}.go"):  # of those before
                (self.folder / name).unlink(missing_ok=True)
            self.running.append(subprocess.Popen([PROGRAM, mode, self.folder / f"state.{i}", str(mib)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                                 stderr=subprocess.DEVNULL, start_new_session=True, cwd=self.folder))
            self.addCleanup(self.end, self.running[-1])
        self.pids = [p.pid for p in self.running]
        for i in range(len(modes)):
            wait_for(lambda: has_told(self.folder / f"state.{i}"), f"program {i} has filled its memory")
        self.files = [self.open_files(pid) for pid in self.pids]
        if most is not None:
            hard = resource.prlimit(self.pids[0], resource.RLIMIT_NOFILE)[1]
            self.limit = min(max(map(int, self.files[0])) + 1 + most, hard), hard
            resource.prlimit(self.pids[0], resource.RLIMIT_NOFILE, self.limit)
        self.varve("image", "dump", "-q", "-o", "codec=none", "--pid", ",".join(map(str, self.pids)), self.store, "a")
        for i, p in enumerate(self.running):
            p.wait(PATIENCE)
            (self.folder / f"state.{i}.go").touch()

    def end(self, p):
        super().end(p)
        for pid in session(p.pid):
            kill(pid)

    def open_files(self, pid):
        return open_files(pid, self.folder / "state.")

    def sockets(self, pid):
        return [link for link in links_of(pid).values() if link.startswith("socket:")]

    def restore(self, *words, launcher=()):
        r = subprocess.Popen([*launcher, command.BIN, "image", "restore", "--lazy", *words, self.store, "a"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, env=self.env, cwd=self.folder)
        self.addCleanup(lambda: (r.kill(), r.wait(), r.stdout.close(), r.stderr.close()))
        return r

    def runs(self, r):
        line = r.stdout.readline()
        self.assertIn("runs again", line, line or r.stderr.read())

    def those_who_bring(self, pid):
        """The command, and its watchdogs."""
        return [pid] + [w for c in children_of_all(pid) if c not in self.pids and (stat_of(c) or ("", self.pids[0]))[1] not in self.pids
                        for w in self.those_who_bring(c)]

    def are_right(self):
        """A child that was made in the instant in which all were killed had nothing to hold yet, and says that it was wrong (docs/images.md)."""
        for i in range(len(self.pids)):
            words = self.said(i)
            if self.modes[i] != "forks" or words[0] != "-1":
                self.assertEqual(words[1], "ok", words)

    def clear(self):
        """What is left waits for pages that nobody brings: children that were made in the very moment. Nobody has seen what is not its own."""
        left = [pid for sid in self.pids for pid in session(sid)]
        self.are_right()
        for sid in self.pids:
            wait_for(lambda: [kill(pid) for pid in session(sid)] == [], "its session is gone")
        for i in range(len(self.pids)):
            (self.folder / f"state.{i}").write_text("0 ok" + " " * 27 + "\n")
        return left

    def are_gone(self):
        for pid in self.pids:
            wait_for(lambda: not is_alive(pid), f"process {pid} is gone")
        self.are_right()

    def check_all(self, *modes):
        """It is stopped while pages are missing, and then killed with its watchdogs: so nobody can do anything any more."""
        self.save(*modes)
        late = rounds = 0
        while rounds < 3 or (not late and rounds < 12):  # it may be fast, and we slow
            rounds += 1
            r = self.restore()
            self.runs(r)
            kill(r.pid, signal.SIGSTOP)
            wait_for(lambda: stat_of(r.pid)[0] == "T", "it is stopped")
            all_three = self.those_who_bring(r.pid)
            late += len(all_three) == 1 + 2 * len(modes)
            for pid in all_three:
                kill(pid, signal.SIGSTOP)
            random.shuffle(all_three)
            for pid in all_three:
                kill(pid)
            r.wait(PATIENCE)
            if len(all_three) > 1:
                self.are_gone()
            self.clear()
        if not late:
            self.skipTest("it was too fast")

    def test_all(self):
        self.check_all("alone")

    def test_all_threads(self):
        self.check_all("threads")

    def test_all_of_family(self):
        """Each process of a tree has its own; and children that were there before end, too."""
        self.check_all("family")

    def test_all_of_several(self):
        self.check_all("alone", "threads")

    def test_all_with_children(self):
        self.check_all("forks")

    def test_pid_namespace(self):
        """Where it has another number than in its images. The kernel does not kill the first process there for us: it waits for its pages, if nobody is left."""
        p = subprocess.Popen(["unshare", "--pid", "--fork", "setsid", PROGRAM, "alone", self.folder / "state.0", str(MIB)], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder)
        self.addCleanup(lambda: (p.kill(), p.wait()))
        wait_for(lambda: p.poll() is not None or has_told(self.folder / "state.0"), "it has filled its memory")
        if p.poll() is not None:
            self.skipTest("there are no pid namespaces here")
        self.varve("image", "dump", "-q", "-o", "codec=none", "--pid", children(p.pid)[0], self.store, "a")
        p.wait(PATIENCE)
        (self.folder / "state.0.go").touch()
        for is_killed in (True, False):
            r = self.restore()
            line = r.stdout.readline()
            self.assertIn("runs again", line, line or r.stderr.read())
            self.pids, self.modes = [int(line.split()[1])], ["alone"]
            self.addCleanup(kill, self.pids[0])
            if is_killed:
                for pid in self.those_who_bring(r.pid):
                    kill(pid)
                end = time.time() + 0.5
                while time.time() < end:
                    self.are_right()
            else:
                wait_for(lambda: self.step(0) >= 2 and not self.sockets(self.pids[0]), "it has its pages")
            self.clear()
            r.wait(PATIENCE)

    def kill_strays(self):
        """Of a criu that was killed itself some may be left, which only the next command ends, if all of ours were killed as well."""
        for pid, _ in strays(self.folder):
            kill(pid)

    def stop_criu(self, r):
        """At any moment: it ends no more by itself. None: it has ended already. Else those who would have to end it: the command, and its watchdogs."""
        wait_for(lambda: strays(self.folder) or is_alive(self.pids[0]) or r.poll() is not None, "criu runs")
        time.sleep(random.random() * 0.06)
        for pid, _ in strays(self.folder):
            kill(pid, signal.SIGSTOP)
        ours = [pid for pid in self.those_who_bring(r.pid) if name_of(pid) in ("varve", "pages-watchdog")]
        return ours if strays(self.folder) and len(ours) == 3 else None

    def test_criu_ends_too(self):
        """A criu that has lost its processes, or was killed itself and has left some, may wait for ever."""
        self.save("alone")
        seen = 0
        for turn in range(12):
            r = self.restore()
            ours = self.stop_criu(r)
            if ours:
                kill(ours[turn % 3])
                self.end_strays()
                seen += 1
            kill(r.pid)
            r.wait(PATIENCE)
            self.end_strays()
            self.clear()
        self.assertGreater(seen, 0)

    def test_next_one_ends_criu(self):
        """If nobody was left who could."""
        self.save("alone")
        for _ in range(12):
            r = self.restore()
            ours = self.stop_criu(r)
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for pid in ours or [r.pid]:
                    kill(pid, number)
            r.wait(PATIENCE)
            if ours:
                break
            self.end_strays()
            self.clear()
        else:
            self.skipTest("it was too fast")
        self.assertTrue(strays(self.folder))
        for path in self.folder.glob("varve-criu-*"):
            os.utime(path, (time.time() - 120,) * 2)
        self.run_raw("image", "restore", "-d", self.store, "a")  # if what there is of the program has its number it fails
        self.assertEqual((strays(self.folder), list(self.folder.glob("varve-criu-*"))), ([], []))
        self.clear()

    def test_any(self):
        """Some of them, or all, at any moment."""
        self.save("forks")
        for _ in range(6):
            r = self.restore()
            time.sleep(random.random() * 0.25)
            some = self.those_who_bring(r.pid)
            ours = [pid for pid in some if name_of(pid) in ("varve", "pages-watchdog")]
            some = random.sample(some, random.randint(1, len(some)))
            for pid in some:
                kill(pid)
            if r.pid in some:
                r.wait(PATIENCE)
            end = time.time() + 0.3
            while time.time() < end and is_alive(self.pids[0]):
                self.are_right()
            kill(r.pid)
            r.wait(PATIENCE)
            time.sleep(0.05)
            if set(ours) <= {*some, r.pid}:
                self.kill_strays()
            self.end_strays()
            self.clear()

    def test_ranks(self):
        """Of a group, each rank with its watchdogs."""
        if not MPIEXEC:
            self.skipTest("built without MPI")
        self.save("alone", "threads")
        for _ in range(3):
            r = self.restore(launcher=[*MPIEXEC.split(), "-n", "2"])
            self.are_under_way(r)
            time.sleep(random.random() * 0.5)
            ranks = [self.those_who_bring(pid) for pid in self.ranks_of(r.pid)]
            for pid in sorted(sum(ranks, []), key=lambda pid: random.random()):
                kill(pid)
            r.wait(PATIENCE)
            time.sleep(0.3)
            self.kill_strays()
            self.end_strays()
            self.clear()

    def test_nothing_is_left(self):
        """When all pages are there it has the descriptors that it had, and can be saved again; who brought them may be killed."""
        for mode in ("alone", "threads", "forks", "family"):
            with self.subTest(mode):
                self.store = self.folder / f"store of {mode}"
                self.save(mode, mib=24)
                r = self.restore("-d")
                out, err = r.communicate(timeout=PATIENCE)
                self.assertEqual((r.returncode, err), (0, ""), out)
                self.assertEqual(self.open_files(self.pids[0]), self.files[0])
                self.assertEqual([link for pid in session(self.pids[0]) for link in self.sockets(pid)], [])
                wait_for(lambda: self.step(0) >= 2, "it has looked at all its pages")
                if mode != "forks":  # whose children come and go
                    self.varve("image", "dump", "-q", "--pid", self.pids[0], self.store, "a")
                self.clear()

    def test_no_dump_before_that(self):
        """Pages that are missing would be saved as zeros."""
        self.save("alone")
        for _ in range(5):
            r = self.restore()
            self.runs(r)
            kill(r.pid, signal.SIGSTOP)
            wait_for(lambda: stat_of(r.pid)[0] == "T", "it is stopped")
            late = len(self.those_who_bring(r.pid)) == 3
            if late:
                for words in (("dump", "--pid", self.pids[0], self.store, "b"), ("dump", "--leave-running", "--pid", self.pids[0], self.store, "a")):
                    self.assertIn("not all of its pages are there yet", self.fails("image", *words))
                said = self.run_raw("image", "check", "--pid", self.pids[0])
                self.assertIn(b"not all of its pages are there yet", said.stdout)
                self.assertEqual(said.returncode, 1)
            kill(r.pid, signal.SIGCONT)
            wait_for(lambda: self.step(0) >= 1, "it has looked at all its pages")
            wait_for(lambda: self.open_files(self.pids[0]) == self.files[0], "all pages are there, and nothing more")
            self.clear()
            r.wait(PATIENCE)
            if late:
                return
        self.skipTest("it was too fast")

    def test_descriptors_are_few(self):
        """It may have hardly more than it has (criu needs some); or many."""
        for most in (8, 500, 60000):
            with self.subTest(most):
                self.store = self.folder / f"store of {most}"
                self.save("alone", mib=24, most=most)
                r = self.restore()
                self.runs(r)
                limit = resource.prlimit(self.pids[0], resource.RLIMIT_NOFILE)
                self.assertEqual(limit, self.limit)
                wait_for(lambda: self.step(0) >= 2 and self.open_files(self.pids[0]) == self.files[0], "it has all its pages, and nothing more")
                self.clear()
                r.wait(PATIENCE)


if __name__ == "__main__":
    command.main_with_images("lazy_program.c")
