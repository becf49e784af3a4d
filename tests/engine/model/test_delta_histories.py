# ctest: TIMEOUT 300 PROCESSORS 2 COST 20
"""Files that change by a little, packed epoch by epoch with blocks that are differences to older epochs: random histories with dropped epochs, gc, copies
of the store, writers that are killed. Every epoch gives back every byte, `varve verify` and the second reader find nothing; a damaged block costs exactly
the epochs that need it, and `varve verify` names them."""
import array
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

build, source = pathlib.Path(os.environ["VARVE_BUILD"]), pathlib.Path(os.environ["VARVE_SOURCE"])
sys.path.insert(0, str(source / "tools"))
import layer_read  # noqa: E402

VARVE = os.environ["VARVE_BIN"]
DELTA, MATCH = 7, b"\x10"
TYPES = {"<f4": "f", "<f8": "d", "<u2": "H", ">f4": "f", "<i4": "i", "<u1": "B"}


def run(*command, good=(0,), **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **more)
    assert done.returncode in good, "%s: %d\n%s%s" % (command, done.returncode, done.stdout, done.stderr)
    return done


def npy(kind, values):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }" % (kind, len(values))
    data = array.array(TYPES[kind], values)
    if kind[0] == ">":
        data.byteswap()
    return b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + head.ljust(117).encode() + b"\n" + data.tobytes()


class Variable:
    def __init__(self, rng, kind):
        self.rng, self.kind = rng, kind
        self.renew()

    def renew(self):
        n = self.rng.randrange(20000, 90000)
        real = self.kind[1] == "f"
        self.values = [self.rng.gauss(0, 1) if real else self.rng.getrandbits(7) for _ in range(n)]

    def step(self):
        rng, choice, n = self.rng, self.rng.randrange(12), len(self.values)
        if choice == 0:
            self.renew()
        elif choice == 1:
            self.values = self.values[:rng.randrange(10000, n + 1)] if n > 10000 else self.values
        elif choice == 2:
            self.values += self.values[:rng.randrange(n)]
        elif choice == 3:
            at = rng.randrange(n)
            self.values[at:at + 20000] = [0] * len(self.values[at:at + 20000])
        elif choice == 4:
            pass
        else:  # many small changes
            for i in range(0, n, rng.choice((1, 1, 7, 200))):
                self.values[i] = self.values[i] * 1.0001 if self.kind[1] == "f" else min(self.values[i] + 1, 255)

    def bytes(self):
        return npy(self.kind, self.values)


