#!/usr/bin/env python3
"""libvarve.so shows varve_* and nothing else, and everything that the public headers declare."""
import re
import subprocess
import tree

LINKER = {"_init", "_fini", "_edata", "_end", "__bss_start"}  # some linkers export their own marks

nm = subprocess.run(["nm", "-D", "--defined-only", tree.BUILD / "libvarve.so"], capture_output=True, text=True, check=True)
exported = {line.split()[-1].split("@")[0] for line in nm.stdout.splitlines()} - LINKER
declared = set()
for header in tree.c_files("include"):
    text = tree.blank_comments(header.read_text())
    if "<mpi.h>" not in text:  # those live in a library of their own
        declared |= set(re.findall(r"^VARVE_API\b[^;(]*?\b(varve_\w+)\s*\(", text, re.M))

problems = [f"exported, but not varve_*: {s}" for s in sorted(exported) if not s.startswith("varve_")]
problems += [f"declared in include/, but not exported: {s}" for s in sorted(declared - exported)]
if not exported:
    problems.append("nothing is exported")
tree.finish(problems, f"{len(exported)} symbols")
