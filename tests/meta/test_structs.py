#!/usr/bin/env python3
"""A header stays small enough to be read at once: at most 150 lines, and no struct of more than 25 fields."""
import re
import tree

LINES, FIELDS = 150, 25
STRUCT = re.compile(r"^(?:typedef )?struct (\w+)[^;{()]*\{(.*?)^\}", re.S | re.M)


def fields(body):
    """Fields of a struct; those of a nested struct count, too."""
    return sum(1 if "(" in part else len(part.split(",")) for part in re.sub(r"\b(?:struct|union|enum)\b[^;{]*\{|\}", ";", body).split(";") if re.search(r"\w\s+\**\w|\w\*", part))


problems = []
headers = [f for f in tree.c_files("src") if f.suffix in (".h", ".cuh")]
for path in headers:
    lines = path.read_text().count("\n")
    if lines > LINES:
        problems.append(f"{tree.name(path)}: {lines} lines, the limit is {LINES}")
    for tag, body in STRUCT.findall(tree.blank_comments(path.read_text())):
        if fields(body) > FIELDS:
            problems.append(f"{tree.name(path)}: struct {tag} has {fields(body)} fields, the limit is {FIELDS}")
tree.finish(problems, f"{len(headers)} headers")
