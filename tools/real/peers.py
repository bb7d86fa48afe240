#!/usr/bin/env python3
"""peers.py FORERUN PEERS TEXT MODEL...: compares forerun with llama.cpp on the same files.

In: the command; the folder of bench/peers/build.sh; a text for perplexity; GGUF files. Out: lines for each file. The
exit status is 1 if the best id of a row differs although llama.cpp's best is ahead of its second by more than a
margin, or if the perplexities differ by more than the share APART. Both keep keys and values in float16, their
default.

The margin is 0.1 if forerun has decoded the weights for both, which it does for files whose weights take less than
LARGE bytes as floats. With the file itself, both round activations to a byte, each in its own way. On SmolLM2 the
logits of either are on average 0.19 from those of float activations, and rows with a margin below 0.3 go either way.
So the margin is 0.5 there. A row also passes if the weights in float32 put forerun's id above llama.cpp's. On
Qwen2.5-Coder-1.5B forerun's logits are on average 0.04 from the float32 ones, and llama.cpp's 0.09.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

PROMPTS = sorted(Path(__file__).with_name("prompts").glob("*.txt"))
IDS, CHUNKS = 160, 40       # ids of a prompt; number of chunks of 512 ids of the text
MARGIN, MARGIN_QUANTIZED, APART = 0.1, 0.5, 0.003
LARGE, FLOATS = 8e9, 7      # bytes; about how many times larger a file is in float32


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True)
    if done.returncode: sys.exit(f"peers.py: {command[0]}: {done.stderr.decode()[-400:].strip()}")
    return done.stdout, done.stderr.decode(errors="replace")


def logits_of(forerun, model, ids):
    made = run(forerun, "logits", "-m", model, "--ids", ids, "--quiet", "-ctk", "f16", "-ctv", "f16", "-o", "-")[0]
    return np.frombuffer(made, "<f4")


def best_ids(forerun, peers, model, name, margin, decoded):
    """Returns the rows in which llama.cpp's best id is clearly ahead and forerun's is another one. decoded: the
    float32 weights; rows in which these too put forerun's id ahead are left out."""
    rows = clear = other = ours_right = 0
    for prompt in PROMPTS:
        text = run(forerun, "tokenize", "-m", model, "-f", prompt, "--quiet")[0].decode().strip()
        ids = text.split(",")[:IDS]
        text, shape = ",".join(ids), (len(ids), -1)
        theirs = np.frombuffer(run(peers / "bin/peer-logits", model, "f16", text)[0], "<f4").reshape(shape)
        ours = logits_of(forerun, model, text).reshape(shape).argmax(1)
        ahead = theirs.max(1) - np.partition(theirs, -2, 1)[:, -2] > margin
        differs = ahead & (ours != theirs.argmax(1))
        if decoded and differs.any():
            floats, at = logits_of(forerun, decoded, text).reshape(shape), np.flatnonzero(differs)
            ours_right += int((floats[at, ours[at]] > floats[at, theirs.argmax(1)[at]]).sum())
        rows, clear, other = rows + len(ids), clear + int(ahead.sum()), other + int(differs.sum())
    by_floats = f", where float32 puts ours above theirs {ours_right} times" if other and decoded else ""
    print(f"{name}: {rows} rows, {clear} where llama.cpp's best id is ahead by {margin}; of these it is another in "
          f"{other}{by_floats}", flush=True)
    return other > ours_right


def all_best_ids(forerun, peers, model):
    """Compares both engines with the float32 weights, if there is room for these; then with the file itself."""
    if model.stat().st_size * FLOATS > LARGE: return best_ids(forerun, peers, model, model.stem, MARGIN_QUANTIZED, None)
    with tempfile.TemporaryDirectory(dir=model.parent) as folder:
        decoded = Path(folder, "f32.gguf")
        run(forerun, "quantize", "-m", model, "--type", "f32", "--pure", "-o", decoded, "--quiet")
        failed = best_ids(forerun, peers, decoded, f"{model.stem}, decoded", MARGIN, None)
        return best_ids(forerun, peers, model, model.stem, MARGIN_QUANTIZED, decoded) or failed


def perplexity(said, pattern):
    found = re.findall(pattern, said, re.MULTILINE)
    if not found: sys.exit(f"peers.py: no perplexity in: {said[-300:].strip()}")
    return float(found[-1])


def perplexities(forerun, peers, model, text):
    options = ("-m", model, "-f", text, "-c", 512, "--chunks", CHUNKS)
    ours = perplexity(run(forerun, "perplexity", *options)[0].decode(), r"^perplexity +([0-9.]+)")
    theirs = perplexity("".join(map(str, run(peers / "bin/llama-perplexity", *options))), r"PPL = ([0-9.]+)")
    print(f"{model.stem}: perplexity {ours:.4f}, llama.cpp's {theirs:.4f}, {ours / theirs - 1:+.2%}", flush=True)
    return abs(ours / theirs - 1) > APART


def main(forerun, peers, text, *models):
    failed = False
    for model in map(Path, models):
        failed |= all_best_ids(forerun, Path(peers), model)
        failed |= perplexities(forerun, Path(peers), model, text)
    return failed


if __name__ == "__main__":
    if len(sys.argv) < 5: sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
