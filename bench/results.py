"""Files of results: what bench/run writes, and bench/compare and bench/page read.

A line is one JSON object. {"run": {...}} says which machine, when, by what command; the lines after it are results, each with
bench, case, metric, value, unit and, where one is set, target and ok; baseline is true of what is no figure of ours. A file may hold several runs, one after another (cat
puts two together): what a later one says of a benchmark takes the place of all that an earlier one said of it.
"""
import json
import math
import pathlib
import re

SIZES = {"--size", "--full", "--ranks", "--data", "--pass"}  # options of bench/run by which the same name is another measurement
UNITS_LESS = {"ns", "us", "ms", "s", "B", "kB", "MB", "GB", "KiB", "MiB", "GiB"}  # times and sizes
WORDS_MORE = {"rate", "ratio", "speed", "less", "saved", "found", "throughput", "encode", "decode", "agnostic", "run", "tree", "list", "zstd"}
WORDS_LESS = {"time", "overhead", "bytes", "stored", "cost", "increase", "longer", "wait", "waits", "criu", "second", "whole"}


class Fault(Exception):
    pass


def text(value):
    if not isinstance(value, str) or not value.isprintable():
        raise TypeError
    return value


def finite(value):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError
    return float(value)


class Row:
    def __init__(self, said, run):
        self.bench, self.case, self.metric, self.unit = (text(said[key]) for key in ("bench", "case", "metric", "unit"))
        self.value = finite(said["value"])
        self.target, self.ok, self.run, self.said = said.get("target"), said.get("ok"), run, said
        self.baseline = said.get("baseline") is True
        self.key = (self.bench, self.case, self.metric)
        if self.target is not None:
            way, _, goal = text(self.target).partition(" ")
            self.way, self.goal_value = {"<=": -1, ">=": 1}[way], finite(float(goal))

    def sizes(self):
        """The options of its run that make its sizes: "--size 16M", or nothing."""
        words = str(self.run.get("command", "")).split()
        told = [f"{w} {words[i + 1]}" if w != "--full" and "=" not in w and i + 1 < len(words) else w for i, w in enumerate(words) if w.split("=")[0] in SIZES]
        return " ".join(sorted(t.replace("=", " ", 1) for t in told))

    def of(self, value):
        return f"{number(value)} {'x' if self.unit == 'ratio' else self.unit}".strip()

    def shown(self):
        return self.of(self.value)

    def goal(self):
        return f"{'<=' if self.way < 0 else '>='} {self.of(self.goal_value)}"

    def better(self):
        """-1: the less the better; 1: the more; 0: it cannot be said, or is not for us to say: a figure of what we are compared with."""
        if self.baseline:
            return 0
        if self.target:
            return self.way
        if self.unit.endswith("/s"):
            return 1
        if self.unit.removesuffix("/epoch") in UNITS_LESS:
            return -1
        words = re.findall(r"[a-z]+", self.metric)
        if set(words) & WORDS_LESS and words[0] != "less":
            return -1
        return 1 if set(words) & WORDS_MORE else 0


def number(value):
    """Four digits that count, without an exponent where a person would not write one."""
    if value == 0 or 0.001 <= abs(value) < 1e4:
        return f"{value:.4g}"
    return f"{value:.3e}" if abs(value) < 0.001 or abs(value) >= 1e12 else f"{value:.0f}"


class Results:
    """Of one machine."""

    def __init__(self, path):
        self.path, self.runs, rows = pathlib.Path(path), [], {}
        try:
            lines = self.path.read_text().splitlines()
        except (OSError, UnicodeDecodeError) as e:
            raise Fault(f"{path}: {e.strerror if isinstance(e, OSError) else 'not a text'}") from e
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                said = json.loads(line)
                if "run" in said:
                    self.runs.append(dict(said["run"].items()))
                    continue
                row = Row(said, self.runs[-1] if self.runs else {})
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
                raise Fault(f"{path}:{number}: not a line of results, which bench/run writes one to a line") from e
            of_bench = rows.setdefault(row.bench, {})
            if of_bench and next(iter(of_bench.values())).run is not row.run:
                of_bench.clear()
            of_bench[row.key] = row
        self.rows = {row.key: row for of_bench in rows.values() for row in of_bench.values()}
        if not self.rows:
            raise Fault(f"{path}: no results in it")

    def machine(self):
        return self.runs[-1] if self.runs else {}
