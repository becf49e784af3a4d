#!/usr/bin/env python3
# ctest: TIMEOUT 300 COST 20
"""The examples in Fortran and C++: killed at any moment, again and again, they end with the bits of a run that was never disturbed."""
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

build = pathlib.Path(os.environ["VARVE_BUILD"])
mpiexec = os.environ.get("VARVE_MPIEXEC", "")
plain = {k: v for k, v in os.environ.items() if not k.startswith("VARVE_")}
EXAMPLES = [  # name, ranks, words after the store, bytes per second of the store
    ("heat", 0, ("48", "400", "5"), "1MiB"),
    ("particles", 0, ("400", "10"), "4MiB"),
    ("heat_mpi", 2, ("48", "200", "5"), "1MiB"),
]


def start(folder, name, ranks, words, store, **env):
    command = [mpiexec, "-n", str(ranks)] if ranks else []
    return subprocess.Popen([*command, str(build / "examples" / name), store, *words], env={**plain, **env}, cwd=folder,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(run):
    out, _ = run.communicate(timeout=120)
    assert run.returncode == 0, out
    return out


def ranks_of(parent, name):
    """Children of mpirun, or of its proxy, that have become the example."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, what, of = re.match(r"(\d+) \((.*)\) \S (\d+)", path.read_text()).groups()
        except (OSError, AttributeError):
            continue
        if int(of) == parent:
            found += [int(pid)] if what == name else ranks_of(int(pid), name)
    return found


def traces(folder):
    """Of what was stored, and of what is being stored."""
    store = pathlib.Path(folder, "store")
    return set(store.rglob(".tmp-*")) | set(store.rglob("*.commit"))


def kill(run, name, ranks):
    for pid in ranks_of(run.pid, name)[-1:] if ranks else [run.pid]:
        os.kill(pid, signal.SIGKILL)
    run.communicate(timeout=120)
    return run.returncode != 0


def check(folder, name, ranks, words, speed, seed):
    rng, hits, began = random.Random(seed), 0, time.monotonic()
    expected = finish(start(folder, name, ranks, words, "undisturbed", VARVE_BANDWIDTH=speed)).splitlines()[-1]
    length = time.monotonic() - began
    for share in 0, 0.3, 0.4:  # the first one hits, whatever else the machine does
        old = traces(folder)
        run = start(folder, name, ranks, words, "store", VARVE_BANDWIDTH=speed)
        # not while MPI begins: the death of a rank then can leave Open MPI's mpirun waiting for itself (PMIx 4.2)
        while run.poll() is None and traces(folder) <= old:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, share) * length)
        hits += kill(run, name, ranks)
    out = finish(start(folder, name, ranks, words, "store"))
    subprocess.run([build / "varve", "verify", "-q", "store"], cwd=folder, check=True)
    print(name, hits, "kills;", out.strip().replace("\n", "; "))
    assert hits, f"{name}: too fast for every kill"
    assert expected.startswith("checksum") and out.splitlines()[-1] == expected, f"{name}: {expected}\n{out}"


def check_words(folder, name, words, part):
    run = start(folder, name, 0, words, "store")
    out, _ = run.communicate(timeout=60)
    assert run.returncode == 1 and part in out, out


found = [e for e in EXAMPLES if (build / "examples" / e[0]).exists() and (mpiexec or not e[1])]
if not found:
    print("skip: no example in Fortran or C++ was built")
    sys.exit(77)
for example in found:
    with tempfile.TemporaryDirectory(prefix="varve-languages-") as folder:
        check(folder, *example, seed=1)
        if not example[1]:
            check_words(folder, example[0], ("x", "y"), "usage")
            pathlib.Path(folder, "store").rename(pathlib.Path(folder, "gone"))
            pathlib.Path(folder, "store").write_text("no folder")
            check_words(folder, example[0], example[2], "store")
