#!/usr/bin/env python3
# ctest: TIMEOUT 180 PROCESSORS 2
"""What 'varve image check' says of a process in advance is what 'varve image dump' comes to; and whoever is refused is told what to do."""
import json
import os
import pathlib
import shutil
import subprocess
import unittest

import command
from command import is_alive, wait_for
from image_case import SHELL, Case, children, links_of

PYTHON = "/usr/bin/python3"
WAIT = "\nprint(1, flush=True)\ntime.sleep(99)"
DELETED = "f = open('deleted', 'w+b'); f.write(bytes(3 << 20)); f.flush(); os.unlink('deleted')"
SYSV = "l = ctypes.CDLL(None); l.shmat.restype = ctypes.c_void_p\ni = l.shmget(0, 1 << 16, 0o1600); l.shmat(i, None, 0); l.shmctl(i, 0, None)"


class Check(Case):
    def start(self, text, *before):
        """A Python that has done something and waits."""
        (self.folder / "out").unlink(missing_ok=True)
        with open(self.folder / "out", "ab") as out:
            p = subprocess.Popen([*before, PYTHON, "-c", "import ctypes, fcntl, mmap, os, socket, struct, sys, time\n" + text + WAIT], stdin=subprocess.DEVNULL,
                                 stdout=out, stderr=out, start_new_session=True, cwd=self.folder)
        self.addCleanup(self.end, p)
        wait_for(lambda: (self.folder / "out").read_text().startswith("1") or p.poll() is not None, "it waits")
        if p.poll() is not None:
            self.skipTest(f"this cannot be had here: {(self.folder / 'out').read_text().splitlines()[-1:]}")
        return p

    def end(self, p):
        for child in children(p.pid) if p.poll() is None else []:
            os.kill(child, 9)
        p.kill()
        p.wait()

    def check(self, pid, *more, env={}):
        p = self.run_raw("image", "check", "--json", "--pid", pid, *more, env=env)
        self.assertIn(p.returncode, (0, 1), p.stdout + p.stderr)
        return json.loads(p.stdout)

    def compare(self, pid, *more, words=None, env={}):
        """words: it is refused, and these are in what is said. None: it is saved."""
        found = self.check(pid, *more, env=env)
        grave = [f["text"] for f in found["findings"] if f["grave"]]
        options, criu = (more[:more.index("--")], more[more.index("--"):]) if "--" in more else (more, ())
        lineage = "refused" if words else "saved"
        d = self.run_raw("image", "dump", "-q", "--leave-running", "--pid", pid, *options, self.store, lineage, *criu, env=env)
        said = d.stderr.decode()
        self.assertTrue(is_alive(pid))
        if words is None:
            self.assertEqual((grave, said), ([], ""))
        else:
            self.assertEqual(d.returncode, 2, grave)
            self.assertIn(words, said)
            self.assertTrue([text for text in grave if words in text], grave)
            self.assertFalse((self.store / lineage).exists())  # nothing has come of it, and nothing is left

    def refused(self, text, words, *before):
        p = self.start(text, *before)
        self.compare(p.pid, words=words)
        return p.pid

    def saved(self, text, *before):
        self.compare(self.start(text, *before).pid)

    def test_plain(self):
        self.saved("")
        self.saved("a = socket.socketpair()")
        self.saved("a = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); a.bind((0, 0))")

    def test_hidden_from_children(self):
        """It is saved, but what criu does not keep is told."""
        p = self.start("m = mmap.mmap(-1, 1 << 16, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS); m.madvise(18)")
        said = [f["text"] for f in self.check(p.pid)["findings"] if not f["grave"]]
        self.assertTrue([text for text in said if f"process {p.pid} has memory that its children do not see (MADV_WIPEONFORK)" in text], said)
        self.compare(p.pid)
        self.assertNotIn("WIPEONFORK", str(self.check(self.start("").pid)))

    def test_network(self):
        """Whether they can be saved depends on kernel and criu; but the two agree."""
        for kind in ("SOCK_STREAM", "SOCK_DGRAM"):
            p = self.start(f"a = socket.socket(socket.AF_INET, socket.{kind}); a.bind(('127.0.0.1', 0))")
            refused = self.check(p.pid)["grave"]
            self.compare(p.pid, words="is a network socket" if refused else None)
        p = self.start("a = socket.socket(40, socket.SOCK_STREAM)")
        self.compare(p.pid, words="that criu does not know (AF_VSOCK)")

    def test_sysv(self):
        self.refused(SYSV, "unshare --ipc")
        self.saved(SYSV, "unshare", "--ipc")

    def test_memfd(self):
        self.saved("f = os.memfd_create('x'); os.write(f, bytes(3 << 20))")

    def test_deleted(self):
        pid = self.refused(DELETED, "--ghost-limit 3145728")
        self.compare(pid, "--", "--ghost-limit", "1M", words="--ghost-limit 3145728")
        self.compare(pid, "--", "--ghost-limit", "3145728")
        self.compare(pid, "--", "--ghost-limit=4M")

    def test_deleted_mapping(self):
        self.refused(DELETED + "\nl = ctypes.CDLL(None); l.mmap(None, ctypes.c_size_t(3 << 20), 3, 1, f.fileno(), ctypes.c_long(0)); f.close()", "--ghost-limit 3145728")

    def test_deleted_little(self):
        self.saved(DELETED.replace("3 << 20", "3 << 10"))

    def test_session(self):
        job = children(self.start("", *SHELL).pid)[0]
        self.compare(job, words="--shell-job")
        self.compare(job, "--shell-job")

    def test_terminal(self):
        p = self.start("m, s = os.openpty()\nif os.fork() == 0:\n os.setsid(); os.close(m); os.dup2(s, 1); time.sleep(99)\nos.close(s)")
        child = wait_for(lambda: children(p.pid), "it has a child")[0]
        wait_for(lambda: links_of(child).get("1", "").startswith("/dev/pts/"), "that is on its terminal")
        self.compare(child, words="--shell-job")
        self.compare(child, "--shell-job")
        self.compare(p.pid)

    def test_locks(self):
        for i, lock in enumerate(("fcntl.flock(f, fcntl.LOCK_EX)", "fcntl.lockf(f, fcntl.LOCK_EX)", "fcntl.fcntl(f, 37, struct.pack('hhqqi4x', 1, 0, 0, 0, 0))")):
            with self.subTest(lock):
                pid = self.refused(f"f = open('locked{i}', 'w'); {lock}", "--file-locks")
                self.compare(pid, "--", "--file-locks")

    def test_pid_namespace(self):
        p = self.start("if os.fork() == 0:\n os.setsid(); time.sleep(99)", "unshare", "--pid", "--fork", "setsid")
        first = children(p.pid)[0]
        self.compare(first)
        self.compare(children(first)[0], words="name that one")
        self.compare(p.pid, words="does not save: name the first process in it")

    def test_session_of_another_namespace(self):
        p = self.start("", "unshare", "--pid", "--fork")
        first = children(p.pid)[0]
        self.compare(first, words="start it by setsid")
        self.compare(first, "--shell-job", words="start it by setsid")

    def test_mount_namespace(self):
        """What it was given is of the namespace of who has started it."""
        self.refused("", "of another mount namespace", "unshare", "--mount")

    def test_network_namespace(self):
        if shutil.which("iptables-restore", path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            self.skipTest("there is iptables-restore")
        self.refused("", "install", "unshare", "--net")

    def test_device(self):
        self.refused("f = open('/dev/loop-control')", "whose state criu cannot save")

    def test_anonymous(self):
        self.refused("f = os.pidfd_open(os.getpid())", "[pidfd]")

    def test_traced(self):
        p = self.start("")
        tracer = self.start(f"assert ctypes.CDLL(None).ptrace(0x4206, {p.pid}, 0, 0) == 0")
        self.compare(p.pid, words=f"traced by process {tracer.pid}")
        said = self.fails("image", "dump", "--pid", p.pid, self.store, "a")
        self.assertEqual(said, f"cannot save process {p.pid}: process {p.pid} is traced by process {tracer.pid} (a debugger, or another dump?): end that first, or wait for its end")
        self.end(tracer)
        self.compare(p.pid)

    def test_kernel_thread(self):
        if not pathlib.Path("/proc/2/stat").exists() or "(kthreadd)" not in pathlib.Path("/proc/2/stat").read_text():
            self.skipTest("the threads of the kernel are not seen here")
        self.assertIn("part of the kernel", self.fails("image", "dump", "--pid", 2, self.store, "a"))
        self.assertEqual(self.check(2)["grave"], 1)
        self.assertFalse(self.store.exists())

    def test_noexec(self):
        place = self.folder / "noexec"
        place.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec", "none", place], capture_output=True).returncode:
            self.skipTest("nothing can be mounted here")
        self.addCleanup(subprocess.run, ["umount", place], check=True)
        self.compare(self.start("").pid, words="set TMPDIR", env={"TMPDIR": str(place)})

    @unittest.skipUnless(shutil.which("capsh"), "no capsh")
    def test_capability(self):
        """Root, but not all that root may do."""
        p = self.start("")
        for name in ("cap_sys_admin", "cap_sys_ptrace", "cap_net_admin"):
            with self.subTest(name):
                less = ["capsh", f"--drop={name}", "--shell=/usr/bin/env", "--"]
                c = subprocess.run([*less, command.BIN, "image", "check", "--pid", str(p.pid)], capture_output=True, text=True, env=self.env)
                d = subprocess.run([*less, command.BIN, "image", "dump", "-q", "--pid", str(p.pid), self.store, "a"], capture_output=True, text=True, env=self.env)
                self.assertEqual((c.returncode, d.returncode), (1, 2), c.stdout + d.stderr)
                for said in (c.stdout, d.stderr):
                    self.assertIn(f"criu needs {name.upper()}, which root lacks here", said)
        self.compare(p.pid)

    @unittest.skipUnless(shutil.which("capsh") and shutil.which("setpriv"), "no capsh, or no setpriv")
    def test_other_user(self):
        """Whose limits root may not ask for, if it lacks one right more; its own it may."""
        p = self.start("", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        own = self.start("")
        less = ["capsh", "--drop=cap_sys_resource", "--shell=/usr/bin/env", "--", command.BIN, "image"]
        c = subprocess.run([*less, "check", "--pid", str(p.pid)], capture_output=True, text=True, env=self.env)
        d = subprocess.run([*less, "dump", "-q", "--pid", str(p.pid), self.store, "a"], capture_output=True, text=True, env=self.env)
        self.assertEqual((c.returncode, d.returncode), (1, 2), c.stdout + d.stderr)
        for said in (c.stdout, d.stderr):
            self.assertIn("another user's, and for that criu needs CAP_SYS_RESOURCE, which root lacks here", said)
        self.assertTrue(is_alive(p.pid))
        for verb in (["check", "--pid", str(own.pid)], ["dump", "-q", "--leave-running", "--pid", str(own.pid), self.store, "b"]):
            q = subprocess.run([*less, *verb], capture_output=True, text=True, env=self.env)
            self.assertEqual(q.returncode, 0, q.stdout + q.stderr)

    def test_try(self):
        """What cannot be seen from outside: criu is asked. The program stands still for a moment, and goes on."""
        p = self.start("a, b = socket.socketpair()\nif os.fork():\n b.close(); print(1, flush=True); time.sleep(99)\nos.setsid(); a.close()")
        child = wait_for(lambda: children(p.pid), "it has a child")[0]
        wait_for(lambda: (self.folder / "out").read_text() == "1\n1\n", "both wait")
        self.assertEqual(self.check(child)["grave"], 0)
        found = self.check(child, "--try")
        self.assertIn("save their common parent", " ".join(f["text"] for f in found["findings"] if f["grave"]))
        self.assertIn("save their common parent", self.fails("image", "dump", "--pid", child, self.store, "a"))
        self.assertTrue(is_alive(child))
        self.assertEqual(self.check(p.pid, "--try")["grave"], 0)
        self.assertIn("which process", self.fails("image", "check", "--try"))
        self.assertIn("no option of criu", self.fails("image", "check", self.store, "a"))


if __name__ == "__main__":
    command.main_with_images()
