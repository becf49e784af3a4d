#!/usr/bin/env python3
"""A function's name tells its file: src/<layer>/<noun>.c defines vv_<noun>_* (or varve_*) and statics."""
import re
import tree

EXCEPTIONS = [  # path, function, reason
    (r"src/cli/main/\w+\.c", r"main", "the program's entry"),
    (r"src/(space|gpu)/\w+\.c", r"vv_space_(host|cuda)", "spaces are asked for by their own names"),
    (r"src/preload/[\w/]+\.c", r".*", "it defines the C library's own names"),
]


def allowed(f):
    if f.static or re.match(rf"varve_|vv_{re.escape(f.path.stem)}(_|$)", f.name):
        return True
    return any(re.fullmatch(path, tree.name(f.path)) and re.fullmatch(name, f.name) for path, name, _ in EXCEPTIONS)


functions = [f for p in tree.c_files("src") if p.suffix == ".c" for f in tree.functions(p)]
tree.finish([f"{tree.name(f.path)}:{f.line}: {f.name} should be vv_{f.path.stem}_* or static"
             for f in functions if not allowed(f)], f"{len(functions)} functions")
