#!/usr/bin/env python3
# ctest: TIMEOUT 600 COST 50
"""Programs that declare nothing: killed again and again, they end with what they would have ended with; and what must not be put back is
refused, with a reason, and nothing is lost."""
import ctypes
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = pathlib.Path(os.environ.get("VARVE_SOURCE", HERE.parents[1]))
BUILD = pathlib.Path(os.environ.get("VARVE_BUILD", SOURCE / "build"))
VARVE = os.environ.get("VARVE_BIN", BUILD / "varve")
CC, CXX, MPIEXEC = os.environ.get("CC", "cc"), os.environ.get("CXX", ""), os.environ.get("VARVE_MPIEXEC", "")
PRELOAD = BUILD / "libvarve_preload.so"
ADDR_NO_RANDOMIZE = 0x0040000
LIVES = int(os.environ.get("VARVE_TEST_LIVES", "50"))
libc = ctypes.CDLL(None, use_errno=True)


def fixed():
    libc.personality(ADDR_NO_RANDOMIZE)


class Job:
    """A program with a lineage of its own."""

    def __init__(self, work, name, *command, **env):
        self.command = [str(c) for c in command]
        self.store, self.events, self.name = work / "store", work / f"{name}.events", name
        self.events.touch()
        self.env = {**os.environ, "VARVE_RUN_STORE": str(self.store), "VARVE_RUN_LINEAGE": name, "VARVE_RUN_EVENTS": str(self.events),
                    "VARVE_KEEP": "3", "VARVE_INTERVAL": "20ms", "LD_PRELOAD": str(PRELOAD), **env}

    def start(self, *args, fix=True, **env):
        return subprocess.Popen([*self.command, *map(str, args)], env={**self.env, **env}, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, preexec_fn=fixed if fix else None, start_new_session=True)

    def run(self, *args, **kw):
        """Its status, its output, and what was said, as events or else as text."""
        before = self.events.stat().st_size
        p = self.start(*args, **kw)
        out, err = p.communicate(timeout=240)
        return p.returncode, out, err + self.events.read_text()[before:]

    def told(self, word):
        return re.findall(rf"^{word} (\d+)(?: (.*))?$", self.events.read_text(), re.M)


def expect(what, ok, *more):
    if not ok:
        sys.exit(f"FAILED: {what}\n" + "\n".join(str(m) for m in more))


def modules():
    return next(BUILD.rglob("varve_here.mod")).parent


def compile(work, source, *flags):
    out = work / source.replace(".", "_")
    if source.endswith("f90"):
        subprocess.run(["gfortran", "-O2", f"-J{work}", f"-I{modules()}", HERE / source, BUILD / "libvarve_fortran.a", "-o", out], check=True)
        return out
    compiler = CXX if source.endswith("cpp") else CC
    flags = [*flags, "-std=c++17"] if source.endswith("cpp") else flags
    subprocess.run([compiler, "-D_GNU_SOURCE", "-O2", "-pthread", f"-I{SOURCE / 'include'}", HERE / source, "-o", out, *flags], check=True)
    return out


def plain(program, *args):
    return subprocess.run([*program, *map(str, args)], check=True, capture_output=True, text=True, timeout=240).stdout


def children(pid):
    """And theirs: a launcher of MPI puts its ranks into groups of their own."""
    found = [pid]
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [d for c in task.read_text().split() for d in children(int(c))]
        except OSError:
            pass  # it has just ended
    return found


