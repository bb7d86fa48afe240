"""Writes tests/data/mixtures.json: the types that llama-quantize gives the tensors of a model of 28 layers.

    python3 tests/references/quantize_mixtures.py LLAMA_QUANTIZE MODEL.gguf tests/data/mixtures.json

MODEL is Qwen2.5-Coder-1.5B-Instruct, which tools/real/fetch downloads: its rows have 1536 and 8960 values, and 6 heads
share keys and values. The file has the row length of each matrix by its name. For each mixture and set of options it
has the type of every matrix, from a dry run, in the order of the names.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

from gguf import GGUFReader

MIXTURES = "Q2_K Q2_K_S Q3_K_S Q3_K_M Q3_K_L IQ4_XS IQ4_NL Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K Q8_0 Q4_0 Q5_1".split()
OPTIONS = [[], ["--pure"], ["--output-tensor-type", "q8_0", "--token-embedding-type", "q4_k"],
           ["--tensor-type", "attn_v=q8_0", "--tensor-type", "blk.[1-3].ffn=q5_0"]]


def dry_run(quantize, model, mixture, options):
    run = subprocess.run([quantize, "--dry-run", "--allow-requantize", *options, model, mixture], capture_output=True,
                         text=True, check=True)
    types = {}
    for line in (run.stdout + run.stderr).splitlines():
        found = re.match(r"\[ *\d+/ *\d+\] (\S+) +- \[.*\], type = +(\S+), size = .*?(?:\((\S+)\))?$", line)
        if found: types[found[1]] = (found[3] or found[2]).upper()
    return types


def main():
    quantize, model, out = sys.argv[1:]
    cols = {t.name: int(t.shape[0]) for t in GGUFReader(model).tensors if len(t.shape) == 2}
    cases = []
    for mixture in MIXTURES:
        for options in OPTIONS:
            types = dry_run(quantize, model, mixture, options)
            cases.append({"mixture": mixture, "options": options, "types": " ".join(types[name] for name in cols)})
    Path(out).write_text(json.dumps({"layers": 28, "gqa": 6, "cols": cols, "cases": cases}, indent=0) + "\n")


main()
