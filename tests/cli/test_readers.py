# ctest: TIMEOUT 300 PROCESSORS 2 COST 15
"""All verbs that read, beside a writer that keeps one epoch: the newest is found, and what is dropped meanwhile is not taken for damage.

VARVE_READERS_COMMANDS=10000 runs as many of them."""
import collections
import contextlib
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

from command import BIN, WRITER, noise, place

COMMANDS = int(os.environ.get("VARVE_READERS_COMMANDS", "300"))
OPTIONS = "keep=1 gc=auto codec=none chunk=4096 log=error"
FALSE = re.compile("missing|referred to|damaged|checksum mismatch|another copy")
EMPTY = re.compile(r"no epoch yet|has no epoch$|^0 epochs|is not there|the file is missing", re.M)


class Readers(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(dir=place()))
        self.addCleanup(shutil.rmtree, self.dir, True)
        self.store = self.dir / "store"
        self.stop = threading.Event()

    def run_one(self, *words):
        done = subprocess.run([BIN, *map(str, words)], capture_output=True, text=True, errors="replace", timeout=120)
        return done.returncode, done.stdout + done.stderr

    def newest(self):
        """By the names of the records: the test's own listing, which may be late, too."""
        found = [0]
        for folder in (self.store / "L").glob("0*"):
            with contextlib.suppress(FileNotFoundError):
                found += [int(name.split(".")[0]) for name in os.listdir(folder) if name.endswith(".commit")]
        return max(found)

    def loop(self, commands, allowed):
        """Runs them in turn. allowed: the statuses that may be, by the name of the case."""
        seen, wrong = collections.Counter(), collections.Counter()
        for _, (name, words) in zip(range(COMMANDS), itertools.cycle(commands)):
            words = words() if callable(words) else words
            code, said = self.run_one(*words)
            seen[f"{name}: {code}"] += 1
            gone = "dropped" in said or "has no epoch " in said
            blank = name == "ls of epochs" and not re.search(r"^ *[0-9]+  20", said, re.M)
            if blank or code not in allowed.get(name, (0,)) or code and FALSE.search(said) or code == 2 and not gone or EMPTY.search(said):
                wrong[f"{name}: {code}: {re.sub('[0-9]+', 'N', said)[-300:]}"] += 1
        print(dict(seen), file=sys.stderr)
        self.assertFalse(wrong, "\n".join(f"{n} x {text}" for text, n in wrong.most_common()))

    def test_regions(self):
        content = self.dir / "content"
        content.write_bytes(noise(1 << 20))
        writer = subprocess.Popen([str(WRITER), str(self.store), "L", OPTIONS, "region", "p", "bytes", str(1 << 20), "load", "p", str(content),
                                   "region", "q", "f64", "64x64", "checkpoint", "tick", "p", "100000000"], stdout=subprocess.DEVNULL)
        try:
            while not self.newest():
                self.assertIsNone(writer.poll())
            out = self.dir / "out"
            self.loop([
                ("extract", ["extract", self.store, "L:p", "-o", out]),
                ("extract named", lambda: ["extract", self.store, f"L@{self.newest()}:p", "-o", out]),
                ("diff", ["diff", self.store, "L", "L"]),
                ("diff named", lambda: ["diff", self.store, f"L@{self.newest()}", "L"]),
                ("show", ["show", self.store, "L"]),
                ("show named", lambda: ["show", self.store, f"L@{self.newest()}", "--runs", "--blocks"]),
                ("verify", ["verify", self.store]),
                ("verify named", lambda: ["verify", self.store, f"L@{self.newest()}"]),
                ("ls", ["ls", self.store]),
                ("ls of epochs", ["ls", self.store, "L"]),
                ("report", ["report", self.store, "L", "--json"]),
                ("extract to a pipe", ["extract", self.store, "L:q"]),
            ], {"diff": (0, 1), **{f"{verb} named": (0, 2) for verb in ("extract", "show", "verify")}, "diff named": (0, 1, 2), "extract to a pipe": (0, 2)})
            self.assertEqual(out.read_bytes()[8:], content.read_bytes()[8:])
        finally:
            writer.kill()
            writer.wait()

    def write_files(self, source):
        for i in itertools.count():
            (source / "a").write_bytes(noise(200000, i + 1))
            done = subprocess.run([BIN, "pack", str(self.store), "L", str(source), "-o", "keep=1", "-o", "gc=auto", "-o", "log=error", "-q"], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            if self.stop.is_set():
                return

    def test_files(self):
        source = self.dir / "source"
        source.mkdir()
        (source / "b").write_bytes(noise(100000))
        writer = threading.Thread(target=self.write_files, args=[source])
        writer.start()
        try:
            while not (self.store / "L").exists() or not self.newest():
                pass
            number = itertools.count()
            self.loop([
                ("unpack", lambda: ["unpack", self.store, "L", "-C", self.dir / f"u{next(number)}"]),
                ("unpack --test", ["unpack", self.store, "L", "--test"]),
                ("unpack --list", ["unpack", self.store, "L", "--list"]),
                ("unpack named", lambda: ["unpack", self.store, f"L@{self.newest()}", "-C", self.dir / f"u{next(number)}"]),
                ("unpack --by-epoch", lambda: ["unpack", self.store, "L", "--by-epoch", "-C", self.dir / f"u{next(number)}"]),
                ("show", ["show", self.store, "L"]),
            ], {"unpack": (0, 2), "unpack named": (0, 2), "unpack --by-epoch": (0, 2)})
        finally:
            self.stop.set()
            writer.join()


if __name__ == "__main__":
    unittest.main()
