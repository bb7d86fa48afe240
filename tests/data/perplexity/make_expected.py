#!/usr/bin/env python3
"""make_expected.py > expected.json: perplexities and divergences of text.txt, from transformers' logits.

Run it from the top level, with the requirements of tests/references. Everything after the logits is computed in
float64. The definitions are those of tools/cli/verb_perplexity.c. In one, the text is divided into chunks of N ids,
the first of which is replaced by <bos>, and ids from position N / 2 on are scored. In the other, windows begin S ids
apart, and the last S ids of each are scored.
"""
import json
import math
import sys

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

TEXT = "tests/data/perplexity/text.txt"
DEMO = "tools/demo/target"
MASK = -16  # clears the low 4 of BF16's 7 bits of mantissa, as a crude quantization would
BOS = 2


class Model:
    def __init__(self, folder):
        tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
        self.ids = tokenizer.encode(open(TEXT, encoding="utf-8").read()).ids
        self.net = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()

    def log_p(self, ids):
        with torch.no_grad():
            return torch.log_softmax(self.net(torch.tensor([ids])).logits[0].double(), -1)

    def blunt(self):
        for weight in self.net.parameters():
            weight.data = (weight.data.bfloat16().view(torch.int16) & MASK).view(torch.bfloat16).float()
        return self

    def windows(self, n, stride=None):
        """Returns for each window the log probabilities of every id at the scored rows, and the ids of the text."""
        starts = range(0, len(self.ids) - n, stride) if stride else range(0, len(self.ids) - n + 1, n)
        first = n - stride - 1 if stride else n // 2
        for start in starts:
            ids = self.ids[start:start + n]
            yield self.log_p(ids if stride else [BOS] + ids[1:])[first:n - 1], torch.tensor(ids[first + 1:])


def perplexity(model, n, stride=None):
    loss = torch.cat([-rows.gather(1, ids[:, None])[:, 0] for rows, ids in model.windows(n, stride)])
    return {"chunk": n, "stride": stride or 0, "scored": len(loss), "perplexity": math.exp(loss.mean())}


def divergence(base, other, n):
    p, q = (torch.cat([rows for rows, _ in model.windows(n)]) for model in (base, other))
    each = (p.exp() * (p - q)).sum(-1)
    return {"chunk": n, "mean": float(each.mean()), "largest": float(each.max()),
            "same_top": float((p.argmax(-1) == q.argmax(-1)).double().mean())}


def main():
    torch.set_num_threads(1)
    demo, blunt = Model(DEMO), Model(DEMO).blunt()
    json.dump({"demo_ids": len(demo.ids),
               "demo": [perplexity(demo, 128), perplexity(demo, 512), perplexity(demo, 101), perplexity(demo, 128, 32)],
               "blunt": perplexity(blunt, 128), "divergence": divergence(demo, blunt, 128)},
              sys.stdout, indent=1)
    print()


main()
