"""The messages of the sources, for a page of the site: every call that words an error or a warning, with its code. tools/site.py makes the page."""
import re

CALL = re.compile(r"\b(vv_err_set|vv_err_sys|vv_fd_identity_err|vv_log_warn|fprintf)\(")
TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|'(?:[^'\\\n]|\\.)*'|"((?:[^"\\\n]|\\.)*)"|PRI([a-zA-Z])\w*|\w+|\s+|.""", re.S)
CONVERSION = re.compile(r"%[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|j|z|t)?[a-zA-Z]")
MARK = re.compile(r"[&<|*`_]")  # what Markdown would read
# sources that say more than those calls: what they have of sentences is listed, too
SPEAKS = re.compile(r"src/(?:image|store|preload|track|gpu|space|comm)/|src/cli/(?:run/|base/mpi_world|main/main_|image/)|src/engine/(?:memory/(?:dirty|tiles)|upkeep/gc|ranks/group|(?:epoch|handle|session|tiers)/)")
# who says it, by the folder of the source
GROUPS = [("The command", ["cli"]), ("Sessions: options, checkpoints, restarts, packing", ["engine", "track", "space", "base"]), ("Stores", ["store"]),
          ("What is read from a store", ["core", "codec", "reader"]), ("Many ranks", ["comm"]), ("GPUs", ["gpu"]), ("varve run", ["preload"]), ("Images of processes", ["image"])]


def wording(source, start):
    """The first string of a call, neighbours joined as the compiler does, and what stands before it."""
    before, text, depth = "", None, 1
    for token in TOKEN.finditer(source, start):
        if token[1] is not None:
            text = (text or "") + token[1]
        elif token[2] and text is not None:
            text += token[2]
        elif text is not None and not token[0].isspace():
            return before, text
        else:
            depth += (token[0] == "(") - (token[0] == ")")
            before += token[0] if text is None else ""
            if depth == 0:
                return before, None
    return before, text


def plain(text):
    """A format as it is read: what is filled in is '...'."""
    text = CONVERSION.sub("...", text).replace("%%", "%").replace('\\"', '"').replace("\\n", " ").replace("\\\\", "\\")
    return re.sub(r"(?:\.\.\.){2,}", "...", text).strip()


def words(text):
    return len(re.findall(r"[a-z]{2,}", text.replace("...", "")))


def found(path):
    """(code, message) of each call in a file."""
    source = path.read_text()
    for call in CALL.finditer(source):
        before, text = wording(source, call.end())
        if call[1] == "fprintf":  # what the command says beside its errors
            text = text.removeprefix("varve: ") if text and "stderr" in before and text.startswith("varve: ") else None
        code = re.search(r"\bVV_(E[A-Z]+)\b", before)
        if text is not None and words(plain(text)) > 1:
            kind = {"vv_log_warn": "a warning", "vv_err_sys": "by the system's reason, which follows", "fprintf": ""}.get(call[1].replace("stamp_err", "err_sys"))
            yield kind if kind is not None else (f"VARVE_{code[1]}" if code else "as what it found"), plain(text)


def hints(path):
    """Sentences that are chosen from tables, or are said by other calls."""
    source = path.read_text()
    for start in [token.start() for token in TOKEN.finditer(source) if token[1] is not None]:
        before = source[:start].rstrip()
        _, text = wording(source, start)
        if text and not before.endswith('"') and not re.search(r"PRI\w+$", before) and words(plain(text)) > 4 and plain(text).count(" ") > 4 and "<" not in text and "\\n" not in text:
            yield "", plain(text)


def page(root):
    """All of them as Markdown."""
    out = ["# All messages\n", "Every error and warning that varve can word, as the sources have them; `...` is a name, a number or a reason, and what has no code is a hint, or is said on the way. "
           "Those that people meet are explained in [troubleshooting](troubleshooting.md), and the codes in [errors](errors.md).\n"]
    for title, folders in GROUPS:
        said = {}
        for path in [path for folder in folders for path in sorted((root / "src" / folder).rglob("*.[ch]"))]:
            for code, text in (*found(path), *(hints(path) if SPEAKS.search(path.as_posix()) else ())):
                said.setdefault(text, code)
        out += [f"## {title}\n", "| message | code |", "|---|---|"]
        out += [f"| {MARK.sub(lambda sign: f'&#{ord(sign[0])};', text)} | {code} |" for text, code in sorted(said.items(), key=lambda m: m[0].lower())]
        out.append("")
    return "\n".join(out)
