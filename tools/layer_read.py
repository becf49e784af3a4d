#!/usr/bin/env python3
"""Reads and checks varve directory stores. Written from docs/format.md alone, as its independent second reader.

  layer_read.py check STORE [LINEAGE[@EPOCH]]           one line per problem; exit 0 fine, 1 damage, 2 usage
  layer_read.py extract STORE LINEAGE[@EPOCH] REGION    the exact bytes of a region [-o FILE] [--rank R]
  layer_read.py show STORE LINEAGE[@EPOCH] [--json]     the decoded layer and its commit; --json: on one line [--rank R]
  layer_read.py --self-test                             tests the reader itself

Standard library only. Blocks of codec lz4 need liblz4.so.1; those of zstd, planes, typed, trail and text, and coded sections, libzstd.so.1.
"""
import argparse
import contextlib
import ctypes
import hashlib
import itertools
import json
import math
import operator
import os
import re
import shutil
import struct
import sys
import tempfile
import zlib
from bisect import bisect_right
from functools import cached_property, lru_cache

try:
    import xxhash
except ImportError:
    xxhash = None

# ---- XXH3, seed 0, from the public specification of xxHash ----

M32, M64 = 2**32 - 1, 2**64 - 1
P32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
P64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
RRMXMX = 0x9FB21C651E98DF25
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")
STRIPES = b"".join(SECRET[8 * i:8 * i + 64] for i in range(16))  # the secret as a block of 16 stripes meets it


def u32_at(data, i):
    return int.from_bytes(data[i:i + 4], "little")


def u64_at(data, i):
    return int.from_bytes(data[i:i + 8], "little")


def secret_pair(i):
    return u64_at(SECRET, i) ^ u64_at(SECRET, i + 8)


def swap(value, size):
    return int.from_bytes(value.to_bytes(size, "little"), "big")


def fold(product):
    return (product & M64) ^ (product >> 64)


def avalanche(h):
    h &= M64
    h = (h ^ (h >> 37)) * 0x165667919E3779F9 & M64
    return h ^ (h >> 32)


def avalanche_xxh64(h):
    h = (h ^ (h >> 33)) * P64[1] & M64
    h = (h ^ (h >> 29)) * P64[2] & M64
    return h ^ (h >> 32)


def combine_1to3(d):
    return d[-1] | len(d) << 8 | d[0] << 16 | d[len(d) >> 1] << 24


def mix16(d, i, s):
    return fold((u64_at(d, i) ^ u64_at(SECRET, s)) * (u64_at(d, i + 8) ^ u64_at(SECRET, s + 8)))


def short_64(d):
    n = len(d)
    if n == 0:
        return avalanche_xxh64(secret_pair(56))
    if n <= 3:
        return avalanche_xxh64(combine_1to3(d) ^ u32_at(SECRET, 0) ^ u32_at(SECRET, 4))
    if n <= 8:
        h = (u32_at(d, n - 4) + (u32_at(d, 0) << 32)) ^ secret_pair(8)
        h ^= (h << 49 | h >> 15) & M64 ^ (h << 24 | h >> 40) & M64
        h = h * RRMXMX & M64
        h = (h ^ ((h >> 35) + n)) * RRMXMX & M64
        return h ^ (h >> 28)
    low, high = u64_at(d, 0) ^ secret_pair(24), u64_at(d, n - 8) ^ secret_pair(40)
    return avalanche(n + swap(low, 8) + high + fold(low * high))


def short_128(d):
    n = len(d)
    if n == 0:
        return avalanche_xxh64(secret_pair(80)), avalanche_xxh64(secret_pair(64))
    if n <= 3:
        low = combine_1to3(d)
        high = swap(low, 4)
        high = (high << 13 | high >> 19) & M32
        return (avalanche_xxh64(high ^ u32_at(SECRET, 8) ^ u32_at(SECRET, 12)),
                avalanche_xxh64(low ^ u32_at(SECRET, 0) ^ u32_at(SECRET, 4)))
    if n <= 8:
        m = ((u32_at(d, 0) + (u32_at(d, n - 4) << 32)) ^ secret_pair(16)) * (P64[0] + (n << 2))
        low, high = m & M64, m >> 64
        high = (high + (low << 1)) & M64
        low ^= high >> 3
        low = (low ^ (low >> 35)) * RRMXMX & M64
        return avalanche(high), low ^ (low >> 28)
    last = u64_at(d, n - 8)
    m = (u64_at(d, 0) ^ last ^ secret_pair(32)) * P64[0]
    last ^= secret_pair(48)
    low = ((m & M64) + ((n - 1) << 54)) & M64
    high = ((m >> 64) + last + (last & M32) * (P32[1] - 1)) & M64
    m = (low ^ swap(high, 8)) * P64[1]
    return avalanche((m >> 64) + high * P64[1]), avalanche(m)


