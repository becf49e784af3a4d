#!/usr/bin/env python3
# ctest: TIMEOUT 300 COST 60
"""The documentation as a site: it builds without a warning, every link and anchor leads somewhere, and it opens from a file, without a network, also on a phone.
Its search finds pages."""
import html
import html.parser
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

from page import BUILD, ROOT

sys.path.insert(0, str(ROOT / "tests" / "cli"))
import browser  # noqa: E402

NAMES = r"\b[A-Z]{2,}\b|\bN\b"  # of the page of troubleshooting
# boxes whose content is wider than they are
WIDER = """[document.documentElement, ...document.querySelectorAll('.md-content :is(pre, pre > code, table, p, li, dd, img, .md-typeset__scrollwrap)')]
    .filter(e => e.clientWidth && e.scrollWidth > e.clientWidth)
    .map(e => `${e.tagName.toLowerCase()} has ${e.scrollWidth} pixels in ${e.clientWidth}: ${e.textContent.trim().slice(0, 40)}`)"""
OUTSIDE = re.compile(r"(?:[a-z]+:)?//", re.I)


class Page(html.parser.HTMLParser):
    """What a page links to, what it loads, and what can be linked to in it."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.names = [], [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        words = dict(attributes)
        self.names |= {words[name] for name in ("id", "name") if words.get(name)}
        if tag == "a" and words.get("href"):
            self.links.append(words["href"])
        elif tag == "link" and words.get("rel") not in ("canonical", "next", "prev"):
            self.loads.append(words.get("href", ""))
        elif words.get("src"):
            self.loads.append(words["src"])


def quoted():
    """The messages that docs/troubleshooting.md explains."""
    return [" ".join(block.split()) for block in re.findall(r"^```text\n(.*?)^```$", (ROOT / "docs/troubleshooting.md").read_text(), re.M | re.S)]


def check_links(site):
    """Problems of all pages."""
    pages, problems = {path: Page(path) for path in sorted(site.rglob("*.html"))}, []
    for path, page in pages.items():
        if path.name == "404.html":  # knows no place of its own
            continue
        name = path.relative_to(site)
        problems += [f"{name}: loads {what}" for what in page.loads if OUTSIDE.match(what)]
        for link in page.links:
            if OUTSIDE.match(link) or link.startswith("mailto:"):
                continue
            where, _, anchor = link.partition("#")
            target = (path.parent / urllib.parse.unquote(where)).resolve() if where else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                problems.append(f"{name}: {link}: there is no such page")
            elif anchor and target in pages and urllib.parse.unquote(anchor) not in pages[target].names:
                problems.append(f"{name}: {link}: there is no such place")
    problems += [f"{path.relative_to(site)}: {escape}: an escape of troff" for path in (site / "man").glob("*.html")
                 for escape in re.findall(r"\\\(\w\w|\\f[BIRP]|^\.[A-Z]{2} .*", path.read_text(), re.M)]
    problems += [f"{path.relative_to(site)}: loads {found}" for path in site.rglob("*.css")
                 for found in re.findall(r"url\(['\"]?((?:https?:)?//[^)]*)", path.read_text())]
    return len(pages), problems


def check_messages(site):
    """Whatever the command says can be found on the page of all messages."""
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", (site / "messages.html").read_text())).split())
    said = [message for message in quoted() if len(re.findall(r"[a-z]{2,}", re.sub(NAMES, "", message))) > 3]
    pieces = [(message, max(re.split(NAMES, message), key=len).strip(" '()[]:;,")) for message in said]
    for path in (ROOT / "src").rglob("*.c"):  # what is said without a call of our own
        pieces += [(message, max(re.split(r"%[-.*\d]*(?:hh|h|ll|l|z)?[a-zA-Z]", message), key=len).strip(" '()[]:;,"))
                   for message in re.findall(r'fprintf\(stderr, "varve: ((?:[^"\\]|\\[^n])*)', path.read_text())]
    return [f"messages.html: {message} is not there" for message, piece in pieces if len(re.findall("[a-z]{2,}", piece)) > 1 and piece not in text]


def check_widths(site, window):
    """On a laptop and on a phone nothing is wider than its page or its box, and no page asks for anything but files."""
    problems = []
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site)
        if path.name == "404.html":
            continue
        window.open(path.as_uri(), width=1366)
        problems += [f"{name}: the console says: {line}" for line in window.console]
        problems += [f"{name}: asks for {url}" for url in window.requests if not url.startswith(("file:", "data:", "about:"))]
        problems += [] if window.run("document.querySelector('h1').textContent") else [f"{name}: no heading"]
        for width in (1366, 390):
            window.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
            window.settle()
            problems += [f"{name}: on a screen of {width}: {what}" for what in window.run(WIDER)]
    return problems


def check_search(site, window):
    """What is typed is found, by file:, on a page at any depth; the first result leads to a place that exists."""
    problems = []
    for name, typed, wanted in (("index.html", "varve_open", "man/varve_open.3.html"), ("start/c.html", "whole-lineage", "man/varve-drop.1.html"),
                                ("man/varve.3.html", "commit record", "format.html")):
        window.open((site / name).as_uri(), width=1366)
        found = window.run(f"""new Promise(done => {{
            const input = document.querySelector('.site-search input'), links = () => [...document.querySelectorAll('.site-search a')].map(a => a.href);
            input.focus();
            input.value = {typed!r};
            input.dispatchEvent(new Event('input'));
            const wait = n => links().length || !n ? done(links()) : setTimeout(wait, 50, n - 1);
            wait(200); }})""")
        if not any(wanted in link for link in found):
            problems.append(f"{name}: a search for '{typed}' finds {found}, not {wanted}")
        for link in found:
            where, _, anchor = link.partition("#")
            target = pathlib.Path(urllib.parse.unquote(urllib.parse.urlparse(where).path))
            if not target.is_file() or anchor not in Page(target).names:
                problems.append(f"{name}: a search for '{typed}' leads to {link}")
        problems += [f"{name}: the console says: {line}" for line in window.console]
    return problems


def check_browser(site):
    """Problems that only a browser sees."""
    window = browser.Browser(browser.find())
    try:
        return check_widths(site, window) + check_search(site, window)
    finally:
        window.close()


def main():
    if not shutil.which("mkdocs") or "material" not in subprocess.run(["mkdocs", "build", "--help"], capture_output=True, text=True).stdout:
        print("skipped: no mkdocs with its theme material here (Debian: apt-get install mkdocs mkdocs-material)")
        return 77
    if not (BUILD / "man" / "varve.1").exists():
        print("skipped: this build has made no manual pages of the command")
        return 77
    with tempfile.TemporaryDirectory(prefix="varve-site-") as folder:
        site = pathlib.Path(folder).resolve() / "site"
        built = subprocess.run(["mkdocs", "build", "--strict", "-f", ROOT / "mkdocs.yml", "-d", site], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, timeout=120)
        if built.returncode:
            print(built.stdout)
            return 1
        count, problems = check_links(site)
        problems += check_messages(site)
        if browser.find():
            problems += check_browser(site)
        else:
            print("note: no Chromium here, nothing is opened")
    print("\n".join([*problems, f"{count} pages, {len(problems)} problems"]))
    return 1 if problems or count < 30 else 0


if __name__ == "__main__":
    sys.exit(main())
