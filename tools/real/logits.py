#!/usr/bin/env python3
"""logits.py FORERUN MODEL...: compares logits of prompts with those of transformers with the same weights.

In: the command; GGUF files. Out: two lines for each file. The exit status is 1 if a bound is exceeded. transformers
itself reads the file, decodes its weights with the gguf package, and computes in float32.

First forerun decodes the weights too (`quantize --type f32`), if they take less than LARGE bytes. Then both compute
the same, and logits must be within EXACT of the largest one. After that forerun runs the file itself, with activations
quantized for integer kernels. Then the best id may differ only if the reference's best is ahead of its second by less
than CLEAR of the row's spread, and the mean difference of logits must be small.
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ |= {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1",
               "TQDM_DISABLE": "1"}

import numpy as np
import torch
from transformers import AutoModelForCausalLM

PROMPTS = sorted(Path(__file__).with_name("prompts").glob("*.txt"))
IDS = 96                    # ids of each prompt, at most
LARGE = 4e9
EXACT, CLEAR, MEAN = 5e-5, 0.05, 0.01   # EXACT: share of the largest logit; others: shares of a row's spread


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True)
    if done.returncode: sys.exit(f"logits.py: {done.stderr.decode().strip()}")
    return done.stdout


def ids_of(forerun, model, prompt):
    return [int(word) for word in run(forerun, "tokenize", "-m", model, "-f", prompt, "--quiet").split(b",")][:IDS]


def logits_of(forerun, model, ids, vocab, *more):
    text = ",".join(map(str, ids))
    made = run(forerun, "logits", "-m", model, "--ids", text, "--quiet", "-ctk", "f32", "-ctv", "f32", "-o", "-", *more)
    return np.frombuffer(made, "<f4").reshape(len(ids), vocab)


class Reference:
    def __init__(self, model):
        self.model = AutoModelForCausalLM.from_pretrained(model.parent, gguf_file=model.name, dtype=torch.float32,
                                                          attn_implementation="eager").eval()

    @torch.no_grad()
    def logits(self, ids):
        return self.model(torch.tensor([ids]), use_cache=False).logits[0].numpy()


def decoded(forerun, model, folder, parameters):
    if 4 * parameters > LARGE: return None
    out = Path(folder, "f32.gguf")
    run(forerun, "quantize", "-m", model, "--type", "f32", "--pure", "-o", out, "--quiet")
    return out


def compare_exactly(forerun, path, name, cases):
    worst = max(float(np.abs(logits_of(forerun, path, ids, right.shape[1]) - right).max() / np.abs(right).max())
                for ids, right in cases)
    print(f"{name}, decoded: {sum(len(ids) for ids, _ in cases)} rows, logits within {worst:.1e} of the largest, "
          f"{EXACT:.0e} allowed", flush=True)
    return worst > EXACT


def compare_nearly(forerun, path, name, cases):
    rows = wrong = other = 0
    shares = []
    for ids, right in cases:
        made = logits_of(forerun, path, ids, right.shape[1])
        spread = right.max(1) - right.min(1)
        second = np.partition(right, -2, 1)[:, -2]
        differs = made.argmax(1) != right.argmax(1)
        wrong += int((differs & (right.max(1) - second > CLEAR * spread)).sum())
        other += int(differs.sum())
        shares += list(np.abs(made - right).mean(1) / spread)
        rows += len(ids)
    mean = float(np.mean(shares))
    print(f"{name}, as it is: {rows} rows, the best id is another in {other}, of which {wrong} were clear; "
          f"logits are {mean:.4f} of the spread apart on average, {MEAN} allowed", flush=True)
    return wrong > 0 or mean > MEAN


def check(forerun, model):
    reference = Reference(model)
    cases = [(ids, reference.logits(ids)) for ids in (ids_of(forerun, model, prompt) for prompt in PROMPTS)]
    parameters = sum(p.numel() for p in reference.model.parameters())
    del reference
    with tempfile.TemporaryDirectory(dir=model.parent) as folder:
        path = decoded(forerun, model, folder, parameters)
        failed = compare_exactly(forerun, path, model.stem, cases) if path else False
    return compare_nearly(forerun, model, model.stem, cases) or failed


if __name__ == "__main__":
    if len(sys.argv) < 3: sys.exit(__doc__)
    torch.set_num_threads(os.cpu_count())
    sys.exit(any([check(sys.argv[1], Path(model)) for model in sys.argv[2:]]))