def middle_64(d):
    n = len(d)
    acc = n * P64[0]
    if n <= 128:
        for i in range((n - 1) // 32, -1, -1):
            acc += mix16(d, 16 * i, 32 * i) + mix16(d, n - 16 * (i + 1), 32 * i + 16)
        return avalanche(acc)
    acc = avalanche(acc + sum(mix16(d, 16 * i, 16 * i) for i in range(8)))
    acc += sum(mix16(d, 16 * i, 16 * (i - 8) + 3) for i in range(8, n // 16))
    return avalanche(acc + mix16(d, n - 16, 136 - 17))


def middle_128(d):
    n = len(d)
    low, high = n * P64[0], 0

    def mix32(i, j, s):
        nonlocal low, high
        low = (low + mix16(d, i, s) & M64) ^ (u64_at(d, j) + u64_at(d, j + 8) & M64)
        high = (high + mix16(d, j, s + 16) & M64) ^ (u64_at(d, i) + u64_at(d, i + 8) & M64)

    if n <= 128:
        for i in range((n - 1) // 32, -1, -1):
            mix32(16 * i, n - 16 * (i + 1), 32 * i)
    else:
        for i in range(4):
            mix32(32 * i, 32 * i + 16, 32 * i)
        low, high = avalanche(low), avalanche(high)
        for i in range(4, n // 32):
            mix32(32 * i, 32 * i + 16, 32 * (i - 4) + 3)
        mix32(n - 16, n - 32, 136 - 17 - 16)
    return -avalanche(low * P64[0] + high * P64[3] + n * P64[1]) & M64, avalanche(low + high)


def accumulate(acc, part, key):
    """All stripes of at most one block at once: between two scrambles XXH3 only adds, so the order is free."""
    n = len(part)
    words = struct.unpack("<%dQ" % (n // 8), part)
    keyed = (int.from_bytes(part, "little") ^ int.from_bytes(key[:n], "little")).to_bytes(n, "little")
    halves = struct.unpack("<%dI" % (n // 4), keyed)
    products = list(map(operator.mul, halves[0::2], halves[1::2]))
    return [(acc[i] + sum(products[i::8]) + sum(words[i ^ 1::8])) & M64 for i in range(8)]


def long_accs(d):
    acc = [P32[2], P64[0], P64[1], P64[2], P64[3], P32[1], P64[4], P32[0]]
    scramble = [u64_at(SECRET, 128 + 8 * i) for i in range(8)]
    end = (len(d) - 1) // 1024 * 1024
    for at in range(0, end, 1024):
        acc = accumulate(acc, d[at:at + 1024], STRIPES)
        acc = [(a ^ (a >> 47) ^ s) * P32[0] & M64 for a, s in zip(acc, scramble)]
    acc = accumulate(acc, d[end:end + (len(d) - 1 - end) // 64 * 64], STRIPES)
    return accumulate(acc, d[len(d) - 64:], SECRET[121:185])


def merge(acc, s, start):
    keyed = [a ^ u64_at(SECRET, s + 8 * i) for i, a in enumerate(acc)]
    return avalanche(start + sum(fold(keyed[i] * keyed[i + 1]) for i in (0, 2, 4, 6)))


def pure_xxh3_64(d):
    if len(d) <= 16:
        return short_64(d)
    return middle_64(d) if len(d) <= 240 else merge(long_accs(d), 11, len(d) * P64[0])


def pure_xxh3_128(d):
    if len(d) > 240:
        acc = long_accs(d)
        high, low = merge(acc, 192 - 64 - 11, ~(len(d) * P64[1]) & M64), merge(acc, 11, len(d) * P64[0])
    else:
        high, low = short_128(d) if len(d) <= 16 else middle_128(d)
    return high << 64 | low


def xxh3_64(d):
    return xxhash.xxh3_64_intdigest(d) if xxhash and len(d) > 240 else pure_xxh3_64(d)


def xxh3_128_canonical(d):
    value = xxhash.xxh3_128_intdigest(d) if xxhash and len(d) > 240 else pure_xxh3_128(d)
    return value.to_bytes(16, "big")


DIGESTS = {1: xxh3_128_canonical, 2: lambda d: hashlib.sha256(d).digest()[:16]}

# ---- codecs ----


class Unable(Exception):
    """Not the store's fault: something was asked for that is not there."""


@lru_cache(maxsize=None)
def library(name):
    try:
        lib = ctypes.CDLL(name)
    except OSError:
        raise Unable("%s is not installed: what is coded with it cannot be decoded" % name) from None
    for function in ("ZSTD_decompress", "ZSTD_compress", "ZSTD_findFrameCompressedSize"):
        if "zstd" in name:
            getattr(lib, function).restype = ctypes.c_size_t
    return lib


def decode_lz4(stored, length):
    out = ctypes.create_string_buffer(length)
    got = library("liblz4.so.1").LZ4_decompress_safe(stored, out, len(stored), length)
    return out.raw if got == length else None


def decode_zstd(stored, length):
    lib = library("libzstd.so.1")
    size = ctypes.c_size_t
    if lib.ZSTD_findFrameCompressedSize(stored, size(len(stored))) != len(stored):
        return None
    out = ctypes.create_string_buffer(length)
    return out.raw if lib.ZSTD_decompress(out, size(length), stored, size(len(stored))) == length else None


def decode_zstd_after(before, stored, length):
    """One frame whose matches may lie in the bytes before it."""
    lib, size, pointer = library("libzstd.so.1"), ctypes.c_size_t, ctypes.c_void_p
    for function in ("ZSTD_DCtx_refPrefix", "ZSTD_decompressDCtx", "ZSTD_freeDCtx"):
        getattr(lib, function).restype = size
    lib.ZSTD_createDCtx.restype = pointer
    if lib.ZSTD_findFrameCompressedSize(stored, size(len(stored))) != len(stored):
        return None
    context, out = pointer(lib.ZSTD_createDCtx()), ctypes.create_string_buffer(length)
    lib.ZSTD_DCtx_refPrefix(context, before, size(len(before)))
    got = lib.ZSTD_decompressDCtx(context, out, size(length), stored, size(len(stored)))
    lib.ZSTD_freeDCtx(context)
    return out.raw if got == length else None


def decode_planes(stored, length):
    cur = Cursor(stored, "", "")
    try:
        width = cur.uint(1, "width")
        cur.need(width in (2, 4, 8, 16) and length >= width, "no such width")
        return bytes(read_planes(cur, width, length, 2))
    except Damage:
        return None


def read_recipe(cur):
    first, second = cur.uint(1, "recipe", 0, 127), cur.uint(1, "recipe", 0, 31)
    cur.uint(1, "level")
    cur.need(cur.uint(1, "window") in (0, *range(10, 28)), "no such window")
    width, predictor, real, swapped = 1 << (first & 7), first >> 3 & 3, first >> 5 & 1, first >> 6
    coder, record = second & 3, cur.var("record", 2, 1024) if second & 16 else 1
    strides = [cur.var("stride", 1, M32) for _ in range(second >> 2 & 3)]
    cur.need(width <= 16 and width * record <= 1024 and coder < 3 and strides == sorted(strides), "no such recipe")
    cur.need(not strides if predictor == 0 else strides and width <= 8, "no such strides")
    cur.need(predictor < 2 or (predictor == 2 and real and width >= 4), "no such predictor")
    cur.need(predictor == 0 or not real or width >= 2, "no such numbers")
    return width, record, predictor, real, swapped, coder, strides


def read_planes(cur, width, length, coder):
    """The planes of things of that width, back in their places, and the tail."""
    count = length // width
    sizes = [cur.var("length of a plane", 1, count) for _ in range(width)]
    out = bytearray(length)
    for k, size in enumerate(sizes):
        plane = cur.take(size)
        if size < count:
            plane = plane * count if size == 1 else CODECS[coder](plane, count) if coder else None
        cur.need(plane is not None, "a plane does not decode")
        out[k:count * width:width] = plane
    out[count * width:] = cur.take(length % width)
    cur.done()
    return out


def ordered(bits, top):
    return bits + top if bits < top else 2 * top - 1 - bits


def unordered(value, top):
    return value - top if value >= top else 2 * top - 1 - value


def sum_up(residuals, strides, top):
    for stride in strides:
        for i in range(stride, len(residuals)):
            residuals[i] = (residuals[i] + residuals[i - stride]) % (2 * top)
    return residuals


def real_from(residuals, strides, width):
    """Bits of the numbers that predictor 2 missed by that much."""
    top, code, whole = 1 << 8 * width - 1, "<f" if width == 4 else "<d", "<I" if width == 4 else "<Q"
    rounded = (lambda value: ctypes.c_float(value).value) if width == 4 else float
    numbers, out, (s, t, u) = [], [], (strides + [0, 0])[:3]

    def less(i, a, b):
        before = [numbers[i - k] if k <= i else 0.0 for k in (a, b)]
        return rounded(before[0] - before[1])

    for i, missed in enumerate(residuals):
        p = numbers[i - s] if s <= i else 0.0
        if len(strides) == 2:
            p = rounded(p + less(i, t, s + t))
        elif len(strides) == 3:
            p = rounded(p + rounded(less(i, t, s + t) + rounded(less(i, u, s + u) - less(i, t + u, s + t + u))))
        bits, = struct.unpack(whole, struct.pack(code, p if p == p else 0.0))
        out.append(unordered((ordered(bits, top) + missed) % (2 * top), top))
        numbers += struct.unpack(code, struct.pack(whole, out[-1]))
    return out


def decode_typed(stored, length):
    cur = Cursor(stored, "", "")
    try:
        width, record, predictor, real, swapped, coder, strides = read_recipe(cur)
        cur.need(width * record <= length <= 2**26, "too short or too long for its recipe")
        out = read_planes(cur, width * record, length, coder)
    except Damage:
        return None
    if not predictor:
        return bytes(out)
    top, end = 1 << 8 * width - 1, length - length % (width * record)
    numbers = [int.from_bytes(out[i:i + width], "little") for i in range(0, end, width)]
    numbers = [z // 2 if z % 2 == 0 else 2 * top - (z + 1) // 2 for z in numbers]
    if predictor == 2:
        numbers = real_from(numbers, strides, width)
    else:
        numbers = [unordered(v, top) if real else v for v in sum_up(numbers, strides, top)]
    out[:end] = b"".join(v.to_bytes(width, "big" if swapped else "little") for v in numbers)
    return bytes(out)


def decode_fpc(stored, count, log):
    """Numbers as integers; None if they do not fill the bytes."""
    codes, at = stored[:(count + 1) // 2], (count + 1) // 2
    if len(codes) < at or (count % 2 and codes[-1] >> 4):
        return None
    mask = (1 << log) - 1
    fcm, dfcm = [0] * (mask + 1), [0] * (mask + 1)
    a = b = u = 0
    out = []
    for i in range(count):
        code = codes[i // 2] >> i % 2 * 4 & 15
        kept = 8 - (code & 7) - ((code & 7) > 3)
        if at + kept > len(stored):
            return None
        v = int.from_bytes(stored[at:at + kept], "little") ^ (u + dfcm[b] & M64 if code & 8 else fcm[a])
        at += kept
        s = v - u & M64
        fcm[a], dfcm[b] = v, s
        a, b, u = (a << 6 ^ v >> 48) & mask, (b << 2 ^ s >> 40) & mask, v
        out.append(v)
    return out if at == len(stored) else None


class FpzipStream:
    """The range coder and the frequencies of fpzip."""

    def __init__(self, stored, symbols):
        self.stored, self.at, self.low, self.range, self.code = stored, 0, 0, M32, 0
        self.shift(4)
        self.counts = [65536 // symbols + (s < 65536 % symbols) for s in range(symbols)]
        self.every, self.left, self.late = symbols >> 4 | 2, 0, 0
        self.renew()

    def shift(self, n):
        for _ in range(n):
            if self.at == len(self.stored):
                raise Damage("", "", "the stream ends too early")
            self.code = (self.code << 8 | self.stored[self.at]) & M32
            self.low = self.low << 8 & M32
            self.at += 1

    def part(self, bits):
        at = (self.code - self.low & M32) // (self.range >> bits)
        if at >> bits:
            raise Damage("", "", "no such part")
        return at

    def narrow(self, bits, at, width):
        self.range >>= bits
        self.low = self.low + self.range * at & M32
        self.range *= width
        while (self.low ^ (self.low + self.range & M32)) >> 24 == 0:
            self.shift(1)
            self.range = self.range << 8 & M32
        if self.range < 65536:
            self.shift(2)
            self.range = -self.low & M32

    def renew(self):
        self.every = min(2 * self.every, 1024)
        self.begins = [0]
        for c in self.counts:
            self.begins.append(self.begins[-1] + c)
        self.counts = [c >> 1 | 1 for c in self.counts]
        self.step, self.late = divmod(65536 - sum(self.counts), self.every)
        self.left = self.every

    def symbol(self):
        at = self.part(16)
        s = bisect_right(self.begins, at) - 1
        self.narrow(16, self.begins[s], self.begins[s + 1] - self.begins[s])
        if not self.left:
            self.renew()
        self.counts[s] += self.step + (self.left <= self.late)
        self.left -= 1
        return s

    def bits(self, n):
        value = done = 0
        while True:
            now = min(n - done, 16)
            some = self.part(now)
            self.narrow(now, some, 1)
            value |= some << done
            done += now
            if done == n:
                return value


def decode_fpzip(stored, count, width):
    sign, middle = 1 << 8 * width - 1, 8 * width
    infinity, quiet = (0x7f800000, 1 << 22) if width == 4 else (0x7ff << 52, 1 << 51)
    stream, u, out = FpzipStream(stored, 2 * middle + 1), 0, []
    for _ in range(count):
        p = 0 if u == sign else u | quiet if u & ~sign > infinity else u
        p = ~p & 2 * sign - 1 if p & sign else p | sign
        s = stream.symbol()
        if s != middle:
            k = s - middle - 1 if s > middle else middle - 1 - s
            d = (1 << k) + stream.bits(k)
            p = (p + d if s > middle else p - d) & 2 * sign - 1
        u = p ^ sign if p & sign else ~p & 2 * sign - 1
        out.append(u)
    return out if stream.at == len(stored) else None


def decode_paper(stored, length):
    cur = Cursor(stored, "", "")
    try:
        first, flags, width, log = (cur.uint(1, "head") for _ in range(4))
        cur.need(first in (0, 3, 4, 5) and flags < 4 and width and (first or flags == 1), "no such passes")
        cur.need(first in (3, 4) or flags < 2, "nothing to turn round")
        cur.need(1 <= log <= 20 if first == 3 else log == 0, "no such tables")
        cur.need(width == 8 if first == 3 else width in (4, 8) or first != 4, "no such width")
        cur.var("length", length, length)
        left = cur.var("length of the first pass", 0, length + length // 16 + 64) if first and flags & 1 else length
        data = cur.take(len(stored) - cur.at)
        if flags & 1:
            stream = zlib.decompressobj()
            data = stream.decompress(data)
            cur.need(stream.eof and not stream.unused_data and len(data) == left, "a zlib stream of another length")
        if first == 5:
            return decode_lz4(data, length)
        if first:
            tail = length % width
            cur.need(len(data) >= tail, "ends too early")
            numbers, rest = data[:len(data) - tail], data[len(data) - tail:]
            numbers = decode_fpc(numbers, length // 8, log) if first == 3 else decode_fpzip(numbers, length // width, width)
            cur.need(numbers is not None, "the numbers do not fill it")
            data = b"".join(v.to_bytes(width, "big" if flags & 2 else "little") for v in numbers) + rest
        return data if len(data) == length else None
    except (Damage, zlib.error):
        return None


def read_stream(cur, width, most, coder):
    length = cur.var("length of a stream", 0, most * width)
    stored = cur.take(cur.var("stored length of a stream", min(length, 1), length))
    cur.need(length % width == 0, "a stream of broken things")
    if len(stored) < length:
        return bytes(read_planes(Cursor(stored, "", ""), width, length, coder))
    count, out = length // width, bytearray(length)
    for k in range(width):
        out[k::width] = stored[k * count:(k + 1) * count]
    return bytes(out)


def things(stream, width):
    return iter([int.from_bytes(stream[i:i + width], "little") for i in range(0, len(stream), width)])


def read_turns(starts, distances, words):
    """Where the distance changes, and to what."""
    turns, at, starts, distances = {}, 0, Cursor(starts, "", ""), Cursor(distances, "", "")
    while starts.at < len(starts.data):
        at += starts.var("start of a trail", 0, words - at)
        turns[at] = distances.var("distance", 1, at)
    distances.done()
    return turns


def follow(codes, turns, close, new):
    """The words of trails; None where there are none."""
    words, last, distance = [], [0] * 7, 0
    for i, code in enumerate(codes):
        distance = turns.get(i, distance)
        before = words[i - distance] if distance else 0
        if code > 10 or (not distance and code not in (8, 10)) or (code == 8 and i == 0):
            return None
        if code == 0:
            word = before
        elif code < 8:
            last.insert(0, last.pop(code - 1))
            word = (before + last[0]) % 2**64
        elif code == 8:
            word = words[-1]
        else:
            word = next(new if code == 10 else close, None)
            if word is None:
                return None
            word = word if code == 10 else (before + (word // 2 if word % 2 == 0 else -(word + 1) // 2)) % 2**64
            if distance:
                last = [(word - before) % 2**64] + last[:6]
        words.append(word)
    return words if next(close, None) is None and next(new, None) is None else None


def decode_trail(stored, length):
    cur, count = Cursor(stored, "", ""), length // 8
    try:
        coder = cur.uint(1, "coder", 0, 2)
        codes = read_stream(cur, 1, count, coder)
        cur.need(len(codes) == count, "more or fewer words")
        starts, distances = (read_stream(cur, 1, 5 * count, coder) for _ in range(2))
        close = read_stream(cur, 3, count, coder)
        width = cur.uint(1, "width of new words")
        cur.need(width in (1, 8), "no such width")
        new = read_stream(cur, width, count * 8 // width, coder)
        cur.need(len(new) % 8 == 0, "half a word")
        words = follow(codes, read_turns(starts, distances, count), things(close, 3), things(new, 8))
        tail = cur.take(length % 8)
        cur.done()
    except Damage:
        return None
    return None if words is None else b"".join(w.to_bytes(8, "little") for w in words) + tail


BLANKS, DIGITS = b" \t,;|", b"0123456789"


def scan_prefix(text, at):
    """The end of the prefix that begins at `at`, and whether a number follows."""
    letter = False
    for i in range(at, min(at + 255, len(text))):
        if text[i] in DIGITS:
            return i, True
        if text[i] == 10:
            return i + 1, False
        if text[i] not in BLANKS:
            if letter and text[i - 1] in BLANKS and not (text[i] == 45 and text[i + 1:i + 2].isdigit()):
                return i, False
            letter = True
    return min(at + 255, len(text)), False


def scan_text(text):
    """The dictionary of a base, and the tokens of each of its lines as (entry, integer)."""
    entries, lines, column, last, at = {}, [[]], 0, {}, 0
    while at < len(text):
        end, number = scan_prefix(text, at)
        prefix, value, entry = text[at:end], None, None
        if number:
            digits = re.compile(rb"[0-9]{1,18}").match(text, end)[0]
            point = re.compile(rb"\.([0-9]+)").match(text, end + len(digits)) if len(digits) < 18 else None
            after = point[1][:18 - len(digits)] if point else b""
            value, size, end = int(digits + after), len(digits) + len(after) + bool(after), end + len(digits) + len(after) + bool(after)
            if value and prefix.endswith(b"-"):
                prefix, value, size = prefix[:-1], -value, size + 1
            blanks = len(prefix) - len(prefix.rstrip(b" "))
            zeros = len(digits) if len(digits) > 1 and digits[:1] == b"0" or last.get(column, (b"", 0, 0, 0))[2] == len(digits) else 0
            field = size + blanks if size + blanks <= 255 and (blanks > 1 or last.get(column, (b"", 0, 0, 0))[3] == size + blanks) else 0
            entry = (prefix[:len(prefix) - blanks] if field else prefix, 1 + len(after), zeros, field)
        entry = entry or (prefix, 0, 0, 0)
        lines[-1].append((entries.setdefault(entry, len(entries)), value))
        last[column], at = entry, end
        column = min(column + 1, 255)
        if not number and prefix.endswith(b"\n"):
            lines.append([])
            column = 0
    return list(entries), lines if lines[-1] else lines[:-1]


def read_entries(data):
    entries, cur = [], Cursor(data, "", "")
    while cur.at < len(data):
        size, number = cur.uint(1, "length of a prefix"), cur.uint(1, "digits", 0, 18)
        zeros, field = (cur.uint(1, "zeros", 0, 18), cur.uint(1, "field")) if number else (0, 0)
        entries.append((cur.take(size), number, zeros, field))
    return entries


def unzigzag(z):
    return z // 2 if z % 2 == 0 else -(z + 1) // 2


def signed(value):
    return (value + 2**63) % 2**64 - 2**63


def rescaled(value, before, after):
    if after >= before:
        return value * 10**(after - before)
    return value // 10**(before - after) if value >= 0 else -(-value // 10**(before - after))


def token_text(entry, value):
    prefix, number, zeros, field = entry
    if not number:
        return prefix
    digits = str(abs(value)).rjust(max(zeros, 1) + number - 1, "0")
    point = len(digits) - (number - 1)
    text = ("-" if value < 0 else "") + digits[:point] + ("." + digits[point:] if number > 1 else "")
    return prefix + text.rjust(field).encode()


def read_text(cur, base, length):
    head = cur.uint(1, "head", 0, 10)
    if head & 8:
        text = read_stream(cur, 1, length, head & 3)
        cur.need(len(text) == length and not base, "more or less text")
        cur.done()
        return text
    coder, most = head & 3, length // 4 * 3 + 16
    cur.need(coder < 3 and (head & 4 > 0) == bool(base) and length <= 2**23, "no such head")
    entries, lines = scan_text(base)
    entries += read_entries(read_stream(cur, 1, 4096 * 259, coder))
    jumps = things(read_stream(cur, 4, most, coder), 4) if base else iter(())
    columns = []
    for _ in range(cur.uint(1, "columns") + 1):
        first = cur.uint(1, "head of a column")
        cur.need(first & 3 < 3 and 1 <= first >> 3 <= 8 and len(entries) <= 4096, "no such column")
        ids = read_stream(cur, 1 + (first >> 2 & 1), most, coder)
        most -= len(ids) // (1 + (first >> 2 & 1))
        numbers = read_stream(cur, first >> 3, len(ids), coder)
        columns.append({"from": first & 3, "ids": things(ids, 1 + (first >> 2 & 1)), "numbers": things(numbers, first >> 3), "last": (0, 1)})
    cur.done()
    return follow_text(entries, lines if base else None, jumps, columns, length)


def follow_text(entries, lines, jumps, columns, length):
    """The text of the tokens; None where there are none."""
    out, line, likes, place, column = bytearray(), -1, [], 0, 0
    while len(out) < length:
        if lines is not None and place == 0:
            line += 1 + unzigzag(next(jumps))
            likes = lines[line] if 0 <= line < len(lines) else []
        c, like = columns[column], likes[place] if place < len(likes) else None
        k, value = next(c["ids"]), None
        k = k if lines is None else like[0] if k == 0 else k - 1
        entry = entries[k]
        if entry[1]:
            value, before = unzigzag(next(c["numbers"])), (0, 1)
            if c["from"] == 1:
                before = c["last"]
            elif c["from"] == 2 and like and like[1] is not None:
                before = (like[1], entries[like[0]][1])
            value = signed(value + rescaled(before[0], before[1], entry[1]))
            c["last"] = value, entry[1]
        out += token_text(entry, value)
        ends = not entry[1] and entry[0].endswith(b"\n")
        place, column = (0, 0) if ends else (place + 1, min(column + 1, 255))
    left = [jumps] + [c[k] for c in columns for k in ("ids", "numbers")]
    return bytes(out) if len(out) == length and all(next(s, None) is None for s in left) else None


def decode_text(stored, length, base=b""):
    try:
        return read_text(Cursor(stored, "", ""), base, length)
    except (Damage, StopIteration, IndexError, TypeError):
        return None


CODECS = {0: lambda stored, length: stored, 1: decode_lz4, 2: decode_zstd, 3: decode_planes, 4: decode_typed, 5: decode_paper,
          6: decode_trail, 8: decode_text}


def decode_delta(stored, base, length):
    """Codec 7: the difference to a base of the same length, or a match in any base."""
    cur = Cursor(stored, "", "")
    try:
        check, first, codec = cur.uint(8, "check"), cur.uint(1, "difference", 0, 16), cur.uint(1, "codec", 0, 8)
        cur.need(first & 1 or not first or first == 16 and codec in (2, 8), "no such difference")
        cur.need(first == 16 or codec < 7, "no such codec")
        cur.need(first >> 1 & 3 or first < 8 or first == 16, "no such difference")
        cur.need(first == 16 or len(base) == length, "the base is not as long as the block")
    except Damage:
        return None
    if first == 16:
        data = decode_zstd_after(base, stored[cur.at:], length) if codec == 2 else decode_text(stored[cur.at:], length, base)
        return data if data is not None and xxh3_64(data) == check else None
    data = CODECS[codec](stored[cur.at:], len(base)) if codec or len(stored) - cur.at == len(base) else None
    if data is None:
        return None
    width = 1 << (first >> 1 & 3)
    end = len(base) - len(base) % width if first & 1 else 0
    out, order = bytearray(a ^ b for a, b in zip(data[end:], base[end:])), "big" if first & 8 else "little"
    numbers = bytearray()
    for i in range(0, end, width):
        z = int.from_bytes(data[i:i + width], "little")
        step = z // 2 if z % 2 == 0 else -(z + 1) // 2
        numbers += (int.from_bytes(base[i:i + width], order) + step & (1 << 8 * width) - 1).to_bytes(width, order)
    return bytes(numbers + out) if xxh3_64(bytes(numbers + out)) == check else None

# ---- the format ----


class Damage(Exception):
    def __init__(self, obj, section, what):
        super().__init__("%s: %s: %s" % (obj, section, what))


class Cursor:
    """Reads the primitives of section 1 of the specification from the bytes of one section."""

    def __init__(self, data, obj, section):
        self.data, self.obj, self.section, self.at = data, obj, section, 0

    def need(self, ok, what, *args):
        if not ok:
            raise Damage(self.obj, self.section, what % args if args else what)

    def take(self, n):
        self.need(n <= len(self.data) - self.at, "ends too early")
        self.at += n
        return self.data[self.at - n:self.at]

    def uint(self, size, what, low=0, high=M64):
        value = int.from_bytes(self.take(size), "little")
        self.need(low <= value <= high, "%s %d is not in %d .. %d", what, value, low, high)
        return value

    def var(self, what, low=0, high=M64):
        value = 0
        for i in range(10):
            byte = self.take(1)[0]
            value |= (byte & 127) << 7 * i
            if byte < 128:
                self.need(byte or not i, "%s: a number not in its shortest form", what)
                self.need(low <= value <= min(high, M64), "%s %d is not in %d .. %d", what, value, low, high)
                return value
        self.need(False, "%s: a number of more than 10 bytes", what)

    def svar(self, what):
        value = self.var(what)
        return value >> 1 ^ -(value & 1)

    def str(self, what, low, high):
        value = self.take(self.var("length of " + what, low, high))
        self.need(0 not in value, "%s contains a zero byte", what)
        return value

    def start(self, magic):
        self.need(self.take(8) == magic, "not the magic %s", magic.decode())
        self.uint(2, "version", 1, 1)
        self.uint(2, "flags", 0, 0)

    def sealed(self):
        """A whole object that ends with the check of everything before it."""
        self.need(len(self.data) >= 8, "ends too early")
        self.need(xxh3_64(self.data[:-8]) == u64_at(self.data, len(self.data) - 8), "check does not match")
        self.data = self.data[:-8]
        return self

    def done(self):
        self.need(self.at == len(self.data), "%d bytes left over", len(self.data) - self.at)


KINDS = {1: "IDENT", 2: "REGIONS", 3: "SOURCES", 4: "RUNS", 5: "STATS", 6: "BLOCKS", 7: "DIGESTS"}
MORE_KINDS = {8: "COPIES", 9: "ERAS", 10: "PARTS", 11: "BASES"}  # that need not be there
MUST_KNOW = (11,)  # of these
ELEMENT_SIZE = (1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, 2, 2, 1, 1)
MAX_EPOCH, MAX_RANKS = 9999999999, 2**20


def element_size(region):
    return region["record"] if region["type"] == 17 else ELEMENT_SIZE[region["type"]]


def read_digests(cur, payload):
    groups, end = [], 0
    for _ in range(cur.var("number of groups")):
        start = end + cur.var("gap of a group")
        size, count = cur.var("chunk size", 1, 2**20), cur.var("number of chunks", 1)
        end = start + size * count
        cur.need(end <= payload, "the group at %d ends after the payload", start)
        groups.append((start, size, count))
    return [(start, size, [cur.take(16) for _ in range(count)]) for start, size, count in groups]


class Layer:
    """One layer object. The frame is read at once, each section when it is asked for."""

    def __init__(self, place, obj, epoch, rank):
        self.obj, self.epoch, self.rank = obj, epoch, rank
        self.maps = {}
        self.older = None  # finds the layer of an older epoch, of the same rank
        if not place:
            raise Damage(obj, "file", "missing")
        self.path, self.begin, self.size = place
        if self.size < 16 + 48:
            raise Damage(obj, "file", "too short for a header and a trailer")
        cur = Cursor(self.read(0, 16), obj, "header")
        cur.start(b"VARVELYR")
        cur.need(cur.uint(4, "check") == xxh3_64(cur.data[:12]) & M32, "check does not match")
        self.read_directory()

    def read(self, offset, length):
        return read_at(self.path, self.begin + offset, length)

    def read_directory(self):
        cur = Cursor(self.read(self.size - 48, 48), self.obj, "trailer").sealed()
        self.directory = cur.uint(8, "offset of the directory")
        count = cur.uint(4, "number of sections", 7, 64)
        cur.uint(4, "reserved field", 0, 0)
        cur.uint(8, "length of the file", self.size, self.size)
        check = cur.uint(8, "check of the directory")
        cur.need(cur.take(8) == b"VARVEEND", "not the magic VARVEEND")
        cur.need(self.directory + 32 * count + 48 == self.size, "the directory does not end at the trailer")
        data = self.read(self.directory, 32 * count)
        cur = Cursor(data, self.obj, "directory")
        cur.need(xxh3_64(data) == check, "check does not match")
        self.entries = list(struct.iter_unpack("<IIQQQ", data))
        kinds = [entry[0] for entry in self.entries]
        cur.need(len(set(kinds)) == len(kinds), "a kind occurs twice")
        cur.need([k for k in kinds if k in KINDS] == list(KINDS), "kinds 1 to 7 are not all there and in order")
        for n, (kind, flags, offset, length, _) in enumerate(self.entries):
            end = self.entries[n + 1][2] if n + 1 < len(self.entries) else self.directory
            cur.need(offset >= 16 and offset + length == end, "section %d does not end at the next part", kind)
            cur.need(flags < 8, "section %d has unknown flags %#x", kind, flags)
            cur.need(not flags & 4 or kind not in (1, 7), "section %d must not be coded", kind)
            cur.need(kind in KINDS or flags & 2 or kind in MUST_KNOW, "unknown section %d must not be skipped", kind)
            cur.need(kind not in MUST_KNOW or flags & 3 == 0, "section %d has the wrong flags", kind)
            cur.need(kind not in KINDS or flags & 1 == (kind <= 5), "section %d has the wrong head flag", kind)

    def stored_section(self, kind):
        offset, length, check = next(entry[2:] for entry in self.entries if entry[0] == kind)
        data = self.read(offset, length)
        cur = Cursor(data, self.obj, {**KINDS, **MORE_KINDS}.get(kind, "section %d" % kind))
        cur.need(xxh3_64(data) == check, "check does not match")
        return cur

    def section(self, kind):
        cur = self.stored_section(kind)
        if not next(entry[1] & 4 for entry in self.entries if entry[0] == kind):
            return cur
        length = cur.var("length after decoding", 1, min(2**32, 1024 * len(cur.data)))
        frame = cur.take(cur.var("length of the frame", 1, len(cur.data)))
        cur.need(not any(cur.data[cur.at:]), "something behind the frame")
        data = decode_zstd(frame, length)
        cur.need(data is not None, "does not decode")
        return Cursor(data, self.obj, cur.section)

    @cached_property
    def head_digest(self):
        return xxh3_128_canonical(b"".join(self.stored_section(entry[0]).data for entry in self.entries if entry[1] & 1))

    @cached_property
    def ident(self):
        cur = self.section(1)
        ident = {"lineage": cur.take(16).hex(), "epoch": cur.uint(8, "epoch", 1, MAX_EPOCH)}
        ident["parent"] = cur.uint(8, "parent epoch", 0, ident["epoch"] - 1)
        ident["rank"] = cur.uint(4, "rank")
        ident["ranks"] = cur.uint(4, "number of ranks", 1, MAX_RANKS)
        ident["time"] = cur.uint(8, "time")
        ident["payload"] = cur.uint(8, "payload length")
        ident["digest"] = cur.uint(1, "digest kind", 1, 2)
        ident["depth"] = cur.uint(1, "number of parents")
        cur.done()
        cur.need(ident["rank"] < ident["ranks"], "the rank is not below the number of ranks")
        cur.need((ident["depth"] == 0) == (ident["parent"] == 0), "a keyframe with parents, or a layer without any")
        cur.need((ident["epoch"], ident["rank"]) == (self.epoch, self.rank), "epoch or rank differ from the name's")
        return ident

    @cached_property
    def regions(self):
        cur, regions = self.section(2), []
        for _ in range(cur.var("number of regions", 0, 2**20)):
            region = {"name": cur.str("name", 1, 1023), "parent": cur.var("parent region", 0, 2**20)}
            region["length"] = cur.var("length", 0, 2**40)
            region["chunk"] = cur.var("chunk size", 32, 2**20)
            region["type"] = kind = cur.uint(1, "element type", 0, 17)
            dims = cur.uint(1, "number of dimensions", 0 if kind == 0 else 1, 0 if kind == 0 else 16)
            region["shape"] = [cur.var("dimension") for _ in range(dims)]
            if kind == 17:
                region["record"], region["fields"] = self.read_record(cur)
            element = region["record"] if kind == 17 else ELEMENT_SIZE[kind]
            cur.need(kind == 0 or math.prod(region["shape"]) * element == region["length"],
                     "the shape of %r does not make its length", region["name"])
            cur.need(not region["parent"] or self.ident["parent"], "%r has a parent in a keyframe", region["name"])
            regions.append(region)
        cur.done()
        cur.need(len({region["name"] for region in regions}) == len(regions), "two regions of one name")
        return regions

    @staticmethod
    def read_record(cur):
        """The bytes of a record, and its fields as (name, type, offset, bytes)."""
        size, fields, end = cur.var("bytes of a record", 1, 2**20), [], 0
        for _ in range(cur.var("number of fields", 1, 128)):
            name, kind = cur.str("name of a field", 1, 63), cur.uint(1, "type of a field", 0, 16)
            offset = end + cur.var("gap of a field")
            length = cur.var("bytes of a field", 1)
            end = offset + length
            cur.need(re.fullmatch(rb"\w+" if isinstance(name, bytes) else r"\w+", name, re.ASCII), "the name of a field")
            cur.need(length % ELEMENT_SIZE[kind] == 0 and end <= size, "the length of field %r", name)
            fields.append((name, kind, offset, length))
        cur.need(len({field[0] for field in fields}) == len(fields), "two fields of one name")
        return size, fields

    @cached_property
    def sources(self):
        cur = self.section(3)
        sources = [(cur.var("epoch of a source", 1, self.epoch), cur.var("rank of a source", 0, MAX_RANKS - 1))
                   for _ in range(cur.var("number of sources", 0, 2**24))]
        cur.done()
        cur.need(len(set(sources)) == len(sources), "a source is listed twice")
        return sources

    @cached_property
    def runs(self):
        """Per region a list of (start, length, source, position)."""
        cur, last = self.section(4), {}
        runs = [self.read_runs(cur, region, last) for region in self.regions]
        cur.done()
        return runs

    def read_runs(self, cur, region, last):
        runs, end = [], 0
        for _ in range(cur.var("number of runs")):
            gap, length = cur.var("gap of a run"), cur.var("length of a run", 1)
            source, pos = cur.var("source of a run", 0, len(self.sources)), 0
            if source:
                pos = last.get(source, 0) + cur.svar("position")
                last[source] = pos + length
            cur.need(0 <= pos <= M64 - length, "a position before 0 or after 2^64")
            cur.need(not gap or region["parent"], "a gap in %r, which has no parent", region["name"])
            if runs and not gap and source == runs[-1][2]:
                cur.need(source and pos != runs[-1][3] + runs[-1][1],
                         "two runs at %d of %r could be one", end, region["name"])
            runs.append((end + gap, length, source, pos))
            end += gap + length
            cur.need(end <= region["length"], "a run ends after the end of %r", region["name"])
        cur.need(region["parent"] or end == region["length"], "the runs of %r do not reach its end", region["name"])
        return runs

    @cached_property
    def stats(self):
        cur, stats = self.section(5), {}
        for _ in range(cur.var("number of stats", 0, 1024)):
            name = cur.str("name", 0, 63)
            cur.need(name not in stats, "%r occurs twice", name)
            stats[name] = cur.uint(8, "value")
        cur.done()
        memory = stats.get(b"bytes.memory", self.memory)
        ways = [stats.get(b"bytes." + way, 0)
                for way in (b"new", b"unchanged", b"zero", b"dup_time", b"dup_space", b"dup_ranks")]
        cur.need(memory == self.memory, "bytes.memory is not the length of all regions")
        cur.need(not any(ways) or sum(ways) == memory, "the ways of the bytes do not add up to bytes.memory")
        cur.need(not any(ways) or ways[0] <= self.ident["payload"], "bytes.new is more than the payload length")
        return stats

    @cached_property
    def copies(self):
        """Where else parts of the payload are: (position, length, rank, position there)."""
        if all(entry[0] != 8 for entry in self.entries):
            return []
        cur, copies, before = self.section(8), [], 0
        for _ in range(cur.var("number of copies")):
            rank = before + cur.var("rank of a copy", 0, MAX_RANKS)
            pos, at = (copies[-1][0] + copies[-1][1], copies[-1][3] + copies[-1][1]) if copies and rank == before else (0, 0)
            gap, length, step = cur.var("gap of a copy"), cur.var("length of a copy", 1), cur.svar("position of a copy")
            cur.need(rank < self.ident["ranks"] and rank != self.rank, "a copy in the layer of rank %d", rank)
            cur.need(pos + gap + length <= self.ident["payload"], "a copy of what is after the payload")
            cur.need(0 <= at + step <= 2**40 - length, "a copy before 0 or after 2^40")
            cur.need(not (copies and rank == before and gap == step == 0), "two copies could be one")
            copies.append((pos + gap, length, rank, at + step))
            before = rank
        cur.done()
        return copies

    @cached_property
    def eras(self):
        """Who laid down the epochs that this layer knows of: (first, last, token); its own is the last."""
        if all(entry[0] != 9 for entry in self.entries):
            return []
        cur, eras, end = self.section(9), [], 0
        for _ in range(cur.var("number of eras", 1)):
            first = end + cur.var("first epoch of an era")
            last = first + cur.var("length of an era")
            cur.need(1 <= first and last <= self.epoch, "an era from %d to %d", first, last)
            eras.append((first, last, cur.uint(8, "token of an era")))
            end = last + 1
        cur.done()
        cur.need(end == self.epoch + 1, "the last era does not end with the layer's epoch")
        return eras

    @cached_property
    def parts(self):
        """What regions are in the state of all ranks, by their index: (kind, ...)."""
        if all(entry[0] != 10 for entry in self.entries):
            return {}
        cur, parts, index = self.section(10), {}, -1
        for _ in range(cur.var("number of parts", 1, len(self.regions))):
            index += 1 + cur.var("index of a region", 0, 2**20)
            cur.need(index < len(self.regions), "a part of region %d", index)
            region, kind = self.regions[index], cur.uint(1, "kind of a part", 1, 3)
            if kind == 1:
                parts[index] = ("slab", self.read_slab(cur, region))
            elif kind == 2:
                parts[index] = ("shared",)
            else:
                item = cur.var("bytes of an item", 1, 2**40)
                cur.need(region["length"] % item == 0 and item % element_size(region) == 0, "items of %d bytes in %r", item, region["name"])
                parts[index] = ("list", item)
        cur.done()
        return parts

    def read_slab(self, cur, region):
        """For each dimension (length of the global array, start, count, ghost)."""
        cur.need(region["type"] != 0, "%r has no type, and is a part of an array", region["name"])
        dims, elements = [], 1
        for shape in region["shape"]:
            length, start, ghost = (cur.var(what, 0, 2**56) for what in ("length of an array", "start", "ghost"))
            count = shape - 2 * ghost
            elements *= length or 1
            cur.need(count >= 0 and start + count <= length, "%r has elements outside of its array", region["name"])
            cur.need(elements <= 2**56, "%r is a part of too large an array", region["name"])
            dims.append((length, start, count, ghost))
        return dims

    @cached_property
    def bases(self):
        """Per block with codec 7 its bases: a list of (epoch or None for zeros, position, length)."""
        deltas = [number for number, block in enumerate(self.blocks) if block["codec"] == 7]
        if all(entry[0] != 11 for entry in self.entries):
            Cursor(b"", self.obj, "BASES").need(not deltas, "it is missing")
            return {}
        cur, epochs, ends, bases = self.section(11), [], {}, {}
        for _ in range(cur.var("number of epochs", 0, 2**20)):
            epochs.append((epochs[-1] if epochs else 0) + cur.var("step of an epoch", 1))
            cur.need(epochs[-1] < self.epoch, "a base in epoch %d", epochs[-1])
        cur.need(deltas, "no block has bases")
        for number in deltas:
            bases[number] = []
            for _ in range(cur.var("number of bases", 1, 64)):
                which, length, pos = cur.var("epoch of a base", 0, len(epochs)), cur.var("length of a base", 1, 2**26), 0
                if which:
                    pos = ends.get(which, 0) + cur.svar("position of a base")
                    cur.need(0 <= pos <= 2**40 - length, "a base before 0 or after 2^40")
                    ends[which] = pos + length
                bases[number].append((epochs[which - 1] if which else None, pos, length))
            cur.need(sum(base[2] for base in bases[number]) <= 4 * self.blocks[number]["length"] + 2**22, "the bases are too long")
        cur.done()
        cur.need(len(ends) == len(epochs), "an epoch without bases")
        return bases

    def base(self, number):
        out = b""
        for epoch, pos, length in self.bases[number]:
            if epoch is None:
                out += bytes(length)
                continue
            layer = self.older(epoch)
            pieces = list(layer.pieces(pos, length))
            if any(layer.blocks[piece[0]]["codec"] == 7 for piece in pieces):
                raise Damage(self.obj, "block %d" % number, "its base has a base itself")
            out += layer.payload(pos, length)
        return out

    @property
    def memory(self):
        return sum(region["length"] for region in self.regions)

    @cached_property
    def blocks(self):
        cur, blocks, offset, end = self.section(6), [], 16, 0
        for _ in range(cur.var("number of blocks")):
            block = {"offset": offset, "codec": cur.var("codec", 0, 8), "length": cur.var("decoded length", 1, 2**26)}
            block["stored"], block["check"] = cur.var("stored length", 1, 2**27), cur.uint(8, "check")
            cur.need(block["codec"] or block["stored"] == block["length"], "a block without codec has two lengths")
            block["extents"] = []
            for _ in range(cur.var("number of extents", 1)):
                start = end + cur.var("gap of an extent")
                end = start + cur.var("length of an extent", 1)
                block["extents"].append((start, end - start))
            cur.need(end <= self.ident["payload"], "an extent ends after the payload")
            cur.need(sum(n for _, n in block["extents"]) == block["length"], "the extents are not as long as the block")
            offset += block["stored"]
            blocks.append(block)
        cur.done()
        cur.need(offset == self.entries[0][2], "the blocks end at %d and not at the first section", offset)
        return blocks

    @cached_property
    def digests(self):
        cur = self.section(7)
        groups = read_digests(cur, self.ident["payload"])
        cur.done()
        return groups

    @cached_property
    def extents(self):
        """(position, length, block, offset in the decoded block), ascending."""
        extents = []
        for number, block in enumerate(self.blocks):
            offset = 0
            for start, length in block["extents"]:
                extents.append((start, length, number, offset))
                offset += length
        return extents

    @lru_cache(maxsize=4)  # of all layers together: decoded blocks are large
    def block(self, number):
        block = self.blocks[number]
        stored = self.read(block["offset"], block["stored"])
        cur = Cursor(stored, self.obj, "block %d" % number)
        cur.need(xxh3_64(stored) == block["check"], "check does not match")
        data = decode_delta(stored, self.base(number), block["length"]) if block["codec"] == 7 else CODECS[block["codec"]](stored, block["length"])
        cur.need(data is not None, "does not decode to %d bytes", block["length"])
        return data

    def pieces(self, pos, length):
        """The parts of blocks that hold a range of the payload: (block, offset, length)."""
        at = bisect_right(self.extents, (pos, M64, 0, 0)) - 1
        while length:
            start, size, number, offset = self.extents[at] if 0 <= at < len(self.extents) else (pos, 0, 0, 0)
            if not start <= pos < start + size:
                raise Damage(self.obj, "BLOCKS", "position %d of the payload is needed and not there" % pos)
            n = min(length, start + size - pos)
            yield number, offset + pos - start, n
            pos, length, at = pos + n, length - n, at + 1

    def payload(self, pos, length):
        return b"".join(self.block(number)[at:at + n] for number, at, n in self.pieces(pos, length))

    def check_chunks(self):
        digest = DIGESTS[self.ident["digest"]]
        for start, size, chunks in self.digests:
            for n, want in enumerate(chunks):
                if digest(self.payload(start + n * size, size)) != want:
                    raise Damage(self.obj, "DIGESTS", "the chunk at %d has another content" % (start + n * size))

    def check_as_written(self, stored):
        cur, end = Cursor(b"", self.obj, "BLOCKS"), 0
        for block in self.blocks:
            cur.need(block["extents"] == [(end, block["length"])], "not as written, though the object's length is")
            end += block["length"]
        cur.need(end == self.ident["payload"], "not the whole payload, though the object's length is as written")
        cur.need(sum(block["stored"] for block in self.blocks) == stored, "bytes stored differ from the commit's")


def read_at(path, offset, length):
    with open(path, "rb") as file:
        file.seek(offset)
        return file.read(length)


class Bundle:
    """A file with several layers of an epoch: section 9 of the specification."""

    NAME = re.compile(r"([0-9]{10})\.r(0|[1-9][0-9]*)-(0|[1-9][0-9]*)\.bundle")
    PAGE, LONGEST = 4096, 2**22

    def __init__(self, path, obj):
        self.path, self.obj, self.size = path, obj, os.path.getsize(path)
        self.epoch, self.first, self.last = map(int, self.NAME.fullmatch(os.path.basename(path)).groups())

    @cached_property
    def members(self):
        """Rank: (offset, length), from whichever directory is whole."""
        try:
            return self.read_copy(self.size)
        except Damage as damage:
            for end in range(self.size - self.PAGE, max(self.size - self.LONGEST, 0), -self.PAGE):
                with contextlib.suppress(Damage):
                    return self.read_copy(end)
            raise damage

    def place(self, rank):
        offset, length = self.members.get(rank, (0, 0))
        there = length and read_at(self.path, offset, 1) != b"\0"
        return (self.path, offset, length) if there else None

    def check(self):
        self.read_copy(self.size)
        if self.read_copy(self.size - self.length) != self.members:
            raise Damage(self.obj, "directory", "its two copies differ")

    def read_copy(self, end):
        cur = Cursor(read_at(self.path, max(end - 48, 0), 48), self.obj, "trailer")
        cur.need(self.size % self.PAGE == 0 and len(cur.data) == 48, "not at the end of a page")
        offset, length = cur.sealed().uint(8, "offset of the directory"), cur.uint(8, "length of the directory")
        check, count = cur.uint(8, "check of the directory"), cur.uint(4, "number of members", 1, 65536)
        cur.uint(2, "version", 1, 1)
        cur.uint(2, "flags", 0, 0)
        cur.need(cur.take(8) == b"VARVEBDL", "not the magic VARVEBDL")
        cur.need(0 < length <= self.LONGEST and length % self.PAGE == 0, "a directory of %d bytes", length)
        cur.need(offset + 2 * length == self.size, "two directories do not end at the file's end")
        cur.need(end in (self.size, self.size - length), "is not at the end of a directory")
        data = read_at(self.path, end - length, length - 48)
        cur = Cursor(data, self.obj, "directory")
        cur.need(xxh3_64(data) == check, "check does not match")
        self.length = length
        return self.read_entries(cur, count, offset)

    def read_entries(self, cur, count, directory):
        members, end, before = {}, 0, -1
        for _ in range(count):
            offset, length = cur.uint(8, "offset"), cur.uint(8, "length", 1)
            name = cur.str("name", 1, 63)
            match = re.fullmatch(rb"([0-9]{10})\.r(0|[1-9][0-9]*)\.layer", name)
            cur.need(match and int(match[1]) == self.epoch, "%r is no layer of the epoch", name)
            rank = int(match[2])
            cur.need(self.first <= rank <= self.last, "rank %d does not belong here", rank)
            cur.need(before < rank, "rank %d is not in order", rank)
            cur.need(offset % self.PAGE == 0 and offset >= end, "rank %d cannot begin at %d", rank, offset)
            members[rank], end, before = (offset, length), offset + length, rank
        cur.need(-(-end // self.PAGE) * self.PAGE == directory, "is not where the last member ends")
        cur.need(-(-(cur.at + 48) // self.PAGE) * self.PAGE == self.length, "is longer than it must be")
        cur.need(not any(cur.take(len(cur.data) - cur.at)), "bytes left over that are not 0")
        return members


class Lineage:
    def __init__(self, store, name):
        if not re.fullmatch(r"(?!\.)[A-Za-z0-9._-]{1,64}", name):
            raise Unable("%r is not the name of a lineage" % name)
        self.name, self.folder = name, os.path.join(store, name)
        if not os.path.isfile(os.path.join(self.folder, "lineage")):
            raise Unable("there is no lineage %s in %s" % (name, store))
        self.layers, self.commits, self.tied, self.annals = {}, {}, set(), {}

    def read(self, leaf):
        with open(os.path.join(self.folder, leaf), "rb") as file:
            return Cursor(file.read(), self.name + "/" + leaf, "record")

    @cached_property
    def id(self):
        cur = self.read("lineage")
        cur.need(len(cur.data) == 56, "is not 56 bytes long")
        cur.sealed().start(b"VARVELIN")
        cur.uint(4, "reserved field", 0, 0)
        lineage = cur.take(16).hex()
        cur.uint(8, "time")
        cur.uint(8, "reserved field", 0, 0)
        return lineage

    def leaf(self, epoch, suffix):
        return "%08d/%010d.%s" % (epoch // 100, epoch, suffix)

    @cached_property
    def leaves(self):
        folders = sorted(entry.name for entry in os.scandir(self.folder) if entry.is_dir())
        return [folder + "/" + leaf for folder in folders
                for leaf in sorted(os.listdir(os.path.join(self.folder, folder)))]

    @cached_property
    def bundles(self):
        found = [leaf for leaf in self.leaves if Bundle.NAME.fullmatch(leaf[9:])]
        bundles = [Bundle(os.path.join(self.folder, leaf), self.name + "/" + leaf)
                   for leaf in found if leaf == self.leaf(int(leaf[9:19]), leaf[20:])]
        return sorted(bundles, key=lambda bundle: (bundle.epoch, bundle.first, bundle.last))

    def place(self, epoch, rank):
        """Where the layer is: a file, or a part of one; or None."""
        path = os.path.join(self.folder, self.leaf(epoch, "r%d.layer" % rank))
        if os.path.exists(path):
            return path, 0, os.path.getsize(path)
        places, damage = [], None
        for bundle in self.bundles:
            if bundle.epoch == epoch and bundle.first <= rank <= bundle.last:
                try:
                    places.append(bundle.place(rank))
                except Damage as found:
                    damage = found
        place = next(filter(None, places), None)
        if damage and not place:
            raise damage
        return place

    @cached_property
    def epochs(self):
        found = [leaf for leaf in self.leaves if re.fullmatch(r"[0-9]{8}/[0-9]{10}\.commit", leaf)]
        return {int(leaf[9:19]) for leaf in found if leaf == self.leaf(int(leaf[9:19]), "commit")} - {0}

    def labels(self, epoch):
        """The labels of an epoch; a name that is no label is ignored."""
        found = [re.fullmatch(r"[0-9]{8}/[0-9]{10}\.([A-Za-z0-9_][A-Za-z0-9._-]{0,63})\.label", leaf) for leaf in self.leaves]
        names = [name[1] for name in found if name and name[0] == self.leaf(epoch, name[1] + ".label")]
        return [name for name in names if not name.isdigit() and name != "latest" and ".." not in name]

    def commit(self, epoch):
        if epoch not in self.commits:
            self.commits[epoch] = self.read_commit(epoch)
        return self.commits[epoch]

    def read_commit(self, epoch):
        cur = self.read(self.leaf(epoch, "commit")).sealed()
        cur.start(b"VARVECMT")
        ranks = cur.uint(4, "number of ranks", 1, MAX_RANKS)
        commit = {"lineage": cur.take(16).hex(), "epoch": cur.uint(8, "epoch", epoch, epoch)}
        commit["parent"] = cur.uint(8, "parent epoch", 0, epoch - 1)
        commit["time"] = cur.uint(8, "time")
        commit["ranks"] = []
        for number in range(ranks):
            rank = {"head": cur.take(16)}
            for key in ("length", "payload", "memory", "stored"):
                rank[key] = cur.uint(8, key)
            rank["place"] = cur.uint(8, "place", 0, number + 1)
            cur.uint(8, "reserved field", 0, 0)
            commit["ranks"].append(rank)
        cur.done()
        return commit

    def elsewhere(self, epoch, rank):
        """Is the layer in another store: is none of its place here? Of an epoch that was dropped its place is not known."""
        if self.has(epoch, rank):
            return False
        if epoch not in self.epochs:
            return any(rank["place"] for live in self.epochs for rank in self.commit(live)["ranks"])
        ranks = self.commit(epoch)["ranks"]
        place = ranks[rank]["place"] if rank < len(ranks) else 0
        return bool(place) and not any(self.has(epoch, r) for r in range(len(ranks)) if ranks[r]["place"] == place)

    def has(self, epoch, rank):
        return self.leaf(epoch, "r%d.layer" % rank) in self.leaves

    def open(self, epoch, rank):
        """The layer, not yet tied to its commit."""
        if (epoch, rank) not in self.layers:
            leaf = self.leaf(epoch, "r%d.layer" % rank)
            self.layers[epoch, rank] = Layer(self.place(epoch, rank), self.name + "/" + leaf, epoch, rank)
            self.layers[epoch, rank].older = lambda other: self.layer(other, rank)
        return self.layers[epoch, rank]

    def layer(self, epoch, rank):
        layer = self.open(epoch, rank)
        if layer not in self.tied and epoch in self.epochs:
            self.tie(layer, self.commit(epoch))
        if layer not in self.tied:
            self.meet(layer)
        self.tied.add(layer)
        return layer

    def meet(self, layer):
        """What layers say of an epoch is the same, or they are of two copies of the lineage that both went on."""
        cur = Cursor(b"", layer.obj, "ERAS")
        for first, last, token in layer.eras:
            for other, (end, was) in self.annals.items():
                cur.need((first, token) == (other, was) or end < first or last < other, "epoch %d belongs to two eras", max(first, other))
            self.annals[first] = (max(last, self.annals.get(first, (0, 0))[0]), token)

    def tie(self, layer, commit):
        cur = Cursor(b"", layer.obj, "commit")
        cur.need(layer.rank < len(commit["ranks"]), "the commit has no such rank")
        rank = commit["ranks"][layer.rank]
        cur.need(layer.head_digest == rank["head"], "the head has another digest than in the commit")
        cur.need(layer.ident["lineage"] == commit["lineage"], "lineage differs from the commit's")
        cur.need(layer.ident["parent"] in (0, commit["parent"]), "parent differs from the commit's")
        cur.need(layer.ident["ranks"] == len(commit["ranks"]), "number of ranks differs from the commit's")
        cur.need(layer.ident["payload"] == rank["payload"], "payload length differs from the commit's")
        cur.need(layer.memory == rank["memory"], "bytes in memory differ from the commit's")
        stored = layer.stats.get(b"bytes.stored", rank["stored"])
        cur.need(stored == rank["stored"], "bytes.stored differs from the commit's")
        cur.need(layer.size <= rank["length"], "the object is longer than when it was committed")
        cur.need(all(index < len(layer.regions) for index in layer.parts), "a part of no region")
        if layer.size == rank["length"]:
            layer.check_as_written(rank["stored"])

    def parent(self, layer):
        parent = self.layer(layer.ident["parent"], layer.rank)
        if parent.ident["depth"] + 1 != layer.ident["depth"]:
            raise Damage(layer.obj, "IDENT", "number of parents is not one more than the parent's")
        return parent

    def resolve(self, layer, index):
        """The whole region as (start, length, (epoch, rank) or None, position), resolved through the parents."""
        if index not in layer.maps:
            region, out, end = layer.regions[index], [], 0
            inherited = self.inherited(layer, region) if region["parent"] else ()
            starts = [run[0] for run in inherited]
            for start, length, source, pos in layer.runs[index] + [(region["length"], 0, 0, 0)]:
                if end < start:
                    out += self.clip(layer, region, inherited, starts, end, start)
                out.append((start, length, layer.sources[source - 1] if source else None, pos))
                end = start + length
            layer.maps[index] = out[:-1]
        return layer.maps[index]

    def inherited(self, layer, region):
        parent = self.parent(layer)
        if region["parent"] > len(parent.regions):
            raise Damage(layer.obj, "REGIONS", "%r continues a region that the parent does not have" % region["name"])
        return self.resolve(parent, region["parent"] - 1)

    def clip(self, layer, region, runs, starts, begin, end):
        if not runs or end > runs[-1][0] + runs[-1][1]:
            raise Damage(layer.obj, "RUNS", "%r has bytes without a run after the parent's end" % region["name"])
        at = bisect_right(starts, begin) - 1
        while begin < end:
            start, length, source, pos = runs[at]
            n = min(end, start + length) - begin
            yield begin, n, source, pos + begin - start if source else 0
            begin, at = begin + n, at + 1


# ---- check ----


class Checker:
    """Works through epochs and what they depend on; every problem is told once."""

    def __init__(self, lineage):
        self.lineage, self.problems, self.id = lineage, {}, None

    @contextlib.contextmanager
    def telling(self):
        try:
            yield
        except Damage as damage:
            self.problems[str(damage)] = None

    def run(self, epoch=None):
        with self.telling():
            self.id = self.lineage.id
        todo, done = [epoch] if epoch else sorted(self.lineage.epochs), set()
        while todo:
            at = todo.pop(0)
            if at not in done:
                done.add(at)
                todo += sorted(self.check_epoch(at) - done)
        if epoch is None:
            self.check_names()
            for bundle in self.lineage.bundles:
                with self.telling():
                    bundle.check()
            for leaf in sorted(os.listdir(self.lineage.folder)):
                if re.fullmatch(r"index\.r(0|[1-9][0-9]*)", leaf):
                    with self.telling():
                        self.check_index(self.lineage.read(leaf), int(leaf[7:]))
        return list(self.problems)

    def check_names(self):
        for leaf in self.lineage.leaves:
            match = re.fullmatch(r".*/([0-9]+)\.(commit|r[0-9]+\.layer|r[0-9]+-[0-9]+\.bundle)", leaf)
            with self.telling():
                if match and (not int(match[1]) or leaf != self.lineage.leaf(int(match[1]), match[2])):
                    raise Damage("%s/%s" % (self.lineage.name, leaf), "file", "is not where its epoch belongs")

    def check_epoch(self, epoch):
        """Checks a committed epoch; returns the committed epochs it depends on."""
        ranks, needed = [], set()
        with self.telling():
            commit = self.lineage.commit(epoch)
            ranks = commit["ranks"]
            self.check_id(commit["lineage"], self.lineage.name + "/" + self.lineage.leaf(epoch, "commit"))
        for rank in range(len(ranks)):
            if self.lineage.elsewhere(epoch, rank):
                continue
            self.check_layer(epoch, rank)
            with self.telling():
                self.check_regions(self.lineage.layer(epoch, rank), needed)
        for other, rank in sorted(needed):
            if other not in self.lineage.epochs:  # dropped, but live epochs still need its layers
                self.check_layer(other, rank)
        return {other for other, _ in needed if other in self.lineage.epochs}

    def check_id(self, lineage, obj):
        if self.id and lineage != self.id:
            raise Damage(obj, "record", "is of another lineage")

    def check_layer(self, epoch, rank):
        """What a layer says by itself."""
        with self.telling():
            layer = self.lineage.open(epoch, rank)
            for kind, _, _, _, _ in layer.entries:
                with self.telling():
                    name = {**KINDS, **MORE_KINDS}.get(kind)
                    getattr(layer, name.lower()) if name else layer.section(kind)
            with self.telling():
                self.check_id(layer.ident["lineage"], layer.obj)
            for number in range(len(layer.blocks)):
                with self.telling():
                    layer.block(number)
            layer.check_chunks()

    def check_regions(self, layer, needed):
        """That every byte of every region is somewhere; adds the layers it took to needed."""
        for index in range(len(layer.regions)):
            for _, length, source, pos in self.lineage.resolve(layer, index):
                if source and not self.lineage.elsewhere(*source):
                    needed.add(source)
                    for _ in self.lineage.layer(*source).pieces(pos, length):
                        pass
        while layer.ident["parent"]:
            layer = self.lineage.parent(layer)
            needed.add((layer.epoch, layer.rank))

    def check_index(self, cur, rank):
        cur.sealed().start(b"VARVEIDX")
        kind = cur.uint(1, "digest kind", 1, 2)
        cur.uint(3, "reserved field", 0, 0)
        self.check_id(cur.take(16).hex(), cur.obj)
        newest = cur.uint(8, "newest epoch", 0, MAX_EPOCH)
        before = 0
        for _ in range(cur.var("number of sources", 0, 2**24)):
            before = epoch = cur.var("epoch of a source", before + 1, newest)
            tie, chunks = cur.take(8), self.index_source(cur)
            if self.lineage.place(epoch, rank):
                layer = self.lineage.layer(epoch, rank)
                cur.need(layer.ident["digest"] == kind, "of another kind than in the layer")
                cur.need(tie == struct.pack("<Q", layer.entries[6][4]), "of another version of the layer")
                cur.need(chunks <= list_chunks(layer.digests), "chunks that the layer does not have")
        cur.done()

    @staticmethod
    def index_source(cur):
        """The chunks of one source: positions as gaps, then digests."""
        count, pos, places = cur.var("number of chunks", 0, 2**32), 0, []
        for _ in range(count):
            pos += cur.var("gap of a position")
            places.append(pos)
        return {(pos, cur.take(16)) for pos in places}


def list_chunks(groups):
    return {(start + n * size, digest) for start, size, digests in groups for n, digest in enumerate(digests)}


# ---- commands ----


def find_epoch(store, where):
    name, at, epoch = where.partition("@")
    lineage = Lineage(store, name)
    if not at and not lineage.epochs:
        raise Unable("%s has no committed epoch" % name)
    if at and not (epoch.isascii() and epoch.isdigit() and int(epoch) in lineage.epochs):
        raise Unable("%s has no committed epoch %s" % (name, epoch))
    return lineage, int(epoch) if at else max(lineage.epochs)


def find_layer(args):
    lineage, epoch = find_epoch(args.store, args.lineage)
    if args.rank >= len(lineage.commit(epoch)["ranks"]) or args.rank < 0:
        raise Unable("epoch %d has no rank %d" % (epoch, args.rank))
    if lineage.commit(epoch)["lineage"] != lineage.id:
        raise Damage(args.lineage, "commit", "is of another lineage")
    return lineage, lineage.layer(epoch, args.rank)


# ---- parity ----


def gf_product(a, b):
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a, b = a << 1 ^ (0x11D if a & 128 else 0), b >> 1
    return product


@lru_cache(None)
def gf_inverse(a):
    return next(b for b in range(1, 256) if gf_product(a, b) == 1)


@lru_cache(None)
def gf_row(factor):
    return bytes(gf_product(factor, byte) for byte in range(256))


class Parity:
    """A parity object: its head, and the layout of the stripes."""

    NAME = re.compile(r"([0-9]{10})\.r(0|[1-9][0-9]*)-of-([1-9][0-9]*)\.parity")

    def __init__(self, lineage, leaf):
        self.lineage, self.cur = lineage, lineage.read(leaf)
        cur = self.cur
        cur.section = "parity"
        epoch, rank, ranks = map(int, self.NAME.fullmatch(leaf[9:]).groups())
        cur.start(b"VARVEPAR")
        self.k, self.m = cur.uint(1, "K", 1, 63), cur.uint(1, "M", 1, 16)
        cur.need(self.k + self.m <= 64, "K + M is above 64")
        cur.uint(2, "reserved field", 0, 0)
        cur.need(cur.take(16).hex() == lineage.id, "is of another lineage")
        cur.uint(8, "epoch", epoch, epoch)
        cur.uint(4, "ranks", ranks, ranks)
        cur.uint(4, "rank", rank, rank)
        self.block, count, end = cur.uint(4, "block"), cur.uint(4, "layers", 2, min(65536, ranks)), cur.uint(4, "length of the head")
        cur.uint(4, "reserved field", 0, 0)
        self.epoch, self.since, self.layers = epoch, cur.uint(8, "since", 0, epoch), []
        for i in range(count):
            one = dict(rank=cur.uint(4, "rank", self.layers[-1]["rank"] + 1 if i else 0, ranks - 1), node=cur.uint(4, "storage node"))
            one["domain"] = cur.uint(4, "domain", 0, i)
            one["length"], one["digest"], one["name"] = cur.uint(8, "length", 1), cur.take(16), cur.str("name", 1, 63)
            cur.need(one["domain"] == i or self.layers[one["domain"]]["domain"] == one["domain"], "a domain that does not begin there")
            self.layers.append(one)
        cur.need(cur.at + 8 == end and cur.uint(8, "check") == xxh3_64(cur.data[:end - 8]), "check of the head does not match")
        self.own = [one["rank"] for one in self.layers].index(rank)
        longest, block = max(one["length"] for one in self.layers), 4096
        while block < 2**20 and longest > 1024 * block:
            block *= 2
        cur.need(block == self.block, "blocks are not of %d bytes", block)
        self.stripes = list(self.plan())

    def plan(self):
        left = [-(-one["length"] // self.block) for one in self.layers]
        cut, domains, stored, at = list(left), sorted({one["domain"] for one in self.layers}), [0] * len(left), [0] * len(left)
        inside = {d: [i for i, one in enumerate(self.layers) if one["domain"] == d] for d in domains}
        self.cur.need(len(domains) >= self.k + self.m, "has fewer domains than a stripe has blocks")
        while any(left):
            free, data, parity = list(domains), [], []
            while len(data) < self.k:
                best = max((d for d in free), key=lambda d: sum(left[i] for i in inside[d]), default=None)
                if best is None or not any(left[i] for i in inside[best]):
                    break
                member = max(inside[best], key=lambda i: left[i])
                number = cut[member] - left[member]
                data.append((member, number, min(self.block, self.layers[member]["length"] - number * self.block)))
                left[member] -= 1
                free.remove(best)
            for _ in range(self.m):
                best = min(free, key=lambda d: sum(stored[i] for i in inside[d]))
                member = min(inside[best], key=lambda i: stored[i])
                parity.append((member, at[member], max(length for _, _, length in data)))
                stored[member] += 1
                at[member] += parity[-1][2]
                free.remove(best)
            yield data, parity

    def factor(self, p, i):
        return 1 if self.m == 1 else gf_inverse((self.k + p) ^ i)

    def check(self):
        """The end, and each block against the layers, as far as they are in this store."""
        cur, start = self.cur, self.cur.at
        own = [(at, length, p, data) for data, parity in self.stripes for p, (member, at, length) in enumerate(parity) if member == self.own]
        blocks = [cur.data[start + at:start + at + length] for at, length, _, _ in own]
        cur.take(sum(map(len, blocks)))
        begin = cur.at
        cur.need([cur.uint(8, "check") for _ in blocks] == list(map(xxh3_64, blocks)), "check of a block does not match")
        mine = -(-self.layers[self.own]["length"] // self.block)
        count = cur.uint(8, "number of checks")
        cur.need(count in (0, mine), "%d checks for %d blocks", count, mine)
        checks = [cur.uint(8, "check") for _ in range(count)]
        digests = [cur.take(16) for _ in self.layers]
        cur.need(xxh3_64(cur.data[begin:cur.at]) == cur.uint(8, "check"), "check of the end does not match")
        cur.done()
        layers = {}
        for i, one in enumerate(self.layers):
            if self.lineage.has(self.epoch, one["rank"]):
                layers[i] = self.lineage.read(self.lineage.leaf(self.epoch, "r%d.layer" % one["rank"])).data
                cur.need(len(layers[i]) == one["length"], "the layer of rank %d has another length", one["rank"])
                found = [xxh3_64(layers[i][at:at + self.block]) for at in range(0, one["length"], self.block)]
                cur.need(i != self.own or not checks or checks == found, "checks of the layer do not match")
                digest = xxh3_128_canonical(b"".join(value.to_bytes(8, "little") for value in found))
                cur.need(digest == digests[i], "the digest of the layer of rank %d does not match", one["rank"])
        for (_, length, p, data), block in zip(own, blocks):
            if all(member in layers for member, _, _ in data):
                total = 0
                for i, (member, number, size) in enumerate(data):
                    piece = layers[member][number * self.block:][:size].translate(gf_row(self.factor(p, i)))
                    total ^= int.from_bytes(piece, "little")
                cur.need(total.to_bytes(length, "little") == block, "a block is not the parity of its layers")


def check_parity(lineage):
    """One line per problem with the parity of a lineage."""
    for leaf in lineage.leaves:
        if Parity.NAME.fullmatch(leaf[9:]):
            try:
                Parity(lineage, leaf).check()
            except Damage as damage:
                yield str(damage)


def check(store, where=None):
    if not os.path.isdir(store):
        raise Unable("%s is not a folder" % store)
    if where and "@" in where:
        lineage, epoch = find_epoch(store, where)
        return Checker(lineage).run(epoch)
    marked = (name for name in sorted(os.listdir(store)) if os.path.isfile(os.path.join(store, name, "lineage")))
    names = [where] if where else list(marked)
    return [problem for name in names for lineage in [Lineage(store, name)]
            for problem in itertools.chain(Checker(lineage).run(), check_parity(lineage))]


def extract(lineage, layer, name):
    """Yields the bytes of a region in pieces."""
    names = [region["name"] for region in layer.regions]
    if name not in names:
        raise Unable("no region %s; there are: %s" % (text(name), ", ".join(map(text, names))))
    for _, length, source, pos in lineage.resolve(layer, names.index(name)):
        for at in range(0, length, 2**20):
            n = min(2**20, length - at)
            yield lineage.layer(*source).payload(pos + at, n) if source else bytes(n)


def extract_global(lineage, epoch, name):
    """An array, a list or a shared region of all ranks together, as one bytes object."""
    layers = [lineage.layer(epoch, rank) for rank in range(len(lineage.commit(epoch)["ranks"]))]
    found = [(layer, layer.regions[index], part) for layer in layers for index, part in layer.parts.items()
             if (layer.regions[index]["name"].split(b"#")[0] if part[0] == "slab" else layer.regions[index]["name"]) == name]
    if not found:
        raise Unable("epoch %d has nothing of all ranks with the name %s" % (epoch, text(name)))
    layer, region, part = found[0]
    if part[0] == "slab":
        return join_slabs(lineage, found, element_size(region))
    if part[0] == "shared":
        return b"".join(extract(lineage, layer, name))
    return b"".join(piece for layer, region, part in found for piece in extract(lineage, layer, region["name"]))


def join_slabs(lineage, found, size):
    layer, region, (_, dims) = found[0]
    lengths, filled = [dim[0] for dim in dims], 0
    out = bytearray(math.prod(lengths) * size)
    for layer, region, (_, dims) in found:
        cur = Cursor(b"", layer.obj, "PARTS")
        cur.need([dim[0] for dim in dims] == lengths, "%r is a part of an array of other lengths", region["name"])
        data = b"".join(extract(lineage, layer, region["name"]))
        for index in itertools.product(*(range(count) for _, _, count, _ in dims[:-1])):
            to = at = 0
            for n, (length, start, count, ghost) in enumerate(dims):
                here = index[n] if n + 1 < len(dims) else 0
                to = to * length + start + here
                at = at * (count + 2 * ghost) + ghost + here
            row = dims[-1][2] * size
            out[to * size:to * size + row] = data[at * size:at * size + row]
            filled += row
    Cursor(b"", found[0][0].obj, "PARTS").need(filled == len(out), "the ranks have %d bytes of an array of %d", filled, len(out))
    return bytes(out)


def text(name):
    return name.decode("utf-8", "surrogateescape")


def show(lineage, layer):
    commit = dict(lineage.commit(layer.epoch))
    commit["ranks"] = [dict(rank, head=rank["head"].hex()) for rank in commit["ranks"]]
    return {
        "ident": layer.ident,
        "regions": [dict(region, name=text(region["name"])) for region in layer.regions],
        "sources": layer.sources,
        "runs": layer.runs,
        "stats": {text(name): value for name, value in layer.stats.items()},
        "blocks": [dict(block, check="%016x" % block["check"]) for block in layer.blocks],
        "digests": [{"position": start, "chunk": size, "digests": [digest.hex() for digest in digests]}
                    for start, size, digests in layer.digests],
        "copies": layer.copies,
        "parts": {text(layer.regions[index]["name"]): part for index, part in layer.parts.items()},
        "eras": [(first, last, "%016x" % token) for first, last, token in layer.eras],
        "commit": commit,
        "labels": lineage.labels(layer.epoch),
    }


# ---- self-test ----

VECTORS = (  # length, XXH3-64, XXH3-128 of the bytes (i * 131 + 7) & 255
    (0, 0x2d06800538d394c2, 0x99aa06d3014798d86001c324468d497f),
    (1, 0x4c5cca45d0f4811f, 0x495b62073ef70ca44c5cca45d0f4811f),
    (2, 0x29c60963cbfa4e6e, 0xf1b5eec902a1eb5e29c60963cbfa4e6e),
    (3, 0x6e3e2670e61106ac, 0x390cdc5b4a895dd76e3e2670e61106ac),
    (4, 0x5c4c63133443d03f, 0xaa6e2f274640a3f43d668af6f2a44d77),
    (8, 0xf9fd4dd0b04d78f5, 0x6a86a3bda6af4e3d61ddbe7f31a6100d),
    (9, 0x7c20df9712c26edf, 0x664c7ca18afd62558c7b67fd458a936b),
    (16, 0x86abf6baccea0858, 0x7f9a218b0425449ae2ce54a7c19c730d),
    (17, 0xb58bf5dc5022d071, 0x66fc23f6439dbd778d96ef110fcdebb4),
    (32, 0xe3712ed84c04a66e, 0x49a11ee743d6d342fd357cf6cb2dda18),
    (33, 0xa4dee99b093e1f73, 0x7228d9284a8116f6f8994653f4bfe6da),
    (65, 0x97c6bf83217e5ec9, 0x9397df27b7a9871385326f4078a61329),
    (128, 0x10d17f72c0ccba41, 0xaec730751478556cff361dec1385710a),
    (129, 0x1648bdc3db49d1a2, 0x98cd36ccbb5579264545b3a09738e31a),
    (160, 0x655c8dc33b4b4c4a, 0x832af93acbf14d0b10963bc4f63e0de8),
    (240, 0xb6cfaf343fab81e6, 0x5293e17bf553903d3f2c53e72293711f),
    (241, 0x956cae592c67279e, 0xb53840fe3fedf161956cae592c67279e),
    (512, 0xa0e9790eb93990d7, 0x7509d702d4519576a0e9790eb93990d7),
    (1024, 0x70bd377d9574f4bb, 0xf69630613f24324d70bd377d9574f4bb),
    (1025, 0x66c4487c41e127a7, 0x621af7b8277effa466c4487c41e127a7),
    (1088, 0xf43dc77e28a9acbc, 0x0b03b0c7bdc5b078f43dc77e28a9acbc),
    (3000, 0x33a08283bba03e0c, 0x90cabc4f5f59603233a08283bba03e0c))

TEST_ID = b"lineage id 16 by"


def pattern(length, first=0):
    return bytes((i * 131 + 7) & 255 for i in range(first, first + length))


def put_var(*values):
    out = bytearray()
    for value in values:
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        out.append(value)
    return bytes(out)


def put_svar(value):
    return put_var(value << 1 ^ value >> 63)


def seal(data):
    return data + struct.pack("<Q", xxh3_64(data))


def encode(codec, data):
    out = ctypes.create_string_buffer(len(data) + 1024)
    size = ctypes.c_size_t
    try:
        if codec == 1:
            got = library("liblz4.so.1").LZ4_compress_default(data, out, len(data), len(out))
        elif codec == 2:
            got = library("libzstd.so.1").ZSTD_compress(out, size(len(out)), data, size(len(data)), 1)
        elif codec == 3:
            library("libzstd.so.1")
            return codec, encode_planes(data, 4)
        else:
            return 0, data
        return codec, out.raw[:got]
    except Unable as unable:
        print("self-test: %s: left out" % unable)
        return 0, data


def encode_planes(data, width):
    count = len(data) // width
    planes = [data[k:count * width:width] for k in range(width)]
    planes = [p[:1] if p == p[:1] * count else min(p, encode(2, p)[1], key=len) for p in planes]
    return bytes((width,)) + put_var(*map(len, planes)) + b"".join(planes) + data[count * width:]


def put_coded(data, more, behind):
    return put_var(len(data) + more, len(encode(2, data)[1])) + encode(2, data)[1] + behind


def put_runs(regions):
    out, last = b"", {}
    for runs in regions:
        out, end = out + put_var(len(runs)), 0
        for start, length, source, pos in runs:
            out += put_var(start - end, length, source) + (put_svar(pos - last.get(source, 0)) if source else b"")
            end, last[source] = start + length, pos + length
    return out


def put_digests(groups, payload):
    out, tail, end = put_var(len(groups)), b"", 0
    for start, size, count in groups:
        out, end = out + put_var(start - end, size, count), start + size * count
        tail += b"".join(xxh3_128_canonical(payload[at:at + size]) for at in range(start, end, size))
    return out + tail


def put_layer(spec):
    """A layer object and its entry in the commit."""
    regions = b"".join(
        put_var(len(name)) + name + put_var(parent, length, 32) + bytes((kind, len(shape))) + put_var(*shape)
        for name, parent, length, kind, shape in spec["regions"])
    memory, payload = sum(region[2] for region in spec["regions"]), spec["payload"]
    data, blocks, last = b"", put_var(len(spec["blocks"])), 0
    for codec, extents in spec["blocks"]:
        plain = b"".join(payload[start:start + length] for start, length in extents)
        codec, stored = encode(codec, plain)
        ends = [last] + [start + length for start, length in extents]
        last = ends[-1]
        blocks += put_var(codec, len(plain), len(stored)) + struct.pack("<Q", xxh3_64(stored)) + put_var(len(extents))
        blocks += b"".join(put_var(start - end, length) for (start, length), end in zip(extents, ends))
        data += stored
    sections = [
        struct.pack("<16sQQIIQQBB", TEST_ID, spec["epoch"], spec["parent"], 0, 1, 5, len(payload), 1, spec["depth"]),
        put_var(len(spec["regions"])) + regions,
        put_var(len(spec["sources"])) + b"".join(put_var(epoch, 0) for epoch in spec["sources"]),
        put_runs(spec["runs"]),
        put_var(1) + put_var(12) + b"bytes.memory" + struct.pack("<Q", memory),
        blocks,
        put_digests(spec["digests"], spec.get("digest_of", payload))]
    coded = spec.get("coded", {}) if encode(2, b"")[0] else {}
    sections = [put_coded(section, *coded[kind]) if kind in coded else section for kind, section in enumerate(sections, 1)]
    out = b"VARVELYR" + struct.pack("<HH", 1, 0)
    out += struct.pack("<I", xxh3_64(out) & M32) + data
    directory = b""
    for kind, section in enumerate(sections, 1):
        directory += struct.pack("<IIQQQ", kind, (kind <= 5) | 4 * (kind in coded), len(out), len(section), xxh3_64(section))
        out += section
    trailer = struct.pack("<QIIQQ", len(out), 7, 0, len(out) + len(directory) + 48, xxh3_64(directory)) + b"VARVEEND"
    out += directory + seal(trailer)
    head = xxh3_128_canonical(b"".join(sections[:5]))
    return out, head + struct.pack("<6Q", len(out), len(payload), memory, len(data), 0, 0)


def put_index(spec):
    payload = spec.get("digest_of", spec["payload"])
    chunks = [(at, size) for start, size, count in spec["digests"] for at in range(start, start + size * count, size)]
    gaps = [at - before for (at, _), before in zip(chunks, [0] + [at for at, _ in chunks])]
    digests = b"".join(xxh3_128_canonical(payload[at:at + size]) for at, size in chunks)
    tie = struct.pack("<Q", xxh3_64(put_digests(spec["digests"], payload)))
    return put_var(1, spec["epoch"]) + tie + put_var(len(chunks), *gaps) + digests


def put_store(folder, specs):
    os.makedirs(os.path.join(folder, "run", "00000000"))
    stamp = struct.pack("<HH", 1, 0)
    files = {"lineage": b"VARVELIN" + stamp + struct.pack("<I16sQQ", 0, TEST_ID, 5, 0)}
    for spec in specs:
        name = "00000000/%010d." % spec["epoch"]
        layer, entry = put_layer(spec)
        record = struct.pack("<I16sQQQ", 1, TEST_ID, spec["epoch"], spec["parent"], 5)
        files[name + "commit"] = b"VARVECMT" + stamp + record + entry
        put_file(folder, name + "r0.layer", layer)
    files["index.r0"] = b"VARVEIDX" + stamp + struct.pack("<B3x16sQ", 1, TEST_ID, 2) + put_index(specs[0])
    for name, data in files.items():
        put_file(folder, name, seal(data))


def put_file(folder, leaf, data):
    with open(os.path.join(folder, "run", leaf), "wb") as file:
        file.write(data)


def tiny_specs():
    """A keyframe, and an epoch that inherits, refers, zeroes and adds, with coded sections."""
    first = {"epoch": 1, "parent": 0, "depth": 0, "sources": [1], "payload": pattern(292),
             "regions": [(b"a", 0, 192, 10, [3, 8]), (b"b", 0, 300, 0, [])],
             "runs": [[(0, 192, 1, 0)], [(0, 100, 1, 192), (100, 200, 0, 0)]],
             "blocks": [(2, [(0, 100)]), (3, [(100, 192)])], "digests": [(0, 64, 3), (192, 50, 2)]}
    second = {"epoch": 2, "parent": 1, "depth": 1, "sources": [2, 1], "payload": pattern(20, 999),
              "regions": [(b"b", 2, 320, 0, []), (b"a2", 1, 192, 10, [192 // 8]), (b"c", 0, 64, 0, [])],
              "runs": [[(40, 20, 1, 0), (60, 20, 0, 0), (300, 20, 2, 10)], [], [(0, 64, 2, 64)]],
              "blocks": [(1, [(0, 20)])], "digests": [(0, 20, 1)], "coded": {4: (0, b""), 6: (0, bytes(2))}}
    one = pattern(292)
    b = one[192:232] + pattern(20, 999) + bytes(20) + one[272:292] + bytes(200) + one[10:30]
    return [first, second], {b"a2": one[:192], b"b": b, b"c": one[64:128]}


FAULTS = (  # what is told, and how to make it: epoch, key, value
    ("could be one", 0, "runs", [[(0, 100, 1, 0), (100, 92, 1, 100)], [(0, 100, 1, 192), (100, 200, 0, 0)]]),
    ("could be one", 0, "runs", [[(0, 192, 1, 0)], [(0, 100, 1, 192), (100, 9, 0, 0), (109, 191, 0, 0)]]),
    ("do not reach", 0, "runs", [[(0, 192, 1, 0)], [(0, 100, 1, 192)]]),
    ("a gap in", 0, "runs", [[(1, 191, 1, 0)], [(0, 300, 0, 0)]]),
    ("ends after the end", 0, "runs", [[(0, 193, 1, 0)], [(0, 300, 0, 0)]]),
    ("is needed and not there", 1, "runs", [[(300, 20, 2, 280)], [], [(0, 64, 0, 0)]]),
    ("after the parent's end", 1, "runs", [[(301, 19, 0, 0)], [], [(0, 64, 0, 0)]]),
    ("another content", 0, "digest_of", pattern(292, 1)),
    ("one more than the parent's", 1, "depth", 2),
    ("not the whole payload", 0, "blocks", [(0, [(0, 291)])]),
    ("not as written", 0, "blocks", [(0, [(0, 100), (100, 192)])]),
    ("does not make its length", 0, "regions", [(b"a", 0, 192, 10, [3, 9]), (b"b", 0, 300, 0, [])]),
    ("two regions of one name", 0, "regions", [(b"b", 0, 192, 0, []), (b"b", 0, 300, 0, [])]),
    ("the parent does not have", 1, "regions", [(b"b", 3, 320, 0, []), (b"a", 1, 192, 0, []), (b"c", 0, 64, 0, [])]),
    ("listed twice", 1, "sources", [1, 1]),
    ("epoch of a source 2 is not", 0, "sources", [2]),
    ("does not decode", 1, "coded", {4: (1, b"")}),
    ("length after decoding", 1, "coded", {4: (2**17, b"")}),
    ("something behind the frame", 1, "coded", {6: (0, b"\0\1")}),
    ("must not be coded", 1, "coded", {7: (0, b"")}),
    ("must not be coded", 1, "coded", {1: (0, b"")}))


def test_numbers():
    for length, want64, want128 in VECTORS:
        assert pure_xxh3_64(pattern(length)) == want64, "XXH3-64 of %d bytes" % length
        assert pure_xxh3_128(pattern(length)) == want128, "XXH3-128 of %d bytes" % length
    for value in (0, 1, 127, 128, 2**32, 2**63, M64):
        assert Cursor(put_var(value), "", "").var("") == value
    for value in (0, -1, 1, -64, 64, 2**63 - 1, -2**63):
        assert Cursor(put_svar(value), "", "").svar("") == value
    for bad in (b"", b"\x80", b"\x80\x00", b"\xff\x80\x00", b"\xff" * 9 + b"\x02", b"\xff" * 10 + b"\x01"):
        with contextlib.suppress(Damage):
            assert False, "%r was read as %d" % (bad, Cursor(bad, "", "").var(""))


def test_planes():
    try:
        library("libzstd.so.1")
    except Unable:
        return
    numbers = b"".join(struct.pack("<HBB", n * n % 65536, n // 7 % 256, 9) for n in range(600))
    for width in (2, 4, 8, 16):
        for data in (numbers, numbers + b"tail of"[:width - 1], bytes(100), numbers[:width], numbers[:-1]):
            stored = encode_planes(data, width)
            assert decode_planes(stored, len(data)) == data, "%d bytes, width %d" % (len(data), width)
            assert not any(decode_planes(bad, length) for bad, length in (
                (stored, len(data) - 1), (stored, len(data) + 1), (stored[:-1], len(data)), (stored + b"\0", len(data)),
                (b"\3" + stored[1:], len(data)), (stored[:1] + b"\0" + stored[2:], len(data)), (b"", len(data))))


def encode_typed(data, recipe, width, residuals=None):
    """With residuals in place of the numbers of the data, whose tail is what they do not cover."""
    count = len(data) // width
    body = data[:count * width] if residuals is None else residuals
    planes = [body[k::width] for k in range(width)]
    planes = [p[:1] if p == p[:1] * count else p for p in planes]
    return recipe + put_var(*map(len, planes)) + b"".join(planes) + data[count * width:]


def test_trail():
    """Words by hand: the second three follow the first at a distance of 3, and one of them is told by each code."""
    words = [1000, 5, 6, 1000, 5, 7, 1001, 5, 99, 99, 1000]
    codes = bytes((10, 10, 10, 0, 0, 9, 1, 0, 10, 8, 10))
    data = struct.pack("<11Q", *words) + b"end"
    close, new = b"\2\0\0", struct.pack("<5Q", 1000, 5, 6, 99, 1000)
    def block(*streams):
        return b"\0" + b"".join(put_var(len(s), len(s)) + s for s in streams[:4]) + b"\1" + put_var(len(streams[4]), len(streams[4])) + streams[4]
    good = block(codes, b"\3", b"\3", close, new) + b"end"
    assert decode_trail(good, 91) == data
    for bad in (good + b"x", good[:-1], b"\3" + good[1:], block(codes, b"\4", b"\3", close, new) + b"end",
                block(codes, b"\3", b"\4", close, new) + b"end", block(codes, b"\3", b"", close, new) + b"end",
                block(codes, b"\3", b"\3", b"", new) + b"end", block(codes, b"\3", b"\3", close, new[8:]) + b"end",
                block(codes[:-1] + b"\x0b", b"\3", b"\3", close, new) + b"end", block(b"\x08" + codes[1:], b"\3", b"\3", close, new) + b"end"):
        assert decode_trail(bad, 91) is None


def test_typed():
    """Recipes and residuals by hand; what the library writes is in tests/codec/golden."""
    numbers = struct.pack("<5H", 7, 8, 6, 6, 65535) + b"t"
    plain = encode_typed(numbers, bytes((1, 0, 1, 0)), 2)
    assert decode_typed(plain, 11) == numbers
    zigzag = struct.pack("<5H", 14, 2, 3, 0, 13)
    delta = encode_typed(numbers, bytes((1 | 1 << 3, 1 << 2, 1, 0, 1)), 2, zigzag)
    assert decode_typed(delta, 11) == numbers
    swapped = encode_typed(numbers, bytes((1 | 1 << 3 | 1 << 6, 1 << 2, 1, 0, 1)), 2, zigzag)
    assert decode_typed(swapped, 11) == struct.pack(">5H", 7, 8, 6, 6, 65535) + b"t"
    reals = struct.pack("<4d", 1.5, 1.5, float("inf"), -0.0)
    missed = [0x3FF8000000000000 * 2, 0, (0x7FF0000000000000 - 0x3FF8000000000000) * 2, 0x7FF0000000000001 * 2 - 1]
    real = encode_typed(reals, bytes((3 | 2 << 3 | 1 << 5, 1 << 2, 1, 0, 1)), 8, struct.pack("<4Q", *missed))
    assert decode_typed(real, 32) == reals
    for good, length in ((plain, 11), (delta, 11), (swapped, 11), (real, 32)):
        assert not any(decode_typed(bad, n) for bad, n in (
            (good[:-1], length), (good + b"\0", length), (good, length - 1), (good, length + 1), (good, 0), (b"", length),
            (bytes((good[0] | 128,)) + good[1:], length), (good[:1] + bytes((good[1] | 32,)) + good[2:], length),
            (good[:3] + b"\x09" + good[4:], length), (good[:1] + bytes((good[1] | 3,)) + good[2:], length)))


def test_contents(folder, contents):
    assert check(folder) == check(folder, "run@2") == [], check(folder)
    lineage, epoch = find_epoch(folder, "run")
    layer = lineage.layer(epoch, 0)
    for name, want in contents.items():
        assert b"".join(extract(lineage, layer, name)) == want, name
    assert json.loads(json.dumps(show(lineage, layer)))["runs"][2] == [[0, 64, 2, 64]]


def test_flips(folder):
    count = 0
    for base, _, leaves in os.walk(folder):
        for path in (os.path.join(base, leaf) for leaf in leaves):
            with open(path, "r+b", buffering=0) as file:
                for at, byte in enumerate(file.read()):
                    os.pwrite(file.fileno(), bytes((byte ^ 1 << at % 8,)), at)
                    assert check(folder), "byte %d of %s was flipped and nothing found" % (at, path)
                    os.pwrite(file.fileno(), bytes((byte,)), at)
                    count += 1
    assert check(folder) == []
    return count


def test_gc(folder, specs, contents):
    """Epoch 1 is dropped: its layer stays, with only what epoch 2 needs."""
    less = dict(specs[0], blocks=[(2, [(0, 232), (272, 20)])], digests=[(0, 64, 3)])
    put_file(folder, "00000000/0000000001.r0.layer", put_layer(less)[0])
    stale = check(folder)
    assert any("index.r0" in line for line in stale) and any("is needed and not there" in line for line in stale), stale
    os.unlink(os.path.join(folder, "run", "index.r0"))
    os.unlink(os.path.join(folder, "run", "00000000", "0000000001.commit"))
    test_contents(folder, contents)


def put_bundle(folder, epoch, last, members, flip=()):
    """Rank: bytes, or the number of bytes of one that was removed; as a file instead of those that there are."""
    out, entries = b"", b""
    for rank, data in sorted(members.items()):
        name = b"%010d.r%d.layer" % (epoch, rank)
        data = bytes(data) if isinstance(data, int) else data
        entries += struct.pack("<QQ", len(out), len(data)) + put_var(len(name)) + name
        out += data + b"?" * (-len(data) % 4096) + bytes(4096)
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(folder, "run/00000000", name.decode()))
    out = out[:-4096]
    entries += bytes(-(len(entries) + 48) % 4096)
    trailer = struct.pack("<QQQIHH", len(out), len(entries) + 48, xxh3_64(entries), len(members), 1, 0) + b"VARVEBDL"
    out = bytearray(out + 2 * (entries + seal(trailer)))
    for at in flip:
        out[at] ^= 1
    put_file(folder, "00000000/%010d.r0-%d.bundle" % (epoch, last), out)


def test_bundles(folder, specs, contents):
    first, second = put_layer(specs[0])[0], put_layer(specs[1])[0]
    put_bundle(folder, 1, 0, {0: first})
    put_bundle(folder, 2, 3, {0: second, 1: 5000, 3: b"another"})
    test_contents(folder, contents)
    put_file(folder, "00000000/0000000002.r0.layer", second)  # the file counts
    put_bundle(folder, 2, 1, {1: first})
    put_bundle(folder, 2, 3, {1: b"not a layer"})
    test_contents(folder, contents)
    put_bundle(folder, 2, 3, {0: second})
    put_bundle(folder, 2, 1, {0: 5000})  # of two the first, but it was removed there
    test_contents(folder, contents)
    for flip in list(range(-4096, -3950)) + list(range(-3950, -60, 99)) + list(range(-60, 0)):
        for flips in ((flip,), (flip - 4096,), (flip, flip - 4096)):
            put_bundle(folder, 2, 3, {0: second}, flips)
            found = check(folder)
            assert found and all("bundle" in line for line in found), "%r was flipped: %s" % (flips, found)
            assert can_read(folder) == (len(flips) == 1), flips
    for told, epoch, members in (("rank 4 does not", 2, {4: b"x"}), ("no layer of the epoch", 1, {0: first})):
        put_bundle(folder, epoch, 3, members)
        os.rename(os.path.join(folder, "run/00000000/%010d.r0-3.bundle" % epoch),
                  os.path.join(folder, "run/00000000/0000000002.r0-3.bundle"))
        assert any(told in problem for problem in check(folder)), "%s: %s" % (told, check(folder))
    put_bundle(folder, 2, 3, {0: len(second)})
    assert any("missing" in problem for problem in check(folder)), check(folder)


def can_read(folder):
    lineage, epoch = find_epoch(folder, "run@2")
    try:
        return lineage.layer(epoch, 0).epoch == 2
    except Damage:
        return False


def self_test():
    test_numbers()
    test_planes()
    test_typed()
    test_trail()
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        specs, contents = tiny_specs()
        put_store(store, specs)
        test_contents(store, contents)
        flips = test_flips(store)
        test_gc(store, specs, contents)
        shutil.rmtree(store)
        put_store(store, specs)
        test_bundles(store, specs, contents)
        for told, epoch, key, value in FAULTS:
            shutil.rmtree(store)
            specs, _ = tiny_specs()
            specs[epoch][key] = value
            put_store(store, specs)
            assert any(told in problem for problem in check(store)), "%s: %s" % (told, check(store))
    print("self-test: fine (%d hashes, %d flipped bytes, %d faults)" % (2 * len(VECTORS), flips, len(FAULTS)))


def read_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--self-test", action="store_true")
    commands = parser.add_subparsers(dest="command")
    for name, lineage in (("check", "?"), ("extract", None), ("show", None)):
        command = commands.add_parser(name)
        command.add_argument("store")
        command.add_argument("lineage", nargs=lineage, metavar="LINEAGE[@EPOCH]")
        if name == "extract":
            command.add_argument("region", type=os.fsencode)
            command.add_argument("-o", metavar="FILE", dest="out")
            command.add_argument("--global", action="store_true", dest="all_ranks", help="of all ranks together")
        if name == "show":
            command.add_argument("--json", action="store_true", help="on one line")
        if name != "check":
            command.add_argument("--rank", type=int, default=0)
    args = parser.parse_args()
    if not args.self_test and not args.command:
        parser.error("nothing to do")
    return args


def run(args):
    if args.self_test:
        self_test()
    elif args.command == "check":
        problems = check(args.store, args.lineage)
        print(*problems, sep="\n", end="\n" if problems else "")
        return 1 if problems else 0
    elif args.command == "show":
        print(json.dumps(show(*find_layer(args)), indent=None if args.json else 1))
    else:
        lineage, layer = find_layer(args)
        pieces = [extract_global(lineage, layer.epoch, args.region)] if args.all_ranks else extract(lineage, layer, args.region)
        with open(args.out, "wb") if args.out else contextlib.nullcontext(sys.stdout.buffer) as out:
            for piece in pieces:
                out.write(piece)
    return 0


def main():
    try:
        return run(read_args())
    except Damage as damage:
        print(damage, file=sys.stderr)
        return 1
    except (Unable, OSError) as problem:
        print("layer_read: %s" % problem, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
