#!/usr/bin/env python3
"""The benchmark image.groups: 2, 4 and 8 processes of one parallel program as one epoch, against each of them alone. bench/run starts it.

usage: image_groups.py --build DIR --dir DIR --mpiexec PROGRAM [--full] NAME...

Two programs, each in three ways. In a tree one process starts the others, they talk through pipes, and one `varve image dump` saves all. Apart they are
started one by one, and talk through memory that they share; then one command saves all of them, or, by ranks, `mpirun -n N varve image dump` each by a rank of
its own. All are saved after the same number of steps, at which they wait. Alone is what the same processes take in stores of their own, or, for a tree, what
one of one process takes. Bytes are those of the layers, metadata and all; `saved` is the part of what a further process would take alone that it does not take in the group. Every group is brought back once and must go on.
`dump` and `restore` are the seconds of the two commands, mpirun's start included.

stencil, in C: each process has a part of a field, smooth and ever changing, and a table of numbers that all of them have, both as large.
search, in python3: each has the same dictionary of 30 000 entries, made by itself or, in a tree, inherited, and works on its part of it. Those that were
started one by one have different addresses, and python's hashes are salted; "fixed" is without both (setarch -R, PYTHONHASHSEED=0).
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from telling import arguments, die, entry, skip, tell

NUMBERS = (2, 4, 8)
AT_LEAST = 0.47  # Chen 2016: saved of two processes on two hosts
STENCIL = r"""
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROWS = 256, COLUMNS = 1024, TABLE = ROWS * COLUMNS };

static int rank, ranks, from, to; /* the ring: pipes, or none */
static struct shared {            /* memory of all of them, if there are no pipes */
	double edge[2][8][COLUMNS]; /* each leaves its last row there, in turn */
	volatile uint32_t step[8];  /* in which it did, and 1 */
} *shared;
static double field[2][ROWS + 1][COLUMNS], table[TABLE];
static volatile uint32_t *report; /* steps of each rank, and, behind them, the last one that may be done; 0: there is none */

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static void await(int other, uint32_t step)
{
	while (__atomic_load_n(&shared->step[other], __ATOMIC_ACQUIRE) < step)
		usleep(1000);
}

static void exchange(uint32_t step, double *mine, double *other)
{
	int before = (rank + ranks - 1) % ranks, behind = (rank + 1) % ranks;
	size_t n = COLUMNS * sizeof(double);

	if (shared) {
		await(behind, step); /* it has read what was there */
		memcpy(shared->edge[step % 2][rank], mine, n);
		__atomic_store_n(&shared->step[rank], step + 1, __ATOMIC_RELEASE);
		await(before, step + 1);
		memcpy(other, shared->edge[step % 2][before], n);
	} else if (ranks > 1 && (write(to, mine, n) != (ssize_t)n || read(from, other, n) != (ssize_t)n)) {
		exit(1);
	}
}

static void work(void)
{
	for (size_t i = 0; i < TABLE; i++)
		table[i] = 1 + (double)mix(i + 1) / 1e20;
	for (int y = 1; y <= ROWS; y++)
		for (int x = 0; x < COLUMNS; x++)
			field[0][y][x] = 300 + 50.0 * (y + rank * ROWS) / ROWS + x * 0.01;
	for (uint32_t step = 0;; step++) {
		double(*now)[COLUMNS] = field[step % 2], (*then)[COLUMNS] = field[(step + 1) % 2];

		exchange(step, now[ROWS], now[0]);
		for (int y = 1; y < ROWS; y++)
			for (int x = 1; x < COLUMNS - 1; x++)
				then[y][x] = now[y][x] + 0.1 * table[y * COLUMNS + x] * (now[y - 1][x] + now[y + 1][x] + now[y][x - 1] + now[y][x + 1] - 4 * now[y][x]);
		memcpy(then[ROWS], now[ROWS], sizeof(now[ROWS]));
		report[rank] = step + 1;
		do
			usleep(30000);
		while (report[8] && report[8] <= step + 1);
	}
}

