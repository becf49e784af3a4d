"""What mkdocs does not know of our documentation (mkdocs.yml names this file as its hook): manual pages become pages of the site, files of
the source that the text links to do, too, the messages of the sources are a page, and a name such as decisions/* in the navigation stands for all pages of a folder."""
import html
import json
import os
import pathlib
import re
import sys
import tempfile

from mkdocs.structure.files import File

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import messages  # noqa: E402

MANUAL = re.compile(r"\]\(((?:\.\./)*man/[\w.-]+\.\d)\)")
LINK = re.compile(r"\]\(((?:\.\./)+[^)#\s]+)(#[^)\s]*)?\)")
LANGUAGES = {".h": "c", ".hpp": "cpp", ".f90": "fortran", ".py": "python", ".md": "markdown"}
made = {"folder": None, "sources": {}, "parts": []}


# --- manual pages

ESCAPES = [("\\-", "-"), ("\\ ", " "), ("\\(aq", "'"), ("\\(dq", '"'), ("\\&", ""), ("\\e", "\\")]


def plain(text):
    for escape, sign in ESCAPES:
        text = text.replace(escape, sign)
    return text


def inline(text):
    """Fonts that are changed within a line."""
    out, tag = [], None
    for part in re.split(r"(\\f[BIRP])", text):
        if re.fullmatch(r"\\f[BIRP]", part):
            out.append(f"</{tag}>" if tag else "")
            tag = {"B": "b", "I": "i"}.get(part[2])
            out.append(f"<{tag}>" if tag else "")
        else:
            out.append(html.escape(plain(part), quote=False))
    return "".join(out) + (f"</{tag}>" if tag else "")


def fonts(macro, rest):
    """.B and .I have one font for the line; .BR, .IR, ... two that take turns."""
    words = [word.strip('"') for word in re.findall(r'"[^"]*"|(?:\\ |\S)+', rest)] if '"' in rest or len(macro) == 2 else [rest]
    tags = [{"B": "b", "I": "i", "R": ""}[letter] for letter in macro]
    turn = [(tags[i % len(tags)], inline(word)) for i, word in enumerate(words)]
    return ("" if len(macro) == 2 else " ").join(f"<{tag}>{word}</{tag}>" if tag else word for tag, word in turn)


LISTS = {"dl": "</dd>", "ul": "</li>"}  # the end of an item


class Manual:
    """One page of docs/man as Markdown: headings are Markdown's, the rest is HTML."""

    def __init__(self, path, pages):
        self.pages, self.out, self.text, self.listed = pages, [], [], None
        self.verbatim = self.term = False
        for line in path.read_text().split("\n"):
            self.line(line)
        self.end_list()

    def line(self, line):
        found = re.match(r"\.([A-Z]+|nf|fi|br)\b ?(.*)", line)
        if not found:
            self.add(inline(line))
        elif found[1] in ("B", "I", "BR", "BI", "IR", "RB", "RI", "IB"):
            self.add(self.linked(fonts(found[1], found[2])))
        else:
            getattr(self, "do_" + found[1].lower())(found[2])

    def add(self, text):
        if self.verbatim:
            self.out.append(text + "\n")
        elif self.term:
            self.term = False
            self.out.append(f"<dt>{text}</dt><dd>")
        elif text:
            self.text.append(text)

    def linked(self, text):
        def link(found):
            page = self.pages.get(f"{found[1]}.{found[2]}")
            return f'<a href="{page.name}.html">{found[1]}({found[2]})</a>' if page else found[0]

        return re.sub(r"<b>([\w.-]+)</b>\((\d)\)", link, text)

    def paragraph(self):
        if self.text:
            self.out.append("<p>" + "\n".join(self.text) + "</p>\n")
        self.text = []

    def end_list(self):
        self.paragraph()
        if self.listed:
            self.out.append(f"{LISTS[self.listed]}</{self.listed}>\n")
        self.listed = None

    def next_item(self, kind):
        """Of a list of terms, or of points."""
        if self.listed == kind:
            self.paragraph()
            self.out.append(LISTS[kind])
        else:
            self.end_list()
            self.out.append(f"<{kind}>")
        self.listed = kind

    def do_th(self, rest):
        name, section = rest.split()[:2]
        self.out.append(f"# {plain(name).lower()}({section})\n\n")

    def do_sh(self, rest):
        self.end_list()
        self.out.append(f"\n## {inline(rest).strip(chr(34)).capitalize()}\n\n")

    def do_ss(self, rest):
        self.end_list()
        self.out.append(f"\n### {inline(rest).strip(chr(34))}\n\n")

    def do_pp(self, _):
        if self.verbatim:
            self.out.append("\n")
        else:
            self.end_list()

    def do_tp(self, _):
        self.next_item("dl")
        self.term = True

    def do_tq(self, _):
        """One more term for what follows."""
        self.paragraph()
        if self.out[-1].endswith("<dd>"):
            self.out[-1] = self.out[-1].removesuffix("<dd>")
        else:
            self.out.append("</dd>")
        self.term = True

    def do_ip(self, rest):
        """A mark, and how far the text is indented. Without a mark it is one more paragraph of the item."""
        mark = "".join(re.findall(r'"[^"]*"|\S+', rest)[:1]).strip('"')
        if mark == "\\(bu":
            self.next_item("ul")
            self.out.append("<li>")
        elif mark:
            self.do_tp("")
            self.add(inline(mark))
        else:
            self.paragraph()

    def do_nf(self, _):
        self.paragraph()
        self.out.append("<pre>")
        self.verbatim = True

    def do_fi(self, _):
        self.out.append("</pre>\n")
        self.verbatim = False

    def do_br(self, _):
        self.add("<br>")

    def do_rs(self, _):
        pass

    do_re = do_rs


