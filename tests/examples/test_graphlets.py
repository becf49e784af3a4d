#!/usr/bin/env python3
# ctest: PROCESSORS 2
"""examples/graphlets counts what a brute force over all subsets of vertices counts, reads what it should and refuses the rest, and
ends with the same table however many threads it has, and whenever it was killed."""
import array
import itertools
import math
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM = pathlib.Path(os.environ["VARVE_BUILD"], "examples", "graphlets")
ENV = {k: v for k, v in os.environ.items() if not k.startswith("VARVE_")}
KINDS = ("road", "triangulation", "hexagonal", "events")
WIDTH = {2: 1, 3: 4, 4: 15, 5: 73}
# What is known of Przulj's orbits: the edges that lead from a node to the next level, from there to the next, and so on.
LEVELS = """1 11 2 2 111 21 12 3 22 12 21 3 22 3 3 1111 211 22 112 121 22 31 13 4 121 22 31 112 22 211 31 13 22 4 22 122 221 23 32
13 23 31 4 22 4 122 221 32 31 24 33 23 22 32 24 4 13 31 4 23 32 4 24 33 32 24 32 4 33 4 33 4 4""".split()


def run(*words, status=0):
    done = subprocess.run([str(PROGRAM), *map(str, words)], env=ENV, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == status, f"{words}: status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout if status == 0 else done.stderr


def table(name="table"):
    counts = array.array("I")
    counts.frombytes(pathlib.Path(folder, name).read_bytes())
    return counts


def count(graph, *words, nodes=4):
    """The rows of the table."""
    run("--graph", graph, "--nodes", nodes, "--dump", "table", *words)
    cells, width = table(), WIDTH[nodes]
    return [list(cells[i:i + width]) for i in range(0, len(cells), width)]


def write(edges, name="graph"):
    pathlib.Path(folder, name).write_text("".join(f"{u} {v}\n" for u, v in edges))
    return name


def neighbours(n, edges):
    near = [set() for _ in range(n)]
    for u, v in edges:
        near[u].add(v)
        near[v].add(u)
    return near


# ---- orbits, a second time: a node's orbit is its graph with the node put first, up to the order of the others -------

def connected(k, edges):
    near, seen, todo = neighbours(k, edges), {0}, [0]
    while todo:
        todo += (new := near[todo.pop()] - seen)
        seen |= new
    return len(seen) == k


def rooted(k, edges, root):
    others = [v for v in range(k) if v != root]
    best = None
    for order in itertools.permutations(others):
        place = {v: i for i, v in enumerate((root, *order))}
        drawn = sorted(tuple(sorted((place[u], place[v]))) for u, v in edges)
        best = drawn if best is None or drawn < best else best
    return k, tuple(best)


def levels(k, edges, root):
    near, seen, here, out = neighbours(k, edges), {root}, {root}, ""
    while len(seen) < k:
        beyond = set().union(*(near[v] for v in here)) - seen
        out += str(sum(len(near[v] & beyond) for v in here))
        seen, here = seen | beyond, beyond
    return out


def read_orbits():
    """Orbit numbers by rooted graph, from the program's own list; checked against what is known of them."""
    known, graphlets = {}, set()
    lines = run("--orbits").splitlines()
    assert len(lines) == 73
    for number, line in enumerate(lines):
        m = re.fullmatch(r"orbit +(\d+)  graphlet +(\d+)  nodes ((?: ?\d)+)  edges ((?: ?\d\d)+)", line)
        edges = [(int(e[0]), int(e[1])) for e in m[4].split()]
        k = 1 + max(map(max, edges))
        roots = [int(v) for v in m[3].split()]
        assert int(m[1]) == number and connected(k, edges), line
        assert all(levels(k, edges, v) == LEVELS[number] for v in roots), line
        names = {rooted(k, edges, v) for v in roots}
        assert len(names) == 1, f"not one orbit: {line}"
        name = names.pop()
        assert name not in known, f"twice: {line}"
        known[name] = number
        graphlets.add(m[2])
        assert sum(rooted(k, edges, v) == name for v in range(k)) == len(roots), f"not the whole orbit: {line}"
    assert len(graphlets) == 30
    return known


def brute(n, edges, nodes, known, cache):
    near = neighbours(n, edges)
    rows = [[0] * WIDTH[nodes] for _ in range(n)]
    for k in range(2, nodes + 1):
        pairs = list(itertools.combinations(range(k), 2))
        for subset in itertools.combinations(range(n), k):
            drawn = tuple(p for p in pairs if subset[p[1]] in near[subset[p[0]]])
            if (k, drawn) not in cache:
                cache[k, drawn] = [known[rooted(k, drawn, v)] for v in range(k)] if connected(k, drawn) else []
            for v, orbit in zip(subset, cache[k, drawn]):
                rows[v][orbit] += 1
    return rows


def check_brute():
    known, cache, rng = read_orbits(), {}, random.Random(7)
    for n, density in ((7, 1.0), (9, 0.15), (10, 0.3), (11, 0.5), (12, 0.25), (10, 0.8), (12, 0.6), (13, 0.45)):
        edges = [e for e in itertools.combinations(range(n), 2) if rng.random() < density] + [(0, n - 1)]
        order = list(range(n))  # the lowest vertex is not always the same one
        rng.shuffle(order)
        edges = [(order[u], order[v]) for u, v in edges]
        for nodes in (2, 3, 4, 5):
            if n < 11 or nodes > 3:
                expect = brute(n, edges, nodes, known, cache)
                got = count(write([(0, 0), (n - 1, n - 1)] + edges), "--threads", 2, nodes=nodes)
                assert got == expect, (n, density, nodes)
    missed = set(range(73)) - {orbit for orbits in cache.values() for orbit in orbits}
    assert not missed, f"orbits that no graph here has: {missed}"


# ---- closed forms, larger than a brute force could be ----------------------------------------------------------------

def check_forms():
    c = math.comb
    n = 100
    rows = count(write((i, (i + 1) % n) for i in range(n)), nodes=5)  # a cycle
    assert all({o: x for o, x in enumerate(r) if x} == {0: 2, 1: 2, 2: 1, 4: 2, 5: 2, 15: 2, 16: 2, 17: 1} for r in rows)
    rows = count(write((i, i + 1) for i in range(n - 1)), nodes=5)  # a path
    assert rows[0][:6] == [1, 1, 0, 0, 1, 0] and rows[50][15:18] == [2, 2, 1] and rows[1][15:18] == [1, 1, 0]
    rows = count(write(itertools.combinations(range(15), 2)), nodes=5)  # a clique
    want = {0: 14, 3: c(14, 2), 14: c(14, 3), 72: c(14, 4)}
    assert all({o: x for o, x in enumerate(r) if x} == want for r in rows)
    # a hub of many leaves: more vertices around one than the program has rows for
    leaves = 6000
    rows = count(write((leaves, i) for i in range(leaves)), "--threads", 2, nodes=3)
    assert rows[leaves] == [leaves, 0, c(leaves, 2), 0] and rows[17] == [1, leaves - 1, 0, 0]
    leaves = 70
    rows = count(write((0, i) for i in range(1, leaves + 1)), nodes=5)
    assert (rows[0][0], rows[0][2], rows[0][7], rows[0][23]) == (leaves, c(leaves, 2), c(leaves, 3), c(leaves, 4))
    assert (rows[9][1], rows[9][6], rows[9][22]) == (leaves - 1, c(leaves - 1, 2), c(leaves - 1, 3))


# ---- what the generators draw ----------------------------------------------------------------------------------------

def largest_component(near):
    seen, best = set(), 0
    for start in range(len(near)):
        if start in seen:
            continue
        seen.add(start)
        todo, size = [start], 0
        while todo:
            size += 1
            new = near[todo.pop()] - seen
            seen |= new
            todo += new
        best = max(best, size)
    return best


def check_kinds():
    mean = {"road": (1.9, 2.3), "triangulation": (5.5, 6), "hexagonal": (2.8, 3), "events": (2.8, 3)}
    triangles = {"road": 0, "hexagonal": 0, "events": 0}
    for kind in KINDS:
        rows = count(kind, "--vertices", 1600, nodes=5)
        n, total = len(rows), [sum(column) for column in zip(*rows)]
        assert n == 1600
        assert mean[kind][0] <= total[0] / n <= mean[kind][1], (kind, total[0] / n)
        assert triangles.get(kind, total[3]) == total[3]
        # every star has one middle and its leaves, every path two ends, every paw one foot ...
        for one, other, ratio in ((1, 2, 2), (6, 7, 3), (4, 5, 1), (9, 11, 1), (10, 9, 2), (12, 13, 1), (22, 23, 4), (15, 16, 1),
                                  (16, 17, 2), (19, 18, 2), (20, 21, 1), (37, 36, 2), (68, 69, 4)):
            assert total[one] == ratio * total[other], (kind, one, other)
        assert all(r[2] + r[3] == r[0] * (r[0] - 1) // 2 for r in rows)  # every pair of neighbours: a path or a triangle
        assert rows == count(kind, "--vertices", 1600, "--seed", 1, nodes=5)
        assert rows != count(kind, "--vertices", 1600, "--seed", 2, nodes=5)
        assert [r[:15] for r in rows] == count(kind, "--vertices", 1600)
        # written and read again it is the same graph
        run("--graph", kind, "--vertices", 1600, "--write", "kind.mtx")
        assert rows == count("kind.mtx", nodes=5)
        # nearly all of it hangs together, and neighbours have near numbers
        run("--graph", kind, "--vertices", 10000, "--nodes", 2, "--write", "kind.mtx", "--dump", "table")
        size, *entries = pathlib.Path(folder, "kind.mtx").read_text().splitlines()[1:]
        edges = [(int(u) - 1, int(v) - 1) for u, v in map(str.split, entries)]
        near = neighbours(10000, edges)
        assert size == f"10000 10000 {len(edges)}" and [len(vs) for vs in near] == list(table())
        assert largest_component(near) > 9000, kind
        assert sum(abs(u - v) < 64 for u, v in edges) > 0.95 * len(edges), kind
    for n in (1, 2, 3, 5, 33, 1057):
        assert re.search(rf": {n - n % math.isqrt(n)} vertices", run("--graph", "events", "--vertices", n))


# ---- files -----------------------------------------------------------------------------------------------------------

def check_files():
    def put(text, name="file"):
        pathlib.Path(folder, name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return name

    house = count(put("0 1\n0 2\n1 3\n2 3\n2 4\n3 4\n"), nodes=5)
    assert house[4][52] == 1 and house[0][51] == 1 and house[2][53] == 1
    market = "%%MatrixMarket matrix coordinate "
    for same in ("# SNAP\n% KONECT\n\n0\t1\n0 2 0.5 late\n 1 3\r\n3 2\n2 3\n4 2\n3 4\n4 4\n2 0\n3 4",
                 "1 2 1\n1 3 1\n2 4 1\n3 4 1\n3 5 1\n4 5 1\n",
                 market + "pattern symmetric\n% a comment\n%\n\n5 5 6\n2 1\n3 1\n4 2\n4 3\n5 3\n5 4\n",
                 market.upper().replace("%%MATRIXMARKET", "%%MatrixMarket") + "Real General\n5 5 8\n1 2 1e-3\n1 3 -1\n2 4 0\n"
                 "4 2 7\n3 4 1\n3 5 1\n4 5 .5\n5 5 1\n",
                 market + "integer skew-symmetric\n5 5 6\n2 1 3\n3 1 1\n4 2 1\n4 3 1\n5 3 1\n5 4 -1\n"):
        assert count(put(same), nodes=5) == house, same
        assert "file: 5 vertices, 6 edges, largest degree 3" in run("--graph", "file"), same
    assert count(put(market + "pattern general\n4 4 1\n1 2\n"), nodes=2) == [[1], [1], [0], [0]]  # vertices without edges
    assert count(put(market + "pattern general\n3 3 0\n"), nodes=5) == [[0] * 73] * 3
    assert count(put("7 7\n"), nodes=2) == [[0]] * 7  # counted from 1, a loop

    pattern = market + "pattern general\n"
    for text, line, word in (
            ("", None, "no edges"), ("# nothing\n", None, "no edges"),
            ("0 1\n\n# x\n3\n", 4, "second vertex is missing"), ("0 1\n-1 2\n", 2, "'-1'"), ("0 1\n1 two\n", 2, "'two'"),
            ("0 1\n1,2\n", 2, "'1,2'"), ("0x1 2\n", 1, "'0x1'"), ("1.5 2\n", 1, "'1.5'"),
            ("0 99999999999999999999999\n", 1, "more than"), ("0 4294967296\n", 1, "more than"), ("5 2147483647\n", 1, "more than"),
            (b"0 1\n1 2\n\0\0\n", 3, "that is 0"), (b"0 1\n1 2\n\x002 3", 3, "that is 0"), (b"0 1\n2 3\x004 5", 2, "that is 0"), (b"0 1\n" + 3000 * b"\0", 2, "that is 0"), ("0 1" + 5000 * " 1" + "\n", 1, "bytes"),
            (bytes(range(128, 256)) * 4, 1, "not a number"),
            (b"0 1\r1 2\r2 0\r", 1, "carriage return"), (b"# x\n0 1\n1 2\r2 0\n", 3, "carriage return"), (b"0 1\r" * 5000, 1, "carriage return"),
            (b"# x\r0 1\r", 1, "carriage return"),
            ("%%MatrixMarket matrix array real general\n2 2\n1\n1\n1\n1\n", 1, "coordinate"), ("%%MatrixMarket\n", 1, "coordinate"),
            (market + "complex general\n1 1 0\n", 1, "complex"), (market + "pattern hermitian\n1 1 0\n", 1, "hermitian"),
            (market + "pattern\n1 1 0\n", 1, "symmetry"), (pattern, 2, "size is missing"), (pattern + "% x\n3 4 1\n1 2\n", 3, "square"),
            (pattern + "0 0 0\n", 2, "without rows"), (pattern + "3 3\n", 2, "entries is missing"),
            (pattern + "3 3 x\n", 2, "'x'"), (pattern + "3 3 -1\n", 2, "'-1'"), (pattern + "99999999999 99999999999 1\n", 2, "more than"),
            (pattern + "3 3 2\n1 2\n", 4, "after 1 of 2"), (pattern + "3 3 1\n1 2\n2 3\n", 4, "announced"),
            (pattern + "3 3 18446744073709551615\n1 2\n", 2, "more than"), (pattern + "3 3 18446744073709551614\n1 2\n", 4, "after 1"),
            (pattern + "3 3 1\n0 2\n", 3, "count from 1"), (pattern + "3 3 1\n1 4\n", 3, "more than 3"),
            (pattern + "3 3 1\n1 2 5\n", 3, "more on the line"), (market + "real general\n3 3 1\n1 2\n", 3, "value is missing"),
            (market + "real general\n3 3 1\n1 2 x\n", 3, "value is missing")):
        said = run("--graph", put(text), status=1)
        assert said.startswith(f"graphlets: file:{line}: " if line else "graphlets: file: "), (text, said)
        assert word in said and said.count("\n") == 1, (text, said)
    assert "begins with" in run("--graph", put("3 3 1\n1 2\n", "bare.mtx"), status=1)
    assert "cannot open 'nowhere'" in run("--graph", "nowhere", status=1)
    assert "cannot be read" in run("--graph", ".", status=1)
    # few bytes that ask for much memory: refused, if the machine has not got it
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    if memory < 73 * 4 * 2147483646:
        assert "MiB" in run("--graph", put("0 2147483646\n"), "--nodes", 5, status=1)


# ---- threads, checkpoints, restarts ----------------------------------------------------------------------------------

SMALL = ("--graph", "triangulation", "--vertices", 2500, "--nodes", 5)


def check_threads():
    tables = set()
    for threads in (1, 2, 5):
        run(*SMALL, "--threads", threads, "--dump", "table", "--checkpoints", threads)
        tables.add(table().tobytes())
    assert len(tables) == 1
    run(*SMALL, "--layout", "columns", "--dump", "columns")
    rows, columns = table(), table("columns")
    n = len(rows) // 73
    assert len(columns) == len(rows) and all(columns[o * n:(o + 1) * n] == rows[o::73] for o in range(73))


def check_parts():
    run(*SMALL, "--checkpoints", 4, "--checkpoint-dump", "parts", "--store", "parts.store", "--dump", "table")
    parts = [table(f"parts/{i:04}.bin") for i in range(1, 5)]
    assert parts[3] == table() and len(os.listdir(pathlib.Path(folder, "parts"))) == 4
    for before, after in zip(parts, parts[1:]):
        assert before != after and all(a <= b for a, b in zip(before, after))
    # what was saved is what was there
    for epoch, part in enumerate(parts, 1):
        subprocess.run([os.environ["VARVE_BIN"], "extract", "-q", "parts.store", f"graphlets@{epoch}:counts", "-o", "epoch.raw"],
                       env=ENV, cwd=folder, check=True)
        assert table("epoch.raw") == part, epoch


def killed(lines, *words):
    """Runs the program until it has told of so many epochs, and kills it."""
    p = subprocess.Popen([str(PROGRAM), *map(str, words)], env=ENV, cwd=folder, stdout=subprocess.PIPE, text=True)
    for line in p.stdout:
        lines -= line.startswith("epoch")
        if lines == 0:
            break
    p.kill()
    p.stdout.close()
    assert p.wait(timeout=60) == -9, f"it had ended: {p.returncode}"


def check_kills():
    for options, layout in (("", "rows"), ("mode=sync", "columns")):
        store = f"kill.{layout}"
        saved = ("--store", store, "--options", options, "--layout", layout)
        run(*SMALL, "--layout", layout, "--dump", "whole")
        for lines, threads in ((3, 2), (25, 1), (9, 3)):
            killed(lines, *SMALL, *saved, "--checkpoints", 300, "--threads", threads)
        # what is left is counted in other parts than what is there
        out = run(*SMALL, *saved, "--checkpoints", 7, "--threads", 2, "--dump", "table")
        epoch, at = map(int, re.search(r"^restarted from epoch (\d+) at vertex (\d+)$", out, re.M).groups())
        assert epoch >= 37 and 308 <= at < 2500, out
        assert table() == table("whole")
        os.unlink(pathlib.Path(folder, "table"))
        out = run(*SMALL, *saved, "--dump", "table")  # nothing is left to do
        assert "at vertex 2500\n" in out and "\nepoch" not in out, out
        assert table() == table("whole")


def check_device():
    """The table in a device's memory: the same counts, whole or after a kill, and epochs that restart on either side."""
    tried = subprocess.run([str(PROGRAM), *map(str, SMALL), "--device", "--dump", "table"], env=ENV, cwd=folder, capture_output=True, text=True)
    if tried.returncode and "CUDA" in tried.stderr:
        print(f"no device: {tried.stderr.strip()}")
        return
    assert tried.returncode == 0, tried.stderr
    run(*SMALL, "--dump", "whole")
    assert table() == table("whole")
    killed(20, *SMALL, "--device", "--store", "device", "--checkpoints", 300, "--threads", 2)
    out = run(*SMALL, "--store", "device", "--checkpoints", 7, "--dump", "table")
    assert "restarted from epoch" in out and table() == table("whole"), out
    killed(20, *SMALL, "--store", "host", "--checkpoints", 300)
    out = run(*SMALL, "--device", "--store", "host", "--checkpoints", 7, "--dump", "table")
    assert "restarted from epoch" in out and table() == table("whole"), out


def check_misuse():
    def no_space():
        """A disk that takes no long files."""
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))

    few = ("--graph", "road", "--vertices", 400)
    run(*few, "--store", "road")
    assert "another graph" in run(*few, "--store", "road", "--seed", 9, status=1)
    for other in (("--nodes", 5), ("--layout", "columns"), ("--vertices", 900)):
        assert "choose another --lineage" in run(*few, "--store", "road", *other, status=1)
    run(*few, "--store", "road", "--seed", 9, "--lineage", "other")
    assert "restarted from epoch 10 at vertex 400" in run(*few, "--store", "road")
    pathlib.Path(folder, "plain").write_text("")
    assert "plain" in run(*few, "--store", "plain", status=1)
    assert "nonsense" in run(*few, "--store", "s", "--options", "nonsense=1", status=1)
    assert "cannot write" in run(*few, "--dump", "no/where", status=1)
    assert "cannot make" in run(*few, "--checkpoint-dump", "plain/parts", status=1)
    if b"__tsan_init" not in PROGRAM.read_bytes():  # that runtime needs long files itself
        full = subprocess.run([str(PROGRAM), *map(str, few), "--store", "full"], env=ENV, cwd=folder, preexec_fn=no_space,
                              capture_output=True, text=True)
        assert full.returncode == 1 and re.match(r"graphlets: .*full", full.stderr), full.stderr
    for words in (("--nodes", 1), ("--nodes", 6), ("--nodes", "x"), ("--nodes", ""), ("--threads", 0), ("--vertices", -1),
                  ("--layout", "rings"), ("--seed",), ("--what", 1), ("road",)):
        assert "usage: graphlets" in run(*words, status=2), words
    device = subprocess.run([str(PROGRAM), *map(str, few), "--device"], env=ENV, capture_output=True, text=True)
    assert device.returncode == 0 or "CUDA" in device.stderr, device.stderr  # without a device it says so


if not PROGRAM.exists():
    print("the examples were not built")
    sys.exit(77)
for check in (check_brute, check_forms, check_kinds, check_files, check_threads, check_parts, check_kills, check_device,
              check_misuse):
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        check()
        print(f"{check.__name__}: {time.monotonic() - start:.1f} s")
