"""What the tests of `varve run` share: its programs, and hearing what it says."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import command
from command import PATIENCE

SOURCE = pathlib.Path(os.environ["VARVE_SOURCE"])
BUILD = pathlib.Path(os.environ["VARVE_BUILD"])
REAL = BUILD / "libvarve_preload.so"
PLACE = None  # of programs and the stand-in: set by main
EACH = ("--every", "0", "-o", "mode=sync")  # every step is an epoch, durable before the next one: the same on slow machines


class Case(command.Case):
    LIBRARY, PROGRAM = "stand-in.so", "program"

    def setUp(self):
        super().setUp()
        self.env["TMPDIR"] = str(self.folder)
        self.env["VARVE_PRELOAD"] = str(PLACE / self.LIBRARY)
        self.program = str(PLACE / self.PROGRAM)

    def start(self, *words, options=(), store=None, **more):
        """varve run in the background; its events come through a pipe, for what libraries warn of is on the standard error."""
        env = {**self.env, **more.pop("env", {})}
        read, write = os.pipe()
        p = subprocess.Popen([command.BIN, "run", "--store", store or self.store, "--lineage", "a", "--json", "--log", f"/dev/fd/{write}", *map(str, options), "--",
                              *map(str, words)], stdout=subprocess.PIPE, text=True, env=env, cwd=self.folder, pass_fds=[write], **more)
        os.close(write)
        p.events, p.heard, p.pid_of_program = os.fdopen(read), [], None
        self.addCleanup(self.end, p)
        return p

    def end(self, p):
        if p.poll() is None:
            p.kill()
            if p.pid_of_program and command.is_in(p.pid_of_program, self.folder):
                with contextlib.suppress(ProcessLookupError):  # varve run's guard kills it, too
                    os.killpg(p.pid_of_program, signal.SIGKILL)
        p.wait()
        p.stdout.close()
        p.events.close()

    def hear(self, p, event=None, **want):
        """Events up to this one; all of them if none is named."""
        for line in p.events:
            e = json.loads(line)
            p.heard.append(e)
            if e["event"] == "started":
                p.pid_of_program = int(e["text"].split()[1])
            if e["event"] == event and all(e[k] == v for k, v in want.items()):
                return e
        if event:
            self.fail(f"no '{event}' {want} in {p.heard}")
        return p.heard

    def finish(self, p, status=0, result=None):
        self.hear(p)
        out = p.stdout.read()
        self.assertEqual(p.wait(PATIENCE), status, p.heard)
        if result:
            self.assertEqual(out, f"right after {result} steps\n", p.heard)
        self.assertEqual(list(self.folder.glob(".varve-run-*")), [])
        return p.heard[-1]

    def words(self, p):
        return [e["event"] for e in p.heard]

    def texts(self, p):
        return " / ".join(e.get("text", "") for e in p.heard)

    def steps(self, rank=0):
        path = self.folder / "steps"
        return [int(line.split()[1]) for line in path.read_text().splitlines() if int(line.split()[0]) == rank] if path.exists() else []

    def beyond(self):
        """More steps than any program has made here, however long it was left to itself."""
        return max(self.steps()) + 20

    def let_go(self):
        """Programs that stay may end."""
        self.file("go", b"")


def build(cc, suffix="", flags=(), libraries=()):
    """The programs and the stand-in for the library that captures memory."""
    common = ["-O1", "-D_GNU_SOURCE", *flags]
    for name, more in (("program", []), ("larger", ["-DNOISE=(1<<15)"])):
        subprocess.run([cc, *common, *more, "-rdynamic", "-o", PLACE / (name + suffix), SOURCE / "tests/cli/run_program.c"], check=True)
    subprocess.run([cc, *common, "-shared", "-fPIC", f"-I{SOURCE}/include", f"-I{SOURCE}/src", "-o", PLACE / f"stand-in{suffix}.so",
                    SOURCE / "tests/cli/run_stand_in.c", f"-L{BUILD}", *libraries, "-lvarve", f"-Wl,-rpath,{BUILD}"], check=True)


def main(*how):
    global PLACE
    if re.search(r"^VARVE_SANITIZE:\w+=.", (BUILD / "CMakeCache.txt").read_text(), re.M):
        print("skipped: what is preloaded into any program cannot be built with a sanitizer")
        sys.exit(77)
    with command.tempfile.TemporaryDirectory(prefix="varve-run-") as folder:
        PLACE = pathlib.Path(os.path.realpath(folder))
        build(os.environ["CC"])
        if how:
            build(*how)
        command.unittest.main()
