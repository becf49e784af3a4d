#!/usr/bin/env python3
"""The benchmark image.restore: a process is brought back out of a store, against `criu restore` from tmpfs. bench/run starts it.

usage: image_restore.py --build DIR --dir DIR [--size N] [--rounds N] NAME...

A program has much memory: noise, which is stored as it is, or numbers, which are coded. It is saved, changes 1 % of its pages, and is saved again, by
varve into a store in DIR and by criu into tmpfs. Then it is brought back by each in turn, several times; the best of each counts. A restore by varve
reads and checks everything before. With --lazy the program runs first: how long until it does, and until all of its memory is there.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

from telling import arguments, die, entry, skip, tell

PROGRAM = """
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void fill(uint64_t *p, size_t words, uint64_t s, int numbers, size_t at)
{
	for (size_t i = 0; i < words; i++) {
		double d;
		s ^= s << 13; s ^= s >> 7; s ^= s << 17;
		d = (double)(at + i) * 1e-4 + (double)(s >> 40) * 1e-6;
		if (numbers) memcpy(&p[i], &d, 8); else p[i] = s;
	}
}
int main(int argc, char **argv)
{
	size_t words = strtoull(argv[1], NULL, 10) / 8, page = 512;
	int numbers = strcmp(argv[2], "numbers") == 0, sig;
	uint64_t *p = malloc(words * 8);
	sigset_t set;
	sigemptyset(&set); sigaddset(&set, SIGUSR1); sigprocmask(SIG_BLOCK, &set, NULL);
	fill(p, words, 88172645463325252u, numbers, 0);
	printf("ready\\n"); fflush(stdout);
	for (uint64_t n = 1; argc > 2; n++) {
		sigwait(&set, &sig);
		for (size_t i = 0; i < words / page / 100; i++)
			fill(p + i * 100 * page, page, n * 7919 + i, numbers, i * 100 * page);
		printf("changed\\n"); fflush(stdout);
	}
}
"""


class Process:
    """The program, by its number: it ends and comes back."""

    def __init__(self, program, size, kind, out):
        self.out = out
        with open(out, "wb") as f:
            self.first = subprocess.Popen([program, str(size), kind], stdin=subprocess.DEVNULL, stdout=f, stderr=f, start_new_session=True)
        self.pid = self.first.pid
        self.wait_for("ready")

    def wait_for(self, word):
        while word not in self.out.read_text():
            if self.first.poll() is not None:
                die("the program has ended")
            time.sleep(0.02)

    def change(self):
        os.kill(self.pid, signal.SIGUSR1)
        self.wait_for("changed")

    def end(self):
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.first.poll()
        while os.path.exists(f"/proc/{self.pid}"):
            self.first.poll()
            time.sleep(0.01)


def run(*words):
    start = time.monotonic()
    got = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if got.returncode:
        die(f"'{' '.join(map(str, words))}' failed: {(got.stderr or got.stdout).strip()[-300:]}")
    return time.monotonic() - start, got.stdout


def save(varve, p, store, images):
    images.mkdir()
    run(varve, "-q", "image", "dump", "--leave-running", "--pid", p.pid, store, "p")
    p.change()
    run(varve, "-q", "image", "dump", "--leave-running", "--pid", p.pid, store, "p")
    run("criu", "dump", "--leave-running", "-t", p.pid, "-D", images, "-o", "dump.log")
    p.end()


def measure(kind, varve, store, images, p, rounds):
    best = {}

    def note(name, seconds):
        best[name] = min(best.get(name, seconds), seconds)

    for _ in range(rounds):
        note("criu", run("criu", "restore", "-d", "-D", images, "-o", "restore.log")[0])
        p.end()
        note("varve", run(varve, "-q", "image", "restore", "-d", store, "p")[0])
        p.end()
        seconds, out = run(varve, "--json", "image", "restore", "-d", "--lazy", store, "p")
        note("lazy, runs", json.loads(out)["seconds_to_run"])
        note("lazy, whole", seconds)
        p.end()
    for name, seconds in best.items():
        tell("image.restore", kind, name, seconds, "s", baseline=name == "criu")
    tell("image.restore", kind, "varve / criu", best["varve"] / best["criu"], "ratio", at_most=1.3)
    tell("image.restore", kind, "lazy, runs / criu", best["lazy, runs"] / best["criu"], "ratio")
    tell("image.restore", kind, "lazy, whole / criu", best["lazy, whole"] / best["criu"], "ratio")


def main():
    p = arguments(["image.restore"], "more rounds")
    args = p.parse_args()
    args.size = args.size or (1 << 30 if args.full else 384 << 20)
    varve = pathlib.Path(args.build) / "varve"
    shm = pathlib.Path("/dev/shm")
    if os.geteuid() != 0 or not shutil.which("criu") or subprocess.run(["criu", "check"], capture_output=True).returncode:
        skip("criu, as root, cannot freeze a process here")
    if not shm.is_dir() or shutil.disk_usage(shm).free < args.size * 1.5:
        skip(f"there is no room for {args.size} bytes in {shm}")
    program = pathlib.Path(args.dir) / "program"
    program.with_suffix(".c").write_text(PROGRAM)
    subprocess.run(["cc", "-O2", program.with_suffix(".c"), "-o", program], check=True)
    for kind in "noise", "numbers":
        with tempfile.TemporaryDirectory(prefix="varve-bench-", dir=shm) as tmp:
            one = Process(program, args.size, kind, pathlib.Path(args.dir) / f"{kind}.out")
            try:
                save(varve, one, pathlib.Path(args.dir) / kind, pathlib.Path(tmp) / "images")
                measure(kind, varve, pathlib.Path(args.dir) / kind, pathlib.Path(tmp) / "images", one, args.rounds or (9 if args.full else 2))
            finally:
                one.end()
    return 0


if __name__ == "__main__":
    entry(main)
