#!/usr/bin/env python3
# ctest: TIMEOUT 120
"""`varve run` with programs of every kind, as somebody would try it who has never read a page: what works, works, and of what cannot one is told why."""
import os
import pathlib
import shutil
import subprocess
import sys

import command
import run_case
from run_case import REAL, SOURCE, Case


def result(steps):
    total = 0
    for i in range(steps):
        total = (total * 31 + i) % 2**64
    return f"{steps} {total}\n"


class ProgramKinds(Case):
    @classmethod
    def setUpClass(cls):
        cls.compiled = cls.compile("program")

    @classmethod
    def compile(cls, name, *flags):
        out = run_case.PLACE / name
        subprocess.run([os.environ["CC"], "-O1", "-D_GNU_SOURCE", f"-I{SOURCE}/include", SOURCE / "tests/cli/run_program_kinds.c", "-o", out, *flags], check=True)
        return out

    def setUp(self):
        super().setUp()
        del self.env["VARVE_PRELOAD"]
        self.env["RUN_PROGRAM"] = str(self.compiled)

    def go(self, *words, options=(), **env):
        """What came of it, and what was said."""
        p = subprocess.run([command.BIN, "run", "--every", "0", "--store", self.store, "--lineage", "a", *options, "--", *map(str, words)], capture_output=True,
                           text=True, env={**self.env, **env}, cwd=self.folder, timeout=command.PATIENCE)
        return p.returncode, p.stdout, p.stderr

    def fine(self, *words, steps=6, **more):
        status, out, said = self.go(*words, **more)
        self.assertEqual((status, out), (0, result(steps)), said)
        self.assertRegex(said, r"epoch \d+ is durable")
        return said

    def test_plain(self):
        said = self.fine(self.compiled)
        self.assertNotIn("warning", said)

    def test_exec(self):
        self.fine(self.compiled, "exec")

    def test_exec_in_the_midst(self):
        self.assertIn("continues from epoch 4", self.fine(self.compiled, "reexec", options=("-o", "mode=sync")))

    def test_other_processes(self):
        self.fine(self.compiled, "tools")
        said = self.fine(self.compiled, "late", options=("--restart", "none"))
        self.assertEqual(said.count("child: 0"), 6)

    def test_a_child_that_calls(self):
        """Who comes first has the lineage, and the other is told of, once."""
        status, out, said = self.go(self.compiled, "early")
        self.assertEqual((status, out), (0, result(6)), said)
        self.assertEqual(said.count("is being written by"), 1, said)
        status, out, said = self.go(self.compiled, "nested", options=("--restart", "none"))
        self.assertEqual((status, out), (0, result(6)), said)
        self.assertIn("another process of the program calls varve_checkpoint_here, too, and goes without", said)
        self.assertNotIn("no checkpoints can be taken", said)

    def test_scripts(self):
        for first in "#!/bin/sh\n", "":
            script = self.file("script", f"{first}{self.compiled} plain\n".encode())
            os.chmod(script, 0o755)
            self.fine(script, options=("--restart", "none"))
            self.fine("./script", options=("--restart", "none"))
        os.chmod(script, 0o644)
        status, out, said = self.go("./script")
        self.assertEqual(status, 126)
        self.assertIn("cannot start './script': Permission denied", said)
        self.fine("sh", "script", options=("--restart", "none"))

    def test_not_there(self):
        for name in "./none", "none", "":
            status, out, said = self.go(name)
            self.assertEqual(status, 127)
            self.assertIn(f"cannot start '{name}': No such file or directory", said)
        self.assertIn("cannot start '.': Permission denied", self.go(".")[2])
        self.assertFalse(self.store.exists())

    def test_static(self):
        try:
            program = self.compile("static", "-static", "-w")
        except subprocess.CalledProcessError:
            self.skipTest("no static C library")
        status, out, said = self.go(program)
        self.assertEqual((status, out), (0, result(6)))
        self.assertIn("is linked statically", said)
        self.assertIn("varve image", said)
        self.assertIn("is linked statically", self.go(program.name, PATH=f"{program.parent}:{os.environ['PATH']}")[2])

    def test_by_the_loader(self):
        """Told what to load, it is no static program; and another build is another program, though the loader is the same."""
        loader = subprocess.run(["readelf", "-p", ".interp", self.compiled], capture_output=True, text=True, check=True).stdout.split()[-1]
        self.assertNotIn("statically", self.fine(loader, self.compiled))
        self.assertIn("continues from epoch 3", self.fine(loader, self.compiled, options=("--restart", "3")))
        status, out, said = self.go(loader, self.compile("rebuilt", "-O2"), options=("--restart", "3"))
        self.assertEqual(status, 76, said)
        self.assertIn("the executable is not the one", said)

    def test_rights(self):
        if os.geteuid() != 0:
            self.skipTest("only root makes programs that run as somebody else")
        program = pathlib.Path(shutil.copy(self.compiled, self.folder / "rights"))
        os.chown(program, 65534, -1)
        os.chmod(program, 0o4755)
        if os.statvfs(program).f_flag & os.ST_NOSUID:
            self.skipTest("no set-id programs on this file system")
        os.chmod(self.folder, 0o755)
        status, out, said = self.go(program)
        self.assertEqual(status, 0, said)
        self.assertIn("has rights of its own", said)
        os.chmod(program, 0o755)
        self.assertNotIn("of its own", self.fine(program))

    def test_words_for_jemalloc(self):
        """They are for the program's own, if it has one."""
        for words in "abort_conf:true,nonsense:1", "percpu_arena:percpu,narenas:7,background_thread:true":
            said = self.fine(self.compiled, MALLOC_CONF=words, options=("--restart", "none"))
            self.assertNotIn("jemalloc", said)

    def test_allocators(self):
        """Linked as a library they stay behind ours; the program's heap is captured."""
        for name in "libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2":
            for library in pathlib.Path("/usr/lib").glob(f"*/{name}"):
                said = self.fine(self.compile("linked", "-Wl,--no-as-needed", library), options=("--restart", "none"))
                self.assertNotIn("nothing that could be saved", said)
                self.fine(self.compiled, options=("--restart", "none"), LD_PRELOAD=str(library))


if __name__ == "__main__":
    if not REAL.exists():
        print(f"skipped: {REAL.name} is not built")
        sys.exit(77)
    run_case.main()
