#!/usr/bin/env python3
"""The benchmarks pack.*: sets of checkpoint files through `varve pack` and back, against what people use. bench/run starts it.

usage: pack.py --build DIR --dir DIR [--full] [--size N] [--rounds N] [--data DIR] NAME...

Bytes kept are those of all files in the store, metadata and all. Checkpoints are packed and unpacked by a command for each, unless it says that
one command did all. A rate is of the files' bytes, per second of processor time of the
command and its children: what one core does. Every set comes back and is compared before its figures are printed.
All schemes are measured on the disk. What is judged by its rate is measured in a folder in memory, too, where no disk takes part: decoding by
`varve unpack --test`, which reads, decodes and checks, and leaves no files. All of `varve unpack` is beside it, there and on the disk, and what cp
takes (on the disk with sync): that much, or nearly, anything takes that leaves the files.
"""
import filecmp
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from telling import arguments, die, entry, say, tell

PAPER = ("agnostic", "agnostic-block", "aware", "aware-block")
LEVELS = ("fast", "default", "max")
# The number in a file's name that tells the moment of its checkpoint, where folders do not
MOMENTS = (r"cm1rst_\d+_(\d+)\.dat$", r"restart\.melt\.(\d+)\.", r"\.t(\d+)\.r\d+\.snap$", r"\.(\d+)\.bin$")
DOUBLES = ("hydro", "enzo")        # from hydro codes: auto against agnostic >= +26 %
PARTICLES = ("particles", "lammps")  # >= +13 %
MiB = 1 << 20
MEMORY = pathlib.Path("/dev/shm")
TICKING = 10  # seconds of processor time in which the kernel's ticks tell the command's part to some three in a hundred


# ---- commands ----

class Cost:
    """Of commands: processor time and wall time, seconds; the most memory that one of them had, bytes."""

    def __init__(self):
        self.cpu = self.user = self.wall = 0.0
        self.memory = 0

    def run(self, words, out=subprocess.DEVNULL, **how):
        start = time.monotonic()
        child = subprocess.Popen([str(w) for w in words], stdout=out, stderr=subprocess.PIPE, **how)
        said = child.stderr.read()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        child.stderr.close()
        self.wall += time.monotonic() - start
        self.cpu += used.ru_utime + used.ru_stime
        self.user += used.ru_utime
        self.memory = max(self.memory, used.ru_maxrss * 1024)
        if child.returncode:
            die(f"'{' '.join(map(str, words[:6]))} ...' failed with status {child.returncode}: {said.decode(errors='replace').strip()}")
        return self


def size_of(folder):
    return sum(p.stat().st_size for p in pathlib.Path(folder).rglob("*") if p.is_file())


def remove(folder):
    shutil.rmtree(folder, ignore_errors=True)


# ---- sets ----

class Set:
    """Checkpoints of one run, oldest first, each a list of files; `root` is the folder that their names are relative to."""

    def __init__(self, name, root, checkpoints):
        self.name, self.root, self.checkpoints = name, root, checkpoints
        self.files = [f for c in checkpoints for f in c]
        self.bytes = sum(f.stat().st_size for f in self.files)


def padded(path):
    """For sorting: numbers by their value."""
    return re.sub(r"\d+", lambda m: m[0].zfill(20), str(path))


def moment_of(path, root):
    """What the files of one checkpoint have in common, a text that grows with time: their folder, or a number in their names."""
    folder = path.parent.relative_to(root)
    found = [m for m in (re.search(pattern, path.name) for pattern in MOMENTS) if m] if not folder.parts else []
    return padded(found[0][1] if found else "" if not folder.parts else folder)


def recorded(folder):
    """Each folder below is a set."""
    for root in sorted(p for p in folder.iterdir() if p.is_dir()):
        name = root.name
        inside = list(root.iterdir())
        while len(inside) == 1 and inside[0].is_dir():
            root, inside = inside[0], list(inside[0].iterdir())
        by_moment = {}
        for f in sorted((f for f in root.rglob("*") if f.is_file() and not f.is_symlink()), key=padded):
            by_moment.setdefault(moment_of(f, root), []).append(f)
        if by_moment:
            yield Set(name, root, [by_moment[m] for m in sorted(by_moment)])


