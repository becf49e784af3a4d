#!/usr/bin/env python3
"""Uses of functions point to the left (houses.py), and a function that other files use is declared in the header of its own file."""
import collections
import re
import houses
import tree

SHARED = {  # a file whose functions stand in another header: the header of the component that it is a part of
    r"src/space/(host|none)\.c": "space/space.h: spaces are asked for by their own names",
    r"src/gpu/cuda_space\.c": "space/space.h: spaces are asked for by their own names",
    r"src/codec/word_history_back\.c": "codec/word_history.h: one coder, cut into its two directions",
    r"src/codec/text_columns_back\.c": "codec/text_columns.h: one coder, cut into its two directions",
}


def bodies(path, text):
    """The code of a file: of a header only the bodies of its inline functions, since the rest declares and uses nothing."""
    return text if path.suffix != ".h" else "\n".join(re.findall(r"^\{(.*?)^\}", text, re.S | re.M))


files = [f for f in tree.c_files("src") if f.suffix in (".c", ".h")]
text = {f: tree.blank_comments(f.read_text()) for f in files}
home = {f.name: f.path for p in files if p.suffix == ".c" for f in tree.functions(p) if not f.static and f.name.startswith("vv_")}
problems, users = [], collections.defaultdict(set)
for path in files:
    for word in sorted(set(re.findall(r"(?<!struct )\bvv_\w+", bodies(path, text[path])))):
        if home.get(word, path) == path:
            continue
        users[home[word]].add(word)
        wrong = houses.objection(houses.place(path), houses.place(home[word]))
        if wrong:
            problems.append(f"{tree.name(path)}: {word} of {tree.name(home[word])}: {wrong}")
for path, words in sorted(users.items()):
    own = path.with_suffix(".h")
    declared = set(re.findall(r"\bvv_\w+", text.get(own, "")))
    missing = sorted(words - declared)
    if missing and not any(re.fullmatch(p, tree.name(path)) for p in SHARED):
        problems.append(f"{tree.name(path)}: {', '.join(missing[:4])} should be declared in {tree.name(own)}")
tree.finish(problems, f"{len(home)} functions, {sum(len(w) for w in users.values())} of them used in other files")
