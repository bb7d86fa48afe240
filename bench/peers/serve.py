#!/usr/bin/env python3
"""Compares the speed of servers with OpenAI's interface, which run in turn on the same file, in one table.

usage: bench/peers/serve.py FORERUN LLAMA-SERVER MODEL [OPTIONS]

In: both commands ("-" leaves one out), and a model that both can read. --server NAME=COMMAND adds a server, with
{port} and {model} in its command. --url NAME=URL adds one that runs already. Out: markdown on standard output; with
--json FILE all figures; progress on standard error. The first server's figures are compared with the second's: a ratio
above 1 means that the first is better.

In each turn a server is started and warmed up, and then runs all cases. A case has a number of clients and a length of
the prompts. Each client sends its next request when its last one has ended. All prompts differ, but those of
"1000+128" begin with the same 1000 ids. The rate counts generated ids from the first request to the last answer, so it
includes the prompts. "first" is the time to the first token. Gaps are the times between the pieces of a stream; with
accepted drafts a piece has several ids. The pace compares the gaps of three streams before a prompt of --long ids
arrives with those while it is run.

Stop everything else on the machine first. --self-test checks the arithmetic.
"""
import argparse
import json
import os
import statistics
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tools" / "clients"))
from server import Client, Failure, Server  # noqa: E402

PATH = "/v1/completions"
SHARED = 1000
STREAMS, QUIET = 3, 24  # number of streams whose pace is measured, and of gaps in each before the long prompt is sent

# figure: (its unit, less is better)
FIGURES = {"rate": ("tokens/s", False), "first": ("ms", True), "gap50": ("ms", True), "gap99": ("ms", True)}
PACE = {"quiet": "before", "meanwhile": "meanwhile", "worst": "meanwhile, 99%", "ratio": "meanwhile / before"}


# --------------------------------------------------------------------------------------------------------- arithmetic

