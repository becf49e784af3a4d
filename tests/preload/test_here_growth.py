#!/usr/bin/env python3
# ctest: TIMEOUT 600 COST 100 PROCESSORS 2
"""Memory does not grow by restarts: a program that is started again and again needs no more of it than one that was never disturbed."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import test_here
from test_here import BUILD, CXX, Job, VARVE, compile, expect, plain

LIVES = int(os.environ.get("VARVE_TEST_LIVES", "51"))
GROWTH = (2 << 20) * 17 // 16  # what an arena takes at once, and its marks: of a state so small it may be more than 5 %


def live(job, last, *args):
    """Its words, and the most memory it had, in KiB."""
    status, out, err = job.run(last, *args)
    expect(f"{job.name} comes to step {last}", status == 0, status, out, err)
    words, peak = out.splitlines()
    return words, int(re.search(r"\d+", peak).group())


def memory(job):
    """Of the newest epoch."""
    out = subprocess.run([VARVE, "ls", "--json", job.store, job.name], check=True, capture_output=True, text=True).stdout
    return json.loads(out)["epochs"][-1]["bytes_memory"]


def compare(work, program, name, *args, steps=2, **env):
    """Each life has so many steps."""
    end = LIVES * steps
    undisturbed, often = (Job(work, f"{name}.{kind}".replace(" ", "").replace(",", ""), program, VARVE_INTERVAL="0", VARVE_KEEP="2", **env) for kind in ("once", "often"))
    want, peak = live(undisturbed, end, *args)
    lives = [live(often, (i + 1) * steps, *args) for i in range(LIVES)]
    restored = len(often.told("restored"))
    expect(f"{name}: the same result", lives[-1][0] == want == plain([program], end, *args).splitlines()[0], lives[-1], want)
    expect(f"{name}: each life goes on", restored == LIVES - 1, restored)
    most, epoch, epoch_once = max(p for _, p in lives), memory(often), memory(undisturbed)
    print(f"{name}: most memory {peak} KiB, and {most} KiB in {LIVES} lives; epoch {epoch_once} bytes, and {epoch}", flush=True)
    expect(f"{name}: no more memory", most <= peak * 1.05 + GROWTH / 1024, [p for _, p in lives])
    expect(f"{name}: no larger an epoch", epoch <= epoch_once * 1.05 + GROWTH)


def check_torn(work):
    """What the allocator cannot be told of comes back all the same."""
    job = Job(work, "torn", compile(work, "here_torn.c"), VARVE_INTERVAL="0")
    for life in range(2):
        status, out, err = job.run()
        expect(f"contradictory marks, life {life}", (status, out) == (0, "fine\n"), status, out, err)
        expect(f"it is said in life {life}", ("will not be used again" in err) == (life > 0), err)


def main():
    if not test_here.PRELOAD.exists():
        print("libvarve_preload is not built: no jemalloc here, or a sanitizer")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="varve-growth-") as folder:
        folder = pathlib.Path(folder)
        c = compile(folder, "here_scratch.c")
        check_torn(folder)
        for threads in (0, 20):
            compare(folder, c, f"{threads} threads", threads)
        changing = compile(folder, "here_changing.c")
        for threads in (0, 4):
            compare(folder, changing, f"changing scratch, {threads} short threads", threads, steps=4)
        if CXX:
            compare(folder, compile(folder, "here_scratch.cpp"), "containers")
        else:
            print("no C++ compiler: its program is left out")
        if (BUILD / "libvarve_fortran.a").exists():
            compare(folder, compile(folder, "here_scratch.f90"), "arrays")
        else:
            print("built without Fortran: its program is left out")
    print("ok")


if __name__ == "__main__":
    main()
