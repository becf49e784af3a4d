#!/usr/bin/env python3
"""safetensors and PyTorch's zip files: readers find each tensor under its name, and the bytes of its pieces are its elements.
The files are made by tensor_files.py; test_torch.py has those of PyTorch itself."""
import collections
import json
import os
import pathlib
import struct
import subprocess
import tempfile
import zipfile

from tensor_files import Call, Parameter, Storage, Tensor, distributed, safetensors, torch

CHECK = pathlib.Path(os.environ["VARVE_BUILD"]) / "tests" / "outline_check"


def outline(path):
    o = json.loads(subprocess.run([CHECK, path], check=True, capture_output=True, text=True, timeout=60).stdout)
    data = path.read_bytes()
    found = {}
    for number, v in enumerate(o["variables"]):
        v["bytes"] = b"".join(data[p[1]:p[1] + p[2]] for p in o["pieces"] if p[0] == number)
        assert v["name"] not in found, v["name"]
        found[v["name"]] = v
    return o["format"], found


def varve(*words):
    return subprocess.run([os.environ["VARVE_BIN"], *map(str, words)], check=True, capture_output=True).stdout


def same(what, got, want):
    assert got == want, f"{what}: {got!r}, not {want!r}"


def holds(where, found, name, kind, shape, data, swapped=0, partial=0):
    assert name in found, f"{where}: there is no {name} among {list(found)}"
    v = found[name]
    same(f"{where}: {name}", (v["type"], v["shape"], v["swapped"], v["partial"], v["bytes"]), (kind, list(shape), swapped, partial, data))


def noise(n, seed=1):
    out = bytearray()
    while len(out) < n:
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        out += struct.pack("<Q", seed)
    return bytes(out[:n])


# ---- safetensors

def check_safetensors(folder):
    path = folder / "model.safetensors"
    types = {"F64": ("f64", 8), "F32": ("f32", 4), "F16": ("f16", 2), "BF16": ("bf16", 2), "F8_E4M3": ("f8_e4m3", 1), "F8_E5M2": ("f8_e5m2", 1),
             "I64": ("i64", 8), "I32": ("i32", 4), "I16": ("i16", 2), "I8": ("i8", 1), "U64": ("u64", 8), "U32": ("u32", 4), "U16": ("u16", 2),
             "U8": ("u8", 1), "BOOL": ("u8", 1), "C64": ("c64", 8)}
    tensors = {f"layers.{i}.weight": (t, (3, 5), noise(15 * width, i)) for i, (t, (_, width)) in enumerate(types.items())}
    tensors["scalar"] = ("F32", (), noise(4))
    tensors["empty"] = ("F32", (0, 7), b"")
    tensors['odd "näme" \\ \t \u4e2d'] = ("BF16", (2,), noise(4))
    tensors["later"] = ("F4", (6,), noise(3))  # a type of later versions
    safetensors(path, tensors, {"format": "pt", "note": 'a "{[" in it'})
    form, found = outline(path)
    same("format", form, "safetensors")
    same("names", len(found), len(tensors))
    for name, (t, shape, data) in tensors.items():
        shown = "/" + "".join("?" if c < " " else c for c in name)
        if name == "later":
            holds("safetensors", found, shown, "bytes", (3,), data)
        else:
            holds("safetensors", found, shown, types[t][0], shape, data)


def cut_safetensors(folder):
    """A file that is shorter than its header says: whole elements that are there are found."""
    path = folder / "cut.safetensors"
    safetensors(path, {"a": ("F32", (10,), noise(40)), "b": ("F32", (10,), noise(40, 2)), "c": ("F32", (10,), noise(40, 3))})
    data = path.read_bytes()
    path.write_bytes(data[:-70])
    found = outline(path)[1]
    holds("cut", found, "/a", "f32", (10,), noise(40))
    holds("cut", found, "/b", "f32", (10,), noise(40, 2)[:8], partial=1)
    holds("cut", found, "/c", "f32", (10,), b"", partial=1)


