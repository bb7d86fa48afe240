#!/usr/bin/env python3
"""agent_turns.py: measures the seconds to the first token of each turn of an agent, here and with llama-server.

In: --model FILE.gguf, --forerun PATH, --llama-server PATH (may be left out), --turns N, --threads N, --titles. Out:
first, for a chat of 1,000 tokens, the seconds to the first token of its first turn, with an empty cache, and of its
second turn. Then, for each turn of the agent and each server, the prompt's tokens, how many of them were in the cache,
and the seconds to the first token. Last, the sums and their ratio. Both servers have one slot. The exit status is 1 if
a server fails or a given limit is exceeded: --most-ratio limits the ratio of the sums, --most-second-turn the chat's
second turn.

The conversation was written for this: a system text, tools, and turns in which the agent calls a tool, is given a
file, and answers. The agent's answers are written too, so that both servers get the same prompts. With --titles a
title is asked for between turns, in a short conversation of its own, as clients do.
"""
import argparse
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request

SYSTEM = ("You are an agent that works on a repository of programs. You read files before you change them, you run the "
          "tests after each change, and you say in one sentence what you did and why. Never guess at what a file "
          "holds: read it. Prefer small changes. Where a test fails, read its output, and mend the cause. ") * 5

TOOLS = [{"type": "function", "function": {"name": name, "description": what, "parameters": {
    "type": "object", "properties": {p: {"type": kind, "description": told} for p, kind, told in members},
    "required": [members[0][0]]}}} for name, what, members in (
        ("read_file", "Reads a file of the repository, or some of its lines.",
         [("path", "string", "Where it lies below the root."), ("first", "integer", "The first line that is wanted."),
          ("last", "integer", "The last one.")]),
        ("write_file", "Writes a file of the repository anew.",
         [("path", "string", "Where it lies below the root."), ("text", "string", "All that it holds from then on.")]),
        ("run", "Runs a command in the root and gives what it prints.",
         [("command", "string", "A line for the shell."), ("seconds", "integer", "How long it may take at most.")]),
        ("search", "Finds lines that match an expression.",
         [("pattern", "string", "A regular expression."), ("below", "string", "The folder that is looked through.")]))]

PARTS = ["parser", "queue", "cache", "index", "writer", "reader", "clock", "router", "store", "worker"]


def file_of(part, turn):
    """Makes lines of a program, like a tool's result. They differ from turn to turn."""
    lines = [f"def {part}_{turn}_{i}(items, limit={turn * 7 + i}):\n"
             f"    kept = [x for x in items if x % {i + 2} == {turn}]\n"
             f"    return kept[:limit]\n" for i in range(10)]
    return "\n".join(lines)


def turns_of(count):
    """Makes the messages that each turn adds: the question, and the agent's answer, which the next turn contains."""
    for turn in range(count):
        part = PARTS[turn % len(PARTS)]
        call = {"id": f"call_{turn}", "type": "function", "function": {
            "name": "read_file", "arguments": json.dumps({"path": f"src/{part}_{turn}.py"})}}
        if turn % 2 == 0:
            question = f"Step {turn}: the {part} drops items beyond its limit. Find out why."
            yield ([{"role": "user", "content": question}],
                   [{"role": "assistant", "content": "", "tool_calls": [call]}])
        else:
            last = f"call_{turn - 1}"
            yield ([{"role": "tool", "tool_call_id": last, "content": file_of(PARTS[(turn - 1) % len(PARTS)], turn)}],
                   [{"role": "assistant", "content": f"The limit of step {turn - 1} is applied after the filter, so "
                     "that items which pass are cut off. I would raise it to the length of the input, and add a test "
                     "with more items than the limit, one of which passes last."}])


