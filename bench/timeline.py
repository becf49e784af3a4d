"""Draws docs/timeline.svg for bench/page: a program with three checkpoints, once with a plain write and once with varve, to scale."""

STYLE = """
svg { font-family: ui-sans-serif, system-ui, sans-serif; --ink: #1f2328; --soft: #57606a; --line: #d0d7de; --work: #b6d7f2; --wait: #cf222e; --store: #2da44e; }
@media (prefers-color-scheme: dark) { svg { --ink: #e6edf3; --soft: #9da7b3; --line: #30363d; --work: #1f4b73; --wait: #ff7b72; --store: #3fb950; } }
text { fill: var(--ink); font-size: 13px; } .name { font-weight: 600; } .soft { fill: var(--soft); font-size: 12px; } .axis { stroke: var(--line); }
.work { fill: var(--work); } .wait { fill: var(--wait); } .store { fill: none; stroke: var(--store); stroke-width: 2; stroke-dasharray: 4 3; }
"""
WIDTH, LEFT, COMPUTE, CHECKPOINTS = 760, 16, 500, 3  # COMPUTE: ms between two checkpoints


def bar(kind, x, y, width):
    return f'<rect class="{kind}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="22"/>'


def lane(y, waits, scale):
    """The program computes, waits, and computes again."""
    x, parts, ends = LEFT, [], []
    for _ in range(CHECKPOINTS):
        parts += [bar("work", x, y, COMPUTE * scale), bar("wait", x + COMPUTE * scale, y, waits * scale)]
        x += (COMPUTE + waits) * scale
        ends.append(x)
    return parts + [bar("work", x, y, COMPUTE * scale)], ends


def draw(blocked, plain):
    """blocked, plain: ms that the program waits for one checkpoint, with varve and for a durable write of all its memory."""
    total = (CHECKPOINTS + 1) * COMPUTE + CHECKPOINTS * max(blocked, plain)
    scale = (WIDTH - 2 * LEFT) / total
    first, _ = lane(46, plain, scale)
    second, ends = lane(116, blocked, scale)
    parts = [f'<text class="name" x="{LEFT}" y="36">plain write</text>'
             f'<text class="soft" x="{LEFT + 90}" y="36">1 GiB, durable: the program waits {plain:.0f} ms for each checkpoint</text>', *first,
             f'<text class="name" x="{LEFT}" y="106">varve</text>'
             f'<text class="soft" x="{LEFT + 90}" y="106">10 % changed: the program waits {blocked:.1f} ms, 107 MB are stored in the background</text>', *second]
    parts += [f'<rect class="store" x="{x:.1f}" y="142" width="{COMPUTE * scale * 0.5:.1f}" height="9" rx="3"/>' for x in ends]
    step = 500 if total <= 8000 else 500 * -(-int(total) // 8000)
    for ms in range(0, int(total) + 1, step):
        x = LEFT + ms * scale
        parts.append(f'<line class="axis" x1="{x:.1f}" y1="42" x2="{x:.1f}" y2="160"/><text class="soft" x="{x:.1f}" y="175" text-anchor="{"middle" if ms else "start"}">{ms / 1000:g} s</text>')
    key, x = [], LEFT
    for kind, words, room in (("work", "computes", 84), ("wait", "waits", 62), ("store", "varve stores in the background (the disk decides for how long)", 0)):
        key.append(f'<rect class="{kind}" x="{x}" y="{4 if kind != "store" else 5}" width="14" height="{12 if kind != "store" else 9}"/><text class="soft" x="{x + 20}" y="14">{words}</text>')
        x += 20 + room
    body = "\n".join(key + parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} 184" width="{WIDTH}" role="img" aria-label="A program with three checkpoints of 1 GiB: '
            f'with a plain write it waits {plain:.0f} ms for each, with varve {blocked:.1f} ms">\n<style>{STYLE}</style>\n{body}\n</svg>\n')