def damaged_safetensors(folder):
    path = folder / "bad.safetensors"

    def header(text, rest=64):
        text = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(rest))
        return outline(path)

    form, found = header('{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"b":{"dtype":"F32","shape":[4],"data_offsets":[8,24]}}')
    holds("overlap", found, "/a", "f32", (4,), bytes(16))
    holds("overlap", found, "/b", "f32", (4,), b"", partial=1)
    form, found = header('{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,15]}}')
    holds("shape", found, "/a", "bytes", (15,), bytes(15))
    for text in ('{"a":{"dtype":"F32","shape":[4],"data_offsets":[16,0]}}', '{"a":{"dtype":"F32","shape":[4],"data_offsets":[-1,15]}}',
                 '{"a":{"dtype":"F32","shape":[18446744073709551615,9],"data_offsets":[0,16]}}',
                 '{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,99999999999999999999]}}', '{"a":{"dtype":"F32","data_offsets":[0,16]}}',
                 '{"a":{"dtype":"F32","shape":[4]}}', '{"a":7}', '{"a":{"dtype":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[', '{"a', '{"a":{"dtype":"\\u00'):
        form, found = header(text)
        assert all(not v["bytes"] for v in found.values()), f"{text}: {found}"
    # 2^63 bytes of header, and a header that is not there
    for n in (2**63, 2**64 - 1, 2**40, 1000):
        path.write_bytes(struct.pack("<Q", n) + b'{"a":{}')
        same(f"{n}", outline(path)[0], "opaque")
    with open(path, "wb") as f:  # a sparse header of 3 GiB takes neither time nor memory
        f.write(struct.pack("<Q", 3 << 30) + b'{"')
        f.truncate(4 << 30)
    o = json.loads(subprocess.run([CHECK, path], check=True, capture_output=True, text=True, timeout=20).stdout)
    same("sparse", (o["format"], o["variables"]), ("safetensors", []))


# ---- PyTorch

def state():
    """A training state: a model, two views of one storage, an optimizer, and plain values between them."""
    w, b = Storage("f4", noise(4 * 12 * 7)), Storage("bf16", noise(2 * 9, 2))
    tied, half = Storage("f4", noise(4 * 20, 3)), Storage("f2", noise(2 * 6, 4))
    model = collections.OrderedDict([("fc.weight", Tensor(w, (12, 7))), ("fc.bias", Parameter(Tensor(b, (9,)))), ("in", Tensor(tied, (4, 5))),
                                     ("out", Tensor(tied, (4, 5))), ("turned", Tensor(Storage("f4", noise(24, 5)), (2, 3), (1, 2))),
                                     ("channels", Tensor(Storage("f4", noise(96, 6)), (2, 3, 4), (12, 1, 3)))])
    model._metadata = collections.OrderedDict([("", {"version": 1})])
    moments = {i: {"step": 7, "exp_avg": Tensor(half, (3, 2)), "fp8": Tensor(Storage("float8_e4m3fn", noise(8, 9)), (2, 4))} for i in (3,)}
    values = {"model": model, "optimizer": {"state": moments, "param_groups": [{"lr": 0.1, "params": [0, 1], "betas": (0.9, 0.999)}]},
              "list": [1, None, "text", b"bytes", Tensor(Storage("i8", noise(16, 7)), (2,)), 1 << 70, -5, {1, 2}], "epoch": 300000, "far": -70000,
              "part": Tensor(Storage("i4", noise(400, 8)), (5, 5), offset=50), "none": Tensor(Storage("f4", b""), (0, 4)), "scalar": Tensor(Storage("f8", noise(8)), ())}
    values["again"] = values["list"]
    values["itself"] = values
    return values


