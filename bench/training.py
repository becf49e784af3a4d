#!/usr/bin/env python3
"""The benchmarks python.*; bench/run starts them.

usage: training.py --build DIR --dir DIR [--full] [--size N] [--rounds N] NAME...

Each figure is the median of the rounds (python.loop: the least). Before each call the epoch before it is durable, as before each call of the others. "DCP" is
Distributed Checkpoint of the PyTorch that is installed, with its FileSystemWriter. PyTorch 1.13 has no async_save: it is made here of
its parts, a copy of the state and a thread that saves it.
"""
import concurrent.futures
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time
import warnings

from telling import arguments, entry, say, skip, tell

SOURCE = pathlib.Path(__file__).resolve().parent.parent
NAMES = ("python.block", "python.many", "python.ddp", "python.loop", "python.import")
MiB = 1 << 20
BUFFER = 64
sys.path[:0] = [str(SOURCE / "python"), str(SOURCE / "tests/python")]


def prepare(build):
    """The library of the build, and libvarve_interpose.so as `python3 -m varve` loads it."""
    interpose = build / "libvarve_interpose.so.0"
    os.environ.update(VARVE_LIBRARY=str(build / "libvarve.so.0"), VARVE_BUILD=str(build), VARVE_SOURCE=str(SOURCE))
    if str(interpose) not in os.environ.get("LD_PRELOAD", ""):
        if not interpose.exists():
            skip("libvarve_interpose is not built")
        python = sys.executable if subprocess.run([sys.executable, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode == 0 else "/usr/bin/python3"
        if subprocess.run([python, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode:
            skip("no PyTorch (python3-torch)")
        os.environ["LD_PRELOAD"] = str(interpose)
        os.execv(python, [python, *sys.argv])


class Bench:
    def __init__(self, args):
        global torch, varve, dcp
        import dcp as finder
        import torch
        import varve.torch
        warnings.filterwarnings("ignore")
        dcp = finder.package()
        self.dir, self.full = pathlib.Path(args.dir).resolve() / "training", args.full
        self.size = args.size or (1024 if args.full else 256) * MiB
        self.rounds = args.rounds or (9 if args.full else 3)
        self.number = 0

    def fresh(self):
        self.number += 1
        folder = self.dir / str(self.number)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def took(self, *calls):
        """Seconds of the last call, the median; the others are made before it."""
        seconds = []
        for _ in range(self.rounds):
            for call in calls[:-1]:
                call()
            begin = time.perf_counter()
            calls[-1]()
            seconds.append(time.perf_counter() - begin)
        return statistics.median(seconds)

    # ---- python.block ----

    def block(self):
        n = 64
        state = {f"layer{i}": torch.rand(self.size // n // 4) for i in range(n)}
        copies = {k: t.clone() for k, t in state.items()}
        memcpy = self.took(lambda: [copies[k].copy_(t) for k, t in state.items()])
        tell("python.block", "all", "memcpy", memcpy * 1e3, "ms", baseline=True)
        del copies
        self.others(state)
        pathlib.Path("/proc/self/clear_refs").write_text("5")  # the largest from now on
        before = resident()
        with varve.torch.Checkpointer(self.fresh(), "l", keep=2, buffer=f"{BUFFER}MiB", group=None) as ck:
            ck.protect(state=state)
            ck.checkpoint()
            ck.wait()
            for case, changed, target in (("all", n, 0.5), ("5 %", n // 20, 0.1), ("nothing", 0, None)):
                def change():
                    ck.wait()
                    for i in range(changed):
                        state[f"layer{i}"].add_(1e-3)
                for _ in range(2):  # varve learns what changes
                    change()
                    ck.checkpoint()
                seconds = self.took(change, ck.checkpoint)
                tell("python.block", case, "call", seconds * 1e3, "ms", at_most=None if target else 5)
                tell("python.block", case, "call / memcpy", seconds / memcpy, "x", at_most=target)
                tell("python.block", case, "durable", self.took(change, lambda: (ck.checkpoint(), ck.wait())) * 1e3, "ms")
            extra = (resident() - before) / MiB
            tell("python.block", "all", "extra_memory", extra, "MiB", at_most=BUFFER + 0.02 * self.size / MiB)

    def others(self, state):
        import numpy
        folder = self.fresh()

        def durable(write):
            with open(folder / "f", "wb") as f:
                write(f)
                f.flush()
                os.fsync(f.fileno())
        whole = numpy.concatenate([t.numpy() for t in state.values()])
        tell("python.block", "all", "numpy.save", self.took(lambda: durable(lambda f: numpy.save(f, whole))) * 1e3, "ms", baseline=True)
        del whole
        tell("python.block", "all", "torch.save", self.took(lambda: durable(lambda f: torch.save(state, f))) * 1e3, "ms", baseline=True)
        if dcp:
            tell("python.block", "all", "DCP", self.took(lambda: dcp.save_state_dict(state, dcp.FileSystemWriter(folder / "dcp", single_file_per_rank=True), no_dist=True)) * 1e3,
                 "ms", baseline=True)
        shutil.rmtree(folder)

    # ---- python.many ----

    def many(self):
        state = {f"layer{i}": torch.full((1024,), float(i)) for i in range(10000)}
        one = {"all": torch.cat(list(state.values()))}
        restarts = {}
        for case, tensors in (("one tensor", one), ("10000 tensors", state)):
            with varve.torch.Checkpointer(self.fresh(), "l", keep=2, group=None) as ck:
                ck.protect(state=tensors)
                begin = time.perf_counter()
                ck.checkpoint()
                tell("python.many", case, "first_call", (time.perf_counter() - begin) * 1e3, "ms")

                def change():
                    ck.wait()
                    next(iter(tensors.values()))[:1000] += 1
                for _ in range(2):
                    change()
                    ck.checkpoint()
                tell("python.many", case, "call", self.took(change, ck.checkpoint) * 1e3, "ms", at_most=10 if tensors is state else None)
            def restart():
                with varve.torch.Checkpointer(self.dir / str(self.number), "l", group=None) as ck:
                    ck.protect(state=tensors)
                    begin = time.perf_counter()
                    ck.restart()
                    return time.perf_counter() - begin
            restarts[case] = statistics.median(restart() for _ in range(self.rounds))
            tell("python.many", case, "restart", restarts[case] * 1e3, "ms")
        tell("python.many", "10000 tensors", "restart / one tensor", restarts["10000 tensors"] / restarts["one tensor"], "x", at_most=1.5)
        folder = self.fresh()
        tell("python.many", "10000 tensors", "torch.save", self.took(lambda: torch.save(state, folder / "f")) * 1e3, "ms", baseline=True)
        tell("python.many", "10000 tensors", "torch.load", self.took(lambda: torch.load(folder / "f")) * 1e3, "ms", baseline=True)

    # ---- python.ddp ----

    def ddp(self):
        import ranks
        folder, size = self.fresh(), self.size // 4
        ranks.run(4, rank_of_ddp, folder, size, self.rounds)
        epoch = varve.Store(folder / "store")["l"][1]
        tell("python.ddp", "4 ranks", "stored", epoch._fields["bytes_stored"] / size, "copies", at_most=1.02)
        ours, theirs = (statistics.median(map(float, (folder / name).read_text().split())) for name in ("varve", "dcp"))
        tell("python.ddp", "4 ranks", "call", ours * 1e3, "ms")
        if theirs:
            tell("python.ddp", "4 ranks", "DCP", theirs * 1e3, "ms", baseline=True)
            tell("python.ddp", "4 ranks", "call / DCP", ours / theirs, "x", at_most=0.25)

    # ---- python.loop ----

    def loop(self):
        steps, every, width = (100, 5, 2048) if self.full else (20, 5, 1024)
        torch.set_num_threads(max(1, torch.get_num_threads() - 1))  # for all ways: the threads of OpenMP spin where they have no core of their own

        def train(save):
            torch.manual_seed(0)
            model = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(4)])
            optimizer = torch.optim.Adam(model.parameters())
            each = save(model, optimizer)
            x = torch.randn(64, width)
            begin = time.perf_counter()
            for step in range(steps):
                if step % every == 0:
                    each()
                optimizer.zero_grad()
                (model(x) - x).square().mean().backward()
                optimizer.step()
            seconds = time.perf_counter() - begin
            each(None)
            return seconds

        def nothing(model, optimizer):
            return lambda end=0: None

        def ours(model, optimizer):
            ck = varve.torch.Checkpointer(self.fresh(), "l", keep=2, group=None)
            ck.protect(model=model, optimizer=optimizer)
            return lambda end=0: ck.close() if end is None else ck.checkpoint()

        def asynchronous(model, optimizer):
            folder, pool, running = self.fresh(), concurrent.futures.ThreadPoolExecutor(1), []

            def each(end=0):
                for r in running:
                    r.result()
                running.clear()
                if end is None:
                    return pool.shutdown()
                state = {f"model.{k}": t.detach().clone() for k, t in model.state_dict().items()}
                state |= {f"optimizer.{i}.{k}": t.clone() for i, s in optimizer.state_dict()["state"].items() for k, t in s.items()}
                running.append(pool.submit(lambda: dcp.save_state_dict(state, dcp.FileSystemWriter(folder, single_file_per_rank=True), no_dist=True)))
            return each

        train(nothing)
        ways = [("none", nothing), ("varve", ours)] + ([("DCP async", asynchronous)] if dcp else [])
        took = {name: [] for name, _ in ways}
        for _ in range(self.rounds):
            for name, way in ways:
                took[name].append(train(way))
        middle = {name: min(t) for name, t in took.items()}  # other programs only add to the time
        for name, seconds in middle.items():
            tell("python.loop", f"{steps} steps", name, seconds, "s", baseline=name != "varve")
        tell("python.loop", f"{steps} steps", "slowdown", middle["varve"] / middle["none"], "x")
        theirs = middle.get("DCP async", 0) - middle["none"]
        if theirs > 0.01 * middle["none"]:
            tell("python.loop", f"{steps} steps", "slowdown / DCP async's", max(0, middle["varve"] - middle["none"]) / theirs, "x", at_most=0.2)
        else:
            say("python.loop: DCP async's slowdown is too small to be measured here")

    # ---- python.import ----

    def imported(self):
        text = "import sys, time; a = time.perf_counter(); import varve; print(time.perf_counter() - a, 'torch' in sys.modules or 'mpi4py' in sys.modules)"
        said = [subprocess.run([sys.executable, "-c", text], env=os.environ | {"PYTHONPATH": sys.path[0]}, capture_output=True, text=True, check=True).stdout.split()
                for _ in range(self.rounds + 1)]
        tell("python.import", "varve", "time", statistics.median(float(s[0]) for s in said[1:]) * 1e3, "ms", at_most=50)
        tell("python.import", "varve", "torch_or_mpi_imported", sum(s[1] == "True" for s in said), "times", at_most=0)


def rank_of_ddp(rank, folder, size, rounds):
    import torch.distributed as dist
    torch.manual_seed(0)
    state = {f"layer{i}": torch.rand(size // 64) for i in range(16)}
    seconds = {"varve": [], "dcp": []}
    with varve.torch.Checkpointer(folder / "store", "l", keep=rounds + 2) as ck:
        ck.protect(state=state)
        for _ in range(rounds):
            ck.wait()
            for t in state.values():
                t.add_(1)
            dist.barrier()
            begin = time.perf_counter()
            ck.checkpoint()
            seconds["varve"].append(time.perf_counter() - begin)
    for _ in range(rounds if dcp else 0):
        dist.barrier()
        begin = time.perf_counter()
        dcp.save_state_dict(state, dcp.FileSystemWriter(folder / "files", single_file_per_rank=True))
        seconds["dcp"].append(time.perf_counter() - begin)
    if rank == 0:
        for name, values in seconds.items():
            (folder / name).write_text(" ".join(map(str, values)) or "0")


def resident():
    """The largest resident memory so far."""
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) * 1024


def main():
    args = arguments(NAMES, "1 GiB of tensors, more rounds, a longer loop").parse_args()
    prepare(pathlib.Path(args.build).resolve())
    bench = Bench(args)
    try:
        for name in args.names:
            {"python.block": bench.block, "python.many": bench.many, "python.ddp": bench.ddp, "python.loop": bench.loop, "python.import": bench.imported}[name]()
    finally:
        shutil.rmtree(bench.dir, ignore_errors=True)
    return 0


if __name__ == "__main__":
    entry(main)
