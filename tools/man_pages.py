#!/usr/bin/env python3
"""man_pages.py VARVE SOURCE OUT: the manual pages of the command, varve.1 and one for each verb.

The names, the synopses and the heads of all options come from the tables of the command (`varve help --json`), the
text from docs/man/varve.1 and docs/man/verbs/VERB.1. In these files
  .OPTION NAME...   begins the text about options: it becomes .TP and the option with its letter and value
  .VERBS            becomes the list of all verbs
A verb without a text, a text without a verb, and an option without a text are errors."""
import json
import pathlib
import re
import subprocess
import sys


def escape(text):
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")


def synopsis(words):
    """Words in capitals are the user's, all others are literal."""
    return re.sub(r"[A-Z][A-Z0-9]*", r"\\fI\g<0>\\fP", escape(words))


def head(option):
    letter = f"\\fB\\-{option['letter']}\\fP, " if option["letter"] else ""
    value = f" {synopsis(option['value'])}" if option["value"] else ""
    return f"{letter}\\fB\\-\\-{escape(option['name'])}\\fP{value}"


class Text:
    """The text of one page, with the options of one table."""

    def __init__(self, path, options):
        self.path, self.options, self.described = path, {o["name"]: o for o in options}, set()
        self.text = "".join(self.line(line) for line in path.read_text().splitlines(keepends=True))
        missing = [name for name in self.options if name not in self.described]
        if missing:
            sys.exit(f"{path}: no text about --{', --'.join(missing)}")

    def line(self, line):
        if not line.startswith(".OPTION "):
            return line
        names = line.split()[1:]
        unknown = [name for name in names if name not in self.options]
        if unknown:
            sys.exit(f"{self.path}: there is no option --{', --'.join(unknown)}")
        self.described.update(names)
        return "".join(f"{'.TQ' if i else '.TP'}\n{head(self.options[name])}\n" for i, name in enumerate(names))


def verb_page(verb, shared, title, path):
    text = Text(path, verb["options"]).text
    common = ".SH OPTIONS OF ALL VERBS\n" + "".join(f".TP\n{head(o)}\n{escape(o['help'])}\n" for o in shared)
    body, examples, rest = text.partition(".SH EXAMPLES\n")
    usage = f"\\fBvarve {verb['name']}\\fP [\\fIOPTION\\fP...] {synopsis(verb['operands'])}"
    return (f".TH VARVE\\-{verb['name'].upper()} 1 {title}\n.SH NAME\nvarve\\-{verb['name']} \\- {escape(verb['brief'])}\n"
            f".SH SYNOPSIS\n{usage}\n{body}{common}{examples}{rest}.SH SEE ALSO\n.BR varve (1),\n.BR varve.conf (5)\n")


def overview(verbs, shared, path):
    names = "".join(f".TP\n.BR varve\\-{v['name']} (1)\n{escape(v['brief'])}\n" for v in verbs)
    return Text(path, shared).text.replace(".VERBS\n", names)


def main():
    varve, source, out = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    table = json.loads(subprocess.run([varve, "help", "--json"], check=True, capture_output=True).stdout)
    verbs, shared = table["verbs"], table["options"]
    man = source / "docs" / "man"
    extra = {p.stem for p in (man / "verbs").iterdir()} - {v["name"] for v in verbs}
    if extra:
        sys.exit(f"{man / 'verbs'}: there is no verb {', '.join(sorted(extra))}")
    title = re.match(r"\.TH VARVE 1 (.*)", (man / "varve.1").read_text())[1]
    out.mkdir(parents=True, exist_ok=True)
    for verb in verbs:
        path = man / "verbs" / f"{verb['name']}.1"
        if not path.exists():
            sys.exit(f"{path}: the verb {verb['name']} has no text for its manual page")
        (out / f"varve-{verb['name']}.1").write_text(verb_page(verb, shared, title, path))
    (out / "varve.1").write_text(overview(verbs, shared, man / "varve.1"))


if __name__ == "__main__":
    main()
