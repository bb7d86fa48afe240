"""Writes cases.json: whole draws, adjusted distributions and log-probabilities. Pure numpy, float64; run from the top
level:

    python3 tests/data/sampling/make_cases.py tests/data/sampling/cases.json

Philox4x32-10 is written here once more after the paper, and must give Random123's known answers (kat_vectors). A draw
is argmax(logit / temperature + g) over the tokens that the filters left. g is -log(-log((x + 0.5) / 2^32)), where x is
word id % 4 of the counter (id / 4, 0, position, position >> 32) under the key (seed, seed >> 32). Penalties are
llama.cpp's: if a token occurred among the last n, its logit is divided by the repeat penalty (multiplied if it is not
positive) and reduced by count * frequency + presence. Then the bias is added.
"""
import json
import os
import sys

import numpy as np
from safetensors.numpy import load_file

sys.path.insert(0, os.path.dirname(__file__))
from make_distributions import pipeline  # noqa: E402

KNOWN = [((0,) * 4, (0,) * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
         ((0xffffffff,) * 4, (0xffffffff,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
         ((0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344), (0xa4093822, 0x299f31d0),
          "d16cfe09 94fdcceb 5001e420 24126ea1")]
MASK = 0xffffffff


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & MASK, a >> 32 ^ c[3] ^ k[1], a & MASK]
        k = [k[0] + 0x9E3779B9 & MASK, k[1] + 0xBB67AE85 & MASK]
    return c


def gumbel(word):
    return float(-np.log(-np.log((np.float64(word) + 0.5) / 2**32)))


def noise(seed, position, count):
    words = []
    for block in range((count + 3) // 4):
        words += philox((block, 0, position & MASK, position >> 32), (seed & MASK, seed >> 32))
    return np.array([gumbel(w) for w in words[:count]])


def adjust(logits, past, p):
    x = np.array(logits, dtype=np.float64)
    n = p.get("repeat_last_n", 64)
    window = past if n < 0 else past[len(past) - n:] if n else []
    for i in set(window):
        count, r = window.count(i), p.get("repeat", 1.0)
        x[i] = x[i] / r if x[i] > 0 else x[i] * r
        x[i] -= count * p.get("frequency", 0.0) + p.get("presence", 0.0)
    for i, b in p.get("bias", []):
        x[i] += b
    return x


def chances(logits, past, p):
    filters = {k: p[k] for k in ("temperature", "top_k", "top_p", "min_p") if k in p}
    return pipeline(adjust(logits, past, p), **filters)


def critical(df):
    """Returns the 1 - 1e-5 quantile of chi-square, by the approximation of Wilson and Hilferty (1931)."""
    z = 4.2649
    return df * (1 - 2 / (9 * df) + z * np.sqrt(2 / (9 * df))) ** 3


PARAMS = [{"temperature": 1.0}, {"temperature": 0.8, "top_p": 0.9}, {"temperature": 1.3, "top_k": 7, "min_p": 0.05},
          {"temperature": 1.0, "repeat": 1.3, "presence": 0.4, "frequency": 0.2, "top_p": 0.95},
          {"temperature": 0.7, "frequency": 0.5, "repeat_last_n": 5, "top_k": 12, "top_p": 0.9, "min_p": 0.02},
          {"temperature": 1.1, "presence": -0.5, "repeat": 0.8, "repeat_last_n": -1, "bias": [[3, 1.5], [0, -2.0]]},
          {"temperature": 0.0, "repeat": 1.5}, {"temperature": 0.0, "bias": [[2, 30.0]], "presence": 1.0}]


def main(path):
    rng = np.random.default_rng(20261121)
    for counter, key, words in KNOWN:
        assert " ".join(f"{w:08x}" for w in philox(counter, key)) == words
    out = {"note": __doc__, "philox": [{"counter": c, "key": k, "words": [int(w, 16) for w in v.split()]} for c, k, v in
                                       KNOWN], "gumbel": [], "draws": [], "logprobs": {}}
    for word in [0, 1, 2**31, 2**32 - 1, 2**32 - 2] + [int(w) for w in rng.integers(0, 2**32, 40)]:
        out["gumbel"].append([word, gumbel(word)])
    for n in (16, 24, 40):
        logits = [round(float(v), 3) for v in rng.normal(0, 2, n)]
        drafter = [round(float(v + e), 3) for v, e in zip(logits, rng.normal(0, 1, n))]
        past = [int(i) for i in rng.integers(0, n, 90)]
        for p in PARAMS:
            probs, draws = chances(logits, past, p), []
            with np.errstate(divide="ignore"):
                score = np.log(probs)
            for seed, position in [(0, 90), (7, 90), (2**40 + 5, 90), (2**62 + 1, 90)]:
                draws.append([seed, int(np.argmax(score + noise(seed, position, n)))])
            out["draws"].append({"logits": logits, "drafter": drafter, "past": past, "params": p,
                                 "probs": probs.tolist(), "draws": draws,
                                 "critical": float(critical(max(1, int((probs * 200000 >= 10).sum()))))})
    fixture = "tests/data/models/gemma4-e"
    logits = load_file(f"{fixture}/reference.safetensors")["greedy.2.logits"].astype(np.float64)
    tokens = next(g for g in json.load(open(f"{fixture}/reference.json"))["greedy"] if g["prompt"] == 2)["tokens"]
    logprobs = logits - logits.max(-1, keepdims=True)
    logprobs -= np.log(np.exp(logprobs).sum(-1, keepdims=True))
    best = np.argsort(-logprobs, axis=-1, kind="stable")[:, :5]
    out["logprobs"] = {"own": [float(r[t]) for r, t in zip(logprobs, tokens)], "ids": best.tolist(),
                       "values": np.take_along_axis(logprobs, best, -1).tolist()}
    json.dump(out, open(path, "w"), indent=0)


if __name__ == "__main__":
    main(sys.argv[1])
