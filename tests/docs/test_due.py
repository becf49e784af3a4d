#!/usr/bin/env python3
"""One idiom for varve_due in documentation, examples and headers: `if (varve_due(v) && varve_checkpoint(v) < 0)`, then a warning. Fortran
and Python have no result to check. Programs that count steps do so outside of the condition."""
import re
import sys

from page import ROOT

ASKED = re.compile(r"\bif\b.*(?:varve_due\(v\)|\.due\(\))")
C = re.compile(r"\bif \((?:v && )?varve_due\(v\) && (?:varve_checkpoint\(v\)|save\(v[^;]*\)) < 0\)")
FORTRAN = re.compile(r"\bif \(varve_due\(v\)\) call varve_checkpoint\(v\b")
OTHER = re.compile(r"\bif (?:\w+\.due\(\):|\(\w+\.due\(\)\))")  # Python and C++: a failure is an exception
FOLDERS = {"docs": (".md", ".1", ".3", ".5"), "examples": (".c", ".cpp", ".py", ".f90"), "include": (".h", ".hpp"), ".": (".md",)}


def files():
    for folder, suffixes in FOLDERS.items():
        found = (ROOT / folder).rglob("*") if folder != "." else ROOT.glob("*")
        yield from (p for p in found if p.suffix in suffixes and p.is_file())


def wrong_in(line):
    if re.search(r"\w = [^=]*\bvarve_due\(", line):
        return "the answer is kept in a variable"
    if re.search(r"(?:%|\bmod\().*\bdue\(", line):
        return "steps are counted in the condition"
    return "" if not ASKED.search(line) or C.search(line) or FORTRAN.search(line) or OTHER.search(line) else "another form"


found = [(p, n, line, wrong_in(line)) for p in files() for n, line in enumerate(p.read_text().split("\n"), 1) if "due(" in line]
problems = [f"{p.relative_to(ROOT)}:{n}: {why}: {line.strip()}" for p, n, line, why in found if why]
asked = sum(bool(ASKED.search(line)) for _, _, line, _ in found)
print("\n".join(problems) or f"{asked} conditions, all in one form")
sys.exit(bool(problems) or asked < 10)
