#!/usr/bin/env python3
"""The manual pages know every verb, exactly the options of every verb, every option of varve.conf, every function of the headers."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import command

ROOT = pathlib.Path(os.environ["VARVE_SOURCE"])
MAN = ROOT / "docs" / "man"
MADE = pathlib.Path(os.environ["VARVE_BUILD"]) / "man"  # those of the command


def page(name):
    """A page's text with dashes as dashes and without fonts."""
    path = MADE / name if name.endswith(".1") else MAN / name
    return re.sub(r"\\f[BIRP]", "", path.read_text().replace("\\-", "-"))


def heads(text):
    """The options of a page or of a help, each with its letter and the placeholder of its value."""
    return set(re.findall(r"(?m)^ *((?:-\w, *)?--[a-z-]+(?: (?! )\S+)?)(?:$|\s)", text))


class Man(command.Case):
    def made(self):
        if not MADE.exists():
            self.skipTest("this build has made no manual pages of the command")

    def test_verbs(self):
        """A page for each verb, and no other, with the options of its help, and no other."""
        self.made()
        text = page("varve.1")
        verbs = [verb["name"] for verb in self.json("help")["verbs"]]
        self.assertEqual(sorted(p.name for p in MADE.iterdir()), sorted(["varve.1", *(f"varve-{v}.1" for v in verbs)]))
        for verb in verbs:
            self.assertRegex(text, rf"varve-{verb} \(1\)")
            one, usage = page(f"varve-{verb}.1"), self.varve("help", verb)
            self.assertIn(usage.split("\n")[0].removeprefix("usage: "), one)
            self.assertEqual(heads(one), heads(usage.split("Options", 1)[1]), verb)
        self.assertEqual(heads(text), heads(self.varve("help").split("Options", 1)[1]))

    def test_width(self):
        """In a window of 80 columns no line of a page is longer."""
        self.made()
        if not shutil.which("man"):
            self.skipTest("no man")
        for path in sorted([*MAN.glob("*.[35]"), *MADE.iterdir()]):
            if path.read_text().startswith(".so "):
                continue
            text = subprocess.run(["man", "-l", path], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                                  env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": ""}).stdout
            self.assertIn("NAME", text, path)
            lines = [line.expandtabs() for line in re.sub(r".\x08", "", text).splitlines()]
            self.assertEqual([line for line in lines if len(line) > 80], [], path.name)

    def test_text_is_needed(self):
        """The pages cannot be made if a verb or an option has no text, or a text has no verb."""
        source = self.folder / "source"
        shutil.copytree(MAN, source / "docs" / "man")

        def says():
            return subprocess.run([sys.executable, ROOT / "tools" / "man_pages.py", command.BIN, source, self.folder / "out"], capture_output=True,
                                  text=True).stderr

        body = source / "docs" / "man" / "verbs" / "ls.1"
        self.assertEqual(says(), "")
        text = body.read_text()
        body.write_text(text.replace(".OPTION newest", ""))
        self.assertIn("no text about --newest", says())
        body.write_text(text + ".OPTION nwest\n")
        self.assertIn("there is no option --nwest", says())
        body.rename(body.with_name("lss.1"))
        self.assertIn("there is no verb lss", says())
        body.with_name("lss.1").unlink()
        self.assertIn("the verb ls has no text", says())

    def test_options(self):
        text = page("varve.conf.5")
        for option in self.json("config")["options"]:
            self.assertRegex(text, rf'(?m)^\.BR {option["name"]} "')

        section = re.search(r"(?ms)^\.SS For comparison with published algorithms\n(.*?)^\.S[HS]", text)[1]
        comparison = {o["name"] for o in self.json("config")["options"] if o["tier"] == "comparison"}
        self.assertEqual(set(re.findall(r'(?m)^\.TP\n\.BR (\S+) "', section)), comparison)

    def test_functions(self):
        overview, count = page("varve.3"), {}
        for path in (ROOT / "include" / "varve").glob("*.h"):
            functions = set(re.findall(r"^VARVE_API[^;(]*?\b(varve_\w+)\(", path.read_text(), re.M))
            count[path.name] = len(functions)
            for f in functions:
                text = page(f + ".3")
                link = re.fullmatch(r"\.so man3/(\w+\.3)\n", text)
                text = page(link.group(1)) if link else text
                self.assertIn(f, overview)
                self.assertIn(f, text)
                self.assertIn(f"#include <varve/{path.name}>", text)
        self.assertGreater(count["varve.h"], 15)
        self.assertGreaterEqual(min(count["varve_comm.h"], count["varve_mpi.h"]), 1)
        header = (ROOT / "include" / "varve" / "varve.h").read_text()
        for code in re.findall(r"^\t(VARVE_E\w+) =", header, re.M):
            self.assertIn(code, overview)

    def test_comm(self):
        """The plug's struct is the page's, member by member."""
        def members(text):
            body = re.search(r"struct varve_comm \{(.*?)\n\};", text, re.S).group(1)
            return re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", body, flags=re.S)).strip()

        header = (ROOT / "include" / "varve" / "varve_comm.h").read_text()
        self.assertEqual(members(header), members(page("varve_open_comm.3")))

    def test_groff(self):
        if not shutil.which("groff"):
            self.skipTest("no groff")
        self.made()
        for path in sorted([*MAN.glob("*.[35]"), *MADE.iterdir()]):
            if path.read_text().startswith(".so "):
                continue
            p = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", path], capture_output=True, text=True)
            self.assertEqual((p.returncode, p.stderr), (0, ""), path)
            if shutil.which("mandoc"):
                p = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", path], capture_output=True, text=True)
                self.assertEqual(p.stdout, "", path)


if __name__ == "__main__":
    unittest.main()
