#!/usr/bin/env python3
"""quantizers.py FORERUN PEERS MODEL TEXT [CHUNKS]: compares the loss by quantizing with llama-quantize's.

In: the command; build.sh's folder of programs; a published folder (the demo: tools/demo/target); a text that the model
was not trained on. Out: markdown. forerun computes every figure, so that only the files differ. The figures are
perplexity, and the mean divergence from the predictions of float32 weights, in chunks of 512 ids.
"""
import os
import re
import subprocess
import sys
import tempfile

TYPES = {"bf16": "BF16", "f16": "F16", "q8_0": "Q8_0", "q6_k": "Q6_K", "q5_k": "Q5_K_M", "q5_1": "Q5_1", "q5_0": "Q5_0",
         "q4_k": "Q4_K_M", "iq4_nl": "IQ4_NL", "q4_1": "Q4_1", "q4_0": "Q4_0"}
KV_TYPES = ["f32", "f16", "bf16", "q8_0", "q4_0"]


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                          errors="replace")
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout[-1000:]}")
    return done.stdout


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    forerun, peers, model, text = sys.argv[1:5]
    chunks = ["--chunks", sys.argv[5]] if len(sys.argv) > 5 else []
    with tempfile.TemporaryDirectory() as folder:
        exact, logits, ours, theirs = (f"{folder}/{name}" for name in ("f32.gguf", "base", "ours.gguf", "theirs.gguf"))
        run(forerun, "quantize", "-m", model, "--type", "f32", "-o", exact)
        exactly = ["-ctk", "f32", "-ctv", "f32"]
        base = run(forerun, "perplexity", "-m", exact, "-f", text, "--kl-divergence-base", logits, *exactly, *chunks)

        def compare(path, *options):
            out = run(forerun, "perplexity", "-m", path, "--kl-divergence", "--kl-divergence-base", logits, *options)
            number = lambda name: float(re.search(rf"^{name} +([-0-9.e]+)", out, re.M)[1])
            return f"{number('perplexity'):.4f} | {number('kl-divergence'):.6f} | {number('same-top'):.2f}%"

        print(f"Float32 weights and KV: {' '.join(base.split())}\n\n"
              "| type | bytes, ours / theirs | ours: perplexity | divergence | same top | llama-quantize: perplexity "
              "| divergence | same top |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
        for name, peer in TYPES.items():
            run(forerun, "quantize", "-m", model, "--type", name, "-o", ours)
            run(f"{peers}/llama-quantize", exact, theirs, peer)
            sizes = " / ".join(str(os.path.getsize(path)) for path in (ours, theirs))
            print(f"| {name} | {sizes} | {compare(ours, *exactly)} | {compare(theirs, *exactly)} |", flush=True)
        print("\n| KV type, float32 weights | perplexity | divergence | same top |\n| --- | --- | --- | --- |")
        for name in KV_TYPES:
            print(f"| {name} | {compare(exact, '-ctk', name, '-ctv', name)} |", flush=True)


if __name__ == "__main__":
    main()
