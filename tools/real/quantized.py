#!/usr/bin/env python3
"""quantized.py FORERUN PEERS TEXT MODEL CHUNKS TYPE...: MODEL in each type of llama-quantize's, run by both engines.

In: the command; the folder of bench/peers/build.sh; a text; a GGUF file, which may be quantized already; chunks of 512
ids of the text. A TYPE is what llama-quantize takes (IQ3_XXS), or one for the layers' matrices alone, the rest in Q8_0
(=nvfp4). Out: a line of markdown for each with the perplexities, of weights rounded with an importance matrix. Each
file is gone when it is measured. Exit status 1 where they are apart by more than peers.py allows. A step that fails is
said.
"""
import sys
import tempfile
import time
from pathlib import Path

import peers


def quantize(programs, model, importances, made, kind):
    options = ["--tensor-type", f"attn|ffn{kind}", made, "Q8_0"] if kind.startswith("=") else [made, kind]
    peers.run(programs / "bin/llama-quantize", "--allow-requantize", "--imatrix", importances, model, *options, 2)


def line(forerun, programs, text, made, kind, chunks):
    start = time.monotonic()
    ours, theirs = peers.both_perplexities(forerun, programs, made, text, chunks)
    apart = ours / theirs - 1
    print(f"| {kind} | {made.stat().st_size / 1e6:.0f} | {ours:.4f} | {theirs:.4f} | {apart:+.2%} |", flush=True)
    print(f"{time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    return abs(apart) > peers.APART


def main(forerun, programs, text, model, chunks, *kinds):
    model, programs, failed = Path(model), Path(programs), False
    print(f"{model.stem}, {chunks} chunks of 512\n\n| type | MB | forerun | llama.cpp | apart |\n"
          "| --- | --- | --- | --- | --- |", flush=True)
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
