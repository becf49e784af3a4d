#!/usr/bin/env python3
"""libvarve.so shows varve_*, the names of src/preload/wrap/wrap_names.h if it is built with them, and nothing else; and
everything that the public headers declare. libvarve_mpi.so shows what its header declares. libvarve_preload.so shows what libvarve.so
does, malloc and its family, MPI_Finalize, what closes descriptors, C++'s operators, the names of src/preload/libc_memory_names.h, and what varve_here.h declares."""
import ctypes
import os
import re
import subprocess
import tree

ALLOCATION = set("""malloc calloc reallocarray memalign aligned_alloc posix_memalign valloc pvalloc malloc_usable_size
    dlclose pthread_create MPI_Finalize varve_checkpoint_here varve_protect_here varve_except_here""".split())
DESCRIPTORS = {name for name in ("close", "dup2", "dup3", "close_range", "closefrom") if hasattr(ctypes.CDLL(None), name)}
FORMS = ("", "RKSt9nothrow_t", "St11align_val_t", "St11align_val_tRKSt9nothrow_t")
OPERATORS = {f"_Z{name}m{form}" for name in ("nw", "na") for form in FORMS}
OPERATORS |= {f"_Z{name}Pv{form}" for name in ("dl", "da") for form in (*FORMS, "m", "mSt11align_val_t")}
LINKER = {"_init", "_fini", "_edata", "_end", "__bss_start"}  # some linkers export their own marks



def shown(library):
    nm = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    return {line.split()[-1].split("@")[0] for line in nm.stdout.splitlines()} - LINKER


exported, declared, declared_mpi = shown(tree.BUILD / "libvarve.so"), set(), set()
for header in tree.c_files("include"):
    text = tree.blank_comments(header.read_text())
    found = declared_mpi if "<mpi.h>" in text else declared  # those live in a library of their own
    found |= set(re.findall(r"^VARVE_API\b[^;(]*?\b(varve_\w+)\s*\(", text, re.M))


def named(list_):
    """The names of an X-macro, as this C library has them."""
    text = f'#include "preload/{"wrap/" if list_.startswith("wrap") else ""}{list_}.h"\nVV_{list_.upper()}(X)\n'
    names = subprocess.run([os.environ.get("CC", "cc"), f"-I{tree.ROOT / 'src'}", "-E", "-P", "-"], check=True, text=True, input=text, capture_output=True)
    return set(re.findall(r"\bX\((\w+)\)", names.stdout))


def wrapped():
    """The functions of the C library that this build stands in front of."""
    cache = (tree.BUILD / "CMakeCache.txt").read_text()
    on = re.search(r"^VARVE_WITH_WRAP:\w+=(ON|TRUE|YES|1)$", cache, re.M | re.I)
    if not on or re.search(r"^VARVE_SANITIZE:\w+=.", cache, re.M):
        return set()
    return named("wrap_names")


foreign, wanted = {s for s in exported if not s.startswith("varve_")}, wrapped()
problems = [f"exported, but neither varve_* nor in src/preload/wrap/wrap_names.h: {s}" for s in sorted(foreign - wanted)]
problems += [f"in src/preload/wrap/wrap_names.h, but not exported: {s}" for s in sorted(wanted - foreign)]
problems += [f"declared in include/, but not exported: {s}" for s in sorted(declared - exported)]
library = tree.BUILD / "libvarve_mpi.so"
if library.exists() and shown(library) != declared_mpi:
    problems.append(f"libvarve_mpi.so shows {sorted(shown(library))}, its header declares {sorted(declared_mpi)}")
library = tree.BUILD / "libvarve_preload.so"
if library.exists() and shown(library) ^ exported != (own := ALLOCATION | DESCRIPTORS | OPERATORS | named("libc_memory_names")):
    problems.append(f"libvarve_preload.so, beside what libvarve.so shows: {sorted((shown(library) ^ exported) ^ own)} too many or too few")
if not exported:
    problems.append("nothing is exported")
tree.finish(problems, f"{len(exported - foreign)} symbols of varve, {len(foreign)} of the C library")
