#!/usr/bin/env python3
# ctest: COST 60, TIMEOUT 600
"""Checkpoints of PyTorch's objects on one process: tensors of every kind, optimizers, schedulers, moves, damage, hostile texts."""
import collections
import contextlib
import copy
import doctest
import gc
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
import warnings

import package

torch = package.torch()
import numpy as np
import varve
import varve.torch
from varve import _checkpointer, _native, _safetensors

CHECKPOINTS = int(os.environ.get("VARVE_TEST_CHECKPOINTS", "40"))  # of the test in which training goes on meanwhile


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.store = self.folder / "store"
        torch.manual_seed(1)

    def open(self, lineage="l", **options):
        ck = varve.torch.Checkpointer(self.store, lineage, **options)
        self.addCleanup(ck.close)
        return ck

    def place(self, lineage="l"):
        return f"{self.store}://{lineage}"

    def equal(self, a, b, where="value"):
        self.assertIs(type(a), type(b), where)
        if isinstance(a, torch.Tensor):
            self.assertEqual((a.dtype, a.shape, a.requires_grad), (b.dtype, b.shape, b.requires_grad), where)
            self.assertTrue(torch.equal(bits(a), bits(b)), where)
        elif isinstance(a, np.ndarray):
            self.assertEqual(a.dtype, b.dtype, where)
            np.testing.assert_array_equal(a, b, where)
        elif isinstance(a, dict):
            self.assertEqual(list(a), list(b), where)
            for k in a:
                self.equal(a[k], b[k], f"{where}.{k}")
        elif isinstance(a, (list, tuple)):
            self.assertEqual(len(a), len(b), where)
            for i, (x, y) in enumerate(zip(a, b)):
                self.equal(x, y, f"{where}.{i}")
        else:
            self.assertEqual(repr(a), repr(b), where)


def devices(value):
    """Of the tensors of a state, in their order."""
    if isinstance(value, torch.Tensor):
        return [value.device.type]
    values = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [name for v in values for name in devices(v)]


def bits(t):
    """NaN equals NaN."""
    t = t.detach().resolve_conj().resolve_neg().contiguous()
    if t.dtype.is_complex:
        t = torch.view_as_real(t)
    return t.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[t.element_size()]) if t.dtype.is_floating_point else t


def zoo():
    """Tensors of every kind."""
    base = torch.randn(6, 8, 4)
    return {
        "plain": torch.randn(5, 7), "transposed": torch.randn(5, 7).t(), "gaps": torch.randn(9, 9)[1:7:2, ::3], "column": torch.randn(40, 40)[:, 3],
        "channels": torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last), "expanded": torch.randn(4, 1).expand(4, 6),
        "zero-d": torch.tensor(3.5), "bool": torch.rand(33) > 0.5, "bool0": torch.tensor(True), "complex": torch.randn(7, dtype=torch.complex64),
        "complex2": torch.randn(3, 2, dtype=torch.complex128).t(), "conj": torch.randn(4, dtype=torch.complex64).conj(), "neg": torch.randn(4, dtype=torch.complex64).conj().imag,
        "half": torch.randn(11).half(), "bf16": torch.randn(3, 3).bfloat16(), "double": torch.randn(2, dtype=torch.float64), "bytes": torch.arange(9, dtype=torch.uint8),
        "i8": torch.arange(3, dtype=torch.int8), "i16": torch.arange(3, dtype=torch.int16), "i32": torch.arange(3, dtype=torch.int32), "i64": torch.arange(3),
        "empty": torch.empty(0), "empty2": torch.empty(3, 0, 2), "nan": torch.tensor([float("nan"), -0.0, float("inf")]),
        "base": base, "part": base[2], "slice": base[:, 3], "cut": base[1:3, 2:5, ::2], "reversed": base.permute(2, 0, 1), "flat": base.view(-1)[5:50],
        "many": torch.randn([1, 2] * 9), "grad": torch.randn(3, requires_grad=True), "é.x/y z": torch.ones(2), "zero": torch.zeros(1000),
    }


