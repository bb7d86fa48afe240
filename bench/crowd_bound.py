#!/usr/bin/env python3
"""Computes how much drafts can gain at most when several texts are generated together, from the measured cost of rows.

usage: crowd_bound.py ROWS:TIME,ROWS:TIME,... [--texts 8] [--rate .7] [--draft .1] [--steps]

In: the time of a forward for several numbers of rows, which `forerun bench model --rows 1,2,4,8,12,16` prints as T;
between these numbers, T is taken to be linear. --texts: the number of texts. --rate: how often a draft is accepted if
all drafts before it were. --draft: the time of drafting for all texts, in units of T(1), for a whole block, or for
each depth with --steps. Out: the tokens per second of the best policy divided by those without drafts. There are two
figures: one for drafts that come without probabilities, and one for drafts that come with them, either .97 or a random
one from 0 to .7.

Without probabilities all drafts of a depth are worth the same. So the best policy gives drafts to the texts in turn,
and all numbers of drafts are tried. No policy that knows only rates and times can do better. With probabilities the
best policy verifies the likeliest drafts of all texts, as long as a row gives more tokens than its time is worth at
the resulting rate."""
import argparse
import random


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("times")
    p.add_argument("--texts", type=int, default=8)
    p.add_argument("--rate", type=float, default=0.7)
    p.add_argument("--draft", type=float, default=0.1)
    p.add_argument("--steps", action="store_true")
    return p.parse_args()


def line(points):
    """Gives T as a function of the number of rows. Beyond the last point the last line is continued."""

    def t(rows):
        i = next((i for i in range(1, len(points) - 1) if points[i][0] >= rows), len(points) - 1)
        (r0, t0), (r1, t1) = points[i - 1], points[i]
        return t0 + (t1 - t0) * (rows - r0) / (r1 - r0)

    return t


def drafting(a, depth):
    return a.draft * (depth if a.steps else min(depth, 1))


def silent(a, t, most):
    best, given = a.texts / t(a.texts), 0
    for drafts in range(1, most - a.texts + 1):
        deep, more = divmod(drafts, a.texts)
        tokens = a.texts * sum(a.rate**d for d in range(deep + 1)) + more * a.rate ** (deep + 1)
        rate = tokens / (t(a.texts + drafts) + drafting(a, deep + (more > 0)))
        if rate > best:
            best, given = rate, drafts
    return best, given


def told(a, t, most, depth):
    draw, share, rate = random.Random(1), (a.rate - 0.35) / 0.62, a.texts / t(a.texts)
    for _ in range(4):
        tokens = seconds = 0
        for _ in range(1500):
            chances = []
            for _ in range(a.texts):
                stands = 1
                for _ in range(depth):
                    stands *= 0.97 if draw.random() < share else 0.7 * draw.random()
                    chances.append(stands)
            chances.sort(reverse=True)
            gains = [(0, 0, 0)]  # (tokens beyond what the rows' time is worth, rows, tokens)
            for rows, c in enumerate(chances[: most - a.texts], 1):
                gains.append((sum(chances[:rows]) - rate * (t(a.texts + rows) - t(a.texts)), rows, sum(chances[:rows])))
            _, rows, got = max(gains)
            tokens += a.texts + got
            seconds += t(a.texts + rows) + drafting(a, depth)
        rate = max(a.texts / t(a.texts), tokens / seconds)
    return rate


def main():
    a = arguments()
    points = sorted((int(r), float(s)) for r, s in (p.split(":") for p in a.times.split(",")))
    scale = points[0][1] / points[0][0] if points[0][0] == 1 else 1
    t, most = line([(r, s / scale) for r, s in points]), min(64, points[-1][0])
    none = a.texts / t(a.texts)
    best, drafts = silent(a, t, most)
    print(f"drafts that tell nothing: {best / none:.2f} of none, with {drafts} drafts for {a.texts} texts")
    gains = [(told(a, t, most, depth) / none, depth) for depth in (1, 2, 3, 5, 7)]
    print("drafts that tell chances: {:.2f} of none, made {} deep".format(*max(gains)))


main()
