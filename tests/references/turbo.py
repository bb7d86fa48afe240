#!/usr/bin/env python3
"""turbo.py FILE: heads in the form in which the cache's types turbo4 and turbo3 store them, computed in float64.

Everything is made from its definition: Lloyd and Max's tables for the normal distribution (by iterating the conditions
of the optimum), their units, the signs, the Walsh-Hadamard matrix, the nearest codes, the scales. For each head FILE
has its width n (int32), n values (float32), the n values of the rotated head (float64), and then for turbo4 and for
turbo3 n codes (bytes) and n / 32 scales (float64). A head is drawn again if one of its values is so near the middle
between two codes that float32 might choose the other code.
"""
import math
import struct
import sys

import numpy as np

WIDTHS = (32, 64, 96, 128, 192, 256, 512, 1024)


def density(x):
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi) if x < 40 else 0.0


def below(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


def middles(c):
    return [(a + b) / 2 for a, b in zip(c, c[1:])]


def optimal(count):
    """Returns the positive half of Lloyd and Max's table. Each entry is the mean of the values that are nearest to
    it."""
    c = [0.3 + 0.35 * i for i in range(count)]
    for _ in range(20000):
        ends = [0.0, *middles(c), 50.0]
        c = [(density(a) - density(b)) / (below(b) - below(a)) for a, b in zip(ends, ends[1:])]
    return c


def error_of(c):
    """Returns the mean square error for normally distributed values. c: the positive half of the table."""
    ends, error = [0.0, *middles(c), 50.0], 0.0
    for value, a, b in zip(c, ends, ends[1:]):
        share = below(b) - below(a)
        error += share + a * density(a) - b * density(b) - 2 * value * (density(a) - density(b)) + value**2 * share
    return 2 * error


def table(count):
    """Returns the table in integers, and the unit, in thousandths, that makes its error smallest."""
    exact = optimal(count)
    most = int(127.49 / exact[-1] * 1000)
    unit = min((error_of([round(x * u / 1000) * 1000 / u for x in exact]), u) for u in range(10000, most))[1] / 1000
    return np.array([round(x * unit) for x in exact], float), unit


def signs(n):
    state, result = 1, []
    for _ in range(512):
        state = (state * 1664525 + 1013904223) % 2**32
        result.append(-1.0 if state >> 31 else 1.0)
    return np.array([result[i % 512] for i in range(n)])


def rotate(x):
    n, part = len(x), min(len(x) & -len(x), 512)
    matrix = np.array([[(-1.0) ** bin(i & j).count("1") for j in range(part)] for i in range(part)]) / math.sqrt(part)
    return (matrix @ (x * signs(n)).reshape(-1, part).T).T.reshape(-1)


def store(rotated, values, unit):
    """Returns codes and scales, and the distance of the value that is nearest to the middle between two codes."""
    codes, scales, nearest = [], [], math.inf
    edges = np.array(middles(values))
    for x in rotated.reshape(-1, 32):
        s = float(x @ x)
        v = np.abs(x) * unit / math.sqrt(s / 32)
        nearest = min(nearest, np.abs(v[:, None] - edges).min(), np.abs(v).min())
        index = (v[:, None] >= edges).sum(1)
        codes += list(index + (x < 0) * len(values))
        scales.append(s / float(x @ (np.sign(x) * values[index])))
    return bytes(int(c) for c in codes), scales, nearest


def heads(rng):
    for n in WIDTHS:
        for kind in range(3):
            x = rng.standard_normal(n) * 10.0 ** rng.integers(-2, 3)
            if kind == 1:
                x[rng.integers(0, n, 3)] *= 40
            if kind == 2:
                x[rng.random(n) < 0.7] = 0
            yield x.astype(np.float32)


def main():
    rng, tables = np.random.default_rng(7), [table(8), table(4)]
    print(*tables)
    with open(sys.argv[1], "wb") as out:
        pending = list(heads(rng))
        while pending:
            x = pending.pop(0)
            rotated = rotate(x.astype(float))
            stored = [store(rotated, *t) for t in tables]
            if min(s[2] for s in stored) < 2e-4:
                pending.insert(0, (x * np.float32(1 + rng.random() * 0.1) + rng.standard_normal(len(x)) * np.abs(x) /
                                   64).astype(np.float32))
                continue
            out.write(struct.pack("<i", len(x)) + x.tobytes() + rotated.tobytes())
            for codes, scales, _ in stored:
                out.write(codes + np.array(scales).tobytes())


main()
