#!/usr/bin/env python3
"""mean_keys.py FOLDER: a tiny Qwen2 with random weights whose keys have large biases, as those of Qwen2.5 have.

Without rotation, a bias of keys adds the same number to all scores of a query, which changes no weight of attention.
With rotation, the number depends on the distance. The biases are ten times as long as the rest of a key.

The pairs of a key's values that are rotated together differ in size, by a factor of 30 and more, and those of queries
the other way round, so that all pairs matter to scores as much.
"""
import json
import os
import sys

import numpy as np
from safetensors.numpy import save_file

HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, INNER, VOCAB = 64, 2, 4, 2, 32, 64, 256


def main():
    rng, folder, tensors = np.random.default_rng(11), sys.argv[1], {}

    def add(name, *shape, scale=None):
        scale = scale or 1 / np.sqrt(shape[-1])
        tensors[name] = (rng.standard_normal(shape) * scale).astype(np.float16)

    add("model.embed_tokens.weight", VOCAB, HIDDEN, scale=1)
    tensors["model.norm.weight"] = np.ones(HIDDEN, np.float16)
    for layer in range(LAYERS):
        base = f"model.layers.{layer}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            tensors[base + norm + ".weight"] = np.ones(HIDDEN, np.float16)
        sizes = np.tile(np.exp(rng.standard_normal((KV_HEADS, HEAD_DIM // 2)) * 1.2), 2).reshape(-1)
        for part, heads, bias in (("q", HEADS, 0.1), ("k", KV_HEADS, 10), ("v", KV_HEADS, 0.1)):
            size = {"q": 1 / np.repeat(sizes.reshape(KV_HEADS, HEAD_DIM), HEADS // KV_HEADS, 0).reshape(-1),
                    "k": sizes, "v": np.ones(KV_HEADS * HEAD_DIM)}[part]
            for name, scale in (("weight", None), ("bias", bias)):
                add(f"{base}self_attn.{part}_proj.{name}", heads * HEAD_DIM, *[HIDDEN] * (name == "weight"),
                    scale=scale)
                tensor = tensors[f"{base}self_attn.{part}_proj.{name}"]
                tensor[:] = (tensor.T * size).T
        add(base + "self_attn.o_proj.weight", HIDDEN, HEADS * HEAD_DIM)
        add(base + "mlp.gate_proj.weight", INNER, HIDDEN)
        add(base + "mlp.up_proj.weight", INNER, HIDDEN)
        add(base + "mlp.down_proj.weight", HIDDEN, INNER)
    os.makedirs(folder, exist_ok=True)
    save_file(tensors, os.path.join(folder, "model.safetensors"))
    with open(os.path.join(folder, "config.json"), "w") as out:
        json.dump({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": HIDDEN,
                   "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
                   "intermediate_size": INNER, "vocab_size": VOCAB, "max_position_embeddings": 1024,
                   "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": True,
                   "torch_dtype": "float16", "head_dim": HEAD_DIM}, out, indent=1)
        out.write("\n")


main()
