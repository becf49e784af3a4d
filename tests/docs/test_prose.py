#!/usr/bin/env python3
"""The prose of README, docs and man pages is plain: few long sentences, few what-clauses, and the words of the field.
With names of pages, or --all: every sentence that is not, by page. Rules: CONTRIBUTING.md."""
import pathlib
import re
import sys

from page import ROOT, plain

LONG = 30
# little more than the pages have (0.5 %, 0.1 %, none)
LONG_SHARE, WHAT_SHARE, PRIVATE = 0.01, 0.005, 0
# private words, and the words that the field has for them
WORDS = {
    r"la(?:id|ys?|ying) (?:it |them )?down": "written, write",
    r"under way": "in progress",
    r"anew": "again",
    r"somebody|nobody": "the caller, a thread, a process, no one named",
    r"behind (?:the program's back|its back)": "in the background",
    r"does not count|do not count|did not count": "is discarded, is not committed",
    r"a journey": "a slow read, a round trip",
    r"tells from behind": "reports in the background",
    r"without a word": "silently, by default",
}


def pages():
    manual = [p for p in sorted((ROOT / "docs/man").glob("*.[135]")) if not p.read_text().startswith(".so ")]
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *manual]


def in_fonts(found):
    """Words that alternate between two fonts, as .BR and .IB set them: those in bold are code."""
    words = [quoted or word for quoted, word in re.findall(r'"([^"]*)"|(\S+)', found[2])]
    return "".join("`CODE`" if found[1][i % len(found[1])] == "B" and word.strip() else word for i, word in enumerate(words))


def manual_paragraphs(text):
    """The same of a manual page: no comments, headings, tags of lists or unfilled blocks; bold words are code."""
    text = re.sub(r"^\.nf$.*?^\.fi$", ".PP", text, flags=re.M | re.S)
    text = re.sub(r"^(?:\.\\\".*|\.(?:TH|SH|SS|IP|PP|RS|RE|br)\b.*|\.T[PQ].*\n.*)$", "\n", text, flags=re.M)
    text = re.sub(r"\\fB.*?\\f[PR]", "`CODE`", text)
    text = re.sub(r"^\.([BI]) (.*)$", lambda m: "`CODE`" if m[1] == "B" else m[2].replace('"', ""), text, flags=re.M)
    text = re.sub(r"^\.([BIR]{2}) (.*)$", in_fonts, text, flags=re.M)
    return [" ".join(plain(p).split()) for p in re.split(r"\n\s*\n", text) if p.strip()]


def paragraphs(text):
    """Prose alone: no code, comments, headings or front matter; list items, and lines of cells of tables, by themselves."""
    text = re.sub(r"^---\n.*?^---\n", "", text, count=1, flags=re.M | re.S) if text.startswith("---\n") else text
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r"^( *)```.*?^\1```$", "\n", text, flags=re.M | re.S)
    text = re.sub(r"^#.*$", "\n", text, flags=re.M)
    text = re.sub(r"^[ \t]*(?:[-*+]|\d+\.)[ \t]+", "\n\n", text, flags=re.M)
    text = re.sub(r"^[ \t]*\|(.*)\|[ \t]*$", lambda m: "\n\n" + re.sub(r"\||<br>", "\n\n", m[1]) + "\n\n", text, flags=re.M)
    return [" ".join(p.split()) for p in re.split(r"\n\s*\n", text) if p.strip()]


def sentences(path):
    for p in (paragraphs if path.suffix == ".md" else manual_paragraphs)(path.read_text()):
        p = re.sub(r"`[^`]*`", "CODE", p)
        p = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", p)
        p = p.replace("**", "").replace("e.g.", "for example").replace("i.e.", "that is")
        for s in re.split(r"(?<=[.!?])[)\"']?\s+(?=[A-Z(\"'])", p):
            if len(s.split()) > 2:
                yield s


def is_long(s):
    return len(re.findall(r"[A-Za-z0-9%'-]*[A-Za-z][A-Za-z0-9%'-]*", s)) > LONG


def has_what(s):
    return bool(re.search(r"\bwhat\b", s, re.I)) and not s.rstrip(")").endswith("?")


def words_of(s):
    return [f"'{m[0]}' ({better})" for word, better in WORDS.items() for m in [re.search(rf"\b(?:{word})\b", s, re.I)] if m]


def show(path):
    for s in sentences(path):
        faults = (["long"] if is_long(s) else []) + (["what"] if has_what(s) else []) + words_of(s)
        if faults:
            print(f"{path.relative_to(ROOT)}: {', '.join(faults)}: {s}")


def main():
    if len(sys.argv) > 1:
        for path in pages() if sys.argv[1:] == ["--all"] else map(pathlib.Path.resolve, map(pathlib.Path, sys.argv[1:])):
            show(path)
        return 0
    total = long = what = 0
    words = []
    for path in pages():
        found = list(sentences(path))
        here = sum(map(is_long, found)), sum(map(has_what, found))
        total, long, what = total + len(found), long + here[0], what + here[1]
        words += [f"{path.relative_to(ROOT)}: {w}: {s}" for s in found for w in words_of(s)]
        print(f"{path.relative_to(ROOT)}: {len(found)} sentences, {here[0]} long, {here[1]} with a what-clause")
    print(f"{total} sentences: {long / total:.1%} above {LONG} words, {what / total:.1%} with a what-clause; {len(words)} private words")
    print("\n".join(words))
    return long > LONG_SHARE * total or what > WHAT_SHARE * total or len(words) > PRIVATE


if __name__ == "__main__":
    sys.exit(main())
