#!/usr/bin/env python3
"""Draws docs/houses.svg from the order of the houses (tests/meta/houses.py): `tools/houses_svg.py` writes it, `--check` compares."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "meta"))
import houses  # noqa: E402

WORDS = {  # what each house is for
    "lineage": "what a store holds: epochs, layers, run tables",
    "read": "bytes out of layers, into memory, devices, files",
    "ranks": "the group of ranks; remote tables and bytes",
    "write": "the digest index; placing, blocks, codecs; dedup among ranks",
    "grains": "sub-page dedup; GPU memory",
    "upkeep": "gc, verify, diff",
    "memory": "tiles, copies, write protection, faults",
    "handle": "calls that read without a session",
    "tiers": "copies of epochs in further stores",
    "epoch": "the life of an epoch: begin, store, commit, retention",
    "session": "the public calls, the session, its regions and restarts",
    "files": "pack and unpack",
}
LAYERS = [
    ("callers", "cli, image, preload, fortran", "the command; process images; transparent capture"),
    ("engine", None, None),
    ("plugs", "codec, store, space, gpu, track, comm, reader", "one file or folder for each codec, store ..."),
    ("core", "format, dedup, ranks, plan", "the model: pure functions on values"),
    ("base", "", "knows nothing of checkpoints"),
]
STYLE = """
svg { font-family: ui-sans-serif, system-ui, sans-serif; --ink: #1f2328; --soft: #57606a; --room: #f6f8fa; --line: #d0d7de; --accent: #0969da; }
@media (prefers-color-scheme: dark) { svg { --ink: #e6edf3; --soft: #9da7b3; --room: #161b22; --line: #30363d; --accent: #58a6ff; } }
rect { fill: var(--room); stroke: var(--line); } .engine { fill: none; stroke: var(--accent); stroke-width: 1.5; }
text { fill: var(--ink); font-size: 13px; } .name { font-weight: 600; } .soft { fill: var(--soft); font-size: 12px; }
"""
WIDTH, ROW, LEFT = 760, 34, 16


def room(y, name, words, x=LEFT, width=WIDTH - 2 * LEFT, extra=""):
    return (f'<rect x="{x}" y="{y}" width="{width}" height="{ROW - 6}" rx="5"/>'
            f'<text class="name" x="{x + 12}" y="{y + 19}">{name}</text>'
            f'<text x="{x + 92}" y="{y + 19}">{extra}</text>'
            f'<text class="soft" x="{x + (92 if not extra else 410)}" y="{y + 19}">{words}</text>')


def engine(y):
    """The houses of the engine, the highest first; two side by side share a row."""
    rows, parts = [h for h in reversed(houses.ORDER["engine"]) if h != {""}], []
    height = (len(rows) + 1) * ROW + 34
    parts.append(f'<rect class="engine" x="{LEFT}" y="{y}" width="{WIDTH - 2 * LEFT}" height="{height}" rx="7"/>')
    parts.append(f'<text class="name" x="{LEFT + 12}" y="{y + 21}">engine</text><text class="soft" x="{LEFT + 92}" y="{y + 21}">each house uses the houses below it</text>')
    y += 32
    for row in rows:
        names = sorted(row)
        width = (WIDTH - 4 * LEFT - 8 * (len(names) - 1)) // len(names)
        for i, name in enumerate(names):
            parts.append(room(y, name, WORDS[name], 2 * LEFT + i * (width + 8), width))
        y += ROW
    parts.append(room(y, "root", "context.h: the data of a session; options.c", 2 * LEFT, WIDTH - 4 * LEFT))
    return "\n".join(parts), height + 10


def draw():
    y, parts = 12, []
    for name, folders, words in LAYERS:
        if name == "engine":
            text, height = engine(y)
            parts.append(text)
            y += height
        else:
            parts.append(room(y, name, words, extra=folders))
            y += ROW
    body = "\n".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 6}" width="{WIDTH}" role="img" '
            f'aria-label="The houses of varve: each uses the houses below it">\n<style>{STYLE}</style>\n{body}\n</svg>\n')


out = ROOT / "docs" / "houses.svg"
if sys.argv[1:] == ["--check"]:
    if not out.exists() or out.read_text() != draw():
        sys.exit("docs/houses.svg is not what tests/meta/houses.py says: run tools/houses_svg.py")
else:
    out.write_text(draw())
