#!/usr/bin/env python3
"""clients.py MODEL...: runs OpenAI's, langchain's and Anthropic's clients and curl against servers.

In: models that the servers can open; --forerun COMMAND, --llama-server COMMAND, or --url URL of a server that runs
already. Out: a table of all cases; what failed and why; and how the forms of forerun's answers differ from those of
llama-server with the same file. --json FILE gives the same as JSON. The exit status is 1 if a case failed on forerun,
or on the server of --url.
"""
import argparse
import json
import os
import sys
import time
import traceback
from pathlib import Path

os.environ["LANGSMITH_TRACING"] = "false"
from cases import CASES, Skip, Target  # noqa: E402
import dialects, recorded  # noqa: E402, F401  (more of them)
from server import Failure, Server  # noqa: E402
from shapes import differences  # noqa: E402

CONTEXT, PLACES = 2048, 4


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL[,OPTIONS]", help="of each server; options of forerun's")
    parser.add_argument("--forerun", help="the command")
    parser.add_argument("--llama-server", help="the command")
    parser.add_argument("--url", help="a server that runs, which is asked instead of all")
    parser.add_argument("--other", action="store_true", help="that server is not forerun")
    parser.add_argument("-t", "--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", default="", help="cases whose names have this in them")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


class Column:
    """A server with one model, and the results of its cases."""

    def __init__(self, name, model, server, ours):
        self.name, self.model, self.server, self.ours = name, model, server, ours
        self.said, self.shapes = {}, {}

    def run(self, only):
        begin = time.monotonic()
        with self.server:
            print(f"{self.name} {self.model}: answers after {time.monotonic() - begin:.1f} s", file=sys.stderr)
            target = Target(self.server.url, self.ours)
            for name, function in CASES:
                if only not in name: continue
                self.said[name] = outcome(function, target)
                print(f"{time.monotonic() - begin:6.1f} s  {self.said[name][0]:4}  {name}", file=sys.stderr, flush=True)
                if not self.server.alive():
                    self.said[name] = ("FAIL", f"the server ended: {self.server.tail()}")
                    break
        self.shapes = target.shapes


def outcome(function, target):
    try:
        function(target)
        return "ok", ""
    except Skip as reason:
        return "-", str(reason)
    except Exception as error:  # a client may raise any exception
        at = traceback.extract_tb(error.__traceback__)
        line = next((frame for frame in reversed(at) if frame.name == function.__name__), at[-1])
        return "FAIL", f"line {line.lineno}: {line.line}\n      {type(error).__name__}: {str(error)[:600]}"


def columns_of(args):
    if args.url:
        url = args.url.rstrip("/").removesuffix("/v1")
        return [Column("server", url, Server(url=url), not args.other)]
    columns = []
    for text in args.models:
        model, _, options = text.partition(",")
        name = Path(model).stem if Path(model).is_file() else Path(model).name
        if args.forerun:
            command = f"{args.forerun} serve -m {model} {options} -np {PLACES} -c {CONTEXT} --metrics --slots"
            command += f" -t {args.threads}"
            columns.append(Column("forerun", name, Server(command + " --port {port}"), True))
        if args.llama_server and Path(model).is_file():
            command = f"{args.llama_server} -m {model} -np {PLACES} -c {CONTEXT * PLACES} --metrics --slots --no-ui"
            command += f" -t {args.threads}"
            columns.append(Column("llama-server", name, Server(command + " --port {port}"), False))
    return columns


def table(columns):
    lines = ["| client and case | " + " | ".join(f"{column.name} {column.model}" for column in columns) + " |",
             "|" + " --- |" * (len(columns) + 1)]
    for name, _ in CASES:
        if not any(name in column.said for column in columns): continue
        words = [column.said.get(name, ("", ""))[0] for column in columns]
        lines.append(f"| {name} | {' | '.join(words)} |")
    return "\n".join(lines)


def failures(columns):
    lines = []
    for column in columns:
        for name, (word, why) in column.said.items():
            if why: lines.append(f"{word} {column.name} {column.model}, {name}: {why}")
    return "\n".join(lines)


def compared(columns):
    """Returns lines about the differences of forerun's forms from llama-server's, for each model that both have
    run."""
    lines = []
    for ours in (column for column in columns if column.ours):
        theirs = next((column for column in columns if not column.ours and column.model == ours.model), None)
        if not theirs: continue
        lines.append(f"{ours.model}: forerun's answers beside llama-server's")
        for form in sorted(ours.shapes.keys() & theirs.shapes.keys()):
            found = differences(ours.shapes[form], theirs.shapes[form])
            lines += [f"  {form}: {'the same' if not found else ''}"] + [f"    {kind:8} {path}" for kind, path in found]
    return "\n".join(lines)


def main(args):
    columns = columns_of(args)
    if not columns: raise Failure("no server to ask: --forerun, --llama-server and models, or --url")
    for column in columns: column.run(args.only)
    print("\n\n".join(filter(None, [table(columns), failures(columns), compared(columns)])))
    if args.json:
        args.json.write_text(json.dumps([
            {"server": column.name, "model": column.model, "cases": column.said,
             "forms": {form: {path: sorted(types) for path, types in paths.items()}
                       for form, paths in column.shapes.items()}} for column in columns], indent=1) + "\n")
    asked = [column for column in columns if column.ours or args.url]
    return 1 if any(word == "FAIL" for column in asked for word, _ in column.said.values()) else 0


if __name__ == "__main__":
    try:
        sys.exit(main(arguments()))
    except Failure as failure:
        sys.exit(f"clients.py: {failure}")
