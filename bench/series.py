#!/usr/bin/env python3
"""The benchmarks series.*: whole series of the kinds of bench/corpus, and the recorded sets, packed by `varve pack --each`. bench/run starts it.

usage: series.py --build DIR --dir DIR [--full] [--size N] [--rounds N] [--data DIR] [--seed N] [--kinds NAME,...] NAME...

Each run makes the corpus from another seed, which it reports, unless --seed gives one. Choices in varve are made by the kinds for tuning, and are
judged by the others: a case is named tuning/KIND, judging/KIND or recorded/SET. Every series comes back and is compared.
"""
import importlib.machinery
import importlib.util
import math
import pathlib
import shutil
import subprocess

from pack import LEVELS, Set, Varve, padded, recorded, tarred, unpacked
from telling import arguments, entry, say, skip, tell

HERE = pathlib.Path(__file__).resolve().parent
EQUAL = 1.001  # of the sizes of two levels


def load_corpus():
    loader = importlib.machinery.SourceFileLoader("corpus", str(HERE / "corpus"))
    made = importlib.util.module_from_spec(importlib.util.spec_from_loader("corpus", loader))
    loader.exec_module(made)
    return made


class Bench:
    def __init__(self, args):
        self.build, self.dir, self.full = pathlib.Path(args.build), pathlib.Path(args.dir), args.full
        self.rounds = args.rounds or (9 if self.full else 3)
        self.data = pathlib.Path(args.data) if args.data else None
        self.varve = Varve(self)
        self.packed = {}  # (set, level): what Varve.series gave
        self.sets = list(self.make_sets(args))

    def make_sets(self, args):
        """(use, Set) of every series, one folder below `dir` each."""
        corpus = load_corpus()
        seed = corpus.new_seed() if args.seed is None else args.seed
        say(f"series: seed {seed}")
        tell("series.size", "corpus", "seed", seed, "seed", baseline=True)
        asked = set(args.kinds.split(",")) if args.kinds else set(corpus.KINDS)
        for name, (use, _) in corpus.KINDS.items():
            if not {name, use} & asked:
                continue
            corpus.make(self.dir / "corpus", name, seed, args.size or (8 << 20 if self.full else 1 << 20), 10 if self.full else 5)
            root = self.dir / "corpus" / name
            yield use, Set(name, root, [sorted((f for f in e.rglob("*") if f.is_file()), key=padded) for e in sorted(root.iterdir(), key=padded)])
        data = self.data or unpacked(HERE.parent.parent / "shared/data", self.dir / "recorded")
        for s in recorded(data) if data and not args.kinds else []:
            yield "recorded", s

    def pack(self, s, level):
        if (s.name, level) not in self.packed:
            self.packed[s.name, level] = self.varve.series(s, ["--level", level])
        return self.packed[s.name, level]

    def means(self, bench, metric, values, most):
        """Geometric means of each half and of all; the judging half is what counts."""
        for use in ("tuning", "judging", "recorded", "all"):
            some = [v for u, v in values if use in (u, "all")]
            if some:
                tell(bench, use, metric, math.exp(sum(map(math.log, some)) / len(some)), "x", at_most=most if use != "tuning" else None)

    def size(self):
        ratios = []
        for use, s in self.sets:
            kept, case = self.pack(s, "default")[2], f"{use}/{s.name}"
            zstd = tarred(self, s)[2]
            tell("series.size", case, "raw_bytes", s.bytes, "B", baseline=True)
            tell("series.size", case, "default_bytes", kept, "B")
            tell("series.size", case, "tar_zstd19_bytes", zstd, "B", baseline=True)
            if shutil.which("xz"):
                tell("series.size", case, "tar_xz9e_bytes", self.xz(s), "B", baseline=True)
            tell("series.size", case, "default_vs_tar_zstd19", kept / zstd, "x", at_most=1)
            ratios.append((use, kept / zstd))
        self.means("series.size", "default_vs_tar_zstd19", ratios, 0.85)

    def xz(self, s):
        tar = subprocess.Popen(["tar", "-cf", "-", "-C", s.root, *[f.relative_to(s.root) for f in s.files]], stdout=subprocess.PIPE)
        n = int(subprocess.run("xz -9e -T1 -c | wc -c", shell=True, stdin=tar.stdout, check=True, capture_output=True).stdout)
        if tar.wait():
            raise OSError("tar failed")
        return n

    def levels(self):
        for use, s in self.sets:
            kept = {level: self.pack(s, level)[2] for level in LEVELS}
            for level in LEVELS:
                tell("series.levels", f"{use}/{s.name}", f"{level}_bytes", kept[level], "B")
            tell("series.levels", f"{use}/{s.name}", "default_vs_fast_size", kept["default"] / kept["fast"], "x", at_most=EQUAL)
            tell("series.levels", f"{use}/{s.name}", "max_vs_default_size", kept["max"] / kept["default"], "x", at_most=EQUAL)

    def speed(self):
        """Per second of processor time, of all series together; the best of the rounds of each."""
        for level, encode in zip(LEVELS, (500, 200, None)):
            total, packing, unpacking = 0, 0, 0
            for use, s in self.sets:
                rounds = [self.varve.series(s, ["--level", level]) for _ in range(self.rounds)]
                best = [min(r[i].cpu for r in rounds) for i in range(2)]
                tell("series.speed", f"{use}/{s.name}", f"{level}_encode_per_core", s.bytes / best[0] / 1e6, "MB/s")
                tell("series.speed", f"{use}/{s.name}", f"{level}_decode_per_core", s.bytes / best[1] / 1e6, "MB/s")
                total, packing, unpacking = total + s.bytes, packing + best[0], unpacking + best[1]
            tell("series.speed", "all", f"{level}_encode_per_core", total / packing / 1e6, "MB/s", at_least=encode)
            tell("series.speed", "all", f"{level}_decode_per_core", total / unpacking / 1e6, "MB/s", at_least=700 if level == "default" else None)


BENCHES = {"series.size": Bench.size, "series.levels": Bench.levels, "series.speed": Bench.speed}


def main():
    parser = arguments(BENCHES, "ten checkpoints of 8 MiB of each kind, not five of 1 MiB")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--kinds", help="names of kinds, tuning or judging; without recorded sets")
    args = parser.parse_args()
    if load_corpus().np is None:
        skip("series: there is no NumPy")
    if not shutil.which("zstd"):
        skip("series: zstd is not installed")
    bench = Bench(args)
    for name in args.names:
        BENCHES[name](bench)
    return 0


if __name__ == "__main__":
    entry(main)
