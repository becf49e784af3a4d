"""The state of a training program: models, optimizers, schedulers and plain state, as regions and two texts."""
from __future__ import annotations

import collections
import copy
import ctypes
import functools
import itertools
import json
import math
import operator
import os
import sys
import typing
import warnings

import torch
import torch.distributed as dist

from ._declare import MAX_DIMS, Memory, memory_of
from ._native import LATEST, Damaged, Invalid, Mismatch, NotFound, RegionInfo, check, encode, native
from ._session import DoneFunction, Group, Session, alone
from ._tensors import BY_DTYPE, Layout, View, allocate, view_of
from ._tree import Decoder, Encoder, Kept, leaves_of

_MEMORY = typing.cast("typing.Callable[[tuple], Memory]", functools.partial(tuple.__new__, Memory))  # Memory._make in C
_TENSORS = {torch.Tensor, torch.nn.Parameter}
_DTYPE, _SHAPE, _GRAD = map(operator.attrgetter, ("dtype", "shape", "requires_grad"))
_PLACE: tuple[typing.Callable[[torch.Tensor], typing.Any], ...] = (torch.Tensor.data_ptr, _SHAPE, _DTYPE, _GRAD, torch.Tensor.is_contiguous)
_BLOCK = 256  # tensors: what a pass has read of them is in the cache when the next pass needs it
NODES, VIEWS = "torch.nodes.json", "torch.views.json"  # regions: the values, and where the tensors are
_NAMES = {value: str(value) for value in vars(torch).values() if isinstance(value, torch.dtype)}
_FORMAT = 2


class Collected:
    """The nodes of some values, with their tensors and arrays. A leaf is a number of a tensor, or the next number counted from -1 down."""

    def __init__(self, values: dict[str, typing.Any], keeps: bool):
        self.paths: list[str] = []
        self.tensors: list[torch.Tensor] = []
        self.arrays: dict[str, typing.Any] = {}
        encoder = Encoder(self._leaf, keeps, self._leaves)
        self.nodes = {name: encoder.encode(value, name) for name, value in values.items()}
        if len(set(self.paths)) < len(self.paths):  # {"a": {"b": t}, "a.b": u}
            self.paths = _unique(self.paths)

    def _leaves(self, path: str, values: dict[str, typing.Any]) -> int | None:
        """Many tensors at once."""
        if not set(map(type, values.values())) <= _TENSORS:
            return None
        first = len(self.tensors)
        self.tensors.extend(values.values())
        self.paths.extend([f"{path}.{k}" for k in values] if path else values)
        return first

    def _leaf(self, path: str, value: typing.Any) -> int | None:
        if isinstance(value, torch.Tensor):
            self.paths.append(path)
            self.tensors.append(value)
            return len(self.tensors) - 1
        numpy = sys.modules.get("numpy")
        if numpy and isinstance(value, numpy.ndarray):
            while path in self.arrays:
                path += "#array"
            self.arrays[path] = value
            return -len(self.arrays)
        return None


class Signature:
    """Where collected tensors and arrays are. While a Plan keeps their memory, the same places are the same regions."""

    def __init__(self, collected: Collected):
        tensors = collected.tensors
        self.paths, self.tensors, self.arrays = collected.paths, tensors, _array_places(collected)
        self.places: list[typing.Any] | None = None
        try:
            self.odd = [i for i, t in enumerate(tensors) if t.is_complex() or t.is_neg() or not t.is_contiguous()]
            self.bits, self.kinds = self._bits(tensors), _kinds(tensors)
            self.places = list(_places(tensors))
        except (RuntimeError, NotImplementedError):  # a tensor without memory, which Layout refuses by name
            pass

    def _bits(self, tensors: list[torch.Tensor]) -> list[typing.Any]:
        """Of tensors that are not contiguous, or of complex numbers."""
        return [(t.stride(), t.is_conj(), t.is_neg()) for t in map(tensors.__getitem__, self.odd)]

    def holds(self, collected: Collected) -> bool:
        """Is everything where it was? There may be thousands of tensors, so they are compared in a few passes in C."""
        now = collected.tensors
        if self.places is None or self.paths != collected.paths or self.arrays != _array_places(collected):
            return False
        try:
            return (len(now) == len(self.tensors) and all(map(operator.eq, _places(now), self.places)) and self._bits(now) == self.bits and
                    (all(map(operator.is_, now, self.tensors)) or _kinds(now) == self.kinds))
        except (RuntimeError, NotImplementedError):
            return False


