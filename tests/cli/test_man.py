#!/usr/bin/env python3
"""The manual pages know every verb, every option of every verb, every option of varve.conf, every function of the headers."""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import command

ROOT = pathlib.Path(os.environ["VARVE_SOURCE"])
MAN = ROOT / "docs" / "man"


def page(name):
    """A page's text with dashes as dashes and without fonts."""
    return re.sub(r"\\f[BIRP]", "", (MAN / name).read_text().replace("\\-", "-"))


class Man(command.Case):
    def test_verbs(self):
        text = page("varve.1")
        for verb in re.findall(r"^  (\w+) ", self.varve("help").split("Options")[0], re.M):
            self.assertRegex(text, rf"varve {verb}\b")
            for option in re.findall(r"^  ...\s--([a-z-]+)", self.varve("help", verb), re.M):
                self.assertIn("--" + option, text, verb)

    def test_options(self):
        text = page("varve.conf.5")
        for option in self.json("config")["options"]:
            self.assertRegex(text, rf'(?m)^\.BR {option["name"]} "')

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
        for path in sorted(MAN.iterdir()):
            if path.read_text().startswith(".so "):
                continue
            p = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", path], capture_output=True, text=True)
            self.assertEqual((p.returncode, p.stderr), (0, ""), path)


if __name__ == "__main__":
    unittest.main()