def unpacked(archives, folder, left_out=("graphs", "gdv")):
    """The archives of recorded data that lie beside the sources, where they do; those left out are no files of checkpoints."""
    if not shutil.which("zstd"):
        return None
    for packed in sorted(archives.glob("*.tar.zst")):
        if packed.name.split(".")[0] in left_out:
            continue
        to = folder / packed.name.split(".")[0]
        to.mkdir(parents=True)
        subprocess.run(["tar", "-I", "zstd -d --long=27", "-xf", packed, "-C", to], check=True)
    return folder if folder.exists() else None


# ---- varve ----

class Varve:
    def __init__(self, bench):
        self.bench, self.command = bench, bench.build / "varve"
        self.start = min(Cost().run([self.command, "--version"]).cpu for _ in range(5))
        self.grown = []     # bytes that the store grew by at each checkpoint of the last pack()
        self.tested = None  # the cost of unpacking all of that, but for the files

    def pack(self, s, options, threads=1, place=None, **how):
        """The whole series, with the store and what comes back in `place`; cost of packing, of unpacking all of it, bytes in the store."""
        store, back = ((place or self.bench.dir) / name for name in ("store", "back"))
        packing, unpacking, testing, kept = Cost(), Cost(), Cost(), 0
        remove(store)
        self.grown = []
        for files in s.checkpoints:
            names = [f.relative_to(s.root) for f in files]
            packing.run([self.command, "pack", "-j", str(threads), *options, store, "set", *names], cwd=s.root, **how)
            self.grown.append(size_of(store) - kept)
            kept += self.grown[-1]
        for epoch, files in enumerate(s.checkpoints, 1):  # each to where nothing was: ext4 takes its time over places of files just deleted
            unpacking.run([self.command, "unpack", "-j", str(threads), store, f"set@{epoch}", "-C", back / str(epoch)], **how)
            self.compare(s, options, files, s.root, back / str(epoch))
            testing.run([self.command, "unpack", "-j", str(threads), store, f"set@{epoch}", "--test"], **how)
        remove(back)
        remove(store)
        for cost in packing, unpacking, testing:
            self.leave_out_start(cost, len(s.checkpoints))
        self.tested = testing
        return packing, unpacking, kept

    def encode(self, s, options, place):
        """Packing alone."""
        store, cost = place / "store", Cost()
        for files in s.checkpoints:
            cost.run([self.command, "pack", "-j", "1", *options, store, "set", *[f.relative_to(s.root) for f in files]], cwd=s.root)
        remove(store)
        self.leave_out_start(cost, len(s.checkpoints))
        return cost

    def compare(self, s, options, files, root, back):
        for f in files:
            if not filecmp.cmp(f, back / f.relative_to(root), shallow=False):
                die(f"{s.name}, {' '.join(options)}: '{f.name}' came back as another file")

    def leave_out_start(self, cost, times):
        """Loading a program of a dozen libraries is no matter of packing."""
        cost.cpu -= min(self.start * times, cost.cpu / 2)
        cost.user -= min(self.start * times, cost.user / 2)

    def series(self, s, options, threads=1):
        """The same by one command that packs all checkpoints, each below a folder of its own, and one that unpacks them."""
        store, back, staged = (self.bench.dir / name for name in ("store", "back", "staged"))
        folders = [f"{i:04}" for i in range(1, len(s.checkpoints) + 1)]
        remove(store)
        for folder, files in zip(folders, s.checkpoints):
            for f in files:
                to = staged / folder / f.relative_to(s.root)
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(f, to)
        packing = Cost().run([self.command, "pack", "-j", str(threads), *options, store, "set", "--each", *folders], cwd=staged)
        kept = size_of(store)
        unpacking = Cost().run([self.command, "unpack", "-j", str(threads), store, "set", "--each", "-C", back])
        self.compare(s, options, [f for f in staged.rglob("*") if f.is_file()], staged, back)
        for folder in (store, back, staged):
            remove(folder)
        self.leave_out_start(packing, 1)
        self.leave_out_start(unpacking, 1)
        return packing, unpacking, kept

    def in_memory(self, s, options):
        """Packing, unpacking, and unpacking without files in memory, of several rounds the least: what a rate is judged by. None where there is no room."""
        if not self.bench.memory_for(s):
            return None
        rounds = [(*self.pack(s, options, place=self.bench.memory)[:2], self.tested) for _ in range(self.bench.rounds)]
        return [min(costs, key=lambda cost: cost.cpu) for costs in zip(*rounds)]

    def ratio(self, s, options):
        return s.bytes / self.pack(s, options)[2]


