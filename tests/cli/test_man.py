#!/usr/bin/env python3
"""The manual pages know every verb, every option of every verb, every option of varve.conf, every function of varve.h."""
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
        header = (ROOT / "include" / "varve" / "varve.h").read_text()
        functions = set(re.findall(r"^VARVE_API[^;(]*?\b(varve_\w+)\(", header, re.M))
        self.assertGreater(len(functions), 15)
        overview = page("varve.3")
        for f in functions:
            self.assertIn(f, overview)
            text = page(f + ".3")
            link = re.fullmatch(r"\.so man3/(\w+\.3)\n", text)
            self.assertIn(f, page(link.group(1)) if link else text)
        for code in re.findall(r"^\t(VARVE_E\w+) =", header, re.M):
            self.assertIn(code, overview)

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
