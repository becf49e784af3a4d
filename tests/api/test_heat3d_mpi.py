#!/usr/bin/env python3
# ctest: TIMEOUT 300 COST 25
"""The MPI example under fire: ranks that are killed while they store, while they speak, at any moment. The job that is started again
ends with the bits of one that was never disturbed; the store is whole; what cannot be is said."""
import argparse
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

source, build = os.environ["VARVE_SOURCE"], os.environ["VARVE_BUILD"]
loader = importlib.machinery.SourceFileLoader("demo", str(pathlib.Path(source, "examples/demo")))
demo = importlib.util.module_from_spec(importlib.util.spec_from_loader("demo", loader))
loader.exec_module(demo)
if not pathlib.Path(build, "examples/heat3d_mpi").exists() or not demo.mpirun(build):
    print("skip: varve was built without MPI, or there is no mpirun")
    sys.exit(77)
for name in [k for k in os.environ if k.startswith("VARVE_")]:
    del os.environ[name]
N, STEPS, EVERY = 24, 24, 4


class Job(demo.MpiDemo):
    limit = 150

    def __init__(self, folder, ranks, seed=1, steps=STEPS):
        args = argparse.Namespace(build=build, ranks=ranks, n=N, steps=steps, every=EVERY, seed=seed)
        super().__init__(args, pathlib.Path(folder))

    def slow(self):
        return N ** 3 * 2

    def whole(self, store):
        return self.finish(self.start(store, EVERY))

    def log(self):
        return (self.folder / "log").read_text()

    def epochs(self, store="store"):
        said = subprocess.run([pathlib.Path(build, "varve"), "ls", "--json", "--all", store, "heat"], cwd=self.folder,
                              stdout=subprocess.PIPE, check=True)
        return [e["epoch"] for e in json.loads(said.stdout)["epochs"]]

    def traces(self):
        """Of what was stored, and of what is being stored."""
        return self.leftovers() | set((self.folder / "store/heat/00000000").glob("*.commit"))

    def verify(self, store="store"):
        subprocess.run([pathlib.Path(build, "varve"), "verify", "-q", store], cwd=self.folder, check=True)


def pids(parent):
    """The ranks: children of mpirun, or of its proxy, that have become the example."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, name, _, of = re.match(r"(\d+) \((.*)\) (\S) (\d+)", path.read_text()).groups()
        except (OSError, AttributeError):
            continue
        if int(of) == parent:
            found += [int(pid)] if name == "heat3d_mpi" else pids(int(pid))
    return found


def kill_in_flush(ranks, seed, mode):
    """A rank is killed while its layer is half written, twice."""
    os.environ["VARVE_MODE"] = mode
    with tempfile.TemporaryDirectory(prefix="varve-mpi-") as folder:
        job = Job(folder, ranks, seed)
        expected = job.whole("undisturbed")
        Job(folder, ranks, steps=EVERY).whole("store")
        for _ in range(2):
            job.killed(1)
            assert job.epochs() and job.epochs()[0] == 1, job.epochs()
            job.verify()
        assert job.whole("store") == expected
        job.verify()
        job.varve("diff", "undisturbed", "heat", "heat", "--with", "store")
    del os.environ["VARVE_MODE"]


def kill_anywhere(ranks, seed):
    """A rank is killed at any moment after it has begun to store, again and again. Not before: the death of a rank while MPI begins can leave Open MPI's mpirun
    waiting for itself (PMIx 4.2)."""
    rng, hits = random.Random(seed), 0
    with tempfile.TemporaryDirectory(prefix="varve-mpi-") as folder:
        job = Job(folder, ranks, seed)
        slow = {"VARVE_BANDWIDTH": "1MiB", "VARVE_CODEC": "none"}
        start = time.monotonic()
        expected = job.finish(job.start("undisturbed", EVERY, **slow))
        length = time.monotonic() - start
        for share in 0, 0.2, 0.4, 0.6:  # the first one hits, whatever else the machine does
            old = job.traces()
            run = job.start("store", EVERY, **slow)
            while run.poll() is None and job.traces() <= old:
                time.sleep(0.01)
            time.sleep(rng.uniform(0, share) * length)
            for pid in pids(run.pid)[-1:]:
                os.kill(pid, signal.SIGKILL)
            job.end(run)
            hits += run.returncode != 0
        assert hits, "it was too fast for every kill"
        assert job.whole("store") == expected
        job.verify()


def other_number():
    """What cannot be done is said, by all ranks, and soon."""
    with tempfile.TemporaryDirectory(prefix="varve-mpi-") as folder:
        Job(folder, 2, steps=8).whole("store")
        job = Job(folder, 3, steps=8)
        run = job.start("store", EVERY)
        job.end(run)
        assert run.returncode != 0 and "written by 2 rank(s), this job has 3" in job.log(), job.log()
        run = Job(folder, 2, steps=8)
        run.args.n = 1
        bad = run.start("store", EVERY)
        run.end(bad)
        assert bad.returncode != 0 and "usage: heat3d_mpi" in run.log(), run.log()


kill_in_flush(2, 1, "async")
kill_in_flush(4, 2, "async")
kill_in_flush(3, 3, "sync")
kill_anywhere(4, 4)
kill_anywhere(2, 5)
other_number()
