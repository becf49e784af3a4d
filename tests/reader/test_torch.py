#!/usr/bin/env python3
# ctest: TIMEOUT 300 COST 15
"""PyTorch's own files: packed, unpacked byte for byte, and each tensor extracted has PyTorch's numbers."""
import collections
import os
import pathlib
import subprocess
import sys
import tempfile

DEBIAN = "/usr/bin/python3"
if sys.executable != DEBIAN and os.path.exists(DEBIAN) and "VARVE_AGAIN" not in os.environ:
    os.execve(DEBIAN, [DEBIAN, *sys.argv], {**os.environ, "VARVE_AGAIN": "1"})
try:
    import numpy as np
    import torch
except ImportError as e:
    print(f"skip: {e.name} is not installed (Debian: python3-torch)", file=sys.stderr)
    sys.exit(77)

VARVE = os.environ["VARVE_BIN"]


def varve(*words):
    return subprocess.run([VARVE, *map(str, words)], check=True, capture_output=True).stdout


def bits(t):
    """The bytes of a tensor as it lies in memory, in the order of an array."""
    t = t.detach()
    t = (t if t.is_contiguous() else t.t()).contiguous()
    return t.view(torch.int16).numpy().tobytes() if t.dtype == torch.bfloat16 else t.numpy().tobytes()


def train():
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.BatchNorm1d(128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    adam = torch.optim.Adam(model.parameters())
    for _ in range(3):
        adam.zero_grad()
        model(torch.randn(32, 64)).square().sum().backward()
        adam.step()
    extra = collections.OrderedDict((str(t)[6:], (torch.randn(17, 5) * 50).to(t)) for t in (torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32,
                                                                                           torch.int16, torch.int8, torch.uint8, torch.bool, torch.complex64))
    wide = torch.randn(40, 30)
    return {"model": model.state_dict(), "optimizer": adam.state_dict(), "extra": extra, "turned": torch.randn(12, 7).t(), "rows": wide[5:9], "columns": wide[:, 3:6],
            "tied": [model[0].weight, model[0].weight], "epoch": 4, "rng": torch.get_rng_state()}


def tensors(prefix, value):
    if isinstance(value, torch.Tensor):
        yield prefix, value
    elif isinstance(value, dict):
        for k, v in value.items():
            yield from tensors(f"{prefix}/{k}", v)
    elif isinstance(value, (list, tuple)):
        for i, v in enumerate(value):
            yield from tensors(f"{prefix}/{i}", v)


def check(folder, name, value):
    store = folder / "store"
    torch.save(value, folder / name)
    varve("pack", store, name, "-C", folder, name)
    varve("unpack", store, name, "-C", folder / "back")
    assert (folder / "back" / name).read_bytes() == (folder / name).read_bytes(), name
    seen = 0
    for path, t in tensors("", value):
        out = folder / "out.raw"
        if path == "/columns":
            done = subprocess.run([VARVE, "extract", store, f"{name}:{name}:{path}", "-o", out], capture_output=True, text=True)
            assert done.returncode == 2 and "do not lie in the order of an array" in done.stderr, done
            continue
        if path == "/rows":  # inside of `columns`, which holds most of the storage
            continue
        varve("extract", store, f"{name}:{name}:{path or '/' + pathlib.Path(name).stem}", "-o", out)
        assert out.read_bytes() == bits(t), path
        seen += 1
        if t.dtype == torch.float32 and t.ndim:
            varve("extract", store, f"{name}:{name}:{path or '/' + pathlib.Path(name).stem}", "-o", folder / "out.npy")
            a = np.load(folder / "out.npy")
            assert a.shape == tuple(t.shape) and np.array_equal(a, t.detach().numpy(), equal_nan=True), path
    return seen


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    assert check(folder, "state.pt", train()) > 30
    assert check(folder, "one.pth", torch.randn(33, 21)) == 1
    assert check(folder, "parameter.pt", torch.nn.Parameter(torch.randn(8, 9))) == 1
