#!/usr/bin/env python3
# ctest: TIMEOUT 400 COST 40 PROCESSORS 2
"""Objects that only the stack points to at a checkpoint: with VARVE_RUN_FREE_UNREACHABLE a restart frees them, so that memory does not grow by
restarts; without it the restart reports them. Objects that anything in the state points to stay."""
import pathlib
import re
import sys
import tempfile

import test_here
import test_here_growth
from test_here import BUILD, CXX, Job, compile, expect

test_here_growth.LIVES = min(test_here_growth.LIVES, 21)


def sums(job):
    """Of the last restart: MiB and number of the unreachable objects."""
    found = re.findall(r"([\d.]+) MiB[^(]*\((\d+)\)", job.told("restored")[-1][1])
    return (float(found[0][0]), int(found[0][1])) if found else (0, 0)


def check_reach(work):
    """Reachable objects stay, whatever leads to them; a restart frees the others if asked to, and reports them if not."""
    program = compile(work, "here_reach.c")

    def grow(job, lives, *words, **env):
        made, graph = 0, 0
        for life in range(lives):
            status, out, err = job.run(8, *words, **env)
            expect(f"{job.name}, life {life}", status == 0, status, out, err)
            if life:
                yield made - graph, sums(job)
            _, graph, made = map(int, out.split())

    freeing = Job(work, "freeing", program, VARVE_INTERVAL="0", VARVE_RUN_GLOBALS="1", VARVE_RUN_FREE_UNREACHABLE="1")
    before = 0
    for unreachable, (_, freed) in grow(freeing, 12):
        expect("all that nothing leads to is freed", freed == unreachable - before, freed, unreachable, before)
        before = unreachable
    status, out, err = freeing.run(1, "shut")
    expect("without a look at all memory nothing is freed", status == 0 and sums(freeing) == (0, 0), status, out, err)
    keeping = Job(work, "keeping", program, VARVE_INTERVAL="0", VARVE_RUN_GLOBALS="1")
    for unreachable, (_, found) in grow(keeping, 3):
        expect("all that nothing leads to is reported", found == unreachable, found, unreachable)
    expect("and what to do", "--free-unreachable" in keeping.told("restored")[-1][1])
    hiding = Job(work, "hiding", program, VARVE_INTERVAL="0", VARVE_RUN_GLOBALS="1")
    for life, (_, (mib, _)) in enumerate(grow(hiding, 4, "hidden")):
        expect(f"hidden pointers lead to what they led to, life {life}", mib > 1, mib)
    silent = Job(work, "silent", program, VARVE_INTERVAL="0", VARVE_RUN_GLOBALS="1", VARVE_RUN_EVENTS="")
    silent.run(8)
    _, _, err = silent.run(8)
    expect("without a reader of events it is a warning", "--free-unreachable" in err, err)
    print("graphs: what can be reached stays", flush=True)


def main():
    if not test_here.PRELOAD.exists():
        print("libvarve_preload is not built: no jemalloc here, or a sanitizer")
        sys.exit(77)
    languages = {"c": True, "cpp": CXX, "f90": (BUILD / "libvarve_fortran.a").exists()}
    with tempfile.TemporaryDirectory(prefix="varve-unreachable-") as folder:
        folder = pathlib.Path(folder)
        check_reach(folder)
        for language, there in languages.items():
            if there:
                test_here_growth.compare(folder, compile(folder, f"here_stack.{language}"), f"objects of the stack, {language}", VARVE_RUN_FREE_UNREACHABLE="1")
            else:
                print(f"no compiler for here_stack.{language}, or built without: it is left out")
    print("ok")


main()
