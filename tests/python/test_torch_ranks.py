#!/usr/bin/env python3
# ctest: COST 60, TIMEOUT 900
"""Training on 1 to 4 ranks of gloo: killed and resumed, equal weights stored once, damage, and PyTorch's Distributed Checkpoint."""
import concurrent.futures
import gc
import inspect
import json
import os
import pathlib
import random
import runpy
import signal
import sys
import tempfile
import threading
import time
import unittest
import warnings

import package

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # the ranks are forked, and CUDA does not work in a child
torch = package.torch()
import numpy
import ranks
import dcp
import varve
import varve.torch

ranks.interposed()
checkpoint = dcp.package()
if checkpoint:
    from torch.distributed._shard import sharded_tensor
    from torch.distributed._shard.sharding_spec import ChunkShardingSpec

KILLS = int(os.environ.get("VARVE_TEST_KILLS", "3"))  # of each number of ranks
EXAMPLE = pathlib.Path(os.environ["VARVE_SOURCE"]) / "examples/python/train_ddp.py"
FULL = torch.arange(40.0).reshape(10, 4)
warnings.filterwarnings("ignore", module="torch")


def example(rank, folder, store, result, steps):
    sys.argv = [str(EXAMPLE), str(store), str(result), str(steps)]
    runpy.run_path(str(EXAMPLE), run_name="__main__")


def equal_weights(rank, folder):
    torch.manual_seed(0)
    state = {"weights": torch.randn(1 << 18), "rank": rank}
    with varve.torch.Checkpointer(folder / "store", "equal", keep=5) as ck:
        ck.protect(state=state)
        assert not ck.restart()
        for step in range(3):
            state["weights"] += 1
            ck.checkpoint()
        expected, state["rank"] = state["weights"].clone(), None
        state["weights"].zero_()
        assert ck.restart()
        assert torch.equal(state["weights"], expected) and state["rank"] == rank
        assert ck.wait() and ck.due()


def write_while_asked(rank, folder):
    """The interpreter's lock is held while protected pages are written. The thread that stores the epoch needs this lock to ask the ranks."""
    whole = numpy.zeros(2 << 20, numpy.uint8)
    pages, state = memoryview(whole), {"whole": whole, "same": torch.zeros(1 << 18)}
    with varve.torch.Checkpointer(folder / "store", "asked", keep=3, buffer="256KiB", mode="async") as ck:
        ck.protect(state=state)
        for step in range(1, 21):
            for at in range(0, len(whole), 4096):
                pages[at:at + 4096] = bytes([step]) * 4096
            state["same"].fill_(step)
            ck.checkpoint(f"step-{step}")
    for e in varve.Store(folder / "store")["asked"]:
        found, step = varve.torch.load(f"{folder}/store://asked@{e.number}", rank=rank)["state"], int(e.label[5:])
        assert (found["whole"] == step).all() and (found["same"] == step).all(), step


def forget(rank, folder):
    """The garbage collector finds a session on the thread that stores its epoch."""
    from varve import _group
    test, dropped = _group._Channel.test, threading.Event()

    def collect(self):
        if threading.current_thread() is not threading.main_thread():
            assert dropped.wait(60)
            gc.collect()
        return test(self)
    _group._Channel.test = collect
    gc.disable()
    ck = varve.torch.Checkpointer(folder / "store", "forgotten", mode="async")
    ck.protect(weights=torch.ones(1 << 18))
    ck.checkpoint()
    ck.itself = ck
    handle = ck._handle
    del ck
    dropped.set()
    end = time.monotonic() + 60
    while not handle.is_closed:
        assert time.monotonic() < end
        time.sleep(0.01)
    for t in threading.enumerate():
        if t.name == "varve-close":
            t.join()
    assert len(varve.Store(folder / "store")["forgotten"]) == 1


def after_damage(rank, folder):
    state = {"weights": torch.zeros(1 << 18), "rank": -1}
    with varve.torch.Checkpointer(folder / "store", "equal", log="error") as ck, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ck.protect(state=state)
        assert ck.restart()
        assert (ck.epoch, state["rank"]) == (2, rank), ck.epoch
        try:
            ck.protect(more=torch.zeros(1) if rank else None)  # on one rank only
            ck.restart(2)
        except (varve.NotFound, varve.Mismatch):
            return
        raise AssertionError("a rank without the region")


def raised(call):
    """The class of its exception."""
    try:
        call()
    except Exception as e:
        return type(e)


