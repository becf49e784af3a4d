#!/usr/bin/env python3
# ctest: COST 15
"""examples/train prints the same losses, bit for bit, however often it is killed; and refuses what it should."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

build = pathlib.Path(os.environ["VARVE_BUILD"])
program, demo = build / "examples/train", pathlib.Path(os.environ["VARVE_SOURCE"], "examples/train/demo")
env = {k: v for k, v in os.environ.items() if not k.startswith("VARVE_")}
if not program.exists():
    print("the examples were not built")
    sys.exit(77)


def run(*words, status=0):
    done = subprocess.run([program, *words], env=env, cwd=folder, capture_output=True, text=True)
    assert done.returncode == status, f"{words}: status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stderr if status else done.stdout


with tempfile.TemporaryDirectory() as folder:
    small = ("--context", "16", "--batch", "2")
    for every in ("1", "7"):
        done = subprocess.run([demo, "--build", build, "--device", "cpu", "--kills", "5", "--steps", "200", "--every", every, *small],
                              env=env, capture_output=True, text=True)
        assert done.returncode == 0 and "BIT FOR BIT" in done.stdout, done.stdout + done.stderr

    # it learns
    out = run("--store", "learn", "--steps", "150", *small)
    losses = [float(x) for x in re.findall(r"loss (\S+)", out)]
    assert len(losses) == 150 and sum(losses[-10:]) < 0.85 * sum(losses[:10]), losses
    # a training that has ended goes on if it is given more steps
    assert "goes on after step 150\n" in run("--store", "learn", "--steps", "151", *small)
    # another model
    assert "weights" in run("--store", "learn", "--width", "48", *small, status=1)
    for words in (("--steps",), ("--steps", "x"), ("--width", "33"), ("--batch", "256", "--context", "4096"), ("--model", "1")):
        assert "usage" in run(*words, status=2)
    pathlib.Path(folder, "file").write_text("")
    assert re.match("train: .*file", run("--store", "file", status=1))