def manuals(docs):
    """{name of a page, or of one that is another: the file of that page}, of docs/man and of those that the build makes"""
    made_by_build = pathlib.Path(os.environ.get("VARVE_BUILD", docs.parent / "build")) / "man"
    if not (made_by_build / "varve.1").exists():
        raise SystemExit(f"{made_by_build}: no manual pages of the command; 'make site' makes them first")
    files = {path.name: path for folder in (docs / "man", made_by_build) for path in folder.glob("*.[1-8]")}
    pages = {}
    for name, path in sorted(files.items()):
        other = re.fullmatch(r"\.so man\d/(\S+)\n", path.read_text())
        pages[name] = files[other[1]] if other else path
    return pages


# --- what mkdocs calls

def on_config(config):
    docs = pathlib.Path(config["docs_dir"])

    def expand(item):
        if isinstance(item, dict):
            return {title: all_of(value) if isinstance(value, str) and value.endswith("/*") else [expand(i) for i in value]
                    if isinstance(value, list) else value for title, value in item.items()}
        return item

    def all_of(pattern):
        if pattern == "man/*":
            return [{re.sub(r"\.(\d)$", r"(\1)", name): f"man/{name}.md"} for name in sorted({path.name for path in manuals(docs).values()})]
        return [str(path.relative_to(docs)) for path in sorted(docs.glob(pattern)) if path.suffix == ".md"]

    config["nav"] = [expand(item) for item in config["nav"]]
    return config


def on_files(files, config):
    docs = pathlib.Path(config["docs_dir"])
    made.update(folder=tempfile.TemporaryDirectory(prefix="varve-site-"), sources={}, parts=[])  # gone when mkdocs ends
    folder = pathlib.Path(made["folder"].name)

    def add(name, text):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        files.append(File(name, str(folder), config["site_dir"], config["use_directory_urls"]))

    add("messages.md", messages.page(docs.parent))
    pages = manuals(docs)
    for file in [f for f in files if f.src_uri.startswith("man/")]:
        files.remove(file)
    for path in sorted(set(pages.values())):
        add(f"man/{path.name}.md", "".join(Manual(path, pages).out))
    for file in [f for f in files if f.is_documentation_page() and docs in pathlib.Path(f.abs_src_path).parents]:
        page = pathlib.Path(file.abs_src_path)
        for link, _ in LINK.findall(page.read_text()):
            source = (page.parent / link).resolve()
            if docs not in source.parents and source.is_file() and source not in made["sources"]:
                name = source.relative_to(docs.parent).as_posix()
                made["sources"][source] = f"source/{name}.md"
                language = LANGUAGES.get(source.suffix, source.suffix[1:])
                add(f"source/{name}.md", f"# {name}\n\n~~~~{language}\n{source.read_text()}~~~~\n")
    return files


def on_page_markdown(markdown, page, config, files):
    """Links to manual pages and to files of the source lead to the pages that are made of them. Tabs are eight wide, as where the code was written."""
    here = pathlib.Path(page.file.abs_src_path)
    up = "../" * page.file.src_uri.count("/")

    def lead(found):
        target = made["sources"].get((here.parent / found[1]).resolve())
        return f"]({up}{target})" if target else found[0]

    return LINK.sub(lead, MANUAL.sub(r"](\1.md)", markdown.expandtabs(8)))


def text_of(part):
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", part)).replace("\u00b6", " ").split())


def label_cells(table):
    """Each cell of a table gets the heading of its column: on a phone it stands in front of the cell."""
    headings = [text_of(cell) for cell in re.findall(r"<th\b[^>]*>(.*?)</th>", table[0], re.S)]

    def row(found):
        column = iter(headings)
        return re.sub(r"<td\b", lambda _: f'<td data-label="{html.escape(name)}"' if (name := next(column, "")) else "<td", found[0])

    return re.sub(r"<tr>.*?</tr>", row, table[0], flags=re.S)


def on_page_content(content, page, config, files):
    """The parts of a page for the search, from one heading to the next; the cells of its tables with their headings."""
    parts = re.split(r'<h[1-3] id="([^"]*)">(.*?)</h[1-3]>', content, flags=re.S)
    for name, heading, text in zip(parts[1::3], parts[2::3], parts[3::3]):
        made["parts"].append([page.title, text_of(heading), f"{page.file.url}#{name}", text_of(text)])
    return re.sub(r"<table>.*?</table>", label_cells, content, flags=re.S)


def on_post_build(config):
    index = json.dumps(made["parts"], ensure_ascii=False, separators=(",", ":"))
    (pathlib.Path(config["site_dir"]) / "search_index.js").write_text(f"window.varve_search = {index};\n")
