# ctest: TIMEOUT 120 COST 5
"""Files that interrupted writers have begun: pack removes its own when it is told to end, the next writer those of one that was killed, and verbs that read tell of them."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

from command import BIN, place, wait_for


class Leftovers(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(dir=place()))
        self.addCleanup(shutil.rmtree, self.dir, True)
        self.store = self.dir / "store"
        self.large, self.small = self.dir / "large", self.dir / "small"
        self.large.write_bytes(os.urandom(12 << 20))
        self.small.write_bytes(b"small")

    def varve(self, *words, code=0):
        done = subprocess.run([BIN, *map(str, words)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def json(self, *words):
        return json.loads(self.varve(*words, "--json"))

    def left(self):
        return [p for p in self.store.rglob(".tmp-*") if p.is_file()]

    def begin(self):
        """A pack that takes seconds, with some of it written."""
        p = subprocess.Popen([BIN, "pack", str(self.store), "L", str(self.large), "-o", "bandwidth=4MiB", "-o", "block=256KiB", "-q"],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(p.stdout.close)
        wait_for(lambda: p.poll() is not None or any(q.stat().st_blocks for q in self.left()), "for a file that is being written")
        self.assertIsNone(p.poll())
        return p

    def end(self, p, number):
        p.send_signal(number)
        self.assertEqual(p.wait(60), -number)

    def test_pack_removes_its_own(self):
        for number in signal.SIGINT, signal.SIGTERM:
            self.end(self.begin(), number)
            self.assertEqual(self.left(), [])
            self.assertIn("no epoch yet", self.varve("ls", self.store, "L"))
        self.varve("pack", self.store, "L", self.small, "-q")
        self.varve("verify", self.store)

    def test_next_writer_removes_them(self):
        for _ in range(2):
            self.end(self.begin(), signal.SIGKILL)
        self.assertEqual(len(self.left()), 1, "the second writer has removed what the first has left")
        self.varve("pack", self.store, "L", self.small, "-q")
        self.assertEqual(self.left(), [])

    def test_in_the_next_folder(self):
        """Epoch 100 is in a folder where no epoch is yet."""
        files = [self.dir / f"f{i}" for i in range(99)]
        for i, f in enumerate(files):
            f.write_text(str(i))
        self.varve("pack", self.store, "L", "--each", *files, "-q")
        self.end(self.begin(), signal.SIGKILL)
        self.assertEqual([p.parent.name for p in self.left()], ["00000001"])
        self.assertEqual(self.json("ls", self.store, "L")["unfinished"], 1)
        self.varve("pack", self.store, "L", self.small, "-q")
        self.assertEqual(self.left(), [])

    def tell(self, *words):
        """What is said of them in text; and as numbers."""
        text = [line for line in self.varve(*words).splitlines() if "unfinished" in line]
        data = self.json(*words)
        data = data["lineages"][0] if "lineages" in data else data
        return text, (data["unfinished"], data["bytes_unfinished"])

    def test_verbs_tell(self):
        verbs = ["ls", self.store], ["ls", self.store, "L"], ["verify", self.store], ["gc", self.store, "--dry-run"]
        p = self.begin()
        for words in verbs[:3]:
            self.assertEqual(self.tell(*words), ([], (0, 0)), "somebody writes")
        self.end(p, signal.SIGKILL)
        for words in verbs:
            text, (n, size) = self.tell(*words)
            self.assertEqual((len(text), n), (1, 1), words)
            self.assertGreater(size, 100000)
            self.assertIn("1 unfinished file of interrupted writers, ", text[0])
        self.assertNotIn("unfinished", self.varve("ls", "-q", self.store) + self.varve("ls", "-q", self.store, "L"))
        self.assertIn("1 unfinished file of interrupted writers", self.varve("gc", self.store))
        self.assertEqual(self.left(), [])
        for words in verbs:
            self.assertEqual(self.tell(*words), ([], (0, 0)))


if __name__ == "__main__":
    unittest.main()
