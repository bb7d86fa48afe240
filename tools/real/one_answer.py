#!/usr/bin/env python3
"""one_answer.py [--quick] FORERUN MODEL...: checks that a prompt gives the same 200 greedy ids in all ways to run it.

In: the command; GGUF files. Out: a line for each file. The exit status is 1 if any id differs. The ways are numbers of
threads, each instruction set of this machine, lengths of prompt chunks, drafting by n-grams, and drafting by the
smaller of two models of one family. In each way all prompts are run at once as a batch, and one of them is run alone.
The ids must be those of each prompt run alone. --quick leaves the batches out. Without vector instructions large
models take minutes for a few ids, so they generate fewer ids there, for one prompt.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

IDS, FEW, LARGE = 200, 16, 300e6  # number of ids; number of ids of scalar code with files above this many bytes
PROMPTS = sorted(Path(__file__).with_name("prompts").glob("*.txt"))
SMALLER = {"qwen25-coder-1.5b": "qwen25-coder-0.5b"}


def ids_of(forerun, model, prompt, *more, count=IDS):
    command = [forerun, "generate", "-m", model, "-f", prompt, "-n", str(count), "--output", "ids", "--ignore-eos",
               "--quiet", *map(str, more)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode: sys.exit(f"one_answer.py: {done.stderr.strip()}")
    return [int(word) for word in done.stdout.split(",")]


def instruction_sets(forerun, model):
    """Returns the instruction sets of this machine. The command refuses words of others."""
    said = subprocess.run([forerun, "generate", "-m", model, "-p", "a", "-n", "1", "--isa", "?"], capture_output=True,
                          text=True).stderr
    words = said.split("known:")[1].split()
    here = lambda word: subprocess.run([forerun, "generate", "-m", model, "-p", "a", "-n", "1", "--isa", word],
                                       capture_output=True).returncode == 0
    return [word for word in words if here(word)]


def manners_of(forerun, model):
    manners = [("-t", 1), ("-t", 3, "--no-pin"), ("--chunk", 7), ("--spec-type", "ngram"),
               ("--spec-type", "ngram", "--draft-max", 15, "-t", 1)]
    manners += [("--isa", word) for word in instruction_sets(forerun, model)]
    smaller = model.with_name(SMALLER.get(model.stem, "") + ".gguf")
    if smaller.exists(): manners += [("-md", smaller), ("-md", smaller, "--draft-max", 7, "-t", 1)]
    return manners


def batch_ids(forerun, model, *more, count=IDS):
    """Returns the ids of each prompt when all of them run at once."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answers = Path(folder, "asked.jsonl"), Path(folder, "answers.jsonl")
        lines = [json.dumps({"id": p.name, "prompt": p.read_text(), "n": count}) for p in PROMPTS]
        asked.write_text("\n".join(lines) + "\n")
        command = [forerun, "batch", "-m", model, "-f", asked, "-o", answers, "-np", str(len(PROMPTS)), "--ignore-eos",
                   "--quiet", *map(str, more)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode: sys.exit(f"one_answer.py: {done.stderr.strip()}")
        return [json.loads(line)["ids"] for line in answers.read_text().splitlines()]


def differs(made, right, prompt, manner):
    if made == right[:len(made)]: return False
    at = next((i for i, (a, b) in enumerate(zip(made, right)) if a != b), len(right))
    print(f"  {prompt.name} {' '.join(map(str, manner))}: another id at {at}", flush=True)
    return True


def check(forerun, model, quick):
    rights, wrong, runs = [ids_of(forerun, model, prompt) for prompt in PROMPTS], 0, 0
    manners = manners_of(forerun, model)
    for m, manner in enumerate(manners):
        slow = "scalar" in manner and model.stat().st_size > LARGE
        count = FEW if slow else IDS
        alone = m % len(PROMPTS)
        made = ids_of(forerun, model, PROMPTS[alone], *manner, count=count)
        wrong += differs(made, rights[alone], PROMPTS[alone], manner)
        together = [] if quick or slow else batch_ids(forerun, model, *manner, count=count)
        for prompt, right, made in zip(PROMPTS, rights, together):
            wrong += differs(made, right, prompt, (*manner, "in a batch"))
        runs += 1 + len(together)
    print(f"{model.stem}: {len(PROMPTS)} prompts, {runs} runs in {len(manners)} manners, {wrong} differ", flush=True)
    return wrong


def main(arguments):
    quick = "--quick" in arguments
    forerun, *models = [argument for argument in arguments if argument != "--quick"]
    return any([check(forerun, Path(model), quick) for model in models])


if __name__ == "__main__":
    if len(sys.argv) < 3: sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
