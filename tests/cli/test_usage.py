#!/usr/bin/env python3
"""What all verbs share: help, mistakes, exit codes, and an output that cannot be written."""
import json
import os
import subprocess
import unittest

import command

VERBS = ["pack", "unpack", "watch", "image", "run", "ls", "show", "report", "top", "verify", "extract", "diff", "cp", "mount", "label", "drop", "gc", "rebuild", "request", "config", "completion"]


class Usage(command.Case):
    def test_help(self):
        text = self.varve("help")
        self.assertEqual(text, self.varve("--help"))
        self.assertEqual(text, self.varve("-h"))
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        for verb in VERBS:
            self.assertIn(f"\n  {verb} ", text)
            one = self.varve(verb, "--help")
            self.assertTrue(one.startswith(f"usage: varve {verb} "), one)
            self.assertEqual(one, self.varve("help", verb))
            self.assertEqual(one, self.varve("--help", verb))
            self.assertIn("--json", one)
            self.assertLessEqual(max(map(len, one.splitlines())), 80, verb)
        self.assertRegex(self.varve("--version"), r"^varve \d+\.\d+\.\d+\n$")
        self.assertEqual(self.varve("ls", "--version"), self.varve("--version"))

    def test_mistakes(self):
        for words, hint in ((["lss"], "'ls'"), (["verfy"], "'verify'"), (["ex"], ""), ([], "help"), (["help", "shwo"], "'show'"),
                            (["ls", "--al", "s"], "'--all'"), (["gc", "--dryrun", "s"], "'--dry-run'"), (["ls", "-x", "s"], "-x"),
                            (["ls"], "ls: STORE is missing; usage: varve ls"), (["show", "s"], "show: LINEAGE is missing; usage: varve show"),
                            (["ls", "s", "l", "x"], "ls: 'x' is one word too many; usage: varve ls"), (["run"], "COMMAND is missing"), (["request"], "PID is missing"),
                            (["rebuild", "l", "s"], "rebuild: another STORE is missing"), (["rebuild", "l"], "rebuild: STORE is missing"),
                            (["diff", "s", "l"], "diff: another LINEAGE is missing"), (["cp", "s"], "cp: STORE2 is missing"), (["ls", "s", "-n"], "needs a value"),
                            (["ls", "s", "-n", "0"], "-n '0'"), (["ls", "s", "--newest", "0"], "--newest '0'"), (["ls", "s", "--all=3"], "takes no value"),
                            (["ls", "ftp://x/y"], "unknown kind"), (["ls", "s3:bucket"], "unknown kind"), (["ls", ""], "store"), (["--nope"], "--nope")):
            with self.subTest(words=words):
                self.assertIn(hint, self.fails(*words))
        self.assertEqual(self.json("lss", status=2)["code"], -1)
        self.assertEqual(self.json("ls", "--al", "s", status=2)["code"], -1)
        self.assertEqual(self.json(status=2)["code"], -1)

    def test_order_of_words(self):
        self.write("region", "x", "u8", 4, "checkpoint")
        want = self.json("ls", self.store, "heat")
        p = self.run_raw("--json", "-q", "-o", "log=error", "ls", "--all", self.store, "--", "heat")
        self.assertEqual(json.loads(p.stdout), want)

    def test_two_meanings_of_o(self):
        """In front of the verb -o always sets an option; after extract it names the output. The name of an option there is a mistake."""
        self.write("region", "x", "u8", 4, "checkpoint")
        self.varve("-o", "threads=1", "extract", self.store, "heat:x", "-o", "part=1", "--option", "log=info")
        self.assertEqual((self.folder / "part=1").read_bytes(), bytes(4))
        for verb, *words in (("extract", self.store, "heat:x"), ("report", self.store)):
            self.assertIn("here -o is --output; set options by -c log=error", self.fails(verb, *words, "-o", "log=error"))
        self.assertFalse((self.folder / "log=error").exists())
        self.varve("extract", self.store, "heat:x", "-o", "./log=error")
        self.assertEqual((self.folder / "log=error").read_bytes(), bytes(4))
        self.assertIn("name=value", self.fails("-o", "out", "extract", self.store, "heat:x"))

    def test_one_meaning(self):
        """Over all verbs a letter belongs to one option, and an option takes a value or none. Old names are not shown."""
        table = self.json("help")
        self.assertEqual([v["name"] for v in table["verbs"]], VERBS)
        letters, values = {}, {}
        for verb in table["verbs"]:
            names = {o["name"] for o in verb["options"]}
            for option in verb["options"] + table["options"]:
                if option["letter"]:
                    self.assertEqual(letters.setdefault(option["letter"], option["name"]), option["name"], verb["name"])
                self.assertEqual(values.setdefault(option["name"], bool(option["value"])), bool(option["value"]), (verb["name"], option["name"]))
                for old in option["old"]:
                    self.assertNotIn(old, names)
                    self.assertNotRegex(self.varve("help", verb["name"]), rf"(?m)^  ...?\s*--{old}\b")
        self.assertEqual(self.json("help", "ls")["verbs"], [v for v in table["verbs"] if v["name"] == "ls"])

    def test_old_names(self):
        """Names of earlier versions are accepted as before, and errors use the typed name."""
        self.write("region", "x", "u8", 64, "tick", "x", 3)
        self.assertEqual(self.varve("ls", "-q", "-n", 1, self.store, "heat"), self.varve("ls", "-q", "--newest", 1, self.store, "heat"))
        self.assertIn("run: --retries 'x'", self.fails("run", "--retries", "x", "--", "true"))
        self.assertIn("run: --max-restarts 'x'", self.fails("run", "--max-restarts", "x", "--", "true"))
        self.assertEqual(self.json("config", "keep", "-o", "keep=7"), self.json("config", "keep", "-c", "keep=7"))
        self.assertEqual(self.varve("drop", self.store, "heat", "--lineage", "--dry-run"), self.varve("drop", self.store, "heat", "--whole-lineage", "--dry-run"))
        self.assertIn("did you mean '--newest'", self.fails("ls", "--newst", 1, self.store))

    def test_full_disk(self):
        self.write("region", "x", "u8", 4, "checkpoint")
        for words in (["ls", self.store], ["show", self.store, "heat"], ["verify", self.store], ["config"], ["help"],
                      ["extract", self.store, "heat:x"], ["ls", self.store, "--json"], ["--version"],
                      ["diff", self.store, "heat", "heat"], ["gc", self.store], ["ls", "nowhere", "--json"]):
            with self.subTest(words=words), open("/dev/full", "wb") as full:
                p = self.run_raw(*words, stdout=full, stderr=subprocess.PIPE)
                self.assertEqual(p.returncode, 2)
                self.assertIn(b"No space left", p.stderr)

    def test_closed_pipe(self):
        """A reader that goes away is no news."""
        big = self.file("big", command.noise(1 << 20))
        self.write("region", "x", "bytes", 1 << 20, "load", "x", big, "tick", "x", 120)
        for words in (["ls", self.store, "heat", "--all"], ["config"], ["extract", self.store, "heat:x"],
                      ["show", self.store, "heat", "--json"]):
            with self.subTest(words=words):
                end, pipe = os.pipe()
                os.close(end)
                p = self.run_raw(*words, stdout=pipe, stderr=subprocess.PIPE)
                os.close(pipe)
                self.assertEqual((p.returncode, p.stderr), (2, b""))
        end, pipe = os.pipe()
        os.close(end)
        p = self.run_raw("ls", "nowhere", stdout=pipe, stderr=subprocess.PIPE)
        os.close(pipe)
        self.assertIn(b"nowhere", p.stderr)

    def test_closed_stdout(self):
        """No file of the store may take the place of a standard output that is not there."""
        self.write("region", "x", "u8", 4, "checkpoint")
        p = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", command.BIN, "gc", self.store], stderr=subprocess.PIPE, env=self.env)
        self.assertEqual(p.returncode, 2)
        self.assertIn(b"standard output", p.stderr)
        self.assertNotIn(b"kept", (self.store / "heat" / "lock").read_bytes())
        self.varve("verify", self.store)


if __name__ == "__main__":
    unittest.main()
