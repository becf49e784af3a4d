#!/usr/bin/env python3
"""Comments of src/ and include/ are plain: sentences of at most 25 words, nouns instead of what-clauses, and lines of at
most 100 columns. With names of files: only these. Rules: CONTRIBUTING.md."""
import pathlib
import re
import sys
import tree

WORDS, COLUMNS = 25, 100
SUFFIXES = (*tree.C_SUFFIXES, ".hpp")
WORD = re.compile(r"[\w%'-]*[A-Za-z][\w%'-]*")
WHAT = re.compile(r"\bwhat\b|\b(?:those|he|she|they) who\b|\bwhoever\b", re.I)
END = re.compile(r"(?<=[.!?])[)\"']?\s+")
SHORT = re.compile(r"\b(e\.g|i\.e|et al|vs|cf)\.")
# A line of a list or a table: further in than the text, or with a mark or a bar before it, or with a gap between words.
LISTED = re.compile(r"\s{2,}|\t|\s?[-*|] |.*\S(?: {2,}|\t)\S")


def comments(text):
    """The number of its first line, the text, and whether it stands alone on its lines: of each comment."""
    for m in tree.TOKEN.finditer(text):
        if m.group().startswith("/"):
            before = text[text.rfind("\n", 0, m.start()) + 1:m.start()]
            alone = not before.strip()
            yield text.count("\n", 0, m.start()) + 1, re.sub(r"[ \t]*\\$", "", before * alone + m.group(), flags=re.M), alone


def sentences(comment):
    """The sentences of a comment without its lists, tables and code in `quotes`."""
    lines = (re.sub(r"^\s*(?://+<?|/\*+<?|\*(?!/))|\s*\*/\s*$", "", line) for line in comment.split("\n"))
    prose = "\n".join("" if LISTED.match(line) else line for line in lines)
    for paragraph in re.split(r"\n\s*\n", prose):
        plain = SHORT.sub(r"\1", re.sub(r"`[^`]*`", "CODE", " ".join(paragraph.split())))
        yield from (s for s in END.split(plain) if s)


def faults(text):
    """The line of the comment, and the fault, for each one."""
    found = []
    for first, comment, alone in comments(text):
        for s in sentences(comment):
            n = len(WORD.findall(s))
            if n > WORDS:
                found.append((first, f"a sentence of {n} words, at most {WORDS}: {s}"))
            if WHAT.search(s) and not s.rstrip(")").endswith("?"):
                found.append((first, f"a what-clause, name the thing: {s}"))
        for k, line in enumerate(comment.split("\n") if alone else []):
            columns = len(line.expandtabs(8))
            if columns > COLUMNS:
                found.append((first + k, f"{columns} columns, at most {COLUMNS}: {line.strip()[:60]}..."))
    return found


def check_itself():
    """Each fault is found in a bad comment, and none in a good one."""
    good, bad = ("one two three four " * 6).rstrip(), "one two three four " * 6 + "five six."
    assert [line for line, _ in faults(f"int x;\n/* {good}.\n * {good}. */")] == [2, 3], "columns"
    for words in bad, f"Short. {bad}", bad.replace("four", "four\n *"), "It takes what is left.", "Those who wait.":
        wrapped = words.replace(" three", "\n * three")
        assert faults(f"int x; /* {wrapped} */"), words
    for words in good, "Is that what it is?", "The operation: `what`.", f"A list:\n * - {bad}", f"A table:\n *\n * name    what {bad}", "Code:\n *\twhat":
        assert not faults(f"int x; /* {words} */ char *s = \"/* what */\";"), words


def main():
    check_itself()
    files = [pathlib.Path(p).resolve() for p in sys.argv[1:]] or sorted(p for f in ("src", "include") for p in (tree.ROOT / f).rglob("*") if p.suffix in SUFFIXES)
    tree.finish([f"{tree.name(p)}:{line}: {fault}" for p in files for line, fault in faults(p.read_text())], f"comments of {len(files)} files")


main()
