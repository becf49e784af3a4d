"""What the meta tests share: where the tree is, which files it has, how C text is read, how findings are reported."""
import os
import pathlib
import re
import subprocess
import sys
from typing import NamedTuple

ROOT = pathlib.Path(os.environ.get("VARVE_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("VARVE_BUILD", ROOT / "build"))
C_SUFFIXES = (".c", ".h", ".cu", ".cuh")


def name(path):
    return path.relative_to(ROOT).as_posix()


def c_files(*folders):
    """The C and CUDA files under the given folders of the tree, sorted."""
    return sorted(p for f in folders for p in (ROOT / f).rglob("*") if p.suffix in C_SUFFIXES)


def all_files():
    """Every file that git tracks or would track; without git, every file outside build trees."""
    try:
        git = subprocess.run(["git", "-C", ROOT, "ls-files", "-coz", "--exclude-standard"], capture_output=True)
        listed = git.stdout if git.returncode == 0 else None
    except FileNotFoundError:
        listed = None
    if listed is not None:
        paths = (ROOT / os.fsdecode(p) for p in listed.split(b"\0") if p)
    else:
        paths = (p for p in ROOT.rglob("*") if not p.relative_to(ROOT).parts[0].startswith((".git", "build")))
    return sorted(p for p in set(paths) if p.is_file() and not p.is_symlink())


TOKEN = re.compile(r'//(?:\\\n|[^\n])*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def blank_comments(text):
    """Comments become blanks and strings become "", line by line as they were."""
    def blank(m):
        if m.group().startswith("/"):
            return re.sub(r"[^\n]", " ", m.group())
        return m.group()[0] * 2 + "\n" * m.group().count("\n")
    return TOKEN.sub(blank, text)


class Function(NamedTuple):
    path: pathlib.Path
    line: int       # of the first line of its signature
    length: int     # lines, signature and closing brace included
    name: str
    static: bool


SIGNATURE = re.compile(r"\b(?!(?:__attribute__|_Alignas|VARVE_API|extern)\b)([A-Za-z_]\w*)\s*\(")


def functions(path):
    """The functions of a C file. A body opens with "{" in column 0, or at the end of a line that starts in column 0
    with a signature, and closes with the next "}" in column 0: the layout .clang-format gives."""
    lines = blank_comments(path.read_text()).split("\n")
    found, start, opened = [], None, None
    for i, line in enumerate(lines):
        if opened is None and re.match(r"\{|\w[^=;]*\)\s*\{", line):
            start, opened = signature_start(lines, i), i
        if opened is not None and (line.startswith("}") or (opened == i and line.rstrip().endswith("}"))):
            head = " ".join(lines[start:opened + 1]).split("{")[0]
            m = SIGNATURE.search(head)
            if m and "=" not in head[:m.start()]:
                found.append(Function(path, start + 1, i - start + 1, m.group(1), bool(re.search(r"\bstatic\b", head))))
            opened = None
    return found


def signature_start(lines, i):
    """The first line of the declaration whose body opens in line i."""
    while i > 0 and lines[i - 1].strip() and not re.search(r"^\s*#|^[{}]|[;}]\s*$", lines[i - 1]):
        i -= 1
    return i


def finish(problems, summary):
    for p in problems:
        print(p)
    print(f"{len(problems)} problems" if problems else f"ok: {summary}")
    sys.exit(1 if problems else 0)
