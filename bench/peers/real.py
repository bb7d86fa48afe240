#!/usr/bin/env python3
"""Compares speculation on real text with llama.cpp's: tokens per second, plain and with each draft method.

usage: bench/peers/real.py FORERUN LLAMA-SERVER MODEL [DRAFTER] [OPTIONS]

In: both commands; a model that both can read; a smaller model that drafts for it. Without a drafter, drafts come from
the text alone. Out: markdown on standard output; with --json FILE the figures of every run; progress on standard
error.

The prompts are those of tools/real/prompts and of bench/peers/prompts. A prompt's class is its file's name up to "-"
or ".". In a round the engines run in turn, method after method. They generate at most -n ids after each prompt,
greedily, with the same threads and float16 caches. A class's rate is its ids divided by the seconds from the first id
to the last. A figure is the median of the rounds; its spread is the distance between the lowest and the highest round,
in per cent of the median. An engine's best method is the one with the best median. Each complete round is stored in
the JSON file, and the same command continues with the next one.

Stop everything else on the machine first. --self-test checks the arithmetic.
"""
import argparse
import glob
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tools" / "clients"))
from server import Client, Failure, Server  # noqa: E402

FORERUN, LLAMA = "forerun", "llama.cpp"
# (engine, draft method, its options, whether it needs a drafter); {n} stands for llama.cpp's --spec-draft-n-max
WAYS = [(FORERUN, "plain", "--spec-type none", False), (LLAMA, "plain", "", False),
        (FORERUN, "draft", "--spec-type draft", True),
        (LLAMA, "draft-simple", "--spec-type draft-simple --spec-draft-n-max {n}", True),
        (FORERUN, "ngram,draft", "--spec-type ngram,draft", True), (FORERUN, "ngram", "--spec-type ngram", False),
        (LLAMA, "ngram-simple", "--spec-type ngram-simple", False)]
DEPTHS = 7  # number of depths for which acceptance is shown


# ------------------------------------------------------------------------------------------- arithmetic (--self-test)

def class_of(path):
    """Gives the class of a prompt.

    >>> class_of("prompts/story-2.txt"), class_of("code.txt")
    ('story', 'code')
    """
    return Path(path).name.split(".")[0].split("-")[0]


def rate(runs):
    """Gives the ids per second of several runs together.

    >>> rate([{"ids": 10, "seconds": 1.0}, {"ids": 20, "seconds": 2.0}])
    10.0
    """
    return sum(run["ids"] for run in runs) / max(sum(run["seconds"] for run in runs), 1e-9)


def figure(rounds):
    """Gives the median rate of rounds, each a list of runs, and the distance of the extremes in per cent of the
    median.
    >>> figure([[{"ids": 10, "seconds": 1.0}], [{"ids": 12, "seconds": 1.0}], [{"ids": 8, "seconds": 1.0}]])
    (10.0, 40.0)
    """
    rates = [rate(runs) for runs in rounds]
    middle = statistics.median(rates)
    return middle, 100 * (max(rates) - min(rates)) / middle


def by_depth(lengths):
    """Gives, for each depth, the share of forwards with drafts in which all drafts up to that depth were accepted.

    >>> by_depth([2, 0, 1, 1])[:3]
    [0.75, 0.25, 0.0]
    """
    return [sum(n >= depth for n in lengths) / max(len(lengths), 1) for depth in range(1, DEPTHS + 1)]


def best(figures, engine, plain=False):
    """Gives an engine's draft method with the best median; with `plain`, the run without drafts.

    >>> best({("a", "plain"): (9, 0), ("a", "x"): (7, 0), ("a", "y"): (8, 0), ("b", "z"): (10, 0)}, "a")
    'y'
    """
    ways = [way for of, way in figures if of == engine and (way == "plain") == plain]
    return max(ways, key=lambda way: figures[engine, way][0], default=None)


