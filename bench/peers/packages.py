#!/usr/bin/env python3
"""Compares forerun with engines that come as Python packages: OpenVINO GenAI, ik_llama.cpp, mistral.rs.

usage: bench/peers/packages.py FORERUN PYTHON MODEL.gguf [OPTIONS]

In: the command; a Python with the packages that packages.txt pins; a file that all can read. Out: markdown on standard
output: for each engine the seconds until its first token, prompt and decode in tokens per second, the most memory of
its process; and of 25 prompts how many get another text when eight are asked together, and when it drafts. Progress
goes to standard error. An engine that cannot read the file gets a row that says so.

Prompts are read anew in each run, since each begins with other words. Engines run in turn, round after round, each in
a process of its own; a figure is the median of the rounds. All write the most likely token, whatever the end of
sequence says, from float16 caches. The first token's time is that of a call for one token; the others' is what a call
for more takes longer. Stop everything else on the machine first. --self-test checks the arithmetic.
"""
import argparse
import concurrent.futures
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tools" / "clients"))
from server import Client, Failure, Server  # noqa: E402

TOGETHER = 8  # prompts that are asked together
TEXTS = 25


# ------------------------------------------------------------------------------------------- engines, one per process
# An engine has `ask`, which writes n tokens after each prompt, all prompts together, and returns the texts and the
# number of tokens. `drafts`: whether it drafts from the text alone. `shares`: whether several texts share its forwards.

class Forerun:
    drafts = shares = True

    def __init__(self, args, drafting=False):
        words = [args.forerun, "serve", "-m", args.model, "-t", args.threads, "-np", TOGETHER, "-c", 8192, "-ctk",
                 "f16", "-ctv", "f16", "--port", "{port}", "--spec-type", "ngram" if drafting else "none"]
        self.server = Server(" ".join(map(str, words))).start()

    def ask_one(self, prompt, n):
        body = {"prompt": prompt, "max_tokens": n, "temperature": 0, "ignore_eos": True}
        answer = Client(self.server.url).ask("POST", "/v1/completions", body)
        if answer.status != 200: raise Failure(f"forerun: {answer.body[:500]}")
        return answer.json()["choices"][0]["text"]

    def ask(self, prompts, n):
        with concurrent.futures.ThreadPoolExecutor(TOGETHER) as pool:
            return list(pool.map(lambda prompt: self.ask_one(prompt, n), prompts)), n * len(prompts)

    def memory(self):
        return self.server.resident()


class Own:
    """An engine that runs in this process."""
    drafts = shares = False

    def memory(self):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class OpenVino(Own):
    drafts = shares = True

    def __init__(self, args, drafting=False):
        import openvino_genai
        self.drafting = drafting
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.max_num_seqs, scheduler.cache_size, scheduler.enable_prefix_caching = TOGETHER, 1, False
        more = {"prompt_lookup": True} if drafting else {}
        self.engine = openvino_genai.LLMPipeline(args.model, "CPU", scheduler_config=scheduler,
                                                 INFERENCE_NUM_THREADS=args.threads, KV_CACHE_PRECISION="f16", **more)
        self.kinds = openvino_genai

    def ask(self, prompts, n):
        config = self.kinds.GenerationConfig()
        config.max_new_tokens, config.ignore_eos, config.do_sample = n, True, False
        config.apply_chat_template = False
        if self.drafting: config.num_assistant_tokens, config.max_ngram_size = 4, 3
        return self.engine.generate(prompts, config).texts, n * len(prompts)


class IkLlama(Own):
    """Its package writes one text at a time, and ends it where the model does."""
    def __init__(self, args):
        import ik_llama_cpp
        self.engine = ik_llama_cpp.IkLlama(args.model, n_ctx=8192, n_threads=args.threads, verbose=False)

    def ask(self, prompts, n):
        ids = [self.engine.generate(self.engine.tokenize(prompt), max_tokens=n, temperature=0) for prompt in prompts]
        return [self.engine.detokenize(text) for text in ids], sum(map(len, ids))


class MistralRs(Own):
    """Its package writes one text at a time."""
    def __init__(self, args):
        os.environ["RAYON_NUM_THREADS"] = str(args.threads)
        import mistralrs
        self.kinds, path = mistralrs, Path(args.model)
        which = mistralrs.Which.GGUF(quantized_model_id=str(path.parent), quantized_filename=path.name)
        self.engine = mistralrs.Runner(which=which, max_seqs=TOGETHER, prefix_cache_n=0, token_source="none")

    def ask(self, prompts, n):
        texts = []
        for prompt in prompts:
            request = self.kinds.CompletionRequest(prompt=prompt, model="default", max_tokens=n, temperature=0.0,
                                                   top_k=1, ignore_eos=True)
            texts.append(self.engine.send_completion_request(request).choices[0].text)
        return texts, n * len(prompts)


ENGINES = {"forerun": Forerun, "OpenVINO GenAI": OpenVino, "ik_llama.cpp": IkLlama, "mistral.rs": MistralRs}


# ------------------------------------------------------------------------------------------- the process of an engine

def serve_parent(args):
    """Answers the parent's lines, {prompts, n} or null, with {seconds, texts, tokens, memory}."""
    kind, out = ENGINES[args.child], os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not come between answers
    began = time.monotonic()
    engine = kind(args, True) if args.drafting else kind(args)
    print(json.dumps({"seconds": time.monotonic() - began}), file=out, flush=True)
    for line in sys.stdin:
        asked, began = json.loads(line), time.monotonic()
        texts, tokens = engine.ask(asked["prompts"], asked["n"])
        print(json.dumps({"seconds": time.monotonic() - began, "texts": texts, "tokens": tokens,
                          "memory": engine.memory()}), file=out, flush=True)
    if isinstance(engine, Forerun): engine.server.stop()


