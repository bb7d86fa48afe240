#!/usr/bin/env python3
"""Runs two builds of forerun in turn on the same files, and tells if the new one is slower.

usage: bench/pairs.py OLD NEW MODEL.gguf [MODEL.gguf ...] [--pairs N] [--beside] [-- OPTIONS OF bench model]

In: two forerun binaries, and models. With --beside the two runs of a pair run at the same time, each with one thread
on a core of its own, and change cores from pair to pair. So on a machine with changing neighbours, both are disturbed
alike. Out: a line for each test of each model. It has the median over the pairs of the ratio new / old (above 1 the
new one is faster), and the median's 95% interval by order statistics, which assume no law of the noise. It also has a
verdict: "loss" if the whole interval is below 0.98, "not told" if it is wider than 4%, else "even" or "gain". The exit
status is 1 if there is a loss. Nothing else may run on the machine."""

import json
import math
import os
import statistics
import subprocess
import sys


def start(binary, model, options, core=None):
    """Starts a run. core: the run is kept on this core, with one thread."""
    command = [binary, "bench", "model", "-m", model, "--quiet", "-r", "9", "-o", "json", *options]
    if core is not None:
        command = ["taskset", "-c", str(core), *command, "-t", "1"]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def end(process):
    """Waits for a run, and gives {test: median tokens per second}."""
    out = process.communicate()[0]
    if process.returncode:
        sys.exit(f"{' '.join(process.args)}: exit {process.returncode}")
    return {line["test"]: statistics.median(line["samples_ts"]) for line in json.loads(out) if line.get("samples_ts")}


def run_pair(old, new, model, pair, options, beside):
    """Runs a pair and gives the figures of both. The order of the two, or their cores, change from pair to pair."""
    cores = sorted(os.sched_getaffinity(0)) if beside else [None, None]
    order = [old, new] if pair % 2 else [new, old]
    if beside:
        figures = [end(run) for run in [start(order[i], model, options, cores[i]) for i in (0, 1)]]
    else:
        figures = [end(start(binary, model, options)) for binary in order]
    return figures if pair % 2 else figures[::-1]


def interval(ratios):
    """Gives the 95% interval of the median: two of the sorted ratios. Each ratio is above or below the true median as
    a fair coin falls. So the true median lies outside of the interval in at most 5% of all cases."""
    n, outside, low = len(ratios), 0.0, 0
    while outside + math.comb(n, low) / 2**n <= 0.025:
        outside += math.comb(n, low) / 2**n
        low += 1
    low = max(low - 1, 0)
    return ratios[low], ratios[n - 1 - low]


def verdict(low, high):
    if high < 0.98:
        return "loss"
    if high - low > 0.04:
        return "not told"
    return "gain" if low > 1 else "even"


def compare(old, new, model, pairs, options, beside):
    """Prints the lines of one model. Returns true if one of them is a loss."""
    ratios = {}
    for pair in range(pairs + 1):
        before, after = run_pair(old, new, model, pair, options, beside)
        if pair == 0:
            continue  # the first run only brings the file into memory
        for test in before.keys() & after.keys():
            ratios.setdefault(test, []).append(after[test] / before[test])
    lost = False
    for test, values in sorted(ratios.items()):
        values.sort()
        low, high = interval(values)
        word = verdict(low, high)
        lost |= word == "loss"
        middle = statistics.median(values)
        print(f"{model:40} {test:8} {middle:.3f}  {low:.3f} to {high:.3f}  {len(values)} pairs  {word}", flush=True)
    return lost


def main(arguments):
    options = ["-p", "128", "-n", "16", "--rows", "4", "-d", "0"]
    if "--" in arguments:
        at = arguments.index("--")
        arguments, options = arguments[:at], arguments[at + 1:]
    pairs, beside = 31, "--beside" in arguments
    if beside:
        arguments.remove("--beside")
    if "--pairs" in arguments:
        at = arguments.index("--pairs")
        pairs = int(arguments[at + 1])
        del arguments[at:at + 2]
    if len(arguments) < 3 or pairs < 6:
        sys.exit(__doc__)
    old, new, *models = arguments
    return max([compare(old, new, model, pairs, options, beside) for model in models])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
