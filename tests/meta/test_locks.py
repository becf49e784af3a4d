#!/usr/bin/env python3
"""A function whose comment says that a lock is held asserts it by VV_HELD (base/held.h), and one with VV_HELD has such a comment."""
import re
import tree

SAYS = re.compile(r"\b(?:under (?:(?:the|its) (?:[\w']+ )?lock|\w+_lock)|with (?:the|its) (?:[\w']+ )?lock held|caller holds (?:the|its) (?:[\w']+ )?lock)\b", re.I)
COMMENTED = re.compile(r"^/\*(?! ----)((?:(?!\*/).)*)\*/\n(?=[A-Za-z_])", re.S | re.M)
NO_MUTEX = {  # functions whose lock is not a mutex that they know
    "vv_gc_run": "the lock of a lineage, which is a file or an object of the store",
    "vv_tiers_adopt": "the lock of a lineage",
    "src/engine/upkeep/copy_from_nodes.c: commit_whole": "the lock of a lineage, which is its argument",
    "src/store/dir/dir.c: sweep": "the lock of a lineage",
    "src/preload/library.c: look": "the lock of dl_iterate_phdr, which belongs to the dynamic linker",
}


def commented(text):
    """(line, function, comment) of each function, defined or declared, that a comment stands directly above."""
    for m in COMMENTED.finditer(text):
        head = re.split(r"[;{]", text[m.end():m.end() + 1000], maxsplit=1)[0]
        name = tree.SIGNATURE.search(head)
        if name and "=" not in head[:name.start()]:
            yield text.count("\n", 0, m.start()) + 1, name.group(1), re.sub(r"\s*\n \*\s*", " ", m.group(1))


def asserts(f):
    return "VV_HELD(" in text[f.path] and any("VV_HELD(" in line for line in text[f.path].split("\n")[f.line - 1:f.line - 1 + f.length])


files = tree.c_files("src")
text = {path: tree.blank_comments(path.read_text()) for path in files}
where = {}  # each function, by its file and name, or by its name alone
for path in files:
    for f in tree.functions(path):
        where[f"{tree.name(path)}: {f.name}"] = where[f.name] = f
problems, met, said = [], set(), set()
for path in files:
    for line, name, comment in commented(path.read_text()):
        if not SAYS.search(comment):
            continue
        key = f"{tree.name(path)}: {name}" if f"{tree.name(path)}: {name}" in where else name
        said.add(where.get(key))
        if key in NO_MUTEX:
            met.add(key)
        elif key not in where or not asserts(where[key]):
            problems.append(f"{tree.name(path)}:{line}: {name}: its comment says that a lock is held, and it has no VV_HELD")
problems += [f"{key} is an exception of this test ({NO_MUTEX[key]}), and no comment above it says that a lock is held" for key in sorted(set(NO_MUTEX) - met)]
problems += [f"{tree.name(f.path)}:{f.line}: {f.name} has a VV_HELD, and no comment above it says that a lock is held" for f in sorted(set(where.values()) - said) if asserts(f)]
tree.finish(problems, f"{len(said)} functions with a lock held, {len(met)} of them have no mutex")