class Records:
    """Lines that are inserted, removed and rearranged: a difference in place does not see them."""

    def __init__(self, rng):
        self.rng = rng
        self.lines = [b"%d node_%d %.9f state=%d\n" % (i, rng.getrandbits(20), rng.gauss(0, 1), rng.getrandbits(4)) for i in range(rng.randrange(3000, 30000))]

    def step(self):
        rng, lines = self.rng, self.lines
        if rng.randrange(3) == 0:
            cut = rng.randrange(1, len(lines) // 3)
            self.lines = lines = lines[cut:] + lines[:cut]
        for _ in range(len(lines) // rng.choice((20, 200, 2000))):
            at = rng.randrange(len(lines))
            lines[at] = b"new %d\n" % rng.getrandbits(40) + lines[at]
            lines.pop(rng.randrange(len(lines)))

    def bytes(self):
        return b"".join(self.lines)


class World:
    def __init__(self, folder, seed):
        self.rng = random.Random(seed)
        self.folder, self.store, self.stores = folder, folder / "store0", 1
        self.files, self.past, self.step = {}, {}, 0
        for i, kind in enumerate(self.rng.sample(sorted(TYPES), 4)):
            self.files["v%d" % i] = Variable(self.rng, kind)
        self.files["records"] = Records(self.rng)

    def write(self):
        """The names have the number of the step, as those of many programs."""
        place = self.folder / "now"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        now = {"%s.%04d.npy" % (name, self.step) if i % 2 else name + ".npy": v.bytes() for i, (name, v) in enumerate(self.files.items())}
        now["text"] = b"step %d\n" % self.step * 100
        for name, data in now.items():
            (place / name).write_bytes(data)
        return place, now

    def pack(self):
        self.step += self.rng.randrange(1, 20)
        for v in self.files.values():
            v.step()
        place, now = self.write()
        options = ["-o", "delta=" + self.rng.choice(("auto", "max", "max", "none")), "-j", str(self.rng.randrange(1, 3))]
        options += ["--level", self.rng.choice(("fast", "default", "default", "max"))]
        command = [VARVE, "pack", *options, str(self.store), "set", *sorted(now)]
        if self.rng.randrange(6) == 0:
            self.kill(command, place)
        self.commit(run(*command, cwd=place), now)

    def kill(self, command, place):
        child = subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(self.rng.random() * 0.03)
        child.kill()
        child.wait()
        self.adopt(command, place)

    def adopt(self, command, place):
        """The killed writer may have committed."""
        lineage = layer_read.Lineage(str(self.store), "set") if (self.store / "set/lineage").exists() else None
        for epoch in (lineage.epochs if lineage else set()) - set(self.past):
            self.past[epoch] = {name: (place / name).read_bytes() for name in os.listdir(place)}

    def commit(self, _, now):
        self.past[max(layer_read.Lineage(str(self.store), "set").epochs)] = now

    def drop(self):
        if len(self.past) > 2:
            epoch = self.rng.choice(sorted(self.past))
            run(VARVE, "drop", self.store, "set@%d" % epoch)
            del self.past[epoch]

    def gc(self):
        run(VARVE, "gc", self.store, "set")

    def copy(self):
        to = self.folder / ("store%d" % self.stores)
        self.stores += 1
        run(VARVE, "cp", self.store, to, "set")
        shutil.rmtree(self.store)
        self.store = to

    def check(self):
        run(VARVE, "verify", self.store)
        problems = layer_read.check(str(self.store))
        assert not problems, problems
        for epoch, files in self.past.items():
            self.check_epoch(epoch, files)

    def check_epoch(self, epoch, files):
        back = self.folder / "back"
        shutil.rmtree(back, ignore_errors=True)
        run(VARVE, "unpack", self.store, "set@%d" % epoch, "-C", back)
        assert {name: (back / name).read_bytes() for name in os.listdir(back)} == files, "epoch %d" % epoch


# ---- damage ----


def blocks_of(lineage, layer, pieces):
    """The blocks that hold ranges of a layer's payload, with those that they are differences to."""
    found = set()
    for pos, length in pieces:
        for number, _, _ in layer.pieces(pos, length):
            if (layer.epoch, number) in found:
                continue
            found.add((layer.epoch, number))
            for epoch, base, n in layer.bases.get(number, ()):
                if epoch:
                    found |= blocks_of(lineage, lineage.layer(epoch, 0), [(base, n)])
    return found


def needs(store):
    """By epoch: the blocks that it needs, as (epoch of the layer, number)."""
    lineage, needed = layer_read.Lineage(str(store), "set"), {}
    for epoch in lineage.epochs:
        layer, needed[epoch] = lineage.layer(epoch, 0), set()
        for index in range(len(layer.regions)):
            for _, length, where, pos in lineage.resolve(layer, index):
                if where:
                    needed[epoch] |= blocks_of(lineage, lineage.layer(*where), [(pos, length)])
    return lineage, needed


def named(text):
    """The epochs of 'affected: epochs 3..4, 7'."""
    line = re.search(r"affected: epochs? ([0-9., ]+)", text)
    spans = re.findall(r"(\d+)(?:\.\.(\d+))?", line[1]) if line else []
    return {epoch for first, last in spans for epoch in range(int(first), int(last or first) + 1)}


def damage(world):
    """A byte of each block in turn, in a copy of the store."""
    lineage, needed = needs(world.store)
    every = sorted(set().union(*needed.values()))
    bases = sorted({block for epoch, number in every for block in blocks_of(lineage, lineage.layer(epoch, 0), lineage.layer(epoch, 0).blocks[number]["extents"])
                    if (epoch, number) != block})
    for epoch, number in world.rng.sample(bases, min(2, len(bases))) + world.rng.sample(every, 2):
        layer = lineage.layer(epoch, 0)
        block = layer.blocks[number]
        with open(layer.path, "r+b") as file:
            at = block["offset"] + world.rng.randrange(block["stored"])
            file.seek(at)
            was = file.read(1)
            file.seek(at)
            file.write(bytes([was[0] ^ 1 << world.rng.randrange(8)]))
        expected = {e for e in needed if (epoch, number) in needed[e]}
        told = run(VARVE, "verify", world.store, good=(1,))
        assert named(told.stdout + told.stderr) == expected, "block %d of epoch %d: %s, not %s" % (number, epoch, told.stdout + told.stderr, expected)
        for e in needed:
            done = run(VARVE, "unpack", world.store, "set@%d" % e, "--test", good=(0, 1))
            assert (done.returncode != 0) == (e in expected), "epoch %d" % e
        with open(layer.path, "r+b") as file:
            file.seek(at)
            file.write(was)
    return len(bases)


def history(folder, seed):
    folder.mkdir()
    world, deltas, matches = World(folder, seed), 0, 0
    for turn in range(10):
        world.pack()
        if turn % 3 == 2:
            for act in world.rng.sample((world.drop, world.drop, world.gc, world.copy), 2):
                act()
            world.check()
    world.gc()
    world.check()
    lineage = layer_read.Lineage(str(world.store), "set")
    for epoch in lineage.epochs:
        layer = lineage.layer(epoch, 0)
        some = [block for block in layer.blocks if block["codec"] == DELTA]
        deltas += len(some)
        matches += sum(layer.read(block["offset"] + 8, 1) == MATCH for block in some)
    bases = damage(world)
    world.check()
    print("seed %d: %d epochs, %d blocks are differences, %d of them matches, %d blocks are bases" % (seed, len(world.past), deltas, matches, bases))
    shutil.rmtree(folder)
    return deltas, matches


def main():
    if "zstd" not in run(VARVE, "config").stdout:
        print("built without zstd: no differences")
        return
    folder = pathlib.Path(tempfile.mkdtemp(dir=build))
    try:
        seeds = [int(seed) for seed in sys.argv[1:]] or range(1, 4)
        deltas, matches = map(sum, zip(*[history(folder / str(seed), seed) for seed in seeds]))
        assert deltas > 10 and matches > 3, "hardly a block is a difference: nothing was tested"
    finally:
        shutil.rmtree(folder)


main()
