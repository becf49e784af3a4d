#!/usr/bin/env python3
# ctest: TIMEOUT 120
"""docs/troubleshooting.md quotes messages. Each must be one of the sources', word by word, and many are provoked here:
what is printed must be what the page says."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(os.environ.setdefault("VARVE_SOURCE", str(pathlib.Path(__file__).resolve().parents[2])))
BUILD = pathlib.Path(os.environ.setdefault("VARVE_BUILD", str(ROOT / "build")))
os.environ.setdefault("VARVE_BIN", str(BUILD / "varve"))
sys.path[:0] = [str(ROOT / "tests" / "cli"), str(ROOT / "tools")]
import command  # noqa: E402
from messages import CONVERSION, TOKEN  # noqa: E402

PAGE = ROOT / "docs" / "troubleshooting.md"
TROUBLE = BUILD / "tests" / "trouble_check"
CONFIG = subprocess.run([command.BIN, "config"], capture_output=True, text=True).stdout
# what stands for names and numbers in the page's messages
NAMES = ("ADDRESS BUCKET CALL EPOCH EXPECTED FILE FOLDER HOLDER HOST KEY LIBRARY LINEAGE LIST METHOD N NAME OPTION ORIGIN PATH REASON REGION "
         "STORE TIME TYPE URL VALUE VERB WHOM").split()
NAME = rf"(?:{'|'.join(sorted(NAMES, key=len, reverse=True))})"


def built_with(what, kind):
    return re.search(rf"^  {kind} .*\b{what}\b", CONFIG, re.M)


# --- what the page says

def quoted():
    """The blocks of text; a message may go over several lines."""
    return [" ".join(block.split()) for block in re.findall(r"^```text\n(.*?)^```$", PAGE.read_text(), re.M | re.S)]


def as_printed(message):
    """A regular expression for the message with any names in it."""
    parts = re.split(rf"(\bSIGNAME\b|\b{NAME}\b)", message)
    return "".join({"SIGNAME": "SIG.+?"}.get(part, ".*?") if i % 2 else re.escape(part) for i, part in enumerate(parts)) + "$"


# --- what the sources say

def formats():
    """The string literals of the sources, neighbours joined as the compiler does; PRIu64 and its kin end a conversion."""
    for path in sorted((ROOT / "src").rglob("*.[ch]")):
        text = None
        for token in TOKEN.finditer(path.read_text()):
            if token[1] is not None:
                text = (text or "") + token[1]
            elif token[2] and text is not None:
                text += token[2]
            elif text is not None and not token[0].isspace() and token[0][:2] not in ("//", "/*"):
                yield text.replace('\\"', '"').replace("\\n", "\n")
                text = None


def as_quoted(text):
    """A regular expression for a format with names of the page's in the place of what is filled in. Of several conversions in a row some may be empty; a reason
    of the system may follow."""
    text = text.strip()
    literals = re.split(rf"(?:{CONVERSION.pattern})+", text)
    many = [len(CONVERSION.findall(run)) > 1 for run in re.findall(rf"(?:{CONVERSION.pattern})+", text)]
    out = re.escape(literals[0].replace("%%", "%"))
    for several, literal in zip(many, literals[1:]):
        out += (rf"(?:{NAME})?" if several else NAME) + re.escape(literal.replace("%%", "%"))
    return rf"{out}(?:: REASON)?"


class Quoted(unittest.TestCase):
    def test_sources(self):
        """A message of the page is a format of the sources."""
        known = [re.compile(as_quoted(text)) for text in formats() if len(re.findall(r"[a-z]{2,}", CONVERSION.sub("", text))) > 1
                 or "store '" in text or "cannot " in text]
        for message in quoted():
            with self.subTest(message):
                self.assertTrue(any(pattern.fullmatch(message) for pattern in known), "no source says this (any more)")

    def test_page(self):
        messages = quoted()
        self.assertGreaterEqual(len(messages), 40)
        self.assertEqual(len(messages), len(set(messages)), "a message is there twice")

    def test_matching(self):
        """The checks above can fail."""
        pattern = re.compile(as_quoted("lineage '%s' has no epoch %u%s"))
        self.assertTrue(pattern.fullmatch("lineage 'LINEAGE' has no epoch N"))
        self.assertFalse(pattern.fullmatch("lineage 'LINEAGE' has no epochs N"))
        self.assertFalse(pattern.fullmatch("lineage 'LINEAGE' or so has no epoch N"))
        self.assertTrue(re.search(as_printed("no epoch N ('PATH')"), "varve: no epoch 12 ('a b')", re.M))
        self.assertFalse(re.search(as_printed("no epoch N ('PATH')"), "varve: no epoch 12 ('a b'), or so", re.M))


# --- provoked

class Provoked(command.Case):
    def setUp(self):
        super().setUp()
        self.store = self.folder / "store"
        self.messages = quoted()

    def says(self, words, output):
        """The page has one message with these words, and it is what was printed."""
        chosen = [m for m in self.messages if words in m]
        self.assertEqual(len(chosen), 1, f"{words!r}: {chosen}")
        self.assertTrue(re.search(as_printed(chosen[0]), output, re.M), f"the page has\n{chosen[0]}\nbut what is said is\n{output}")

    def command(self, words, *line, status=2, env=None):
        p = self.run_raw(*line, env=env or {})
        output = (p.stdout + p.stderr).decode()
        self.assertEqual(p.returncode, status, output)
        self.says(words, output)

    def trouble(self, words, mistake):
        p = subprocess.run([TROUBLE, mistake], capture_output=True, text=True, env=self.env, cwd=self.folder, timeout=60)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.says(words, p.stdout)

    def writer(self, words, *line, lineage="heat"):
        p = subprocess.run([command.WRITER, self.store, lineage, "", *line], capture_output=True, text=True, env=self.env, cwd=self.folder, timeout=60)
        self.says(words, p.stdout + p.stderr)
        return p.returncode

    def lay_down(self):
        self.write("region", "T", "f64", "100", "checkpoint", "tick", "T", "1")

    def layer(self, epoch):
        return self.store / "heat" / "00000000" / f"{epoch:010}.r0.layer"

    def test_options(self):
        self.lay_down()
        self.command("unknown option", "-o", "nosuch=1", "ls", "store")
        self.command("NAME = 'VALUE' is not EXPECTED", "-o", "keep=many", "ls", "store")
        self.command("VERB: OPTION 'VALUE' is not EXPECTED", "run", "--every", "soon", "--", "true")
        self.file("varve.conf", b"junk\n")
        self.command("is not of the form name = value", "ls", "store")
        (self.folder / "varve.conf").unlink()
        self.command("names an epoch, and no STORE", "verify", "heat@1")
        (self.folder / "heat").mkdir()
        self.command("may be the store", "ls", "heat", env={"VARVE_STORE": "store"})
        self.command("neither a number nor", "label", "store", "heat", "7")
        self.command("has no epoch with the label", "show", "store", "heat@half")
        self.varve("label", "store", "heat@1", "half")
        self.command("take it away first", "label", "store", "heat@2", "half")
        self.command("in the environment is no option", "ls", "store", status=0, env={"VARVE_KEEPS": "3"})

    def test_names(self):
        self.lay_down()
        self.command("store 'STORE': REASON", "ls", "nowhere")
        self.command("has no lineage", "ls", "store", "cold")
        self.command("is a lineage, not a store", "ls", "store/heat")
        (self.folder / "empty").mkdir()
        self.command("is empty: no checkpoint", "verify", "empty")
        (self.folder / "empty" / "file").touch()
        self.command("is no store of checkpoints", "gc", "empty")
        self.command("has no epoch EPOCH ('varve ls", "show", "store", "heat@99")
        self.command("nothing was dropped", "drop", "store", "heat@99")
        self.command("for ever; say --yes as well", "drop", "store", "heat", "--lineage")
        self.command("these are all epochs of", "drop", "store", "heat", "1..9999")
        self.command("which region?", "extract", "store", "heat")
        self.command("is inside the store", "extract", "store", "heat:T", "-o", "store/x")
        self.command("it holds LIST", "extract", "store", "heat:U", "-o", "x")
        self.command("': a name has letters, digits", "ls", "store", "a/b")
        self.command("is not of the form LINEAGE", "drop", "store", "heat:T")
        self.command("there is no rank N", "show", "store", "heat", "--rank", "3")
        self.file("plain", b"")
        self.command("is not a directory", "ls", "plain")
        self.command("unknown kind", "ls", "gs://bucket/prefix")
        self.command("comes behind --", "run", "true")

    def test_busy(self):
        self.lay_down()
        holder = subprocess.Popen([command.WRITER, self.store, "heat", "", "region", "T", "f64", "100", "restart", "0", "checkpoint", "hold"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.env)
        try:
            self.assertEqual(holder.stdout.readline(), b"3\n")
            self.command("one writer at a time", "drop", "store", "heat@1")
        finally:
            holder.communicate()

    def test_restart(self):
        self.lay_down()
        self.assertEqual(self.writer("declare it with that size", "region", "T", "f64", "50", "restart", "0"), 2)
        self.assertEqual(self.writer("is declared as TYPE", "region", "T", "f32", "200", "restart", "0"), 2)

    def test_ranks(self):
        self.write("ranks", "2", "region", "T", "f64", "100", "checkpoint")
        self.command("each with regions of its own", "extract", "store", "heat:T", "-o", "x")
        self.assertEqual(self.writer("was written by N rank(s)", "region", "T", "f64", "100", "restart", "0"), 2)
        self.writer("rank 0 called CALL", "ranks", "2", "region", "T", "f64", "100", "only", "0", "checkpoint", lineage="other")

    def test_damage(self):
        self.lay_down()
        layer = bytearray(self.layer(2).read_bytes())
        layer[20] ^= 1
        self.layer(2).write_bytes(layer)
        self.command("checksum mismatch", "verify", "store", status=1)
        self.assertEqual(self.writer("trying an older one", "region", "T", "f64", "100", "restart", "0"), 0)

    def test_missing(self):
        self.lay_down()
        self.layer(2).unlink()
        self.command("the file is missing", "verify", "store", status=1)
        self.command("gc stopped at epoch", "gc", "store", status=1)

    def test_mistakes(self):
        for words, mistake in (("of its N at ADDRESS, REASON", "freed"), ("no session (NULL)", "no-session"),
                               ("a child of fork opens its own", "child"), ("has made no checkpoint yet", "no-checkpoint"), ("out is needed", "no-out"),
                               ("has no epoch yet", "no-epoch"), ("a power of two, not N", "odd-grain"), ("cannot write 'PATH'", "full")):
            with self.subTest(mistake):
                shutil.rmtree(self.store, ignore_errors=True)
                self.trouble(words, mistake)

    def test_files(self):
        self.lay_down()
        self.file("a", b"some bytes\n" * 100)
        self.command("leads upwards", "pack", "store", "files", "../a")
        self.command("pack them into another lineage", "pack", "store", "heat", "a")
        self.command("was not packed from files", "unpack", "store", "heat")
        self.varve("pack", "-q", "store", "files", "a")
        self.command("nothing was unpacked", "unpack", "store", "files")
        self.command("has no file", "unpack", "store", "files", "b", "-C", "out")

    def test_request(self):
        asleep = subprocess.Popen(["sleep", "60"])
        try:
            self.command("nothing was sent", "request", asleep.pid)
        finally:
            asleep.kill()
            asleep.wait()

    def test_run(self):
        if re.search("[ :]", str(BUILD)):
            self.skipTest("ld.so takes no blank and no colon in the path of libvarve_preload.so")
        if not built_with("heap", "captures"):
            self.skipTest("built without the capture of heaps")
        self.command("is not auto, none or", "run", "--restart", "x y", "--", "true")
        self.command("without a call of varve_checkpoint_here", "run", "--", "true", status=0)
        shutil.copy(command.BIN, self.folder / "varve-alone")
        p = subprocess.run(["./varve-alone", "run", "--", "true"], capture_output=True, text=True, cwd=self.folder, env={**self.env, "LD_LIBRARY_PATH": str(BUILD)})
        self.says("is neither beside the command", p.stderr)

    def test_report(self):
        self.lay_down()
        if built_with("page", "reports"):
            self.command("install chromium", "report", "store", "heat", "--png", "p", env={"PATH": "/nowhere"})
        else:
            self.command("the page is not built in", "report", "store", "-o", "x.html")

    def test_image(self):
        self.command("there is no process N", "image", "dump", "--pid", 4194305, "store", "job")  # more than there can be

    def test_s3(self):
        if not built_with("s3", "stores"):
            self.command("built without libcurl", "ls", "s3://bucket/prefix")
            return
        keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
        self.command("with a possible bucket name", "ls", "s3://b/prefix", env=keys)
        self.command("no credentials", "ls", "s3://bucket/prefix", env={"AWS_ACCESS_KEY_ID": ""})
        self.command("the endpoint", "-o", "s3-endpoint=nonsense", "ls", "s3://bucket/prefix", env=keys)
        self.command("connection refused", "-o", "s3-endpoint=http://127.0.0.1:1", "-o", "s3-path-style=yes", "-o", "s3-retries=0", "ls", "s3://bucket/prefix", env=keys)

    @unittest.skipIf(os.geteuid() == 0, "root may open everything")
    def test_rights(self):
        self.lay_down()
        (self.store / "heat").chmod(0)
        try:
            self.command("cannot open 'PATH'", "ls", "store", "heat")
        finally:
            (self.store / "heat").chmod(0o755)


if __name__ == "__main__":
    unittest.main()
