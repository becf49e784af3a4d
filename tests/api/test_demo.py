#!/usr/bin/env python3
# ctest: TIMEOUT 300 COST 10
"""Small demos of all kinds: kills and restarts end with the same bits, and nothing is left behind."""
import json
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile
import types

demo = pathlib.Path(os.environ["VARVE_SOURCE"], "examples/demo")
module = runpy.run_path(str(demo))
build = os.environ["VARVE_BUILD"]
if not pathlib.Path(build, "examples/heat3d").exists():
    print("heat3d was not built")
    sys.exit(77)


def run(*words, folder, mode="async", **more):
    env = {k: v for k, v in os.environ.items() if k in ("VARVE_SOURCE", "VARVE_BUILD") or not k.startswith("VARVE_")}
    env.update({"TMPDIR": folder, "VARVE_MODE": mode, **more})
    return subprocess.run([sys.executable, str(demo), "--build", build, *words], env=env, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


with tempfile.TemporaryDirectory() as folder:
    for seed, kills, mode in ((1, 1, "async"), (2, 2, "async"), (3, 2, "async"), (4, 1, "sync")):
        done = run("--plain", "--n", "40", "--steps", "120", "--every", "5", "--seed", str(seed), "--kills", str(kills), folder=folder,
                   mode=mode, VARVE_BANDWIDTH="1MiB")  # so small a job has ended before it can be killed, where nothing slows it down
        print(done.stdout)
        assert done.returncode == 0, f"seed {seed}: status {done.returncode}"
        assert "THE SAME, BIT FOR BIT" in done.stdout
        assert done.stdout.count("killed with SIGKILL") == kills
        assert done.stdout.count("restarted from epoch") == kills
        assert os.listdir(folder) == [], f"left behind: {os.listdir(folder)}"
    if pathlib.Path(build, "examples/heat3d_mpi").exists():
        for seed, ranks, kills, mode in ((1, 4, 1, "async"), (2, 3, 2, "sync")):
            done = run("--ranks", str(ranks), "--n", "40", "--steps", "90", "--seed", str(seed), "--kills", str(kills), folder=folder,
                       mode=mode)
            print(done.stdout)
            assert done.returncode == 0, f"{ranks} ranks, seed {seed}: status {done.returncode}"
            assert done.stdout.count("THE SAME, BIT FOR BIT") == 1 and f"{3 * ranks} regions equal, 0 different" in done.stdout
            assert done.stdout.count("was killed with SIGKILL while epoch") == kills
            assert done.stdout.count("restarted from epoch") == kills
            assert os.listdir(folder) == [], f"left behind: {os.listdir(folder)}"
        done = run("--hosts", "--seed", "1", folder=folder)
        print(done.stdout)
        assert done.returncode == 0 and "THE SAME, BIT FOR BIT" in done.stdout
        assert "their disks were removed" in done.stdout and "6 ranks: restarted from epoch" in done.stdout
        assert os.listdir(folder) == [], f"left behind: {os.listdir(folder)}"
    # Only the epoch before the kill may lack layers, and the newest one is protected.
    fake = pathlib.Path(folder, "varve")
    for bears, good in (([2, -1, 2], True), ([-1, 2, 2], False), ([2, -1, 1], False), ([2, 2, -1], False)):
        told = {"epochs": [{"epoch": i + 1, "redundancy": "rs:4+2", "bears": n} for i, n in enumerate(bears)]}
        fake.write_text(f"#!/bin/sh\necho '{json.dumps(told)}'\nexit 1\n")
        fake.chmod(0o755)
        host = types.SimpleNamespace(build=pathlib.Path(folder), folder=pathlib.Path(folder), lost=2, varve=lambda *words, fine: None)
        try:
            module["HostsDemo"].check(host, ["host0"], 2)
            refused = False
        except module["Problem"]:
            refused = True
        assert refused != good, bears
    fake.unlink()
    done = run("--steps", "10", folder=folder)
    assert done.returncode != 0 and "too few checkpoints" in done.stdout, done.stdout
