#!/usr/bin/env python3
"""No file speaks of one machine, trails blanks, or leaves a note for later."""
import re
import tree

# the patterns are written so that they do not find themselves
RULES = [
    (re.compile(r"""(?:^|[\s"'`=:,;(<\[])/(?:work|root|farm)(?=/)"""), "absolute path of one machine"),
    (re.compile(r"(?<!\w)[.]library\b"), "path of one machine"),
    (re.compile(r"\b(?:TO[D]O|FIX[M]E|X[X]X)\b"), "note for later: do it, or write it into the docs"),
    (re.compile(r"[ \t\r]+$"), "trailing whitespace"),
]
DATA = re.compile(r"fuzz/corpus/|tests/\w+/(data|golden)/")  # bytes that are as they are


def text_of(path):
    """The file's text; None when it is no text."""
    data = path.read_bytes()
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


problems, count = [], 0
for path in tree.all_files():
    name = tree.name(path)
    text = None if DATA.match(name) else text_of(path)
    if text is None:
        continue
    count += 1
    for n, line in enumerate(text.split("\n"), 1):
        problems += [f"{name}:{n}: {why}: {line.strip()[:80]}" for rule, why in RULES if rule.search(line)]
    if text and not text.endswith("\n"):
        problems.append(f"{name}: no newline at the end")
tree.finish(problems, f"{count} text files")
