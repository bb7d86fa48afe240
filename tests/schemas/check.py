#!/usr/bin/env python3
"""Checks a model's texts under schemas with Python's jsonschema. Each text must fit its schema and be the same with
and without drafts. If a schema is refused, the line must name the place in it.

usage: tests/schemas/check.py FORERUN [--count N] [--only N] [--sample FILE] [--keep FOLDER]

In: the built command. The schemas are 100 that tools use (tests/data/grammars/tools.jsonl) and as many of generate.py
as make N (1000). --only: the one with this number. Out: each refused schema with its line, and each text that does not
fit its schema or differs with drafts; then counts, also of texts that reached the limit of tokens. Exit status 1 if
there is any such text. --sample: writes 40 schemas whose texts end, with these texts, for
tests/language/grammar/test_schemas.c. --keep: a folder for jobs and answers.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from decimal import Decimal

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import generate

try:
    import jsonschema
except ImportError:
    sys.exit("tests/schemas/check.py: the Python package jsonschema is missing")

HERE = os.path.dirname(os.path.abspath(__file__))
DEMO = f"{HERE}/../../tools/demo"
LIMIT = 400  # tokens in a text
PROMPT = "A value in JSON:\n"


def all_schemas(count):
    lines = [json.loads(line) for line in open(f"{HERE}/../data/grammars/tools.jsonl", encoding="utf-8")]
    given = [line["schema"] for line in lines][:count]
    return given + generate.schemas(count - len(given))


def job(number, schema):
    return {"id": number, "prompt": PROMPT, "json_schema": schema, "n": LIMIT, "temp": 1, "seed": number}


def answers(forerun, jobs, folder, name, *options):
    """Returns the answers of one run by their numbers."""
    path = f"{folder}/{name}.jsonl"
    command = [forerun, "batch", "-m", f"{DEMO}/target", "-f", jobs, "-o", path, "-np", "8", *options]
    run = subprocess.run(command, capture_output=True, text=True)
    if not os.path.exists(path): sys.exit(f"{' '.join(command)}: {run.stderr}")
    return {answer["id"]: answer for answer in map(json.loads, open(path, encoding="utf-8"))}


def judge(schema, text):
    """Returns the reason why a text does not fit a schema, or None if it fits. Numbers are read as decimal ones: 0.3
    is a multiple of 0.1."""
    exact = json.loads(json.dumps(schema), parse_float=Decimal)
    kind = jsonschema.validators.validator_for(exact)
    kind.check_schema(schema)
    try:
        kind(exact, format_checker=kind.FORMAT_CHECKER).validate(json.loads(text, parse_float=Decimal))
    except Exception as error:  # jsonschema may raise anything for a wrong text
        return str(error).splitlines()[0]


class Counts:
    def __init__(self):
        self.refused = self.ended = self.cut = self.bad = 0

    def fail(self, number, schema, why):
        self.bad += 1
        print(f"{number}: {why}\n    {json.dumps(schema, ensure_ascii=False)}")


def look(counts, number, schema, plain, drafted):
    """Counts a text's faults. Returns true if the text has ended and fits its schema."""
    if "error" in plain:
        counts.refused += 1
        print(f"{number}: refused: {plain['error']}")
        if "at #" not in plain["error"]: counts.fail(number, schema, "refused without a place")
        if "error" not in drafted: counts.fail(number, schema, "not refused with drafts")
        return False
    if plain["ids"] != drafted.get("ids"): counts.fail(number, schema, "another text with drafts")
    if len(plain["ids"]) >= LIMIT:
        counts.cut += 1
        return False
    counts.ended += 1
    why = judge(schema, plain["text"])
    if why: counts.fail(number, schema, f"{plain['text']!r}: {why}")
    return not why


def write_sample(path, schemas, plain, good):
    """Writes 40 short schemas whose short texts end, evenly chosen from all of these."""
    short = [n for n in good if len(plain[n]["text"]) < 400 and len(json.dumps(schemas[n])) < 700]
    with open(path, "w", encoding="utf-8") as file:
        for n in short[::max(1, len(short) // 40)][:40]:
            line = {"job": job(n, schemas[n]), "text": plain[n]["text"]}
            file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


def run(options, folder):
    schemas = all_schemas(options.count)
    chosen = [options.only] if options.only is not None else range(len(schemas))
    jobs = f"{folder}/jobs.jsonl"
    with open(jobs, "w", encoding="utf-8") as file:
        for n in chosen: file.write(json.dumps(job(n, schemas[n]), ensure_ascii=False) + "\n")
    plain = answers(options.forerun, jobs, folder, "plain", "--draft-max", "0")
    drafted = answers(options.forerun, jobs, folder, "drafted", "-md", f"{DEMO}/assistant", "--draft-max", "5")
    counts, good = Counts(), []
    for n in chosen:
        if n not in plain or n not in drafted: counts.fail(n, schemas[n], "no answer")
        elif look(counts, n, schemas[n], plain[n], drafted[n]): good.append(n)
    if options.sample: write_sample(options.sample, schemas, plain, good)
    print(f"{len(chosen)} schemas: {counts.refused} refused with their place, {counts.ended} texts ended and were "
          f"judged, {counts.cut} cut at {LIMIT} tokens; {counts.bad} wrong")
    return counts.bad > 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("forerun")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--only", type=int)
    parser.add_argument("--sample")
    parser.add_argument("--keep")
    options = parser.parse_args()
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
        return run(options, options.keep)
    with tempfile.TemporaryDirectory() as folder: return run(options, folder)


if __name__ == "__main__":
    sys.exit(main())