# ---- what people use ----

def per_file(bench, s, squeeze, expand):
    """A command for each file, from and to standard streams."""
    there, back, kept = Cost(), Cost(), 0
    coded = bench.dir / "coded"
    for f in s.files:
        with open(f, "rb") as source, open(coded, "wb") as to:
            there.run(squeeze, out=to, stdin=source)
        kept += coded.stat().st_size
        with open(coded, "rb") as source:
            back.run(expand, stdin=source)
    coded.unlink()
    return there, back, kept


def tarred(bench, s):
    """zstd -19 --long=27 of one tar of the series."""
    tar, coded = bench.dir / "set.tar", bench.dir / "set.tar.zst"
    subprocess.run(["tar", "-cf", tar, "-C", s.root, *[f.relative_to(s.root) for f in s.files]], check=True)
    there = Cost().run(["zstd", "-q", "-f", "-19", "--long=27", tar, "-o", coded])
    kept = coded.stat().st_size
    back = Cost().run(["zstd", "-q", "-dc", "--long=27", coded])
    tar.unlink()
    coded.unlink()
    return there, back, kept


def patched(bench, s):
    """zstd -3 --patch-from: each file after the one at its place in the checkpoint before, if that has as many."""
    there, kept, before, coded = Cost(), 0, [], bench.dir / "patched.zst"
    for files in s.checkpoints:
        for old, f in zip(before if len(before) == len(files) else [None] * len(files), files):
            there.run(["zstd", "-q", "-f", "-3", "--long=27", *([f"--patch-from={old}"] if old else []), f, "-o", coded])
            kept += coded.stat().st_size
        before = files
    coded.unlink()
    return there, Cost(), kept


def copied(place, s):
    """What it takes to have the files at all, however they come: cp and sync, less the start of both. To where nothing was, as unpacking does."""
    to, cost = place / "copied", Cost()
    start = min(Cost().run(["cp", "--version"]).cpu for _ in range(5)) + min(Cost().run(["sync", "--version"]).cpu for _ in range(5))
    for i, files in enumerate(s.checkpoints):
        names = [f.relative_to(s.root) for f in files]
        (to / str(i)).mkdir(parents=True)
        cost.run(["cp", "--reflink=never", "--parents", "-t", to / str(i), *names], cwd=s.root)
        cost.run(["sync", *names], cwd=to / str(i))
    remove(to)
    cost.cpu -= min(start * len(s.checkpoints), cost.cpu / 2)
    return cost


def is_hdf5(path):
    with open(path, "rb") as f:
        return f.read(8) == b"\x89HDF\r\n\x1a\n"


def repacked(bench, s):
    """h5repack of the files that are HDF5; the others count as they are."""
    there, back, kept = Cost(), Cost(), 0
    coded, plain = bench.dir / "coded.h5", bench.dir / "plain.h5"
    for f in s.files:
        if not is_hdf5(f):
            kept += f.stat().st_size
            continue
        there.run(["h5repack", "-f", "SHUF", "-f", "GZIP=6", f, coded])
        kept += coded.stat().st_size
        back.run(["h5repack", "-f", "NONE", coded, plain])
        coded.unlink()
        plain.unlink()
    return there, back, kept


