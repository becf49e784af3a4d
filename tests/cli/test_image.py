#!/usr/bin/env python3
# ctest: TIMEOUT 360 COST 20
"""Processes are frozen, killed, and brought back by CRIU out of a store; then they go on where they were."""
import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

import command
from command import PATIENCE, is_alive, wait_for
from image_case import SHELL, Case, Programs, children, command_of, first_told, forget, has_told, kill

PROGRAM = None  # set in main
SLOW = """  /* reading of pages, which come in larger pieces than all else, takes its time */
#include <sys/syscall.h>
#include <unistd.h>
ssize_t read(int fd, void *to, size_t n)
{
	if (n > 64 << 10)
		usleep(20000);
	return syscall(SYS_read, fd, to, n);
}
"""


class Image(Programs):
    def check_counter(self, *words):
        """What it prints is 1, 2, 3, ..., however often it is killed and brought back."""
        p = self.start(*words)
        wait_for(lambda: len(self.lines()) > 5, "it prints")
        for epoch in (1, 2):
            self.assertEqual(self.dump(p)["epoch"], epoch)
            p.wait()
            n = len(self.lines())
            r = self.restore(p)
            wait_for(lambda: len(self.lines()) > n + 5, "it prints on")
            if epoch == 1:
                twin = p
                p = type("Old", (), {"pid": twin.pid, "wait": lambda self: r.wait()})()
        got = self.lines()
        self.assertEqual(got, [str(i + 1) for i in range(len(got))])
        os.kill(p.pid, signal.SIGKILL)
        self.assertEqual(r.wait(PATIENCE), 128 + signal.SIGKILL)

    def test_python(self):
        self.check_counter("/usr/bin/python3", "-c", "import time\nfor i in range(1, 10**9):\n print(i, flush=True); time.sleep(.01)")

    @unittest.skipUnless(shutil.which("perl"), "no perl")
    def test_perl(self):
        self.check_counter("perl", "-e", "$| = 1; for ($i = 1; ; $i++) { print \"$i\\n\"; select(undef, undef, undef, .01); }")

    @unittest.skipUnless(shutil.which("bc"), "no bc")
    def test_bc(self):
        # bc cannot sleep: it computes, and its output is that of every so many rounds
        self.file("loop.bc", b"i = 0\nwhile (1) { i = i + 1; for (j = 0; j < 20000; j++) { k = j * j }; i }\n")
        self.check_counter("bc", "-q", self.folder / "loop.bc")

    @unittest.skipUnless(shutil.which("vim") and shutil.which("tmux"), "no vim, or no tmux")
    def test_vim_in_tmux(self):
        """An editor on a terminal that is saved with it: the server of tmux and all below it."""
        tmux = ["tmux", "-S", str(self.folder / "tmux")]
        env = {**self.env, "TERM": "xterm"}
        env.pop("TMUX", None)

        def keys(*words):
            subprocess.run([*tmux, "send-keys", *words], check=True, env=env)

        subprocess.run([*tmux, "new-session", "-d", "-x", "80", "-y", "24", "vim -u NONE -i NONE note"], check=True, env=env, cwd=self.folder)
        pid = int(subprocess.run([*tmux, "display", "-p", "#{pid}"], check=True, env=env, capture_output=True).stdout)
        self.addCleanup(self.kill_pid, pid)
        wait_for(lambda: "~" in subprocess.run([*tmux, "capture-pane", "-p"], env=env, capture_output=True, text=True).stdout, "vim is there")
        keys("ibefore", "Escape")
        wait_for(lambda: "before" in subprocess.run([*tmux, "capture-pane", "-p"], env=env, capture_output=True, text=True).stdout, "it has the word")
        server = type("Server", (), {"pid": pid, "wait": lambda self: wait_for(lambda: not is_alive(pid), "it ends")})()
        self.assertEqual([f for f in self.json("image", "check", "--pid", pid)["findings"] if f["grave"]], [])
        self.dump(server)
        self.restore(server)
        keys("a and after", "Escape", ":wq", "Enter")
        wait_for(lambda: (self.folder / "note").exists() and (self.folder / "note").read_text() == "before and after\n", "vim has written")

    @unittest.skipUnless(shutil.which("tmux"), "no tmux")
    def test_terminal_is_taken(self):
        """Somebody else has a terminal of that number meanwhile: the restore fails and changes nothing, or is told to use a devpts of its own."""
        tmux = ["tmux", "-S", str(self.folder / "tmux")]
        env = {**self.env, "TERM": "xterm"}
        env.pop("TMUX", None)

        def ask(*words):
            return subprocess.run([*tmux, *words], check=True, env=env, capture_output=True, text=True).stdout.strip()

        def echoes(word):
            ask("send-keys", word, "Enter")
            wait_for(lambda: ask("capture-pane", "-p").count(word) == 2, "cat has repeated it")

        def take_terminals():
            """All up to that number."""
            while True:
                ends = os.openpty()
                self.addCleanup(lambda: [os.close(fd) for fd in ends])
                if int(os.ttyname(ends[1]).rsplit("/", 1)[1]) >= number:
                    return

        def files():
            return sorted((f.name, f.stat().st_ino) for f in self.folder.iterdir() if f.is_socket())

        ask("new-session", "-d", "-x", "80", "-y", "24", "cat")
        pid, number = int(ask("display", "-p", "#{pid}")), int(ask("display", "-p", "#{pane_tty}").rsplit("/", 1)[1])
        self.addCleanup(lambda: [kill(child) for child in (*children(pid), pid)] if is_alive(pid) else None)
        server = type("Server", (), {"pid": pid, "wait": lambda self: wait_for(lambda: not is_alive(pid), "it ends")})()
        echoes("first")
        self.dump(server)
        take_terminals()
        before = files()
        self.assertEqual([name for name, _ in before], ["tmux"])
        for more in ((), ("--lazy",)):
            said = self.fails("image", "restore", *more, self.store, "a")
            self.assertIn("another program has a terminal of the number that it had: add --private-pts, or end that program", said)
            self.assertEqual(files(), before)
        self.assertIn("give one of them", self.fails("image", "restore", "--shell-job", "--private-pts", self.store, "a"))
        for word in ("second", "third"):
            self.restore(server, "--private-pts")
            self.assertEqual([name for name, _ in files()], ["tmux"])
            self.assertIn("first", ask("capture-pane", "-p"))
            echoes(word)
            self.assertEqual(self.check_finds(pid), [])
            self.dump(server)

    def check_finds(self, pid):
        return [f["text"] for f in self.json("image", "check", "--pid", pid)["findings"] if f["grave"]]

    def check_program(self, *words):
        p = self.start(PROGRAM, words[0], self.folder / "state", *words[1:])
        self.goes_on()
        first = self.dump(p, "--leave-running")
        self.assertIsNone(p.poll())
        self.goes_on()
        second = self.dump(p)
        self.assertEqual(p.wait(PATIENCE), -signal.SIGKILL)
        at = self.state()
        r = self.restore(p)
        self.goes_on()
        self.assertGreater(self.state(), at)
        os.kill(p.pid, signal.SIGKILL)
        self.assertEqual(r.wait(PATIENCE), 128 + signal.SIGKILL)
        return p, first, second

    def test_threads(self):
        self.check_program("threads")

    def test_family(self):
        self.check_program("family")

    def test_grow(self):
        """The second dump stores what has changed, and an older epoch can be restored as well."""
        p, first, second = self.check_program("grow", 8)
        self.assertGreater(first["bytes_new"], 8 << 20)
        grown = second["bytes"] - first["bytes"]  # by noise; on a slow machine there is much time for it
        self.assertGreater(grown, 0)
        self.assertLess(second["bytes_layer"], first["bytes_layer"] / 4 + grown * 1.2)
        at = self.state()
        forget(self.folder / "state")
        self.restore(p, spec="a@1")
        self.assertLess(first_told(self.folder / "state"), at)
        self.goes_on()
        self.assertGreater(first["frozen_seconds"], 0)

    def check_one_moment(self, *more):
        """The program finds pages that do not go together in its next step, which is within milliseconds."""
        p = self.start(PROGRAM, "churn", self.folder / "state", 24)
        self.goes_on()
        for _ in range(3):
            self.dump(p, "--leave-running", *more)
            self.goes_on()
        self.env.pop("LD_PRELOAD", None)
        p.kill()
        for epoch in (1, 2, 3):
            r = self.restore(p, spec=f"a@{epoch}")
            self.goes_on()
            os.kill(p.pid, signal.SIGKILL)
            r.wait(PATIENCE)

    def test_one_moment(self):
        """A process that runs on changes its pages while they may still be in a pipe: the image is of one moment nevertheless."""
        self.check_one_moment()

    def test_one_moment_in_little_memory(self):
        self.check_one_moment("--memory", "2M")

    def test_one_moment_read_slowly(self):
        """Whoever lets the process go before its pages are read has time to regret it."""
        shim = self.folder / "slow.so"
        subprocess.run([os.environ["CC"], "-shared", "-fPIC", "-x", "c", "-", "-o", shim], input=SLOW, text=True, check=True)
        self.env["LD_PRELOAD"] = str(shim)
        if self.run_raw("--version").returncode:
            self.skipTest("this varve cannot be started with a library before its own")
        self.check_one_moment()

    def test_store_is_private_and_whole(self):
        p = self.start(PROGRAM, "count", 100000)
        self.dump(p, "--leave-running")
        for path in [self.store, *self.store.rglob("*")]:
            self.assertEqual(path.stat().st_mode & 0o077, 0, path)
        self.varve("verify", self.store)
        self.varve("unpack", "-C", self.folder / "images", "-q", self.store, "a")
        names = {path.name for path in (self.folder / "images").iterdir()}
        self.assertTrue({"inventory.img", "pstree.img", "pages-1.img", f"core-{p.pid}.img"} <= names, names)
        self.assertEqual((self.folder / "images" / "pages-1.img").stat().st_size % 4096, 0)
        self.dump(p, "--leave-running", "--refuse-public")
        self.store.chmod(0o755)
        self.assertIn("chmod o-rwx", self.fails("image", "dump", "--leave-running", "--pid", p.pid, "--refuse-public", self.store, "a"))

    def test_damage_is_refused(self):
        p = self.start(PROGRAM, "grow", self.folder / "state", 40)
        self.goes_on()
        self.dump(p)
        p.wait()
        layer = self.layer(1, "a")
        good = layer.read_bytes()
        for at in (len(good) // 4, len(good) // 2, len(good) * 3 // 4):
            self.flip(layer, at)
            said = self.fails("image", "restore", self.store, "a", status=1)
            self.assertIn("nothing was restored", said)
            self.assertIn("epoch 1", said)
            self.assertFalse(is_alive(p.pid))
            said = self.fails("image", "restore", "--memory", "64K", self.store, "a", status=1)
            self.assertIn("nothing was restored", said)
            layer.write_bytes(good)
        r = self.restore(p)
        self.goes_on()
        os.kill(p.pid, signal.SIGKILL)
        r.wait(PATIENCE)
        self.restore(p, "--memory", "64K")
        self.goes_on(steps=20)

    def test_damage_has_a_way_out(self):
        """The newest epoch is damaged: the message names one that is not, or says that there is none."""
        p = self.start(PROGRAM, "churn", self.folder / "state", 2)
        for _ in range(3):
            self.goes_on()
            self.dump(p, "--leave-running", "-o", "codec=none")
        self.end(p)
        for epoch, words in ((3, "'a@2' is intact"), (2, "'a@1' is intact"), (1, "no epoch before it is intact")):
            layer = self.layer(epoch, "a")
            self.flip(layer, layer.stat().st_size // 2)
            for spec in ("a", f"a@{epoch}"):
                said = self.fails("image", "restore", self.store, spec, status=1)
                self.assertIn(words if spec != "a" else "intact", said)
                self.assertIn("'varve verify'", said)
            self.assertIn("intact", self.fails("image", "run", "--resume", "-q", self.store, "a", "--", "true", status=1))
        self.flip(self.layer(1, "a"), self.layer(1, "a").stat().st_size // 2)
        self.assertIn("'a@1' is intact", self.fails("image", "restore", self.store, "a", status=1))
        self.restore(p, spec="a@1")
        self.goes_on()

    def test_what_the_killed_leave_behind(self):
        """A folder of criu's is removed by the next one, if nobody holds it any more. Others are left alone."""
        p = self.start(PROGRAM, "grow", self.folder / "state", 32)
        self.goes_on()
        d = subprocess.Popen([command.BIN, "image", "dump", "-q", "--pid", str(p.pid), self.store, "a"], env=self.env, cwd=self.folder)
        left = wait_for(lambda: list(self.folder.glob("varve-criu-*/post-dump")), "it has made its folder")[0].parent
        d.kill()
        d.wait()
        self.goes_on()
        held, other, link = (self.folder / f"varve-criu-{x}" for x in ("abcdef", "other folder", "linked"))
        held.mkdir(mode=0o700)
        other.mkdir(mode=0o700)
        (self.folder / "far").mkdir(mode=0o700)
        (self.folder / "far" / "kept").touch()
        link.symlink_to("far")
        lock = os.open(held, os.O_RDONLY)
        self.addCleanup(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX)
        self.dump(p, "--leave-running", lineage="b")
        self.assertTrue(left.exists())  # it may still be in use
        for path in (left, held, other, self.folder / "far"):
            os.utime(path, (1, 1))
        self.dump(p, "--leave-running", lineage="b")
        self.assertFalse(left.exists())
        self.assertTrue(held.exists() and other.exists() and (link / "kept").exists())

    def test_nothing_is_left_of_a_first_dump_that_failed(self):
        p = self.start(PROGRAM, "grow", self.folder / "state", 16)
        self.goes_on()
        self.dump(p, "--leave-running", lineage="b")
        for words in (("a", "--", "--no-such-option"), ("b", "--", "--no-such-option")):
            self.fails("image", "dump", "--leave-running", "--pid", p.pid, self.store, *words)
        subprocess.run(["sh", "-c", 'ulimit -f 64; trap "" XFSZ; exec "$@"', "sh", command.BIN, "image", "dump", "--pid", str(p.pid), self.store, "a", "-o",
                        "codec=none"], capture_output=True, env=self.env, cwd=self.folder)
        self.varve("image", "run", "-q", self.store, "c", "--", "true")
        self.assertEqual([x["lineage"] for x in self.json("ls", self.store)["lineages"]], ["b"])
        self.assertEqual([x.name for x in self.store.rglob("*.layer") if x.parts[-3] == "a"], [])
        self.dump(p, "--leave-running")
        self.varve("verify", self.store)

    def test_options_of_other_verbs(self):
        p = self.start(PROGRAM, "count", 100000)
        for words, said in (
            (("dump", "--pid", p.pid, "--lazy"), "--lazy is for restore"),
            (("dump", "--pid", p.pid, "-d"), "--detach is for restore"),
            (("dump", "--pid", p.pid, "--every", "3"), "--every is for run"),
            (("restore", "--leave-running"), "--leave-running is for dump"),
            (("restore", "--pid", 1), "--pid is for dump, check"),
            (("restore", "--segments", "all=pages"), "--segments is for dump, run"),
            (("run", "--shell-job"), "--shell-job is for dump, restore, check"),
        ):
            self.assertIn(said, self.fails("image", *words, self.store, "a", *(("--", "true") if words[0] == "run" else ())))
        self.assertIn("--memory is for dump, restore, run", self.fails("image", "check", "--memory", "1M"))
        self.assertFalse(self.store.exists())

    def test_killed_dump(self):
        """However far a dump is when the command is killed: the program runs on, and the store is as it was."""
        p = self.start(PROGRAM, "grow", self.folder / "state", 64)
        self.goes_on()
        start = time.time()
        self.dump(p, "--leave-running", lineage="b")
        whole = time.time() - start
        killed = 0
        for part in (0, 0.2, 0.35, 0.5, 0.65, 0.8):  # the first hits, whatever else the machine does
            d = subprocess.Popen([command.BIN, "image", "dump", "-q", "--pid", str(p.pid), self.store, "a"], env=self.env, cwd=self.folder)
            time.sleep(part * whole)
            d.kill()
            if d.wait() == 0 or self.commit(1, "a").exists():
                break  # faster than before
            killed += 1
            self.goes_on()
            self.assertIsNone(p.poll())
        self.assertGreater(killed, 0)
        self.varve("verify", self.store)
        if p.poll() is None:
            self.dump(p)
        self.restore(p)
        self.goes_on()

    def test_killed_before_the_commit(self):
        """All images are written, and criu waits in its hook for the epoch to be durable, when the command is killed."""
        p = self.start(PROGRAM, "grow", self.folder / "state", 64)
        self.goes_on()
        d = subprocess.Popen([command.BIN, "image", "dump", "-q", "--pid", str(p.pid), self.store, "a"], env=self.env, cwd=self.folder)

        def in_hook():
            words = [command_of(h) for c in children(d.pid) for h in children(c)]
            return d.poll() is not None or any("hook" in w for w in words)

        wait_for(in_hook, "criu calls the hook")
        d.kill()
        if d.wait() == 0 or self.commit(1, "a").exists():
            self.skipTest("it was too fast")
        self.goes_on()
        self.varve("verify", self.store)
        self.dump(p)
        self.restore(p)
        self.goes_on()

    def test_full_store(self):
        """Nothing can be written: the program runs on."""
        p = self.start(PROGRAM, "grow", self.folder / "state", 16)
        self.goes_on()
        self.dump(p, "--leave-running")
        before = sorted(path.name for path in self.store.rglob("*"))
        limited = subprocess.run(["sh", "-c", 'ulimit -f 64; trap "" XFSZ; exec "$@"', "sh", command.BIN, "image", "dump", "--pid", str(p.pid),
                                  self.store, "b", "-o", "codec=none"], capture_output=True, text=True, env=self.env, cwd=self.folder)
        self.assertEqual(limited.returncode, 2, limited.stdout)
        self.goes_on()
        self.assertEqual([n for n in sorted(path.name for path in self.store.rglob("*")) if n.endswith(".commit")],
                         [n for n in before if n.endswith(".commit")])

    def test_pid_is_taken(self):
        p = self.start(PROGRAM, "count", 100000)
        self.dump(p, "--leave-running")
        said = self.fails("image", "restore", self.store, "a")
        self.assertIn(f"{p.pid}", said)
        self.assertIn("taken", said)
        self.assertIsNone(p.poll())

    def test_changed_file(self):
        self.file("data", b"x" * 100)
        p = self.start("/usr/bin/python3", "-c", "import time\nf = open('data', 'r+')\nfor i in range(10**6):\n print(i, flush=True); time.sleep(.05)")
        wait_for(self.lines, "it prints")
        self.dump(p)
        p.wait()
        self.file("data", b"x" * 101)
        self.assertIn("was changed", self.fails("image", "restore", self.store, "a"))
        (self.folder / "data").unlink()
        self.assertIn("is not here", self.fails("image", "restore", self.store, "a"))
        self.file("data", b"x" * 100)
        self.restore(p)

    def test_mistakes(self):
        p = self.start(PROGRAM, "count", 100000)
        self.assertIn("which process", self.fails("image", "dump", self.store, "a"))
        self.assertIn("no process", self.fails("image", "dump", "--pid", 2 ** 22 + 1, self.store, "a"))
        self.assertIn("cannot save itself", self.fails("image", "dump", "--pid", os.getpid(), self.store, "a"))
        self.assertFalse(self.store.exists())
        self.assertIn("usage", self.fails("image", "restore", self.store))
        self.assertIn("none of", self.fails("image", "freeze"))
        self.file("f", b"no image")
        self.varve("pack", "-q", self.store, "files", "f")
        self.assertIn("not the image of a process", self.fails("image", "restore", self.store, "files"))
        shell = self.start(*SHELL, PROGRAM, "count", 100000)
        job = wait_for(lambda: children(shell.pid), "the shell has started it")[0]
        self.addCleanup(self.kill_pid, job)
        self.assertIn("--shell-job", self.fails("image", "dump", "--pid", job, self.store, "a"))
        self.assertTrue(is_alive(job))
        p = self.run_raw("image", "check", env={"VARVE_CRIU": str(self.folder / "none")})
        self.assertEqual(p.returncode, 2)
        p = self.run_raw("image", "check", env={"VARVE_CRIU": shutil.which("true")})
        self.assertIn(b"version", p.stderr)

    def test_check(self):
        self.assertEqual(self.json("image", "check")["grave"], 0)
        p = self.start("/usr/bin/python3", "-c", "import socket, time\ns = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()\nprint(1, flush=True)\ntime.sleep(99)")
        wait_for(self.lines, "it listens")
        findings = json.loads(self.run_raw("image", "check", "--pid", p.pid, "--json").stdout)["findings"]
        self.assertTrue([f for f in findings if "(TCP)" in f["text"] and f"process {p.pid}" in f["text"]], findings)


class Run(Case):
    def start_run(self, *words, options=()):
        p = subprocess.Popen([command.BIN, "image", "run", *options, self.store, "a", "--", *map(str, words)], stderr=subprocess.PIPE, text=True,
                             env=self.env, cwd=self.folder)
        self.addCleanup(self.end_run, p)
        self.pid = int(self.hear(p, "started").split()[2])
        return p

    def end_run(self, p):
        if p.poll() is None:
            p.send_signal(signal.SIGKILL)
            if is_alive(self.pid):
                kill(self.pid)
        p.wait()
        p.stderr.close()

    def hear(self, p, words):
        """What it says, up to the line that has these words."""
        for line in p.stderr:
            if words in line:
                return line
        self.fail(f"it never said '{words}'")

    def lines(self, name="a.out"):
        return (self.folder / name).read_text().splitlines()

    def test_restarts(self):
        p = self.start_run(PROGRAM, "count", 100000, options=("--every", "0.3", "--max-restarts", "2"))
        for _ in range(2):
            self.hear(p, "epoch ")
            os.kill(self.pid, signal.SIGKILL)
            self.hear(p, "killed by signal 9")
            self.assertIn(f"process {self.pid} restored from epoch", self.hear(p, "restored"))
        self.hear(p, "epoch ")
        os.kill(self.pid, signal.SIGKILL)
        self.hear(p, "left as it is")
        self.assertEqual(p.wait(PATIENCE), 128 + signal.SIGKILL)
        got = [int(x) for x in self.lines()]
        self.assertTrue(all(b == a + 1 or b <= a for a, b in zip(got, got[1:])), got)
        self.assertLessEqual(sum(b <= a for a, b in zip(got, got[1:])), 2)
        self.assertNotIn(1, got[1:])  # never from its start

    def test_children_left_behind(self):
        """Only the parent dies: its children have numbers that the restore needs."""
        state = self.folder / "state"
        p = self.start_run(PROGRAM, "family", state)
        wait_for(lambda: has_told(state) and int(state.read_text().split()[0]) > 3, "it works")
        p.send_signal(signal.SIGUSR1)
        self.hear(p, "epoch 1")
        os.kill(self.pid, signal.SIGKILL)
        self.hear(p, f"process {self.pid} restored")
        last = state.read_text()
        wait_for(lambda: state.read_text() != last, "it goes on")
        first = int(state.read_text().split()[0])
        wait_for(lambda: int(state.read_text().split()[0]) > first + 5, "it goes on")
        p.send_signal(signal.SIGTERM)
        p.wait(PATIENCE)

    def test_signals(self):
        p = self.start_run(PROGRAM, "count", 100000)
        p.send_signal(signal.SIGUSR1)
        self.hear(p, "epoch 1")
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(PATIENCE), 128 + signal.SIGTERM)
        self.assertFalse(is_alive(self.pid))

    def test_memory_and_segments(self):
        p = self.start_run(PROGRAM, "count", 100000, options=("--memory", "2MiB", "--segments", "all=pages+deflate"))
        p.send_signal(signal.SIGUSR1)
        self.assertRegex(self.hear(p, "epoch 1"), r"epoch 1: [0-9.]+ [KM]iB of memory, layer of [0-9.]+ KiB, frozen for [0-9.]+ m?s")
        os.kill(self.pid, signal.SIGKILL)
        self.hear(p, "restored from epoch 1")
        p.send_signal(signal.SIGTERM)
        p.wait(PATIENCE)
        for words in (("--memory", "much"), ("--segments", "heap=cubes")):
            said = self.run_raw("image", "run", *words, self.store, "b", "--", "true")
            self.assertEqual(said.returncode, 2)
            self.assertIn(words[1].split("=")[-1].encode(), said.stderr)

    def test_before_the_first_epoch_it_starts_again(self):
        p = self.start_run(PROGRAM, "count", 5, options=("--max-restarts", "1"))
        self.hear(p, "status 3")
        self.hear(p, "started")
        self.hear(p, "status 3")
        self.assertEqual(p.wait(PATIENCE), 3)
        self.assertEqual(self.lines(), [str(i) for i in (1, 2, 3, 4, 5)] * 2)

    def test_resume(self):
        p = self.start_run(PROGRAM, "count", 100000, options=("--output", "log"))
        p.send_signal(signal.SIGUSR1)
        self.hear(p, "epoch 1")
        p.send_signal(signal.SIGTERM)
        p.wait(PATIENCE)
        n = len(self.lines("log"))
        q = subprocess.Popen([command.BIN, "image", "run", "--resume", "--output", "log", self.store, "a", "--", PROGRAM, "count", "100000"],
                             stderr=subprocess.PIPE, text=True, env=self.env, cwd=self.folder)
        self.addCleanup(self.end_run, q)
        self.hear(q, f"process {self.pid} restored from epoch 1")
        wait_for(lambda: len(self.lines("log")) > n + 3, "it goes on")
        self.assertEqual(self.lines("log").count("1"), 1)


if __name__ == "__main__":
    command.main_with_images("image_program.c")
