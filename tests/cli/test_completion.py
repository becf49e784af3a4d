#!/usr/bin/env python3
"""Completion: the words that the command offers, and the lines that bash, zsh and fish make of them at a terminal."""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import time
import unittest

import command


class Completion(command.Case):
    def setUp(self):
        super().setUp()
        self.write("region", "x", "u8", 64, "tick", "x", 12)
        self.write("region", "x", "u8", 64, "checkpoint", lineage="hot")
        self.write("region", "x", "u8", 64, "checkpoint", lineage="cold")

    def words(self, *line, **more):
        """The candidates for the last word."""
        return [text.split("\t")[0] for text in self.varve("completion", "words", "--", *line, **more).splitlines()]

    def test_tables(self):
        """Verbs, options and placeholders of the help are completed."""
        table = self.json("help")
        self.assertEqual(self.words(""), [v["name"] for v in table["verbs"]] + ["help"])
        self.assertEqual(self.words("help", "e"), ["extract"])
        shared = [o["name"] for o in table["options"]]
        for verb in table["verbs"]:
            self.assertEqual(self.words(verb["name"], "--"), [f"--{o}" for o in [*(o["name"] for o in verb["options"]), *shared]])
            for option in verb["options"]:
                if option["value"] and re.fullmatch(r"[\w|-]*\|[\w|-]*", option["value"]):
                    choices = [c for c in option["value"].split("|") if c != "EPOCH"]
                    self.assertEqual(self.words(verb["name"], f"--{option['name']}", ""), choices)
                    self.assertEqual(self.words(verb["name"], f"--{option['name']}="), [f"--{option['name']}={c}" for c in choices])
        self.assertEqual(self.words("run", "-n"), ["-n"])
        self.assertEqual(self.words("image", ""), ["dump", "restore", "run", "check"])
        self.assertEqual(self.words("ls", ""), [":folders"])
        self.assertEqual(self.words("pack", "s", "l", ""), [":files"])
        self.assertEqual(self.words("pack", "s", "l", "f", ""), [":files"])
        self.assertEqual(self.words("unpack", "s", "l", "f", ""), [":files"])
        self.assertEqual(self.words("run", "--", ""), [":commands"])
        self.assertEqual(self.words("run", "--", "sh", "--"), [":files"])
        self.assertEqual(self.words("completion", "z"), ["zsh"])
        self.assertEqual(self.words("nonsense", ""), [])
        self.assertEqual(self.words("ls", "s", "l", "x", ""), [])

    def test_settings(self):
        """Names and values of -c are those of varve config; -o, its old letter, has them too."""
        options = {o["name"]: o for o in self.json("config", "--all")["options"]}
        for letter in "-c", "-o", "--option":
            self.assertEqual(self.words("ls", letter, ""), [f"{name}=" for name in options])
        self.assertEqual(self.words("-c", "code"), ["codec="])
        self.assertEqual(self.words("ls", "-c", "mode="), [f"mode={m}" for m in options["mode"]["choices"].split("|")])
        self.assertEqual(self.words("ls", "--option=mode=s"), ["--option=mode=sync"])
        self.assertEqual(self.words("config", "keep"), [n for n in options if n.startswith("keep")])

    def test_store(self):
        """Lineages and epochs come from the store on the line."""
        self.assertEqual(self.words("show", self.store, ""), ["cold", "heat", "hot"])
        self.assertEqual(self.words("show", self.store, "ho"), ["hot"])
        self.assertEqual(self.words("show", self.store, "heat@1"), ["heat@12", "heat@11", "heat@10", "heat@1"])
        self.assertEqual(self.words("drop", self.store, "heat@1..1"), ["heat@1..12", "heat@1..11", "heat@1..10", "heat@1..1"])
        self.assertEqual(self.words("drop", self.store, "heat@1", "9"), ["9"])
        self.assertEqual(self.words("run", "--store", self.store, "--lineage", "h"), ["heat", "hot"])
        self.assertEqual(self.words("run", "--store", self.store, "--lineage", "hot", "--restart", ""), ["auto", "none", "1"])
        self.assertEqual(self.words("extract", "-q", self.store, "-o", "f", "c"), ["cold"])
        self.assertEqual(self.words("image", "restore", self.store, "c"), ["cold"])
        home = {"HOME": str(self.folder), "S": str(self.folder)}
        for text in "~/a store", "$HOME/a store", "${S}/a store", f"dir:{self.store}":
            self.assertEqual(self.words("show", text, "c", env=home), ["cold"], text)

    def test_silent(self):
        """Nothing on any failure: no store, no rights, damage, another kind of store."""
        for store in "nowhere", "/proc/1/fdinfo", "s3://bucket/prefix", "ftp://x", "$UNSET/x", "":
            self.assertEqual(self.words("show", store, ""), [])
        self.assertEqual(self.words("show", self.store, "nowhere@"), [])
        self.assertIn("'tcsh' is none of bash, zsh and fish", self.fails("completion", "tcsh"))
        self.assertIn("'words' is none of bash, zsh and fish", self.fails("completion", "words"))
        self.assertIn("'x' is one word too many", self.fails("completion", "bash", "x"))

    # --- real shells

    def shell(self, words, setup, keys):
        """A shell at a terminal: what is typed, and the text that it then shows."""
        folder = self.folder / "bin"
        folder.mkdir(exist_ok=True)
        if not (folder / "varve").exists():
            (folder / "varve").symlink_to(command.BIN)
        self.folder.joinpath("home").mkdir(exist_ok=True)
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execvpe(words[0], words, {**self.env, "PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(self.folder / "home"), "TERM": "xterm",
                                         "LC_ALL": "C.UTF-8"})
        seen = ""

        def until(text):
            nonlocal seen
            end = time.monotonic() + command.PATIENCE
            while text not in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]|[\x07\x0e\x0f]", "", seen):
                if time.monotonic() > end or not select.select([fd], [], [], max(0, end - time.monotonic()))[0]:
                    self.fail(f"waited for {text!r}: {seen!r}")
                try:
                    seen += os.read(fd, 65536).decode(errors="replace")
                except OSError:
                    self.fail(f"{words[0]} has ended before {text!r}: {seen!r}")

        try:
            for typed, text in [*setup, *keys]:
                seen = ""
                os.write(fd, typed.encode())
                until(text)
        finally:
            os.close(fd)
            os.kill(pid, 9)
            os.waitpid(pid, 0)

    def lines(self):
        """What is typed, and what the line then has; it is cleared after that."""
        def line(typed, text):
            return [(typed + "\t", text), ("\x15echo cle''ar\r", "clear")]

        return [*line("varve conf", "varve config "), *line("varve ls --new", "--newest "), *line("varve -c coll", "collective="),
                *line("varve ls -c mode=sy", "mode=sync "), *line("varve show a\\ store co", "cold "),
                *line("varve show a\\ store heat@9", "heat@9 "), *line("varve drop a\\ store heat@1..9", "heat@1..9 "),
                *line("varve ls a\\ s", "a\\ store"), *line("varve pack --level=f", "--level=fast "), *line("varve help verif", "verify ")]

    def test_bash(self):
        script = self.file("varve.bash", self.varve("completion", "bash").encode())
        self.shell(["bash", "--norc", "--noprofile", "-i"], [("PS1='$ '\r", "$ "), (f". '{script}'; echo rea''dy\r", "ready")], self.lines())

    def test_bash_answers(self):
        """All candidates of a word, with bash's own characters between words."""
        script = self.file("varve.bash", self.varve("completion", "bash").encode())
        varve = command.BIN.replace(" ", "\\ ")
        for line, wanted in ((f"{varve} show a\\ store heat@1", ["@12", "@11", "@10", "@1"]), (f"{varve} show 'a store' ", ["cold", "heat", "hot"]),
                             (f"{varve} ls --option=mode=", ["async", "sync"]), (f"{varve} drop a\\ store heat@10..1", ["@10..12", "@10..11", "@10..10", "@10..1"])):
            # readline cuts words like this
            parts = re.findall(r"(?:\\.|'[^']*'|[^\s:=@\\'])+|[:=@]+", line) + ([""] if line.endswith(" ") else [])
            code = (f". '{script}'; COMP_WORDBREAKS=$' \\t\\n\"\\'@><=;|&(:'; COMP_LINE=$1; COMP_POINT=${{#1}}; shift; COMP_WORDS=(\"$@\"); "
                    "COMP_CWORD=$(($# - 1)); compopt() { :; }; _varve; printf '%s\\n' \"${COMPREPLY[@]}\"")
            p = subprocess.run(["bash", "-c", code, "bash", line, *parts], capture_output=True, text=True, cwd=self.folder, env=self.env)
            self.assertEqual((p.stdout.split(), p.stderr), (wanted, ""), line)

    def test_zsh(self):
        if not shutil.which("zsh"):
            self.skipTest("no zsh here")
        folder = self.folder / "functions"
        folder.mkdir()
        (folder / "_varve").write_text(self.varve("completion", "zsh"))
        for load in (f"fpath=('{folder}' $fpath); autoload -Uz compinit; compinit -u -D", f"autoload -Uz compinit; compinit -u -D; . '{folder}/_varve'"):
            self.shell(["zsh", "-f", "-i"], [("PS1='$ '; unsetopt prompt_sp beep\r", "$ "), (f"{load}; echo rea''dy\r", "ready")], self.lines())

    def test_fish(self):
        if not shutil.which("fish"):
            self.skipTest("no fish here")
        script = self.file("varve.fish", self.varve("completion", "fish").encode())
        bin = self.folder / "bin"
        bin.mkdir()
        (bin / "varve").symlink_to(command.BIN)
        for line, wanted in (("varve conf", ["config"]), ("varve ls --new", ["--newest"]), ("varve -c coll", ["collective="]), ("varve ls -c mode=sy", ["mode=sync"]),
                             ("varve show a\\ store ", ["cold", "heat", "hot"]), ("varve show a\\ store heat@9", ["heat@9"]), ("varve ls a\\ s", ["a store/"]),
                             ("varve pack --level=f", ["--level=fast"])):
            p = subprocess.run(["fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", script, line], capture_output=True, text=True,
                               cwd=self.folder, env={**self.env, "HOME": str(self.folder), "PATH": f"{bin}:{os.environ['PATH']}"})
            self.assertEqual((sorted(text.split("\t")[0].replace("\\", "") for text in p.stdout.splitlines()), p.stderr), (wanted, ""), line)

    def test_installed(self):
        """The files of the build are what the command prints."""
        made = pathlib.Path(os.environ["VARVE_BUILD"]) / "completion"
        if not made.exists():
            self.skipTest("this build has made no completions")
        for shell in "bash", "zsh", "fish":
            self.assertEqual((made / f"varve.{shell}").read_text(), self.varve("completion", shell))


if __name__ == "__main__":
    unittest.main()