def backed_up(bench, s, start, save, restore):
    """A backup program: its repository after the whole series."""
    repo, back = bench.dir / "repo", bench.dir / "back"
    env = os.environ | {"RESTIC_PASSWORD": "x", "BORG_BASE_DIR": str(bench.dir / "borg"), "BORG_RELOCATED_REPO_ACCESS_IS_OK": "yes",
                        "RESTIC_CACHE_DIR": str(bench.dir / "restic"), "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes"}
    there, again = Cost(), Cost()
    subprocess.run(start(repo), env=env, check=True, stdout=subprocess.DEVNULL)
    for i, files in enumerate(s.checkpoints):
        there.run(save(repo, i, [f.relative_to(s.root) for f in files]), cwd=s.root, env=env)
    kept = size_of(repo)
    for i in range(len(s.checkpoints)):
        remove(back)
        back.mkdir()
        again.run(restore(repo, i, back), cwd=back, env=env)
    for folder in (repo, back, bench.dir / "borg", bench.dir / "restic"):
        remove(folder)
    return there, again, kept


def borg(bench, s):
    return backed_up(bench, s, lambda repo: ["borg", "init", "-e", "none", repo],
                     lambda repo, i, files: ["borg", "create", "--compression", "zstd,3", f"{repo}::{i}", *files],
                     lambda repo, i, back: ["borg", "extract", f"{repo}::{i}"])


def restic(bench, s):
    return backed_up(bench, s, lambda repo: ["restic", "-q", "init", "-r", repo],
                     lambda repo, i, files: ["restic", "-q", "backup", "-r", repo, "--tag", str(i), *files],
                     lambda repo, i, back: ["restic", "-q", "restore", "-r", repo, "--tag", str(i), "latest", "--target", back])


