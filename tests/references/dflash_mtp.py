#!/usr/bin/env python3
"""Adds an MTP layer to the Qwen3.5 target of a block drafter's fixture, so that two drafters can draft for the same
target.

usage: dflash_mtp.py FOLDER OUT

In: a Qwen3.5 folder without MTP layers. Out: a folder with an MTP layer, and links to the same weights, to
reference.json and to the tokenizer. The layer's first projection is fitted by least squares to the target's own rows,
on texts that it writes greedily after random prompts. The layer's other matrices are small noise. So some of its
drafts are accepted, and its keys and values have an influence on them. The target's text is still that of FOLDER."""
import json
import os
import sys

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import AutoModelForImageTextToText

FOLDER, OUT = sys.argv[1:]
NOISE, RIDGE, PROMPTS, LENGTH = 0.02, 1e-2, 64, 160
SHARDS = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"

torch.manual_seed(7)
config = json.load(open(f"{FOLDER}/config.json"))
text = config["text_config"]
hidden, heads, kv, head = (text[k] for k in ("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim"))
model = AutoModelForImageTextToText.from_pretrained(FOLDER, dtype=torch.float32)
ids = torch.randint(0, text["vocab_size"] - 20, (PROMPTS, 24))
with torch.no_grad():
    ids = model.generate(ids, max_new_tokens=LENGTH, min_new_tokens=LENGTH, do_sample=False, use_cache=True)
    rows = model(ids, output_hidden_states=True).hidden_states[-1]  # after the final norm


def rms(x):
    return x / (x.pow(2).mean(-1, keepdim=True) + text["rms_norm_eps"]).sqrt()


embedded = model.get_input_embeddings()(ids).detach()
norm = model.model.language_model.norm.weight.detach()
x = torch.cat([rms(embedded[:, 1:]), rms(rows[:, :-1])], -1)[:, 20:].reshape(-1, 2 * hidden)
y = (rows[:, 1:] / (1 + norm))[:, 20:].reshape(-1, hidden)
fitted = torch.linalg.solve(x.T @ x + RIDGE * len(x) * torch.eye(2 * hidden), x.T @ y).T
head = ((1 + norm) * model.get_output_embeddings().weight).T.detach()
agree = ((rms(x @ fitted.T) @ head).argmax(-1) == (y @ head).argmax(-1)).float().mean()
print(f"of its first drafts {agree:.2f} agree")


def noise(*shape):
    return NOISE * torch.randn(*shape)


layer = {
    "fc.weight": fitted,
    "pre_fc_norm_embedding.weight": torch.zeros(hidden),
    "pre_fc_norm_hidden.weight": torch.zeros(hidden),
    "norm.weight": norm,
    "layers.0.input_layernorm.weight": torch.zeros(hidden),
    "layers.0.post_attention_layernorm.weight": torch.zeros(hidden),
    "layers.0.self_attn.q_norm.weight": torch.zeros(head),
    "layers.0.self_attn.k_norm.weight": torch.zeros(head),
    "layers.0.self_attn.q_proj.weight": 10 * noise(2 * heads * head, hidden),
    "layers.0.self_attn.k_proj.weight": 10 * noise(kv * head, hidden),
    "layers.0.self_attn.v_proj.weight": 10 * noise(kv * head, hidden),
    "layers.0.self_attn.o_proj.weight": noise(hidden, heads * head),
    "layers.0.mlp.gate_proj.weight": noise(text["intermediate_size"], hidden),
    "layers.0.mlp.up_proj.weight": noise(text["intermediate_size"], hidden),
    "layers.0.mlp.down_proj.weight": noise(hidden, text["intermediate_size"]),
}
layer = {f"mtp.{name}": tensor.to(torch.bfloat16).contiguous() for name, tensor in layer.items()}
os.makedirs(OUT, exist_ok=True)
save_file(layer, f"{OUT}/{SHARDS[1]}", metadata={"format": "pt"})
with safe_open(f"{FOLDER}/model.safetensors", "pt") as target:
    weight_map = dict.fromkeys(target.keys(), SHARDS[0]) | dict.fromkeys(layer, SHARDS[1])
json.dump({"metadata": {}, "weight_map": weight_map}, open(f"{OUT}/model.safetensors.index.json", "w"), indent=1)
text["mtp_num_hidden_layers"] = 1
json.dump(config, open(f"{OUT}/config.json", "w"), indent=1)
for name, target in [(SHARDS[0], "model.safetensors")] + [
    (n, n) for n in ("generation_config.json", "reference.json", "tokenizer.json", "tokenizer_config.json")
]:
    if not os.path.lexists(f"{OUT}/{name}"):
        os.symlink(os.path.relpath(f"{FOLDER}/{target}", OUT), f"{OUT}/{name}")