def _places(tensors: list[torch.Tensor]) -> typing.Iterator[typing.Any]:
    for i in range(0, len(tensors), _BLOCK):
        block = tensors[i:i + _BLOCK]
        yield [list(map(fact, block)) for fact in _PLACE]


def _kinds(tensors: list[torch.Tensor]) -> list[typing.Any]:
    """An object keeps these."""
    return list(zip(map(type, tensors), map(torch.Tensor.is_neg, tensors)))


def _array_places(collected: Collected) -> list[typing.Any]:
    return [(path, id(a), a.ctypes.data, a.shape, a.strides, a.dtype, a.flags.writeable) for path, a in collected.arrays.items()]


def _unique(paths: list[str]) -> list[str]:
    """The second tensor of a path, and those after it, get paths of their own."""
    taken, seen, out = set(paths), set(), []
    for path in paths:
        n, name = 1, path
        while name in seen or (n > 1 and name in taken):
            n += 1
            name = f"{path}#{n}"
        seen.add(name)
        out.append(name)
    return out


class Plan:
    """The regions of collected values, and the text that says which part of which region each tensor is."""

    def __init__(self, collected: Collected):
        self.layout = Layout(collected.paths, collected.tensors)
        self.memory = dict(self.layout.memory)
        self._copies: list[tuple[typing.Any, typing.Any]] = []  # of arrays: to, from
        arrays = []
        for path, array in collected.arrays.items():
            name = self.layout.name(path)
            in_place = array.flags.c_contiguous and array.flags.writeable
            held = array if in_place else array.copy(order="C")
            m = self.memory[name] = memory_of(name, held)
            if not in_place:
                self._copies.append((held, array))
            arrays.append([path, name, m.dtype, list(array.shape)])
        self.text = json.dumps({"format": _FORMAT, **_columns(self.layout.views), "arrays": arrays}).encode()

    def refresh(self) -> None:
        """Copies what is not in one piece in memory into the regions that stand for it."""
        self.layout.refresh()
        for to, source in self._copies:
            to[...] = source


def _columns(views: list[View]) -> dict[str, typing.Any]:
    """Views as a text has them: what many have in common is there once, and most are the whole region of their own name."""
    kinds: dict[tuple, int] = {}
    return {"paths": [v.path for v in views], "kind": [kinds.setdefault(v[3:], len(kinds)) for v in views], "kinds": list(kinds),
            "places": {i: (v.region, v.offset) for i, v in enumerate(views) if v.offset or v.region != v.path}}