class Bench:
    def __init__(self, args):
        self.full, self.rounds = args.full, int(args.rounds or 3)
        self.size = args.size
        self.build, self.dir = pathlib.Path(args.build), pathlib.Path(args.dir) / "pack"
        self.data = pathlib.Path(args.data) if args.data else None
        self.dir.mkdir()
        self.memory = pathlib.Path(tempfile.mkdtemp(prefix="varve-bench-", dir=MEMORY)) if os.access(MEMORY, os.W_OK) else None
        self.varve = Varve(self)
        self.made = {}

    def bytes(self, usual, full):
        return self.size or (full if self.full else usual)

    def memory_for(self, s):
        """Is there a folder in memory with room for a set, its store, and what comes back?"""
        if self.memory and shutil.disk_usage(self.memory).free > 4 * s.bytes:
            return True
        say(f"{s.name}: there is no room for it in {MEMORY}")
        return False

    def make(self, kind, ranks, steps, total):
        """Several checkpoints of so many bytes each; made once."""
        key = f"{kind}-{ranks}-{steps}-{total}"
        if key not in self.made:
            root = self.dir / key
            for step in range(steps):
                folder = root / f"{step:04}"
                folder.mkdir(parents=True)
                subprocess.run([self.build / "bench/bench_pack", kind, folder, str(ranks), str(step), str(total)], check=True)
            checkpoints = [sorted((root / f"{step:04}").iterdir()) for step in range(steps)]
            self.made[key] = Set(kind, root, checkpoints)
        return self.made[key]

    # ---- pack.schemes, pack.real ----

    def tell_cost(self, bench, case, s, what, cost, baseline=False):
        there, back, kept = cost
        tell(bench, case, f"{what}_ratio", s.bytes / kept, "x", baseline=baseline)
        tell(bench, case, f"{what}_bytes", kept, "B", baseline=baseline)
        if there.cpu:
            tell(bench, case, f"{what}_encode", s.bytes / there.cpu / 1e6, "MB/s", baseline=baseline)
        if back.cpu:
            tell(bench, case, f"{what}_decode", s.bytes / back.cpu / 1e6, "MB/s", baseline=baseline)

    def schemes(self, bench, s):
        """All side by side. What each leaves, {name: (packing, unpacking, bytes)}."""
        cost, grown = {}, {}
        for scheme in PAPER:
            cost[scheme] = self.varve.pack(s, ["--scheme", scheme])
            grown[scheme] = self.varve.grown
        for level in LEVELS:
            cost[level] = self.varve.pack(s, ["--scheme", "auto", "--level", level])
            grown[f"auto-{level}"] = self.varve.grown
        for name, c in cost.items():
            self.tell_cost(bench, s.name, s, name if name in PAPER else f"auto-{name}", c)
        self.over_time(bench, s, grown)
        return cost

    def over_time(self, bench, s, grown):
        """Islam 2012's figure 9: the ratio of each checkpoint of a longer series. What lies beside them, as a program's input, is none."""
        whole = [i for i, files in enumerate(s.checkpoints) if len(files) == len(s.checkpoints[-1])]
        if len(whole) < 3:
            return
        for name, sizes in grown.items():
            for n, i in enumerate(whole, 1):
                tell(bench, f"{s.name}, checkpoint {n}", f"{name}_ratio", sum(f.stat().st_size for f in s.checkpoints[i]) / sizes[i], "x")

    def judge(self, bench, s, cost, rate, vs_paper=None):
        kept = {name: c[2] for name, c in cost.items()}
        best = min(kept[scheme] for scheme in PAPER)
        tell(bench, s.name, "auto_vs_best_paper", best / kept["default"], "x", at_least=1)
        gain = 1.26 if s.name.startswith(DOUBLES) else 1.13 if s.name.startswith(PARTICLES) else None
        tell(bench, s.name, "auto_vs_agnostic", kept["agnostic"] / kept["default"], "x", at_least=gain)
        self.judge_rates(bench, s, cost, rate, vs_paper)

    def judge_rates(self, bench, s, cost, rate, vs_paper):
        """In memory; and, beside that, on the disk. `cost` is of the disk."""
        copy = copied(self.dir, s)
        for what, c in (("auto_encode", cost["default"][0]), ("auto_unpack", cost["default"][1]), ("copy", copy)):
            tell(bench, s.name, f"{what}_disk", s.bytes / c.cpu / 1e6, "MB/s")
        tell(bench, s.name, "auto_unpack_vs_copy_disk", cost["default"][1].cpu / copy.cpu, "x")
        ours = self.varve.in_memory(s, [])
        if not ours:
            return
        paper = min(self.varve.pack(s, ["--scheme", scheme], place=self.memory)[0].cpu for scheme in ("aware", "aware-block"))
        copy = min(copied(self.memory, s).cpu for _ in range(self.rounds))
        tell(bench, s.name, "auto_encode_vs_paper", paper / ours[0].cpu, "x", at_least=vs_paper)
        tell(bench, s.name, "copy_vs_paper", paper / copy, "x", baseline=True)
        tell(bench, s.name, "auto_encode_per_core", s.bytes / ours[0].cpu / 1e6, "MB/s", at_least=rate)
        tell(bench, s.name, "auto_decode_per_core", s.bytes / ours[2].cpu / 1e6, "MB/s", at_least=700)
        tell(bench, s.name, "auto_unpack_per_core", s.bytes / ours[1].cpu / 1e6, "MB/s")
        tell(bench, s.name, "copy_per_core", s.bytes / copy / 1e6, "MB/s", baseline=True)
        tell(bench, s.name, "auto_unpack_vs_copy", ours[1].cpu / copy, "x")

    def pack_schemes(self):
        total = self.bytes(20 * MiB, 256 * MiB)
        for kind in ("hydro", "wave", "particles", "smooth"):
            s = self.make(kind, 8, 2, total)
            self.judge("pack.schemes", s, self.schemes("pack.schemes", s), 400 if kind == "smooth" else None, vs_paper=8)
        self.noise(self.make("noise", 8, 1, total * 4))

    def noise(self, s):
        """Its rate is of what the command itself does, without the kernel's copies, which cp has, too. The kernel tells these two apart by its ticks, of which
        a round has a few dozen: so there are rounds until there are enough ticks, and all of them count."""
        place = self.memory if self.memory_for(s) else self.dir
        kept = self.varve.pack(s, [], place=place)[2]
        rounds = [self.varve.encode(s, [], place)]
        while len(rounds) < self.rounds or sum(r.cpu for r in rounds) < TICKING:
            rounds.append(self.varve.encode(s, [], place))
        copy = min(copied(place, s).cpu for _ in range(self.rounds))
        tell("pack.schemes", "noise", "size", kept / s.bytes, "x", at_most=1.01)
        tell("pack.schemes", "noise", "encode_per_core", s.bytes * len(rounds) / sum(r.user for r in rounds) / 1e6, "MB/s", at_least=2000)
        tell("pack.schemes", "noise", "all_per_core", s.bytes / min(r.cpu for r in rounds) / 1e6, "MB/s")
        tell("pack.schemes", "noise", "copy_per_core", s.bytes / copy / 1e6, "MB/s", baseline=True)

    def real_sets(self):
        data = self.data or unpacked(pathlib.Path(__file__).resolve().parent.parent.parent / "shared/data", self.dir / "real")
        if not data:
            say("pack.real: no recorded sets (--data)")
        return recorded(data) if data else []

    def pack_real(self):
        for s in self.real_sets():
            cost = self.schemes("pack.real", s)
            self.judge("pack.real", s, cost, 200)
            self.tell_cost("pack.real", s.name, s, "auto-default-one-command", self.varve.series(s, []))
            left = self.today("pack.real", s)
            if "tar_zstd19" in left:
                tell("pack.real", s.name, "auto_vs_tar_zstd19", cost["default"][2] / left["tar_zstd19"], "x", at_most=1)

    # ---- pack.today ----

    def today(self, bench, s):
        """What people use; {name: bytes}."""
        rows = [("gzip6", "gzip", lambda: per_file(self, s, ["gzip", "-6", "-c"], ["gzip", "-dc"])),
                ("zstd3", "zstd", lambda: per_file(self, s, ["zstd", "-q", "-3", "-c"], ["zstd", "-q", "-dc"])),
                ("borg", "borg", lambda: borg(self, s)), ("restic", "restic", lambda: restic(self, s))]
        if any(is_hdf5(f) for f in s.files):
            rows.append(("h5repack", "h5repack", lambda: repacked(self, s)))
        if self.full:
            rows.append(("tar_zstd19", "zstd", lambda: tarred(self, s)))
        left = {}
        for name, command, measure in rows:
            if not shutil.which(command):
                say(f"{bench}: {command} is not installed")
                continue
            cost = measure()
            left[name] = cost[2]
            self.tell_cost(bench, s.name, s, name, cost, baseline=True)
        return left

    def pack_today(self):
        for kind in ("hydro", "particles"):
            s = self.make(kind, 8, 2, self.bytes(32 * MiB, 256 * MiB))
            cost = self.varve.pack(s, [])
            self.tell_cost("pack.today", kind, s, "varve", cost)
            left = self.today("pack.today", s)
            for name in left:
                tell("pack.today", kind, f"varve_vs_{name}", left[name] / cost[2], "x")

    # ---- the paper's figures ----

    def figure_sets(self):
        """One checkpoint of each: the paper's figures are of one."""
        sets = [self.make(kind, 16, 1, self.bytes(4 * MiB, 256 * MiB)) for kind in ("hydro", "wave", "particles")]
        return sets + [Set(s.name, s.root, s.checkpoints[-1:]) for s in (recorded(self.data) if self.data else [])]

    def pack_passes(self):
        for s in self.figure_sets():
            for scheme in ("agnostic", "aware", "aware-block"):
                tell("pack.passes", s.name, f"{scheme}_single", self.varve.ratio(s, ["--scheme", scheme, "--single"]), "x")
                tell("pack.passes", s.name, f"{scheme}_double", self.varve.ratio(s, ["--scheme", scheme]), "x")

    def pack_group(self):
        for s in self.figure_sets():
            for group in (1 << k for k in range((2 * len(s.files) - 1).bit_length())):
                if not self.full and 2 < group < len(s.files):
                    continue
                for scheme in PAPER:
                    tell("pack.group", f"{s.name}, {group}", f"{scheme}_ratio",
                         self.varve.ratio(s, ["--scheme", scheme, "--group", str(group)]), "x")

    def pack_block(self):
        for s in self.figure_sets():
            for block in (1 << k for k in (range(10, 17) if self.full else (10, 12, 15, 16))):
                for scheme in ("agnostic-block", "aware-block"):
                    tell("pack.block", f"{s.name}, {block} B", f"{scheme}_ratio",
                         self.varve.ratio(s, ["--scheme", scheme, "--block", str(block)]), "x")

    # ---- pack.scale, pack.memory ----

    def pack_scale(self):
        s = self.make("hydro", 8, 1, self.bytes(256 * MiB, 1024 * MiB))
        if self.memory_for(s):
            self.scale(s, "hydro", self.memory, 1.8)
        self.scale(s, "hydro, disk", self.dir, None)

    def scale(self, s, case, place, target):
        """Wall time, and what of it is processor time: how much more two threads take than one, and how much of two cores."""
        costs = {1: [], 2: []}
        for _ in range(self.rounds):
            for threads in costs:
                cores = sorted(os.sched_getaffinity(0))[:threads]
                costs[threads].append(self.varve.pack(s, [], threads, place, preexec_fn=lambda: os.sched_setaffinity(0, cores)))
        for i, what in enumerate(("pack", "unpack")):
            one, two = (sorted((c[i] for c in costs[threads]), key=lambda c: c.wall)[self.rounds // 2] for threads in (1, 2))
            tell("pack.scale", case, f"{what}_1_thread", s.bytes / one.wall / 1e6, "MB/s")
            tell("pack.scale", case, f"{what}_2_threads", s.bytes / two.wall / 1e6, "MB/s")
            tell("pack.scale", case, f"{what}_2_vs_1", one.wall / two.wall, "x", at_least=target if what == "pack" else None)
            tell("pack.scale", case, f"{what}_2_vs_1_processor", two.cpu / one.cpu, "x")
            tell("pack.scale", case, f"{what}_2_cores_busy", two.cpu / two.wall / 2, "x")

    def pack_memory(self):
        total = self.bytes(512 * MiB, 8192 * MiB)
        for kind, ranks in (("hydro", 4), ("noise", 2)):
            s = self.make(kind, ranks, 1, total)
            packing, unpacking, _ = self.varve.pack(s, [], 2)
            tell("pack.memory", kind, "set", s.bytes / MiB, "MiB", baseline=True)
            tell("pack.memory", kind, "pack_most", packing.memory / MiB, "MiB", at_most=256)
            tell("pack.memory", kind, "unpack_most", unpacking.memory / MiB, "MiB", at_most=256)
            remove(s.root)
            self.made.clear()


BENCHES = {"pack.schemes": Bench.pack_schemes, "pack.real": Bench.pack_real, "pack.today": Bench.pack_today,
           "pack.passes": Bench.pack_passes, "pack.group": Bench.pack_group, "pack.block": Bench.pack_block,
           "pack.scale": Bench.pack_scale, "pack.memory": Bench.pack_memory}


def main():
    args = arguments(BENCHES, "the papers' sizes, and more points of each figure").parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # what was made in memory is removed then, too
    bench = Bench(args)
    try:
        for name in args.names:
            BENCHES[name](bench)
    finally:
        if bench.memory:
            remove(bench.memory)
    return 0


if __name__ == "__main__":
    entry(main)
