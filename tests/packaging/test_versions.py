#!/usr/bin/env python3
"""All places that state the version of varve state that of CMakeLists.txt."""
import os
import pathlib
import re
import sys

SOURCE = pathlib.Path(os.environ["VARVE_SOURCE"])


def version_in(name, pattern):
    found = re.search(pattern, (SOURCE / name).read_text(), re.M)
    return found[1] if found else None


wanted = version_in("CMakeLists.txt", r"^project\(varve VERSION ([\d.]+)")
places = {name: version_in(name, pattern) for name, pattern in (
    ("debian/changelog", r"\Avarve \(([\d.]+)[^)]*\)"),
    ("packaging/rpm/varve.spec", r"^Version: +([\d.]+)$"),
    ("pyproject.toml", r'^version = "([\d.]+)"'),
    ("python/varve/_native.py", r'^__version__ = "([\d.]+)"'),
    ("CHANGELOG.md", r"^## ([\d.]+)"))}
pages = {p.relative_to(SOURCE).as_posix() for p in (SOURCE / "docs/man").iterdir() if p.is_file() and not p.read_text().startswith(".so ")}
places.update({name: version_in(name, r'^\.TH .*"varve ([\d.]+)"') for name in pages})
wrong = {name: found for name, found in places.items() if found != wanted}
print(f"{wanted} in {len(places)} places")
if not wanted or wrong:
    sys.exit(f"wanted {wanted}, found {wrong}")