def speed_row(name, figures):
    """Makes a row of the table of speeds.

    >>> speed_row("code", {("llama.cpp", "plain"): (20.0, 2), ("llama.cpp", "draft-simple"): (10.0, 1),
    ...                    ("forerun", "plain"): (25.0, 3), ("forerun", "draft"): (50.0, 5)})
    '| code | 20.0 | 10.0 (draft-simple) | 25.0 | 50.0 (draft) | 2.50 | 5% |'
    """
    cells, every = [], []
    for engine in (LLAMA, FORERUN):
        for plain in (True, False):
            way = best(figures, engine, plain)
            cells.append("" if way is None else f"{figures[engine, way][0]:.1f}" + ("" if plain else f" ({way})"))
            every += [figures[engine, way]] if way else []
    most = {engine: max((f[0] for (of, _), f in figures.items() if of == engine), default=float("nan"))
            for engine in (LLAMA, FORERUN)}
    return (f"| {name} | {' | '.join(cells)} | {most[FORERUN] / most[LLAMA]:.2f} "
            f"| {max(spread for _, spread in every):.0f}% |")


def draft_row(name, engine, way, runs):
    """Makes a row of the table of drafts.

    >>> draft_row("code", "forerun", "draft", [{"ids": 9, "calls": 3, "drafted": 8, "accepted": 6, "lengths": [2, 1],
    ...                                         "draft_seconds": 0.04}])
    '| code | forerun | draft | 3.00 | 0.75 | 1.00 0.50 | 5.0 |'
    >>> draft_row("code", "llama.cpp", "draft-simple", [{"ids": 9, "drafted": 8, "accepted": 6}])
    '| code | llama.cpp | draft-simple | | 0.75 | | |'
    """
    total = {key: sum(run.get(key, 0) for run in runs) for key in ("ids", "calls", "drafted", "accepted",
                                                                   "draft_seconds")}
    depths = [part for part in by_depth([n for run in runs for n in run.get("lengths", [])]) if part > 0]
    cells = [f"{total['ids'] / total['calls']:.2f}" if total["calls"] else "",
             f"{total['accepted'] / total['drafted']:.2f}" if total["drafted"] else "",
             " ".join(f"{part:.2f}" for part in depths),
             f"{1000 * total['draft_seconds'] / total['drafted']:.1f}" if total["draft_seconds"] else ""]
    return f"| {name} | {engine} | {way} |" + "".join(f" {cell} |" if cell else " |" for cell in cells)


# ------------------------------------------------------------------------------------------------------------- running

def ask_forerun(args, options, drafter, prompt):
    words = [args.forerun, "generate", "-m", args.model, *options.split(), "-f", prompt, "-n", str(args.n), "-t",
             str(args.threads), "-ctk", "f16", "-ctv", "f16", "--output", "json", "--quiet"]
    if drafter: words += ["-md", args.drafter, "--draft-head", args.draft_head]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode: raise Failure(f"{' '.join(words)}: {done.stderr.strip()}")
    stats = json.loads(done.stdout)["stats"]
    return {"ids": stats["generated_tokens"] - 1, "seconds": stats["decode_seconds"], "calls": stats["target_calls"],
            "drafted": stats["drafted"], "accepted": stats["accepted"], "lengths": stats["accepted_lengths"],
            "draft_seconds": stats["draft_seconds"]}


def ask_llama(args, client, prompt):
    """Runs a prompt in llama-server. Its time begins at the prompt's end, when it has the first id, so that id is not
    counted."""
    body = {"prompt": Path(prompt).read_text(encoding="utf-8"), "n_predict": args.n, "temperature": 0,
            "cache_prompt": False}
    answer = client.ask("POST", "/completion", body)
    if answer.status != 200: raise Failure(f"llama-server: {answer.body[:500]}")
    timings = answer.json()["timings"]
    return {"ids": timings["predicted_n"] - 1, "seconds": timings["predicted_ms"] / 1000,
            "drafted": timings.get("draft_n", 0), "accepted": timings.get("draft_n_accepted", 0)}


def llama_command(args, options, drafter):
    words = [args.llama, "-m", args.model, "-c", "4096", "-np", "1", "-t", str(args.threads), "-tb", str(args.threads),
             "--port", "{port}", *options.replace("{n}", str(args.llama_n)).split()]
    if drafter: words += ["-md", args.drafter, "-td", str(args.threads)]
    return " ".join(words)