class Stored:
    """The two texts of an epoch. Raises Damaged if they are not what Plan and Collected write."""

    def __init__(self, nodes: bytes, views: bytes, where: str):
        try:
            top, places = json.loads(nodes.decode()), json.loads(views.decode())
            if top["format"] != _FORMAT or places["format"] != _FORMAT:
                raise Damaged(f"{where} has format {top['format']!r}, and this version knows format {_FORMAT}; update varve")
            self.objects: dict[str, typing.Any] = top["objects"]
            self.paths, self.kind, self.kinds = places["paths"], places["kind"], [_kind(*k) for k in places["kinds"]]
            self.places = {int(i): (region, offset) for i, (region, offset) in places["places"].items()}
            self._check()
            self.arrays = [(str(path), str(name), str(dtype), tuple(map(int, shape))) for path, name, dtype, shape in places["arrays"]]
            if type(self.objects) is not dict:
                raise ValueError("not the members that varve writes")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
            raise Damaged(f"{where}: '{NODES}' or '{VIEWS}' is not the text that varve.torch writes: {e}") from None
        self.where = where

    def _check(self) -> None:
        lists = {type(self.paths), type(self.kind)} == {list} and len(self.paths) == len(self.kind)
        if not lists or set(map(type, self.paths)) - {str} or set(map(type, self.kind)) - {int}:
            raise ValueError("tensors without names or kinds")
        if self.kind and not 0 <= min(self.kind) <= max(self.kind) < len(self.kinds):
            raise ValueError("a tensor of no kind")
        if not all(type(region) in (str, type(None)) and type(offset) is int for region, offset in self.places.values()):
            raise ValueError("a tensor without a place")

    def view(self, i: int) -> View:
        path = self.paths[i]
        return View(path, *self.places.get(i, (path, 0)), *self.kinds[self.kind[i]])

    def leaves(self, names: typing.Iterable[str]) -> set[int]:
        """The numbers of the tensors and arrays of these objects."""
        try:
            found = set(itertools.chain.from_iterable(leaves_of(self.objects[name]) for name in names))
        except (ValueError, KeyError, TypeError, OverflowError, MemoryError, RecursionError) as e:
            raise Damaged(f"{self.where}: '{NODES}' is not the text that varve.torch writes: {e}") from None
        if found and (set(map(type, found)) != {int} or min(found) < -len(self.arrays) or max(found) >= len(self.paths)):
            raise Damaged(f"{self.where}: '{NODES}' names a tensor that '{VIEWS}' does not have")
        return found


def _kind(dtype: str, shape: list[int], stride: list[int], device: str, flags: str) -> tuple:
    """What tensors have in common: the end of a View."""
    if {*map(type, shape), *map(type, stride)} - {int} or {type(dtype), type(device), type(flags)} != {str} or len(shape) != len(stride):
        raise ValueError("a tensor without a place")
    return dtype, tuple(shape), tuple(stride), device, flags


def nodes_text(nodes: dict[str, typing.Any]) -> bytes:
    return json.dumps({"format": _FORMAT, "objects": nodes}).encode()


def device_for(name: str) -> torch.device:
    """The host, or the GPU that this process uses now."""
    if name.startswith("cuda") and torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def _is_whole(mine: torch.Tensor, view: View) -> bool:
    """Is the program's tensor the whole region, if this view is the only one of it? The library compares the sizes."""
    return (view.region is not None and view.offset == 0 and mine.stride() == view.stride and mine.is_contiguous() and mine.numel() > 0 and
            len(view.shape) <= MAX_DIMS and mine.dtype in BY_DTYPE and not mine.is_conj() and not mine.is_neg())


_FACTS: tuple[typing.Callable[[torch.Tensor], typing.Any], ...] = (_DTYPE, _SHAPE, torch.Tensor.is_contiguous, torch.Tensor.is_neg)


