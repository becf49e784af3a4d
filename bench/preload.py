#!/usr/bin/env python3
"""The benchmarks preload.cost and transparent.app; bench/run starts them.

usage: preload.py --build DIR --dir DIR [--size N] [--rounds N] NAME...

preload.cost: the processor time of programs that allocate much, under libvarve_preload, against plain jemalloc: the least of several runs in turn, forth and
back, so that none always comes first.
transparent.app: two programs that declare nothing, a stencil (1, 2, 4 ranks) and one whose objects come and go, with a checkpoint every few
iterations: how much longer they run than without, and what is stored. "full": all private memory is written, and is durable before the program
goes on, as is done without varve.
"""
import ctypes
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

from telling import arguments, entry, say, skip, tell

SOURCE = pathlib.Path(__file__).resolve().parent.parent
STL = """
#include <cstdio>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>
int main()
{
	std::map<std::string, std::vector<int>> m;
	std::unordered_map<long, std::string> u;
	for (int r = 0; r < 3; r++) {
		for (long i = 0; i < 300000; i++) {
			m["key number " + std::to_string(i * 7919 % 100000)].push_back(int(i));
			u[i * 31 % 50000] += "abcdefgh";
			if (i % 5 == 0)
				u.erase(i * 17 % 50000);
		}
		m.clear();
	}
	std::printf("%zu\\n", u.size());
}
"""
PYTHON = "d = {str(i): [i] * (i % 7) for i in range(300000)}; print(sum(map(len, d.values())))"
PERL = 'for my $k (1..3) { my %h; $h{$_} = "x" x ($_ % 50) for 1..200000; print scalar(keys %h), "\\n" }'
SQL = ("create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from c where x < 300000) "
       "insert into t select x, 'text' || x from c; create index i on t(b); select count(*) from t where b like '%77%';")
LOOP = """
#include <stdlib.h>
int main(void)
{
	static void *p[4096];
	unsigned long r = 88172645463325252ul;
	for (long i = 0; i < 20000000; i++) {
		r ^= r << 13; r ^= r >> 7; r ^= r << 17;
		free(p[r % 4096]);
		*(long *)(p[r % 4096] = malloc(8 + (r >> 20) % 256)) = i;
	}
}
"""
FULL = """
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* All private writable memory that is no file's, but the stack, durable before it returns; the newest dump replaces the one before. */
int varve_checkpoint_here(void)
{
	char line[512], name[512], next[520];
	FILE *maps = fopen("/proc/self/maps", "r");
	int fd;

	snprintf(name, sizeof(name), "%s/dump.%d", getenv("FULL_DIR"), (int)getpid());
	snprintf(next, sizeof(next), "%s.new", name);
	fd = open(next, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long lo, hi, inode;
		char mode[8], path[256] = "";

		if (sscanf(line, "%lx-%lx %7s %*s %*s %lu %255s", &lo, &hi, mode, &inode, path) < 4 || strcmp(mode, "rw-p") != 0 || inode || (path[0] && strcmp(path, "[heap]") != 0))
			continue;
		while (lo < hi) {
			ssize_t n = write(fd, (void *)lo, hi - lo);

			if (n <= 0)
				abort();
			lo += (unsigned long)n;
		}
	}
	fclose(maps);
	fsync(fd);
	close(fd);
	rename(next, name);
	fd = open(getenv("FULL_DIR"), O_RDONLY);
	fsync(fd);
	close(fd);
	return 0;
}
"""
MODES = {  # what is set in the environment
    "full": {},
    "sync": {"VARVE_MODE": "sync"},
    "async": {"VARVE_DEDUP": "no", "VARVE_COLLECTIVE": "none"},
    "async, dedup, collective": {},
}


# ---- preload.cost ----

def compile(place, name, text, compiler):
    source = place / name
    source.write_text(text)
    subprocess.run([compiler, "-O2", source, "-o", source.with_suffix("")], check=True)
    return [str(source.with_suffix(""))]


def seconds(command, library, **env):
    with subprocess.Popen(command, env={**os.environ, "LD_PRELOAD": str(library), **env}, stdout=subprocess.DEVNULL) as p:
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode:
        raise subprocess.CalledProcessError(p.returncode, command)
    return used.ru_utime + used.ru_stime


def least(command, ways, rounds):
    """Of each way to run it the least seconds."""
    taken = {name: [] for name in ways}
    for i in range(rounds):
        for name in sorted(ways, reverse=i % 2 == 1):
            library, env = ways[name]
            taken[name].append(seconds(command, library, PYTHONMALLOC="malloc", PYTHONHASHSEED="0", **env))
    return {name: min(t) for name, t in taken.items()}