class Kinds(Case):
    def test_in_place(self):
        tensors = zoo()
        expected = {k: t.detach().clone() for k, t in tensors.items()}
        addresses = {k: t.data_ptr() for k, t in tensors.items()}
        ck = self.open()
        ck.protect(state=tensors)
        ck.checkpoint()
        with torch.no_grad():
            for t in tensors.values():
                if "expanded" not in t.shape and 0 not in t.stride():
                    t.zero_() if not t.is_conj() and not t.is_neg() else t.copy_(torch.zeros_like(t))
        self.assertTrue(ck.restart())
        for k, t in tensors.items():
            self.assertTrue(torch.equal(bits(t), bits(expected[k])), k)
            self.assertEqual(t.data_ptr(), addresses[k], k)

    def test_load(self):
        tensors = zoo()
        varve.torch.save(tensors, self.place())
        again = varve.torch.load(self.place())
        self.equal(again, tensors)
        again["base"].zero_()  # what shared memory shares memory
        for name in ("part", "slice", "cut", "reversed", "flat"):
            self.assertEqual(float(again[name].abs().sum()), 0, name)
        stored = varve.Store(self.store)["l"][-1]
        self.assertEqual(stored["bool"].dtype, np.dtype(bool))
        np.testing.assert_array_equal(stored["plain"][1:3], tensors["plain"][1:3].numpy())
        self.assertEqual([n for n in stored if n in ("part", "slice", "cut", "reversed", "flat")], [])

    def test_tied(self):
        model = torch.nn.Sequential(torch.nn.Linear(300, 300), torch.nn.Linear(300, 300))
        model[1].weight = model[0].weight
        varve.torch.save(model.state_dict(), self.place("a"))
        ck = self.open()
        ck.protect(model=model)
        ck.checkpoint()
        for lineage in "al":
            stored = varve.Store(self.store)[lineage][-1]
            self.assertEqual(sum(r.nbytes for n, r in stored.items() if "weight" in n), 4 * 300 * 300)
        loaded = varve.torch.load(self.place("a"))
        self.assertEqual(loaded["0.weight"].data_ptr(), loaded["1.weight"].data_ptr())
        whole = varve.torch.load(self.place("l"))["model"]
        self.assertIs(whole["0.weight"], whole["1.weight"])
        self.assertIsInstance(whole["0.weight"], torch.nn.Parameter)
        expected = model[0].weight.detach().clone()
        torch.nn.init.zeros_(model[0].weight)
        ck.restart()
        self.assertTrue(torch.equal(model[1].weight, expected))
        self.assertIs(model[1].weight, model[0].weight)

    def test_random_views(self):
        """Any views of any bases: all values come back, also into views of another layout."""
        for seed in range(60):
            rng = random.Random(seed)
            bases = [torch.randn([rng.randint(1, 6) for _ in range(rng.randint(1, 4))]) for _ in range(rng.randint(1, 3))]
            tensors = {f"t{i}": some_view(rng, rng.choice(bases)) for i in range(rng.randint(1, 8))}
            expected = {k: t.clone() for k, t in tensors.items()}
            lineage = f"l{seed}"
            with contextlib.closing(varve.torch.Checkpointer(self.store, lineage)) as ck:
                ck.protect(state=tensors)
                ck.checkpoint()
                for b in bases:
                    b.fill_(-1)
                self.assertTrue(ck.restart())
                for k in tensors:
                    self.assertTrue(torch.equal(tensors[k], expected[k]), (seed, k))
                other = {k: torch.empty(t.shape) if rng.random() < 0.5 else torch.empty(t.shape[::-1]).permute(tuple(range(t.dim() - 1, -1, -1))) for k, t in tensors.items()}
                ck.protect(state=other)
                self.assertTrue(ck.restart())
                for k in other:
                    self.assertTrue(torch.equal(other[k], expected[k]), (seed, k))
                self.assertEqual(ck.checkpoint(), 2)
            loaded = varve.torch.load(self.place(lineage) + "@1")["state"]
            self.equal(loaded, expected)

    def test_refused(self):
        ck = self.open()
        cases = [(torch.eye(3).to_sparse(), "sparse"), (torch.eye(3).to_sparse_csr(), "sparse"), (torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), "quantized"),
                 (torch.empty(3, device="meta"), "meta"), (object(), "object"), (torch.nn.Linear(1, 1), "Linear"), (np.array([{}], dtype=object), "object")]
        for value, word in cases:
            with self.assertRaisesRegex(TypeError, f"'(state.)?a.0'.*{word}"):
                ck.protect(state={"a": [value]})
                ck.checkpoint()
            with self.assertRaisesRegex(TypeError, f"'a.0'.*{word}"):
                varve.torch.save({"a": [value]}, self.place())
        with self.assertRaisesRegex(TypeError, "'f'.*function"):
            varve.torch.save({"f": zoo}, self.place())
        endless = []
        endless.append(endless)
        with self.assertRaisesRegex(TypeError, "contains itself"):
            varve.torch.save(endless, self.place())
        for value in (3, "text", [torch.ones(1)], None.__class__):
            with self.assertRaisesRegex(TypeError, "'x'"):
                ck.protect(x=value)
        self.assertEqual(varve.torch.save({}, self.place("m")), 1)
        self.assertEqual(varve.torch.load(self.place("m")), {})

    def test_plain(self):
        values = {"none": None, "big": 2**90, "f": [0.1, float("inf"), -0.0], "t": (1, (2, [3]), ()), 5: {"$": 1, "v": 2}, (1, 2): {3, 4}, "b": b"\0\xff", "ba": bytearray(b"x"),
                  "c": 1 + 2j, "o": collections.OrderedDict([("b", 1), ("a", 2)]), "counter": collections.Counter("abca"), "size": torch.Size([2, 3]), "dtype": torch.bfloat16,
                  "device": torch.device("cpu"), "np": np.float32(0.5), "npi": np.int8(-3), "frozen": frozenset([1]), "array": np.arange(6.0).reshape(2, 3), "F": np.asfortranarray(np.eye(3)),
                  "strings": np.array(["a", "bcd"]), "empty": np.empty((0, 3)), "true": True, "state": np.random.RandomState(1).get_state(), "py": random.Random(2).getstate()}
        varve.torch.save(values, self.place())
        again = varve.torch.load(self.place())
        self.equal(again, values)
        again["array"][0] = 1  # its own memory
        ck = self.open()
        mine = copy.deepcopy(values)
        ck.protect(state=mine)
        ck.checkpoint()
        array = mine["array"]
        array[:] = 0
        mine["t"] = mine["big"] = None
        self.assertTrue(ck.restart())
        self.assertIs(mine["array"], array)
        self.equal(mine, values)

    def test_save_and_load(self):
        model = torch.nn.Linear(3, 2)
        self.assertEqual(varve.torch.save(model.state_dict(), self.place(), label="first"), 1)
        self.assertEqual(varve.torch.save({"p": model.weight, "step": 2}, self.place(), keep=5), 2)
        again = torch.nn.Linear(3, 2)
        again.load_state_dict(varve.torch.load(self.place() + "@first", map_location="cpu"))
        self.assertTrue(torch.equal(again.weight, model.weight))
        p = varve.torch.load(self.place() + "@2")["p"]
        self.assertIsInstance(p, torch.nn.Parameter)
        self.equal(varve.torch.load(self.place())["step"], 2)
        for place in ("nothing", "x://", "://l", 3, self.place() + "@1"):
            with self.assertRaises(varve.Invalid):
                varve.torch.save({}, place)
        for place in (self.place("none"), self.place() + "@9", self.place() + "@nothing"):
            with self.assertRaises(varve.NotFound):
                varve.torch.load(place)
        with self.assertRaises(TypeError):
            varve.torch.load(self.place(), map_location=lambda s, l: s)
        with varve.open(self.store, "plain") as v:
            v["n"] = 1
            v.checkpoint()
        with self.assertRaisesRegex(varve.NotFound, "varve.Store"):
            varve.torch.load(self.place("plain"))


