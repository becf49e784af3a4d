#!/usr/bin/env python3
# ctest: TIMEOUT 120
"""libvarve.so can be loaded by dlopen, however late: where other libraries have used up the storage for threads that is set aside for such as need
it at once. And it can be unloaded by dlclose: threads that end, and faults, find their way."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = pathlib.Path(os.environ.get("VARVE_SOURCE", HERE.parents[1]))
BUILD = pathlib.Path(os.environ.get("VARVE_BUILD", SOURCE / "build"))
CC = os.environ.get("CC", "cc")
LIBRARIES = 60  # of 64 bytes each: more than any C library sets aside
GREEDY = '__thread char greedy[64] __attribute__((tls_model("initial-exec")));\nchar *greed(void) { return greedy; }\n'

if re.search(r"^VARVE_SANITIZE:\w+=.", (BUILD / "CMakeCache.txt").read_text(), re.M):
    print("skipped: a sanitizer's runtime must be there from the beginning")
    sys.exit(77)
with tempfile.TemporaryDirectory(prefix="varve-late-") as folder:
    work = pathlib.Path(folder)
    (work / "greedy.c").write_text(GREEDY)
    first = work / "greedy0.so"
    subprocess.run([CC, "-O1", "-shared", "-fPIC", work / "greedy.c", "-o", first], check=True)
    libraries = [first] + [work / f"greedy{i}.so" for i in range(1, LIBRARIES)]
    for other in libraries[1:]:
        other.write_bytes(first.read_bytes())
    program = work / "late"
    subprocess.run([CC, "-D_GNU_SOURCE", "-O2", "-pthread", f"-I{SOURCE / 'include'}", HERE / "late.c", "-o", program, "-ldl"], check=True)
    for options in {}, {"VARVE_BUFFER": "256KiB", "VARVE_TRACKER": "mprotect"}, {"VARVE_BUFFER": "256KiB", "VARVE_TRACKER": "mprotect", "LATE_KEYS": "1"}:
        store = work / f"store{len(options)}"
        done = subprocess.run([program, BUILD / "libvarve.so", store, *libraries], capture_output=True, text=True, timeout=240, env={**os.environ, **options})
        if (done.returncode, done.stdout) != (0, "good\n"):
            sys.exit(f"FAILED {options}: status {done.returncode}: {done.stdout}{done.stderr}")
    program = work / "unload"
    subprocess.run([CC, "-D_GNU_SOURCE", "-O2", "-pthread", f"-I{SOURCE / 'include'}", HERE / "unload.c", "-o", program, "-ldl"], check=True)
    done = subprocess.run([program, BUILD / "libvarve.so", work / "unloaded"], capture_output=True, text=True, timeout=240)
    if (done.returncode, done.stdout) != (0, "good\n"):
        sys.exit(f"FAILED after dlclose: status {done.returncode}: {done.stdout}{done.stderr}")
print("ok")
