#!/usr/bin/env python3
# ctest: TIMEOUT 300 COST 15
"""examples/heat_elastic: ranks are killed, and the job goes on with another number of them, again and again. It ends with the bits of a
run that was never disturbed; the store is whole, and the tools read the cube as one array."""
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

build = pathlib.Path(os.environ["VARVE_BUILD"])
program, varve = build / "examples/heat_elastic", build / "varve"
if not program.exists() or not os.environ.get("VARVE_MPIEXEC"):
    print("skip: varve was built without MPI")
    sys.exit(77)
for name in [k for k in os.environ if k.startswith("VARVE_")]:
    if name not in ("VARVE_BUILD", "VARVE_SOURCE", "VARVE_MPIEXEC"):
        del os.environ[name]
N, STEPS, EVERY = 32, 60, 4


def job(folder, ranks, store, steps=STEPS, **more):
    command = [os.environ["VARVE_MPIEXEC"], "-n", str(ranks), program, store, N, steps, EVERY]
    return subprocess.Popen([str(part) for part in command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env=dict(os.environ, **more))


def finish(run):
    out, _ = run.communicate(timeout=120)
    assert run.returncode == 0, out
    return re.search(r"step (\d+), checksum (\w+)", out).groups(), out


def tool(folder, *words):
    done = subprocess.run([str(varve), *map(str, words)], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def ranks_of(parent):
    """The ranks: children of mpirun, or of its proxy, that have become the example."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, name, _, of = re.match(r"(\d+) \((.*)\) (\S) (\d+)", path.read_text()).groups()
        except (OSError, AttributeError):
            continue
        if int(of) == parent:
            found += [int(pid)] if name == "heat_elastic" else ranks_of(int(pid))
    return found


def traces(folder):
    return set((folder / "store/heat").glob("0*/*"))


def kill_and_change(folder, expected, rng):
    """Each job is slow enough to be killed while it reads, computes or stores; then another number of ranks goes on."""
    killed = 0
    for ranks in 8, 6, 3, 8, 1, 5:
        old = traces(folder)
        run = job(folder, ranks, "store", VARVE_BANDWIDTH="1MiB", VARVE_CODEC="none", VARVE_MODE=rng.choice(["sync", "async"]))
        while run.poll() is None and traces(folder) <= old:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.3))
        for pid in ranks_of(run.pid)[-1:]:
            os.kill(pid, 9)
        run.communicate(timeout=120)
        killed += run.returncode != 0
        tool(folder, "verify", "-q", "store")
    assert killed, "every job was faster than its kill"
    got, _ = finish(job(folder, 6, "store"))
    assert got == expected, "%s instead of %s" % (got, expected)


def main():
    with tempfile.TemporaryDirectory(prefix="varve-elastic-") as folder:
        folder = pathlib.Path(folder)
        expected, _ = finish(job(folder, 4, "undisturbed"))
        alone, _ = finish(job(folder, 1, "alone"))
        assert alone == expected, "the example depends on its number of ranks"
        kill_and_change(folder, expected, random.Random(3))
        tool(folder, "verify", "-q", "store")
        tool(folder, "diff", "undisturbed", "heat", "heat", "--with", "store", "--global")
        numbers = {epoch["ranks"] for epoch in json.loads(tool(folder, "ls", "--json", "--all", "store", "heat"))["epochs"]}
        assert len(numbers) > 1, numbers
        for store in "store", "undisturbed":
            tool(folder, "extract", store, "heat:T", "--global", "-o", store + ".npy")
        assert (folder / "store.npy").read_bytes() == (folder / "undisturbed.npy").read_bytes()
        assert (folder / "store.npy").read_bytes()[:6] == b"\x93NUMPY"
        read = [sys.executable, str(pathlib.Path(os.environ["VARVE_SOURCE"], "tools/layer_read.py"))]
        subprocess.run(read + ["check", "store"], cwd=folder, check=True)
        second = subprocess.run(read + ["extract", "--global", "store", "heat", "T"], cwd=folder, check=True, stdout=subprocess.PIPE).stdout
        assert (folder / "store.npy").read_bytes()[-len(second):] == second and len(second) == 8 * N ** 3
        shown = json.loads(tool(folder, "show", "--json", "store", "heat", "--rank", "1"))
        assert "slab" in json.dumps(shown), shown


main()
