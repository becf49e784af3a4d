#!/usr/bin/env python3
# ctest: TIMEOUT 240 COST 45
"""Programs that `varve run` looks after: they crash, are killed, stopped, signalled, and end with the right result."""
import ctypes
import json
import os
import pathlib
import platform
import pty
import select
import signal
import struct
import subprocess
import sys
import time
import unittest

import command
import run_case
from command import PATIENCE, is_alive, wait_for
from run_case import EACH, REAL, Case


class Life(Case):
    """What holds with the real library, too."""

    def test_crashes(self):
        p = self.start(self.program, 40, 20, "15=1:11", "30=1:-3", options=EACH)
        s = self.finish(p, result=40)
        self.assertEqual((s["event"], s["restarts"], s["status"]), ("summary", 2, 0))
        self.assertGreaterEqual(s["epochs"], 3)
        self.assertGreater(s["bytes_memory"], 0)
        self.assertGreater(s["bytes_layer"], 0)
        self.assertGreater(s["seconds_lost"], 0)
        self.assertEqual(self.words(p).count("restored"), 2)
        self.assertEqual(self.steps().count(1), 1)  # never from its start
        self.assertIn("signal 11", self.texts(p))
        self.assertIn("status 3", self.texts(p))

    def test_random_kills(self):
        """Killed whatever it does, it ends with the right result."""
        p = self.start(self.program, 300, 10, options=("--every", "0.05", "--retries", "6"))
        for delay in (0.15, 0.2, 0.1, 0.25, 0.05):
            self.hear(p, "durable")
            time.sleep(delay)
            if is_alive(p.pid_of_program):
                os.kill(p.pid_of_program, signal.SIGKILL)
        self.finish(p, result=300)

    def test_last_checkpoint(self):
        for number, sig, options in ((1, signal.SIGTERM, ()), (2, signal.SIGUSR1, ("--last",))):
            p = self.start(self.program, 10000, 20, options=("--every", "1h", *options))
            self.hear(p, "fresh" if number == 1 else "restored")
            n = len(self.steps())
            wait_for(lambda: len(self.steps()) > n + 2, "it works")
            p.send_signal(sig)
            self.hear(p, "last")
            self.hear(p, "durable", epoch=number)
            self.finish(p, status=128 + signal.SIGTERM)
            self.assertNotIn("restart", self.words(p))
            self.assertIn("the program ended, as asked: it was killed by signal 15 (Terminated)", self.texts(p))
        end = self.beyond()
        p = self.start(self.program, end, 0)
        self.hear(p, "restored", epoch=2)
        self.finish(p, result=end)

    def test_request(self):
        p = self.start(self.program, 10000, 20, options=("--every", "1h"))
        self.hear(p, "started")
        p.send_signal(signal.SIGUSR1)  # it may not have come to its first call
        self.hear(p, "durable", epoch=1)
        p.send_signal(signal.SIGUSR1)
        self.hear(p, "durable", epoch=2)
        p.send_signal(signal.SIGINT)
        self.finish(p, status=128 + signal.SIGINT)

    def test_killed_itself(self):
        p = self.start(self.program, 10000, 20, options=("--every", "0.1"))
        e = self.hear(p, "durable")
        p.kill()
        wait_for(lambda: not is_alive(p.pid_of_program), "the program is gone, too")
        end = self.beyond()
        q = self.start(self.program, end, 5, options=("--every", "0.1"))
        self.assertGreaterEqual(self.hear(q, "restored")["epoch"], e["epoch"])
        self.finish(q, result=end)

    def test_killed_itself_before_a_script(self):
        """What a shell has started is not our child, and goes with us all the same."""
        p = self.start("sh", "-c", f"{self.program} 10000 20; echo over", options=("--every", "0.1"))
        self.hear(p, "durable")
        p.kill()
        self.hear(p)  # up to the end: nobody has the pipe open any more
        self.assertNotIn("summary", self.words(p))
        end = self.beyond()
        q = self.start(self.program, end, 5)
        self.hear(q, "restored")
        self.finish(q, result=end)

    def test_script(self):
        """The shell between us and the program knows nothing of requests, and must not die of one."""
        p = self.start("sh", "-c", f"{self.program} 30 20 stays; s=$?; echo over; exit $s", options=("--every", "1h"))
        self.hear(p, "fresh")
        p.send_signal(signal.SIGUSR1)
        self.hear(p, "durable")
        self.let_go()
        self.hear(p)
        self.assertEqual(p.stdout.read(), "right after 30 steps\nover\n")
        self.assertEqual(p.wait(), 0)

    def test_ended(self):
        """What has ended well begins anew, what was told to end does not; an epoch can be asked for."""
        p = self.start(self.program, 20, 5, options=EACH)
        self.finish(p, result=20)
        n = max(e["epoch"] for e in p.heard if e["event"] == "durable")
        self.assertEqual((self.store / "a/ended").read_text(), f"{n}\n")
        p = self.start(self.program, 30, 0, "3=1:11", options=("--every", "1h"))  # dies before it has an epoch of its own
        self.hear(p, "anew", epoch=n)
        self.hear(p, "fresh")
        self.hear(p, "restart")
        self.hear(p, "fresh")
        self.finish(p, result=30)
        p = self.start(self.program, 40, 0, options=("--restart", n, "--every", "1h"))
        self.hear(p, "restored", epoch=n)
        self.finish(p, result=40)
        p = self.start(self.program, 10000, 20, options=EACH)
        e = self.hear(p, "durable")
        p.send_signal(signal.SIGINT)
        self.finish(p, status=128 + signal.SIGINT)
        end = self.beyond()
        p = self.start(self.program, end, 0, options=("--every", "1h"))
        self.assertGreaterEqual(self.hear(p, "restored")["epoch"], e["epoch"])
        self.finish(p, result=end)
        for text in "", "x\n", "99999999999999999999999999\n", "12":  # of somebody else
            (self.store / "a/ended").write_text(text)
            p = self.start(self.program, end, 0, options=("--every", "1h"))
            self.hear(p, "restored")
            self.finish(p, result=end)

    def test_other_program(self):
        """An epoch that is whole, of another program: nothing is tried again."""
        p = self.start(self.program, 20, 5, options=("--every", "0"))
        self.finish(p, result=20)
        n = max(e["epoch"] for e in p.heard if e["event"] == "durable")
        p = self.start(run_case.PLACE / "larger", 20, 5, options=("--restart", n))
        self.assertIn("epoch", self.hear(p, "refused")["text"])
        self.finish(p, status=76)
        self.assertIn("does not fit", self.texts(p))
        self.assertNotIn("restart", self.words(p))

    def test_packed_files(self):
        """An intact epoch of something else than a heap is not called damaged."""
        if self.LIBRARY == "stand-in.so":
            self.skipTest("a heap is needed")
        self.varve("pack", "-q", self.store, "a", self.file("data", b"x" * 1000))
        p = self.start(self.program, 20, 5)
        self.assertIn("holds no heap there", self.hear(p, "refused")["text"])
        self.finish(p, status=76)
        self.assertNotIn("damaged", self.texts(p))

    def test_damage(self):
        """An epoch that is damaged: the one before it."""
        p = self.start(self.program, 20, 5, options=("--every", "0"))
        self.finish(p, result=20)
        n = max(e["epoch"] for e in p.heard if e["event"] == "durable")
        layer = self.layer(n, "a")
        self.flip(layer, layer.stat().st_size // 2)
        p = self.start(self.program, 40, 5, options=("--restart", n, "--retries", 0))
        self.hear(p, "damaged", epoch=n)
        self.hear(p, "fallback", epoch=n - 1)
        self.hear(p, "restored", epoch=n - 1)
        self.finish(p, result=40)


@unittest.skipUnless(REAL.exists(), f"{REAL.name} is not built")
class RealLife(Life):
    def setUp(self):
        super().setUp()
        del self.env["VARVE_PRELOAD"]


class Watch(Case):
    def test_restart_none_and_epoch(self):
        self.finish(self.start(self.program, 10, 1, options=("--every", "0")), result=10)
        p = self.start(self.program, 10, 1, options=("--restart", "none"))
        self.hear(p, "fresh")
        self.finish(p, result=10)
        self.assertEqual(self.steps().count(1), 2)
        p = self.start(self.program, 10, 1, options=("--restart", 3))
        self.hear(p, "restored", epoch=3)
        self.finish(p, result=10)
        newest = self.json("ls", self.store, "a")["epochs"][-1]["epoch"]
        self.varve("label", self.store, "a@4", "here")
        for word, epoch in (("here", 4), ("-2", newest - 1)):
            p = self.start(self.program, 10, 1, options=("--restart", word, "--every", "1h"))
            self.hear(p, "restored", epoch=epoch)
            self.finish(p, result=10)
        self.assertIn("run: --restart there: lineage 'a' has no epoch with the label 'there'",
                      self.fails("run", "-s", self.store, "-l", "a", "--restart", "there", "--", self.program, 1, 1))
        self.assertIn("no epoch 9999", self.fails("run", "-s", self.store, "-l", "a", "--restart", "9999", "--", self.program, 1, 1))

    def test_late(self):
        """The last checkpoint takes too long, and the program does not hear that it is to end."""
        p = self.start(self.program, 1000, 20, "deaf", options=("--every", "1h", "--grace", "0.5"), env={"RUN_SLOW": "60000"})
        self.hear(p, "fresh")
        p.send_signal(signal.SIGTERM)
        self.hear(p, "late")
        self.hear(p, "killed")
        self.finish(p, status=128 + signal.SIGKILL)

    def test_impatience(self):
        """A second and a third SIGTERM wait for nothing."""
        p = self.start(self.program, 1000, 20, "deaf", options=("--every", "1h"), env={"RUN_SLOW": "60000"})
        self.hear(p, "fresh")
        p.send_signal(signal.SIGTERM)
        self.hear(p, "last")
        p.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        self.assertIsNone(p.poll())
        p.send_signal(signal.SIGTERM)
        self.finish(p, status=128 + signal.SIGKILL)

    def test_told_while_it_is_stopped(self):
        p = self.start(self.program, 1000, 20, options=("--every", "1h"))
        self.hear(p, "fresh")
        os.killpg(p.pid_of_program, signal.SIGSTOP)
        p.send_signal(signal.SIGTERM)
        self.hear(p, "durable")
        self.finish(p, status=128 + signal.SIGTERM)

    def test_both_are_told(self):
        """As a batch system does at a time limit."""
        p = self.start(self.program, 1000, 20, options=EACH)
        self.hear(p, "durable")
        p.send_signal(signal.SIGSTOP)  # so that both signals are there when it looks
        os.kill(p.pid_of_program, signal.SIGTERM)
        p.send_signal(signal.SIGTERM)
        p.send_signal(signal.SIGCONT)
        self.finish(p, status=128 + signal.SIGTERM)
        self.assertNotIn("restart", self.words(p))

    def test_before_it_is_started(self):
        """A signal that comes while the store is made waits for the program, and is not blocked in it."""
        code = ("#include <errno.h>\n#include <fcntl.h>\n#include <signal.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/stat.h>\n#include <unistd.h>\n"
                "int mkdir(const char *path, mode_t mode)\n{\n\tif (strcmp(program_invocation_short_name, \"varve\") == 0)\n"
                "\t\tkill(getpid(), atoi(getenv(\"EARLY\")));\n\treturn mkdirat(AT_FDCWD, path, mode);\n}\n")
        subprocess.run([os.environ["CC"], "-D_GNU_SOURCE", "-shared", "-fPIC", "-x", "c", "-o", self.folder / "early.so", "-"], input=code, text=True, check=True)
        early = lambda sig: {"LD_PRELOAD": str(self.folder / "early.so"), "EARLY": str(int(sig))}
        p = self.start(self.program, 20, 1, "stays", options=("--every", "1h"), env=early(signal.SIGUSR1))
        self.hear(p, "durable", epoch=1)
        self.let_go()
        self.finish(p, result=20)
        for sig in signal.SIGTERM, signal.SIGUSR2:
            p = self.start("sleep", 60, options=("--retries", 0), env=early(sig))
            self.hear(p, "started")
            self.hear(p, "ended")
            self.finish(p, status=128 + sig)

    def test_before_it_is_ready(self):
        p = self.start("sleep", 60)
        self.hear(p, "started")
        p.send_signal(signal.SIGTERM)
        self.finish(p, status=128 + signal.SIGTERM)
        self.assertNotIn("last", self.words(p))

    def test_other_signals(self):
        for sig in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR2):
            p = self.start(self.program, 1000, 20, options=("--every", "1h", "--retries", 0))
            self.hear(p, "fresh" if sig == signal.SIGINT else "started")
            p.send_signal(sig)
            self.finish(p, status=128 + sig)

    def test_nohup(self):
        p = self.start(self.program, 30, 20, "stays", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.hear(p, "fresh")
        p.send_signal(signal.SIGHUP)
        os.kill(p.pid_of_program, signal.SIGHUP)
        self.let_go()
        self.finish(p, result=30)

    def test_stop_and_continue(self):
        p = self.start(self.program, 30, 20, "stays")
        self.hear(p, "fresh")
        p.send_signal(signal.SIGTSTP)
        state = lambda pid: pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        wait_for(lambda: state(p.pid) == "T" and state(p.pid_of_program) == "T", "both are stopped")
        p.send_signal(signal.SIGCONT)
        self.let_go()
        self.finish(p, result=30)

    def test_leftovers_are_killed(self):
        """What a crashed program leaves behind would hold the lineage, or write files behind the back of the next."""
        p = self.start("sh", "-c", "sleep 77 & echo $!; kill -9 $$", options=("--retries", 1))
        self.finish_pids = [int(x) for x in (self.hear(p), p.stdout.read())[1].split()]
        self.assertEqual(p.wait(PATIENCE), 137)
        self.assertEqual(len(self.finish_pids), 2)
        for pid in self.finish_pids:
            wait_for(lambda: not is_alive(pid), "it is gone")

    def test_in_use(self):
        p = self.start(self.program, 1000, 20, options=("--every", "0"))
        self.hear(p, "durable")
        said = self.fails("run", "-s", self.store, "-l", "a", "--", self.program, 10, 1)
        self.assertIn("is being written by", said)
        self.assertIn(str(p.pid_of_program), said)
        self.assertIsNone(p.poll())

    def test_at_the_same_moment(self):
        """Both have found the lineage free: only one may go on, and the other does not run without checkpoints."""
        p = self.start("sh", "-c", f"while [ ! -e come ]; do sleep 0.02; done; {self.program} 1000 20; touch over")
        self.hear(p, "started")
        q = self.start(self.program, 40, 5, "stays", options=EACH)
        self.hear(q, "durable")
        self.file("come", b"")
        self.hear(p, "unable")
        self.hear(p)
        self.assertEqual(p.wait(PATIENCE), 2)
        self.assertIn(f"is being written by pid {q.pid_of_program}", json.loads(p.stdout.read())["error"])
        self.assertIn("stopped", self.words(p))
        self.assertFalse((self.folder / "over").exists())
        self.let_go()
        self.finish(q, result=40)

    def test_unable(self):
        self.file("no store", b"")
        p = self.start(self.program, 10, 1, store=self.folder / "there" / "x")
        self.finish(p, result=10)
        (self.folder / "blocked").mkdir()
        (self.folder / "blocked" / "a").write_bytes(b"")  # where the lineage should be
        p = self.start(self.program, 10, 20, store=self.folder / "blocked")
        if "unable" in [e["event"] for e in self.hear(p)]:
            self.assertIn("no checkpoints can be taken", self.texts(p))

    def test_hostile_events(self):
        """Whatever is written there: nothing is believed that is not an event, and no text steers the terminal."""
        script = ("import os\nf = open(os.environ['VARVE_RUN_EVENTS'], 'ab', 0)\n"
                  "f.write(b'durable\\n\\n\\0\\0taken x\\nnews 7\\nrestored -1\\nrestored 99999999999999\\ntaken 5x\\ndurab')\n"
                  "f.write(b'le 7\\n' + b'x' * 100000 + b' durable 8\\nfailed 3 \\x1b[2J\\xff' + b'y' * 3000 + b'\\n')\nf.write(b'taken 9')\n")
        p = self.start(sys.executable, "-c", script)
        self.finish(p)
        self.assertEqual([(e["event"], e["epoch"]) for e in p.heard if "epoch" in e], [("durable", 7), ("failed", 3)])
        q = self.run_raw("run", "-s", self.store, "--", sys.executable, "-c", script)
        self.assertEqual(q.returncode, 0)
        self.assertNotIn(b"\x1b", q.stderr)

    # a program that listens, and whose checkpoints fail before there is an epoch
    FAILS = ("import os, signal, sys, time\nf = open(os.environ['VARVE_RUN_EVENTS'], 'ab', 0)\n"
             "signal.signal(int(sys.argv[1]), lambda *_: f.write(b'failed 0 no room\\n'))\nf.write(b'fresh 0\\n' + sys.argv[2].encode())\n"
             "time.sleep(float(sys.argv[3]))\n")

    def test_not_even_taken(self):
        """No epoch has the number 0; and what did not happen is not told of."""
        def say(events):
            return self.run_raw("run", "-s", self.store, "-l", "a", "--", sys.executable, "-c", self.FAILS, str(int(signal.SIGUSR1)), events, "0").stderr.decode()
        said = say("failed 0 no room\nfailed 3 none here, either\n")
        self.assertIn("run: no checkpoint was taken: no room\n", said)
        self.assertIn("run: epoch 3 is not stored: none here, either\n", said)
        self.assertIn("run: no epoch; 2 checkpoints failed; no restart; status 0\n", said)
        self.assertIn("run: no epoch; no restart; status 0\n", say(""))

    def test_last_is_not_even_taken(self):
        """Then there is nothing to wait for."""
        p = self.start(sys.executable, "-c", self.FAILS, int(signal.SIGUSR1), "", 1000, options=("--grace", "1h"))
        self.hear(p, "fresh")
        p.send_signal(signal.SIGTERM)
        self.assertEqual(self.hear(p, "failed")["text"], "no checkpoint was taken: no room")
        self.assertEqual(self.hear(p, "late")["text"], "the last checkpoint did not become durable")
        self.assertEqual(self.finish(p, status=128 + signal.SIGTERM)["failed"], 1)


class Setup(Case):
    def test_streams_and_environment(self):
        p = self.run_raw("run", "-q", "--", "sh", "-c", "cat; echo $VARVE_RUN_STORE $VARVE_RUN_LINEAGE $VARVE_RUN_RESTART $VARVE_INTERVAL $LD_PRELOAD; echo err >&2",
                         input=b"in\n", env={"LD_PRELOAD": "libm.so.6"})
        self.assertEqual(p.returncode, 0)
        here = os.path.realpath(self.folder)
        self.assertEqual(p.stdout.decode(), f"in\n{here}/varve-store sh latest 10m {run_case.PLACE}/stand-in.so:libm.so.6\n")
        self.assertEqual(p.stderr, b"err\n")
        say = "echo $VARVE_INTERVAL $VARVE_OVERHEAD $VARVE_MTBF $VARVE_RUN_GLOBALS $VARVE_CODEC $VARVE_RUN_LINEAGE"
        p = self.run_raw("run", "-q", "--mtbf", "4h", "--globals", "-o", "codec=lz4", "-l", "x", "--", "sh", "-c", say, env={"VARVE_INTERVAL": "7"})
        self.assertEqual(p.stdout, b"0 0 4h 1 lz4 x\n")
        p = self.run_raw("run", "-q", "--", "sh", "-c", say, env={"VARVE_INTERVAL": "7"})
        self.assertEqual(p.stdout, b"7 sh\n")

    def test_signals_are_as_they_were(self):
        """The command ignores some for itself; the program must not find them so."""
        show = ["grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status"]
        plain = subprocess.run(show, capture_output=True, restore_signals=True).stdout
        self.assertEqual(self.run_raw("run", "-q", "--", *show).stdout, plain)

    def test_addresses(self):
        look = ("run", "-q", "--", "grep", "-E", r"\[(stack|vdso)\]", "/proc/self/maps")
        self.assertEqual(len({self.run_raw(*look).stdout for _ in range(4)}), 1)

    def test_addresses_forbidden(self):
        """As in a container whose seccomp rules forbid it."""
        number = {"aarch64": 92, "x86_64": 135}.get(platform.machine())
        if not number:
            self.skipTest("do not know this machine's system calls")
        if pathlib.Path("/proc/sys/kernel/randomize_va_space").read_text().strip() == "0":
            self.skipTest("addresses are not random here")
        rules = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (6, 0, 0, 0x50000 | 1), (6, 0, 0, 0x7fff0000)]  # EPERM for this one

        class Program(ctypes.Structure):
            _fields_ = [("n", ctypes.c_ushort), ("rules", ctypes.c_char_p)]

        def forbid():
            libc = ctypes.CDLL(None)
            code = Program(len(rules), b"".join(struct.pack("HBBI", *r) for r in rules))
            libc.prctl(38, 1, 0, 0, 0)
            libc.prctl(22, 2, ctypes.byref(code))

        p = self.run_raw("run", "--", "true", preexec_fn=forbid)
        self.assertEqual(p.returncode, 2)
        self.assertIn(b"randomize_va_space", p.stderr)
        self.assertIn(b"seccomp", p.stderr)

    def test_library(self):
        p = self.run_raw("run", "--", "true", env={"VARVE_PRELOAD": str(self.folder / "none.so")})
        self.assertEqual(p.returncode, 2)
        self.assertIn(b"VARVE_PRELOAD", p.stderr)
        prefix = self.folder / "prefix"
        (prefix / "bin").mkdir(parents=True)
        (prefix / "lib").mkdir()
        exe = command.shutil.copy(command.BIN, prefix / "bin")
        self.env.pop("VARVE_PRELOAD")
        p = subprocess.run([exe, "run", "--", "true"], capture_output=True, env=self.env, cwd=self.folder)
        self.assertEqual(p.returncode, 2)
        self.assertIn(b"libvarve_preload.so", p.stderr)
        self.assertIn(b"VARVE_PRELOAD", p.stderr)
        for folder in ("lib", "bin"):
            at = prefix / folder / "libvarve_preload.so"
            command.shutil.copy(run_case.PLACE / "stand-in.so", at)
            p = subprocess.run([exe, "run", "-q", "--", "sh", "-c", "echo $LD_PRELOAD"], capture_output=True, env=self.env, cwd=self.folder)
            self.assertEqual(p.stdout.decode(), f"{os.path.realpath(at)}\n", p.stderr)
            at.unlink()

    def test_mistakes(self):
        self.assertIn("comes behind --", self.fails("run", "true"))
        self.assertIn("one of them", self.fails("run", "--every", "1m", "--mtbf", "2h", "--", "true"))
        self.assertIn("ends with the program", self.fails("run", "--store", "mem:x", "--", "true"))
        self.assertIn("names no folder", self.fails("run", "--store", "", "--", "true"))
        self.assertIn("power of two", self.fails("run", "-o", "grain=100", "--", "true"))
        self.assertIn("not auto, none", self.fails("run", "--restart", "3..4", "--", "true"))
        self.assertIn("run: --restart -3: ", self.fails("run", "--restart", "-3", "-s", self.store, "-l", "a", "--", "true"))
        for option, word in (("--grace", "time"), ("--every", "time"), ("--mtbf", "time"), ("--overhead", "share"), ("--retries", "whole number")):
            said = self.fails("run", option, "soon", "--", "true")
            self.assertIn(f"run: {option} 'soon' is not a {word}", said)
        self.assertIn("letters, digits", self.fails("run", "-l", "a/b", "--", "true"))
        self.assertIn("run: -n '0' is not", self.fails("run", "-n", "0", "--", "true"))
        self.assertIn("run: -n '0' is not", self.fails("run", "-n0", "--", "true"))
        self.assertIn("run: --ranks '0' is not", self.fails("run", "-n", "2", "--ranks", "0", "--", "true"))
        self.assertIn("'-n' needs a value", self.fails("run", "-n"))
        self.assertIn("'--ranks' needs a value", self.fails("run", "--ranks"))
        for option, value in (("--mtbf", "0"), ("--mtbf", "0h"), ("--overhead", "0%"), ("--overhead", "0.0")):
            self.assertIn(f"run: {option} '{value}' is not above 0", self.fails("run", option, value, "--", "true"))
        p = self.run_raw("run", "--json", "--", self.folder / "no program")
        self.assertEqual((p.returncode, json.loads(p.stderr)["event"]), (127, "absent"))
        self.assertIn("COMMAND is missing", self.fails("run", "-n", "2"))
        self.assertEqual(json.loads(self.run_raw("run", "--json", "--restart", "x y", "--", "true").stdout)["code"], -1)

    def test_no_place(self):
        """A store that cannot be made or written is told of before the program starts."""
        self.file("a file", b"")
        for store in ("/proc/nope", "/dev/null", self.folder / "a file" / "x"):
            said = self.fails("run", "--store", store, "--", "touch", "it ran")
            self.assertIn("checkpoints would have no place", said)
            self.assertIn(str(store), said)
        locked = self.folder / "locked"
        locked.mkdir(mode=0o555)
        if not os.access(locked, os.W_OK):  # root writes anywhere
            self.assertIn("cannot be written", self.fails("run", "--store", locked, "--", "touch", "it ran"))
        self.assertFalse((self.folder / "it ran").exists())

    def test_no_such_epoch(self):
        """What is missing, where, and what to do; and nothing is made on the way."""
        touch = ("--", "touch", "it ran")
        here = os.path.realpath(self.folder)
        said = self.fails("run", "--restart", "7", *touch)
        self.assertIn(f"run: --restart 7: there is no store '{here}/varve-store'; say where it is", said)
        self.assertFalse((self.folder / "varve-store").exists())
        self.finish(self.start(self.program, 3, 1, options=("--every", "0")), result=3)
        said = self.fails("run", "--restart", "7", "-s", self.store, "-l", "other", *touch)
        self.assertIn("has no lineage 'other'; say where it is", said)
        said = self.fails("run", "--restart", "777", "-s", self.store, "-l", "a", *touch)
        self.assertIn("has no epoch 777; say where it is", said)
        self.assertFalse((self.folder / "it ran").exists())

    def test_names_of_lineages(self):
        for name, lineage in ((".x", "-x"), ("a b:c", "a-b-c"), ("n" * 200, "n" * 64)):
            os.symlink("/bin/true", self.folder / name)
            p = self.run_raw("run", "--", f"./{name}")
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertIn(f"lineage '{lineage}'".encode(), p.stderr)


