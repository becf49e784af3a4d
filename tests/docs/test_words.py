#!/usr/bin/env python3
# ctest: TIMEOUT 120
"""What the documentation names is there: verbs and their options, configuration, functions, constants, targets of make, benchmarks, files."""
import json
import os
import pathlib
import re
import subprocess
import sys

import page
from page import BUILD, ROOT

VARVE = os.environ.get("VARVE_BIN", str(BUILD / "varve"))
PLAIN = {k: v for k, v in os.environ.items() if not k.startswith("VARVE_")}
SHELL = ("console", "sh", "bash")
FOLDERS = "src|docs|examples|tests|tools|bench|include|fuzz|cmake|report"
# options of other programs that the text speaks of by themselves
OTHERS = {"--action-script", "--lazy-pages", "--no-gzip", "--open-mode", "--requeue", "--signal"}


def ask(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=PLAIN, timeout=60).stdout


def options(text):
    """The options that a help text lists."""
    return set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", text))


def sources(*patterns):
    return "\n".join(p.read_text(errors="replace") for pattern in patterns for p in ROOT.glob(pattern) if p.is_file())


class Known:
    """What there is."""

    def __init__(self):
        top = ask(VARVE, "help")
        common = options(top.split("Options of all verbs")[1])
        self.verbs = {verb: common | options(ask(VARVE, "help", verb)) for verb in re.findall(r"^  (\w+) ", top.split("Options")[0], re.M)}
        self.settings = {o["name"] for o in json.loads(ask(VARVE, "config", "--json"))["options"]}
        self.targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.M))
        self.benchmarks = set(re.findall(r"^(\S+) ", ask(sys.executable, str(ROOT / "bench/run"), "--list"), re.M))
        self.bench_options = options(ask(sys.executable, str(ROOT / "bench/run"), "--help"))
        self.names = set(re.findall(r"\bvarve_\w+", sources("include/varve/*", "src/fortran/*", "src/**/*.h", "cmake/*", "src/cli/**/*.c", "src/engine/epoch/metrics_file.c")))
        self.constants = set(re.findall(r"\bVARVE_\w+", sources("include/varve/*", "src/**/*", "python/varve/*", "CMakeLists.txt", "cmake/*", "Makefile", "tools/*", "tests/CMakeLists.txt")))
        self.constants |= {"VARVE_" + name.upper().replace("-", "_") for name in self.settings}
        self.definitions = definitions(sources("include/varve/*"))
        self.any_option = set.union(*self.verbs.values()) | self.bench_options | options(sources("bench/**/*.c", "bench/**/*.py", "examples/*.c", "examples/graphlets/*.c", "examples/train/*", "examples/demo"))


def settings_of(span):
    """Names of span that are set to something, if it is nothing else: 'keep=3 keep-every=10', 'order = address'."""
    if found := re.fullmatch(r"([a-z][a-z0-9-]*) = [^\s\[].*", span):
        return [found[1]]
    words = span.split()
    return [w.split("=")[0] for w in words] if words and all(re.fullmatch(r"[a-z][a-z0-9-]*=[^=]+", w) for w in words) else []


def check_command(known, words):
    """What is wrong with 'varve VERB ...', as words."""
    if len(words) < 2 or not re.fullmatch(r"[a-z]+", words[1]):
        return []
    verb, wrong = words[1], []
    if verb not in known.verbs:
        return [f"varve has no verb '{verb}'"]
    for word in words[2:]:
        if word in ("--", "|", "&", "&&", ";", "#") or word.startswith((">", "<", "#")):
            break
        option = re.match(r"--[a-z][a-z-]*|-[A-Za-z]$", word.strip("[]()|,."))
        if option and option[0] not in known.verbs[verb]:
            wrong.append(f"'varve {verb}' has no option '{option[0]}'")
    return wrong