def one_fails(rank, folder):
    """What fails on rank 1 alone ends the call on both ranks."""
    from varve import _checkpointer, _group
    store, text = folder / "store", _checkpointer.nodes_text
    with varve.Session(store, "values", _group=_group.TorchGroup(), timeout="60s") as v:
        v["n"] = rank
        v.checkpoint()
        v.checkpoint()
        if rank:
            v["new"] = 1
        assert raised(v.restart) is (varve.NotFound if rank else varve.PeerFailed)
        if rank:
            del v["new"]
        assert v.restart() and v["n"] == rank
        if rank:
            v._store = folder / "none"
        assert raised(v.load) is (varve.NotFound if rank else varve.PeerFailed)
        assert raised(lambda: list(v._older(2))) is (varve.NotFound if rank else varve.PeerFailed)
    with varve.torch.Checkpointer(store, "state", timeout="60s", log="error") as ck, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        state = {"weights": torch.full((1000,), 1.0), "f": ranks.run, "n": 1}
        ck.protect(state=state)
        ck.checkpoint()
        state["weights"] += 1
        state["n"] = 2
        if rank:  # as a text that no version of varve writes
            _checkpointer.nodes_text = lambda nodes: text({"state": {**nodes["state"], "n": {"$": "torch.dtype", "v": "torch.none"}}})
        ck.checkpoint()
        assert ck.restart() and (ck.epoch, state["n"], state["weights"].max()) == (1, 1, 1), ck.epoch
        assert raised(lambda: ck.restart(2)) is varve.Damaged
        if rank:
            state["f"] = ranks.wait
        assert raised(lambda: ck.restart(1)) is (varve.Mismatch if rank else varve.PeerFailed)
        state["f"] = ranks.run
        assert ck.restart(1)

        def refuse(memory):
            raise varve.NoMemory("out of memory")
        if rank:
            ck.session._declare_all = refuse
        assert raised(lambda: ck.restart(1)) is (varve.NoMemory if rank else varve.Mismatch)


def signals(rank, folder):
    """No handler of a signal runs in a function that the library has called: its exception would be lost, and the function's result, too."""
    from varve import _group
    came, inside = [], []

    def handler(number, frame):
        came.append(number)
        while frame:
            if frame.f_code.co_filename == _group.__file__ and frame.f_code.co_name == "call" and "channel" in frame.f_code.co_varnames:
                inside.append(number)
            frame = frame.f_back
    signal.signal(signal.SIGALRM, handler)
    with varve.torch.Checkpointer(folder / "store", "signals", keep=3, mode="sync") as ck:
        ck.protect(weights=torch.ones(1 << 16))
        signal.setitimer(signal.ITIMER_REAL, 1e-3, 1e-3)
        for step in range(30):
            ck.checkpoint()
        assert ck.restart()
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert came and not inside, (len(came), len(inside))
        group, before = ck._handle.group, signal.getsignal(signal.SIGINT)
        try:
            done = []
            group.call(lambda: [os.kill(os.getpid(), signal.SIGINT), time.sleep(0.01), done.append(1)])
            raise AssertionError("no exception")
        except KeyboardInterrupt:
            assert done
        assert signal.getsignal(signal.SIGINT) is before and signal.getsignal(signal.SIGALRM) is handler
        ck.checkpoint()


def requests(rank, folder):
    """The library counts signals that request a checkpoint where the program has a handler of Python for them, too."""
    came = []
    signal.signal(signal.SIGUSR1, lambda number, frame: came.append(number))
    with varve.torch.Checkpointer(folder / "store", "requests", interval="1h") as ck:
        ck.protect(weights=torch.ones(1 << 16))
        for _ in range(2):
            ck.checkpoint()
            assert not ck.due()
            if rank == 0:
                os.kill(os.getpid(), signal.SIGUSR1)
            assert ck.due()
        ck.checkpoint()
    assert came == ([signal.SIGUSR1] * 2 if rank == 0 else []), came
    os.kill(os.getpid(), signal.SIGUSR1)
    assert len(came) == (3 if rank == 0 else 1)


def again_and_again(rank, folder):
    """A session that is closed, or could not be opened, leaves no connection and no thread behind."""
    counts = []
    for i in range(6):
        with varve.torch.Checkpointer(folder / "store", "again") as ck:
            ck.protect(weights=torch.ones(1000))
            ck.checkpoint()
        assert raised(lambda: varve.torch.Checkpointer(folder / "store", "again", no_such_option=1)) is varve.Invalid
        torch.distributed.barrier()
        counts.append([len(os.listdir(f"/proc/self/{what}")) for what in ("fd", "task")])
    assert counts[-1] == counts[1], counts


def dcp_save(state, writer, **more):
    """dcp.save() of 2.x, or its older name. Not all versions know `no_dist`: without it they look whether there is a group."""
    save = getattr(checkpoint, "save", None) or checkpoint.save_state_dict
    save(state, storage_writer=writer, **{k: v for k, v in more.items() if k in inspect.signature(save).parameters})


