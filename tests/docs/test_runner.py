#!/usr/bin/env python3
# ctest: TIMEOUT 120
"""What test_commands.py must find, and what it must let pass: pages that are right and pages that are wrong."""
import pathlib
import sys
import tempfile
import time
import unittest

import page
import test_commands


def block(language, *lines):
    return "\n".join(["```" + language, *lines, "```", ""])


def console(*lines):
    return block("console", *lines)


def alive(pid):
    """Neither gone nor a zombie that waits for its parent."""
    try:
        return pathlib.Path("/proc", pid, "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Runner(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory(prefix="varve-runner-")
        cls.work = pathlib.Path(cls.place.name).resolve()
        cls.installed = test_commands.Installed(cls.work)
        cls.installed.known["zstd"] = True  # sizes are compared in every build: no page here compresses

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def read(self, *parts, name="page.md"):
        """(problems, the line that sums up) of a page of these parts."""
        path = self.work / name
        path.write_text("\n".join(parts) if name != "page.md" else "# A page\n\n" + "\n".join(parts))
        return test_commands.read(page.pages([path])[0], self.installed, self.work, False)

    def right(self, *parts, **name):
        problems, line = self.read(*parts, **name)
        self.assertEqual(problems, [])
        return line

    def wrong(self, word, *parts, **name):
        problems, _ = self.read(*parts, **name)
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(word, problems[0])

    def test_stale_numbers(self):
        """Sizes and ratios must be near those that the page shows; times, rates and shares need not."""
        said = "$ echo '10.6 MiB in 3.0 s, 4.0x, 20 MiB/s, 12 %, 900 B, then 2.00 KiB'"
        self.right(console(said, "11.5 MiB in 9.0 s, 3.8x, 90 MiB/s, 70 %, 1000 B, then 2.01 KiB"))
        self.right(console(said, "... then 2.01 KiB"))
        for shown in ("17.0 MiB in ..., then 2.00 KiB", "10.6 MiB in 3.0 s, 8.0x, 20 MiB/s, 12 %, 900 B, then 2.00 KiB",
                      "10.6 KiB in 3.0 s, 4.0x, 20 MiB/s, 12 %, 900 B, then 2.00 KiB", "... then 7.00 KiB"):
            self.wrong("the page shows", console(said, shown))
        self.wrong("it is 7.5 MiB", console("$ printf 'a\\nb 7.5 MiB\\nc\\n'", "...", "b 9.9 MiB", "c"))

    def test_output(self):
        self.right(console("$ printf 'one\\ntwo\\nthree\\n'", "one", "...", "three"))
        self.right(console("$ echo took 3.2 ms for 1.5 GiB at 2026-01-02 03:04:05", "took 12 s  for 1.7 GiB at 2020-12-31 23:59:59"))
        self.right(console("$ echo anything at all"))
        self.right(console("$ echo one two three", "one ... three"))
        self.right(console("$ echo first; \\", "  echo second", "first", "second"))
        self.right(console("$ cat <<END", "> text", "> END", "text"))
        self.right(console("$ pwd", "/scratch", "$ touch /scratch/x", "$ ls", "x"))
        self.wrong("the page says", console("$ echo epoch 3", "epoch 4"))
        self.wrong("the page says", console("$ echo one", "one", "two"))
        self.wrong("the page says", console("$ printf 'one\\ntwo\\n'", "one"))
        self.wrong("the page says", console("$ echo oops >&2", "fine"))
        self.wrong("begins with a command", console("no command"))

    def test_status(self):
        self.right(console("$ false", "[exit 1]", "$ (echo no; exit 3)", "no", "[exit 3]"))
        self.wrong("status 1, not 0", console("$ false"))
        self.wrong("status 0, not 1", console("$ true", "[exit 1]"))
        self.wrong("status 1, not 0", block("sh", "false", "true"))
        self.wrong("status 1, not 0", "<!-- run: false -->")
        self.wrong("status 1, not 0", "<!-- run: false && true -->")
        self.wrong("status 5, not 0", console("$ exit 5"))
        self.wrong("ended the page's shell", console("$ exit 5", "[exit 5]", "$ true"))
        self.right(console("$ kill $$", "$ sleep 99 & kill $!; wait $!", "...", "[exit 143]"))
        self.wrong("was killed by signal 9", console("$ kill -9 $$"))
        self.wrong("status 127", console("$ varve_is_not_called_so ls"))

    def test_carries_over(self):
        self.right(block("sh", "mkdir a && cd a", "x=5"), console("$ basename $PWD/$x", "5"), "<!-- run: test -z \"$VARVE_MODE$VARVE_SOURCE\" -->")

    def test_files(self):
        self.right("<!-- file: a/b.sh -->", block("sh", "#!/bin/sh", "echo ran"), console("$ a/b.sh", "ran"))
        self.wrong("outside", "<!-- file: ../x -->", block("text", "x"))

    def test_code(self):
        self.right("<!-- fragment: extern varve *v; -->", block("c", "varve_checkpoint(v);"))
        self.right("<!-- before: extern int a; -->", block("c", "int f(void);", "int f(void) { return a; }"))
        self.wrong("does not compile", block("c", "varve_checkpoint(v);"))
        self.wrong("does not compile", "<!-- fragment -->", block("c", "varve *v = NULL; varve_checkpiont(v);"))

    def test_skips(self):
        self.assertIn("1 skipped: another program's", self.right("<!-- not run: another program's -->", block("sh", "false")))
        self.wrong("without a reason", "<!-- not run: -->", block("sh", "false"))
        self.wrong("none of", "<!-- needs: luck -->", block("sh", "false"))
        test_commands.NEEDS["never"] = "false"
        self.assertIn("no never here", self.right("<!-- needs: never -->", block("sh", "false"), "<!-- needs: never -->", "<!-- run: false -->"))
        del test_commands.NEEDS["never"]

    def test_forms(self):
        self.wrong("without a language", block("", "varve ls"))
        self.wrong("indented", "Text:\n\n    varve ls ckpt\n")
        self.wrong("not closed", "```sh\ntrue\n")
        self.wrong("a comment that says none of", "<!-- runn: false -->")
        self.right("- a list\n\n    with a second paragraph\n")

    def test_manual(self):
        """Blocks and notes of manual pages; what roff has its own signs for."""
        def command(*lines):
            return "\n".join([".SH EXAMPLES", *lines])

        one, three = {"name": "page.1"}, {"name": "page.3"}
        self.assertIn("1 blocks", self.right(command(".nf", ".RS", "test \\(aqa\\-b\\(aq = \\fBa\\-b\\fP", ".RE", ".fi"), **one))
        self.right(command('.\\" run:', '.\\" x=5', '.\\" mkdir a', '.\\" run: cd a', ".PP", ".nf", "test $(basename $PWD)$x = a5", ".fi"), **one)
        self.assertIn("1 skipped", self.right(command('.\\" not run: elsewhere', ".nf", "false", ".fi"), **one))
        self.wrong("status 1, not 0", command(".nf", "false", "true", ".fi"), **one)
        self.wrong("none of", command('.\\" runn: true', ".nf", "true", ".fi"), **one)
        self.wrong("without its .fi", command(".nf", "true"), **one)
        self.wrong("'.TP' in code", command(".nf", "true", ".TP", ".fi"), **one)
        synopsis = [".nf", ".B #include <varve/varve.h>", ".PP", '.BI "int varve_close(varve *" v );', ".fi"]
        self.right(*synopsis, '.\\" fragment: extern varve *v;', ".nf", "varve_close(v);", ".fi", **three)
        self.wrong("does not compile", *[line.replace('"int', '"long') for line in synopsis], **three)
        self.wrong("does not compile", ".nf", "varve_close(v);", ".fi", **three)

    def test_ends(self):
        """What a page has started does not outlive it; what hangs is ended."""
        name = str(self.work / "pid")
        self.right(block("sh", f"setsid sleep 1000 & echo $! >{name}"))
        self.assertFalse(alive(pathlib.Path(name).read_text().strip()))
        limit, test_commands.COMMAND_SECONDS = test_commands.COMMAND_SECONDS, 0.3
        begin = time.monotonic()
        self.wrong("did not end in time", console("$ sleep 1000"))
        test_commands.COMMAND_SECONDS = limit
        self.assertLess(time.monotonic() - begin, 60)


if __name__ == "__main__":
    if test_commands.sanitized():
        sys.exit(77)
    unittest.main()
