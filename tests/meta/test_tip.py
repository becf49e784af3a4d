#!/usr/bin/env python3
"""v->tip says which epoch the next checkpoint continues. Only epoch/tip.c assigns it: its whole life can be read in one place."""
import re
import tree

HOME = "src/engine/epoch/tip.c"
ASSIGNS = re.compile(r"(?:\+\+|--)\s*[\w>.-]*\btip\.\w+|\btip\.\w+(?:\s*(?:[-+|&]?=(?!=)|\+\+|--))|&[\w>-]*\btip\.\w+(?!\w|->)")

problems = []
files = [f for f in tree.c_files("src") if f.suffix == ".c"]
for path in files:
    text = tree.blank_comments(path.read_text())
    if tree.name(path) == HOME:
        continue
    for m in ASSIGNS.finditer(text):
        if "tip.table" in m.group() and "w->table" in text[m.end():m.end() + 12]:
            continue  # where the session is allocated
        problems.append(f"{tree.name(path)}:{text.count(chr(10), 0, m.start()) + 1}: {m.group().strip()}: {HOME} alone assigns it")
tree.finish(problems, f"{len(files)} files")