def dcp_load(state, reader, **more):
    load = getattr(checkpoint, "load", None) or checkpoint.load_state_dict
    load(state, storage_reader=reader, **{k: v for k, v in more.items() if k in inspect.signature(load).parameters})


def state_dict(n, filled):
    torch.manual_seed(0)
    state = {"w": torch.randn(5, 6).t(), "b": torch.arange(3, dtype=torch.bfloat16), "plain": {"x": 1}, "empty": torch.empty(0, 3), "gaps": torch.randn(6, 6)[:, ::2]}
    if not filled:
        state = {"w": torch.zeros(6, 5), "b": torch.zeros(3, dtype=torch.bfloat16), "plain": {"x": 0}, "empty": torch.empty(0, 3), "gaps": torch.zeros(6, 3)}
    if n > 1:
        shards = state["sharded"] = sharded_tensor.zeros(ChunkShardingSpec(dim=0, placements=[f"rank:{i}/cpu" for i in range(n)]), 10, 4)
        for s in shards.local_shards():
            at, length = s.metadata.shard_offsets[0], s.tensor.shape[0]
            s.tensor.copy_(FULL[at:at + length] * filled)
    else:
        state["sharded"] = FULL * filled
    return state


def save_distributed(rank, folder, n, lineage):
    state = state_dict(n, True)
    with varve.torch.Writer(folder / "store", lineage, keep=3, group="auto" if n > 1 else None) as writer:
        for i in range(3):
            dcp_save(state, writer, no_dist=n == 1)
            state["w"] += 1


def load_distributed(rank, folder, n, lineage):
    for epoch, more in ((None, 2), (2, 1)):
        state = state_dict(n, False)
        dcp_load(state, varve.torch.Reader(folder / "store", lineage, epoch), no_dist=n == 1)
        expected = state_dict(n, True)
        for i in range(more):
            expected["w"] += 1
        for name in ("w", "b", "empty", "gaps"):
            assert torch.equal(state[name], expected[name]), name
        assert state["plain"] == {"x": 1}
        parts = [(s.metadata.shard_offsets[0], s.tensor) for s in state["sharded"].local_shards()] if n > 1 else [(0, state["sharded"])]
        for at, t in parts:
            assert torch.equal(t, FULL[at:at + t.shape[0]])


def save_in_thread(rank, folder, n):
    """As dcp.async_save() of 2.x: a copy of the state, and a thread that saves it over a group of its own. The program uses its groups meanwhile."""
    import torch.distributed as dist
    group, sums = dist.new_group(list(range(n)), backend="gloo"), torch.zeros(1000)
    with varve.torch.Writer(folder / "store", "threads", keep=5) as writer, concurrent.futures.ThreadPoolExecutor(1) as pool:
        writer.reset()
        state, saves = state_dict(n, True), []
        for step in range(4):
            for save in saves:
                save.result()
            staged = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in state.items()}
            staged["step"] = torch.full((5,), float(step))

            def save(staged=staged, step=step):
                writer.reset(f"step-{step}")
                dcp_save(staged, writer, process_group=group)
            saves = [pool.submit(save)]
            for _ in range(20):
                state["w"].add_(1)
                sums += rank
                dist.all_reduce(sums.clone())
        saves[0].result()
    for step in range(4):
        found = {"w": torch.zeros(6, 5), "step": torch.zeros(5)}
        dcp_load(found, varve.torch.Reader(folder / "store", "threads", f"step-{step}"))
        assert torch.equal(found["step"], torch.full((5,), float(step))), step
        expected = state_dict(n, True)["w"]
        for _ in range(20 * step):
            expected.add_(1)
        assert torch.equal(found["w"], expected), step


def save_async(rank, folder, n):
    """dcp.async_save() of 2.x: the program changes its state while the copy is saved. It refuses a ShardedTensor, which 2.x replaces."""
    with varve.torch.Writer(folder / "store", "async", keep=5) as writer:
        state = state_dict(n, True)
        del state["sharded"]
        for step in range(4):
            saving = checkpoint.async_save(state, checkpoint_id=f"step-{step}", storage_writer=writer)
            state["w"] += 1
            saving.result()
    for step in range(4):
        found, expected = {"w": torch.zeros(6, 5)}, state_dict(n, True)["w"]
        dcp_load(found, varve.torch.Reader(folder / "store", "async", f"step-{step}"))
        for _ in range(step):
            expected += 1
        assert torch.equal(found["w"], expected), step


def save_folder(rank, folder, n):
    dcp_save(state_dict(n, True), checkpoint.FileSystemWriter(folder / "dcp"))