def check_state(where, found, big=0):
    def is_there(name, kind, shape, data, **how):
        holds(where, found, name, kind, shape, data, big if kind not in ("f8_e4m3",) else 0, **how)

    is_there("/model/fc.weight", "f32", (12, 7), noise(4 * 12 * 7))
    is_there("/model/fc.bias", "bf16", (9,), noise(18, 2))
    is_there("/model/in", "f32", (4, 5), noise(80, 3))
    assert "/model/out" not in found, "one storage is one variable"
    is_there("/model/turned", "f32", (3, 2), noise(24, 5))
    is_there("/model/channels", "f32", (2, 4, 3), noise(96, 6), partial=1)
    is_there("/optimizer/state/3/exp_avg", "f16", (3, 2), noise(12, 4))
    is_there("/optimizer/state/3/fp8", "f8_e4m3", (2, 4), noise(8, 9))
    is_there("/list/4", "i64", (2,), noise(16, 7))
    is_there("/part", "i32", (5, 5), noise(400, 8)[200:300])
    is_there("/scalar", "f64", (), noise(8))
    same(f"{where}: number", len(found), 10)


def check_torch(folder):
    path = folder / "state.pt"
    for protocol in range(1, 6):  # 0 has no references to data
        for big in (False, True):
            for wide in (False, True):
                path.write_bytes(torch(state(), protocol, big, wide=wide))
                form, found = outline(path)
                same("format", form, "torch")
                check_state(f"protocol {protocol}, big {big}, wide {wide}", found, int(big))
    path.write_bytes(torch(Tensor(Storage("f4", noise(48)), (3, 4))))
    holds("one tensor", outline(path)[1], "/state", "f32", (3, 4), noise(48))
    path.write_bytes(torch(Parameter(Tensor(Storage("f4", noise(48)), (3, 4)))))
    holds("one parameter", outline(path)[1], "/state", "f32", (3, 4), noise(48))
    path.write_bytes(b"something before" + torch(state())[:0] + b"")
    same("no archive", outline(path)[0], "opaque")
    path.write_bytes(torch(state(), method=zipfile.ZIP_DEFLATED))
    same("deflated", outline(path), ("torch", {}))
    # a pickle that breaks off: the tensors before that are found, without names
    data = torch(state())
    at = data.index(b"optimizer")
    path.write_bytes(data[:at - 1] + b"\xff" + data[at:])
    found = outline(path)[1]
    holds("broken pickle", found, "/0", "f32", (12, 7), noise(4 * 12 * 7))
    # PyTorch never runs what a pickle says here, and neither does the reader
    (folder / "trap").unlink(missing_ok=True)
    path.write_bytes(torch({"a": Tensor(Storage("f4", noise(48)), (3, 4)), "trap": Call(os.system, (f"touch {folder}/trap",))}))
    holds("trap", outline(path)[1], "/a", "f32", (3, 4), noise(48))
    assert not (folder / "trap").exists()


