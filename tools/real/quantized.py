#!/usr/bin/env python3
"""quantized.py FORERUN PEERS TEXT MODEL CHUNKS TYPE...: runs MODEL in types of llama-quantize, with both engines.

In: the command; the folder of bench/peers/build.sh; a text; a GGUF file, which may be quantized already; the number of
chunks of 512 ids of the text. A TYPE is a type of llama-quantize (IQ3_XXS). Or it is PATTERN=TYPE, the type of the
tensors whose names match the pattern, while all others are Q8_0: a model that was not trained for ternary weights
works with only a few layers of them. Out: a line of markdown for each type. It has forerun's perplexity, and its
distance from llama.cpp's with the same file. It also has the standard error of that distance, which llama-perplexity
computes from forerun's predictions. Weights are rounded with an importance matrix, and each file is removed after it
was measured. The exit status is 1 if the two differ by more than peers.py allows and by more than two standard errors.
A step that fails is reported.
"""
import math
import re
import sys
import tempfile
from pathlib import Path

import peers


def quantize(programs, model, importances, made, kind):
    options, name = (["--tensor-type", kind], "Q8_0") if "=" in kind else ([], kind)
    peers.run(programs / "bin/llama-quantize", "--allow-requantize", "--imatrix", importances, *options, model, made,
              name, 2)


def line(forerun, programs, text, made, kind, chunks):
    predictions = made.with_name("predictions")
    options = ("-m", made, "-f", text, "-c", 512, "--chunks", chunks, "--kl-divergence-base", predictions)
    said = peers.run(forerun, "perplexity", *options)[0].decode()
    ours = peers.perplexity(said, r"^perplexity +([0-9.]+)")
    said = "".join(map(str, peers.run(programs / "bin/llama-perplexity", *options, "--kl-divergence")))
    found = re.search(r"ln\(PPL\(Q\)/PPL\(base\)\) *: *(\S+) *\S+ *([0-9.]+)", said)
    if not found: sys.exit(f"quantized.py: no comparison in: {said[-300:].strip()}")
    apart, error = math.exp(-float(found[1])) - 1, float(found[2])
    print(f"| {kind} | {made.stat().st_size / 1e6:.0f} | {ours:.4f} | {apart:+.2%} ± {error:.2%} |", flush=True)
    return abs(apart) > peers.APART + 2 * error


def main(forerun, programs, text, model, chunks, *kinds):
    model, programs, failed = Path(model), Path(programs), False
    print(f"{model.stem}, {chunks} chunks of 512\n\n| type | MB | perplexity | beside llama.cpp's |\n"
          "| --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        importances, made = Path(folder, "imatrix.gguf"), Path(folder, "made.gguf")
        peers.run(forerun, "imatrix", "-m", model, "-f", text, "-c", 512, "--chunks", chunks, "-o", importances)
        for kind in kinds:
            try:
                quantize(programs, model, importances, made, kind)
                failed |= line(forerun, programs, text, made, kind, chunks)
            except SystemExit as said:
                print(f"| {kind} | {said} |", flush=True)
                failed = True
    return failed


if __name__ == "__main__":
    if len(sys.argv) < 7: sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
