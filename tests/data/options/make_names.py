#!/usr/bin/env python3
"""Writes names.txt, the names of the options of llama.cpp's programs, which tests/cli/test_cli_options.c reads.

In: a folder with llama.cpp's source (the file was made from the source package llama-cpp-python 0.3.36). Out: on
standard output a line for each option: its name, "value" or "flag", and the programs that have it.

    tests/data/options/make_names.py FOLDER > tests/data/options/names.txt
"""
import re
import sys
from pathlib import Path

PROGRAMS = {"COMPLETION": "cli", "CLI": "cli", "SERVER": "server", "PERPLEXITY": "perplexity", "IMATRIX": "imatrix"}
ALL = ["cli", "server", "perplexity", "imatrix"]
OPTION = re.compile(r'\n\s+add_opt\(common_arg\(')
NAMES = re.compile(r'\s*(?://[^\n]*\n\s*)*\{([^}]*)\}\s*,\s*(?:\{([^}]*)\})?')


def of_common(text):
    for part in OPTION.split(text)[1:]:
        match = NAMES.match(part)
        names = re.findall(r'"(-[^"]+)"', match.group(1) + (match.group(2) or ""))
        taker = re.search(r'\[[&\w, =]*\]\((common_params[^)]*)\)', part).group(1)
        value = "value" if "string" in taker or "int" in taker else "flag"
        examples = re.search(r'set_examples\((.*?)\)', part, re.S)
        words = set(re.findall(r'LLAMA_EXAMPLE_(\w+)', examples.group(1))) if examples else {"COMMON"}
        if examples and not words:  # mmproj_examples: the multimodal programs, the server and the command
            words = {"SERVER", "CLI"}
        excluded = re.search(r'set_excludes\(\{(.*?)\}\)', part, re.S)
        without = re.findall(r'LLAMA_EXAMPLE_(\w+)', excluded.group(1)) if excluded else []
        programs = ALL if "COMMON" in words else sorted({PROGRAMS[w] for w in words if w in PROGRAMS})
        programs = [p for p in programs if p not in {PROGRAMS.get(w) for w in without}]
        for name in names:
            yield name, value, programs


def of_bench(text):
    body = text[text.index("static cmd_params parse_cmd_params"):]
    for match in re.finditer(r'arg == "(-[^"]+)"(?: \|\| arg == "(-[^"]+)")?(?: \|\| arg == "(-[^"]+)")?'
                             r'(?: \|\| arg == "(-[^"]+)")?\)\s*\{([^}]*)', body):
        *names, rest = match.groups()
        for name in filter(None, names):
            yield name, "value" if "++i" in rest else "flag", ["bench"]


def of_quantize(text):
    for match in re.finditer(r'strcmp\(argv\[arg_idx\], "(--[^"]+)"\) == 0(.*?)(?=strcmp|\} else \{)', text, re.S):
        yield match.group(1), "value" if "++arg_idx" in match.group(2) else "flag", ["quantize"]


def main(folder):
    found = {}
    for name, value, programs in [
            *of_common((folder / "common/arg.cpp").read_text()),
            *of_bench((folder / "tools/llama-bench/llama-bench.cpp").read_text()),
            *of_quantize((folder / "tools/quantize/quantize.cpp").read_text())]:
        for program in programs:
            found[(name, program)] = value
    for name, value in sorted({(name, value) for (name, _), value in found.items()}):
        programs = sorted(p for (n, p), v in found.items() if n == name and v == value)
        print(name, value, ",".join(programs))


main(Path(sys.argv[1]))