class Terminal(Case):
    def start_here(self, *words):
        """On a terminal of its own, in its foreground, as a shell would start it; stopped ones are seen by waitpid."""
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execve(command.BIN, [command.BIN, "run", "-s", str(self.store), "-l", "a", "--every", "1h", "--", *words], self.env)
        self.addCleanup(self.end_here, pid, fd)
        self.fd, self.text, self.ended = fd, "", None
        return pid

    def end_here(self, pid, fd):
        if self.ended is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(fd)

    def until(self, words):
        end = time.time() + PATIENCE
        while words not in self.text and time.time() < end:
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self.fd, 4096).decode()
                except OSError:
                    break
        self.assertIn(words, self.text)

    def status(self, pid):
        self.ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return self.ended

    def test_it_reads(self):
        pid = self.start_here("sh", "-c", "read x; echo got-$x")
        os.write(self.fd, b"word\n")
        self.until("got-word")
        self.assertEqual(self.status(pid), 0)

    def test_interrupt(self):
        pid = self.start_here(self.program, "1000", "20")
        self.until("begins at its start")
        os.write(self.fd, b"\x03")
        self.until("signal 2")
        self.assertEqual(self.status(pid), 130)
        self.assertNotIn("restart 1", self.text)

    def test_stop(self):
        pid = self.start_here(self.program, "200", "20")
        self.until("begins at its start")
        for _ in range(2):
            os.write(self.fd, b"\x1a")
            _, st = os.waitpid(pid, os.WUNTRACED)
            self.assertTrue(os.WIFSTOPPED(st))
            n = len(self.steps())
            time.sleep(0.2)
            self.assertEqual(len(self.steps()), n)
            self.assertEqual(os.tcgetpgrp(self.fd), os.getpgid(pid))  # the shell may have its terminal back
            os.killpg(os.getpgid(pid), signal.SIGCONT)
            wait_for(lambda: len(self.steps()) > n, "it goes on")
        self.until("right after 200 steps")
        self.assertEqual(self.status(pid), 0)


if __name__ == "__main__":
    run_case.main()
