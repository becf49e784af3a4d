#!/usr/bin/env python3
"""The examples do what their first lines promise."""
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile

examples = pathlib.Path(os.environ["VARVE_BUILD"], "examples")
if not (examples / "first").exists():
    print("the examples were not built")
    sys.exit(77)
plain = {k: v for k, v in os.environ.items() if not k.startswith("VARVE_")}


def small_files():
    """A disk that takes no long files: the checkpoint fails when it is stored, not when it is taken."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))


def run(name, *words, status=0, limit=None):
    done = subprocess.run([str(examples / name), *words], env={**plain, "VARVE_MODE": mode}, cwd=folder,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=limit)
    assert done.returncode == status, f"{name} {words}: status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout if status == 0 else done.stderr


def check():
    # first: each run goes on where the last one stopped
    for i in range(3):
        out = run("first", "ckpt")
        assert f"step {10 * i}, field[0] = {min(i, 1)}\n" in out, out
        assert f"step {10 * i + 10} is safe in epoch {10 * i + 10}" in out, out
    pathlib.Path(folder, "file").write_text("")
    assert re.match(r"first: .*file", run("first", "file", status=1))

    # heat3d: in two pieces as in one, whatever the codec
    whole = run("heat3d", "--n", "24", "--steps", "20", "--out", "whole")
    for codec in ("none", "auto"):
        half = run("heat3d", "--n", "24", "--steps", "12", "--every", "4", "--store", codec, "--codec", codec)
        assert len(re.findall(r"^epoch +[123]  step +(4|8|12) ", half, re.M)) == 3, half
        rest = run("heat3d", "--n", "24", "--steps", "20", "--every", "4", "--store", codec, "--out", "rest")
        assert "restarted from epoch 3 at step 12\n" in rest, rest
        assert whole.splitlines()[-1] == rest.splitlines()[-1]
        assert pathlib.Path(folder, "whole").read_bytes() == pathlib.Path(folder, "rest").read_bytes()
    assert "has 110592 bytes" in run("heat3d", "--n", "25", "--store", "none", status=1)
    assert "usage" in run("heat3d", "--n", "x", status=2)
    assert "usage" in run("heat3d", "--store", status=2)
    assert "codec" in run("heat3d", "--store", "s", "--codec", "gzip", status=1)

    # what could not be stored is not called safe
    for name, words in (("first", ("full",)), ("heat3d", ("--store", "full", "--n", "24", "--steps", "4", "--every", "4"))):
        said = run(name, *words, status=1, limit=small_files)
        assert re.match(rf"{name}: .*full", said), said


for mode in ("async", "sync"):
    with tempfile.TemporaryDirectory() as folder:
        check()
