#!/usr/bin/env python3
"""The benchmark image.frozen: for how long a process stands still while it is saved and runs on, against criu alone. bench/run starts it.

usage: image_frozen.py --build DIR --dir DIR [--full] [--size N] [--rounds N] NAME...

A program of so many bytes (256M; 1G with --full) changes a share of its pages; then it is saved in each of four ways, which all see the same memory:
by `criu dump` into a folder in memory, by `criu dump --stream` whose pages are thrown away without being looked at (spliced to /dev/null), by the same with
pages that are read and then thrown away, and by varve, with and without a copy that is made before it is frozen. That is a round; the first, in which varve
stores everything, is not counted. The time is criu's own, from stats-dump, and with varve that for which it was stopped before; the least of all rounds.

What such a copy costs a program: a thread of it writes random pages among a twentieth of them, as fast as it can, and notes the longest pause between two
writes; and how long the whole dump takes. The least of all rounds as well.
"""
import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

from telling import arguments, die, entry, skip, tell

SHARES = (0, 1, 10, 100)  # percent
AT_MOST = {1: 1.2}        # varve / pages thrown away
MEMORY = pathlib.Path("/dev/shm")
PIPE = 1 << 20
PROGRAM = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
static size_t pages;
static uint64_t *p;
static volatile uint64_t longest;
static void *beat(void *arg)
{
	uint64_t x = 1, last = 0, now;
	struct timespec t;
	for (;; last = now) {
		x ^= x << 13; x ^= x >> 7; x ^= x << 17;
		p[x % (pages / 20) * 512 + 7]++;
		clock_gettime(CLOCK_MONOTONIC, &t);
		now = t.tv_sec * 1000000000ull + t.tv_nsec;
		if (last && now - last > longest)
			longest = now - last;
	}
	return arg;
}
int main(int argc, char **argv)
{
	pages = strtoull(argv[1], NULL, 10) / 4096;
	p = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;
	uint64_t x = 1;
	size_t share;
	for (size_t i = 0; i < pages * 512; i++) {
		x ^= x << 13; x ^= x >> 7; x ^= x << 17;
		p[i] = x;
	}
	if (argc > 2 && pthread_create(&thread, NULL, beat, NULL) != 0)
		return 1;
	for (uint64_t step = 1; argc; step++) {
		printf("%lu %lu\\n", (unsigned long)longest, (unsigned long)step);
		longest = 0;
		fflush(stdout);
		if (scanf("%zu", &share) != 1)
			return 0;
		for (size_t i = 0; i < pages; i++)
			if (i * 61 % 100 < share)
				p[i * 512 + step % 512] += step;
	}
}
"""


# ---- criu ----

def numbers(message):
    """The numbers in a protobuf that has nothing else: a tag and a value in turn."""
    value = shift = 0
    for byte in message:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0


def frozen(folder):
    words = list(numbers((folder / "stats-dump").read_bytes()[12:]))[2:]
    return next(value for tag, value in zip(words[::2], words[1::2]) if tag >> 3 == 2) / 1e6


class Sink(threading.Thread):
    """The other side of `criu dump --stream`: images come through pipes, and go nowhere."""
    def __init__(self, folder, read):
        super().__init__(daemon=True)
        self.read, self.buffer, self.nowhere = read, bytearray(PIPE // 2), os.open(os.devnull, os.O_WRONLY)
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(str(folder / "streamer-capture.sock"))
        self.listening.listen()

    def run(self):
        criu, _ = self.listening.accept()
        waiting = select.poll()
        waiting.register(criu, select.POLLIN)
        pages = {}  # of each pipe: has it pages?
        while True:
            for fd, _ in waiting.poll():
                if fd != criu.fileno():
                    if not self.take(fd, pages[fd]):
                        waiting.unregister(fd)
                        os.close(fd)
                        del pages[fd]
                    continue
                head = criu.recv(4, socket.MSG_WAITALL)
                if not head:
                    waiting.unregister(criu)
                    criu.close()
                    return self.finish(waiting, pages)
                name = criu.recv(int.from_bytes(head, sys.byteorder), socket.MSG_WAITALL)
                pipe = socket.recv_fds(criu, 1, 1)[1][0]
                pages[pipe] = b"pages-" in name
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE)
                waiting.register(pipe, select.POLLIN)

    def take(self, fd, pages):
        if pages and not self.read:
            return os.splice(fd, self.nowhere, PIPE)
        return os.readv(fd, [self.buffer])

    def finish(self, waiting, pages):
        for fd, is_pages in pages.items():
            while self.take(fd, is_pages):
                pass
            os.close(fd)


def dump(pid, folder, sink=None):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    words = ["criu", "dump", "-t", str(pid), "-D", folder, "-W", folder, "-o", "log", "-v0", "--leave-running"]
    if sink is not None:
        thread = Sink(folder, sink)
        thread.start()
        words.append("--stream")
    got = subprocess.run(words, capture_output=True, text=True)
    if got.returncode:
        die(f"'{' '.join(map(str, words))}' failed: {(folder / 'log').read_text()[-300:]}")
    if sink is not None:
        thread.join()
    return frozen(folder)


def varve(binary, pid, store, *more):
    words = [binary, "--json", "image", "dump", "--leave-running", *more, "--pid", str(pid), store, "job"]
    return json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)


# ---- rounds ----

def start(place, size, *more):
    program = place / "program"
    subprocess.run(["cc", "-O1", "-pthread", "-x", "c", "-", "-o", program], input=PROGRAM, text=True, check=True)
    place = pathlib.Path(tempfile.mkdtemp(dir=place))
    os.mkfifo(place / "orders")
    with open(place / "out", "wb") as out:  # opened for both: criu wants the other end of a pipe to be in the tree
        fd = os.open(place / "orders", os.O_RDWR)
        p = subprocess.Popen([program, str(size), *more], stdin=fd, stdout=out, stderr=subprocess.DEVNULL, start_new_session=True)
    return p, fd, place / "out"


def await_step(p, out, step):
    """What it says then: nanoseconds of the longest pause since the last step."""
    while not (text := out.read_text()).endswith(f" {step}\n"):
        if p.poll() is not None:
            die("the program ended")
        select.select([], [], [], 0.02)
    return int(text.splitlines()[-1].split()[0])


def measure(place, memory, binary, size, rounds):
    p, orders, out = start(place, size)
    ways = {"criu dump": lambda: dump(p.pid, memory / "images"), "pages thrown away": lambda: dump(p.pid, memory / "images", False),
            "pages read": lambda: dump(p.pid, memory / "images", True), "varve": lambda: varve(binary, p.pid, place / "store")["frozen_seconds"],
            "varve, no precopy": lambda: varve(binary, p.pid, place / "store", "--no-precopy")["frozen_seconds"]}
    step = 1
    try:
        await_step(p, out, step)
        ways["varve"]()
        for share in SHARES:
            least = {}
            for _ in range(rounds):
                os.write(orders, b"%d\n" % share)
                step += 1
                await_step(p, out, step)
                for way, run in ways.items():
                    least[way] = min(run(), least.get(way, 1e9))
            case = f"{size >> 20} MiB, {share} % changed"
            for way, seconds in least.items():
                tell("image.frozen", case, way, seconds, "s", baseline=not way.startswith("varve"))
            tell("image.frozen", case, "varve / pages thrown away", least["varve"] / least["pages thrown away"], "ratio", at_most=AT_MOST.get(share))
            tell("image.frozen", case, "varve / pages read", least["varve"] / least["pages read"], "ratio")
            tell("image.frozen", case, "varve / criu dump", least["varve"] / least["criu dump"], "ratio")
    finally:
        p.send_signal(signal.SIGKILL)
        p.wait()
        os.close(orders)


def measure_cost(place, memory, binary, size, rounds):
    p, orders, out = start(place, size, "beat")
    ways = {"criu, pages thrown away": lambda: dump(p.pid, memory / "images", False), "varve": lambda: varve(binary, p.pid, place / "store")["seconds"],
            "varve, no precopy": lambda: varve(binary, p.pid, place / "store", "--no-precopy")["seconds"]}
    pause, whole, step = {}, {}, 1

    def next_step():
        nonlocal step
        os.write(orders, b"0\n")
        step += 1
        return await_step(p, out, step)
    try:
        await_step(p, out, step)
        ways["varve"]()
        for _ in range(rounds):
            for way, run in ways.items():
                next_step()
                whole[way] = min(run(), whole.get(way, 1e9))
                select.select([], [], [], 0.1)  # it is noted by the write behind it
                pause[way] = min(next_step() / 1e9, pause.get(way, 1e9))
    finally:
        p.send_signal(signal.SIGKILL)
        p.wait()
        os.close(orders)
    case = f"{size >> 20} MiB, 5 % written all the time"
    for way, seconds in pause.items():
        tell("image.frozen", case, f"longest pause, {way}", seconds, "s", baseline=not way.startswith("varve"))
    tell("image.frozen", case, "longest pause, varve / criu, pages thrown away", pause["varve"] / pause["criu, pages thrown away"], "ratio")
    tell("image.frozen", case, "whole dump, varve / no precopy", whole["varve"] / whole["varve, no precopy"], "ratio")


def main():
    args = arguments(["image.frozen"], "1 GiB, not 256 MiB").parse_args()
    if os.geteuid() != 0 or not shutil.which("criu") or subprocess.run(["criu", "check"], capture_output=True).returncode:
        skip("criu, as root, cannot dump a process here")
    memory = pathlib.Path(tempfile.mkdtemp(prefix="varve-bench-", dir=MEMORY))
    try:
        given = (pathlib.Path(args.dir), memory, pathlib.Path(args.build) / "varve", args.size or (1 << 30 if args.full else 256 << 20),
                 args.rounds or (9 if args.full else 3))
        measure(*given)
        measure_cost(*given)
    finally:
        shutil.rmtree(memory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    entry(main)
