#!/usr/bin/env python3
"""Predicts what several ranks cost, compares that with measurements, and predicts DeepSeek-V3 on several machines.

usage: bench/ranks/model.py FOLDER [--plot FILE.svg]

In: the folder of bench/ranks/measure. Out: markdown. It has the measured and the predicted time of each run of two
ranks, and their difference; then the figures of DeepSeek-V3. The exit status is 1 if a prediction is off by more than
15%. --self-test checks the arithmetic.

The time of a forward of K rows on n ranks is

    computing(K) + gathers (latency + bytes of a message / rate)

Ranks that share this machine's cores and memory compute as long as one process with as many threads, plus the time of
the work that each of them does in full. That time is learned from one run of ranks that share memory. The time of a
message of some size is what bench ranks measured without a limit of the network. A delay is added to it, or the time
that the limited rate needs for the bytes.

If the model is divided by layers, ranks compute one after the other. Together they take as long as one process with
the threads of a single rank. Only the head is computed by all ranks at once. The time of computing is learned
from one run of ranks that are divided in this way.
"""
import argparse
import json
import math
import re
import sys
from bisect import bisect_left
from pathlib import Path

ROWS = (1, 2, 4, 8)
APART = 0.15

# DeepSeek-V3 by its config.json: 61 layers, 3 of them dense. The others have 256 experts of 3 matrices, of which 8 are
# chosen, and 1 shared expert.
LAYERS, DENSE, HIDDEN, FFN, EXPERT_FFN, EXPERTS, CHOSEN, VOCAB = 61, 3, 7168, 18432, 2048, 256, 8, 129280
HEADS, HEAD, VALUE, LATENT, ROTARY, Q_LATENT = 128, 128, 128, 512, 64, 1536
BYTES = 4.5 / 8           # bytes of a weight in Q4_0 or Q4_K
BLOCK = 36 / 32           # bytes of an activation as integer kernels read it
ACCEPTED = 0.85           # share of second tokens that are accepted: the least in the paper (arXiv:2412.19437, 5.4.3)
MACHINE = 200e9           # bytes per second that a machine reads
NETWORKS = {"25 Gb/s, 15 us": (15e-6, 25e9 / 8), "100 Gb/s, 5 us": (5e-6, 100e9 / 8)}


# ------------------------------------------------------------------------------------------- arithmetic (--self-test)

def interpolate(points, x):
    """Interpolates between points, and continues the first and the last line beyond them.

    >>> interpolate([(0, 1.0), (10, 2.0), (20, 4.0)], 15), interpolate([(0, 1.0), (10, 2.0)], 20)
    (3.0, 3.0)
    """
    at = min(max(bisect_left(points, (x,)), 1), len(points) - 1)
    (x0, y0), (x1, y1) = points[at - 1], points[at]
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0)


def gathered(traffic, rows, latencies, late=0.0, rate=math.inf):
    """Gives the seconds of a forward's gathers. traffic: for each number of rows, a list of (number of layers,
    messages of each, bytes of each).

    >>> round(gathered({1: [(10, 2, 2000)]}, 1, [(0, 1e-6), (10000, 11e-6)], late=10e-6, rate=1e9) * 1e6, 3)
    260.0
    """
    return sum(count * messages * (interpolate(latencies, size / messages) + late + size / messages / rate)
               for count, messages, size in traffic[rows] if messages)


def experts_read(rows):
    """Gives the mean number of experts of a layer that some rows read, if the rows choose independently.

    >>> round(experts_read(1), 6), round(experts_read(2), 2)
    (8.0, 15.75)
    """
    return EXPERTS * (1 - (1 - CHOSEN / EXPERTS) ** rows)


def deepseek_bytes(rows, layers=LAYERS, dense=DENSE, head=True):
    """Gives the bytes of the weights that a forward reads.

    >>> round(deepseek_bytes(1) / BYTES / 1e9, 1)
    36.6
    """
    attention = (HIDDEN * (Q_LATENT + LATENT + ROTARY) + Q_LATENT * HEADS * (HEAD + ROTARY)
                 + LATENT * HEADS * (HEAD + VALUE) + HEADS * VALUE * HIDDEN)
    expert = 3 * HIDDEN * EXPERT_FFN
    weights = (layers * attention + dense * 3 * HIDDEN * FFN
               + (layers - dense) * ((experts_read(rows) + 1) * expert + EXPERTS * HIDDEN))
    return (weights + head * VOCAB * HIDDEN) * BYTES


