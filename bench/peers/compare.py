#!/usr/bin/env python3
"""Prompt and decode speed beside llama.cpp's, in one run.

In: build/forerun, llama-bench (bench/peers/build.sh makes it; a second one, built with AMX, may follow behind a comma),
and GGUF files. Out: markdown. The engines take turns (A B A B) on the same file; each pair gives a ratio of tokens a
second, forerun over the peer. `forerun bench model` and llama-bench run the same tests and name them alike: loading is
not timed, and both are warm, by the same prompt or the decode of one id. KV is float16 in both. From - to: the lowest
and the highest.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys


def run(*command):
    words = [str(word) for word in command]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: exit {done.returncode}\n{done.stderr[-1000:]}")
    return json.loads(done.stdout)


def test(*command, model, threads, prompt, new):
    """Tokens a second of one run of a test, which both engines take and tell in the same words."""
    return run(*command, "-m", model, "-p", prompt, "-n", new, "-r", 1, "-t", threads, "-ctk", "f16", "-ctv", "f16",
               "-o", "json")[0]["avg_ts"]


def forerun(command, **what):
    return test(command, "bench", "model", "-d", 0, "--rows", 0, "--spec-type", "none", "--quiet", **what)


def spread(numbers, digits):
    low, middle, high = (f"{f(numbers):.{digits}f}" for f in (min, statistics.median, max))
    return f"{middle} | {low} - {high}"


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("forerun")
    parser.add_argument("llama_bench")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--threads", type=int, default=cores, help="of forerun (default: all cores)")
    parser.add_argument("--peer-threads", type=int, help="of llama.cpp (default: as many as forerun)")
    parser.add_argument("--prompt", type=int, default=512, help="ids of the prompt (default 512; 0: none)")
    parser.add_argument("--decode", type=int, default=128, help="ids to decode (default 128; 0: none)")
    parser.add_argument("--pairs", type=int, default=5, help="of runs (default 5)")
    return parser.parse_args()


def main():
    args = read_arguments()
    peer_threads = args.peer_threads or args.threads
    print(f"{args.threads} threads of forerun, {peer_threads} of the peer, {args.pairs} pairs in turn\n\n"
          "| file | build of the peer | test | ratio | from - to | forerun, tokens/s | from - to | peer, tokens/s "
          "| from - to |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for model in args.models:
        for peer in args.llama_bench.split(","):
            for name, prompt, new in ("pp", args.prompt, 0), ("tg", 0, args.decode):
                if not prompt + new:
                    continue
                what = {"model": model, "prompt": prompt, "new": new}
                ours, theirs = zip(*((forerun(args.forerun, threads=args.threads, **what),
                                      test(peer, threads=peer_threads, **what)) for _ in range(args.pairs)))
                build = os.path.basename(os.path.dirname(os.path.abspath(peer)))
                print(f"| {os.path.basename(model)} | {build} | {name}{prompt + new} "
                      f"| {spread([a / b for a, b in zip(ours, theirs)], 2)} | {spread(ours, 1)} "
                      f"| {spread(theirs, 1)} |", flush=True)


if __name__ == "__main__":
    main()