class Process:
    def __init__(self, args, name, drafting=False):
        words = [sys.executable if name == "forerun" else args.python, __file__, args.forerun, args.python, args.model,
                 "-t", str(args.threads), "--child", name] + ["--drafting"] * drafting
        print(f"{name}{', drafting' * drafting}", file=sys.stderr)
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.DEVNULL)
        self.load_seconds = self.read()["seconds"]

    def read(self):
        line = self.process.stdout.readline()
        if not line: raise Failure("its process ended, so it does not read this file")
        return json.loads(line)

    def ask(self, prompts, n):
        self.process.stdin.write(json.dumps({"prompts": prompts, "n": n}) + "\n")
        self.process.stdin.flush()
        return self.read()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# ---------------------------------------------------------------------------------------------------------- measuring

def cut_to(client, text, count):
    """Gives the beginning of a text that has so many tokens."""
    tokens = client.ask("POST", "/tokenize", {"content": text}).json()["tokens"][:count]
    return client.ask("POST", "/detokenize", {"tokens": tokens}).json()["content"]


def read_prompts():
    """Gives the prompts whose texts are compared, and a long text for the timings."""
    made = subprocess.run([sys.executable, ROOT / "tools/train/prompts.py", "--count", "600"], capture_output=True,
                          text=True, check=True).stdout
    asked = [json.loads(line)["messages"][-1]["content"] for line in made.splitlines()]
    return [f"Question: {text}\nAnswer:" for text in asked[:TEXTS]], " ".join(asked)


def time_engine(args, name, text, turn):
    process, most = Process(args, name), args.prompt
    try:
        process.ask([f"Warm words {turn}: " + text[:400]], 8)
        first = process.ask([f"Turn {turn}, once. {text}"], 1)
        whole = process.ask([f"Turn {turn}, again. {text}"], args.n)
        return {"load": process.load_seconds, "prompt": most / first["seconds"],
                "decode": (whole["tokens"] - 1) / max(whole["seconds"] - first["seconds"], 1e-9),
                "memory": whole["memory"] / 2**20}
    finally:
        process.close()


def count_changed(texts, others):
    """Gives the number of texts that differ.

    >>> count_changed(["a", "b"], ["a", "c"])
    1
    """
    return sum(a != b for a, b in zip(texts, others, strict=True))


def texts_of(args, name, prompts, together, drafting=False):
    process = Process(args, name, drafting)
    try:
        return [text for i in range(0, len(prompts), together)
                for text in process.ask(prompts[i:i + together], args.n)["texts"]]
    finally:
        process.close()


def compare_texts(args, name, prompts):
    kind = ENGINES[name]
    alone = texts_of(args, name, prompts, 1) if kind.shares or kind.drafts else []
    return [f"{count_changed(alone, texts_of(args, name, prompts, TOGETHER))} of {TEXTS}" if kind.shares else "",
            f"{count_changed(alone, texts_of(args, name, prompts, 1, True))} of {TEXTS}" if kind.drafts else ""]


def figure(values):
    """Gives a median, and the distance of the extremes in per cent of it.

    >>> figure([100.0, 90.0, 110.0])
    '100 (20%)'
    """
    middle = statistics.median(values)
    return f"{middle:.3g} ({100 * (max(values) - min(values)) / middle:.0f}%)"


def main(args):
    prompts, text = read_prompts()
    server = Forerun(args).server
    try: text = cut_to(Client(server.url), text, args.prompt - 8)
    finally: server.stop()
    names, rounds, why = args.engines.split(","), {}, {}
    for turn in range(args.rounds):
        for name in [name for name in names if name not in why]:
            try: rounds.setdefault(name, []).append(time_engine(args, name, text, turn))
            except Failure as failure: why[name] = str(failure)
    print(f"{Path(args.model).name}, {args.threads} threads, {args.rounds} rounds, a prompt of {args.prompt} ids, "
          f"{args.n} ids after it\n\n| engine | opening, s | prompt, tokens/s | decode, tokens/s | memory, MiB | "
          f"{TOGETHER} together change | drafts change |\n| --- | --- | --- | --- | --- | --- | --- |")
    for name in names:
        cells = [figure([of[key] for of in rounds[name]]) for key in ("load", "prompt", "decode", "memory")] \
            if name not in why else [why[name], "", "", ""]
        changed = compare_texts(args, name, prompts) if args.texts and name not in why else ["", ""]
        print(f"| {name} | {' | '.join(cells + changed)} |", flush=True)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    for name in ("forerun", "python", "model"): parser.add_argument(name)
    parser.add_argument("-n", type=int, default=64, help="ids after a prompt (default 64)")
    parser.add_argument("-t", "--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--prompt", type=int, default=512, help="ids of the prompt that is timed (default 512)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engines", default=",".join(ENGINES), help="with commas; default: all")
    parser.add_argument("--texts", action="store_true", help=f"compare {TEXTS} texts too")
    parser.add_argument("--child", choices=ENGINES, help=argparse.SUPPRESS)
    parser.add_argument("--drafting", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        import doctest
        sys.exit(doctest.testmod().failed)
    arguments = read_arguments()
    try:
        serve_parent(arguments) if arguments.child else main(arguments)
    except (Failure, OSError) as failure:
        sys.exit(f"{sys.argv[0]}: {failure}")
