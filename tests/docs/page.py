"""A page of the documentation, or of the manual, as the tests see it: its blocks of code and the comments that go with them (README.md has the words)."""
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
REMARK = '.\\"'  # a comment of roff
LANGUAGES = {".1": "sh", ".3": "c", ".5": "conf"}  # of what a section of the manual shows
SIGNS = {r"\-": "-", r"\e": "\\", r"\(aq": "'", r"\&": ""}


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
        else:
            self.take(at, found[1], "" if found[0].endswith("-->") else text[found.end():].rsplit("-->", 1)[0].strip(), notes)
        return end + 1

    def take(self, at, word, text, notes):
        """A note that begins in line at."""
        if word == "run":
            self.blocks.append(Block(at + 1, "run", text + "\n", dict(notes)))
            return
        notes[word] = text
        if word == "needs" and not self.blocks and at < 3:
            self.needs = text.split()


def plain(text):
    """Text of a manual page without roff's marks."""
    return re.sub(r"\\(?:f[BIRP]|\(aq|[-e&])", lambda found: SIGNS.get(found[0], ""), text)


class Manual(Page):
    """A page of the manual: blocks stand between .nf and .fi, notes in comments of roff."""

    def read(self):
        at, notes = 0, {}
        while at < len(self.lines):
            line = self.lines[at]
            if line.startswith(REMARK):
                at = self.comment(at, notes)
                continue
            if line == ".nf":
                at, notes = self.unfilled(at, notes), {}
            elif line != ".PP":
                notes = {}
            at += 1

    def unfilled(self, at, notes):
        end = at + 1
        while end < len(self.lines) and self.lines[end] != ".fi":
            end += 1
        if end == len(self.lines):
            self.wrong(at + 1, "a .nf without its .fi")
        lines = [self.code(i) for i in range(at + 1, end) if self.lines[i] not in (".RS", ".RE")]
        first = next((i for i in range(at + 1, end) if self.lines[i] != ".RS"), end)
        self.blocks.append(Block(first + 1, LANGUAGES[self.path.suffix], "".join(line + "\n" for line in lines), notes))
        return end

    def code(self, at):
        request, _, rest = self.lines[at].partition(" ")
        if request == ".PP":
            return ""
        if request == ".B":
            return plain(rest)
        if request == ".BI":
            return plain("".join(quoted or word for quoted, word in re.findall(r'"([^"]*)"|(\S+)', rest)))
        if request.startswith("."):
            self.wrong(at + 1, f"'{request}' in code")
            return ""
        return plain(self.lines[at])

    def comment(self, at, notes):
        end = at + 1
        while end < len(self.lines) and self.lines[end].startswith(f"{REMARK} ") and not self.note(end):
            end += 1
        found = self.note(at)
        if not found:
            self.wrong(at + 1, f"a comment that says none of: {', '.join(NOTES)}")
            return end
        text = "\n".join([found[2], *(line[len(REMARK) + 1:] for line in self.lines[at + 1:end])]).strip()
        self.take(at, found[1], text, notes)
        return end

    def note(self, at):
        return re.match(rf"{re.escape(REMARK)} ({'|'.join(NOTES)}):\s*(.*)", self.lines[at])


def pages(names=()):
    """The pages of these names; all of them if there are none."""
    found = [ROOT / name for name in names] or [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")),
                                                *sorted((ROOT / "docs/man").rglob("*.[1-8]"))]
    return [(Page if path.suffix == ".md" else Manual)(path) for path in found if path.exists() or names]