def run_way(args, way, prompts):
    engine, name, options, drafter = way
    runs = {}
    print(f"{engine} {name}", file=sys.stderr)
    if engine == FORERUN:
        for prompt in prompts: runs[prompt] = ask_forerun(args, options, drafter, prompt)
        return runs
    with Server(llama_command(args, options, drafter)) as server:
        client = Client(server.url)
        client.ask("POST", "/completion", {"prompt": "Once", "n_predict": 8})  # warm-up
        for prompt in prompts: runs[prompt] = ask_llama(args, client, prompt)
    return runs


def machine():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
        name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "a processor")
    return f"{len(os.sched_getaffinity(0))} cores of {name}"


def read_rounds(path):
    """Reads the complete rounds, in the form that main uses."""
    rounds = []
    for fact in json.loads(Path(path).read_text()) if path and Path(path).exists() else []:
        while len(rounds) <= fact["round"]: rounds.append({})
        rounds[fact["round"]].setdefault((fact["engine"], fact["way"]), {})[fact["prompt"]] = fact
    return rounds


def write_rounds(path, rounds):
    facts = [{**run, "round": i, "engine": engine, "way": way, "prompt": Path(prompt).name}
             for i, of in enumerate(rounds) for (engine, way), runs in of.items() for prompt, run in runs.items()]
    if path: Path(path).write_text(json.dumps(facts))


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    for name in ("forerun", "llama", "model"): parser.add_argument(name)
    parser.add_argument("drafter", nargs="?")
    parser.add_argument("-n", type=int, default=160, help="ids after a prompt at most (default 160)")
    parser.add_argument("-t", "--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--llama-n", type=int, default=3, help="llama.cpp's drafts a round, its default: 3")
    parser.add_argument("--draft-head", default="whole", help="ids that forerun drafts: a number, or a list's path")
    parser.add_argument("--classes", default="", help="of prompts, with commas; default: all")
    parser.add_argument("--few", action="store_true", help="one prompt of each class")
    parser.add_argument("--json", help="a file for every run's figures, from which the same command goes on")
    return parser.parse_args()


def find_prompts(args):
    found = sorted(glob.glob(str(ROOT / "tools/real/prompts/*.txt"))) + sorted(glob.glob(str(HERE / "prompts/*.txt")))
    wanted = [word for word in args.classes.split(",") if word]
    found = [path for path in found if not wanted or class_of(path) in wanted]
    return list({class_of(path): path for path in reversed(found)}.values()) if args.few else found


def main():
    args = read_arguments()
    prompts = find_prompts(args)
    ways = [way for way in WAYS if args.drafter or not way[3]]
    rounds = read_rounds(args.json)
    while len(rounds) < args.rounds:
        rounds.append({way[:2]: run_way(args, way, prompts) for way in ways})
        write_rounds(args.json, rounds)
    classes = sorted({class_of(prompt) for prompt in prompts})
    print(f"{Path(args.model).name}{', drafter ' + Path(args.drafter).name if args.drafter else ''}; {machine()}; "
          f"{args.threads} threads, {args.rounds} rounds\n\n| tokens/s | llama.cpp plain | its best drafts | forerun "
          "plain | its best drafts | best over best | spread |\n| --- | --- | --- | --- | --- | --- | --- |")
    figures = {name: {way: figure([[run for prompt, run in of[way].items() if class_of(prompt) == name]
                                   for of in rounds]) for way in rounds[0]} for name in classes}
    for name in classes: print(speed_row(name, figures[name]))
    print("\n| drafts | engine | way | tokens a call | accepted | stood up to depth 1, 2, ... | ms a draft |\n"
          "| --- | --- | --- | --- | --- | --- | --- |")
    for name in classes:
        for engine in (LLAMA, FORERUN):
            way = best(figures[name], engine)
            if way:
                runs = [run for of in rounds for prompt, run in of[engine, way].items() if class_of(prompt) == name]
                print(draft_row(name, engine, way, runs))


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        import doctest
        sys.exit(doctest.testmod().failed)
    try:
        main()
    except (Failure, OSError) as failure:
        sys.exit(f"{sys.argv[0]}: {failure}")
