#!/usr/bin/env python3
# ctest: TIMEOUT 480 COST 60
"""Memory is copied while a program runs, and is what it was when it was frozen nevertheless; and the program does not notice.

VARVE_PRECOPY=check lets a dump read everything from criu as well, and fail where that is not the same."""
import collections
import os
import pathlib
import signal
import subprocess
import time

import command
from command import PATIENCE, wait_for
from image_case import Programs, children, links_of, open_files, strays

PROGRAM = None  # set in main
QUIET = 24 << 20  # bytes of every program that it does not write, as a rule


def traces(pid):
    """What would be left of us in a process: areas that are watched, and descriptors."""
    try:
        flags = [line for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines() if line.startswith("VmFlags") and " uw" in line]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return flags + [link for link in links_of(pid).values() if "userfaultfd" in link]


def status(pid, name):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return line.split(":", 1)[1].strip()


def is_session(sid):
    """Does a process belong to it? As long as one does, the number is not free."""
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(path.read_text(errors="replace").rsplit(")", 1)[1].split()[3]) == sid:
                return True
        except (FileNotFoundError, ProcessLookupError):
            pass
    return False


class Precopy(Programs):
    def begin(self, mode, *more):
        for name in ("state", "state.child"):  # of one before
            (self.folder / name).unlink(missing_ok=True)
        p = self.start(PROGRAM, mode, self.folder / "state", *more)
        self.goes_on()
        return p

    def dump(self, p, *more, check=False, precopy=True, **how):
        """precopy None: it may be or not be."""
        self.env["VARVE_PRECOPY"] = "check" if check else ""
        got = super().dump(p, *more, **how)
        if "WP_ASYNC" in (got["precopy_why"] or "") or "of this machine" in (got["precopy_why"] or ""):
            self.skipTest(got["precopy_why"])
        if precopy is not None:
            self.assertEqual(got["precopy"], precopy, got["precopy_why"])
        self.assertEqual(got["precopy"], got["bytes_precopied"] > 0)
        return got

    def restore_and_end(self, p, spec, *others):
        p.wait(PATIENCE)
        wait_for(lambda: not is_session(p.pid), "its children have ended as well")
        r = self.restore(p, spec=spec)
        for name in ("state", *others):
            self.goes_on(name)
        os.kill(p.pid, signal.SIGKILL)
        self.assertEqual(r.wait(PATIENCE), 128 + signal.SIGKILL)

    def check(self, mode):
        """Dumps of a program that goes on, the last of which ends it; each of them comes back."""
        p = self.begin(mode)
        for i in range(4):
            self.assertGreater(self.dump(p, "--leave-running", check=i < 3)["bytes_precopied"], QUIET // 2)
            self.assertEqual(traces(p.pid), [])
            self.goes_on()
        self.dump(p)
        p.wait(PATIENCE)
        for epoch in (5, 4, 1):
            self.restore_and_end(p, f"a@{epoch}")

    def test_writers(self):
        self.check("writers")

    def test_restless(self):
        """It may make the kernel forget what is watched, and then nothing holds of the copy; marks that are left of that must not mislead the next dump."""
        p = self.begin("restless")
        held = [self.dump(p, "--leave-running", check=True, precopy=None)["precopy"] for _ in range(16)]
        self.assertIn(True, held)
        self.assertEqual(traces(p.pid), [])
        self.dump(p, precopy=None)
        for epoch in (17, 16, 1):
            self.restore_and_end(p, f"a@{epoch}")

    def test_forks(self):
        """While the calls are made in its name nobody can fork: no child ever has the descriptor."""
        self.check("forks")
        p = self.begin("forks")
        env = self.only_precopy()
        for _ in range(30):
            self.run_raw("image", "dump", "-q", "--pid", p.pid, self.store, "a", env=env)
        self.goes_on()

    def test_exec(self):
        """What was copied is of another program by the time it is frozen; or none was there to be copied."""
        p = self.begin("exec")
        for i in range(6):
            self.dump(p, "--leave-running", check=True, precopy=None)
            self.assertEqual(traces(p.pid), [])
            self.goes_on()
        self.dump(p, precopy=None)
        p.wait(PATIENCE)
        for epoch in (7, 1):
            self.restore_and_end(p, f"a@{epoch}")

    def test_exit(self):
        """It ends while it is copied, or just before, or after: the dump fails, says why, and leaves nothing."""
        for ms in (20, 60, 100, 150, 220, 300):
            p = self.start(PROGRAM, "leave", self.folder / "state", ms)
            wait_for(lambda: (self.folder / "state").exists(), "it runs")
            r = self.run_raw("image", "dump", "-q", "--leave-running", "--pid", p.pid, self.store, "a")
            self.assertIn(r.returncode, (0, 1, 2), r.stderr)
            self.assertEqual(p.wait(PATIENCE), 0)
            (self.folder / "state").unlink()

    def test_tree(self):
        p = self.begin("tree")
        wait_for(lambda: self.state("state.child") > 3, "its child runs")
        got = self.dump(p, "--leave-running", check=True)
        self.assertGreater(got["bytes_precopied"], 2 * QUIET * 3 // 4)
        child = children(p.pid)[0]
        self.assertEqual(traces(p.pid) + traces(child), [])
        self.goes_on("state.child")
        self.dump(p)
        p.wait(PATIENCE)
        for epoch in (2, 1):
            self.restore_and_end(p, f"a@{epoch}", "state.child")

    def test_flood(self):
        """It writes faster than it could be copied: then it is as if it had not been; with less memory than it has pages as well."""
        p = self.begin("flood")
        for more in ((), ("--memory", "60M"), ("--memory", "4M")):
            got = self.dump(p, "--leave-running", *more, check=not more, precopy=None)
            if not more:
                self.assertIn("writes faster" if not got["precopy"] else "", got["precopy_why"] or "")
            self.goes_on()
        p.kill()
        for epoch in (1, 2, 3):
            self.restore_and_end(p, f"a@{epoch}")

    def test_little_memory(self):
        """What does not fit is read when it stands still, in portions."""
        p = self.begin("writers")
        for memory in ("2M", "30M", "44M"):
            self.dump(p, "--leave-running", "--memory", memory, precopy=None)
            self.goes_on()
        p.kill()
        for epoch in (1, 2, 3):
            self.restore_and_end(p, f"a@{epoch}")

    def test_left_alone(self):
        for mode, word in (("confined", "seccomp"), ("aio", "aio")):
            p = self.begin(mode)
            self.assertIn(word, self.dump(p, "--leave-running", precopy=False)["precopy_why"])
            self.goes_on()
            self.assertIn(word, self.run_raw("-o", "log=info", "image", "dump", "-q", "--leave-running", "--pid", p.pid, self.store, "a").stderr.decode())
            self.end(p)

    def test_option(self):
        p = self.begin("leave")
        self.assertIn("--no-precopy was given", self.dump(p, "--leave-running", "--no-precopy", precopy=False)["precopy_why"])
        self.dump(p, "--leave-running")

    def test_stopped(self):
        """It is as still as can be already, and stays so."""
        p = self.begin("leave")
        os.kill(p.pid, signal.SIGSTOP)
        wait_for(lambda: status(p.pid, "State").startswith("T"), "it is stopped")
        self.assertIn("does not run", self.dump(p, "--leave-running", precopy=False)["precopy_why"])
        self.assertTrue(status(p.pid, "State").startswith("T"))
        os.kill(p.pid, signal.SIGCONT)
        self.goes_on()

    def only_precopy(self):
        """A criu that ends at once: what comes before it is all there is."""
        other = self.file("criu", b"#!/bin/sh\n[ \"$1\" = --version ] && exec \"$REAL\" --version\nexit 1\n")
        other.chmod(0o755)
        return {**self.env, "VARVE_CRIU": str(other), "REAL": subprocess.run(["sh", "-c", "command -v criu || echo /usr/sbin/criu"], capture_output=True, text=True,
                                                                              check=True).stdout.strip()}

    def test_waiting(self):
        """Threads that wait in the kernel, or count: they are interrupted, and none of them can tell."""
        p = self.begin("wait")
        env = self.only_precopy()
        before = status(p.pid, "SigBlk"), open_files(p.pid, self.folder / "state")
        for _ in range(6):
            r = self.run_raw("-o", "log=info", "image", "dump", "-q", "--pid", p.pid, self.store, "a", env=env)
            self.assertNotIn(b"not copied", r.stderr)
            self.goes_on(steps=5)
            self.assertEqual(traces(p.pid), [])
            time.sleep(0.3)
        self.assertEqual((status(p.pid, "SigBlk"), open_files(p.pid, self.folder / "state")), before)
        self.assertEqual(self.lines(), [])
        self.assertIsNone(p.poll())

    def returns(self, *words):
        """What calls of threads have returned by the time of two dumps, the last of which ends them, and of a restore."""
        found = collections.Counter()
        for call in ("nanosleep", "poll", "semaphore", "epoll"):  # of the first thread; the others have one of each
            p = self.begin("calls", call)
            self.at_rest(p.pid)
            self.dump(p, "--leave-running", *words, precopy=not words)
            self.at_rest(p.pid)
            self.dump(p, *words, lineage=call, precopy=not words)
            p.wait(PATIENCE)
            self.restore_and_end(p, call)
            found.update(f"{call}: {line}" for line in self.lines())
            (self.folder / "out").unlink()
            (self.folder / "state").unlink()
        return found

    def at_rest(self, pid):
        """All its threads but the one that tells are in their calls."""
        def waits():
            calls = [pathlib.Path(f"{task}/syscall").read_text().split()[0] for task in pathlib.Path(f"/proc/{pid}/task").iterdir()]
            return len(calls) == 13 and calls.count("running") <= 1
        for _ in range(3):
            wait_for(waits, "its threads wait")
            time.sleep(0.05)

    def test_calls(self):
        """Sleeps and other calls that wait return what they do when criu alone freezes the process. Those that every stop interrupts may do so more often, if a
        thread is stopped before it has come to wait again: on a machine with much else to do."""
        got, plain = self.returns(), self.returns("--no-precopy")
        self.assertEqual(set(got), set(plain))
        for line, n in got.items():
            self.assertLessEqual(n, plain[line] * (3 if "epoll" in line.split()[2] or "sigwait" in line.split()[2] else 1), line)

    def test_remap(self):
        """What is grown, shrunk and moved while it is being copied stays one area."""
        p = self.begin("remap")
        for i in range(5):
            self.dump(p, "--leave-running", check=i % 2 == 0)
            self.goes_on()
        env = self.only_precopy()
        for _ in range(40):
            self.run_raw("image", "dump", "-q", "--pid", p.pid, self.store, "a", env=env)
            self.goes_on()
        self.assertEqual(self.lines(), [])
        self.dump(p)
        for epoch in (6, 1):
            self.restore_and_end(p, f"a@{epoch}")

    def test_churn(self):
        """Mapped, moved, given up, protected, locked, in large pages, shared, in files without a name: all at once, by several threads."""
        p = self.begin("churn")
        for _ in range(8):
            self.dump(p, "--leave-running", check=True, precopy=None)
            self.assertEqual(traces(p.pid), [])
            self.goes_on(steps=200)
        self.dump(p, precopy=None)
        for epoch in (9, 8, 1):
            self.restore_and_end(p, f"a@{epoch}")
        self.assertEqual(self.lines(), [])

    def test_signals(self):
        """They come all the time while it is stopped and led away, and none is lost."""
        p = self.start("/usr/bin/python3", "-c", "import signal, time\nn = 0\nx = bytearray(b'ab') * (24 << 20)\n"
                       "def count(*_):\n global n; n += 1; print(n, flush=True)\n"
                       "signal.signal(signal.SIGUSR1, count)\nprint('ready', flush=True)\nwhile True: time.sleep(0.001)")
        wait_for(lambda: self.lines(), "it is ready")
        env = self.only_precopy()
        sent = rounds = 0
        while rounds < 3 or sent <= 20:
            rounds += 1
            d = subprocess.Popen([command.BIN, "image", "dump", "-q", "--pid", str(p.pid), self.store, "a"], env=env, cwd=self.folder, stderr=subprocess.DEVNULL)
            while d.poll() is None:
                os.kill(p.pid, signal.SIGUSR1)
                sent += 1
                wait_for(lambda: len(self.lines()) == sent + 1, f"signal {sent} has come")
        self.assertEqual(traces(p.pid), [])

    def test_handlers(self):
        """A signal that comes while it is stopped ends its call, as at any other time."""
        env = self.only_precopy()
        for call in ("suspend", "poll", "epoll"):
            p = self.start(PROGRAM, "handle", self.folder / "state", call)
            wait_for(lambda: self.state() == 1, "it runs")
            sent = 0
            for _ in range(3):
                d = subprocess.Popen([command.BIN, "image", "dump", "-q", "--pid", str(p.pid), self.store, "a"], env=env, cwd=self.folder, stderr=subprocess.DEVNULL)
                while d.poll() is None:
                    os.kill(p.pid, signal.SIGUSR1)
                    sent += 1
                    end = time.time() + PATIENCE
                    while len(self.lines()) < sent:  # without a rest: the moment that counts is short
                        self.assertLess(time.time(), end, f"signal {sent} does not end {call}")
            self.assertEqual(self.lines(), [str(i + 1) for i in range(sent)])
            self.end(p)
            (self.folder / "out").unlink()
            (self.folder / "state").unlink()

    def test_stop_and_go(self):
        """It is stopped and continued all the time by somebody else: in the end it is as that wants it."""
        p = self.begin("writers")
        env = self.only_precopy()
        for i in range(8):
            d = subprocess.Popen([command.BIN, "image", "dump", "-q", "--pid", str(p.pid), self.store, "a"], env=env, cwd=self.folder, stderr=subprocess.DEVNULL)
            while d.poll() is None:
                os.kill(p.pid, signal.SIGSTOP)
                os.kill(p.pid, signal.SIGCONT)
            if i % 2:
                self.goes_on()
            else:
                os.kill(p.pid, signal.SIGSTOP)
                wait_for(lambda: status(p.pid, "State").startswith("T"), "it is stopped")
                os.kill(p.pid, signal.SIGCONT)
        self.goes_on()

    def test_killed(self):
        """The command dies at any moment: nothing of it is left."""
        p = self.begin("writers")
        for i in range(12):
            d = subprocess.Popen([command.BIN, "image", "dump", "-q", "--leave-running", "--pid", str(p.pid), self.store, "a"], env=self.env, cwd=self.folder,
                                 stderr=subprocess.DEVNULL)
            end = time.time() + i * 0.012
            while time.time() < end or (i % 3 == 0 and time.time() < end + 5 and not traces(p.pid) and d.poll() is None):
                time.sleep(0.001)
            d.kill()
            d.wait()
            wait_for(lambda: not strays(self.folder), "criu has ended")
            wait_for(lambda: not traces(p.pid), "nothing is left")
            wait_for(lambda: status(p.pid, "TracerPid") == "0", "it is let go")
            self.goes_on()
        self.dump(p, check=True)
        p.wait(PATIENCE)
        self.restore_and_end(p, "a")


if __name__ == "__main__":
    command.main_with_images("precopy_program.c")
