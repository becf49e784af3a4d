#!/usr/bin/env python3
# ctest: TIMEOUT 200 COST 6
"""The JSON of every verb: each field has the type that docs/json.md gives it, and a number has its shortest form."""
import json
import os
import pathlib
import re
import subprocess
import unittest

import command

PAGE = pathlib.Path(os.environ["VARVE_SOURCE"]) / "docs" / "json.md"
ROW = re.compile(r"\| `([a-z_0-9*]+)` \| ([a-z ]+) \| ([a-z, ]+) \|")


class Real(float):
    """A number as it was written."""
    def __new__(cls, text):
        self = super().__new__(cls, text)
        self.text = text
        return self


def read(text):
    return json.loads(text, parse_float=Real)


def kind(value):
    if isinstance(value, bool):
        return "flag"
    for types, word in ((int, "integer"), (float, "real"), (str, "text"), (list, "list"), (dict, "object")):
        if isinstance(value, types):
            return word
    return "null"


def table():
    """{verb: {field: type}}"""
    found = {}
    for line in PAGE.read_text().splitlines():
        if row := ROW.fullmatch(line):
            for verb in row[3].split(", "):
                assert row[1] not in found.setdefault(verb, {}), f"{row[1]} of {verb} is twice in the table"
                found[verb][row[1]] = row[2]
    return found


class Json(command.Case):
    """self.seen: {verb: {field: {types}}}, of everything that was said."""

    def setUp(self):
        super().setUp()
        self.seen = {}

    def walk(self, verb, value, free=False):
        """free: the fields of an object are names of other things."""
        if isinstance(value, list):
            for v in value:
                self.walk(verb, v)
        if not isinstance(value, dict):
            if isinstance(value, Real):
                self.assertEqual(value.text, shortest(value), verb)
            return
        for key, v in value.items():
            field = "*" if free else key
            self.seen.setdefault(verb, {}).setdefault(field, set()).add(kind(v))
            self.walk(verb, v, not free and f"{key} *" in self.free.get(verb, ()))

    def say(self, verb, *words, status=0, env=None):
        p = self.run_raw(verb, *words, "--json", env=env or {})
        self.assertEqual(p.returncode, status, f"{verb} {words}: {p.stdout}{p.stderr}")
        for line in p.stdout.splitlines():
            self.walk(verb, read(line))

    free = {"show": ["stats *", "blocks_by_codec *"], "report": ["codecs *"], "config": ["options *", "values *"]}

    def programs(self):
        """Epochs of a program: two ranks, zeros, changes, and damage."""
        self.file("u", command.noise(40000))
        self.write("ranks", 2, "region", "u", "bytes", 40000, "load", "u", "u", "region", "T", "f64", "20x30", "checkpoint", "poke", "u", 9, "01",
                   "checkpoint", "poke", "T", 16, "02", "checkpoint")
        self.say("ls", self.store)
        self.say("ls", self.store, "heat")
        self.say("show", self.store, "heat", "--runs", "--blocks")
        self.say("show", self.store, "heat@1", "--rank", 1)
        self.say("diff", self.store, "heat@1", "heat@2", status=1)
        self.say("top", self.store, "heat")
        self.say("extract", self.store, "heat:u", "--rank", 0, "-o", "region")
        self.say("report", self.store)
        self.say("verify", self.store)
        self.say("report", self.store, "heat")
        self.say("drop", self.store, "heat@1", "--dry-run")
        self.say("drop", self.store, "heat@1")
        self.say("gc", self.store)
        self.say("label", self.store, "heat@2", "second")
        self.say("ls", self.store, "heat")
        self.say("cp", self.store, self.folder / "copy", "heat")
        self.flip(self.layer(2), 3)
        self.say("verify", self.store, status=1)
        self.say("report", self.store, "heat")
        self.say("ls", self.store, "nobody", status=2)
        self.say("drop", self.store, "heat", "--lineage", "--yes")

    def unequal_ranks(self):
        """One rank stores more than the other: the balance is no integer."""
        self.file("own0", bytes(30000) + command.noise(10000))
        self.file("own1", command.noise(40000))
        self.write("ranks", 2, "region", "own", "bytes", 40000, "load", "own", "own%r", "checkpoint", lineage="unequal")
        self.say("show", self.store, "unequal")
        self.assertIn("real", self.seen["show"]["balance"])

    def files(self):
        set_ = self.folder / "set"
        set_.mkdir()
        (set_ / "field").write_bytes(command.noise(9000))
        (set_ / "link").symlink_to("field")
        self.say("pack", self.store, "files", "set")
        (set_ / "other").write_bytes(b"x" * 5000)
        self.say("pack", self.store, "each", "--each", "set/field", "set/other")
        self.say("pack", self.store, "gone", "set", "--delete")
        self.say("show", self.store, "files")
        self.say("report", self.store, "files")
        self.say("unpack", self.store, "files", "--list")
        self.say("unpack", self.store, "files", "-C", "out")
        self.say("unpack", self.store, "each", "--each", "-C", "all")
        watched = self.folder / "watched"
        watched.mkdir()
        (watched / "a").write_bytes(command.noise(5000))
        p = subprocess.Popen([command.BIN, "watch", self.store, "w", watched, "--json", "--settle", "100ms"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, env=self.env)
        try:
            command.wait_for(lambda: self.run_raw("ls", "-q", self.store, "w").stdout, "an epoch")
        finally:
            p.terminate()
            out, _ = p.communicate(timeout=command.PATIENCE)
        self.walk("watch", read(out))

    def commands(self):
        self.say("config")
        log = self.folder / "log"
        if "heap" in self.json("config")["captures"]:
            self.run_raw("run", "--json", "--log", log, "--store", self.folder / "runs", "--", "sh", "-c", "exit 3")
            for line in log.read_text().splitlines():
                self.walk("run", read(line))

    def test_types(self):
        self.programs()
        self.unequal_ranks()
        self.files()
        self.commands()
        wanted = table()
        wrong = []
        for verb, fields in sorted(self.seen.items()):
            for field, types in sorted(fields.items()):
                want = wanted.get(verb, {}).get(field)
                allowed = {"real": {"real", "integer"}, None: set()}.get(want, set((want or "").split(" or ")))
                if want is None or not types <= allowed:
                    wrong.append(f"{verb}: {field}: {want or 'not in the table'}, it is {' or '.join(sorted(types))}")
        if os.environ.get("JSON_DUMP"):
            json.dump({v: {f: sorted(t) for f, t in x.items()} for v, x in self.seen.items()}, open(os.environ["JSON_DUMP"], "w"))
        self.assertEqual(wrong, [])


def shortest(value):
    return next(t for t in (f"{float(value):.{n}g}" for n in (15, 16, 17)) if float(t) == value)


if __name__ == "__main__":
    unittest.main()
