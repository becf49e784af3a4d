#!/usr/bin/env python3
"""varve_checkpoint_here: the same binary runs with libvarve_preload.so and without, and needs no other library of varve."""
import os
import pathlib
import subprocess
import tempfile

import toolchain

MODERN = """
use varve_here
logical :: restored
integer :: stat
call varve_checkpoint_here()
call varve_checkpoint_here(restored)
call varve_checkpoint_here(stat=stat)
print '(l1, 1x, i0)', restored, stat
call varve_checkpoint_here()
end
"""
OLD = """      PROGRAM OLD
      INTEGER VARVE_CHECKPOINT_HERE
      EXTERNAL VARVE_CHECKPOINT_HERE
      INTEGER I
      CALL STEP
      I = VARVE_CHECKPOINT_HERE()
      PRINT '(I0)', I
      END
"""
STEP = """      SUBROUTINE STEP
      CALL VARVE_CHECKPOINT_HERE()
      END
"""
PRELOAD = """
#include <stdio.h>
#include <stdlib.h>
static int calls;
const char *varve_last_error(void) { return "the disk is full"; }
int varve_checkpoint_here(void)
{
	fprintf(stderr, "call %d\\n", ++calls);
	return calls == 2 ? 1 : calls == atoi(getenv("FAIL_AT")) ? -8 : 0;
}
"""


def run(program, fail_at=None):
    env = dict(os.environ)
    if fail_at is not None:
        env.update(LD_PRELOAD=str(preload), FAIL_AT=str(fail_at))
    done = subprocess.run([program], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stdout, done.stderr


def check_modern(program):
    assert run(program) == (0, "F 0\n", ""), run(program)
    assert run(program, 3)[:2] == (0, "T -8\n") and run(program, 3)[2].count("call") == 4, run(program, 3)
    code, out, err = run(program, 4)
    assert code == 1 and out == "T 0\n" and "the disk is full" in err, (code, out, err)


def check_old(program):
    assert run(program) == (0, "0\n", ""), run(program)
    assert run(program, 9)[:2] == (0, "1\n"), run(program, 9)
    code, out, err = run(program, 1)
    assert code == 0 and out == "1\n" and "the disk is full" in err, (code, out, err)


toolchain.need_compiler()
if toolchain.SANITIZE:
    print("skip: a sanitizer's library must come before a preloaded one")
    raise SystemExit(77)
library = toolchain.BUILD / "libvarve_fortran.a"
with tempfile.TemporaryDirectory() as folder:
    preload = pathlib.Path(folder, "preload.so")
    subprocess.run([toolchain.CC, "-shared", "-fPIC", "-x", "c", "-", "-o", preload], input=PRELOAD, text=True, check=True)
    for name, source in (("old.f", OLD), ("step.f", STEP)):  # a compiler that saw both would not have it as either
        pathlib.Path(folder, name).write_text(source)
    for position in ("-pie", "-no-pie"):
        flags = [position] if position == "-pie" else [position, "-fno-pie"]
        check_modern(toolchain.build(folder, "modern", MODERN, *flags, library, "-ldl"))
        fine, said = toolchain.compile(folder, None, "old.f", "step.f", "-o", "old", *flags, library, "-ldl")
        assert fine, said
        check_old(pathlib.Path(folder, "old"))
        needed = subprocess.run(["ldd", pathlib.Path(folder, "old")], stdout=subprocess.PIPE, text=True, check=True).stdout
        assert "libvarve" not in needed, needed
