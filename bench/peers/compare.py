#!/usr/bin/env python3
"""compare.py FORERUN LLAMA_BENCH[,LLAMA_BENCH...] MODEL...: prompt and decode speed beside llama.cpp's, in one run.

In: the two commands (bench/peers/build.sh makes the second; a further one, built with AMX, may follow) and GGUF files.
Out: markdown. Each figure is a ratio of tokens a second, forerun over the peer, on the same file with the same number
of threads: the engines take turns (A B A B), each pair gives a ratio, the middle one is printed. Both count the prompt
or the decode alone, without loading. KV is float16 in both.
"""
import json
import os
import random
import statistics
import subprocess
import sys

PAIRS = 5
PROMPT, DECODE = 512, 128
THREADS = len(os.sched_getaffinity(0))


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)[:200]}: exit {done.returncode}\n{done.stderr[-1000:]}")
    return json.loads(done.stdout)


def forerun(command, model, prompt, new):
    """Tokens a second: of a prompt of so many ids, or of the `new` ids that follow the first."""
    random.seed(prompt)
    ids = ",".join(str(random.randrange(300, 30000)) for _ in range(prompt))
    stats = run([command, "generate", "-m", model, "--ids", ids, "-n", str(new + 1), "--ignore-eos", "-t", str(THREADS),
                 "--output", "json", "--quiet"])["stats"]
    return new / stats["decode_seconds"] if new else prompt / stats["prefill_seconds"]


def llama(command, model, prompt, new):
    what = ["-p", "0", "-n", str(new)] if new else ["-p", str(prompt), "-n", "0"]
    return run([command, "-m", model, *what, "-r", "1", "-t", str(THREADS), "-o", "json"])[0]["avg_ts"]


def compare(ours, peer, model, prompt, new):
    pairs = [(forerun(ours, model, prompt, new), llama(peer, model, prompt, new)) for _ in range(PAIRS)]
    a, b = (statistics.median(side) for side in zip(*pairs))
    ratios = [x / y for x, y in pairs]
    return f"{statistics.median(ratios):.2f} | {min(ratios):.2f} to {max(ratios):.2f} | {a:.1f} | {b:.1f} |"


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    ours, peers, models = sys.argv[1], sys.argv[2].split(","), sys.argv[3:]
    print(f"{THREADS} threads, {PAIRS} pairs in turn\n\n| file | build of the peer | what | ratio | lowest to highest "
          "| forerun tokens/s | peer tokens/s |\n| --- | --- | --- | --- | --- | --- | --- |")
    for model in models:
        for peer in peers:
            for name, prompt, new in (f"prompt of {PROMPT}", PROMPT, 0), (f"decode of {DECODE}", 1, DECODE):
                figures = compare(ours, peer, model, prompt, new)
                build = os.path.basename(os.path.dirname(os.path.abspath(peer)))
                print(f"| {os.path.basename(model)} | {build} | {name} | {figures}", flush=True)


if __name__ == "__main__":
    main()