def cost(args, place):
    folders = [*filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")), "/usr/lib/*", "/usr/lib*"]
    jemalloc = next((found for folder in folders for found in glob.glob(f"{folder}/libjemalloc.so.2")), None)
    if not jemalloc:
        skip("libjemalloc.so.2 is not there to compare with (Debian: libjemalloc2)")
    preload = pathlib.Path(args.build) / "libvarve_preload.so"
    ways = {"plain": (jemalloc, {}), "varve": (preload, {})}
    programs = {"python3": [sys.executable, "-c", PYTHON], "perl": ["perl", "-e", PERL], "sqlite3": ["sqlite3", ":memory:", SQL]}
    if shutil.which("c++"):
        programs["containers in C++"] = compile(place, "stl.cpp", STL, "c++")
    programs["malloc and free, nothing else"] = compile(place, "loop.c", LOOP, "cc")
    for name, command in programs.items():
        if not shutil.which(command[0]):
            say(f"{command[0]} is not there, and left out")
            continue
        took = least(command, ways, int(args.rounds or 4))
        tell("preload.cost", name, "jemalloc", took["plain"], "s", baseline=True)
        tell("preload.cost", name, "varve / jemalloc", took["varve"] / took["plain"], "ratio", at_most=None if "nothing" in name else 1.05)


# ---- transparent.app ----

def fixed():
    ctypes.CDLL(None).personality(0x0040000)  # ADDR_NO_RANDOMIZE


def run(args, place, launch, program, mode):
    """Seconds of the whole run, and what was stored."""
    store = place / "store"
    shutil.rmtree(store, ignore_errors=True)
    env = dict(os.environ)
    inner = program
    if mode:
        preload = place / "full.so" if mode == "full" else pathlib.Path(args.build) / "libvarve_preload.so"
        more = {"VARVE_RUN_STORE": str(store), "VARVE_RUN_LINEAGE": "app", "VARVE_KEEP": "2", "FULL_DIR": str(store), **MODES[mode]}
        inner = ["env", *(f"{k}={v}" for k, v in more.items()), f"LD_PRELOAD={preload}", *program]
    if mode == "full":
        store.mkdir()
    begin = time.monotonic()
    subprocess.run([*launch, *inner], env=env, preexec_fn=fixed, stdout=subprocess.DEVNULL, check=True)
    took = time.monotonic() - begin
    stored = sum(f.stat().st_size for f in store.glob("dump.*")) if mode == "full" else 0
    if mode and mode != "full":
        out = subprocess.run([pathlib.Path(args.build) / "varve", "--json", "ls", store, "app"], stdout=subprocess.PIPE, check=True, text=True).stdout
        stored = max((e.get("bytes_stored", 0) for e in json.loads(out)["epochs"]), default=0)
    shutil.rmtree(store, ignore_errors=True)
    return took, stored


def app(args, place):
    mpiexec, mpicc = shutil.which("mpiexec"), shutil.which("mpicc")
    cases = []
    if mpiexec and mpicc:
        stencil = place / "stencil"
        subprocess.run([mpicc, "-O2", f"-I{SOURCE / 'include'}", SOURCE / "examples/heat_here.c", "-o", stencil], check=True)
        n = args.size or "1536"
        cases += [(f"stencil, {r} rank{'s' if r > 1 else ''}", [mpiexec, "-n", str(r)], [str(stencil), "--n", n, "--steps", "120", "--every", "30"]) for r in ((1, 2, 4) if args.full else (1, 4))]
    else:
        say("no MPI: the stencil is left out")
    objects = place / "objects"
    subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", f"-I{SOURCE / 'include'}", SOURCE / "tests/preload/here_objects.c", "-o", objects], check=True)
    cases.append(("objects", [], [str(objects), "100", "20000", "0", "10"]))
    (place / "full.c").write_text(FULL)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", place / "full.c", "-o", place / "full.so"], check=True)
    for case, launch, program in cases:
        taken = {mode: [] for mode in (None, *MODES)}
        for _ in range(int(args.rounds or (3 if args.full else 2))):
            for mode in taken:
                taken[mode].append(run(args, place, launch, program, mode))
        alone = min(t for t, _ in taken[None])
        tell("transparent.app", case, "without checkpoints", alone, "s", baseline=True)
        more = {mode: max(min(t for t, _ in taken[mode]) - alone, 1e-3) for mode in MODES}
        for mode in MODES:
            tell("transparent.app", case, f"{mode}: longer by", more[mode], "s")
            tell("transparent.app", case, f"{mode}: stored, an epoch", taken[mode][0][1] / 1e6, "MB")
        tell("transparent.app", case, "longer by, varve's default / full", more["async, dedup, collective"] / more["full"], "ratio", at_most=0.4)


def main():
    args = arguments(["preload.cost", "transparent.app"], "transparent.app with 2 ranks as well, and three rounds", size=str).parse_args()
    if not (pathlib.Path(args.build) / "libvarve_preload.so").exists():
        skip("libvarve_preload is not built (libjemalloc-dev)")
    for name in args.names:
        (cost if name == "preload.cost" else app)(args, pathlib.Path(args.dir))
    return 0


if __name__ == "__main__":
    entry(main)
