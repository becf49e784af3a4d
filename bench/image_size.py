#!/usr/bin/env python3
"""The benchmark image.size: images of running programs through `varve pack`, against zstd over all of them, and against Chen 2016's way. bench/run starts it.

usage: image_size.py --build DIR --dir DIR [--full] [--data DIR] NAME...

Programs are started, dumped by criu (as root) or by gcore, and go on: twice a second somebody types a line into vim or bc, twenty times a second a character
into emacs, or a script changes an entry of its table; after a while one of them is dumped again. With --full some are busy, too: perl changes ten times
as many, bc computes without a pause. Three cases: one dump, two dumps in series, and four processes of one program. Bytes are those of the layers, metadata
and all. Chen 2016's way is pages or sliding blocks (Rabin, window 48, 512/4096/32768), whichever is smaller, looked up, and what is new deflated; each of both is
more than the paper does, which leaves duplicates in most segments.
Of heap and stack it is also told what of them is redundant (Chen 2016's tables 1 to 4), and of each program how long `varve image dump` and `restore` take,
against criu on the same disk (Chen 2016's figures 2 and 3): the less of two, in turn.
With --data DIR the images are taken from DIR/PROGRAM/{p0,p1,p2,p3,s1}, or made there if they are not there yet; times are told when they are made.
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time

from telling import arguments, die, entry, say, skip, tell

PYTHON = """
import time, json, re, collections
d = {str(i): [i, i * 2.5, 'x%d' % i] for i in range(30000)}
t = 0
while True:
    t += 1
    d[str(t % 30000)] = [t, t * 1.5, 'y%d' % t]
    time.sleep(0.05)
"""
PERL = """
my %h; $h{$_} = [$_, $_ * 2, "v$_"] for 1 .. 30000; my $t = 0;
while (1) { $t++; $h{$t % 30000 + 1} = [$t, "w$t"]; select(undef, undef, undef, 0.05); }
"""
PERL_BUSY = PERL.replace("0.05", "0.005")
BC = "for (i = 0; i < 20000; i++) a[i] = sqrt(i)\n"
BC_BUSY = "scale = 2000\nx = 4 * a(1)\nfor (i = 0; i >= 0; i++) { x = x * 1.0001; y = sqrt(x) }\n"
VIM = """
call setline(1, map(range(20000), '"line " . v:val . " of a text that somebody writes, " . v:val * 7919 % 1000'))
let t = 0
while 1
  let t += 1
  call setline(t % 20000 + 1, "line " . t . " was written anew, " . t * 7919 % 1000)
  sleep 500m
