#!/usr/bin/env python3
# ctest: TIMEOUT 300 COST 15
"""varve pack and unpack: a set of files becomes an epoch and comes back byte for byte, with modes and times; and one variable of one file."""
import json
import math
import os
import pathlib
import random
import re
import shutil
import signal
import stat
import struct
import subprocess
import time
import unittest

import command

MIB = 1 << 20
SCHEMES = ["auto", "agnostic", "agnostic-block", "aware", "aware-block"]
MPIEXEC = os.environ.get("VARVE_MPIEXEC")


def doubles(n, seed=0):
    """A smooth field, as simulations write it."""
    return struct.pack(f"<{n}d", *[(i % 97) * 0.25 + seed + (i // 97) * 1e-3 for i in range(n)])


def netcdf(fields):
    """A CDF-1 file: a fixed variable `grid` of 5 int32, and record variables x (f64 [t][3]) and y (i16 [t][2]), a record for each of fields."""
    def name(s):
        return struct.pack(">I", len(s)) + s.encode() + bytes(-len(s) % 4)
    dims = [("t", 0), ("three", 3), ("two", 2), ("five", 5)]
    variables = [("grid", [3], 4, 20), ("x", [0, 1], 6, 24), ("y", [0, 2], 3, 4)]

    def head(begin):
        out = b"CDF\x01" + struct.pack(">III", len(fields), 10, len(dims))
        for n, size in dims:
            out += name(n) + struct.pack(">I", size)
        out += struct.pack(">IIII", 0, 0, 11, len(variables))
        for (n, d, t, size), at in zip(variables, begin):
            out += name(n) + struct.pack(f">I{len(d)}I", len(d), *d) + struct.pack(">IIIII", 0, 0, t, size, at)
        return out
    base = len(head([0, 0, 0]))
    out = head([base, base + 20, base + 44]) + struct.pack(">5i", *range(5))
    for f in fields:
        out += struct.pack(">3d", f, f + 1, f + 2) + struct.pack(">2h", int(f), -int(f))
    return out


# A program that renames newer files to the path "x", at the moment that REPLACE names.
REPLACE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int unlink(const char *path)
{
	size_t n = strlen(path);
	if (n && path[n - 1] == 'x' && strcmp(getenv("REPLACE"), "unlink") == 0)
		rename("newer", "x");
	return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}
int renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
	if (strcmp(getenv("REPLACE"), "full") == 0) {
		errno = ENOSPC;
		return -1;
	}
	if (strcmp(getenv("REPLACE"), "unlink") != 0 && strcmp(from, "x") == 0)
		rename("newer", "x");
	if (strcmp(getenv("REPLACE"), "both") == 0 && strcmp(to, "x") == 0)
		rename("newest", "x");
	return (int)syscall(SYS_renameat2, a, from, b, to, flags);
}
"""


class Pack(command.Case):
    def setUp(self):
        super().setUp()
        self.set = self.folder / "set"
        self.set.mkdir()
        for r in 0, 2, 10:
            (self.set / f"rank{r}").mkdir()
            self.put(f"rank{r}/field", doubles(20000, r), 0o640)
            self.put(f"rank{r}/log", b"step %d\n" % r * 500)
        self.put("empty", b"")
        self.put("noise", command.noise(200000), 0o755)
        self.put("odd\nname \xe4", b"odd", 0o400)
        self.put("zeros", bytes(3 << 20))
        self.out = self.folder / "out"

    def put(self, name, data, mode=0o644):
        path = self.set / name
        path.write_bytes(data)
        path.chmod(mode)
        os.utime(path, ns=(1, 1234567890123456789 + len(name)))

    def tree(self, folder):
        """{name: (bytes, mode, mtime)} of all that is below."""
        found = {}
        for path in pathlib.Path(folder).rglob("*"):
            if not path.is_dir():
                st = path.lstat()
                found[str(path.relative_to(folder))] = (path.read_bytes() if path.is_file() else None, stat.S_IMODE(st.st_mode), st.st_mtime_ns)
        return found

    def check_back(self, lineage, *words):
        shutil.rmtree(self.out, ignore_errors=True)
        self.varve("unpack", self.store, lineage, "-C", self.out, *words)
        self.assertEqual(self.tree(self.out), self.tree(self.set))

    def test_round_trip(self):
        text = self.varve("pack", self.store, "run", "-C", self.set, ".")
        self.assertRegex(text, r"EPOCH +FILES +BYTES +NEW +STORED +LAYERS +RATIO +MB/S\n +1 +10 ")
        self.check_back("run")
        self.assertEqual((self.out / "zeros").stat().st_blocks, 0)
        self.put("rank2/field", doubles(20000, 3))
        self.put("more", b"more")
        found = self.json("pack", self.store, "run", "-C", self.set, "-j", 2, ".")
        self.assertEqual((found["epoch"], found["files"], found["skipped"]), (2, 11, 0))
        self.assertEqual(found["bytes"], sum(len(b) for b, _, _ in self.tree(self.set).values()))
        self.check_back("run")
        self.check_back("run@2", "-j", 1)
        self.varve("unpack", self.store, "run@1", "-C", self.folder / "old", "-q")
        self.assertFalse((self.folder / "old" / "more").exists())
        self.varve("verify", self.store)

    def test_again_is_free(self):
        self.varve("pack", self.store, "run", "-C", self.set, ".")
        before = sum(p.stat().st_size for p in self.store.rglob("*.layer"))
        self.varve("pack", self.store, "run", "-C", self.set, ".")
        self.assertLess(sum(p.stat().st_size for p in self.store.rglob("*.layer")) - before, 16384)
        self.check_back("run")

    def test_slabs(self):
        """What is all new becomes a block as it was read. Not so twins, in one stretch or two, zeros, and odd ends; with numbers and what is coded among them."""
        dice = random.Random(5)
        a, b, c = (dice.getrandbits(8 * n).to_bytes(n, "little") for n in (5 * MIB + 5, 5 * MIB + 3, 2 * MIB))
        b = b[:2 * MIB] + b[MIB:MIB + 200000] + b[2 * MIB:4 * MIB] + b[:300000] + b[4 * MIB:]
        for name, data in (("alone.bin", a), ("twins.bin", b), ("holes.bin", c[:MIB] + bytes(300000) + c[MIB:]), ("again.bin", a[7:])):
            self.put(name, data)
        for name, n in (("u", 1 << 18), ("v", (1 << 17) + 13), ("w", 1 << 16)):
            head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({n},), }}".ljust(117).encode() + b"\n"
            self.put(f"{name}.npy", b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + doubles(n, len(name)))
        payloads = []
        for threads in 1, 3:
            self.store = self.folder / f"slabs{threads}"
            for epoch in 1, 2:
                self.put("text", b"%d bottles" % epoch * 300000)
                self.varve("pack", self.store, "run", "-C", self.set, "-j", threads, ".")
            self.check_back("run", "-j", 3)
            self.varve("verify", self.store)
            layers = [p.read_bytes() for p in sorted(self.store.rglob("*.layer"))]
            self.assertLess(len(layers[1]), MIB)
            payloads.append(layers[0][4096:8 * MIB])
        self.assertEqual(*payloads)

    def test_levels(self):
        for level in "fast", "default", "max":
            self.varve("pack", self.store, level, "--level", level, "-C", self.set, ".")
            self.check_back(level)

    def test_max_is_smallest(self):
        """Records of atoms, as LAMMPS writes them: a higher level is not larger by more than 0.1 %."""
        if "zstd" not in self.json("config")["codecs"]:
            self.skipTest("built without zstd")
        for rank in range(8):
            r = random.Random(rank)
            atoms = [struct.pack("<4d3q4d", 11, *[r.uniform(0, 33.6) for _ in range(3)], 4000 * rank + i, 1, 512 << 20 | 512, *[r.gauss(0, 1.7) for _ in range(3)], 0)
                     for i in range(2000)]
            self.put(f"restart.100.{rank}", b"".join(atoms))
        sizes = [self.json("pack", self.store, level, "-C", self.set, "--level", level, *[f"restart.100.{r}" for r in range(8)])["bytes_layer"] for level in ("fast", "default", "max")]
        self.assertLess(sizes[1], sizes[0])
        self.assertLess(sizes[2], sizes[1] * 1.001)

    def test_schemes(self):
        p = self.run_raw("pack", self.store, "agnostic", "--scheme", "agnostic", "-C", self.set, ".")
        if b"built without" in p.stderr:
            self.skipTest(p.stderr.decode())
        for scheme in SCHEMES:
            with self.subTest(scheme=scheme):
                self.varve("pack", self.store, scheme, "--scheme", scheme, "-C", self.set, ".")
                self.check_back(scheme)
        for words in (["--group", 2], ["--block", "1KiB"], ["--single"], ["--small", 4096], ["--key", "none"]):
            self.varve("pack", self.store, "more", "--scheme", "aware-block", *words, "-C", self.set, ".")
            self.check_back("more")

    def test_names(self):
        """Relative, whatever is said; in the order given; nothing that leads upwards."""
        self.varve("pack", self.store, "run", self.set / "noise", "./set//rank2/./log", "set/empty")
        found = self.json("unpack", self.store, "run", "--list")["files"]
        self.assertEqual([f["name"] for f in found], [str(self.set / "noise")[1:], "set/rank2/log", "set/empty"])
        self.assertEqual((found[0]["bytes"], found[0]["mode"]), (200000, "0755"))
        self.varve("pack", self.store, "order", "-C", self.set, ".")
        names = [f["name"] for f in self.json("unpack", self.store, "order", "--list")["files"]]
        self.assertLess(names.index("rank2/log"), names.index("rank10/log"))
        self.assertIn("-C DIR", self.fails("pack", self.store, "run", "../x"))
        self.assertIn("-C DIR", self.fails("pack", self.store, "run", "set/../set/noise"))
        same = self.folder / str(self.folder)[1:]
        same.mkdir(parents=True)
        (same / "x").write_bytes(b"one")
        self.file("x", b"another")
        self.assertIn("would both be called", self.fails("pack", self.store, "two", self.folder / "x", str(self.folder / "x")[1:]))
        self.assertIn("No such file", self.fails("pack", self.store, "run", "nix"))
        self.assertIn("which files", self.fails("pack", self.store, "run"))
        self.assertIn("scheme", self.fails("pack", self.store, "run", "noise", "--scheme", "nix"))
        self.assertIn("usage: varve pack", self.fails("pack", self.store))
        self.assertEqual(self.json("ls", self.store, "run")["epochs"][-1]["epoch"], 1)

    def test_lists(self):
        for end in b"\0", b"\n":
            names = [b"rank0/field", b"empty", b"rank10"]
            names += [b"odd\nname \xc3\xa4"] if end == b"\0" else []
            self.file("list", end.join(names) + end)
            self.varve("pack", self.store, "list", "-C", self.set, "--files-from", "list", "noise")
            p = self.run_raw("pack", self.store, "list", "-C", self.set, "--files-from", "-", input=end.join(names))
            self.assertEqual((p.returncode, p.stderr), (0, b""))
            found = [f["name"] for f in self.json("unpack", self.store, "list", "--list")["files"]]
            self.assertEqual(found[:4], ["rank0/field", "empty", "rank10/field", "rank10/log"])
            self.assertEqual(found[4:], ["odd\nname \xe4"] if end == b"\0" else [])
        self.assertIn("nix", self.fails("pack", self.store, "list", "--files-from", "nix"))

    def test_left_out(self):
        (self.set / "link").symlink_to(self.set / "noise")
        os.mkfifo(self.set / "pipe")
        p = self.run_raw("pack", self.store, "run", "set")
        self.assertEqual(p.returncode, 0)
        self.assertIn(b"'set/link' is a link", p.stderr)
        self.assertIn(b"'set/pipe' is a pipe", p.stderr)
        only = self.run_raw("pack", self.store, "only", "set/pipe")
        self.assertEqual(only.returncode, 2)
        self.assertIn(b"pack: there is no file to pack in what was named: no epoch was stored", only.stderr)
        self.assertFalse((self.store / "only").exists())
        self.assertEqual(self.json("pack", self.store, "run", "set")["skipped"], 2)
        names = [f["name"] for f in self.json("unpack", self.store, "run", "--list")["files"]]
        self.assertFalse({"set/link", "set/pipe"} & set(names))
        self.varve("pack", self.store, "link", "set/link")
        self.varve("unpack", self.store, "link", "-C", self.out)
        self.assertEqual((self.out / "set/link").read_bytes(), command.noise(200000))

    def test_some(self):
        self.varve("pack", self.store, "run", "set")
        self.varve("unpack", self.store, "run", "-C", self.out, "./set/rank2/", "set/noise")
        self.assertEqual(sorted(self.tree(self.out)), ["set/noise", "set/rank2/field", "set/rank2/log"])
        self.assertIn("set/rank10/log", self.fails("unpack", self.store, "run", "-C", self.out, "log"))
        text = self.varve("unpack", self.store, "run", "--list", "set/rank10")
        self.assertRegex(text, r"(?m)^0640 +160000 +2009-02-1\d \S+ +\S+ +set/rank10/field$")
        self.assertEqual(text.count("\n"), 3)
        self.assertIn("no file 'set/rank11'", self.fails("unpack", self.store, "run", "--list", "set/rank10", "set/rank11"))

    def test_shown_names_can_be_extracted(self):
        head = repr({"descr": "<f8", "fortran_order": False, "shape": (20000,)}).encode().ljust(117) + b"\n"
        self.put("density.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + doubles(20000))
        self.varve("pack", self.store, "npy", "-C", self.set, "density.npy")
        self.assertRegex(self.varve("show", self.store, "npy"), r"(?m)^  density +f64 +\[20000\] ")
        last = self.json("show", self.store, "npy")["per_rank"][0]["variables"][-1]
        self.assertEqual((last["name"], last["key"]), ("density", "density_F64LE_Array1D"))
        self.varve("extract", self.store, "npy:density.npy:density", "-o", "back.npy")
        self.assertEqual((self.folder / "back.npy").read_bytes()[-8:], doubles(20000)[-8:])

    def test_existing(self):
        self.varve("pack", self.store, "run", "-C", self.set, ".")
        self.out.mkdir()
        (self.out / "noise").write_bytes(b"mine")
        message = self.fails("unpack", self.store, "run", "-C", self.out)
        self.assertIn("'noise'", message)
        self.assertIn("--force", message)
        self.assertEqual(list(self.tree(self.out)), ["noise"])
        self.varve("unpack", self.store, "run", "-C", self.out, "--force")
        self.assertEqual(self.tree(self.out), self.tree(self.set))

    def test_not_files(self):
        self.write("region", "x", "u8", 4, "checkpoint")
        self.assertIn("not packed from files", self.fails("unpack", self.store, "heat"))

    def test_delete(self):
        want = self.tree(self.set)
        text = self.varve("pack", self.store, "run", "--delete", "-C", self.set, ".")
        self.assertIn("10 files deleted, 0 kept", text)
        self.assertEqual(self.tree(self.set), {})
        self.varve("unpack", self.store, "run", "-C", self.out)
        self.assertEqual(self.tree(self.out), want)
        found = self.json("pack", self.store, "run", "--delete", "-C", self.out, "noise")
        self.assertEqual((found["deleted"], found["kept"]), (1, 0))

    def test_own_store(self):
        """A store below the folder that is packed is left out, and not deleted with it."""
        store = self.set / "deep" / "store"
        store.parent.mkdir()
        self.varve("pack", store, "run", "-C", self.set, ".")
        self.assertIn("the store itself", self.run_raw("pack", store, "run", "-C", self.set, ".").stderr.decode())
        want = {n: v for n, v in self.tree(self.set).items() if not n.startswith("deep/")}
        found = self.json("pack", store, "run", "-C", self.set, "--delete", ".")
        self.assertEqual((found["files"], found["skipped"]), (len(want), 1))
        shutil.rmtree(self.out, ignore_errors=True)
        self.varve("unpack", store, "run", "-C", self.out)
        self.assertEqual(self.tree(self.out), want)
        self.varve("pack", store, "run", "-C", self.set, "deep/store/run/lineage", "deep/store", "-q", status=2)
        self.varve("watch", store, "run", store / "run", status=2)
        self.varve("verify", store)

    def test_not_into_the_store(self):
        """What is unpacked never comes to lie among the layers, by whatever name the folder is called."""
        self.varve("pack", self.store, "run", "-C", self.set, ".")
        before = {p: p.read_bytes() for p in self.store.rglob("*") if p.is_file()}
        (self.folder / "way").symlink_to(self.store)
        for folder in (self.store, self.store / "run", self.store / "new", self.store / "new" / "a" / "b", self.folder / "way", self.folder / "way" / "new", f"new/../{self.store.name}/x", f"{self.folder}/new/a/../../{self.store.name}"):
            for store in (self.store, f"dir:{self.store}", self.folder / "way"):
                self.assertIn("inside the store", self.fails("unpack", store, "run", "-C", folder))
        p = subprocess.run([command.BIN, "unpack", ".", "run"], cwd=self.store, capture_output=True, env=self.env)
        self.assertEqual((p.returncode, b"inside the store" in p.stderr), (2, True), p.stderr)
        self.assertEqual({p: p.read_bytes() for p in self.store.rglob("*") if p.is_file()}, before)

    def replaced_while_deleted(self, when):
        """What is said if a program renames newer files into place; when: what else it does first."""
        source = self.file("replace.c", REPLACE.encode())
        subprocess.run([os.environ.get("CC") or "cc", "-O1", "-shared", "-fPIC", "-o", self.folder / "replace.so", source], check=True)
        for name in "x", "newer", "newest":
            self.file(name, name.encode())
        p = self.run_raw("pack", self.store, "run", "--delete", "x", env={"LD_PRELOAD": str(self.folder / "replace.so"), "REPLACE": when})
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stderr, {f.name: f.read_bytes() for f in self.folder.glob("*x")}

    def test_a_newer_file_is_not_deleted(self):
        """It comes after the last look at the file: before it is removed, or before it gets a temporary name; or two come."""
        self.assertEqual(self.replaced_while_deleted("unlink"), (b"", {"x": b"newer"}))
        said, files = self.replaced_while_deleted("rename")
        self.assertIn(b"'x' is kept: it has changed since it was packed", said)
        self.assertEqual(files, {"x": b"newer"})
        said, files = self.replaced_while_deleted("both")
        self.assertIn(b"'x' is kept: another file has its path by now", said)
        self.assertEqual(sorted(files.values()), [b"newer", b"newest"])
        self.assertEqual(files["x"], b"newest")

    def test_delete_in_a_full_folder(self):
        self.assertEqual(self.replaced_while_deleted("full"), (b"", {}))

    def test_delete_where_no_name_is_free(self):
        """The temporary name would be too long, so there is none."""
        self.file("n" * 250, b"n")
        self.assertIn("1 file deleted, 0 kept", self.varve("pack", self.store, "run", "--delete", "n" * 250))

    def test_a_link_in_place_of_a_file(self):
        """One that comes after the walk has seen a file is not followed; one that the user names is."""
        self.file("secret", b"secret")
        (self.folder / "in").mkdir()
        self.file("in/x", b"x")
        shim = {"LD_PRELOAD": str(command.replacing(self, "in/x", self.folder / "secret"))}
        p = self.run_raw("pack", self.store, "run", "in", env=shim)
        self.assertEqual((p.returncode, p.stdout), (2, b""))
        self.assertIn(b"'in/x' changed while it was being packed", p.stderr)
        self.varve("pack", self.store, "run", "in/x", env=shim)
        self.varve("unpack", self.store, "run", "-C", "back")
        self.assertEqual((self.folder / "back" / "in" / "x").read_bytes(), b"secret")

    def test_links_and_delete(self):
        (self.folder / "real").write_bytes(b"real")
        (self.folder / "link").symlink_to("real")
        p = self.run_raw("pack", self.store, "run", "--delete", "link")
        self.assertIn("is a link", p.stderr.decode())
        self.assertTrue((self.folder / "real").exists() and (self.folder / "link").is_symlink())
        self.varve("unpack", self.store, "run", "-C", self.out)
        self.assertEqual((self.out / "link").read_bytes(), b"real")

    def test_hard_links_and_writers(self):
        for n in "a", "c":
            (self.folder / n).write_bytes(b"one" * 1000)
        os.link(self.folder / "a", self.folder / "b")
        with open(self.folder / "c", "ab"):
            p = self.run_raw("pack", self.store, "run", "--delete", "a", "b", "c", ".//a")
            self.assertIn("open for writing", p.stderr.decode())
        self.assertEqual([(self.folder / n).exists() for n in "abc"], [False, False, True])

    def test_set_id(self):
        """Files belong to who unpacks them: they are not to run in his name."""
        (self.folder / "program").write_bytes(b"#!/bin/sh\n")
        (self.folder / "program").chmod(0o6755)
        self.varve("pack", self.store, "run", "program")
        self.varve("unpack", self.store, "run", "-C", self.out)
        self.assertEqual(stat.S_IMODE((self.out / "program").stat().st_mode), 0o755)

    def test_killed(self):
        """Nothing is left of files that were not whole."""
        for i in range(8):
            self.put(f"big{i}", command.noise(1 << 20) * 8)
        self.varve("pack", self.store, "run", "-C", self.set, ".")
        for pause in 0.005, 0.02, 0.04, 0.08:
            shutil.rmtree(self.out, ignore_errors=True)
            p = subprocess.Popen([command.BIN, "unpack", str(self.store), "run", "-C", str(self.out), "-q"])
            time.sleep(pause)
            p.kill()
            p.wait()
            want = self.tree(self.set)
            for name, found in self.tree(self.out).items():
                self.assertEqual(found, want.get(name), name)

    def test_size_limit(self):
        self.put("big", command.noise(1 << 20))
        self.varve("pack", self.store, "run", "-C", self.set, ".")
        p = subprocess.run(["sh", "-c", 'ulimit -f 500; exec "$0" unpack "$1" run -C "$2"', command.BIN, str(self.store), str(self.out)], capture_output=True)
        self.assertEqual(p.returncode, 2, p.stderr)
        self.assertIn(b"too large", p.stderr)

    def test_damage(self):
        """What is damaged is named; the rest comes."""
        for i in range(8):
            self.put(f"n{i}", command.noise(300000, i))
        self.varve("pack", self.store, "run", "-C", self.set, ".")
        layer = self.layer(1, "run")
        self.flip(layer, layer.stat().st_size // 2)
        p = self.run_raw("unpack", self.store, "run", "-C", self.out)
        self.assertEqual(p.returncode, 1, p.stderr)
        missing = [line.split(b": ")[2].decode() for line in p.stderr.splitlines() if b"missing: " in line]
        self.assertTrue(1 <= len(missing) < 18)
        want = {k: v for k, v in self.tree(self.set).items() if k not in missing}
        self.assertEqual(self.tree(self.out), want)
        found = self.json("unpack", self.store, "run", "-C", self.out, "--force", status=1)
        self.assertEqual((sorted(found["missing"]), found["files"], found["code"]), (sorted(missing), 18 - len(missing), -5))

    def test_full_disk(self):
        self.out.mkdir()
        if os.getuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", self.out], capture_output=True).returncode:
            self.skipTest("no small file system here")
        try:
            for i in range(8):
                self.put(f"z{i}", command.noise(300000, i))
            self.varve("pack", self.store, "run", "-C", self.set, *[f"z{i}" for i in range(8)])
            p = self.run_raw("unpack", self.store, "run", "-C", self.out)
            self.assertEqual(p.returncode, 2)
            self.assertIn(b"No space left", p.stderr)
            found = self.tree(self.out)
            self.assertTrue(1 <= len(found) <= 3, found.keys())
            self.assertEqual(p.stderr.count(b"missing: z"), 8 - len(found))
            self.assertTrue(all(v == self.tree(self.set)[k] for k, v in found.items()))
        finally:
            subprocess.run(["umount", self.out], check=True)

    def test_interrupt(self):
        """Wherever it is interrupted: what is there is whole."""
        big = os.urandom(12 << 20)
        for i in range(4):
            self.put(f"big{i}", big[i:])
        self.varve("pack", self.store, "run", "-C", self.set, *[f"big{i}" for i in range(4)])
        for wait in 0, 0.02, 0.1:
            out = self.folder / f"out{wait}"
            p = subprocess.Popen([command.BIN, "unpack", self.store, "run", "-C", out, "-q"], stderr=subprocess.DEVNULL)
            while p.poll() is None and not (out.exists() and list(out.iterdir())):
                continue
            time.sleep(wait)
            p.terminate()
            self.assertIn(p.wait(60), [0, -signal.SIGTERM])
            for path in out.iterdir():
                self.assertRegex(path.name, r"^big\d$")
                self.assertTrue(path.read_bytes() == big[int(path.name[3:]):])

    def test_show(self):
        self.varve("pack", self.store, "run", "-C", self.set, ".")
        text = self.varve("show", self.store, "run")
        self.assertRegex(text, r"packed from 10 files, scheme auto, level default")
        self.assertRegex(text, r"(?m)^  VARIABLE +TYPE +SHAPE +INSTANCES +BYTES +NEW +STORED +RATIO +CODED +MERGED$")
        self.assertRegex(text, r"(?m)^  0755 +195 KiB +2009-02-1\d \S+ +opaque +noise$")
        rank = self.json("show", self.store, "run")["per_rank"][0]
        self.assertEqual((rank["scheme"], rank["level"], len(rank["files"])), ("auto", "default", 10))
        self.assertTrue(all({"key", "type", "shape", "instances", "bytes", "bytes_stored", "coded", "merged"} <= set(v) for v in rank["variables"]))

    def extract(self, *words, variable="x.npy"):
        self.varve("extract", self.store, *words, "-o", variable)
        return command.read_npy((self.folder / variable).read_bytes())

    def test_variables(self):
        fields = [1.5, 2.5, 9.0]
        self.put("a:b.nc", netcdf(fields))
        self.put("v.npy", b"\x93NUMPY\x01\x00\x76\x00" + b"{'descr': '<f8', 'fortran_order': False, 'shape': (4, 5), }".ljust(117) + b"\n" + doubles(20))
        self.varve("pack", self.store, "run", "-C", self.set, ".")
        self.assertEqual(self.extract("run:a:b.nc:/grid"), (">i4", (5,), struct.pack(">5i", *range(5))))
        x = b"".join(struct.pack(">3d", f, f + 1, f + 2) for f in fields)
        self.assertEqual(self.extract("run@1:a:b.nc:x"), (">f8", (3, 3), x))
        self.assertEqual(self.extract("run:a:b.nc", "/x"), (">f8", (3, 3), x))
        self.assertEqual(self.extract("run", "a:b.nc", "/y"), (">i2", (3, 2), b"".join(struct.pack(">2h", int(f), -int(f)) for f in fields)))
        self.put("f.npy", b"\x93NUMPY\x01\x00\x76\x00" + b"{'descr': '<f8', 'fortran_order': True, 'shape': (4, 5), }".ljust(117) + b"\n" + doubles(20))
        self.varve("pack", self.store, "columns", "-C", self.set, "f.npy")
        self.varve("extract", self.store, "columns:f.npy:/f", "-o", "f.npy")
        self.assertIn(b"'fortran_order': True, 'shape': (4, 5,)", (self.folder / "f.npy").read_bytes())
        name = self.json("show", self.store, "run")["per_rank"][0]
        self.assertIn("v.npy", [f["name"] for f in name["files"] if f["format"] == "npy"])
        message = self.fails("extract", self.store, "run:a:b.nc:/nix", "-o", "out")
        self.assertIn("grid", message)
        self.assertIn("no file", self.fails("extract", self.store, "run:nix:/x", "-o", "out"))
        p = self.run_raw("extract", self.store, "run:noise")
        self.assertEqual(p.stdout, command.noise(200000))
        found = self.json("extract", self.store, "run:a:b.nc:x", "-o", "x.npy")
        self.assertEqual((found["source"], found["shape"], found["big_endian"], found["bytes"]), ("a:b.nc", [3, 3], True, 72))
        self.varve("extract", self.store, "run:.varve.files", "--rank", 0, "-o", "list")
        self.assertEqual((self.folder / "list").read_bytes()[:8], b"VARVEFIL")

    def test_hdf5(self):
        """Chunks, edges, missing chunks, filters, big-endian, records: as h5py reads them."""
        script = """
import h5py, numpy as np, sys
f = h5py.File(sys.argv[1], "w")
a = np.arange(37 * 41 * 5, dtype="f8").reshape(37, 41, 5)
f["plain"] = a
f.create_dataset("g/chunked", data=a, chunks=(8, 7, 5))
f.create_dataset("g/gzip", data=a, chunks=(8, 41, 2), compression="gzip", shuffle=True, fletcher32=True)
f.create_dataset("big", data=a[:, :, 0].astype(">f4"), chunks=(10, 10))
d = f.create_dataset("holes", shape=(100, 30), dtype="i4", chunks=(16, 16), fillvalue=-7)
d[20:25, 3:28] = 5
f.create_dataset("none", shape=(9, 3), dtype="i2", fillvalue=3)
f["record"] = np.array([(i, i / 2, i * 3) for i in range(50)], dtype="i4,f8,i8")
f["scalar"] = 2.5
f.close()
f = h5py.File(sys.argv[1])
for name in "plain g/chunked g/gzip big holes none record scalar".split():
    np.save(sys.argv[2] + "/" + name.replace("/", "_") + ".npy", f[name][()])
"""
        want = self.folder / "want"
        want.mkdir()
        for python in "python3", "/usr/bin/python3":
            p = subprocess.run([python, "-c", script, self.set / "x.h5", want], capture_output=True, text=True)
            if p.returncode == 0:
                break
        else:
            self.skipTest("no h5py: " + p.stderr[-200:])
        self.varve("pack", self.store, "run", "-C", self.set, "x.h5")
        for name in "plain", "g/chunked", "g/gzip", "big", "holes", "none", "record", "scalar":
            with self.subTest(name=name):
                descr, shape, data = command.read_npy((want / (name.replace("/", "_") + ".npy")).read_bytes())
                descr = descr if isinstance(descr, str) else "|V20"
                if name == "g/gzip" and self.run_raw("extract", self.store, f"run:x.h5:/{name}", "--json", "-o", "x").stdout.count(b"-9"):
                    continue  # no zlib here
                self.assertEqual(self.extract(f"run:x.h5:/{name}"), (descr, shape, data))

    def mpi(self, n, *words):
        return subprocess.run([MPIEXEC, "-n", str(n), command.BIN, *map(str, words)], capture_output=True, cwd=self.folder, env=self.env,
                              timeout=100)

    @unittest.skipUnless(MPIEXEC, "no MPI")
    def test_ranks(self):
        p = self.mpi(3, "pack", self.store, "run", "-C", self.set, ".", "--json")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(p.stdout.count(b'"epoch": 1'), 1)
        self.check_back("run")
        self.assertEqual(len(list(self.store.rglob("*.layer"))), 3)
        text = self.varve("show", self.store, "run")
        self.assertIn("packed from 10 files", text)
        shutil.rmtree(self.out)
        p = self.mpi(2, "unpack", self.store, "run", "-C", self.out)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn(b"10 files", p.stdout)
        self.assertEqual(self.tree(self.out), self.tree(self.set))
        p = self.mpi(2, "unpack", self.store, "run", "-C", self.out)
        self.assertNotEqual(p.returncode, 0)
        self.assertEqual(p.stderr.count(b"--force"), 1)
        want = self.tree(self.set)
        p = self.mpi(2, "pack", self.store, "run", "-C", self.set, ".", "--delete")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn(b"10 files deleted", p.stdout)
        self.assertEqual(self.tree(self.set), {})
        self.varve("unpack", self.store, "run", "-C", self.out, "--force")
        self.assertEqual(self.tree(self.out), want)

    @unittest.skipUnless(MPIEXEC, "built without MPI")
    def test_ranks_compress_as_one(self):
        """Two ranks with a file each store about as much as one process with both."""
        shutil.rmtree(self.set)
        self.set.mkdir()
        at = [6 * i / 63 for i in range(64)]
        for rank in range(2):
            (self.set / f"rank{rank}").mkdir()
            head = repr({"descr": "<f8", "fortran_order": False, "shape": (64, 64, 64)}).encode().ljust(117) + b"\n"
            values = (math.sin(z + 0.2) * math.cos(y) + x + rank for z in at for y in at for x in at)
            self.put(f"rank{rank}/density.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack(f"<{64 ** 3}d", *values))
        one = self.json("pack", self.store, "one", "-C", self.set, ".")
        p = self.mpi(2, "pack", "--json", self.store, "two", "-C", self.set, ".")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertLess(json.loads(p.stdout)["bytes_stored"], 1.5 * one["bytes_stored"])

    @unittest.skipUnless(MPIEXEC, "built without MPI")
    def test_ranks_fail(self):
        """What fails on one rank is told once, and nothing is said of an epoch."""
        self.varve("pack", self.store, "run", "-C", self.set, ".")
        (self.store / "run" / "00000000").rename(self.folder / "aside")
        (self.store / "run" / "00000000").write_bytes(b"in the way")
        p = subprocess.run([*MPIEXEC.split(), "-n", "2", command.BIN + "-mpi", "pack", str(self.store), "run", "-C", str(self.set), "."], capture_output=True)
        self.assertNotEqual(p.returncode, 0)
        self.assertNotIn(b"EPOCH", p.stdout)

    def children(self, pid):
        """Those below a process that run the command with MPI."""
        found, below = [], [pid]
        while below:
            pid = below.pop()
            try:
                kin = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
                if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "varve-mpi":
                    found.append(pid)
            except OSError:
                continue
            below += map(int, kin)
        return found

    @unittest.skipUnless(MPIEXEC, "built without MPI")
    def test_ranks_share(self):
        """What several ranks hold is stored once, whoever is killed: an epoch counts whole or not at all."""
        common = os.urandom(12 << 20)
        shutil.rmtree(self.set)
        self.set.mkdir()
        for i in range(6):
            (self.set / f"{i}.dat").write_bytes(os.urandom(1000 * i) + common)
        words = [*MPIEXEC.split(), "-n", "3", command.BIN + "-mpi", "pack", str(self.store), "run", "-C", str(self.set), "."]
        for wait in 0, 0.05, 0.15, None:  # None: until a layer is whole, of an epoch that then may not count
            before, whole = set(self.store.rglob(".tmp-*.layer-*")), set(self.store.rglob("[0-9]*.layer"))
            p = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.env)
            # not while MPI begins: the death of a rank then can leave Open MPI's mpirun waiting for itself (PMIx 4.2)
            while p.poll() is None and set(self.store.rglob(".tmp-*.layer-*")) <= before:
                time.sleep(0.01)
            while wait is None and p.poll() is None and set(self.store.rglob("[0-9]*.layer")) <= whole:
                time.sleep(0.001)
            time.sleep(wait or 0)
            for pid in self.children(p.pid)[1:2]:
                os.kill(pid, signal.SIGKILL)
            p.wait(timeout=command.PATIENCE)
            if list(self.store.rglob("*.commit")):
                self.check_back("run")
        p = subprocess.run(words, capture_output=True, env=self.env)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.check_back("run")
        self.varve("verify", self.store)
        self.varve("gc", self.store)
        self.check_back("run")
        self.assertLess(sum(f.stat().st_size for f in self.store.rglob("*.layer")), 1.1 * len(common))

    def test_no_mpi_command(self):
        alone = self.folder / "bin" / "varve"
        alone.parent.mkdir()
        shutil.copy(command.BIN, alone)
        p = subprocess.run([alone, "pack", self.store, "run", "set"], capture_output=True, cwd=self.folder,
                           env={**self.env, "OMPI_COMM_WORLD_SIZE": "4"})
        self.assertEqual(p.returncode, 2)
        self.assertIn(b"varve-mpi' is not there", p.stderr)


if __name__ == "__main__":
    unittest.main()
