#!/usr/bin/env python3
"""Counts and lists of the documentation agree with the tree: lines of the README, nouns, fuzzers, options. No paragraph
begins with the whole text of the one before."""
import re
import sys

from page import ROOT
from test_prose import pages, paragraphs

README_LINES = 120
NUMBERS = {"Eight": 8, "Nine": 9, "Ten": 10}


def check_readme():
    n = len((ROOT / "README.md").read_text().splitlines())
    return [f"README.md has {n} lines, at most {README_LINES} are allowed"] if n > README_LINES else []


def check_nouns():
    text = (ROOT / "docs/concepts.md").read_text()
    number, table = re.search(r"^(\w+) nouns name .*?\n((?:\|.*\n)+)", text, re.M | re.S).groups()
    found = re.findall(r"^\| \*\*(\w+)\*\*", table, re.M)
    return [f"concepts.md: {number} nouns, but the table has {len(found)}"] if NUMBERS.get(number) != len(found) else []


def check_fuzzers():
    text = (ROOT / "docs/security.md").read_text()
    table = re.search(r"^\| fuzzer \|.*\n((?:\|.*\n)+)", text, re.M)[1]
    listed = set(re.findall(r"`(\w+)`", "".join(row.split("|")[1] for row in table.splitlines())))
    there = {p.stem.removeprefix("fuzz_") for p in (ROOT / "fuzz").glob("fuzz_*.c")}
    return [f"security.md: its table lacks {sorted(there - listed)}, and has {sorted(listed - there)} in excess"] if listed != there else []


def check_twice():
    wrong = []
    for path in pages():
        found = [p.rstrip(".:") for p in paragraphs(path.read_text()) if p.startswith("**") and len(p.split()) > 8] if path.suffix == ".md" else []
        wrong += [f"{path.relative_to(ROOT)}: twice: {a}" for a, b in zip(found, found[1:]) if b.startswith(a)]
    return wrong


def check_denied():
    """No page denies what an option does."""
    denied = {"tiers": r"\bno tiers\b|[Tt]here is one level", "redundancy": r"no erasure coding|no redundancy by|no partner copies|no Reed-Solomon"}
    wrong = []
    for option, words in denied.items():
        if f'"{option}"' not in (ROOT / "src/engine/options.c").read_text():
            wrong.append(f"there is no option {option} any more")
        wrong += [f"{path.relative_to(ROOT)}: '{found}', but there is the option {option}" for path in pages() for found in re.findall(words, path.read_text())]
    return wrong


if __name__ == "__main__":
    problems = check_readme() + check_nouns() + check_fuzzers() + check_twice() + check_denied()
    print("\n".join(problems) or "ok")
    sys.exit(bool(problems))