endwhile
"""
EMACS = """
(let ((table (make-hash-table :test 'equal)) (n 0))
  (dotimes (i 20000) (puthash (format "key%d" i) (list i (* i 2.5) (format "value %d" i)) table))
  (switch-to-buffer "text")
  (dotimes (i 10000) (insert (format "line %d of a text that somebody writes\\n" i)))
  (while t
    (setq n (1+ n))
    (puthash (format "key%d" (% n 20000)) (list n (format "new %d" n)) table)
    (goto-char (1+ (% n (point-max))))
    (insert "x")
    (sleep-for 0.05)))
"""
C = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
struct node { struct node *next; long value; char text[16]; };
int main(void)
{
	size_t n = 3000000;
	double *a = malloc(n * sizeof(*a));
	int *order = malloc(n * sizeof(*order));
	struct node *list = NULL;
	for (size_t i = 0; i < n; i++) { a[i] = i * 0.001 + i % 97; order[i] = (int)(i * 7919 % n); }
	for (int i = 0; i < 100000; i++) {
		struct node *x = malloc(sizeof(*x));
		x->next = list; x->value = i; snprintf(x->text, sizeof(x->text), "node%d", i); list = x;
	}
	for (size_t t = 0;; t += 1000) {
		for (size_t i = t % n; i < t % n + 1000 && i < n; i++) a[i] += 1.5;
		usleep(20000);
	}
}
"""
PROGRAMS = {
    "python3": (["python3", "FILE"], PYTHON),
    "perl": (["perl", "FILE"], PERL),
    "perl busy": (["perl", "FILE"], PERL_BUSY),
    "bc": (["bc", "-l", "FILE"], BC),
    "bc busy": (["bc", "-l", "FILE"], BC_BUSY),
    "c": (["FILE"], C),
    "vim": (["vim", "-u", "NONE", "-i", "NONE", "-n", "-es", "-S", "FILE"], VIM),
    "emacs": (["emacs", "-Q", "--batch", "-l", "FILE"], EMACS),
}
TYPED = {"bc": (0.5, lambda n: f"a[{n % 20000}] = sqrt({n}) * 1.5\n")}  # seconds between two lines, and the lines
ASKED = ("python3", "perl", "bc", "vim", "emacs")  # that little of them is new the second time; of the others it depends on what they do alone
CASES = {"one": (["p0"],), "series": (["p0"], ["s1"]), "four": (["p0", "p1", "p2", "p3"],)}
SEGMENTS = ("heap", "stack")
ROUNDS = 2  # of what is timed
RULES = {"varve": [], "pages": ["--segments", "all=pages+deflate"], "rabin": ["--segments", "all=rabin+deflate"]}


# ---- images ----

def can_dump():
    return os.geteuid() == 0 and shutil.which("criu") and subprocess.run(["criu", "check"], capture_output=True).returncode == 0


def seconds(words):
    start = time.monotonic()
    got = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if got.returncode:
        die(f"'{' '.join(map(str, words))}' failed: {(got.stderr or got.stdout).strip()[-300:]}")
    return time.monotonic() - start


def dump(pid, folder, by_criu):
    folder.mkdir(parents=True)
    return seconds(["criu", "dump", "-t", pid, "-D", folder, "--leave-running", "-o", "dump.log"] if by_criu else ["gcore", "-o", folder / "core", pid])


class Typist:
    """Somebody who types into programs: a pipe with a name is what each of them reads."""

    def __init__(self, folder, every, line):
        self.folder, self.every, self.line, self.pipes = folder, every, line, []
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.type, daemon=True)

    def pipe(self):
        """As the standard input of one more of them, which has both ends, so that it never ends."""
        path = self.folder / f"typed{len(self.pipes)}"
        os.mkfifo(path)
        self.pipes.append(path)
        return os.open(path, os.O_RDWR)

    def type(self):
        n = 0
        while not self.done.wait(self.every):
            for path in self.pipes:
                try:
                    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                except OSError:  # it has ended, or is not there again yet
                    continue
                with os.fdopen(fd, "wb", buffering=0) as pipe:
                    pipe.write(self.line(n).encode())
            n += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


def start(words, source, folder, typist):
    file = folder / "program"
    file.write_text(source)
    if words == ["FILE"]:
        (folder / "program.c").write_text(source)
        file.unlink()
        subprocess.run(["cc", "-O1", folder / "program.c", "-o", file], check=True)
    words = [str(file) if w == "FILE" else w for w in words]
    running = []
    for _ in range(4):
        reads = typist.pipe() if typist else os.open(os.devnull, os.O_RDONLY)
        running.append(subprocess.Popen(words, stdin=reads, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True))
        os.close(reads)
    return running


def end(p):
    """Of a process that may have been brought back, and is nobody's child then."""
    os.kill(p.pid, signal.SIGKILL)
    while os.path.exists(f"/proc/{p.pid}"):
        p.poll()
        time.sleep(0.01)


def time_both(name, p, varve, place):
    """The process is saved and brought back several times, by criu and by varve, the first time that each sees it; then it ends."""
    took = {"criu dump": [], "dump": [], "criu restore": [], "restore": []}
    for i in range(ROUNDS):
        took["criu dump"].append(dump(p.pid, place / f"images{i}", True))
        took["dump"].append(seconds([varve, "-q", "image", "dump", "--leave-running", "--pid", p.pid, place / f"store{i}", "a"]))
    end(p)
    for i in range(ROUNDS):
        took["criu restore"].append(seconds(["criu", "restore", "-d", "-D", place / f"images{i}", "-o", "restore.log"]))
        end(p)
        took["restore"].append(seconds([varve, "-q", "image", "restore", "-d", place / f"store{i}", "a"]))
        end(p)
    for what, times in took.items():
        tell("image.size", name, what, min(times), "s", baseline=what.startswith("criu"))
    shutil.rmtree(place)


def wait_until_begun(running):
    """What each of them sets up is there: none has grown for a second."""
    had, since, end = None, 0, time.monotonic() + 60
    while time.monotonic() < end and (had is None or time.monotonic() < since + 1):
        now = [pathlib.Path(f"/proc/{p.pid}/statm").read_text().split()[1] for p in running]
        if now != had:
            had, since = now, time.monotonic()
        time.sleep(0.05)


def make(name, folder, wait, varve, place):
    words, source = PROGRAMS[name]
    by_criu = can_dump()
    folder.mkdir(parents=True)
    with Typist(folder, *TYPED[name]) if name in TYPED else contextlib.nullcontext() as typist:
        running = start(words, source, folder, typist)
        try:
            wait_until_begun(running)
            for i, p in enumerate(running):
                dump(p.pid, folder / f"p{i}", by_criu)
            time.sleep(wait)
            dump(running[0].pid, folder / "s1", by_criu)
            if by_criu and subprocess.run([varve, "image", "check"], capture_output=True).returncode == 0:
                time_both(name, running[0], varve, place / "times")
        finally:
            for p in running:
                p.send_signal(signal.SIGKILL)
                p.wait()


# ---- sizes ----

def zstd(folder, parts):
    tar = subprocess.Popen(["tar", "-C", folder, "-c", *parts], stdout=subprocess.PIPE)
    return len(subprocess.run(["zstd", "-1", "--long=27", "-c"], stdin=tar.stdout, stdout=subprocess.PIPE, check=True).stdout)


def pack(varve, store, folder, epochs, rules):
    """Bytes of the layers of each epoch."""
    shutil.rmtree(store, ignore_errors=True)
    sizes = []
    for parts in epochs:
        out = subprocess.run([varve, "--json", "pack", store, "images", "-C", folder, *rules, *parts], stdout=subprocess.PIPE, check=True).stdout
        sizes.append(json.loads(out)["bytes_layer"])
    return sizes


def check_back(varve, store, folder, parts, place):
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    subprocess.run([varve, "--quiet", "unpack", store, "images", "-C", place], check=True)
    for part in parts:
        subprocess.run(["diff", "-r", folder / part, place / part], check=True)
    shutil.rmtree(place)


def segments(varve, store):
    """Of the newest epoch: {segment: its figures}."""
    out = subprocess.run([varve, "--json", "show", store, "images"], stdout=subprocess.PIPE, check=True).stdout
    return {s["segment"]: s for s in json.loads(out)["per_rank"][0].get("segments", [])}


def tell_segments(where, found):
    """found: {rule: segments()}. Redundant is what is zero, or there twice."""
    for segment in SEGMENTS:
        ours, paper = (found[rule].get(segment) for rule in ("varve", "rabin"))
        if not ours or not paper:
            continue
        case = f"{where}, {segment}"
        tell("image.size", case, "memory", ours["bytes"], "bytes")
        for who, s in ("", ours), ("Chen 2016, ", paper):
            tell("image.size", case, f"{who}redundant", 1 - s["bytes_new"] / s["bytes"], "share")
            tell("image.size", case, f"{who}stored", s["bytes_stored"], "bytes")


def measure(name, folder, varve, place):
    for case, epochs in CASES.items():
        sizes, found = {}, {}
        for rule, words in reversed(RULES.items()):
            sizes[rule] = pack(varve, place / "store", folder, epochs, words)
            found[rule] = segments(varve, place / "store")
        check_back(varve, place / "store", folder, epochs[-1], place / "back")
        total = {rule: sum(s) for rule, s in sizes.items()}
        plain = zstd(folder, [p for e in epochs for p in e])
        paper = min(total["pages"], total["rabin"])
        where = f"{name}, {case}"
        tell("image.size", where, "stored", total["varve"], "bytes")
        tell("image.size", where, "zstd -1 --long=27", plain, "bytes", baseline=True)
        tell("image.size", where, "Chen 2016", paper, "bytes")
        tell("image.size", where, "stored / zstd", total["varve"] / plain, "ratio", at_most=1)
        tell("image.size", where, "stored / Chen 2016", total["varve"] / paper, "ratio", at_most=0.8 if case == "one" else None)
        if case == "series":
            tell("image.size", where, "second / first", sizes["varve"][1] / sizes["varve"][0], "ratio", at_most=0.1 if name in ASKED else None)
        else:
            tell_segments(where, found)


def main():
    args = arguments(["image.size"], "a minute between two dumps, not two seconds").parse_args()
    place, varve = pathlib.Path(args.dir), pathlib.Path(args.build) / "varve"
    images = pathlib.Path(args.data) if args.data else place / "images"
    for tool in "zstd", "tar":
        if not shutil.which(tool):
            skip(f"'{tool}' is not there")
    if not can_dump() and not shutil.which("gcore"):
        skip("neither criu, as root, nor gcore can dump a process here")
    for name, (words, _) in PROGRAMS.items():
        if name.endswith(" busy") and not args.full:
            continue
        if words[0] != "FILE" and not shutil.which(words[0]):
            say(f"{words[0]} is not there, and left out")
            continue
        if not (images / name / "s1").is_dir():
            make(name, images / name, 60 if args.full else 2, varve, place)
        measure(name, images / name, varve, place)
    return 0


if __name__ == "__main__":
    entry(main)
