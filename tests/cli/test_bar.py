#!/usr/bin/env python3
# ctest: COST 15
"""The progress bar: bytes, rate and time left, at a terminal and nowhere else. The command has a clock that is a second later at
each look, so that every job takes long."""
import fcntl
import os
import pathlib
import re
import struct
import subprocess
import sys
import termios
import threading
import unittest

import command

CLOCK = r"""
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
__attribute__((constructor)) static void alone(void) { unsetenv("LD_PRELOAD"); }
int clock_gettime(clockid_t id, struct timespec *t)
{
	static atomic_long calls;
	long r = syscall(SYS_clock_gettime, id, t);
	if (r == 0 && id == CLOCK_MONOTONIC)
		t->tv_sec += atomic_fetch_add(&calls, 1);
	return (int)r;
}
"""
NUMBER = r"\d+(?:\.\d+)? (?:B|[KMGT]iB)"
LINE = re.compile(rf"(\w+) (?:\[(#* *)\] )? *(\d+) %, {NUMBER} of {NUMBER}(, {NUMBER}/s)?(, .* left)?")
MIB = 1 << 20


class Bar(command.Case):
    def setUp(self):
        super().setUp()
        source, self.clock = self.file("clock.c", CLOCK.encode()), self.folder / "clock.so"
        subprocess.run([os.environ.get("CC") or "cc", "-O1", "-shared", "-fPIC", "-o", self.clock, source], check=True)

    def at_terminal(self, *words, columns=80, term="xterm"):
        """What the command has drawn, each drawing a text. The bar is gone at the end."""
        master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        seen = []

        def read():
            try:
                while data := os.read(master, 65536):
                    seen.append(data)
            except OSError:
                pass

        reader = threading.Thread(target=read)
        reader.start()
        p = subprocess.run([command.BIN, *map(str, words)], stdout=subprocess.DEVNULL, stderr=slave, cwd=self.folder, timeout=command.PATIENCE,
                           env={**self.env, "LD_PRELOAD": str(self.clock), "TERM": term})
        os.close(slave)
        reader.join()
        os.close(master)
        text = b"".join(seen).decode()
        self.assertIn(p.returncode, (0, 1), text)
        if text:
            self.assertTrue(text.endswith("\r\x1b[K"), text)
        return [line for line in text.split("\r\x1b[K") if line]

    def check(self, verb, *words, name=None):
        for columns in 80, 44, 20:
            lines = self.at_terminal(verb, *words, columns=columns)
            self.assertTrue(lines, f"{verb}: no bar")
            self.assertLess(max(map(len, lines)), columns, lines)
            found = [LINE.fullmatch(line) for line in lines]
            if columns < 80:
                continue
            self.assertTrue(all(found), lines)
            self.assertEqual({f[1] for f in found}, {name or verb})
            self.assertTrue(any(f[4] and f[5] for f in found), lines)
            shares = [int(f[3]) for f in found]
            self.assertEqual(shares, sorted(shares))
            for f in found:
                self.assertAlmostEqual(f[2].count("#") / len(f[2]), int(f[3]) / 100, delta=0.1)
        for more in (["-q"], []):
            p = subprocess.run([command.BIN, verb, *map(str, words), *more], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=self.folder,
                               env={**self.env, "LD_PRELOAD": str(self.clock), "TERM": "xterm"})
            self.assertEqual(p.stderr, b"", "not at a terminal")
        self.assertEqual(self.at_terminal(verb, *words, "-q"), [])
        self.assertEqual(self.at_terminal(verb, *words, term="dumb"), [])

    def test_files(self):
        self.file("big", os.urandom(48 * MIB))
        self.check("pack", self.store, "files", "big")
        self.check("unpack", self.store, "files", "--force", "-C", "out")
        self.check("unpack", self.store, "files", "--test", name="test")
        self.check("extract", self.store, "files:big", "-o", "copy")

    def test_epochs(self):
        big = self.file("big", os.urandom(48 * MIB))
        self.write("region", "x", "bytes", 48 * MIB, "load", "x", big, "tick", "x", 6)
        self.check("verify", self.store)
        self.check("diff", self.store, "heat@1", "heat@6")
        self.check("extract", self.store, "heat:x", "-o", "copy")
        self.check("gc", self.store, "--dry-run", "heat")

    def test_gc(self):
        """A layer of which half is needed is rewritten."""
        for i in range(4):
            big = self.file("big", os.urandom(4 * MIB))
            self.write("region", "x", "bytes", 4 * MIB, "load", "x", big, "checkpoint", "tick", "x", 1)
        self.varve("drop", "-q", self.store, "heat", "--keep", 2)
        self.assertTrue(self.at_terminal("gc", self.store))

    def test_image(self):
        if self.run_raw("image", "check").returncode:
            self.skipTest("processes cannot be frozen here")
        p = subprocess.Popen([sys.executable, "-c", "import os, time; x = os.urandom(16 << 20); time.sleep(99)"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        pid = p.pid
        try:
            command.wait_for(lambda: int(re.search(r"VmRSS:\s*(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) > 20000, "its memory")
            lines = self.at_terminal("image", "dump", "--pid", pid, self.store, "job")
            self.assertTrue(any(LINE.fullmatch(line) for line in lines), lines)
            p.wait()
            lines = self.at_terminal("image", "restore", "-d", self.store, "job")
            self.assertTrue(any(LINE.fullmatch(line) for line in lines), lines)
        finally:
            if command.is_alive(pid):
                os.kill(pid, 9)


if __name__ == "__main__":
    if re.search(r"^VARVE_SANITIZE:\w+=.", (pathlib.Path(os.environ["VARVE_BUILD"]) / "CMakeCache.txt").read_text(), re.M):
        print("skipped: a sanitizer wants to be the first library of a program")
        sys.exit(77)
    unittest.main()
