#!/usr/bin/env python3
"""Includes point to the left (houses.py), and each optional dependency has one home."""
import re
import houses
import tree

PUBLIC = houses.FRONT_ENDS | {"engine", "examples", "comm"}  # who may include <varve/...>
HOMES = [  # a header of an optional dependency, and the only files that may include it
    (r"zstd(_\w+)?\.h|zdict\.h", r"src/codec/zstd\.c|bench/delta\.c"),
    (r"lz4\w*\.h", r"src/codec/lz4\.c"),
    (r"zlib\.h|zconf\.h", r"src/base/deflate\.c"),
    (r"szlib\.h|libaec\.h", r"src/base/szip\.c"),
    (r"isa-l.*\.h", r"src/core/ranks/erasure_code\.c"),
    (r"curl/.*", r"src/store/s3/.*"),
    (r"fuse.*\.h", r"src/cli/mount/mount_fuse\.c"),
    (r"mpi\.h", r"src/comm/mpi\.[ch]|(examples|bench)/.*"),
    (r"(hdf5|H5\w*|netcdf\w*)\.h", r"src/reader/.*"),
    (r"jemalloc/.*", r"src/preload/jemalloc\.h"),
    (r"(cuda|cub/|thrust/|cooperative_groups).*", r"src/gpu/.*|bench/.*\.cu"),
    (r"xxhash\.h|xxh3\.h", r"src/core/format/digest\.[ch]"),
]
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.M)


def judge(path, header):
    """What is wrong with this include, or None."""
    for pattern, home in HOMES:
        if re.fullmatch(pattern, header) and not re.fullmatch(home, tree.name(path)):
            return f"<{header}> belongs into {home} alone"
    top = header.split("/")[0]
    if top == "..":
        return f'"{header}": name the layer instead of climbing'
    if "/" not in header:
        return None
    here = houses.place(path)
    if top == "varve" and here[0] not in PUBLIC:
        return f"{here[0]}/ may not include the public <{header}>"
    return houses.objection(here, houses.place(tree.ROOT / "src" / header)) if top in houses.MAY else None


def check(path):
    layer, _ = houses.place(path)
    if layer not in houses.MAY:
        return [f"{tree.name(path)}: layer '{layer}' is unknown here"]
    text = path.read_text()
    found = []
    for m in INCLUDE.finditer(text):
        wrong = judge(path, m.group(2))
        if wrong:
            found.append(f"{tree.name(path)}:{text.count(chr(10), 0, m.start(1)) + 1}: {wrong}")
    return found


files = tree.c_files("src", "examples", "bench")
tree.finish([p for f in files for p in check(f)], f"{len(files)} files")