def some_view(rng, t):
    for _ in range(rng.randint(0, 3)):
        d = rng.randrange(t.dim()) if t.dim() else 0
        how = rng.randrange(5)
        if not t.dim() or 0 in t.shape:
            break
        if how == 0:
            t = t.select(d, rng.randrange(t.shape[d]))
        elif how == 1:
            a = rng.randrange(t.shape[d])
            t = t.narrow(d, a, rng.randint(0 if rng.random() < 0.1 else 1, t.shape[d] - a))
        elif how == 2:
            t = t[(slice(None),) * d + (slice(None, None, 2),)]
        elif how == 3:
            t = t.permute(*rng.sample(range(t.dim()), t.dim()))
        else:
            t = t.unsqueeze(d)
    return t


class Tiny(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.n, self.b = torch.nn.Linear(6, 9), torch.nn.BatchNorm1d(9), torch.nn.Linear(9, 2)

    def forward(self, x):
        return self.b(torch.relu(self.n(self.a(x))))


class Program:
    """A training program whose next steps depend on all of its state."""

    def __init__(self, make_optimizer, make_scheduler=None):
        torch.manual_seed(3)
        self.model = Tiny()
        self.optimizer = make_optimizer(self.model.parameters())
        self.scheduler = make_scheduler(self.optimizer) if make_scheduler else None
        self.state = {"losses": []}

    def protect(self, ck):
        ck.protect(model=self.model, optimizer=self.optimizer, scheduler=self.scheduler, state=self.state, random=varve.torch.RandomState())

    def train(self, steps):
        for _ in range(steps):
            x, y = torch.randn(8, 6), torch.randn(8, 2)

            def closure():
                self.optimizer.zero_grad()
                loss = ((self.model(x) - y) ** 2).mean()
                loss.backward()
                return loss
            self.state["losses"].append(float(self.optimizer.step(closure)))
            if self.scheduler:
                self.scheduler.step(*[self.state["losses"][-1]] * isinstance(self.scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau))


OPTIMIZERS = {name: (lambda p, c=getattr(torch.optim, name), more=more: c(p, **more)) for name, more in (
    ("SGD", dict(lr=0.01, momentum=0.9)), ("Adam", dict(lr=0.01, amsgrad=True)), ("AdamW", {}), ("RMSprop", dict(momentum=0.5, centered=True)), ("Adagrad", {}), ("Adadelta", {}),
    ("Adamax", {}), ("NAdam", {}), ("RAdam", {}), ("Rprop", {}), ("ASGD", dict(t0=2)), ("LBFGS", dict(max_iter=3)))}
SCHEDULERS = {name: (lambda o, c=getattr(torch.optim.lr_scheduler, name), more=more: c(o, **more)) for name, more in (
    ("StepLR", dict(step_size=3)), ("MultiStepLR", dict(milestones=[2, 5])), ("OneCycleLR", dict(max_lr=0.1, total_steps=60)), ("CosineAnnealingLR", dict(T_max=20)),
    ("ReduceLROnPlateau", dict(patience=1)), ("LambdaLR", dict(lr_lambda=lambda e: 0.9 ** e)), ("CosineAnnealingWarmRestarts", dict(T_0=4)), ("ExponentialLR", dict(gamma=0.9)))}


class Training(Case):
    def resumed(self, make_optimizer, make_scheduler, lineage):
        """Saved before the first step, in the middle, and restored into a new program and into an old one."""
        whole = Program(make_optimizer, make_scheduler)
        with contextlib.closing(varve.torch.Checkpointer(self.store, lineage)) as ck:
            whole.protect(ck)
            ck.checkpoint(label="begin")
            whole.train(4)
            ck.checkpoint()
            whole.train(5)
            expected = list(whole.state["losses"])
            weights = copy.deepcopy(whole.model.state_dict())
            for epoch, steps in ((2, 5), ("begin", 9), (2, 5)):
                self.assertTrue(ck.restart(epoch))
                whole.train(steps)
                self.assertEqual(whole.state["losses"], expected, (lineage, epoch))
        again = Program(make_optimizer, make_scheduler)
        torch.manual_seed(99)
        with contextlib.closing(varve.torch.Checkpointer(self.store, lineage)) as ck:
            again.protect(ck)
            self.assertTrue(ck.restart(2))
            again.train(5)
            self.assertEqual(again.state["losses"], expected, lineage)
            self.equal(again.model.state_dict(), weights)
            self.assertEqual(ck.checkpoint(), 3)

    def test_optimizers(self):
        for name, make in OPTIMIZERS.items():
            with self.subTest(name):
                self.resumed(make, None, name)

    def test_schedulers(self):
        for name, make in SCHEDULERS.items():
            with self.subTest(name):
                self.resumed(OPTIMIZERS["SGD"], make, name)

    def test_state_on_another_device(self):
        """The state of a parameter comes to the parameter's device, as load_state_dict() brings it there; "step" stays on the host."""
        parameter = torch.nn.Parameter(torch.ones(5))
        for name in ("Adam", "LBFGS"):
            optimizer = getattr(torch.optim, name)([parameter])

            def loss():
                optimizer.zero_grad()
                value = (parameter ** 4).sum()
                value.backward()
                return value
            for _ in range(3):
                optimizer.step(loss)
            state = optimizer.state_dict()
            ours, theirs = [getattr(torch.optim, name)([torch.nn.Parameter(torch.ones(5, device="meta"))]) for _ in range(2)]
            _checkpointer._load_optimizer("optimizer", ours, copy.deepcopy(state), "epoch 1")
            theirs.load_state_dict(state)
            self.assertEqual(devices(ours.state_dict()["state"]), devices(theirs.state_dict()["state"]))
            self.assertIn("meta", devices(ours.state_dict()["state"]))
            self.assertIs(ours.state[ours.param_groups[0]["params"][0]], next(iter(ours.state.values())))

    def test_step_on_another_device(self):
        parameter = torch.nn.Parameter(torch.ones(5))
        parameter.grad = torch.ones(5)
        optimizer = torch.optim.Adam([parameter])
        optimizer.step()
        for key, expected in (("lr", "cpu"), ("capturable", "meta"), ("fused", "meta")):
            state = copy.deepcopy(optimizer.state_dict())
            state["param_groups"][0][key] = True
            other = torch.nn.Parameter(torch.ones(5, device="meta"))
            adam = torch.optim.Adam([other])
            _checkpointer._load_optimizer("optimizer", adam, state, "epoch 1")
            self.assertEqual((adam.state[other]["step"].device.type, adam.state[other]["exp_avg"].device.type), (expected, "meta"), key)
        state["state"][0]["step"] = torch.tensor(3)
        _checkpointer._load_optimizer("optimizer", adam, state, "epoch 1")
        self.assertEqual(adam.state[other]["step"].dtype, torch.float32)

    def test_containers_on_another_device(self):
        parameter, other = [torch.nn.Parameter(torch.ones(5, device=device)) for device in ("cpu", "meta")]
        state, sgd = torch.optim.SGD([parameter], 0.1).state_dict(), torch.optim.SGD([other], 0.1)
        made = {"a": collections.OrderedDict(a=torch.ones(2)), "b": collections.Counter(b=torch.ones(2)), "c": {torch.ones(2)},
                "d": frozenset([torch.ones(2)]), "e": [({"step": torch.ones(2)}, torch.ones(2))]}
        state["state"][0] = made
        _checkpointer._load_optimizer("optimizer", sgd, state, "epoch 1")
        moved = sgd.state[other]
        self.assertEqual([type(v) for v in moved.values()], [type(v) for v in made.values()])
        tensors = [moved["a"]["a"], moved["b"]["b"], *moved["c"], *moved["d"], moved["e"][0][1]]
        self.assertEqual([t.device.type for t in tensors], ["meta"] * 5)

    @unittest.skipUnless(torch.cuda.is_available(), "no GPU")
    def test_restart_on_gpu(self):
        """An epoch of the host restarts on each GPU, and trains there."""
        for device in ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]:
            model = torch.nn.Linear(3, 2).to(device)
            optimizer = torch.optim.Adam(model.parameters())
            with varve.torch.Checkpointer(self.store, "l") as ck:
                ck.protect(model=model, optimizer=optimizer)
                self.assertEqual(ck.restart(), device != "cpu")
                self.assertLessEqual({t.device for s in optimizer.state.values() for k, t in s.items() if k != "step"}, {torch.device(device)})
                model(torch.ones(1, 3, device=device)).sum().backward()
                optimizer.step()
                if device == "cpu":
                    ck.checkpoint()

    def test_groups_and_frozen(self):
        def groups(parameters):
            p = list(parameters)
            p[0].requires_grad_(False)
            return torch.optim.Adam([{"params": p[:3], "lr": 0.1}, {"params": p[3:], "betas": (0.5, 0.9)}])
        self.resumed(groups, None, "groups")

    def test_other_programs(self):
        program = Program(OPTIMIZERS["Adam"])
        ck = self.open()
        program.protect(ck)
        program.train(2)
        ck.checkpoint()
        before = copy.deepcopy(program.model.state_dict())
        with self.assertRaisesRegex(TypeError, "the class Linear"):
            ck.protect(model=torch.nn.Linear)
        wider = Tiny()
        wider.more = torch.nn.Linear(1, 1)
        for model, word in ((torch.nn.Linear(3, 2), "another model.*a.bias"), (torch.nn.Sequential(Tiny()), "0.a.bias"), (wider, "the epoch has no more.bias, more.weight$")):
            ck.protect(model=model)
            with self.assertRaisesRegex(varve.Mismatch, word):
                ck.restart()
        wide = Tiny()
        wide.a = torch.nn.Linear(7, 9)
        untouched = copy.deepcopy(wide.state_dict())
        ck.protect(model=wide)
        with self.assertRaisesRegex(varve.Mismatch, r"'model.a.weight' is torch.float32 \[9, 7\]"):
            ck.restart()
        self.equal(wide.state_dict(), untouched)
        ck.protect(model=program.model, more=torch.zeros(3))
        with self.assertRaisesRegex(varve.NotFound, "no 'more'"):
            ck.restart()
        ck.protect(more=None, optimizer=torch.optim.Adam(list(program.model.parameters())[:2]))
        with self.assertRaisesRegex(varve.Mismatch, "parameter groups"):
            ck.restart()
        ck.protect(optimizer=None)
        torch.nn.init.zeros_(program.model.a.weight)
        self.assertTrue(ck.restart())
        self.equal(program.model.state_dict(), before)
        ck.protect(scheduler=torch.optim.lr_scheduler.OneCycleLR(program.optimizer, 0.1, 50, anneal_strategy="cos"))
        ck.checkpoint()
        ck.protect(scheduler=torch.optim.lr_scheduler.OneCycleLR(program.optimizer, 0.1, 50, anneal_strategy="linear"))
        if any(callable(v) for v in ck._objects["scheduler"].state_dict().values()):  # functions are kept, not stored
            with self.assertRaisesRegex(varve.Mismatch, "function"):
                ck.restart()

    def test_followed(self):
        """Tensors that move, grow, come and go between checkpoints."""
        state, ck = {"a": torch.zeros(1000), "n": 0}, self.open(keep=30)
        ck.protect(state=state)
        history = {}
        for i in range(25):
            state["n"] = i
            if i % 5 == 0:
                state["a"] = torch.full((1000 + i,), float(i))
            elif i % 5 == 1:
                state["a"].resize_(5000 + i).fill_(i)
            elif i % 5 == 2:
                state[f"b{i}"] = torch.full((i, 3), i)
            elif i % 5 == 3:
                state["a"].data = torch.full((7, i), float(i)).t()
                state.pop(f"b{i - 1}")
            else:
                state["a"] += 1
            history[ck.checkpoint()] = copy.deepcopy(state)
            if i % 7 == 3:
                del state["a"]
                state["a"] = torch.rand(50)
                gc.collect()
        for epoch, expected in history.items():
            self.equal(varve.torch.load(self.place() + f"@{epoch}")["state"], expected)

    def test_names(self):
        names = ["", "\0x", "é\ud800", "\udce9", "x" * 5000, "$", "torch.nodes.json", "../../x", "a\nb", "a.b", 5, (1, 2)]
        state = {"a": {"b": torch.ones(1)}} | {name: torch.full((3,), float(i)) for i, name in enumerate(names)}
        arrays = {"a": {"b": np.ones(1)}} | {name: np.full(3, float(i)) for i, name in enumerate(names)}
        ck = self.open()
        ck.protect(state=state, arrays=arrays)
        expected = copy.deepcopy([state, arrays])
        ck.checkpoint()
        ck.wait()
        loaded = varve.torch.load(self.place())
        self.equal([loaded["state"], loaded["arrays"]], expected)
        for t in [*list(state.values())[1:], *list(arrays.values())[1:]]:
            t[:] = -1
        self.assertTrue(ck.restart())
        self.equal([state, arrays], expected)

    def test_same_memory(self):
        """What changes is not where a tensor is, but how its memory is read."""
        x, w, a = torch.randn(3, 2, dtype=torch.complex64), torch.randn(4), np.arange(6.0)
        one, square = torch.randn(1, dtype=torch.complex64), torch.randn(3, 3)
        state = {"x": x, "imag": x.imag, "w": w, "a": a, "one": one.imag, "square": square}
        ck = self.open()
        ck.protect(state=state)
        ck.checkpoint()

        def conj():
            state["x"], state["imag"] = x.conj(), x.conj().imag

        def parameter():
            state["w"] = torch.nn.Parameter(w)

        def shape():
            a.shape = 2, 3

        def dtype():
            w.data = w.data.view(torch.int32 if w.dtype is torch.float32 else torch.float32)

        def negative():
            state["one"] = one.conj().imag  # contiguous, at the same address

        def flat():
            square.data = square.data.view(9)

        for change in (conj, shape, dtype, dtype, w.requires_grad_, parameter, negative, flat, lambda: square.resize_(3, 3), square.t_):
            change()
            ck.checkpoint()
            ck.wait()
            self.equal(varve.torch.load(self.place())["state"], state)

    def test_many(self):
        names = [f"block{i:05}." + "deep." * 57 + "weight" for i in range(10000)]
        self.assertGreater(len(names[0]), 300)
        state = {n: torch.full((i % 7 * 5,), float(i)) for i, n in enumerate(names)}
        ck = self.open()
        ck.protect(state=state)
        ck.checkpoint()
        ck.checkpoint()
        for t in state.values():
            t.fill_(-1)
        self.assertTrue(ck.restart())
        self.assertTrue(all(bool((t == i).all()) for i, t in enumerate(state.values())))
        long = {"n" * 2000 + str(i): torch.full((2,), float(i)) for i in range(3)}
        long["a\0b"] = torch.ones(1)
        varve.torch.save(long, self.place("long"))
        self.equal(varve.torch.load(self.place("long")), long)

    def test_threads(self):
        """Threads that checkpoint while others change what there is: every epoch can be read."""
        state, errors = {f"t{i}": torch.zeros(5000) for i in range(20)}, []
        ck = self.open(keep=100)
        ck.protect(state=state)

        def use(k):
            try:
                for j in range(12):
                    if k == 0:
                        state[f"x{j % 3}"] = torch.ones(100 + j)
                    elif k == 1:
                        state.pop(f"x{j % 3}", None)
                    ck.checkpoint()
            except Exception as e:
                errors.append(e)

        threads = [threading.Thread(target=use, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        ck.wait()
        errors = [e for e in errors if not isinstance(e, RuntimeError)]  # the dict changed while it was read
        self.assertEqual(errors, [])
        for e in varve.Store(self.store)["l"]:
            varve.torch.load(self.place() + f"@{e.number}")

    def test_nothing_is_kept(self):
        """Objects of Python are freed: neither checkpoints nor restarts add any."""
        program = Program(OPTIMIZERS["Adam"])
        ck = self.open(keep=2)
        program.protect(ck)
        program.train(1)

        def objects():
            for _ in range(10):
                ck.checkpoint()
                ck.restart()
            gc.collect()
            return len(gc.get_objects())
        objects()
        first = objects()
        self.assertLess(objects() - first, 50)


class Torn(Case):
    def test_steps_while_saving(self):
        """Training goes on, step by step, until the epoch is durable. Every epoch is of one step."""
        text = """
import itertools, sys, torch, varve, varve.torch
from varve import _native
torch.set_num_threads(2)
store, checkpoints = sys.argv[1], int(sys.argv[2])
state = {f"t{i}": torch.zeros(1 + 37 * i * i) for i in range(20)}
tensors, meanwhile, taken = list(state.values()), 0, 0
mode = {} if _native.is_interposed() else {"mode": "async", "interpose": False}
with varve.torch.Checkpointer(store, "l", keep=2, buffer="64KiB", **mode) as ck:
    ck.protect(state=state)
    for step in itertools.count(1):
        for t in tensors:
            t.fill_(step)
        state["n"] = step
        if taken and not ck.wait(0):
            meanwhile += 1
            continue
        if taken:
            found = varve.torch.load(f"{store}://l@{epoch}")["state"]
            assert len(found) == 21 and found.pop("n") == saved and all(bool((t == saved).all()) for t in found.values()), (epoch, saved)
        if taken == checkpoints:
            break
        epoch, saved = ck.checkpoint(), step
        taken += 1
print(_native.is_interposed(), taken, meanwhile)
"""
        ways = {"fast": ["-m", "varve"], "plain": []} if package.INTERPOSE.exists() else {"plain": []}
        for way, command in ways.items():
            begin = time.monotonic()
            done = subprocess.run([sys.executable, *command, "-c", text, self.store / way, str(CHECKPOINTS)], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), way)
            interposed, taken, meanwhile = done.stdout.split()
            self.assertEqual((interposed, taken), (str(bool(command)), str(CHECKPOINTS)))
            self.assertGreater(int(meanwhile), CHECKPOINTS)
            print(f"{way}: {taken} checkpoints, {meanwhile} steps while they were stored, {time.monotonic() - begin:.0f} s, none torn", file=sys.stderr)


class Damage(Case):
    def written(self):
        """Two epochs of a program."""
        program = Program(OPTIMIZERS["Adam"])
        with varve.torch.Checkpointer(self.store, "l", codec="none") as ck:
            program.protect(ck)
            for _ in range(2):
                program.train(2)
                program.state["text"] = f"needle{len(program.state['losses'])}"
                ck.checkpoint()
        return program

    def test_older_epoch(self):
        program = self.written()
        layer, = [p for p in (self.store / "l").rglob("*.layer") if b"needle4" in p.read_bytes()]
        layer.chmod(0o644)
        layer.write_bytes(layer.read_bytes().replace(b"needle4", b"needleX"))
        ck = self.open(log="error")
        program.protect(ck)
        with self.assertRaises(varve.Damaged):
            ck.restart(2)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            self.assertTrue(ck.restart())
        self.assertEqual((ck.epoch, program.state["text"], len(program.state["losses"]), len(heard)), (1, "needle2", 2, 1))
        self.assertEqual(ck.checkpoint(), 3)

    def test_interrupted(self):
        """An exception of a signal's handler leaves a checkpointer that goes on."""
        state, native = {"a": torch.ones(1000), "b": torch.ones(2000)}, _native.native()
        ck, unprotect = self.open(), native.varve_unprotect

        def interrupt(*arguments):
            result = unprotect(*arguments)
            os.kill(os.getpid(), signal.SIGINT)
            return result
        ck.protect(state=state)
        ck.checkpoint()
        del state["b"]
        with unittest.mock.patch.object(native, "varve_unprotect", interrupt):
            with self.assertRaises(KeyboardInterrupt):
                ck.checkpoint()
        self.assertEqual(ck.checkpoint(), 2)
        with unittest.mock.patch.object(native, "varve_unprotect", interrupt):
            with self.assertRaises(KeyboardInterrupt):
                ck.restart()
        state["a"] += 1
        self.assertEqual(ck.checkpoint(), 3)
        self.equal(varve.torch.load(self.place()), {"state": state})

    def test_interrupted_between_texts(self):
        """The text that says where the tensors are is written again."""
        state = {"a": torch.ones(1000)}
        ck, write = self.open(), varve.Session._write

        def interrupt(session, pointer, region, text):
            if region == _checkpointer.VIEWS:
                raise KeyboardInterrupt
            write(session, pointer, region, text)
        ck.protect(state=state)
        ck.checkpoint()
        state["b"] = torch.ones(2000)
        with unittest.mock.patch.object(varve.Session, "_write", interrupt), self.assertRaises(KeyboardInterrupt):
            ck.checkpoint()
        ck.checkpoint()
        self.equal(varve.torch.load(self.place()), {"state": state})

    def test_no_memory(self):
        """It is no damage: no older epoch is restored."""
        program, empty = Program(OPTIMIZERS["Adam"]), torch.empty
        ck = self.open()
        program.protect(ck)
        for _ in range(2):
            program.train(2)
            ck.checkpoint()
        ck.close()

        def refuse(*size, **more):
            if more.get("dtype") is torch.uint8 and size[0]:
                raise RuntimeError("out of memory")
            return empty(*size, **more)
        ck = self.open()
        Program(OPTIMIZERS["Adam"]).protect(ck)
        with unittest.mock.patch.object(_checkpointer.torch, "empty", refuse):
            with self.assertRaisesRegex(varve.NoMemory, "no memory for [0-9]+ bytes of the epoch: out of memory; free some"):
                ck.restart()
            with self.assertRaises(varve.NoMemory):
                varve.torch.load(self.place())
        self.assertTrue(ck.restart())
        self.assertEqual(ck.epoch, 2)

    def test_no_memory_for_array(self):
        varve.torch.save({"a": np.zeros(1000)}, self.place())
        with unittest.mock.patch.object(np, "empty", side_effect=MemoryError("no memory")), self.assertRaises(varve.NoMemory):
            varve.torch.load(self.place())

    def test_hostile_texts(self):
        """Any text may stand in a store. Nothing of it is executed, and each is Damaged, or a value."""
        expected = {"a": torch.arange(12.0).reshape(3, 4).t(), "n": np.arange(3), "x": [(1, b"a"), torch.float32]}
        varve.torch.save(expected, self.place())
        e = varve.Store(self.store)["l"][-1]
        good = {n: json.loads(e[n].read_bytes()) for n in (_checkpointer.NODES, _checkpointer.VIEWS)}
        rng, refused = random.Random(5), 0
        for i in range(300):
            texts = copy.deepcopy(good)
            spoil(rng, texts[rng.choice(list(texts))])
            lineage = f"m{i}"
            with varve.open(self.store, lineage) as v:
                held = [torch.arange(12.0), np.arange(3)]
                v["a"], v["n"] = held[0].numpy(), held[1]
                with v._handle as pointer:
                    for name, value in texts.items():
                        v._write(pointer, name, json.dumps(value).encode())
                v.checkpoint()
            try:
                varve.torch.load(self.place(lineage))
            except (varve.Damaged, varve.NotFound):
                refused += 1
        self.assertGreater(refused, 100)


    def test_no_dtype(self):
        """A name that the module torch has, but not for a dtype."""
        for dtype in ("torch.__all__", "torch.load", "torch.nn"):
            lineage = dtype.replace("torch.", "d")
            varve.torch.save({"a": torch.arange(12.0)}, self.place(lineage))
            e = varve.Store(self.store)[lineage][-1]
            texts = {n: json.loads(e[n].read_bytes()) for n in (_checkpointer.NODES, _checkpointer.VIEWS)}
            texts[_checkpointer.VIEWS]["kinds"][0][0] = dtype
            with varve.open(self.store, lineage) as v:
                v["a"] = np.arange(12, dtype="f4")
                with v._handle as pointer:
                    for name, value in texts.items():
                        v._write(pointer, name, json.dumps(value).encode())
                v.checkpoint()
            with self.assertRaises(varve.Damaged):
                varve.torch.load(f"{self.place(lineage)}@2")

    def test_elements_without_region(self):
        """A damaged text may say that a tensor with elements has no region. It is no tensor of any bytes."""
        varve.torch.save({"a": torch.arange(12.0), "empty": torch.empty(0, 3)}, self.place())
        e = varve.Store(self.store)["l"][-1]
        texts = {n: json.loads(e[n].read_bytes()) for n in (_checkpointer.NODES, _checkpointer.VIEWS)}
        views = texts[_checkpointer.VIEWS]
        views["places"][str(views["paths"].index("a"))] = [None, 0]
        held = torch.arange(12.0)
        with varve.open(self.store, "m") as v:
            v["a"] = held.numpy()
            with v._handle as pointer:
                for name, value in texts.items():
                    v._write(pointer, name, json.dumps(value).encode())
            v.checkpoint()
        with self.assertRaisesRegex(varve.Damaged, "'a' has elements, but no region"):
            varve.torch.load(self.place("m"))


class Safetensors(Case):
    def test_round_trip(self):
        t = torch.randn(4, 6)
        state = {"a": {"w": t, "part": t[:, ::2], "t": t.t()}, "list": [torch.tensor(3, dtype=torch.int64), torch.tensor(True)], "empty": torch.empty(0, 3), "step": 7,
                 "half": torch.randn(3).half(), "b": torch.randn(3).bfloat16(), "p": torch.nn.Parameter(torch.ones(2)), "é": torch.arange(5, dtype=torch.uint8)}
        varve.torch.save(state, self.place())
        path = self.folder / "x.safetensors"
        self.assertEqual(varve.torch.save_safetensors(varve.torch.load(self.place()), path), ["step"])
        found = varve.torch.load_safetensors(path)
        expected = {"a.w": t, "a.part": t[:, ::2], "a.t": t.t(), "list.0": state["list"][0], "list.1": state["list"][1], **{k: state[k] for k in ("empty", "half", "b", "p", "é")}}
        self.assertEqual(set(found), set(expected))
        for name, value in expected.items():
            self.assertTrue(found[name].dtype == value.dtype and torch.equal(found[name], value), name)
        self.assertEqual(list(self.folder.glob("*.part")), [])

    def test_durable(self):
        """Content and name are durable. A failure leaves the file of before, and nothing else."""
        path, synced, fsync = self.folder / "x.safetensors", [], os.fsync

        def note(fd):
            synced.append(os.readlink(f"/proc/self/fd/{fd}"))
            fsync(fd)
        with unittest.mock.patch("os.fsync", note):
            varve.torch.save_safetensors({"a": torch.ones(3)}, path)
        self.assertEqual(synced, [f"{path}.part", str(self.folder)])
        with unittest.mock.patch("os.fsync", side_effect=OSError("full")), self.assertRaises(OSError):
            varve.torch.save_safetensors({"a": torch.zeros(3)}, path)
        self.assertEqual((os.listdir(self.folder), varve.torch.load_safetensors(path)["a"].tolist()), ([path.name], [1, 1, 1]))

    def test_not_written(self):
        """The error is that of the file, not that of tidying up."""
        part = self.folder / "x.part"
        part.mkdir()
        with self.assertRaises(IsADirectoryError) as caught:
            varve.torch.save_safetensors({"a": torch.ones(3)}, self.folder / "x")
        self.assertIsNone(caught.exception.__context__)

    def test_refused(self):
        for value, word in (({"x": torch.ones(2, dtype=torch.complex64)}, "complex64"), ({"a": {"b": torch.ones(1)}, "a.b": torch.ones(1)}, "two tensors")):
            with self.assertRaisesRegex(varve.Invalid, word):
                varve.torch.save_safetensors(value, self.folder / "x")
        with self.assertRaisesRegex(varve.torch.Refused, "'x'.*sparse"):
            varve.torch.save_safetensors({"x": torch.eye(3).to_sparse()}, self.folder / "x")

    def test_hostile(self):
        path, rng, damaged = self.folder / "x", random.Random(3), 0
        varve.torch.save_safetensors({"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(5, dtype=torch.int16)}, path)
        good = path.read_bytes()
        length = int.from_bytes(good[:8], "little")
        texts = [good[:n] for n in (0, 7, 8, 40, len(good) - 1)] + [b"\xff" * 8 + good[8:]]
        for _ in range(300):
            header = json.loads(good[8:8 + length])
            spoil(rng, header)
            text = json.dumps(header).encode()
            texts.append(len(text).to_bytes(8, "little") + text + good[8 + length:])
        for shape in ([0, 2**62, 2**62], [0, 2**64], [2**64, 0]):
            text = json.dumps({"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}).encode()
            texts.append(len(text).to_bytes(8, "little") + text)
        row = lambda start, end: {"dtype": "U8", "shape": [end - start], "data_offsets": [start, end]}
        for places, fine in (([(4, 8), (0, 4), (4, 4)], True), ([(0, 8), (0, 8)], False), ([(0, 4), (3, 8)], False), ([(0, 4), (5, 8)], False), ([(1, 8)], False),
                             ([(0, 7)], False), ([], False)):
            text = json.dumps({f"t{i}": row(*place) for i, place in enumerate(places)}).encode()
            path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(range(8)))
            if fine:
                self.assertEqual([t.tolist() for t in varve.torch.load_safetensors(path).values()], [[4, 5, 6, 7], [0, 1, 2, 3], []])
                continue
            with self.assertRaisesRegex(varve.Damaged, "begins at|end at", msg=str(places)):
                varve.torch.load_safetensors(path)
        for text in texts:
            path.write_bytes(text)
            try:
                varve.torch.load_safetensors(path)
            except varve.Damaged:
                damaged += 1
        self.assertGreater(damaged, 100)


def spoil(rng, value):
    """Replaces something in a JSON value."""
    spots = []

    def walk(v):
        for k in v if isinstance(v, dict) else range(len(v)):
            spots.append((v, k))
            if isinstance(v[k], (dict, list)):
                walk(v[k])
    walk(value)
    v, k = rng.choice(spots)
    v[k] = rng.choice([None, -1, 2**70, 1e300, "", "torch.load", [], {}, {"$": "leaf", "v": 99}, {"$": "kept", "v": "os.system"}, {"$": "tuple"}, [[-1]], {"$": "numpy", "v": ["O", "aaaa"]},
                       {"$": "set", "v": [[1]]}, 3, "torch.float64", "cuda:7", "O", [2**62, 4]])


class Documentation(Case):
    def test_doctests(self):
        for module in (varve.torch, _checkpointer, _safetensors):
            self.assertEqual(doctest.testmod(module).failed, 0)

    def test_pages(self):
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        for page in ("docs/start/pytorch.md",):
            path = pathlib.Path(os.environ["VARVE_SOURCE"]) / page
            self.assertEqual(doctest.testfile(str(path), module_relative=False, optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL).failed, 0)


if __name__ == "__main__":
    unittest.main(verbosity=1)