static void *map(const char *path, size_t n)
{
	int fd = open(path, O_RDWR);
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		exit(1);
	close(fd);
	return p;
}

/* RANK RANKS REPORT EDGES: one of several; RANK of RANKS = 0: a tree of so many */
int main(int argc, char **argv)
{
	int pipes[8][2];

	(void)argc;
	rank = atoi(argv[1]);
	ranks = atoi(argv[2]);
	report = map(argv[3], 4096);
	if (strcmp(argv[4], "tree") != 0) {
		shared = map(argv[4], sizeof(*shared));
		work();
	}
	for (int i = 0; i < ranks; i++)
		if (pipe(pipes[i]) != 0)
			return 1;
	for (rank = ranks - 1; rank > 0 && fork() != 0; rank--)
		;
	from = pipes[rank][0];
	to = pipes[(rank + 1) % ranks][1];
	work();
}
"""
SEARCH = r"""
import mmap, os, sys, time
rank, ranks, tree = int(sys.argv[1]), int(sys.argv[2]), sys.argv[4] == "tree"
with open(sys.argv[3], "r+b") as f:
    report = mmap.mmap(f.fileno(), 4096)
words = {"entry%d" % i: [i, i * 2.5, "text of %d" % (i * 7919 % 30000)] for i in range(30000)}
pipes = [os.pipe() for i in range(ranks)] if tree else []
while tree and rank + 1 < ranks and os.fork() == 0:
    rank += 1
step = 0
while True:
    step += 1
    for i in range(rank, 30000, ranks * 50):
        words["entry%d" % ((i + step) % 30000)] = [step, step * 1.5, "found %d" % step]
    if tree and ranks > 1:
        os.write(pipes[(rank + 1) % ranks][1], b"%8d" % step)
        os.read(pipes[rank][0], 8)
    report[4 * rank:4 * rank + 4] = step.to_bytes(4, "little")
    time.sleep(0.03)
    while 0 < int.from_bytes(report[32:36], "little") <= step:
        time.sleep(0.03)
