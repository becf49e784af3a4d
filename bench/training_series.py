"""Checkpoints of training for series.training, each a dictionary of arrays, and their size if a coder sees the checkpoint before."""
import ctypes
import ctypes.util

import numpy as np

STEPS = 60   # before the first checkpoint
LEVEL = 3


# ---- checkpoints ----

def bf16(x):
    """Rounded to the nearest."""
    bits = x.view(np.uint32)
    return ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


class Network:
    """Three layers with Adam: weights, moments, variances."""

    def __init__(self, rng, weights):
        side = max(4, int((weights / 24) ** 0.5))
        sides = (side, 4 * side, 4 * side, side)
        self.rng, self.side, self.rate, self.done = rng, side, np.float32(1e-3), 0
        self.w = [(rng.standard_normal((a, b)) * np.sqrt(2 / a)).astype(np.float32) for a, b in zip(sides, sides[1:])]
        self.m, self.v = ([np.zeros_like(w) for w in self.w] for _ in range(2))
        self.target = (rng.standard_normal((side, side)) / np.sqrt(side)).astype(np.float32)
        for _ in range(STEPS):
            self.step()

    def gradients(self):
        x = self.rng.standard_normal((64, self.side)).astype(np.float32)
        a = np.maximum(x @ self.w[0], 0)
        b = np.maximum(a @ self.w[1], 0)
        d = (b @ self.w[2] - np.tanh(x @ self.target)) * np.float32(2 / 64 / 16)
        e = (d @ self.w[2].T) * (b > 0)
        return x.T @ ((e @ self.w[1].T) * (a > 0)), a.T @ e, b.T @ d

    def step(self):
        one, two = np.float32(0.9), np.float32(0.999)
        self.done += 1
        for w, g, m, v in zip(self.w, self.gradients(), self.m, self.v):
            m += (1 - one) * (g - m)
            v += (1 - two) * (g * g - v)
            w -= self.rate * (m / (1 - one ** self.done)) / (np.sqrt(v / (1 - two ** self.done)) + np.float32(1e-8))


def all_state(rng, n, epochs):
    """Weights in f32 and Adam's moments, a step apart."""
    net = Network(rng, n / 12)
    for _ in range(epochs):
        yield {f"{name}{i}": x.copy() for name, part in (("w", net.w), ("m", net.m), ("v", net.v)) for i, x in enumerate(part)}
        net.step()


def bf16_weights(rng, n, epochs):
    """Weights in bf16, a step apart."""
    net = Network(rng, n / 2)
    for _ in range(epochs):
        yield {f"w{i}": bf16(x) for i, x in enumerate(net.w)}
        net.step()


def frozen(rng, n, epochs):
    """95 % of the tensors do not change."""
    net = Network(rng, n / 12 / 20)
    still = {f"f{i}": (rng.standard_normal(n // 4 // 20) * 0.02).astype(np.float32) for i in range(19)}
    for _ in range(epochs):
        yield still | {f"{name}{i}": x.copy() for name, part in (("w", net.w), ("m", net.m), ("v", net.v)) for i, x in enumerate(part)}
        net.step()


def sparse_bf16(rng, n, epochs):
    """Of weights in bf16, 1 % change by a few units in the last place."""
    x = bf16((rng.standard_normal(n // 2) * 0.02).astype(np.float32))
    for _ in range(epochs):
        yield {"w": x.copy()}
        i = rng.choice(x.size, x.size // 100, replace=False)
        x[i] = (x[i].astype(np.int32) + rng.integers(1, 5, i.size) * rng.choice([-1, 1], i.size)).astype(np.uint16)


SERIES = {"a": all_state, "b": bf16_weights, "c": frozen, "d": sparse_bf16}


# ---- the size that a coder could have ----

def zstd():
    """A function from bytes to their size in a frame; None if there is no library."""
    name = ctypes.util.find_library("zstd")
    if not name:
        return None
    lib = ctypes.CDLL(name)
    lib.ZSTD_compress.restype = lib.ZSTD_compressBound.restype = ctypes.c_size_t
    lib.ZSTD_compressBound.argtypes = [ctypes.c_size_t]
    lib.ZSTD_compress.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

    def size(plane):
        room = ctypes.create_string_buffer(lib.ZSTD_compressBound(plane.nbytes))
        return min(lib.ZSTD_compress(room, len(room), plane.ctypes.data, plane.nbytes, LEVEL), plane.nbytes)
    return size


def of_planes(x, size):
    return sum(size(np.ascontiguousarray(plane)) for plane in x.reshape(-1).view(np.uint8).reshape(-1, x.itemsize).T)


def ideal(series, size):
    """For each tensor the smallest of byte planes, of those of its XOR with the one before, and of those of the zigzag difference."""
    total, before = 0, {}
    for state in series:
        for name, x in state.items():
            x = x.view(f"u{x.itemsize}")
            sizes = [of_planes(x, size)]
            if name in before:
                step = (x - before[name]).view(f"i{x.itemsize}")
                sizes += [of_planes(x ^ before[name], size), of_planes((step << 1) ^ (step >> (8 * x.itemsize - 1)), size)]
            before[name] = x
            total += min(sizes)
    return total