def load_folder(rank, folder, n, name):
    state, expected = state_dict(n, False), state_dict(n, True)
    dcp_load(state, checkpoint.FileSystemReader(folder / name), no_dist=n == 1)
    assert all(torch.equal(state[name], expected[name]) for name in ("w", "b", "empty", "gaps")) and state["plain"] == {"x": 1}
    parts = [(s.metadata.shard_offsets[0], s.tensor) for s in state["sharded"].local_shards()] if n > 1 else [(0, state["sharded"])]
    assert all(torch.equal(t, FULL[at:at + t.shape[0]]) for at, t in parts)


def load_imported(rank, folder, n):
    state = state_dict(n, False)
    dcp_load(state, varve.torch.Reader(folder / "store", "folder", "imported"))
    assert torch.equal(state["w"], state_dict(n, True)["w"]) and state["plain"] == {"x": 1}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


class Killed(Case):
    def test_example(self):
        """The loss curve is that of an undisturbed run, bit for bit."""
        rng = random.Random(1)
        for n in (1, 2, 4):
            steps = 20 * KILLS
            ranks.run(n, example, self.folder, self.folder / f"whole{n}", self.folder / "whole.json", steps, init=False)
            store, result, killed = self.folder / f"store{n}", self.folder / f"killed{n}.json", 0
            for i in range(KILLS):
                before = newest(store)
                killed += ranks.kill_when(ranks.start(n, example, self.folder, store, result, steps, init=False), lambda: newest(store) > before + 1, rng.random() * 0.05)
            ranks.run(n, example, self.folder, store, result, steps, init=False)
            self.assertEqual(json.loads(result.read_text()), json.loads((self.folder / "whole.json").read_text()), n)
            self.assertGreater(killed, 0)
            print(f"{n} ranks: {killed} kills, the same {steps} losses", file=sys.stderr)


def newest(store):
    return max((int(p.stem) for p in store.rglob("*.commit")), default=0)


class Group(Case):
    def test_equal_weights(self):
        for n in (2, 3, 4):
            folder = self.folder / str(n)
            folder.mkdir()
            ranks.run(n, equal_weights, folder)
            for e in varve.Store(folder / "store")["equal"]:
                copies = e._fields["bytes_stored"] / (4 << 18)
                self.assertLess(copies, 1.02)
        layer = max(p for p in (folder / "store").rglob("*.r2.layer"))
        layer.chmod(0o644)
        layer.write_bytes(bytes(layer.stat().st_size))
        ranks.run(4, after_damage, folder)

    def test_one_fails(self):
        ranks.run(2, one_fails, self.folder)

    def test_again(self):
        ranks.run(2, again_and_again, self.folder)

    def test_signals(self):
        ranks.run(2, signals, self.folder)

    def test_requests(self):
        ranks.run(2, requests, self.folder)

    def test_lock(self):
        ranks.run(3, write_while_asked, self.folder)

    def test_forgotten(self):
        ranks.run(2, forget, self.folder)


@unittest.skipUnless(hasattr(checkpoint, "save_state_dict") and hasattr(torch.distributed, "_shard"), "PyTorch without Distributed Checkpoint of 1.13")
class Distributed(Case):
    def test_resharding(self):
        for wrote in (1, 3, 4):
            ranks.run(wrote, save_distributed, self.folder, wrote, f"of{wrote}")
            for reads in (1, 2, 3):
                ranks.run(reads, load_distributed, self.folder, reads, f"of{wrote}")

    def test_thread(self):
        ranks.run(3, save_in_thread, self.folder, 3)

    @unittest.skipUnless(hasattr(checkpoint, "async_save"), "PyTorch without dcp.async_save()")
    def test_async(self):
        ranks.run(3, save_async, self.folder, 3)

    def test_folders(self):
        """A folder of three ranks becomes an epoch, and this epoch a folder."""
        ranks.run(3, save_folder, self.folder, 3)
        place = f"{self.folder}/store://folder"
        self.assertEqual(varve.torch.import_dcp(self.folder / "dcp", place, label="imported"), 1)
        ranks.run(2, load_imported, self.folder, 2)
        varve.torch.export_dcp(f"{place}@imported", self.folder / "again")
        for n in (1, 2):
            ranks.run(n, load_folder, self.folder, n, "again")
        with self.assertRaisesRegex(varve.Invalid, "has a checkpoint already"):
            varve.torch.export_dcp(place, self.folder / "again")
        with self.assertRaisesRegex(varve.NotFound, ".metadata"):
            varve.torch.import_dcp(self.folder / "store", place)
        with self.assertRaisesRegex(varve.Invalid, "names an epoch"):
            varve.torch.import_dcp(self.folder / "dcp", place + "@1")


if __name__ == "__main__":
    unittest.main(verbosity=1)
