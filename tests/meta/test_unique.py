#!/usr/bin/env python3
"""A file name (stem) and a struct tag exist once in src/: who searches for one finds one thing."""
import collections
import re
import tree

TAG = re.compile(r"(?:^|[;{}]|\bstatic|\btypedef|\bconst)\s*struct (\w+)(?:\s+__attribute__\(\([^;{]*?\)\))?\s*\{", re.M)

stems, tags = collections.defaultdict(set), collections.defaultdict(set)
for path in tree.c_files("src"):
    stems[path.stem].add(tree.name(path.parent))
    for tag in TAG.findall(tree.blank_comments(path.read_text())):
        tags[tag].add(tree.name(path))
problems = [f"the file name '{stem}' stands in {' and '.join(sorted(folders))}" for stem, folders in sorted(stems.items()) if len(folders) > 1]
problems += [f"struct {tag} is defined in {', '.join(sorted(paths))}" for tag, paths in sorted(tags.items()) if len(paths) > 1]
tree.finish(problems, f"{len(stems)} file names, {len(tags)} struct tags")
