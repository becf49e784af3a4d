#!/usr/bin/env python3
"""v->tip says which epoch the next checkpoint continues. Only epoch/tip.c assigns it: its whole life can be read in one place."""
import re
import tree

HOME = "src/engine/epoch/tip.c"
MEMBER = r"\btip(?:\.\w+(?:->\w+|\.\w+|\[[^\]\n]*\])*)?"
ASSIGNS = re.compile(rf"(?:\+\+|--)\s*[\w>.-]*{MEMBER}|(?<=[>.]){MEMBER}\s*(?:(?:<<|>>|[-+*/%|&^])?=(?!=)|\+\+|--)|&[\w>-]*>tip\b(?:\.\w+)?(?![\w.]|->)")
WRITERS = re.compile(r"\b(vv_\w+)\([^;{]*(?<!const )struct vv_run_table \*")  # functions that may change a table
PASSES = re.compile(r"\b(vv_\w+)\((?:[^;{]*,)?\s*[\w>-]*>tip\.table\s*[,)]")
ALIAS = re.compile(r"(?<!const )struct vv_run_table \*\w+ = [\w>-]*>tip\.table\b(?!->)")
MAY = {  # elsewhere, by file and what stands there
    ("src/engine/session/session.c", "tip.table ="): "the session is allocated",
    ("src/engine/session/session.c", "vv_run_table_fini"): "the session is freed",
    ("src/engine/epoch/load_parent.c", "vv_run_table_load"): "reads the table of the tip, and tells tip.c by vv_tip_loaded",
    ("src/engine/epoch/load_parent.c", "vv_run_table_merge"): "the runs of the same table, in another form",
    ("src/engine/grains/rehash.c", "vv_run_table_merge"): "the runs of the same table, in another form",
}


def findings(text, writers):
    """(position, words) of each place that changes the tip, or lets a function change its table."""
    for m in [*ASSIGNS.finditer(text), *ALIAS.finditer(text)]:
        yield m.start(), m.group().strip()
    for m in PASSES.finditer(text):
        if m.group(1) in writers:
            yield m.start(), m.group(1)


files = tree.c_files("src")
text = {path: tree.blank_comments(path.read_text()) for path in files}
writers = {w for path in files if path.suffix == ".h" for w in WRITERS.findall(text[path])}
problems, met = [], set()
for path in files:
    if tree.name(path) == HOME:
        continue
    for at, words in findings(text[path], writers):
        if (tree.name(path), words) in MAY:
            met.add((tree.name(path), words))
        else:
            problems.append(f"{tree.name(path)}:{text[path].count(chr(10), 0, at) + 1}: {words}: {HOME} alone assigns it")
problems += [f"{path}: '{words}' is an exception of this test ({MAY[path, words]}), and is not there" for path, words in sorted(set(MAY) - met)]
tree.finish(problems, f"{len(files)} files, {len(met)} exceptions")