def end(p):
    """kill -9 of the program and whatever it has started."""
    for pid in children(p.pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    p.communicate()


def wait_for(p, job, word, count):
    """Until the event has been told so often, or the program has ended."""
    limit = time.monotonic() + 60
    while len(job.told(word)) < count and p.poll() is None and time.monotonic() < limit:
        time.sleep(0.005)


def kill_often(job, steps, nap, want, lives=LIVES):
    """Each life ends at any moment, some while it begins; every third goes on until it has a checkpoint to its name. The last one may live; so may one before it that
    has come to the end of its steps, since nobody was there in time to kill it."""
    for life in range(lives):
        durable = len(job.told("durable"))
        begun = len(job.told("restored")) + len(job.told("fresh"))
        p = job.start(steps, nap)
        if life % 3 == 0:
            wait_for(p, job, "durable", durable + 1)
        elif life % 3 == 1:
            wait_for(p, job, "(?:restored|fresh)", begun + 1)
        time.sleep(random.uniform(0, 0.1))
        expect(f"{job.name}: life {life} came to no bad end by itself", p.poll() in (None, 0), *p.communicate() if p.poll() else "")
        is_over = p.poll() == 0
        end(p)
        if is_over:
            lives = life
            break
    status, out, err = job.run(steps, 0)
    expect(f"{job.name}: the right result after {lives} deaths", (status, out) == (0, want), status, out, want, err)
    restored = [int(e) for e, _ in job.told("restored")]
    expect(f"{job.name}: it went on from checkpoints", len(set(restored)) >= lives // 3 and restored == sorted(restored), restored)
    print(f"{job.name}: {lives} deaths, restored {len(restored)} times from {len(set(restored))} epochs, the last {restored[-1:]}")


def check_killed(work):
    for source, steps, nap in (("here_objects.c", 600, 3000), ("here_threads.c", 600, 3000), ("here_containers.cpp", 900, 3000),
                               ("here_arrays.f90", 900, 3000)):
        if source.endswith("cpp") and not CXX:
            print("no C++ compiler: its program is left out")
            continue
        if source.endswith("f90") and not (BUILD / "libvarve_fortran.a").exists():
            print("built without Fortran: its program is left out")
            continue
        program = compile(work, source)
        want = plain([program], steps)
        job = Job(work, program.name, program)
        status, out, err = job.run(steps, VARVE_RUN_LINEAGE=f"{program.name}.once")
        expect(f"{program.name}: the same without a death", (status, out) == (0, want), status, out, want, err)
        kill_often(job, steps, nap, want)


def check_globals(work):
    program = compile(work, "here_globals.c")
    want = plain([program], 300)
    job = Job(work, "globals", program, VARVE_RUN_GLOBALS="1")
    kill_often(job, 300, 3000, want, lives=12)
    status, _, err = job.run(300, VARVE_RUN_GLOBALS="0")
    expect("globals that were stored must be asked for", status == 76 and "--globals" in err, status, err)


def check_ranks(work):
    if not MPIEXEC or not (BUILD / "libvarve_preload_mpi.so").exists():
        print("no MPI: its program is left out")
        return
    wrapper = shutil.which("mpicc")
    if not wrapper:
        print("no mpicc: the program with MPI is left out")
        return
    program = work / "here_ranks"
    subprocess.run([wrapper, "-D_GNU_SOURCE", "-O2", f"-I{SOURCE / 'include'}", HERE / "here_ranks.c", "-o", program], check=True)
    want = plain([MPIEXEC, "-n", "2", program], 80)
    # the launcher itself is not a program to be captured: each rank is started by env
    job = Job(work, "ranks", MPIEXEC, "-n", "2", "env", f"LD_PRELOAD={PRELOAD}", program, LD_PRELOAD="")
    kill_often(job, 80, 10000, want, lives=12)
    status, _, err = Job(work, "leaves", *job.command, LD_PRELOAD="", LEAVE="1").run(80, 10000)
    expect("a rank that exits does not hold up the others", status == 9, status, err)


def check_refusals(work):
    program = compile(work, "here_objects.c")
    job = Job(work, "refusals", program)
    p = job.start(100000, 1000)
    wait_for(p, job, "durable", 1)
    end(p)
    before = len(job.told("durable"))

    status, out, err = job.run(5, 0, 100000)
    expect("other allocations, said once", status == 76 and len(re.findall(r"there is .* and was .*; in all, \d+ objects", err)) == 1, status, err)
    expect("the event tells of it", job.told("refused") and not job.told("damaged"), job.events.read_text())

    other = work / "other"
    subprocess.run([CC, "-D_GNU_SOURCE", "-O1", f"-I{SOURCE / 'include'}", HERE / "here_objects.c", "-o", other], check=True)
    status, _, err = Job(work, "refusals", other).run(5)
    expect("another executable", status == 76 and "executable" in err, status, err)

    if pathlib.Path("/proc/sys/kernel/randomize_va_space").read_text().strip() != "0":
        status, _, err = job.run(5, fix=False)
        expect("another place", status == 76 and "randomisation" in err, status, err)
    status, _, err = job.run(5, VARVE_RUN_ARENA="300000000000")
    expect("another place for the heap", status == 76 and "0x300000000000" in err, status, err)
    status, _, err = job.run(5, VARVE_RUN_RESTART="oops")
    expect("a wrong word", status == 76 and "VARVE_RUN_RESTART" in err, status, err)
    status, _, err = job.run(5, VARVE_RUN_RESTART="99999")
    expect("an epoch that is not there", status == 76 and "99999" in err, status, err)
    expect("nothing was taken meanwhile", len(job.told("durable")) == before)
    check_damage(work, job)


def check_damage(work, job):
    """Whatever is damaged of the newest epoch: it is refused, and an older one does."""
    epoch = max(int(e) for e, _ in job.told("durable"))
    layers = sorted(job.store.glob(f"refusals/**/*{epoch}*"), key=lambda f: f.stat().st_size)
    whole = layers[-1].read_bytes()
    for at in (len(whole) // 3, len(whole) // 2, len(whole) - 40):
        damaged = bytearray(whole)
        damaged[at] ^= 0x55
        layers[-1].write_bytes(damaged)
        status, _, err = job.run(5, VARVE_RUN_RESTART=str(epoch))
        expect(f"damage at {at} of {len(whole)}", status in (76, 0), status, err)
        if status == 0:
            continue  # in what is not read at a restart, or can be mended
        expect("damage is called damage", job.told("damaged"), job.events.read_text(), err)
    layers[-1].write_bytes(whole)
    status, _, err = job.run(5)
    expect("whole again", status == 0, status, err)


def check_odd(work):
    program = compile(work, "here_allocation_patterns.c")
    job = Job(work, "storm", program, "storm")
    p = job.start(100000, 10000)
    wait_for(p, job, "durable", 6)
    end(p)
    expect("no epoch is lost while threads allocate", len(job.told("durable")) >= 6 and not job.told("failed"), job.events.read_text())
    check_shed(Job(work, "shed", program, "shed", VARVE_INTERVAL="0", VARVE_BUFFER="256KiB", VARVE_KEEP="0"))
    for mode in "tail", "local":
        kill_often(Job(work, mode, program, mode), 300, 3000, plain([program, mode], 300), lives=9)
    job = Job(work, "sparse", program, "sparse")
    p = job.start(100000, 1000)
    wait_for(p, job, "durable", 2)
    end(p)
    status, out, err = job.run(5)
    resident = re.search(r"^(\d+) MiB$", out, re.M)
    expect("what was never written takes no memory after a restart", status == 0 and resident and int(resident[1]) < 200, status, out, err)


def check_shed(job):
    """Memory goes back to the kernel while checkpoints are taken for which it is fenced."""
    p = job.start(3, 1000000)
    wait_for(p, job, "durable", 2)
    end(p)
    status, out, err = job.run(80, 3000)
    expect("no epoch is lost while memory is given back", status == 0 and len(job.told("durable")) > 60 and not job.told("failed"), status, err,
           job.events.read_text())


def other_allocators():
    return [f for name in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2") for f in pathlib.Path("/usr/lib").glob(f"*/{name}")]


def check_gifts(work):
    program = compile(work, "here_gifts.c", f"-I{SOURCE / 'src'}")
    (work / "empty").mkdir()
    status, out, err = Job(work, "walk", "env", "-C", work / "empty", program).run()
    expect("what the C library gives is on the heap, what it keeps is not", (status, out) == (0, "good\n"), out, err)
    for library in other_allocators():
        status, out, err = Job(work, "behind", "env", "-C", work / "empty", f"LD_PRELOAD={PRELOAD}:{library}", program, LD_PRELOAD="").run()
        expect(f"the same with {library.name} behind", (status, out) == (0, "good\n"), out, err)
    state = compile(work, "here_gift_state.c")
    kill_often(Job(work, "gifts", state), 300, 3000, plain([state], 300), lives=12)
    if not (BUILD / "libvarve_fortran.a").exists():
        return print("built without Fortran: what its library gives is left out")
    status, out, err = Job(work, "fortran", "env", "-C", work / "empty", compile(work, "here_gifts.f90")).run()
    expect("what Fortran's library gives is on the heap", (status, out) == (0, "good\n"), out, err)


def check_operators(work):
    """C++'s operators: those of a program that replaces some of them, and with an allocator's library behind."""
    if not CXX:
        return print("no C++ compiler: operators are left out")
    others = other_allocators()
    for own in [], ["-DOWN"]:
        program = compile(work, "here_operators.cpp", *own)
        for library in [None, *others]:
            status, out, err = Job(work, "operators", program, LD_PRELOAD=":".join(map(str, [PRELOAD, library] if library else [PRELOAD]))).run()
            expect(f"operators {own}, {library}", (status, out) == (0, "good\n"), status, out, err)
    print("operators: tried with", *(f.name for f in others))


def check_places(work):
    """Libraries lie where they lay, even if threads allocate while they are loaded."""
    source = work / "part.c"
    source.write_text("static char room[300000];\nint part(int i) { return room[i]++; }\n")
    for i in range(4):
        subprocess.run([CC, "-shared", "-fPIC", source, "-o", work / f"libpart{i}.so"], check=True)
    program = compile(work, "here_loads.c")
    places = {Job(work, "places", program, work).run()[1] for _ in range(12)}
    expect("libraries lie where they lay while threads allocate", len(places) == 1 and len(places.pop().split()) == 4, *places)


def check_words(work):
    """Those of the command line, which lie behind an environment that is now shorter, now longer."""
    program = compile(work, "here_words.c")
    job = Job(work, "words", program, VARVE_INTERVAL="0")
    p = job.start("a name", "second", 1000000)
    wait_for(p, job, "durable", 2)
    end(p)
    for more in range(0, 80, 16):
        status, out, err = job.run("a name", "second", 3, VARVE_KEEP="0", MORE="m" * more)
        expect(f"a name of the command line, with {more} more bytes", status == 0 and out == f"{program}: a name second; now a name second\n", status, out, err)
    status, out, err = job.run("another", "one that is longer", 3)
    expect("other words", status == 0 and out.endswith(": a name second; now another one that is longer\n") and "other arguments" in err, status, out, err)


def check_protected_pages(work):
    """Parts of the heap that the program has shut by mprotect: what was in them comes back, and they are as shut as they were."""
    program = compile(work, "here_protected_pages.c")
    want = plain([program], 300)
    job = Job(work, "shut", program)
    kill_often(job, 300, 3000, want, lives=9)
    expect("no checkpoint fails of it", not job.told("failed") and not job.told("unable"), job.events.read_text())
    status, out, err = job.run(310, PROTECT_MORE="1")
    expect("parts that nobody can read are filled, too", (status, out) == (0, plain([program], 310)), status, out, err)
    status, out, err = Job(work, "hidden", program, VARVE_INTERVAL="0").run(3, PROTECT_MORE="1")
    expect("what cannot be read is named", (status, out) == (0, plain([program], 3)) and "failed 0 region 'heap/" in err and "may not be read" in err,
           status, out, err)


def check_bare(work):
    """It clears its environment before its first call."""
    program = compile(work, "here_objects.c", HERE / "here_bare.c").rename(work / "bare")
    job = Job(work, "bare", program)
    kill_often(job, 300, 3000, plain([program], 300), lives=3)
    expect("what was asked for there holds", not job.told("unable") and len(list((job.store / "bare").rglob("*.commit"))) <= 3, job.events.read_text())


def check_renamed(work):
    """What varve allocates is none of the program's state, whatever its library is called."""
    program, renamed = compile(work, "here_objects.c"), work / "renamed.so"
    shutil.copy(PRELOAD, renamed)
    job = Job(work, "renamed", program, VARVE_INTERVAL="0", LD_PRELOAD=str(renamed))
    for steps in 30, 60:
        status, out, err = job.run(steps)
        expect("a library of another name", (status, out) == (0, plain([program], steps)), status, out, err)
    expect("it went on", len(job.told("restored")) == 1, job.events.read_text())


def check_births(work):
    program = compile(work, "here_births.c", "-rdynamic")
    for i in range(12):
        status, out, err = Job(work, f"births{i}", program, VARVE_INTERVAL="0").run(3)
        expect("no child waits for a lock of its parent's", (status, out) == (0, "3 of 3\n"), status, out, err)


def check_misuse(work):
    program = compile(work, "here_misuse.c")
    status, out, err = Job(work, "misuse", program).run()
    expect("what is said wrongly is told at once", (status, out) == (0, "0 0 0 good\n"), status, out, err)
    job = Job(work, "without-all", program)
    status, out, err = job.run("more than there is")
    expect("no epoch lacks a part of the state", (status, out) == (0, "1 1 1 good\n") and len(job.told("unable")) == 1 and not job.told("fresh") and
           not list(job.store.glob("without-all/*/*.commit")), status, out, err)


def check_signals(work):
    """Handlers come in the midst of calls, which with a store as slow as its checkpoints are is most of the time."""
    program = compile(work, "here_signals.c")
    job = Job(work, "signals", program, VARVE_INTERVAL="0", VARVE_BUFFER="1MiB", VARVE_CODEC="none")
    for life in range(10):
        durable = len(job.told("durable"))
        p = job.start(1000000)
        wait_for(p, job, "durable", durable + 2)
        time.sleep(random.uniform(0, 0.05))
        p.terminate()
        try:
            out, err = p.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            end(p)
            expect(f"a handler ends the program, life {life}", False, "it hangs")
        expect(f"a handler ends the program, life {life}", p.returncode == 3 and len(job.told("durable")) >= durable + 2, p.returncode, out, err)
    expect("what was taken before the end is durable", len(job.told("taken")) == len(job.told("durable")), job.events.read_text())
    last = int(job.told("durable")[-1][0])
    status, out, err = job.run(last + 20)
    expect("it goes on, and its result is right", (status, out) == (0, plain([program], last + 20)), status, out, err)


def check_closes(work):
    """It closes what it has not opened. What it opens then is its own alone."""
    program = compile(work, "here_closes.c")
    for how in "loop", "range", "from":
        job = Job(work, "closes-" + how, program, VARVE_INTERVAL="0", VARVE_KEEP="0")
        own = work / f"own-{how}"
        status, out, err = job.run(40, own, how)
        expect(f"nothing but its own words in its file ({how})", (status, out) == (0, "good\n") and own.read_text() == "its own\n" * 40, status, out, err)
        expect(f"every epoch is told of and durable ({how})", len(job.told("durable")) == 40 and not job.told("failed"), job.events.read_text())
    done = subprocess.run([VARVE, "verify", job.store], capture_output=True, text=True, timeout=240)
    expect("and whole", done.returncode == 0, done.stdout, done.stderr)


def check_interpreter(work):
    """Half of it would come back: it is told, and goes on without."""
    python = "import ctypes\nhere = ctypes.CDLL(None).varve_checkpoint_here\nprint([here() < 0 for i in range(3)])"
    job = Job(work, "python", sys.executable, "-c", python)
    status, out, err = job.run()
    expect("an interpreter is refused, and runs on", (status, out) == (0, "[True, True, True]\n") and "Python" in job.told("unable")[0][1], status, out, err)
    expect("nothing is stored of it", not (job.store / "python").exists())


def check_run(work):
    """By the command, as users do."""
    done = subprocess.run([VARVE, "run", "--store", work / "run", "--", "true"], capture_output=True, text=True, timeout=240)
    expect("a program that never calls is told of", done.returncode == 0 and "without a call of varve_checkpoint_here" in done.stderr, done.stderr)
    program = compile(work, "here_objects.c")
    command = [VARVE, "run", "--every", "1ms", "--store", work / "run", "--", program]
    p = subprocess.Popen([*command, "100000", "1000"], stderr=subprocess.PIPE, text=True)
    for line in p.stderr:
        if "is durable" in line:
            break
    p.terminate()
    _, err = p.communicate(timeout=240)
    done = subprocess.run([*command, "5"], capture_output=True, text=True, timeout=240)
    expect("it goes on, and says that its arguments are others", done.returncode == 0 and "continues from epoch" in done.stderr and
           "other arguments" in done.stderr, done.stderr)
    done = subprocess.run([*command, "5"], capture_output=True, text=True, timeout=240)
    expect("it had ended well: this is a new run", done.returncode == 0 and "ended well" in done.stderr and "begins at its start" in done.stderr, done.stderr)
    last = max(int(e) for e in re.findall(r"epoch (\d+) is durable", done.stderr))
    for how in [], ["--quiet"]:
        other = subprocess.run([*command[:2], *how, "--restart", str(last), *command[2:], "5", "0", "100000"], capture_output=True, text=True, timeout=240)
        expect(f"what does not fit is said once {how}", other.returncode == 76 and other.stderr.count("has not allocated") == 1, other.stderr)
    expect("quiet says no more than that", "started" not in other.stderr, other.stderr)


def check_own_allocator(work):
    """One that is linked into the executable cannot be replaced; the program works, and is told of. One that only takes malloc's address,
    from an executable that lies at a fixed place, has none."""
    header = work / "taken.h"
    header.write_text("#include <stdlib.h>\nvoid *(*volatile taken)(size_t) = malloc;\n")
    program = compile(work, "here_objects.c", "-fno-pie", "-no-pie", "-include", header)
    job = Job(work, "fixed", program)
    status, out, err = job.run(50, VARVE_INTERVAL="1ms")
    expect("an executable at a fixed place that takes malloc's address", status == 0 and job.told("durable"), status, out, err)
    library = next(pathlib.Path("/usr/lib").glob("*/libjemalloc.a"), None)
    if not library:
        print("no libjemalloc.a: the program with an allocator of its own is left out")
        return
    program = compile(work, "here_objects.c", library, "-lm", "-ldl")
    status, out, err = Job(work, "own", program).run(5)
    expect("an allocator of its own", status == 4 and "allocator of its own" in err, status, out, err)


def check_without(work):
    program = compile(work, "here_objects.c")
    want = plain([program], 20)
    status, out, err = Job(work, "without", program).run(20, VARVE_RUN_STORE="")
    expect("without a store it warns, and says so", status == 4 and "varve run" in err, status, err)
    if pathlib.Path("/usr/bin/prlimit").exists():
        job = Job(work, "limited", "/usr/bin/prlimit", "--as=8000000000", program)
        status, out, err = job.run(20)
        expect("with a limit of addresses it says so", status == 4 and "ulimit -v" in err, status, err)
    family = compile(work, "here_family.c")
    status, out, err = Job(work, "family", family).run()
    expect("every way to allocate", (status, out) == (0, "good\n"), out, err)
    return want


if not PRELOAD.exists():
    print("libvarve_preload is not built: no jemalloc here, or a sanitizer")
    sys.exit(77)
if __name__ == "__main__":
    random.seed(int(os.environ.get("VARVE_TEST_SEED", time.time_ns() % 1000000)))
    with tempfile.TemporaryDirectory(prefix="varve-here-") as folder:
        folder = pathlib.Path(folder)
        for check in (check_without, check_run, check_own_allocator, check_gifts, check_operators, check_places, check_words, check_protected_pages, check_bare, check_misuse, check_renamed, check_births, check_signals,
                      check_closes,
                      check_interpreter, check_odd, check_refusals, check_globals, check_ranks, check_killed):
            began = time.monotonic()
            check(folder)
            print(f"{check.__name__}: {time.monotonic() - began:.1f} s", flush=True)
    print("ok")