"""


class Program:
    """N processes of it, as a tree or apart."""

    def __init__(self, place, words, n, tree, steps):
        """They do so many steps, and wait."""
        self.n, self.tree = n, tree
        self.report = place / "report"
        self.report.write_bytes(bytes(4096))
        self.stop_at(steps)
        (place / "edges").write_bytes(bytes(1 << 18))
        self.running = [subprocess.Popen([*words, str(i), str(n), str(self.report), "tree" if tree else str(place / "edges")], stdin=subprocess.DEVNULL,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) for i in range(1 if tree else n)]
        self.pids = [p.pid for p in self.running]

    def steps(self):
        data = self.report.read_bytes()
        return [int.from_bytes(data[4 * i:4 * i + 4], "little") for i in range(self.n)]

    def stop_at(self, step):
        with open(self.report, "r+b") as f:
            f.seek(4 * 8)
            f.write(step.to_bytes(4, "little"))

    def reach(self, steps):
        end = time.time() + 60
        while any(now < wanted for now, wanted in zip(self.steps(), steps)):
            if time.time() > end:
                die(f"the program does not go on: {steps} were expected, it is at {self.steps()}")
            time.sleep(0.02)

    def go_on(self, steps):
        self.reach([now + steps for now in self.steps()])

    def kill(self):
        """With all that are below it; they may have been brought back, and are nobody's children then."""
        for pid in self.pids:
            try:
                os.killpg(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for p in self.running:
            p.wait()
        while any(self.lives(pid) for pid in self.pids):
            time.sleep(0.02)

    @staticmethod
    def lives(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False


class Bench:
    def __init__(self, args):
        self.varve = str(pathlib.Path(args.build) / "varve")
        self.mpiexec = args.mpiexec.split()
        self.place = pathlib.Path(args.dir)
        self.wait = 100 if args.full else 20

    def run(self, words):
        got = subprocess.run([str(w) for w in words], capture_output=True, text=True)
        if got.returncode:
            die(f"'{' '.join(map(str, words))}' failed: {(got.stderr or got.stdout).strip()[-500:]}")
        return got.stdout

    def image(self, ranks, verb, *words):
        """What the command says, and how long it took from start to end."""
        start = time.monotonic()
        said = json.loads(self.run([*(self.mpiexec + ["-n", ranks] if ranks > 1 else []), self.varve, "--json", "image", verb, *words]))
        return said | {"wall": time.monotonic() - start}

    def alone(self, pid):
        """Bytes that one process takes in a store of its own."""
        store = self.place / "alone"
        shutil.rmtree(store, ignore_errors=True)
        return self.image(1, "dump", "--leave-running", "--pid", pid, store, "a")["bytes_layer"]

    def group(self, words, n, tree, ranks):
        """(what the dump said, what the restore said, bytes of each alone)."""
        program = Program(self.place, words, n, tree, self.wait)
        store = self.place / "group"
        shutil.rmtree(store, ignore_errors=True)
        try:
            program.reach([self.wait] * n)
            each = [] if tree else [self.alone(pid) for pid in program.pids]
            got = self.image(ranks, "dump", "--leave-running", "--pid", ",".join(map(str, program.pids)), store, "a")
            program.stop_at(0)
            program.go_on(3)
            program.kill()
            back = self.image(ranks, "restore", "-d", store, "a")
            if back["pids"] != program.pids:
                die(f"{back['pids']} came back, not {program.pids}")
            program.go_on(3)
        finally:
            program.kill()
        return got, back, each

    def measure(self, name, words, ways=("a tree", "one command", "ranks")):
        one = self.group(words, 1, True, 1)[0]["bytes_layer"]
        for how in ways:
            last = 0
            for n in NUMBERS:
                dump, restore, each = self.group(words, n, how == "a tree", n if how == "ranks" else 1)
                total, each = dump["bytes_layer"], each or [one] * n
                case = f"{name}, {n}, {how}"
                in_all = 1 - total / sum(each)
                tell("image.groups", case, "images", dump["bytes"], "bytes")
                tell("image.groups", case, "stored", total, "bytes")
                tell("image.groups", case, "stored alone", sum(each), "bytes")
                tell("image.groups", case, "saved of each further process", 1 - (total - each[0]) / sum(each[1:]), "share", at_least=AT_LEAST)
                tell("image.groups", case, "saved of all", in_all, "share", at_least=last if last else None)
                tell("image.groups", case, "dump", dump["wall"], "s")
                tell("image.groups", case, "restore", restore["wall"], "s")
                last = in_all


def main():
    p = arguments(["image.groups"], "100 steps of the programs before they are saved, not 20")
    p.add_argument("--mpiexec", required=True)
    args = p.parse_args()
    bench = Bench(args)
    if subprocess.run([bench.varve, "image", "check"], capture_output=True).returncode:
        skip("processes cannot be saved here ('varve image check' says why)")
    source = bench.place / "stencil.c"
    source.write_text(STENCIL)
    bench.run(["cc", "-O2", "-o", bench.place / "stencil", source])
    (bench.place / "search.py").write_text(SEARCH)
    bench.measure("stencil", [str(bench.place / "stencil")])
    search = [sys.executable, str(bench.place / "search.py")]
    bench.measure("search", search, ("a tree", "one command", "ranks") if args.full else ("a tree", "ranks"))
    if shutil.which("setarch"):
        bench.measure("search, fixed", ["setarch", "-R", "env", "PYTHONHASHSEED=0", *search], ("one command", "ranks") if args.full else ("ranks",))
    return 0


if __name__ == "__main__":
    entry(main)