def quantile(values, part):
    """Gives the least value that at least this part of the values does not exceed.

    >>> quantile([3, 1, 2, 4], 0.5), quantile([3, 1, 2, 4], 0.99), quantile([7], 0.5), quantile([], 0.5)
    (2, 4, 7, nan)
    """
    if not values: return float("nan")
    return sorted(values)[max(0, -(-int(part * 1000) * len(values) // 1000) - 1)]


def gaps(times):
    """Gives the times between the pieces of a stream.

    >>> gaps([1.0, 1.5, 3.0])
    [0.5, 1.5]
    """
    return [b - a for a, b in zip(times, times[1:])]


def figures(streams):
    """Gives a case's figures from its streams. A stream is (time of its request, times of its pieces, number of ids).

    >>> figures([(0.0, [1.0, 1.5, 2.0], 3), (0.0, [2.0, 2.25, 4.0], 5)])
    {'rate': 2.0, 'first': 1000.0, 'gap50': 500.0, 'gap99': 1750.0}
    """
    begin, end = min(sent for sent, _, _ in streams), max(times[-1] for _, times, _ in streams)
    all_gaps = [gap for _, times, _ in streams for gap in gaps(times)]
    return {"rate": sum(count for _, _, count in streams) / (end - begin),
            "first": 1e3 * quantile([times[0] - sent for sent, times, _ in streams], 0.5),
            "gap50": 1e3 * quantile(all_gaps, 0.5), "gap99": 1e3 * quantile(all_gaps, 0.99)}


def pace_figures(streams, settled, begin, end):
    """Compares gaps of streams before the long prompt came, once all streams had begun, with the gaps while it was
    run.

    >>> pace_figures([[0.0, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.1]], 0.3, 0.6, 1.0)
    {'quiet': 100.0, 'meanwhile': 200.0, 'worst': 200.0, 'ratio': 2.0}
    """
    before = [b - a for times in streams for a, b in zip(times, times[1:]) if settled <= a and b <= begin]
    during = [b - a for times in streams for a, b in zip(times, times[1:]) if begin < b and a < end]
    quiet, meanwhile = quantile(before, 0.5), quantile(during, 0.5)
    return {"quiet": round(1e3 * quiet, 6), "meanwhile": round(1e3 * meanwhile, 6),
            "worst": round(1e3 * quantile(during, 0.99), 6), "ratio": round(meanwhile / quiet, 6)}


def ratio(name, first, second):
    """Gives a text that says how many times better the first value is.

    >>> ratio("rate", 30, 10), ratio("first", 30, 10)
    ('3.00', '0.33')
    """
    if not first or not second: return ""
    return f"{second / first if FIGURES[name][1] else first / second:.2f}"


# ------------------------------------------------------------------------------------------------------------ prompts

class Prompts:
    """Gives pieces of a real text, a different one each time."""

    def __init__(self, text):
        self.text, self.ids, self.at, self.lock = text, None, 0, threading.Lock()

    def learn(self, url):
        """Gets the ids of the text from a server that can tokenize. Without one, prompts are text, four bytes for each
        id."""
        answer = Client(url).ask("POST", "/tokenize", {"content": self.text})
        self.ids = answer.json().get("tokens") if answer.status == 200 else None

    def take(self, count):
        source, width = (self.ids, 1) if self.ids else (self.text, 4)
        with self.lock:
            self.at = (self.at + 37) % (len(source) - count * width)
            return source[self.at:self.at + count * width]

    def shared(self, count):
        source, width = (self.ids, 1) if self.ids else (self.text, 4)
        return source[-SHARED * width:] + self.take(count)


def prompt_of(prompts, kind):
    return prompts.shared(int(kind.split("+")[1])) if "+" in kind else prompts.take(int(kind))


# --------------------------------------------------------------------------------------------------------- measurement

def body_of(args, prompt, new):
    return {"model": args.name, "prompt": prompt, "max_tokens": new, "temperature": 0, "ignore_eos": True,
            "stream": True, "stream_options": {"include_usage": True}}


def ask(args, client, prompt, new):
    """Sends a request, and gives (time of the request, times of the pieces, number of ids)."""
    sent, times, count = time.perf_counter(), [], 0
    for at, event in client.events(PATH, body_of(args, prompt, new)):
        if any(choice.get("text") for choice in event.get("choices", [])): times.append(at)
        if event.get("usage"): count = event["usage"]["completion_tokens"]
    if not times: raise Failure("an answer without text")
    return sent, times, count or len(times)


def case(args, url, prompts, clients, kind):
    streams, failures, start = [], [], threading.Barrier(clients)

    def work():
        client = Client(url)
        start.wait()
        try:
            for _ in range(args.each): streams.append(ask(args, client, prompt_of(prompts, kind), args.new))
        except (Failure, OSError) as failure:
            failures.append(failure)
        client.close()

    run_all([work] * clients)
    if failures: raise Failure(f"{clients} clients, prompts of {kind}: {failures[0]}")
    return figures(streams)


def run_all(works):
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads: thread.start()
    for thread in threads: thread.join()


def wait_for(condition, failures, patience):
    """Waits until the condition holds, and gives the time then."""
    end = time.monotonic() + patience
    while not condition():
        if failures or time.monotonic() > end: raise Failure(failures[0] if failures else "no end of waiting")
        time.sleep(0.01)
    return time.perf_counter()


def pace(args, url, prompts):
    """Runs three streams, and in the middle of them a long prompt. Each stream is read by a thread of its own. If one
    waited for another, all that its stream had sent meanwhile would seem to arrive at once."""
    streams, failures, over = [[] for _ in range(STREAMS)], [], threading.Event()

    def listen(times):
        client = Client(url)
        try:
            for at, _ in client.events(PATH, body_of(args, prompts.take(128), args.long)):
                times.append(at)
                if over.is_set(): break
            else: failures.append("a stream ended before the long prompt did")
        except (Failure, OSError) as failure:
            failures.append(failure)
        client.close()

    def enter():
        try:
            settled = wait_for(lambda: all(streams), failures, args.patience)
            counts = [len(times) for times in streams]
            enough = lambda: all(len(times) >= count + QUIET for times, count in zip(streams, counts))
            begin = wait_for(enough, failures, args.patience)
            answer = Client(url).ask("POST", PATH, body_of(args, prompts.take(args.long), 1) | {"stream": False})
            span.extend([settled, begin, time.perf_counter()])
            if answer.status != 200: raise Failure(f"a prompt of {args.long}: {answer.status} {answer.body[:300]}")
        except (Failure, OSError) as failure:
            failures.append(failure)
        over.set()

    span = []
    run_all([lambda times=times: listen(times) for times in streams] + [enter])
    if failures: raise Failure(f"the pace: {failures[0]}")
    return pace_figures(streams, *span)


def turn(args, server, prompts):
    """Runs all cases of one server once."""
    found = {}
    with server:
        if prompts.ids is None: prompts.learn(server.url)
        ask(args, Client(server.url), prompts.take(64), 8)
        for clients in args.clients:
            for kind in args.prompts:
                got = found[f"{clients} x {kind}"] = case(args, server.url, prompts, clients, kind)
                print(f"  {clients} x {kind}:", ", ".join(f"{name} {value:.1f}" for name, value in got.items()),
                      file=sys.stderr, flush=True)
        if args.long: found["pace"] = pace(args, server.url, prompts)
    return found


# --------------------------------------------------------------------------------------------------------------- table

def middle(turns, name, figure):
    values = [found[name][figure] for found in turns if name in found]
    return statistics.median(values) if values else None


def table(results):
    names = list(results)
    lines = [f"| clients x prompt | figure | {' | '.join(names)} | ratio |", "|" + " --- |" * (len(names) + 3)]
    cases = [name for name in results[names[0]][0] if name != "pace"]
    for name in cases:
        for figure, (unit, _) in FIGURES.items():
            values = [middle(results[server], name, figure) for server in names]
            said = ratio(figure, *values[:2]) if len(values) > 1 else ""
            lines.append(f"| {name} | {figure}, {unit} | {' | '.join(f'{v:.1f}' for v in values)} | {said} |")
    for figure, words in PACE.items():
        values = [middle(results[server], "pace", figure) for server in names]
        if None in values: continue
        unit = "" if figure == "ratio" else ", ms"
        lines.append(f"| pace | gap {words}{unit} | {' | '.join(f'{v:.2f}' for v in values)} | |")
    return "\n".join(lines)


def servers_of(args):
    """Gives {name: server}, in the order of a turn."""
    room = args.context * args.places
    servers = {}
    if args.forerun != "-":
        servers["forerun"] = Server(f"{args.forerun} serve -m {args.model} -np {args.places} -c {args.context} "
                                    f"-t {args.threads} --port {{port}} {args.forerun_options}")
    if args.llama_server != "-":
        servers["llama-server"] = Server(f"{args.llama_server} -m {args.model} -np {args.places} -c {room} -t "
                                         f"{args.threads} --port {{port}} --no-ui {args.llama_options}")
    for text in args.server:
        name, command = text.split("=", 1)
        servers[name] = Server(command.replace("{model}", args.model))
    for text in args.url:
        name, url = text.split("=", 1)
        servers[name] = Server(url=url)
    return servers


def arguments():
    words = lambda text: text.split(",")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("forerun")
    parser.add_argument("llama_server", metavar="llama-server")
    parser.add_argument("model")
    parser.add_argument("--server", action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument("--url", action="append", default=[], metavar="NAME=URL")
    parser.add_argument("--name", default="default", help='"model" of the requests')
    parser.add_argument("--forerun-options", default="", help='such as "--spec-type ngram"')
    parser.add_argument("--llama-options", default="")
    parser.add_argument("--turns", type=int, default=2, help="of each server")
    parser.add_argument("--each", type=int, default=2, help="requests of a client")
    parser.add_argument("--clients", type=lambda text: [int(word) for word in words(text)], default=[1, 4, 8])
    parser.add_argument("--prompts", type=words, default=["128", "512", f"{SHARED}+128"])
    parser.add_argument("--new", type=int, default=128)
    parser.add_argument("--long", type=int, default=4096, help="ids of the prompt beside streams; 0: none")
    parser.add_argument("--context", type=int, default=5120, help="of each text")
    parser.add_argument("--places", type=int, default=8)
    parser.add_argument("-t", "--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--patience", type=int, default=600, help="seconds")
    parser.add_argument("--text", type=Path, help="that prompts are cut from; the documents of this checkout")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def main(args):
    root = HERE.parent.parent
    files = [args.text] if args.text else sorted(root.glob("*.md")) + sorted(root.glob("*/*.md"))
    prompts, servers = Prompts("\n".join(file.read_text() for file in files)), servers_of(args)
    results = {name: [] for name in servers}
    for number in range(args.turns):
        for name, server in servers.items():
            print(f"turn {number + 1}: {name}", file=sys.stderr, flush=True)
            results[name].append(turn(args, server, prompts))
    print(f"{args.model}, {args.threads} threads, {args.new} new ids, {args.turns} turns\n\n{table(results)}")
    if args.json:
        args.json.write_text(json.dumps({"model": args.model, "threads": args.threads, "new": args.new,
                                         "servers": {name: server.command for name, server in servers.items()},
                                         "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        import doctest
        sys.exit(1 if doctest.testmod().failed else 0)
    try:
        main(arguments())
    except Failure as failure:
        sys.exit(f"serve.py: {failure}")
