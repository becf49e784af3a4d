"""A page of the documentation as the tests see it: its fenced blocks and the comments that go with them (README.md has the words)."""
import os
import pathlib
import re
from typing import NamedTuple

# a test that is called by hand is one of this tree
ROOT = pathlib.Path(os.environ.setdefault("VARVE_SOURCE", str(pathlib.Path(__file__).resolve().parents[2])))
BUILD = pathlib.Path(os.environ.setdefault("VARVE_BUILD", str(ROOT / "build")))
NOTES = ("file", "run", "needs", "not run", "fragment", "before")
FENCE = re.compile(r"^( *)(```+|~~~+) *([^\s`]*)")
MADE = "<!-- bench/page:"  # where a part begins or ends that bench/page writes
NOTE = re.compile(rf"^ *<!-- *({'|'.join(NOTES)})(?::|\s*-->)\s*")


class Block(NamedTuple):
    line: int      # of its first line of text, from 1
    language: str  # "run" for a comment that is run
    text: str
    notes: dict    # of the comments in front of it


class Page:
    def __init__(self, path):
        self.path = pathlib.Path(path).resolve()
        self.name = self.path.relative_to(ROOT).as_posix() if ROOT in self.path.parents else self.path.name
        self.lines = self.path.read_text().split("\n")
        self.blocks, self.problems, self.needs = [], [], []
        self.prose = []  # (line, text) of what is neither code nor a comment
        self.read()

    def wrong(self, line, what):
        self.problems.append(f"{self.name}:{line}: {what}")

    def read(self):
        at, notes, in_list, after_blank = 0, {}, False, True
        while at < len(self.lines):
            line = self.lines[at]
            if fence := FENCE.match(line):
                at, notes = self.fenced(at, fence, notes), {}
            elif re.match(r" *<!--", line):
                at = self.comment(at, notes)
                continue
            elif line.strip():
                if re.match(r"(    |\t)", line) and after_blank and not in_list:
                    self.wrong(at + 1, "an indented block of code: fence it, and say its language")
                self.prose.append((at + 1, line))
                notes = {}
                in_list = bool(re.match(r" *([-*+]|\d+[.)]) ", line)) or (in_list and line.startswith(" "))
            after_blank = not line.strip()
            at += 1

    def fenced(self, at, fence, notes):
        indent, mark, language = fence.groups()
        end = at + 1
        while end < len(self.lines) and self.lines[end].strip() != mark:
            end += 1
        if end == len(self.lines):
            self.wrong(at + 1, "a fence that is not closed")
        if not language:
            self.wrong(at + 1, "a fence without a language (```text for drawings)")
        text = "".join(re.sub(f"^ {{0,{len(indent)}}}", "", line) + "\n" for line in self.lines[at + 1:end])
        self.blocks.append(Block(at + 2, language, text, notes))
        return end

    def comment(self, at, notes):
        """A comment that begins in line at; the line after it."""
        end = at
        while end < len(self.lines) and "-->" not in self.lines[end]:
            end += 1
        text = "\n".join(self.lines[at:end + 1])
        found = NOTE.match(text)
        if text.startswith(MADE):
            pass
        elif not found:
            self.wrong(at + 1, f"a comment that says none of: {', '.join(NOTES)}")
        elif found[1] == "run":
            body = text[found.end():].rsplit("-->", 1)[0]
            self.blocks.append(Block(at + 1, "run", body.strip() + "\n", dict(notes)))
        else:
            body = text[found.end():].rsplit("-->", 1)[0].strip() if not found[0].endswith("-->") else ""
            notes[found[1]] = body
            if found[1] == "needs" and not self.blocks and at < 3:
                self.needs = body.split()
        return end + 1


def pages(names=()):
    """The pages of these names; all of them if there are none."""
    found = [ROOT / name for name in names] or [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [Page(path) for path in found if path.exists() or names]
