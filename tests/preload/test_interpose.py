#!/usr/bin/env python3
# ctest: TIMEOUT 300 COST 15
"""libvarve_interpose.so beside others that stand in front of the C library: a profiler before it or behind it, another allocator, sanitizers, libvarve.so first, a
plugin that is loaded late. A read into a region that is being stored works. Without the library it fails, and the program is warned before."""
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = pathlib.Path(os.environ.get("VARVE_SOURCE", HERE.parents[1]))
BUILD = pathlib.Path(os.environ.get("VARVE_BUILD", SOURCE / "build"))
CC, INTERPOSE = os.environ.get("CC", "cc"), BUILD / "libvarve_interpose.so"
WARNING = "libvarve_interpose.so is not loaded before the C library"
COUNTED = {"read", "write", "malloc", "free", "sigaction"}
n = 0


def compile(out, *words):
    subprocess.run([str(w) for w in (CC, "-O1", "-g", f"-I{SOURCE / 'include'}", "-o", out, *words)], check=True)
    return out


def link(*libraries):
    return [f"-L{BUILD}", "-Wl,--no-as-needed", *(f"-l{l}" for l in libraries), f"-Wl,-rpath,{BUILD}"]


def run(*command, **env):
    """Status, output and messages of the program with a store of its own."""
    global n
    n += 1
    done = subprocess.run([*map(str, command), f"{command[0]}.store{n}"], capture_output=True, text=True, timeout=240, env={**os.environ, **env})
    return done.returncode, done.stdout, done.stderr


def good(what, *command, **env):
    got = run(*command, **env)
    if got != (0, "good\n", ""):
        sys.exit(f"FAILED {what}: {got}")
    print(f"{what}: fine")


def fails(what, *command, warned=True, **env):
    status, out, err = run(*command, **env)
    if status != 2 or "Bad address" not in err or (WARNING in err) != warned:
        sys.exit(f"FAILED {what}: {status, out, err}")
    print(f"{what}: the read fails, {'and a warning came before' if warned else 'without a warning'}")


def check_without(work, source):
    core = compile(work / "core", source, *link("varve"))
    fails("libvarve.so alone", core)
    fails("libvarve.so alone, interpose = no", core, warned=False, VARVE_INTERPOSE="no")
    good("libvarve.so alone, mode = sync", core, VARVE_MODE="sync", VARVE_TRACKER="auto")
    good("libvarve.so alone, and the other preloaded", core, LD_PRELOAD=str(INTERPOSE))
    plugin = compile(work / "plugin.so", "-DPLUGIN", "-shared", "-fPIC", source, *link("varve_interpose", "varve"))
    main = compile(work / "main", HERE / "beside_main.c", "-ldl")
    fails("a plugin, whose libraries come after the C library", main, plugin)
    good("a plugin, and the library preloaded", main, plugin, LD_PRELOAD=str(INTERPOSE))


def check_profiler(work, program, source):
    profiler, counts = compile(work / "libprofiler.so", "-shared", "-fPIC", HERE / "beside_profiler.c", "-ldl"), work / "counts"
    linked = compile(work / "linked", source, f"-L{work}", "-Wl,--no-as-needed", "-lprofiler", f"-Wl,-rpath,{work}", *link("varve_interpose", "varve"))
    behind = compile(work / "behind", source, *link("varve_interpose", "varve"), f"-L{work}", "-lprofiler", f"-Wl,-rpath,{work}")
    for what, command, preload in (("preloaded", program, f"{profiler}"), ("preloaded after us", program, f"{INTERPOSE} {profiler}"),
                                   ("linked before us", linked, ""), ("linked after us", behind, "")):
        counts.unlink(missing_ok=True)
        good(f"a profiler {what}", command, LD_PRELOAD=preload, BESIDE_COUNTS=str(counts))
        seen = {line.split()[0] for line in counts.read_text().splitlines() if int(line.split()[1])}
        if seen != COUNTED:
            sys.exit(f"FAILED a profiler {what}: it saw only {seen}")


def check_sanitizer(work, sanitizer, source):
    flags = [f"-fsanitize={sanitizer}"]
    probe = subprocess.run([CC, *flags, "-x", "c", "-", "-o", work / "probe"], input="int main(void) { return 0; }", text=True, capture_output=True)
    if probe.returncode != 0 or subprocess.run([work / "probe"], capture_output=True).returncode != 0:
        print(f"{sanitizer}: not to be had here")
        return
    program = compile(work / sanitizer, *flags, source, *link("varve_interpose", "varve"))
    good(f"-fsanitize={sanitizer}", program, ASAN_OPTIONS="detect_leaks=0")


if not INTERPOSE.exists():
    print("skip: this build does not interpose functions of the C library")
    sys.exit(77)
with tempfile.TemporaryDirectory(prefix="varve-interpose-") as folder:
    work, source = pathlib.Path(folder), HERE / "beside.c"
    program = compile(work / "both", source, *link("varve_interpose", "varve"))
    good("both libraries", program)
    good("libvarve.so first", compile(work / "swapped", source, *link("varve", "varve_interpose")))
    check_without(work, source)
    check_profiler(work, program, source)
    for allocator in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4"):
        if subprocess.run(["true"], capture_output=True, env={**os.environ, "LD_PRELOAD": allocator}).stderr:
            print(f"{allocator}: not to be had here")
            continue
        good(f"{allocator} preloaded", program, LD_PRELOAD=allocator)
        good(f"{allocator} preloaded after us", program, LD_PRELOAD=f"{INTERPOSE} {allocator}")
    for sanitizer in ("address", "thread"):
        check_sanitizer(work, sanitizer, source)
