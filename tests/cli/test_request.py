#!/usr/bin/env python3
"""varve request: the signal reaches those who listen, and nobody else."""
import os
import pathlib
import subprocess
import sys
import time
import unittest

import command

LISTENER = """
import signal, sys
signal.signal(signal.%s, lambda *a: print("asked", flush=True))
print("ready", flush=True)
for line in sys.stdin: pass
"""


class Request(command.Case):
    def start(self, program, **more):
        p = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more)
        self.addCleanup(self.stop, p)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def stop(self, p):
        """What it still had to say."""
        if p.stdin.closed:
            return ""
        p.stdin.close()
        out = p.stdout.read()
        p.wait()
        p.stdout.close()
        return out

    def test_asked(self):
        p, q = self.start(LISTENER % "SIGUSR1"), self.start(LISTENER % "SIGUSR1")
        self.assertIn(f"process {p.pid}", self.varve("request", p.pid))
        self.assertEqual(p.stdout.readline(), "asked\n")
        self.assertEqual(self.json("request", p.pid, q.pid), {"signal": "USR1", "asked": [p.pid, q.pid]})
        self.assertEqual((p.stdout.readline(), q.stdout.readline()), ("asked\n", "asked\n"))
        self.assertEqual(self.varve("request", "-q", p.pid), "")
        self.assertEqual(p.stdout.readline(), "asked\n")
        self.assertEqual((self.stop(p), self.stop(q), p.returncode, q.returncode), ("", "", 0, 0))

    def test_signal(self):
        p = self.start(LISTENER % "SIGUSR2")
        self.varve("request", p.pid, "--signal", "USR2")
        self.assertEqual(p.stdout.readline(), "asked\n")
        self.varve("request", p.pid, "-o", "signal=USR2")
        self.assertEqual(p.stdout.readline(), "asked\n")
        self.varve("request", p.pid, env={"VARVE_SIGNAL": "USR2"})
        self.assertEqual(p.stdout.readline(), "asked\n")
        self.assertIn("SIGUSR1", self.fails("request", p.pid))
        self.assertIn("--signal", self.fails("request", p.pid, "-o", "signal=none"))
        for bad in "none", "HUP", "usr1", "", "9":
            self.assertIn("USR1 or USR2", self.fails("request", p.pid, f"--signal={bad}"))
        self.assertEqual((self.stop(p), p.returncode), ("", 0))

    def test_does_not_listen(self):
        """Neither one that would be ended by the signal, nor one that ignores it; and then nobody is asked."""
        deaf = self.start("import sys; print('ready', flush=True); sys.stdin.read()")
        ignores = self.start("import signal, sys; signal.signal(signal.SIGUSR1, signal.SIG_IGN)\n"
                             "print('ready', flush=True); sys.stdin.read()")
        p = self.start(LISTENER % "SIGUSR1")
        for other in deaf, ignores:
            self.assertIn("signal=USR1", self.fails("request", p.pid, other.pid))
        self.assertEqual(self.json("request", deaf.pid, status=2)["code"], -1)
        self.assertEqual((self.stop(p), self.stop(deaf), self.stop(ignores)), ("", "", ""))
        self.assertEqual((p.returncode, deaf.returncode, ignores.returncode), (0, 0, 0))

    def test_no_process(self):
        p = subprocess.Popen(["true"])
        while pathlib.Path(f"/proc/{p.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
            time.sleep(0.01)
        self.assertIn("has ended", self.fails("request", p.pid))
        p.wait()
        self.assertIn(f"no process {p.pid}", self.fails("request", p.pid))
        self.assertEqual(self.json("request", p.pid, status=2)["code"], -4)
        for bad in "0", "-1", "x", "12x", "", " 1", "99999999999", "4294967297", "18446744073709551617":
            self.assertIn("not the number of a process", self.fails("request", "--", bad))
        self.assertIn("usage: varve request", self.fails("request"))

    def test_thread(self):
        p = self.start("import threading, sys, signal, time; signal.signal(signal.SIGUSR1, lambda *a: None)\n"
                       "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
                       "print('ready', flush=True); sys.stdin.read()")
        thread = max(map(int, os.listdir(f"/proc/{p.pid}/task")))
        self.assertNotEqual(thread, p.pid)
        self.assertIn(f"thread of process {p.pid}", self.fails("request", thread))

    def test_another_users(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become somebody else")
        p = self.start(LISTENER % "SIGUSR1")
        r = subprocess.run([command.copy_for_others(self), "request", str(p.pid)], capture_output=True, text=True, cwd="/", env=self.env,
                           user=65534, group=65534, extra_groups=[])
        self.assertEqual(r.returncode, 2)
        self.assertIn("another user's", r.stderr)
        self.assertEqual(self.stop(p), "")


if __name__ == "__main__":
    unittest.main()
