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

from pack import LEVELS, Cost, Set, Varve, borg, copied, padded, patched, recorded, remove, restic, tarred, unpacked
from telling import arguments, entry, say, skip, tell

HERE = pathlib.Path(__file__).resolve().parent
EQUAL = 1.001  # of the sizes of two levels
DELTAS = 20    # epochs after the keyframe, for series.restart


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
        self.args, self.seed = args, load_corpus().new_seed() if args.seed is None else args.seed
        self.made = None
        say(f"series: seed {self.seed}")

    @property
    def sets(self):
        if self.made is None:
            self.made = list(self.make_sets(self.args))
        return self.made

    def make_sets(self, args):
        """(use, Set) of every series, one folder below `dir` each."""
        corpus, seed = load_corpus(), self.seed
        tell("series.size", "corpus", "seed", seed, "seed", baseline=True)
        asked = set(args.kinds.split(",")) if args.kinds else set(corpus.KINDS)
        for name, (use, _) in corpus.KINDS.items():
            if not {name, use} & asked:
                continue
            corpus.make(self.dir / "corpus", name, seed, args.size or (8 << 20 if self.full else 1 << 20), 10 if self.full else 5)
            root = self.dir / "corpus" / name
            yield use, Set(name, root, [sorted((f for f in e.rglob("*") if f.is_file()), key=padded) for e in sorted(root.iterdir(), key=padded)])
        data = self.data or unpacked(HERE.parent.parent / "shared/data", self.dir / "recorded", left_out=())
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
            for name, peer in self.peers():
                tell("series.size", case, f"{name}_bytes", peer(s), "B", baseline=True)
            tell("series.size", case, "default_vs_tar_zstd19", kept / zstd, "x", at_most=1)
            ratios.append((use, kept / zstd))
        self.means("series.size", "default_vs_tar_zstd19", ratios, 0.85)

    def peers(self):
        """(name, function from a set to bytes); those that take minutes with --full only."""
        yield "zstd3_patch_from", lambda s: patched(self, s)[2]
        for name, measure in (("xz", self.xz), ("borg", lambda s: borg(self, s)[2]), ("restic", lambda s: restic(self, s)[2])) if self.full else ():
            if shutil.which(name):
                yield {"xz": "tar_xz9e"}.get(name, name), measure

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
                best = self.best_of(s, ["--level", level])
                tell("series.speed", f"{use}/{s.name}", f"{level}_encode_per_core", s.bytes / best[0] / 1e6, "MB/s")
                tell("series.speed", f"{use}/{s.name}", f"{level}_decode_per_core", s.bytes / best[1] / 1e6, "MB/s")
                total, packing, unpacking = total + s.bytes, packing + best[0], unpacking + best[1]
            tell("series.speed", "all", f"{level}_encode_per_core", total / packing / 1e6, "MB/s", at_least=encode)
            if level == "default":
                self.judge_default(total, packing, unpacking)
            else:
                tell("series.speed", "all", f"{level}_decode_per_core", total / unpacking / 1e6, "MB/s")

    def best_of(self, s, options):
        """Seconds of packing and of unpacking."""
        rounds = [self.varve.series(s, options) for _ in range(self.rounds)]
        return [min(r[i].cpu for r in rounds) for i in range(2)]

    def judge_default(self, total, packing, unpacking):
        """Decoding may also be as fast as nine tenths of cp. Deltas are compared with coding alone."""
        copy = total / sum(min(copied(self.dir, s).cpu for _ in range(self.rounds)) for _, s in self.sets) / 1e6
        alone = sum(self.best_of(s, ["-c", "delta=none"])[0] for _, s in self.sets)
        tell("series.speed", "all", "copy_per_core", copy, "MB/s", baseline=True)
        tell("series.speed", "all", "default_decode_per_core", total / unpacking / 1e6, "MB/s", at_least=min(700, 0.9 * copy))
        tell("series.speed", "all", "with_deltas_vs_without", packing / alone, "x", at_most=1.5)

    def training(self):
        """The series of training_series.py against the size that a coder which sees the checkpoint before could have."""
        import training_series as made
        size = made.zstd()
        if not size:
            skip("series.training: there is no library of zstd")
        n, epochs = self.args.size or (8 << 20 if self.full else 1 << 20), 10 if self.full else 5
        for name, make in made.SERIES.items():
            states = list(make(load_corpus().np.random.default_rng(self.seed), n, epochs))
            s = self.written(name, states)
            kept, least = self.varve.series(s, [])[2], made.ideal(states, size)
            tell("series.training", name, "raw_bytes", s.bytes, "B", baseline=True)
            tell("series.training", name, "default_bytes", kept, "B")
            tell("series.training", name, "ideal_bytes", least, "B", baseline=True)
            tell("series.training", name, "default_vs_ideal", kept / least, "x", at_most=1.05)
            if name == "d":
                self.varve.pack(s, [])
                first, *later = self.varve.grown
                tell("series.training", name, "first_vs_largest_later", first / max(later), "x", at_least=10)
            remove(s.root)

    def written(self, name, states):
        """A set: an archive of NumPy for each state."""
        root, checkpoints = self.dir / "training" / name, []
        for i, state in enumerate(states):
            (root / f"e{i}").mkdir(parents=True)
            load_corpus().np.savez(root / f"e{i}/state.npz", **state)
            checkpoints.append([root / f"e{i}/state.npz"])
        return Set(name, root, checkpoints)

    def restart(self):
        """The last of 20 epochs in which 1 % of the elements change, against the first, which is a keyframe."""
        import training_series as made
        rng, seconds = load_corpus().np.random.default_rng(self.seed), {}
        s = self.written("restart", made.sparse_bf16(rng, self.args.size or (64 << 20 if self.full else 8 << 20), DELTAS + 1))
        for delta in "auto", "none":
            store = self.dir / f"store-{delta}"
            for files in s.checkpoints:
                Cost().run([self.varve.command, "pack", "-q", "-j1", "-c", f"delta={delta}", store, "set", *[f.relative_to(s.root) for f in files]], cwd=s.root)
            for epoch in 1, DELTAS + 1:
                seconds[delta, epoch] = min(self.unpacked(store, epoch) for _ in range(max(5, self.rounds)))
                tell("series.restart", f"delta={delta}", "keyframe" if epoch == 1 else "last_epoch", seconds[delta, epoch] * 1e3, "ms")
            remove(store)
        remove(s.root)
        for delta, most in ("auto", 1.3), ("none", None):
            tell("series.restart", f"delta={delta}", "last_vs_keyframe", seconds[delta, DELTAS + 1] / seconds[delta, 1], "x", at_most=most)

    def unpacked(self, store, epoch):
        """Processor time of a restart, without the start of the command."""
        back = self.dir / "back"
        cost = Cost().run([self.varve.command, "unpack", "-q", "-j1", store, f"set@{epoch}", "-C", back])
        remove(back)
        self.varve.leave_out_start(cost, 1)
        return cost.cpu


BENCHES = {"series.size": Bench.size, "series.levels": Bench.levels, "series.speed": Bench.speed,
           "series.training": Bench.training, "series.restart": Bench.restart}


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