def hostile_torch(folder):
    """Values that contain each other 2^40 times, deep nesting, impossible strides and offsets: little time, and nothing outside of a storage."""
    path = folder / "hostile.pt"
    nest = x = []
    for _ in range(40):
        y = []
        x += [y, y]
        x = y
    x.append(Tensor(Storage("f4", noise(48)), (3, 4)))
    path.write_bytes(torch(nest))
    assert len(outline(path)[1]) <= 1
    deep = Tensor(Storage("f4", noise(48)), (3, 4))
    for _ in range(100):
        deep = [deep]
    path.write_bytes(torch(deep))
    same("deep", outline(path)[1], {})
    s = Storage("f4", noise(48))
    path.write_bytes(torch({"end": Tensor(s, (3, 4), offset=1), "far": Tensor(s, (2,), (2**62,)), "many": Tensor(s, (2**62,)), "negative": Tensor(s, (3,), (-1,)),
                            "offset": Tensor(s, (3,), offset=2**61), "below": Tensor(s, (3,), offset=-1), "fan": Tensor(s, (1000,), (0,)), "good": Tensor(s, (12,)),
                            "less": Tensor(s, (3, 4), (1,)), "text": Tensor(s, ("a", 3), (3, 1))}))
    found = outline(path)[1]
    assert all(not v["bytes"] for name, v in found.items() if name != "/good"), found
    holds("hostile", found, "/good", "f32", (12,), noise(48))
    for text in (b"\x80\x02" + b"(" * 100000 + b".", b"]q\x00" + b"h\x00a" * 100000 + b".", b"h\x00.", b"r\xff\xff\xff\xff.", b"\x80\x02]r\xff\xff\x0f\x00.", b"t.", b"0.", b"R.",
                 b"\x8d" + b"\xff" * 8, b"X\xff\xff\xff\xff", b"I" + b"9" * 1000 + b"\n.", b"(((l", b"}(K\x01u.", b"\x93.", b"(i\n.", b"N" * (2 << 20),
                 b"N" * 500000 + b"R" * 499999 + b".", b"N" * 100000 + b"\x85" * 99999 + b"."):
        data = torch({})
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as z:
            z.writestr("archive/data.pkl", text)
            z.writestr("archive/data/0", noise(64))
        same(repr(text[:20]), outline(path), ("torch", {}))
    # a million empty archives, and end records that lead back to themselves
    path.write_bytes(data + (b"PK\5\6" + bytes(18)) * 100000)
    outline(path)


def check_distributed(folder):
    """An archive for each object. The check has no .metadata beside a file; the command has, in the folder and in the store."""
    parts = [("model.w", (0, 0), Tensor(Storage("bf16", noise(6000)), (50, 60))), ("model.w", (50, 0), Tensor(Storage("bf16", noise(6000, 2)), (50, 60))),
             ("optim.step", None, {"step": 3}), ("optim.m", None, Tensor(Storage("f4", noise(4000, 3)), (1000,)))]
    step = folder / "step1"
    step.mkdir()
    distributed(step, "__1_0.distcp", parts, distributed(step, "__0_0.distcp", parts[:1]))
    path = step / "__1_0.distcp"
    form, found = outline(path)
    same("distcp", (form, len(found)), ("torch", 3))
    contents = (("bf16", (50, 60), noise(6000)), ("bf16", (50, 60), noise(6000, 2)), ("f32", (1000,), noise(4000, 3)))
    for name, (kind, shape, data) in zip(("/__1_0/0", "/__1_0/1", "/__1_0/3"), contents):
        holds("distcp", found, name, kind, shape, data)
    varve("pack", folder / "store", "dcp", "-C", folder, "step1")
    varve("unpack", folder / "store", "dcp", "-C", folder / "back")
    for file in step.iterdir():
        same(file.name, (folder / "back" / "step1" / file.name).read_bytes(), file.read_bytes())
    for name, (_, _, data) in zip(("model.w", "model.w@50,0", "optim.m"), contents):
        same(name, varve("extract", folder / "store", f"dcp:step1/__1_0.distcp:{name}"), data)
    # a .metadata that is none costs the names
    (step / ".metadata").write_bytes(b"\x80\x02garbage")
    varve("pack", folder / "store", "other", "-C", folder, "step1")
    same("names", varve("extract", folder / "store", "other:step1/__1_0.distcp:/__1_0/3"), noise(4000, 3))
    # other bytes before an archive do not matter
    path = folder / "after.pt"
    archive = torch(Tensor(Storage("f4", noise(48)), (3, 4)))
    path.write_bytes(archive[:60] + noise(500) + archive)
    holds("after", outline(path)[1], "/after", "f32", (3, 4), noise(48))


with tempfile.TemporaryDirectory() as name:
    for test in (check_safetensors, cut_safetensors, damaged_safetensors, check_torch, hostile_torch, check_distributed):
        test(pathlib.Path(name))
