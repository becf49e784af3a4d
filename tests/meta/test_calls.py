#!/usr/bin/env python3
"""Uses of functions point to the left (houses.py), and a function that other files use is declared in the header of its own file."""
import collections
import re
import houses
import tree

SHARED = {  # a file whose functions stand in another header: the header of the component that it is a part of
    r"src/space/(host|none)\.c": "space/space.h: spaces are asked for by their own names",
    r"src/gpu/cuda_space\.c": "space/space.h: spaces are asked for by their own names",
    r"src/gpu/\w+\.cu": "gpu/kernels.h: one header for C, with a section for each file",
    r"src/codec/word_history_back\.c": "codec/word_history.h: one coder, cut into its two directions",
    r"src/codec/text_columns_back\.c": "codec/text_columns.h: one coder, cut into its two directions",
}
MAY_CALL = {  # a file that calls public functions of a layer to its right
    "src/comm/mpi.c": "libvarve_mpi is a library of its own, which calls libvarve by varve.h alone, as a program does",
    "src/comm/mpi_world.c": "libvarve_mpi, too",
}
PUBLIC = "include/varve"


def bodies(path, text):
    """The code of a file: of a header only the bodies of its inline functions, since the rest declares and uses nothing."""
    return text if path.suffix not in (".h", ".cuh") else "\n".join(re.findall(r"^\{(.*?)^\}", text, re.S | re.M))


files = tree.c_files("src")
text = {f: tree.blank_comments(f.read_text()) for f in files}
home = {f.name: f.path for p in files if p.suffix in (".c", ".cu") for f in tree.functions(p) if not f.static and f.name.startswith(("vv_", "varve_"))}
public = {word for p in tree.c_files(PUBLIC) for word in re.findall(r"\bvarve_\w+", tree.blank_comments(p.read_text()))}
problems, met, users = [], set(), collections.defaultdict(set)
for path in files:
    for word in sorted(set(re.findall(r"(?<!struct )\b(?:vv|varve)_\w+", bodies(path, text[path])))):
        if home.get(word, path) == path:
            continue
        users[home[word]].add(word)
        wrong = houses.objection(houses.place(path), houses.place(home[word]))
        if wrong and word in public and tree.name(path) in MAY_CALL:
            met.add(tree.name(path))
        elif wrong:
            problems.append(f"{tree.name(path)}: {word} of {tree.name(home[word])}: {wrong}")
for path, words in sorted(users.items()):
    own = path.with_suffix(".h")
    declared = set(re.findall(r"\b(?:vv|varve)_\w+", text.get(own, "")))
    missing = sorted(words - declared - public)
    if missing and not any(re.fullmatch(p, tree.name(path)) for p in SHARED):
        problems.append(f"{tree.name(path)}: {', '.join(missing[:4])} should be declared in {tree.name(own)}")
problems += [f"{name} is an exception of this test ({MAY_CALL[name]}), and calls nothing to its right" for name in sorted(set(MAY_CALL) - met)]
tree.finish(problems, f"{len(home)} functions, {sum(len(w) for w in users.values())} of them used in other files")