class Server:
    def __init__(self, command, port):
        self.url = f"http://127.0.0.1:{port}"
        self.log = open("/dev/null", "wb")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        for _ in range(1200):
            if self.process.poll() is not None:
                raise SystemExit(f"{command[0]} ended with {self.process.returncode}")
            try:
                with urllib.request.urlopen(self.url + "/health", timeout=5) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, ConnectionError):
                pass
            time.sleep(0.25)
        raise SystemExit(f"{command[0]} is not ready after five minutes")

    def ask(self, body):
        """Sends a request. Returns the seconds to the first token, the prompt's tokens, and how many of them were in
        the cache."""
        body = {**body, "stream": True, "stream_options": {"include_usage": True}, "temperature": 0, "model": "any"}
        request = urllib.request.Request(self.url + "/v1/chat/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        start, first, usage, cached = time.monotonic(), None, {}, 0
        with urllib.request.urlopen(request, timeout=1800) as answer:
            for line in answer:
                if not line.startswith(b"data: {"):
                    continue
                event = json.loads(line[6:])
                for choice in event.get("choices", []):
                    delta = choice.get("delta", {})
                    said = any(delta.get(k) for k in ("content", "tool_calls", "reasoning_content"))
                    if first is None and (said or choice.get("finish_reason")):
                        first = time.monotonic() - start
                usage = event.get("usage") or usage
                cached = event.get("timings", {}).get("cache_n", cached)
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", cached)
        return first, usage.get("prompt_tokens", 0), cached

    def end(self):
        self.process.terminate()
        self.process.wait(60)


def converse(server, args):
    rows, messages = [], [{"role": "system", "content": SYSTEM}]
    for asked, said in turns_of(args.turns):
        messages += asked
        rows.append(server.ask({"messages": messages, "tools": TOOLS, "max_tokens": args.tokens}))
        messages += said
        if args.titles:
            server.ask({"messages": [{"role": "system", "content": "You name conversations in three words."},
                                     {"role": "user", "content": json.dumps(asked)[:400]}], "max_tokens": 8})
    return rows


def second_turn(server):
    """Returns the seconds to the first token of a chat's first turn of about 1,000 tokens, and of its second."""
    text = " ".join(f"Note {i}: the {PARTS[i % 10]} was measured at {i * 37 % 101} units on day {i}."
                    for i in range(48))
    messages = [{"role": "user", "content": text + " Which was the largest?"}]
    cold = server.ask({"messages": messages, "max_tokens": 16})
    messages += [{"role": "assistant", "content": "The largest was measured on day 30."},
                 {"role": "user", "content": "And the smallest?"}]
    return cold, server.ask({"messages": messages, "max_tokens": 16})


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--model", required=True)
    options.add_argument("--forerun", default="build/forerun")
    options.add_argument("--llama-server")
    options.add_argument("--turns", type=int, default=20)
    options.add_argument("--threads", type=int)
    options.add_argument("--tokens", type=int, default=24, help="of each answer at most")
    options.add_argument("--titles", action="store_true")
    options.add_argument("--port", type=int, default=18177)
    options.add_argument("--most-ratio", type=float)
    options.add_argument("--most-second-turn", type=float)
    args = options.parse_args()
    threads = ["-t", str(args.threads)] if args.threads else []
    usual = ["-m", args.model, "-c", "16384", "-np", "1", "--host", "127.0.0.1"]
    commands = {"forerun": [args.forerun, "serve", *usual, "--port", str(args.port), *threads]}
    if args.llama_server:
        commands["llama-server"] = [args.llama_server, *usual, "--port", str(args.port + 1), "--jinja", *threads]
    told, wrong = {}, False
    for name, command in commands.items():
        server = Server(command, args.port + (name != "forerun"))
        try:
            told[name] = converse(server, args)
            cold, warm = second_turn(server)
        finally:
            server.end()
        share = warm[0] / cold[0]
        print(f"{name}: a chat's first turn of {cold[1]} tokens {cold[0]:.3f} s, its second of {warm[1]}, {warm[2]} of "
              f"them there already, {warm[0]:.3f} s: {100 * share:.1f} %", flush=True)
        if name == "forerun" and args.most_second_turn and share > args.most_second_turn:
            wrong = True
    print("turn  " + "  ".join(f"{name:>14}: tokens  there  seconds" for name in told))
    for turn in range(args.turns):
        print(f"{turn + 1:4}  " + "  ".join(f"{'':14}  {row[turn][1]:6}  {row[turn][2]:5}  {row[turn][0]:7.3f}"
                                            for row in told.values()))
    sums = {name: sum(row[0] for row in rows) for name, rows in told.items()}
    later = {name: sum(row[0] for row in rows[1:]) for name, rows in told.items()}
    for name in told:
        print(f"{name}: {sums[name]:.2f} s to all first tokens, {later[name]:.2f} s without the first turn's")
    if len(told) == 2:
        ratio = sums["forerun"] / sums["llama-server"]
        print(f"ratio {ratio:.2f} of all turns, {later['forerun'] / later['llama-server']:.2f} without the first")
        wrong |= bool(args.most_ratio) and ratio > args.most_ratio
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
