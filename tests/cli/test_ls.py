#!/usr/bin/env python3
"""varve ls: lineages, epochs, the newest of many without a look at the rest."""
import fcntl
import json
import os
import shutil
import struct
import subprocess
import termios
import threading
import time
import unittest

import command


def read_some(fd):
    try:
        return os.read(fd, 65536)
    except OSError:
        return b""


class Ls(command.Case):
    def test_unreadable(self):
        """A lineage of another user does not hide the others, from ls and from verify."""
        if os.getuid() != 0:
            self.skipTest("only root can become somebody else")
        for lineage in "a", "mine", "z":
            self.write("region", "x", "u8", 9, "checkpoint", lineage=lineage)
        varve = command.copy_for_others(self)
        subprocess.run(["chmod", "-R", "a+rX", self.folder], check=True)
        os.chmod(self.store / "mine", 0o700)

        def run(*words):
            return subprocess.run([varve, *words], capture_output=True, text=True, cwd="/", user=65534, group=65534, extra_groups=[], env=self.env)
        p = run("ls", self.store)
        rows = p.stdout.splitlines()
        self.assertEqual((p.returncode, [r.split()[0] for r in rows]), (2, ["LINEAGE", "a", "mine", "z", "3"]), p.stderr)
        self.assertIn("Permission denied", rows[2])
        found = json.loads(run("ls", self.store, "--json").stdout)["lineages"]
        self.assertEqual([(r["lineage"], r.get("epoch")) for r in found], [("a", 1), ("mine", None), ("z", 1)])
        self.assertLessEqual(max(map(len, [*rows[:2], *rows[3:]])), 80, "a long message makes a column wider")
        self.flip(self.commit(1, "a"), 40)
        for denied in ["mine"], ["mine", "z"]:
            p = run("verify", self.store)
            self.assertEqual(p.returncode, 2)
            for lineage in denied:
                self.assertIn(f"varve: {lineage}: cannot open '{self.store}/{lineage}", p.stderr)
            self.assertIn(f"varve: {len(denied)} lineage", p.stderr)
            self.assertRegex(p.stdout, r"(?m)^\d+ epochs?, .* 1 problem$")
            found = json.loads(run("verify", self.store, "--json").stdout)
            self.assertEqual(([u["lineage"] for u in found["unread"]], found["n_problems"], found["code"]), (denied, 1, -10))
            self.assertIn(f"{self.store}/mine/lineage': Permission denied", found["unread"][0]["error"])
            os.chmod(self.store / "z", 0o700)

    def test_no_store(self):
        """What is no store is said to be none also by the verbs of one lineage."""
        self.write("region", "x", "u8", 9, "checkpoint")
        other = self.folder / "other"
        other.mkdir()
        empty = self.folder / "empty"
        empty.mkdir()
        (other / "notes").mkdir()
        for verb, *words in (["show"], ["top", "--once"], ["extract"], ["drop"], ["label", "l"], ["unpack"], ["ls"], ["verify"], ["gc"], ["diff", "heat"]):
            with self.subTest(verb=verb):
                spec = {"extract": "heat:x", "drop": "heat@1"}.get(verb, "heat")
                self.assertIn("is no store of checkpoints", self.fails(verb, other, spec, *words))
                self.assertIn("is empty: no checkpoint was stored there", self.fails(verb, empty, spec, *words))
                self.assertIn(f"its store is '{self.store}', and its name there is 'heat'", self.fails(verb, self.store / "heat", spec, *words))
                self.assertIn("has no lineage 'haet'; did you mean 'heat'?", self.fails(verb, self.store, spec.replace("heat", "haet"), *words))

    def test_window(self):
        """At a terminal of 80 columns no row of a table is longer, and nothing is lost in a file."""
        self.write("region", "x", "u8", 90000, *["tick", "x", 3, "checkpoint"] * 4)
        self.varve("label", self.store, "heat@1", "a-label-of-some-length")
        for words in ("ls", self.store, "heat"), ("config", "--all"):
            whole = self.varve(*words)
            self.assertGreater(max(map(len, whole.splitlines())), 80)
            master, slave = os.openpty()
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            seen = []
            reader = threading.Thread(target=lambda: seen.extend(iter(lambda: read_some(master), b"")))
            reader.start()
            p = subprocess.run([command.BIN, *map(str, words)], stdout=slave, env=self.env, cwd=self.folder)
            os.close(slave)
            reader.join()
            os.close(master)
            rows = b"".join(seen).decode().splitlines()
            self.assertEqual(p.returncode, 0)
            self.assertLessEqual(max(map(len, rows)), 80)
            if words[0] == "ls":
                self.assertTrue(rows[1].endswith("  a-label-of-some-length"), rows)
            else:
                self.assertEqual(" ".join(" ".join(rows).split()), " ".join(whole.split()))

    def test_no_trailing_blanks(self):
        """A column at the end that is empty in some rows."""
        self.write("region", "x", "u8", 9, "checkpoint", "checkpoint")
        self.varve("label", self.store, "heat@1", "first")
        rows = self.varve("ls", self.store, "heat").splitlines()
        self.assertTrue(rows[1].endswith("  first"), rows)
        self.assertEqual([row.rstrip() for row in rows], rows)

    def test_lineages(self):
        self.write("region", "x", "f64", 1000, "checkpoint", "checkpoint")
        self.write("region", "y", "bytes", 10, "checkpoint", lineage="b.2_c-d")
        self.write(lineage="empty")
        text = self.varve("ls", self.store).splitlines()
        self.assertEqual(text[0].split(), ["LINEAGE", "NEWEST", "TIME", "AGE", "RANKS", "MEMORY", "DISK"])
        self.assertEqual([line.split()[0] for line in text[1:4]], ["b.2_c-d", "empty", "heat"])
        self.assertIn("no epoch yet", text[2])
        self.assertIn("7.81 KiB", text[3])
        self.assertEqual(len(text), 5)
        self.assertRegex(text[4], r"^3 lineages, [\d.]+ .?i?B on disk$")
        found = self.json("ls", self.store)
        self.assertEqual(found["store"], str(self.store))
        self.assertEqual([(x["lineage"], x["epoch"]) for x in found["lineages"]],
                         [("b.2_c-d", 1), ("empty", None), ("heat", 2)])
        heat = found["lineages"][2]
        self.assertEqual((heat["ranks"], heat["bytes_memory"]), (1, 8000))
        self.assertLess(abs(heat["time_ns"] / 1e9 - time.time()), 100)

    def test_disk(self):
        """As du counts it: all files of the lineage, by their blocks; a hole is free, and an unfinished file counts."""
        self.write("region", "x", "bytes", 100000, "load", "x", self.file("x", command.noise(100000)), "checkpoint")
        self.write("region", "x", "bytes", 300000, "load", "x", self.file("x", command.noise(300000)), "checkpoint", lineage="more")
        with open(self.store / "more" / ".tmp-left", "wb") as f:
            f.write(bytes(70000))
        with open(self.store / "more" / "hole", "wb") as f:
            f.truncate(1 << 30)

        def disk(path):
            return sum(p.lstat().st_blocks * 512 for p in path.rglob("*"))
        found = self.json("ls", self.store)
        self.assertEqual([x["bytes_disk"] for x in found["lineages"]], [disk(self.store / "heat"), disk(self.store / "more")])
        self.assertEqual(found["bytes_disk"], sum(x["bytes_disk"] for x in found["lineages"]))
        self.assertGreater(found["lineages"][1]["bytes_disk"], 370000)
        self.assertLess(found["lineages"][1]["bytes_disk"], 1 << 29)
        self.flip(self.commit(1), 30)
        self.assertEqual(self.json("ls", self.store, status=1)["bytes_disk"], found["bytes_disk"])

    def test_quiet(self):
        """The rows alone, for scripts."""
        self.assertEqual(self.write(lineage="empty"), [])
        self.assertEqual(self.varve("ls", self.store, "empty", "-q"), "")
        self.write("region", "x", "bytes", 64, "tick", "x", 30)
        self.assertEqual([line.split()[0] for line in self.varve("ls", self.store, "-q").splitlines()], ["empty", "heat"])
        self.assertEqual([line.split()[0] for line in self.varve("ls", "-q", self.store, "heat").splitlines()],
                         [str(n) for n in range(11, 31)])

    def test_epochs(self):
        self.write("region", "x", "bytes", 8192, "load", "x", self.file("x", command.noise(8192)), "checkpoint",
                   "poke", "x", 5000, "00ff", "checkpoint")
        text = self.varve("ls", self.store, "heat").splitlines()
        self.assertEqual(text[0].split(), ["EPOCH", "TIME", "AGE", "PARENT", "RANKS", "MEMORY", "STORED", "LAYER"])
        self.assertEqual([line.split()[0] for line in text[1:]], ["1", "2"])
        first, second = self.json("ls", self.store, "heat")["epochs"]
        self.assertEqual((first["epoch"], first["parent"], first["bytes_memory"]), (1, 0, 8192))
        self.assertEqual((second["epoch"], second["parent"], second["bytes_stored"]), (2, 1, 4096))
        self.assertEqual(second["bytes_layer"], self.layer(2).stat().st_size)
        self.assertLess(first["time_ns"], second["time_ns"])

    def test_many(self):
        self.write("region", "x", "bytes", 64, "tick", "x", 250)
        text = self.varve("ls", self.store, "heat").splitlines()
        self.assertIn("before 231", text[0])
        self.assertIn("--all", text[0])
        self.assertEqual([int(line.split()[0]) for line in text[2:]], list(range(231, 251)))
        self.assertEqual(len(self.varve("ls", self.store, "heat", "--all").splitlines()), 251)
        for n in ["-n", 5], ["-n5"], ["--newest", 5], ["--newest=5"]:
            found = self.json("ls", self.store, "heat", *n)
            self.assertEqual([e["epoch"] for e in found["epochs"]], [246, 247, 248, 249, 250])
            self.assertTrue(found["older"])
        self.assertFalse(self.json("ls", self.store, "heat", "-n", 250)["older"])
        self.assertEqual(len(self.json("ls", self.store, "heat", "-n", 9999999999)["epochs"]), 250)
        # nothing of the old epochs is opened: a folder that is not what it should be does not matter
        shutil.rmtree(self.store / "heat" / "00000000")
        (self.store / "heat" / "00000000").mkdir()
        self.commit(120).write_bytes(b"no record")
        self.assertEqual(len(self.json("ls", self.store, "heat")["epochs"]), 20)

    def test_holes(self):
        self.write("region", "x", "bytes", 64, "tick", "x", 250)
        self.varve("drop", self.store, "heat@2..120", "122..240", "242..248")
        found = self.json("ls", self.store, "heat", "-n", 4)
        self.assertEqual([e["epoch"] for e in found["epochs"]], [121, 241, 249, 250])
        self.assertTrue(found["older"])
        found = self.json("ls", self.store, "heat")
        self.assertEqual([e["epoch"] for e in found["epochs"]], [1, 121, 241, 249, 250])
        self.assertFalse(found["older"])

    def test_damaged_record(self):
        self.write("region", "x", "bytes", 64, "tick", "x", 3)
        self.flip(self.commit(2), 20)
        found = self.json("ls", self.store, "heat", status=1)
        self.assertEqual(["damaged" in e for e in found["epochs"]], [False, True, False])
        lines = self.varve("ls", self.store, "heat", status=1).splitlines()
        self.assertIn("0000000002.commit", lines[2])
        self.assertEqual(lines[2].rstrip(), lines[2])
        self.assertLess(max(map(len, lines[:2] + lines[3:])), 100)  # what is said of one epoch does not stretch the others
        self.flip(self.commit(3), 20)
        self.assertIn("damaged", self.json("ls", self.store, status=1)["lineages"][0])

    def test_not_there(self):
        self.assertIn("nowhere", self.fails("ls", self.folder / "nowhere"))
        self.assertFalse((self.folder / "nowhere").exists())
        self.write()
        message = self.fails("ls", self.store, "cold")
        self.assertIn("'cold'", message)
        self.assertEqual(self.json("ls", self.store, "cold", status=2), {"error": message, "code": -4, "meaning": "not found"})
        self.assertIn("letters, digits", self.fails("ls", self.store, "../heat"))
        self.assertIn("leave out '@3'", self.fails("ls", self.store, "heat@3"))
        self.assertIn("no epoch", self.varve("ls", self.store, "heat"))
        self.assertIn("did you mean 'heat'?", self.fails("show", self.store, "heta"))

    def test_no_store(self):
        """A folder that is no store is an error for every verb that goes over a whole store: a job that checks one by the clock must notice."""
        self.write("region", "x", "f64", 10, "checkpoint")
        empty, other = self.folder / "empty", self.folder / "other"
        for folder in (empty, other):
            folder.mkdir()
        (other / "hosts").write_text("")
        (other / "sub").mkdir()
        lineage = f"is a lineage, not a store; its store is '{self.store}', and its name there is 'heat'"
        for verb in ("ls", "verify", "gc", "report"):
            for folder, said in ((empty, "is empty: no checkpoint was stored there"), (self.store / "heat", lineage), (f"{self.store}/heat//", lineage),
                                 (other, "no store of checkpoints: none of its 2 entries is a lineage; one is 'hosts'")):
                with self.subTest(verb, folder=folder):
                    found = self.json(verb, folder, status=2)
                    self.assertIn(said, found["error"])
                    self.assertEqual(found["code"], -4)
                    if verb != "report":  # whose page this build may not have
                        self.assertEqual(self.fails(verb, folder), found["error"])
        self.assertEqual(list(empty.iterdir()), [])
        said = self.fails("pack", self.store / "heat", "new", self.file("data", b"x"))
        self.assertIn("is a lineage itself: name the folder above it as the store", said)
        self.assertEqual([p.name for p in (self.store / "heat" / "new").rglob("*") if p.name != "lock"], [])
        self.write("region", "x", "f64", 10, "checkpoint", lineage="20261118")  # a name that looks like a folder of epochs
        self.varve("pack", "-q", self.store, "new", self.folder / "data")
        (self.folder / "heat").symlink_to(self.store / "heat")
        self.assertIn("its store is '.'", self.fails("ls", "heat"))

    def test_read_only(self):
        """Looking leaves no trace, but for the result of a verify."""
        self.write("region", "x", "f64", 10, "checkpoint")
        (self.store / "heat" / "lock").unlink(missing_ok=True)
        before = sorted(map(str, self.store.rglob("*")))
        for words in ["ls"], ["ls", "heat"], ["show", "heat"], ["verify"], ["extract", "heat:x", "-o", "/dev/null"]:
            self.varve(words[0], self.store, *words[1:])
        (self.store / "heat" / "verified").unlink()
        self.assertEqual(sorted(map(str, self.store.rglob("*"))), before)


if __name__ == "__main__":
    unittest.main()
