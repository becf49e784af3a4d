#!/usr/bin/env python3
# ctest: TIMEOUT 300 COST 30
"""examples/train on a device, killed and resumed, prints the losses of an undisturbed run on the CPU, bit for bit."""
import os
import pathlib
import subprocess
import sys
import tempfile

build = pathlib.Path(os.environ["VARVE_BUILD"])
demo = pathlib.Path(os.environ["VARVE_SOURCE"], "examples/train/demo")
env = {k: v for k, v in os.environ.items() if not k.startswith("VARVE_")}
program = build / "examples/train_gpu"
if not program.exists():
    print("skipped: varve was built without CUDA")
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    probe = subprocess.run([program, "--steps", "1"], env=env, cwd=folder, capture_output=True, text=True)
if probe.returncode and probe.stderr.startswith("train: CUDA: "):
    print("skipped:", probe.stderr.strip())
    sys.exit(77)
for words in ((), ("--every", "1"), ("--layers", "3", "--width", "64", "--context", "64", "--steps", "60")):
    done = subprocess.run([demo, "--build", build, "--kills", "4", *words], env=env, capture_output=True, text=True)
    print(done.stdout)
    assert done.returncode == 0 and "The losses of the CPU and the GPU are the same" in done.stdout, done.stderr