def _facts_of(kind: tuple) -> tuple | None:
    """What _FACTS are of a tensor that is a whole region of this kind. None: there is none, or it is not looked at in passes."""
    dtype, shape, stride, *_ = kind
    known = getattr(torch, dtype.removeprefix("torch."), None)
    whole = isinstance(known, torch.dtype) and known in BY_DTYPE and not known.is_complex and len(shape) <= MAX_DIMS and 0 not in shape
    return (known, shape, True, False) if whole and stride == _contiguous(shape) else None


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a tensor without gaps."""
    return tuple(itertools.accumulate(reversed(shape[1:]), operator.mul, initial=1))[::-1] if shape else ()


class Filling:
    """Memory for the regions of an epoch: the program's own tensors where they have the same place in a region, else new memory."""

    def __init__(self, stored: Stored, leaves: set[int], present: Collected, sizes: typing.Callable[[str], RegionInfo],
                 device: typing.Any = None):
        self.device = device  # for new memory; None: where it was
        self._finished: dict[tuple, torch.Tensor] = {}
        self.stored, self.leaves, self.present, self.sizes = stored, leaves, present, sizes
        self.memory: dict[str, Memory] = {}
        self.tensors: list[torch.Tensor | None] = [None] * len(stored.paths)
        self.arrays: list[typing.Any] = [None] * len(stored.arrays)
        self.copies: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._mine = dict(zip(present.paths, present.tensors))
        try:
            self._place()
        except (ValueError, TypeError, RuntimeError, OverflowError) as e:
            raise Damaged(f"{stored.where}: the places of its tensors are impossible: {e}") from None

    def _usual(self) -> list[int]:
        """Of the wanted tensors those that have a region of their own name."""
        stored, taken = self.stored, {region for region, _ in self.stored.places.values()}
        if len(set(stored.paths)) < len(stored.paths):
            return []
        return [i for i, path in enumerate(stored.paths) if i in self.leaves and i not in stored.places and path not in taken]

    def _has_all(self) -> bool:
        """Does the program have exactly the tensors of the epoch, each wanted, and with a region of its own name?"""
        stored = self.stored
        return (not stored.places and stored.paths == self.present.paths and len(self._mine) == len(stored.paths) and
                len(self.leaves) == len(stored.paths) + len(stored.arrays))

    def _place_whole(self) -> set[int]:
        """Places tensors of the program that are whole regions: thousands of them in a few passes. Returns the numbers of the others."""
        stored, wanted = self.stored, [_facts_of(kind) for kind in self.stored.kinds]
        if self._has_all() and all(wanted):
            usual, mine = list(range(len(stored.paths))), self.present.tensors
        else:
            usual = [i for i in self._usual() if wanted[stored.kind[i]] and stored.paths[i] in self._mine]
            mine = [self._mine[stored.paths[i]] for i in usual]
        facts = [wanted[stored.kind[i]] for i in usual]
        same = list(map(operator.eq, zip(*(map(fact, mine) for fact in _FACTS)), facts))
        if not all(same):
            usual, mine, facts = list(itertools.compress(usual, same)), list(itertools.compress(mine, same)), list(itertools.compress(facts, same))
        addresses, types = map(torch.Tensor.data_ptr, mine), [BY_DTYPE[f[0]] for f in facts if f]
        shapes = [f[1] or (1,) for f in facts if f]
        rows = zip(addresses, types, shapes, itertools.repeat(""), itertools.repeat(None), mine, itertools.repeat(()), itertools.repeat(0))
        self.memory.update(zip([stored.paths[i] for i in usual], map(_MEMORY, rows)))
        for i, t in zip(usual, mine):
            self.tensors[i] = t
        return {i for i in self.leaves if i >= 0}.difference(usual)

    def _place(self) -> None:
        groups: dict[str, list[int]] = {}
        left = sorted(self._place_whole())
        views_of = collections.Counter(self.stored.view(i).region for i in range(len(self.stored.paths) if left else 0))
        for i in left:
            view = self.stored.view(i)
            if view.region is None and 0 not in view.shape:
                raise ValueError(f"'{view.path}' has elements, but no region")
            mine = self._mine.get(view.path)
            if mine is not None and (_NAMES.get(mine.dtype) != view.dtype or mine.shape != view.shape):
                raise Mismatch(f"tensor '{view.path}' is {mine.dtype} {list(mine.shape)}, in {self.stored.where} it is {view.dtype} {list(view.shape)}")
            if mine is not None and views_of[view.region] == 1 and _is_whole(mine, view):
                self.memory[typing.cast(str, view.region)] = Memory(mine.data_ptr(), BY_DTYPE[mine.dtype], view.shape or (1,), "", None, mine)
                self.tensors[i] = mine
            elif view.region is None:
                self.tensors[i] = mine if mine is not None else view_of(torch.empty(0, device=self._device(view)), view)
            else:
                groups.setdefault(view.region, []).append(i)
        for region, leaves in groups.items():
            self._fill(region, leaves)
        self._place_arrays()

    def _device(self, view: View) -> torch.device:
        return device_for(view.device) if self.device is None else torch.device(self.device)

    def _fill(self, region: str, leaves: list[int]) -> None:
        info = self.sizes(region)
        shape = tuple(info.shape[:info.ndim])
        own = self._own_memory(leaves, info.bytes)
        if own is not None:
            self.memory[region] = Memory(own, info.type, shape, "", None, [self._mine[self.stored.view(i).path] for i in leaves])
            for i in leaves:
                self.tensors[i] = self._mine[self.stored.view(i).path]
            return
        device = self._device(self.stored.view(leaves[0]))
        buffer = allocate(torch.empty, info.bytes, info.bytes, dtype=torch.uint8, device=device)
        self.memory[region] = Memory(buffer.data_ptr(), info.type, shape, "", None, buffer)
        made: dict[tuple, torch.Tensor] = {}
        for i in leaves:
            view = self.stored.view(i)
            t = made.get(view[2:])
            if t is None:
                t = made[view[2:]] = view_of(buffer, view)
            mine = self._mine.get(view.path)
            if mine is not None:
                self.copies.append((mine, t))
            self.tensors[i] = t if mine is None else mine

    def _own_memory(self, leaves: list[int], size: int) -> int | None:
        """The address where the program has all these tensors as the epoch had them."""
        base, end = None, 0
        for i in leaves:
            view = self.stored.view(i)
            mine = self._mine.get(view.path)
            if mine is None or tuple(mine.stride()) != view.stride or mine.is_conj() or mine.is_neg() or 0 in view.stride:
                return None
            if base is not None and mine.data_ptr() - view.offset != base:
                return None
            base = mine.data_ptr() - view.offset
            end = max(end, view.offset + view.span(mine.element_size()))
        whole = any(self.stored.view(i).offset == 0 for i in leaves)
        return base if whole and end == size else None

    def _place_arrays(self) -> None:
        if not self.stored.arrays:
            return
        import numpy
        for i, (path, region, dtype, shape) in enumerate(self.stored.arrays):
            if -i - 1 not in self.leaves:
                continue
            mine = self.present.arrays.get(path)
            info = self.sizes(region)
            try:
                wanted = numpy.dtype(dtype)
            except TypeError as e:
                raise ValueError(str(e)) from None
            if wanted.hasobject:
                raise ValueError("objects are not stored")
            if mine is not None and (mine.dtype, mine.shape) != (wanted, shape):
                raise Mismatch(f"array '{path}' is {mine.dtype} {list(mine.shape)}, in {self.stored.where} it is {wanted} {list(shape)}")
            if math.prod(shape) * wanted.itemsize != info.bytes:
                raise ValueError(f"array '{path}' has another size")
            in_place = mine is not None and mine.flags.c_contiguous and mine.flags.writeable
            to = mine if in_place else allocate(numpy.empty, info.bytes, shape, wanted)
            self.memory[region] = memory_of(region, to)
            if mine is not None and mine.flags.writeable and to is not mine:
                self.copies.append((mine, to))
            self.arrays[i] = mine if mine is not None and mine.flags.writeable else to

    def finish(self) -> None:
        """After the memory has been read."""
        with torch.no_grad():
            for to, source in self.copies:
                if isinstance(to, torch.Tensor):
                    once = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in to.stride())  # each element in memory
                    to[once].copy_(source[once])
                else:
                    to[...] = source

    def leaf(self, number: int) -> typing.Any:
        if type(number) is not int:
            raise ValueError("a leaf without a number")
        return self.tensors[number] if number >= 0 else self.arrays[-number - 1]

    def leaves_from(self, first: int, n: int) -> list[typing.Any]:
        """As leaf, of n tensors."""
        if type(first) is not int or not 0 <= first <= first + n <= len(self.tensors):
            raise ValueError("leaves without numbers")
        return self.tensors[first:first + n]

    def finished(self, number: int) -> typing.Any:
        """The leaf as it was: a Parameter, or a tensor that requires a gradient. What was one object is one object."""
        if type(number) is not int or number < 0:
            return self.leaf(number)
        t, view = self.leaf(number), self.stored.view(number)
        if view.region is not None and view[1:] in self._finished:
            return self._finished[view[1:]]
        if "p" in view.flags:
            t = torch.nn.Parameter(t, requires_grad="g" in view.flags)
        elif "g" in view.flags:
            t = t.detach().requires_grad_()
        self._finished[view[1:]] = t
        return t