def deepseek_sent(rows, ranks):
    """Gives the bytes of a layer's four messages: inputs and results of the attention's output matrix, and of the
    experts' second matrices."""
    each = rows / ranks
    experts = (CHOSEN + 1) * EXPERT_FFN * BLOCK
    return [each * width for width in (HEADS * VALUE * BLOCK, HIDDEN * 4, experts, HIDDEN * 8)]


def deepseek_seconds(rows, ranks, network, layers=LAYERS, dense=DENSE):
    """Gives the seconds of a forward. A rank sends each of its messages to all others, one after the other through its
    own cable."""
    latency, rate = network
    sent = deepseek_sent(rows, ranks) if ranks > 1 else []
    return (deepseek_bytes(rows, layers, dense) / ranks / MACHINE
            + layers * sum(latency + (ranks - 1) * size / rate for size in sent))


# ------------------------------------------------------------------------------------------------------------- reading

def rows_of(path, table):
    return [row for row in json.loads(path.read_text()) if row["table"] == table]


def times_of(path, threads=None):
    """Gives the seconds of a forward for each number of rows."""
    return {row["rows"]: row["median_ns"] / 1e9 for row in rows_of(path, "rows")
            if threads is None or row["n_threads"] == threads}


def traffic_of(path):
    traffic = {}
    for row in rows_of(path, "ranks"):
        traffic.setdefault(row["rows"], []).append((row["count"], row["messages"], row["bytes"]))
    return traffic


def by_layers_of(path):
    """Gives the traffic of ranks that share the layers. The last rank passes on as many rows as the first. The last
    entry is not a layer's."""
    return {rows: [(2 * count, *sent) for count, *sent in found[:-1]] + found[-1:]
            for rows, found in traffic_of(path).items()}


def latencies_of(path):
    return [(row["bytes"], row["gather_us"] / 1e6) for row in rows_of(path, "gathers")]


# ------------------------------------------------------------------------------------------------------------ the pages

def predictions(folder):
    """Gives the tables from which predictions are made, and a list of (name, rows, measured, predicted), in
    seconds."""
    one = times_of(folder / "one.json", threads=2)
    traffic = traffic_of(folder / "memory.json")
    latencies = {name: latencies_of(folder / f"{name}-gathers.json") for name in ("memory", "loopback", "cable")}
    measured, layers = times_of(folder / "memory.json"), folder / "layers.json"
    whole = {k: measured[k] - one[k] - gathered(traffic, k, latencies["memory"]) for k in ROWS}
    handed = by_layers_of(layers)
    alone = {k: seconds - gathered(handed, k, latencies["memory"]) for k, seconds in times_of(layers).items()}
    found = []
    for path in sorted(folder.glob("*.json")):
        name = path.stem
        late, rate = re.fullmatch(r"(?:layers-)?late-(\d+)", name), re.fullmatch(r"rate-([\d.]+)", name)
        if name in ("one", "memory", "layers") or name.endswith("-gathers"): continue
        network = latencies["memory" if late else "cable" if rate else name]
        split = name.startswith("layers")
        for k, seconds in times_of(path).items():
            told = (alone[k] if split else one[k] + whole[k]) + gathered(
                handed if split else traffic, k, network, float(late[1]) / 1e6 if late else 0,
                float(rate[1]) * 1e9 / 8 if rate else math.inf)
            found.append((name, k, seconds, told))
    return one, measured, whole, sorted(found, key=place_of)


def place_of(run):
    """Gives the place of a run in the table: its kind, its delay or rate, its rows.

    >>> place_of(("late-30", 2, 0.1, 0.1)), place_of(("cable", 1, 0.1, 0.1))
    (('late', 30.0, 2), ('cable', 0.0, 1))
    """
    kind, _, much = run[0].rpartition("-") if "-" in run[0] else (run[0], "", "")
    return kind, float(much or 0), run[1]


