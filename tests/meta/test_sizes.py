#!/usr/bin/env python3
"""Files and functions stay small: the tail of the function lengths is what tells readable C code apart."""
import tree

FILE_MAX, FILE_WARN = 600, 500
P90_MAX = 40
LONG, LONG_SHARE = 60, 0.02     # at most this share of the functions may be longer than that
FUNCTION_MAX = 120


def where(f):
    return f"{tree.name(f.path)}:{f.line}: {f.name} has {f.length} lines"


problems = []
files = tree.c_files("src")
for path in files:
    lines = path.read_text().count("\n")
    if lines > FILE_MAX:
        problems.append(f"{tree.name(path)}: {lines} lines, the limit is {FILE_MAX}")
    elif lines > FILE_WARN:
        print(f"note: {tree.name(path)}: {lines} lines, soon too long")

functions = sorted((f for p in files for f in tree.functions(p)), key=lambda f: f.length)
p90 = functions[int(0.9 * (len(functions) - 1))].length if functions else 0
long = [f for f in functions if f.length > LONG]
if p90 > P90_MAX:
    problems.append(f"p90 of the function lengths is {p90}, the limit is {P90_MAX}; the longest:")
    problems += [where(f) for f in functions[-10:]]
if len(long) > LONG_SHARE * len(functions):
    problems.append(f"{len(long)} of {len(functions)} functions are above {LONG} lines, the limit is {LONG_SHARE:.0%}:")
    problems += [where(f) for f in long]
problems += [f"{where(f)}, the limit is {FUNCTION_MAX}" for f in functions if f.length > FUNCTION_MAX]
tree.finish(problems, f"{len(files)} files, {len(functions)} functions, p90 {p90} lines, {len(long)} above {LONG}")