# ---- objects of PyTorch ----------------------------------------------------------------------------------------------


def state_of(value: typing.Any) -> typing.Any:
    """The state of a protected object; tensors are the object's own, not copies, where it gives them."""
    if isinstance(value, torch.nn.Module):
        return dict(value.state_dict(keep_vars=True))
    return value if isinstance(value, (dict, torch.Tensor)) or _is_array(value) else value.state_dict()


def _is_array(value: typing.Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _check_object(name: str, value: typing.Any) -> None:
    has_state = callable(getattr(value, "state_dict", None)) and callable(getattr(value, "load_state_dict", None))
    if isinstance(value, type):
        raise TypeError(f"'{name}' is the class {value.__name__}; protect an object of it")
    if not has_state and type(value) is not dict and not isinstance(value, torch.Tensor) and not _is_array(value):
        raise TypeError(f"'{name}' is of type {type(value).__name__}; protect tensors, arrays, a dict, and objects with state_dict() and "
                        f"load_state_dict(), such as models, optimizers and schedulers")


def _keys(node: typing.Any) -> set[str]:
    """The names in the node of a dict."""
    if type(node) is dict and node.get("$") == "leaves":
        return set(map(str, node["v"][1]))
    return set(node) if type(node) is dict and "$" not in node else set()


def _check_keys(name: str, theirs: set[str], mine: set[str], where: str) -> None:
    """Of a model: nothing is changed if it has other tensors than the epoch."""
    missing, extra = sorted(mine - theirs), sorted(theirs - mine)
    differences = [f"{who} has no {', '.join(keys[:5])}{' and others' if len(keys) > 5 else ''}" for who, keys in
                   (("the epoch", missing), ("the program", extra)) if keys]
    if differences:
        raise Mismatch(f"'{name}' is another model than in {where}: {'; '.join(differences)}")


def _moved(value: typing.Any, device: torch.device, with_step: bool, key: typing.Any = None) -> typing.Any:
    """The state of a parameter, with its tensors on the parameter's device."""
    if isinstance(value, torch.Tensor):
        if key == "step":
            return value.to(device, torch.float32) if with_step else value
        return value.to(device)
    if isinstance(value, dict):
        moved = copy.copy(value)
        for k, v in value.items():
            moved[k] = _moved(v, device, with_step, k)
        return moved
    return type(value)(_moved(v, device, with_step) for v in value) if type(value) in (list, tuple, set, frozenset) else value


def _load_optimizer(name: str, optimizer: torch.optim.Optimizer, state: dict[str, typing.Any], where: str) -> None:
    """What Optimizer.load_state_dict does, without its copies and without another dtype for the state."""
    groups, saved = optimizer.param_groups, state["param_groups"]
    if [len(g["params"]) for g in groups] != [len(g["params"]) for g in saved]:
        raise Mismatch(f"optimizer '{name}' has parameter groups of {[len(g['params']) for g in groups]} parameters, in {where} they are of "
                       f"{[len(g['params']) for g in saved]}")
    parameters = [p for g in groups for p in g["params"]]
    numbers = [i for g in saved for i in g["params"]]
    by_number = dict(zip(numbers, parameters))
    on_device = {i for g in saved if g.get("capturable") or g.get("fused") for i in g["params"]}  # "step", too
    filled: dict[typing.Any, typing.Any] = collections.defaultdict(dict)
    for key, value in state["state"].items():
        if key in by_number:
            filled[by_number[key]] = _moved(value, by_number[key].device, key in on_device)
        else:
            filled[key] = value
    restored = [{**g, "params": mine["params"]} for g, mine in zip(saved, groups)]
    optimizer.__setstate__({"state": filled, "param_groups": restored})


def _is_plain_optimizer(value: typing.Any) -> bool:
    hooks = [getattr(value, f"_optimizer_load_state_dict_{when}_hooks", None) for when in ("pre", "post")]
    return isinstance(value, torch.optim.Optimizer) and type(value).load_state_dict is torch.optim.Optimizer.load_state_dict and not any(hooks)


def _put(name: str, value: typing.Any, state: typing.Any, where: str) -> None:
    """Gives an object its state. Tensors of it that were filled in place are in `state` as they are."""
    if isinstance(value, torch.nn.Module):
        ordered = collections.OrderedDict(state)
        ordered._metadata = getattr(value.state_dict(), "_metadata", None)  # type: ignore[attr-defined]  # versions of its modules
        value.load_state_dict(ordered)
    elif _is_plain_optimizer(value):
        _load_optimizer(name, value, state, where)
    elif type(value) is dict:
        value.clear()
        value.update(state)
    elif not isinstance(value, torch.Tensor) and not _is_array(value):
        value.load_state_dict(state)


def group_of(group: typing.Any) -> Group:
    """ "auto": all ranks of torch.distributed if it is initialised; None: this process alone."""
    if group not in ("auto", None) and (not dist.is_available() or group is not getattr(dist.group, "WORLD", None)):
        raise Invalid("the group of a session is all ranks of torch.distributed ('auto'), or this process alone (None)")
    several = group is not None and dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
    if not several:
        return Group()
    from ._group import TorchGroup
    return TorchGroup()


class Checkpointer:
    """Saves and restores the whole state of a training program. Tensors are saved from where they are, and restored there.

    >>> import tempfile, torch, varve.torch
    >>> folder = tempfile.TemporaryDirectory()
    >>> model = torch.nn.Linear(3, 2)
    >>> optimizer = torch.optim.Adam(model.parameters())
    >>> state = {"step": 0}
    >>> ck = varve.torch.Checkpointer(folder.name, "run1", keep=3)
    >>> ck.protect(model=model, optimizer=optimizer, state=state)
    >>> ck.restart()
    False
    >>> state["step"] = 7
    >>> ck.checkpoint()
    1
    >>> state["step"] = 8
    >>> ck.restart(), state["step"]
    (True, 7)
    >>> ck.close()
    >>> folder.cleanup()

    With torch.distributed initialised, all ranks make the same calls, and each rank has its own state. group=None is for a program
    in which one rank alone uses the checkpointer. Options are those of varve.open().
    """

    def __init__(self, store: str | os.PathLike, lineage: str, *, group: typing.Any = "auto", **options: typing.Any):
        self._objects: dict[str, typing.Any] = {}
        self._signature: Signature | None = None
        self._plan: Plan | None = None
        self.session = Session(store, lineage, _group=group_of(group), **options)

    @property
    def _handle(self) -> typing.Any:
        return self.session._handle

    def __enter__(self) -> Checkpointer:
        return self

    def __exit__(self, *error: typing.Any) -> None:
        self.session.__exit__(*error)

    def __repr__(self) -> str:
        return f"<varve.torch.Checkpointer {', '.join(self._objects)} in {self.session!r}>"

    @alone
    def protect(self, **objects: typing.Any) -> None:
        """Adds objects to save, or replaces them: models, optimizers, schedulers, scalers, loaders and other objects with state_dict() and
        load_state_dict(); a dict of plain values, tensors and arrays; a tensor; an array. None removes an object."""
        for name, value in objects.items():
            if value is not None:
                _check_object(name, value)
        for name, value in objects.items():
            if value is None:
                self._objects.pop(name, None)
            else:
                self._objects[name] = value

    def _collect(self) -> Collected:
        return Collected({name: state_of(value) for name, value in self._objects.items()}, keeps=True)

    def _forget(self) -> None:
        self._signature = self._plan = None  # first: an exception may leave some regions
        self.session._delete(self.session)

    def _declare(self, collected: Collected) -> Plan:
        plan, old = Plan(collected), self.session._handle.memory
        self.session._delete(n for n in old if n not in plan.memory)
        self.session._declare_all({name: m for name, m in plan.memory.items() if name not in old or not old[name].declares_as(m)})
        old.update(plan.memory)  # the tensors of now keep it
        return plan

    @alone
    def checkpoint(self, label: str | None = None) -> int:
        """Saves the present state as a new epoch, and returns its number. The state may be changed when the call returns."""
        collected = self._collect()
        if self._plan is None or self._signature is None or not self._signature.holds(collected):
            self._signature = None
            self._plan = self._declare(collected)
            with self.session._handle as pointer:
                self.session._write(pointer, VIEWS, self._plan.text)
            self._signature = Signature(collected)
        self._plan.refresh()
        if label is not None:
            self.session.label(label)
        with self.session._handle as pointer:
            self.session._write(pointer, NODES, nodes_text(collected.nodes))
        return self.session.checkpoint()

    @alone
    def restart(self, epoch: int | str | None = None) -> bool:
        """Restores the state from an epoch: a number, a label, or the newest intact epoch.

        Returns False if the lineage has no epoch yet. After an exception the state is undefined, except after Mismatch.
        """
        session = self.session
        number = session._number(epoch)
        self._forget()
        with session._handle as pointer:
            session._drop_text(pointer)
            if session._handle.call(native().varve_restart, number) == 0:  # no region: it only finds the epoch, the same on all ranks
                return False
            number = native().varve_epoch(pointer)
        damage = self._try(number)
        if damage and epoch is not None:
            raise damage
        for e in session._older(number) if damage else ():
            warnings.warn(f"{damage}; epoch {e} is tried", RuntimeWarning, stacklevel=2)
            damage = self._try(e)
            if damage is None:
                break
        if damage:
            raise damage
        return True

    def _stored(self, number: int) -> Stored:
        session, where = self.session, f"epoch {number} of lineage '{self.session._lineage}'"
        with session._handle as pointer:
            return Stored(session._read(pointer, number, NODES), session._read(pointer, number, VIEWS), where)

    def _fill(self, number: int) -> tuple[Stored, Filling]:
        stored, present = self._stored(number), self._collect()
        for name, value in self._objects.items():
            if name not in stored.objects:
                raise NotFound(f"{stored.where} has no '{name}'; protect it after the restart")
            if isinstance(value, torch.nn.Module):
                _check_keys(name, _keys(stored.objects[name]), _keys(present.nodes[name]), stored.where)

        with self.session._handle as pointer:
            def size(region: str) -> RegionInfo:
                info = RegionInfo()
                check(native().varve_region_sized(pointer, number, encode("name", region), ctypes.byref(info), ctypes.sizeof(info)))
                return info

            return stored, Filling(stored, stored.leaves(self._objects), present, size)

    def _try(self, number: int) -> Damaged | None:
        try:
            damage = self._try_to_fill(number)
        except Exception:
            self._forget()
            raise
        if damage:
            self._forget()
        return damage

    def _try_to_fill(self, number: int) -> Damaged | None:
        """Each step that may fail on one rank alone ends on all ranks alike."""
        error: Exception | None = None
        try:
            stored, filling = self._fill(number)
            self.session._declare_all(filling.memory)
        except Exception as e:
            error = e
        damage = self.session._agree(error, Mismatch)
        if damage:
            return damage
        try:
            with self.session._handle:
                self.session._handle.call(native().varve_restart, number)
        except Damaged as e:
            return e
        try:
            filling.finish()
            self._give(stored, filling)
        except Exception as e:
            error = e
        return self.session._agree(error)

    def _give(self, stored: Stored, filling: Filling) -> None:
        decoder = Decoder(filling.leaf, filling.leaves_from)
        for name, value in self._objects.items():
            try:
                state = decoder.decode(stored.objects[name], state_of(value))
            except Kept as e:
                raise Mismatch(f"'{name}' has the function {e} in {stored.where}, and another one, or none, in the program; functions are not stored") from None
            except (ValueError, KeyError, TypeError, IndexError, RecursionError) as e:
                raise Damaged(f"{stored.where}: the state of '{name}' is not what varve.torch writes: {e}") from None
            _put(name, value, state, stored.where)

    def due(self) -> bool:
        """See Session.due()."""
        return self.session.due()

    def wait(self, timeout: float | None = None, epoch: int | None = None) -> bool:
        """See Session.wait()."""
        return self.session.wait(timeout, epoch)

    async def durable(self, epoch: int | None = None) -> int:
        """See Session.durable()."""
        return await self.session.durable(epoch)

    def on_done(self, function: DoneFunction | None) -> None:
        """See Session.on_done()."""
        self.session.on_done(function)

    @property
    def epoch(self) -> int:
        """The number of the newest epoch of this session, taken or restarted from; 0 if there is none."""
        return self.session.epoch

    def close(self) -> None:
        """See Session.close()."""
        self.session.close()
