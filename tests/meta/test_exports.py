#!/usr/bin/env python3
"""libvarve.so shows what the public headers declare and the table for libvarve_interpose.so, all with a version, and nothing else.
libvarve_interpose.so shows the names of src/preload/wrap/wrap_names.h, without a version: a call of read@GLIBC_2.2.5 is not bound to a read
of another version. libvarve_mpi.so shows what its header declares. libvarve_preload.so shows what both libraries do but the table, malloc and
its family, MPI_Finalize, what closes descriptors, C++'s operators, the names of src/preload/libc_memory_names.h, and what varve_here.h
calls."""
import ctypes
import os
import re
import subprocess
import tree

ALLOCATION = set("""malloc calloc reallocarray memalign aligned_alloc posix_memalign valloc pvalloc malloc_usable_size
    dlclose pthread_create MPI_Finalize""".split())
DESCRIPTORS = {name for name in ("close", "dup2", "dup3", "close_range", "closefrom") if hasattr(ctypes.CDLL(None), name)}
FORMS = ("", "RKSt9nothrow_t", "St11align_val_t", "St11align_val_tRKSt9nothrow_t")
OPERATORS = {f"_Z{name}m{form}" for name in ("nw", "na") for form in FORMS}
OPERATORS |= {f"_Z{name}Pv{form}" for name in ("dl", "da") for form in (*FORMS, "m", "mSt11align_val_t")}
LINKER = {"_init", "_fini", "_edata", "_end", "__bss_start"}  # some linkers export their own marks
VERSION = "VARVE_1.0"
HERE = {f"varve_{what}_here@@{VERSION}" for what in ("checkpoint", "protect", "except")}
TABLE = f"varve_interpose_table@@{VERSION}"


def shown(library):
    """Each name with its version."""
    nm = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in nm.stdout.splitlines()} - LINKER - {VERSION}


def declared(*, mpi=False):
    names = set()
    for header in tree.c_files("include"):
        text = tree.blank_comments(header.read_text())
        if ("<mpi.h>" in text) == mpi:
            names |= set(re.findall(r"^VARVE_API\b[^;(]*?\b(varve_\w+)\s*\(", text, re.M))
    names |= {name.removesuffix("_sized") for name in names}  # for programs from before 1.0
    return {f"{name}@@{VERSION}" for name in names}


def named(list_):
    """The names of an X-macro, as this C library has them."""
    text = f'#include "preload/{"wrap/" if list_.startswith("wrap") else ""}{list_}.h"\nVV_{list_.upper()}(X)\n'
    names = subprocess.run([os.environ.get("CC", "cc"), f"-I{tree.ROOT / 'src'}", "-E", "-P", "-"], check=True, text=True, input=text, capture_output=True)
    return set(re.findall(r"\bX\((\w+)\)", names.stdout))


def interposed():
    """Does this build interpose functions of the C library?"""
    cache = (tree.BUILD / "CMakeCache.txt").read_text()
    return re.search(r"^VARVE_WITH_WRAP:\w+=(ON|TRUE|YES|1)$", cache, re.M | re.I) and not re.search(r"^VARVE_SANITIZE:\w+=.", cache, re.M)


problems, count = [], 0
core = declared() | {TABLE}
wanted = {"libvarve": core, "libvarve_mpi": declared(mpi=True)}
if interposed():
    wanted["libvarve_interpose"] = named("wrap_names")
    wanted["libvarve_preload"] = core - {TABLE} | named("wrap_names") | named("libc_memory_names") | HERE | ALLOCATION | DESCRIPTORS | OPERATORS
assert len(core) > 20
for name, names in wanted.items():
    library = tree.BUILD / f"{name}.so"
    if not library.exists() and name in ("libvarve_mpi", "libvarve_preload"):  # optional
        continue
    found = shown(library)
    count += len(found)
    problems += [f"{name}.so exports {s}, which it should not" for s in sorted(found - names)]
    problems += [f"{name}.so does not export {s}" for s in sorted(names - found)]
tree.finish(problems, f"{count} symbols of {len(wanted)} libraries")
