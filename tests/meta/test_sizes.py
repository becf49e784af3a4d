#!/usr/bin/env python3
"""Functions stay short: the tail of the function lengths tells readable C code apart. A file is cut by sense, not by length."""
import tree

P90_MAX = 40
LONG, LONG_SHARE = 60, 0.02     # at most this share of the functions may be longer than that
FUNCTION_MAX = 120


def where(f):
    return f"{tree.name(f.path)}:{f.line}: {f.name} has {f.length} lines"


problems = []
files = tree.c_files("src")
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
