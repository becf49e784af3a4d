#!/usr/bin/env python3
"""What include/varve/varve.h, varve_read.h and varve_mpi.h have, the Fortran modules and the C++ headers have, too: calls, codes, types, statistics."""
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(os.environ["VARVE_SOURCE"])
C = "".join(re.sub(r"/\*.*?\*/", " ", (ROOT / "include/varve" / name).read_text(), flags=re.S) for name in ("varve.h", "varve_read.h", "varve_mpi.h"))
CPP = "".join((ROOT / "include/varve" / name).read_text() for name in ("varve.hpp", "varve_mpi.hpp"))
FORTRAN = re.sub(r"!.*", "", "".join(p.read_text() for p in sorted((ROOT / "src/fortran").glob("*.f90")))).lower()
FORTRAN = re.sub(r"&\s*\n\s*", " ", FORTRAN)
problems = []


def expect(fine, what):
    if not fine:
        problems.append(what)


def body(text, begin, end):
    found = re.search(rf"{begin}(.*?){end}", text, re.S)
    return found[1] if found else ""


def calls():
    names = set(re.findall(r"^VARVE_API\b[^;(]*?\b(varve_\w+)\s*\(", C, re.M))
    assert len(names) > 20
    names -= {"varve_open_world"}  # for libraries written in C
    for name in sorted(n for n in names if n.endswith("_sized")):  # varve_stats and varve_region are inline functions over these
        expect(f"bind(c, name='{name}')" in FORTRAN, f"{name} is not called by the Fortran modules")
        names = names - {name} | {name.removesuffix("_sized")}
    for name in names - {"varve_protect_array"}:  # varve_protect knows types by itself
        expect(re.search(rf"\b(subroutine|function|interface) {name}\b", FORTRAN), f"{name} is not in the Fortran modules")
    for name in names - {"varve_version", "varve_strerror"}:  # which are good enough as they are
        expect(re.search(rf"::{name}\(|\"{name}\"", CPP), f"{name} is not used by the C++ headers")


def numbers():
    fortran = dict(re.findall(r"\b(varve_\w+) = (-?\d+)", body(FORTRAN, "varve_ok", r"abstract interface")))
    values, last = {}, -1
    for name, value in re.findall(r"\b(VARVE_\w+)(?: = (-?\d+))?\s*,?", body(C, r"enum varve_type \{", r"\}")):
        last = values[name] = int(value) if value else last + 1
    values.update({n: int(v) for n, v in re.findall(r"\b(VARVE_\w+) = (-?\d+)", C)})
    assert len(values) > 20
    for name, value in values.items():
        if name != "VARVE_OK":
            expect(fortran.get(name.lower()) == str(value), f"{name} is {value}, in Fortran {fortran.get(name.lower())}")


def statistics():
    kinds = {"uint64_t": "integer(c_int64_t)", "double": "real(c_double)", "struct varve_access": "type(varve_access)"}
    for struct, mine in (("varve_stats", "varve_statistics"), ("varve_access", "varve_access")):
        theirs = [(kinds[kind], name) for kind, name in
                  re.findall(r"^\s*(struct varve_access|\w+) (\w+);", body(C, rf"struct {struct} \{{", r"\n\}"), re.M)]
        ours = re.findall(r"^\s*(\S+) :: (\w+)$", body(FORTRAN, rf"type, bind\(c\), public :: {mine}\s*\n", "end type"), re.M)
        assert theirs
        expect(theirs == ours, f"struct {struct}: {theirs}\nin Fortran: {ours}")


calls()
numbers()
statistics()
for p in problems:
    print(p)
sys.exit(1 if problems else 0)
