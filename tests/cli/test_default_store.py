#!/usr/bin/env python3
"""Commands without a store: the option `store`, when an operand is the store and when it is not, and when that cannot be told."""
import json
import os
import re
import subprocess
import unittest

import command


class DefaultStore(command.Case):
    def setUp(self):
        super().setUp()
        self.write("region", "x", "u8", 4, "label", "first", "checkpoint", "poke", "x", 0, "07", "checkpoint")
        self.plain = dict(self.env)

    def set(self):
        self.env["VARVE_STORE"] = str(self.store)

    def test_left_out(self):
        """Each verb gives with the option what it gives with the operand."""
        cases = (["ls"], ["ls", "heat"], ["show", "heat"], ["show", "heat@1"], ["show", "heat@first"], ["verify"], ["verify", "heat"], ["verify", "heat@2"],
                 ["diff", "heat@1", "heat@2"], ["diff", "heat@1", "heat@2", "x"], ["drop", "heat@1", "--dry-run"],
                 ["drop", "heat@1", "2", "--dry-run"], ["gc", "--dry-run"], ["gc", "heat", "--dry-run"], ["extract", "heat@1:x"])
        for verb, *rest in cases:
            with self.subTest(verb=verb, rest=rest):
                self.env = dict(self.plain)
                want = self.run_raw(verb, self.store, *rest)
                self.set()
                got = self.run_raw(verb, *rest)
                self.assertEqual((got.returncode, got.stderr), (want.returncode, b""))
                if verb != "verify":  # which says how fast it was
                    self.assertEqual(*(re.sub(rb"\d+ \w+ ago", b"# ago", p.stdout) for p in (got, want)))

    def test_given_all_the_same(self):
        """A store that is named counts, whatever the option says."""
        self.env["VARVE_STORE"] = str(self.folder / "nowhere")
        for store in (self.store, f"dir:{self.store}", "./a store", self.store.resolve()):
            with self.subTest(store=store):
                self.assertEqual(self.json("ls", store, "heat")["epochs"][-1]["epoch"], 2)
                self.assertEqual(len(self.json("ls", store)["lineages"]), 1)
        self.assertIn("nowhere", self.fails("ls"))
        os.rename(self.store, self.folder / "plain")
        self.assertEqual(self.json("show", "plain", "heat@1")["epoch"], 1)  # two operands: the first can only be the store
        self.assertEqual(self.json("ls", "plain", "heat")["lineage"], "heat")

    def test_sources(self):
        """The file and -o as well; the environment wins over the file, and -o over both."""
        self.file("varve.conf", f"store = {self.store}\n".encode())
        self.assertEqual(self.json("ls", "heat")["lineage"], "heat")
        self.env["VARVE_STORE"] = "nowhere"
        self.assertIn("nowhere", self.fails("show", "heat"))
        self.assertEqual(self.json("show", "heat", "-o", f"store={self.store}")["epoch"], 2)

    def test_ambiguous(self):
        """A file here of that name: nobody can tell, and nothing is done."""
        self.set()
        for name in ("heat", "heat@1"):
            (self.folder / name).mkdir()
        for words in (["ls", "heat"], ["verify", "heat@1"], ["drop", "heat@1", "2"], ["unpack", "heat", "x"]):
            with self.subTest(words=words):
                said = self.fails(*words)
                self.assertIn(f"'{words[1]}' may be the store ./{words[1]} here, or a name in the store '{self.store}' (option store, from VARVE_STORE)", said)
        self.assertIn("./heat", self.fails("ls", "./heat"))          # the store, which is empty
        self.assertEqual(self.json("show", "heat")["epoch"], 2)       # too few operands for anything else
        self.assertEqual(self.json("ls", self.store, "heat")["lineage"], "heat")
        self.assertEqual(len(self.json("ls", self.store, "heat")["epochs"]), 2)

    def test_unset(self):
        for words, hint in ((["ls"], "ls: STORE is missing"), (["show", "heat@1"], "show: LINEAGE is missing"), (["verify", "heat@1"], "'heat@1' names an epoch, and no STORE is given")):
            with self.subTest(words=words):
                said = self.fails(*words)
                self.assertIn(hint, said)
                self.assertIn("VARVE_STORE", said)
        self.env["VARVE_STORE"] = ""
        self.assertIn("VARVE_STORE", self.fails("ls"))
        self.assertIn("'heat'", self.fails("ls", "heat"))              # a store as ever
        (self.folder / "s@1").mkdir()
        self.assertIn("'s@1' is empty", self.fails("ls", "s@1"))       # a folder of that name is a store as ever

    def test_pack(self):
        self.set()
        self.file("data", b"some bytes")
        self.assertEqual(self.json("pack", "files", "data")["epoch"], 1)
        self.assertEqual(sorted(p.name for p in self.store.iterdir()), ["files", "heat"])
        self.assertIn("data", self.varve("unpack", "files", "--list"))
        (self.folder / "data").unlink()
        self.varve("unpack", "files@1", "data")
        self.assertEqual((self.folder / "data").read_bytes(), b"some bytes")
        self.varve("pack", "./new", "files", "data")                   # a new store needs a path with '/'
        self.assertTrue((self.folder / "new" / "files").is_dir())

    def test_image_and_run(self):
        self.set()
        self.assertIn("COMMAND is missing", self.fails("image", "run", "proc"))
        said = self.fails("image", "restore", "nothing@1")
        if "criu" not in said:
            self.assertIn(f"store '{self.store}' has no lineage 'nothing'", said)
        said = self.fails("run", "--restart", "7", "--", "true")
        if "libvarve_preload" not in said:
            self.assertIn(str(self.store), said)

    def test_json(self):
        """Errors keep their form."""
        self.set()
        (self.folder / "heat").mkdir()
        p = self.run_raw("ls", "heat", "--json")
        self.assertEqual((p.returncode, json.loads(p.stdout)["code"]), (2, -1))