def check_text(known, text):
    """What is wrong with a piece of code in the text, or a line of commands."""
    wrong = []
    for found in re.finditer(r"(?:^|[\s|;(`$])varve ([a-z].*)", text):
        wrong += check_command(known, ["varve", *found[1].split()])
    for found in re.finditer(r"\bbench/run((?: +\S+)+)", text):
        for word in found[1].split():
            if word.startswith("--"):
                wrong += [f"bench/run has no option '{word}'"] if word.split("=")[0] not in known.bench_options else []
            elif re.fullmatch(r"[a-z]+(\.[a-z]+)?", word) and word not in ("all", "NAME") and \
                    not any(b == word or b.startswith(word + ".") for b in known.benchmarks):
                wrong.append(f"there is no benchmark '{word}'")
    if found := re.match(r"make ([a-z][a-z-]*)", text):
        wrong += [f"there is no 'make {found[1]}'"] if found[1] not in known.targets else []
    for name in re.findall(r"\bvarve_[a-z_]+\b(?!\*|\.)", text):
        wrong += [f"'{name}' is nowhere in the headers"] if name not in known.names else []
    for name in re.findall(r"\bVARVE_[A-Z0-9_]+(?![\w*]|\.\.\.)", text):
        wrong += [f"'{name}' is nowhere in the sources"] if name.rstrip("_") not in known.constants and not name.endswith("_") else []
    for path in re.findall(rf"(?<![\w/.$-])((?:{FOLDERS})/[\w./-]*\w)", text):
        if not exists(path):
            wrong.append(f"there is no '{path}'")
    return wrong


def exists(path):
    places = (ROOT, ROOT / "src", ROOT / "src/engine", ROOT / "docs", BUILD)
    return any((place / path).exists() or list((place / path).parent.glob(pathlib.PurePath(path).name + ".*")) for place in places)


def check_span(known, span):
    """The same of a code span, which may also be a setting, an option or a file by itself."""
    wrong = check_text(known, span)
    wrong += [f"varve has no option '{name}'" for name in settings_of(span) if name not in known.settings]
    if found := re.fullmatch(r"(--[a-z][a-z-]*)( .*|=.*)?", span):
        wrong += [f"nothing has an option '{found[1]}'"] if found[1] not in known.any_option | OTHERS else []
    if re.fullmatch(r"[a-z0-9]+/[a-z0-9_/]+\.(c|h|py|md|cu)", span) and not exists(span):
        wrong.append(f"there is no '{span}'")
    return wrong


def check_page(known, p):
    problems = []
    for line, text in p.prose:
        problems += [f"{p.name}:{line}: there is no '{link}'" for link in re.findall(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)", re.sub(r"`[^`]*`", "", text))
                     if not (p.path.parent / link).exists()]
        for _, span in re.findall(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", text):
            problems += [f"{p.name}:{line}: {what}: {span}" for what in check_span(known, span.strip())]
    return problems + check_code(known, p)


def check_code(known, p):
    problems = []
    for block in p.blocks:
        if block.language not in SHELL:
            continue
        for at, line in enumerate(block.text.split("\n")):
            if block.language != "console" or line.startswith("$ "):
                problems += [f"{p.name}:{block.line + at}: {what}: {line}" for what in check_text(known, line.removeprefix("$ ").split(" # ")[0])]
    return problems


def definitions(text):
    """Structures and enumerations, without comments and blanks."""
    bare = re.sub(r"/\*.*?\*/|\s+", "", text, flags=re.S)
    return set(re.findall(r"(?:struct|enum)\w+\{[^{}]*\};", bare))


def check_manual(known, p):
    problems = []
    for at, line in enumerate(p.lines, 1):
        if not line.startswith((".TH", page.REMARK)):
            problems += [f"{p.name}:{at}: {what}" for what in check_text(known, page.plain(line)) if "nowhere" in what]
    for block in p.blocks:
        if block.language == "c":
            problems += [f"{p.name}:{block.line}: not so in the headers: {what}" for what in definitions(block.text) - known.definitions]
    return problems + check_code(known, p)


def check_test(known):
    """That all this finds something."""
    for span in ("varve gcc STORE", "varve gc --dryrun STORE", "varve run --retry 3 -- ./a --b", "keeep=3", "order=x eager-=no", "--dryrun", "make tests",
                 "bench/run ckpt.none", "varve_opne", "VARVE_ENONE", "src/core/none.c", "core/none.h", "docs/none.md"):
        assert check_span(known, span), f"{span}: not found to be wrong"
    assert definitions("struct a { int b; /* {x} */ };") == {"structa{intb;};"}
    for span in ("varve gc --dry-run STORE", "varve run --max-restarts 3 -- ./a --b", "keep=3", "--dry-run", "make test", "bench/run ckpt", "varve_open", "core/format/run.c"):
        assert not check_span(known, span), f"{span}: found to be wrong"


known, pages = Known(), page.pages(sys.argv[1:])
check_test(known)
problems = [problem for p in pages for problem in (check_manual if isinstance(p, page.Manual) else check_page)(known, p)]
print("\n".join(problems))
print(f"{len(pages)} pages, {len(problems)} problems")
sys.exit(1 if problems else 0)