def tell(folder):
    one, measured, whole, found = predictions(folder)
    print("| rows | one process, 2 threads, ms | 2 ranks of one, ms | of it what each does whole, ms |\n"
          "| --- | --- | --- | --- |")
    for k in ROWS: print(f"| {k} | {one[k] * 1e3:.1f} | {measured[k] * 1e3:.1f} | {whole[k] * 1e3:.1f} |")
    print("\n| network | rows | measured, ms | predicted, ms | off by |\n| --- | --- | --- | --- | --- |")
    for name, k, seconds, told in found:
        print(f"| {name} | {k} | {seconds * 1e3:.1f} | {told * 1e3:.1f} | {told / seconds - 1:+.0%} |")
    return found


def tell_deepseek():
    print("\n| DeepSeek-V3 at Q4 | machines | tokens/s | with MTP | times |\n| --- | --- | --- | --- | --- |")
    for name, network in NETWORKS.items():
        for ranks in (1, 2, 4, 8):
            plain = deepseek_seconds(1, ranks, network)
            step = deepseek_seconds(1, ranks, network, layers=1, dense=0)
            drafted = (deepseek_seconds(2, ranks, network) + step) / (1 + ACCEPTED)
            print(f"| {name} | {ranks} | {1 / plain:.1f} | {1 / drafted:.1f} | {plain / drafted:.2f} |")


def draw(found, path):
    """Draws the predicted over the measured time, both axes logarithmic, with the band in which a prediction counts as
    right."""
    values = [t for _, _, seconds, told in found for t in (seconds, told)]
    low, high, side, edge = math.log(min(values) / 1.2), math.log(max(values) * 1.2), 400, 50

    def at(seconds): return edge + (math.log(seconds) - low) / (high - low) * side
    colours = {"late": "#b86e00", "rate": "#1b5f8a", "loopback": "#7a3b8f", "cable": "#1b8a5a",
               "layers": "#a03030"}
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {side + 2 * edge} {side + 2 * edge}" '
             'font-family="system-ui,sans-serif" font-size="13">', '<rect width="100%" height="100%" fill="#fff"/>']

    def y(seconds): return side + 2 * edge - at(seconds)
    ends = math.exp(low), math.exp(high)
    for factor, dash in ((1, ""), (1 + APART, "4 4"), (1 - APART, "4 4")):
        first, last = max(ends[0], ends[0] / factor), min(ends[1], ends[1] / factor)
        lines.append(f'<line x1="{at(first):.1f}" y1="{y(first * factor):.1f}" x2="{at(last):.1f}" '
                     f'y2="{y(last * factor):.1f}" stroke="#999" stroke-dasharray="{dash}"/>')
    for name, k, seconds, told in found:
        lines.append(f'<circle cx="{at(seconds):.1f}" cy="{y(told):.1f}" r="4" fill="{colours[name.split("-")[0]]}">'
                     f'<title>{name}, {k} rows: {seconds * 1e3:.1f} ms, predicted {told * 1e3:.1f}</title></circle>')
    for i, (name, colour) in enumerate(colours.items()):
        lines.append(f'<text x="{edge + 8}" y="{edge + 16 + 18 * i}" fill="{colour}">{name}</text>')
    span = f"{ends[0] * 1e3:.0f} to {ends[1] * 1e3:.0f} ms"
    lines += [f'<text x="{edge}" y="{side + 2 * edge - 16}">measured, {span}</text>',
              f'<text x="8" y="{edge - 16}">predicted; dashed: 15% off</text>', "</svg>"]
    Path(path).write_text("\n".join(lines) + "\n")


def main():
    if sys.argv[1:] == ["--self-test"]:
        import doctest
        return doctest.testmod().failed > 0
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=Path)
    options.add_argument("--plot")
    asked = options.parse_args()
    found = tell(asked.folder)
    tell_deepseek()
    if asked.plot: draw(found, asked.plot)
    return any(abs(told / seconds - 1) > APART for _, _, seconds, told in found)


if __name__ == "__main__":
    sys.exit(main())
