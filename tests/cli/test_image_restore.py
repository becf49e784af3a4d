#!/usr/bin/env python3
# ctest: TIMEOUT 360 COST 20
"""Processes are brought back all at once, or while they already run (--lazy). Whatever is damaged, or is killed in the middle: no program ever sees a
page that is not its own, and what could not be brought back whole does not run."""
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import command
from command import PATIENCE, is_alive, is_in, wait_for
from image_case import Case, children_of_all, has_told, kill, name_of

PROGRAM = None  # set in main
MIB = 12


def state_of(pid):
    """For a message: where it stands."""
    found = {"parent": (stat_of(pid) or ("", 0))[1]}
    for name in ("cmdline", "wchan", "stack", "syscall"):
        try:
            found[name] = pathlib.Path(f"/proc/{pid}/{name}").read_text(errors="replace")
        except OSError as e:
            found[name] = e.strerror
    return found


def stat_of(pid):
    """The letter of its state, and its parent; None: there is no such process."""
    try:
        words = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()
        return words[0], int(words[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


def resident(pid):
    """Bytes of its own that are there."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) << 10
    return 0


# Who starts a family is the parent of all that outlive their parents, and hears of their end when it is told to, of one after the other.
FAMILY = """import ctypes, os, pathlib, sys, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
first = os.fork()
if first == 0:
    os.setsid()
    pids = []
    for _ in range(3):
        pids.append(os.fork())
        if pids[-1] == 0:
            time.sleep(999)
    pathlib.Path("family.new").write_text(" ".join(map(str, [os.getpid(), *pids])))
    os.rename("family.new", "family")
    time.sleep(999)
while not os.path.exists("hear"):
    time.sleep(0.01)
for _ in range(4):
    time.sleep(0.2)
    os.wait()
"""


class Restore(Case):
    def setUp(self):
        super().setUp()
        self.state = self.folder / "state"

    def start(self, mode, mib=MIB):
        """A program that waits for its file, in a session of its own."""
        self.mib = mib
        p = subprocess.Popen([PROGRAM, mode, self.state, str(mib)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             start_new_session=True, cwd=self.folder)
        self.pid = p.pid
        self.addCleanup(self.end, p)
        wait_for(lambda: has_told(self.state), "it has filled its memory")
        return p

    def end(self, p):
        if p.poll() is None:
            p.kill()
        p.wait()
        if is_in(self.pid, self.folder):  # brought back: ours, its number was that of our child
            kill(self.pid)

    def save(self, mode, mib=MIB, *more):
        p = self.start(mode, mib)
        out = self.json("image", "dump", "--pid", p.pid, self.store, "a", *more)
        p.wait()
        return out

    def go(self):
        (self.folder / "state.go").touch()

    def restore(self, *words, env=None):
        r = subprocess.Popen([command.BIN, "image", "restore", *words, self.store, "a"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env={**self.env, **(env or {})}, cwd=self.folder)
        self.addCleanup(lambda: (r.kill(), r.wait(), r.stdout.close(), r.stderr.close()))
        return r

    def runs(self, r):
        line = r.stdout.readline()
        self.assertIn(f"process {self.pid} runs again", line, line or r.stderr.read())

    def rounds(self):
        words = self.state.read_text().split()
        self.assertEqual(words[1], "ok")
        return int(words[0])

    def forget(self):
        self.state.write_text("0 ok" + " " * 27 + "\n")

    def goes_on(self, n=2):
        wait_for(lambda: self.rounds() >= n or not is_alive(self.pid), "it has looked at all its pages")
        self.assertGreaterEqual(self.rounds(), n)

    def stop(self, r):
        """It has been told of the end of its program, so it ends as that did."""
        os.kill(self.pid, signal.SIGKILL)
        self.assertEqual(r.wait(PATIENCE), 128 + signal.SIGKILL, r.stderr.read())
        wait_for(lambda: stat_of(self.pid) is None, "its number is free")

    def is_gone(self):
        wait_for(lambda: not is_alive(self.pid), "it is gone")
        self.rounds()

    def save_family(self):
        """A parent and three children, which have ended; who has started them has not heard of it yet."""
        p = subprocess.Popen(["/usr/bin/python3", "-c", FAMILY], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder)
        self.addCleanup(lambda: (p.kill(), p.wait()))
        wait_for((self.folder / "family").exists, "all are there")
        pids = [int(word) for word in (self.folder / "family").read_text().split()]
        self.addCleanup(lambda: [kill(pid) for pid in pids if is_in(pid, self.folder)])
        self.varve("image", "dump", "-q", "--pid", pids[0], self.store, "a")
        self.assertEqual([stat_of(pid) for pid in pids], [("Z", p.pid)] * 4)
        return p, pids

    def test_numbers_are_waited_for(self):
        """A restore may follow a dump at once: it waits until the numbers are free, also where that is heard of late, and of one after the other."""
        p, pids = self.save_family()
        r = self.restore("-q", "-d")
        time.sleep(3)
        (self.folder / "hear").touch()
        self.assertEqual(r.wait(PATIENCE), 0, r.stderr.read())
        self.assertEqual(p.wait(PATIENCE), 0)
        self.assertTrue(all(is_alive(pid) for pid in pids))

    def test_nobody_hears(self):
        """As in a container without an init: the restore does not wait for ever, and says who is to hear of whom."""
        p, pids = self.save_family()
        said = self.run_raw("image", "restore", self.store, "a")
        self.assertEqual(said.returncode, 2, said.stderr)
        self.assertIn(f"warning: process {pids[0]} has ended, and keeps its number until its parent, process {p.pid}, hears of it".encode(), said.stderr)
        self.assertIn(b"taken", said.stderr)

    def check(self, mode, *words):
        """Brought back by pages that come in fits and starts while it looks at them."""
        self.save(mode)
        self.go()
        r = self.restore("--lazy", *words)
        self.runs(r)
        for _ in range(40):
            r.send_signal(signal.SIGSTOP)
            time.sleep(0.004)
            r.send_signal(signal.SIGCONT)
            time.sleep(0.001)
        self.goes_on()
        self.stop(r)

    def test_lazy(self):
        self.check("alone")

    def test_lazy_threads(self):
        self.check("threads")

    def test_lazy_forks(self):
        self.check("forks")

    def test_lazy_moves(self):
        self.check("moves")

    def test_lazy_family(self):
        self.check("family")

    def test_lazy_in_little_memory(self):
        self.check("alone", "--memory", "64K")

    def test_lazy_on_one_thread(self):
        self.check("threads", "--threads", "1")

    def test_at_once(self):
        """The same, when nothing runs before all is there."""
        for mode in ("moves", "family"):
            with self.subTest(mode):
                self.state.unlink(missing_ok=True)
                (self.folder / "state.go").unlink(missing_ok=True)
                self.save(mode)
                self.go()
                for words in ((), ("--memory", "64K", "--threads", "1")):
                    r = self.restore(*words)
                    self.runs(r)
                    self.assertGreater(resident(self.pid), MIB - 1 << 20)
                    self.goes_on()
                    self.stop(r)
                    self.forget()

    def test_many_epochs(self):
        """Pages that lie in the layers of several epochs."""
        p = self.start("alone")
        self.json("image", "dump", "--leave-running", "--pid", p.pid, self.store, "a", "-o", "codec=none")
        self.go()
        self.goes_on(1)
        second = self.json("image", "dump", "--pid", p.pid, self.store, "a")
        p.wait()
        self.assertLess(second["bytes_new"], 4 << 20)
        for words in ((), ("--lazy",)):
            first = self.rounds()
            r = self.restore(*words)
            self.runs(r)
            self.goes_on(first + 2)
            self.stop(r)

    def test_detached(self):
        """The command ends, and the program runs on: with all its memory, also where that came late."""
        self.save("alone")
        for words in (("-d",), ("-d", "--lazy")):
            r = self.restore("--json", *words)
            out, err = r.communicate(timeout=PATIENCE)
            self.assertEqual(r.returncode, 0, err)
            self.assertLessEqual(json.loads(out)["seconds_to_run"], json.loads(out)["seconds"])
            self.assertGreater(resident(self.pid), MIB - 1 << 20)
            self.go()
            self.goes_on()
            os.kill(self.pid, signal.SIGKILL)
            wait_for(lambda: stat_of(self.pid) is None, "its number is free")
            self.forget()

    def flips(self, n):
        layer = self.layer(1, "a")
        good = layer.read_bytes()
        for i in range(n):
            self.flip(layer, 100 + (len(good) - 200) * i // n)
            yield
            layer.write_bytes(good)

    def test_damage_is_refused(self):
        self.save("alone")
        self.go()
        for _ in self.flips(6):
            said = self.fails("image", "restore", self.store, "a", status=1)
            self.assertRegex(said, r"nothing was restored|section|trailer|header|head", said)
            self.assertFalse(is_alive(self.pid))
            self.assertEqual(self.rounds(), 0)  # nothing of it has run

    def test_damage_names_the_image(self):
        self.save("alone")
        layer = self.layer(1, "a")
        self.flip(layer, len(layer.read_bytes()) // 2)
        said = self.fails("image", "restore", self.store, "a", status=1)
        self.assertRegex(said, r"'pages-1.img' \((heap|anon)\): layer")  # and what of its memory that is
        self.assertIn("nothing was restored", said)

    def test_damage_names_the_segment(self):
        """Each part that is hit, by the name that it has in the report of the dump."""
        self.save("alone")
        shown = self.json("show", self.store, "a")
        segments = {s["segment"] for s in shown["per_rank"][0]["segments"]}
        named = set()
        for _ in self.flips(8):
            named.update(re.findall(r"'pages-1.img' \((\w+)", self.fails("image", "restore", self.store, "a", status=1)))
        self.assertTrue(named)
        self.assertLessEqual(named, segments)

    def test_missing_layer_is_refused(self):
        p = self.start("alone")
        self.json("image", "dump", "--leave-running", "--pid", p.pid, self.store, "a")
        self.json("image", "dump", "--pid", p.pid, self.store, "a")
        p.wait()
        self.layer(1, "a").unlink()
        for words in ((), ("--lazy",)):
            said = self.fails("image", "restore", *words, self.store, "a", status=1)
            self.assertIn("missing", said)
            self.assertFalse(is_alive(self.pid))

    def test_late_damage_kills(self):
        """What is found to be damaged when the program runs already: it is killed, with a word, and has seen nothing of it."""
        self.save("alone", 40)
        self.go()
        killed = 0
        for _ in self.flips(5):
            said = self.fails("image", "restore", "--lazy", self.store, "a", status=1)
            killed += "was killed" in said
            self.is_gone()
            wait_for(lambda: stat_of(self.pid) is None, "its number is free")
        self.assertGreater(killed, 0, said)

    def test_damage_in_json(self):
        self.save("alone", 40)
        layer = self.layer(1, "a")
        self.flip(layer, len(layer.read_bytes()) // 2)
        for words in ((), ("--lazy",)):
            p = self.run_raw("--json", "image", "restore", *words, self.store, "a")
            self.assertEqual(p.returncode, 1)
            self.assertIn("checksum mismatch", json.loads(p.stdout)["error"])
            self.is_gone()

    def test_where_no_program_may_run(self):
        """The hook cannot be run there: then pages go through pipes, as those of a tree do."""
        place = self.folder / "noexec"
        place.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec", "none", place], capture_output=True).returncode:
            self.skipTest("nothing can be mounted here")
        self.addCleanup(subprocess.run, ["umount", place], check=True)
        self.save("alone", 40)
        self.go()
        for words in ((), ("--memory", "64K")):
            r = self.restore(*words, env={"TMPDIR": str(place)})
            self.runs(r)
            self.goes_on()
            self.stop(r)
            self.forget()

    def check_orphan(self, victims):
        for _ in range(5):
            r = self.restore("--lazy")
            self.runs(r)
            r.send_signal(signal.SIGSTOP)
            wait_for(lambda: stat_of(r.pid)[0] == "T", "it is stopped")
            late = is_alive(self.pid) and resident(self.pid) < (self.mib - 8 << 20)
            for pid in victims([r.pid, *self.watchdogs(r.pid)]):
                kill(pid)
            r.send_signal(signal.SIGCONT)
            if not late and is_alive(self.pid):
                kill(self.pid)
            self.is_gone()
            r.communicate(timeout=PATIENCE)
            wait_for(lambda: stat_of(self.pid) is None, "its number is free")
            if late:
                return
        self.skipTest("it was too fast")

    def watchdogs(self, pid):
        """Those below the command, in order of age, that are not its program."""
        return [w for c in children_of_all(pid) if c != self.pid for w in (c, *self.watchdogs(c))]

    def test_lazy_orphan(self):
        """Those that see to its pages are killed, some of them at once: the program ends, before it sees what was not brought."""
        self.save("alone", 128)
        self.go()
        for words, victims in {
            "the command": lambda all: all[:1],
            "the command and the first watchdog": lambda all: all[:2],
            "the command and the last watchdog": lambda all: (all[0], all[-1]),
            "a watchdog": lambda all: all[-1:],
            "all of the name (killall)": lambda all: [p for p in all if name_of(p) == "varve"],
        }.items():
            with self.subTest(words):
                self.check_orphan(victims)

    def test_killed_command(self):
        """However far it is: what runs is whole, or nothing does."""
        self.save("alone", 64)
        self.go()
        for words in ((), ("--lazy",)):
            for part in (0.01, 0.05, 0.12):
                r = self.restore(*words)
                time.sleep(part)
                r.kill()
                said, _ = r.communicate()
                time.sleep(0.1)
                if is_alive(self.pid) and "runs again" in said and not words:
                    first = self.rounds()
                    self.goes_on(first + 1)
                self.ended_by_itself()
        r = self.restore()
        self.runs(r)
        self.stop(r)

    def ended_by_itself(self):
        """criu, which has lost us, ends what it has made, also what it makes only now; and what it had finished we do."""
        self.end_strays()
        try:
            wait_for(lambda: not is_alive(self.pid) or self.rounds() > 0, "it is gone, or runs")
        except AssertionError as e:
            raise AssertionError(f"{e}: {state_of(self.pid)}") from e
        finally:
            if is_alive(self.pid):
                kill(self.pid)
        self.is_gone()
        wait_for(lambda: stat_of(self.pid) is None, "its number is free")
        self.forget()

    def test_killed_criu(self):
        self.save("alone", 32)
        self.go()
        real = subprocess.run(["sh", "-c", "PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin command -v criu"], capture_output=True, text=True).stdout.strip()
        for words in ((), ("--lazy",)):
            for part in ("0.01", "0.04", "0.08"):
                wrap = self.file("wrap", f"#!/bin/sh\n{real} \"$@\" & sleep {part}; kill -9 $! 2>/dev/null; wait $!\n".encode())
                wrap.chmod(0o755)
                r = self.restore(*words, env={"VARVE_CRIU": str(wrap)})
                line = r.stdout.readline()
                if "runs again" in line:  # it was faster
                    self.stop(r)
                else:
                    _, said = r.communicate(timeout=PATIENCE)
                    self.assertEqual(r.returncode, 2, said)
                    self.assertIn("criu", said)
                    self.is_gone()
                wait_for(lambda: stat_of(self.pid) is None, "its number is free")
                self.forget()
                wrap.unlink()

    def test_lazy_pid_is_taken(self):
        p = self.start("alone")
        self.json("image", "dump", "--leave-running", "--pid", p.pid, self.store, "a")
        said = self.fails("image", "restore", "--lazy", self.store, "a")
        self.assertIn("taken", said)
        self.assertIsNone(p.poll())


if __name__ == "__main__":
    command.main_with_images("lazy_program.c")