class Files(command.Case):
    """/etc/varve.conf, the user's file, and ./varve.conf, each over the one before."""

    def option(self, name, **env):
        p = self.run_raw("config", name, "--json", env=env)
        self.assertEqual(p.returncode, 0, p.stdout)
        o, = json.loads(p.stdout)["options"]
        return o["value"], o["origin"]

    def test_user(self):
        xdg = self.folder / "xdg"
        home = self.folder / "home"
        xdg.mkdir()
        (home / ".config").mkdir(parents=True)
        (xdg / "varve.conf").write_text("\nkeep = 5\nstore = /from/xdg\n")
        (home / ".config" / "varve.conf").write_text("keep = 6\n")
        self.assertEqual(self.option("keep", XDG_CONFIG_HOME=str(xdg), HOME=str(home)), ("5", f"{xdg}/varve.conf:2"))
        self.assertEqual(self.option("store", XDG_CONFIG_HOME=str(xdg)), ("/from/xdg", f"{xdg}/varve.conf:3"))
        for ignored in ("", "relative", "./x"):
            self.assertEqual(self.option("keep", XDG_CONFIG_HOME=ignored, HOME=str(home)), ("6", f"{home}/.config/varve.conf:1"))
        for nothing in ("", "x", str(self.folder / "absent"), "/dev/null"):
            self.assertEqual(self.option("keep", XDG_CONFIG_HOME="", HOME=nothing), ("0", "default"))
        self.file("varve.conf", b"keep = 7\n")
        self.assertEqual(self.option("keep", XDG_CONFIG_HOME=str(xdg)), ("7", "varve.conf:1"))
        self.assertEqual(self.option("store", XDG_CONFIG_HOME=str(xdg)), ("/from/xdg", f"{xdg}/varve.conf:3"))
        other = self.file("other.conf", b"keep = 8\n")
        self.assertEqual(self.option("keep", XDG_CONFIG_HOME=str(xdg), VARVE_CONF=str(other)), ("8", f"{other}:1"))
        self.assertEqual(self.option("store", XDG_CONFIG_HOME=str(xdg), VARVE_CONF=str(other))[0], "/from/xdg")

    def test_wrong(self):
        self.env["XDG_CONFIG_HOME"] = str(self.folder)
        path = self.folder / "varve.conf"
        for content, hint in ((b"keep = 3\nkepe = 4\n", "varve.conf:2: unknown option 'kepe'"), (b"keep = many\n", "varve.conf:1: keep = 'many'"), (b"keep\n", "varve.conf:1: 'keep' is not of the form"),
                              (b"\0" * 9, "varve.conf:1: not a line of text"), (b"#" * 5000, "varve.conf:1: not a line of text"), (b"[x\n", "varve.conf:1: ']'")):
            with self.subTest(content=content[:20]):
                path.write_bytes(content)
                p = subprocess.run([command.BIN, "config"], capture_output=True, text=True, env=self.env, cwd="/")
                self.assertEqual(p.returncode, 2)
                self.assertIn(str(self.folder) + "/" + hint, p.stderr)
        path.unlink()
        path.mkdir()
        p = subprocess.run([command.BIN, "config"], capture_output=True, text=True, env=self.env, cwd="/")
        self.assertIn(f"'{path}' is not a configuration file", p.stderr)
        path.rmdir()
        os.mkfifo(path)
        p = subprocess.run([command.BIN, "config"], capture_output=True, text=True, env=self.env, cwd="/", timeout=command.PATIENCE)
        self.assertIn(f"'{path}' is not a configuration file", p.stderr)

    def test_unreadable(self):
        """A file that may not be read is an error; a folder that may not be searched, such as another user's, has none."""
        if os.getuid() != 0:
            self.skipTest("only root can become somebody else")
        varve = command.copy_for_others(self)
        os.chmod(self.folder, 0o755)
        path = self.file("varve.conf", b"keep = 3\n")
        path.chmod(0)

        def run():
            return subprocess.run([varve, "config", "keep"], capture_output=True, text=True, cwd="/", user=65534, group=65534, extra_groups=[],
                                  env={**self.env, "XDG_CONFIG_HOME": str(self.folder)})
        p = run()
        self.assertEqual(p.returncode, 2)
        self.assertIn(f"cannot open '{path}'", p.stderr)
        os.chmod(self.folder, 0o700)
        p = run()
        self.assertEqual((p.returncode, p.stdout.splitlines()[0]), (0, "keep = 0"), p.stderr)

    def test_etc(self):
        """In a mount namespace with an /etc of its own: the machine's is not looked at."""
        if subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/etc"], capture_output=True).returncode:
            self.skipTest("no mount namespace of one's own here")
        script = """set -e
            cp /etc/ld.so.cache "$1" 2>/dev/null || true
            mount -t tmpfs none /etc
            cp "$1/ld.so.cache" /etc 2>/dev/null || true
            printf '# all\\nkeep = 2\\nstore = /the/site\\ncodec = none\\n' > /etc/varve.conf
            shift; exec "$@" """
        words = ["unshare", "--mount", "sh", "-c", script, "sh", str(self.folder), command.BIN, "config", "--json", "--all"]
        (self.folder / "user").mkdir()
        (self.folder / "user" / "varve.conf").write_text("codec = lz4\nkeep = 3\n")
        self.file("varve.conf", b"keep = 4\n")
        p = subprocess.run(words, capture_output=True, text=True, cwd=self.folder, env={**self.env, "XDG_CONFIG_HOME": str(self.folder / "user")})
        self.assertEqual(p.returncode, 0, p.stderr)
        found = {o["name"]: (o["value"], o["origin"]) for o in json.loads(p.stdout)["options"]}
        self.assertEqual(found["store"], ("/the/site", "/etc/varve.conf:3"))
        self.assertEqual(found["codec"], ("lz4", f"{self.folder}/user/varve.conf:1"))
        self.assertEqual(found["keep"], ("4", "varve.conf:1"))


if __name__ == "__main__":
    unittest.main()
