#!/usr/bin/env python3
"""awq_folder.py FOLDER [--layers N] [--vocab N] [--group N]: writes random weights of Llama-3.2-1B's shape as AWQ.

They are used to compare the speed of AWQ with that of Q4_0, which has a scale for every 32 columns instead of 128:

    bench/awq_folder.py awq --vocab 1024
    forerun synth --shape llama-3.2-1b --type q4_0 --vocab 1024 q4_0.gguf
    forerun bench model -m awq; forerun bench model -m q4_0.gguf

AWQ leaves the embeddings and the head in BF16. So both models get a small vocabulary. The script needs no package.
"""
import argparse
import array
import json
import os
import pathlib
import random
import struct

HIDDEN, INNER, HEAD, HEADS, KV_HEADS = 2048, 8192, 64, 32, 8


def modules(layers):
    """Yields the name, inputs and outputs of each quantized module."""
    shapes = {"self_attn.q_proj": (HIDDEN, HEADS * HEAD), "self_attn.k_proj": (HIDDEN, KV_HEADS * HEAD),
              "self_attn.v_proj": (HIDDEN, KV_HEADS * HEAD), "self_attn.o_proj": (HEADS * HEAD, HIDDEN),
              "mlp.gate_proj": (HIDDEN, INNER), "mlp.up_proj": (HIDDEN, INNER), "mlp.down_proj": (INNER, HIDDEN)}
    return [(f"model.layers.{n}.{name}", *shape) for n in range(layers) for name, shape in shapes.items()]


def halves(count, low, high):
    """Gives random float16 numbers between two powers of two, as bytes."""
    values = [random.uniform(low, high) for _ in range(min(count, 4096))]
    block = struct.pack(f"<{len(values)}e", *values)
    return (block * (count // len(values) + 1))[:2 * count]


def bf16(count, size):
    """Gives random BF16 numbers of both signs, about as large as `size`, as bytes."""
    words = array.array("I", struct.pack("<4096f", *(random.choice((-1, 1)) * random.uniform(size / 2, size)
                                                     for _ in range(4096))))
    block = b"".join(struct.pack("<H", word >> 16) for word in words)
    return (block * (count // 4096 + 1))[:2 * count]


def tensors(layers, vocab, group):
    """Yields the name, type, shape and bytes of each tensor."""
    yield "model.embed_tokens.weight", "BF16", [vocab, HIDDEN], lambda: bf16(vocab * HIDDEN, 0.04)
    for name, inputs, outputs in modules(layers):
        words, groups = inputs * outputs // 8, inputs // group
        yield name + ".qweight", "I32", [inputs, outputs // 8], lambda n=words: os.urandom(4 * n)
        yield name + ".qzeros", "I32", [groups, outputs // 8], lambda n=groups * outputs: b"\x78" * (n // 2)
        yield name + ".scales", "F16", [groups, outputs], lambda n=groups * outputs: halves(n, 0.002, 0.004)
    for n in range(layers):
        for norm in ("input_layernorm", "post_attention_layernorm"):
            yield f"model.layers.{n}.{norm}.weight", "F16", [HIDDEN], lambda: halves(HIDDEN, 0.5, 1)
    yield "model.norm.weight", "F16", [HIDDEN], lambda: halves(HIDDEN, 0.5, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--vocab", type=int, default=128256)
    parser.add_argument("--group", type=int, default=128)
    how = parser.parse_args()
    how.folder.mkdir(parents=True, exist_ok=True)
    sizes = {"I32": 4, "F16": 2, "BF16": 2}
    header, at = {}, 0
    for name, kind, shape, _ in tensors(how.layers, how.vocab, how.group):
        size = sizes[kind]
        for extent in shape:
            size *= extent
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(how.folder / "model.safetensors", "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for name, kind, shape, make in tensors(how.layers, how.vocab, how.group):
            out.write(make())
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN,
              "intermediate_size": INNER, "num_hidden_layers": how.layers, "num_attention_heads": HEADS,
              "num_key_value_heads": KV_HEADS, "head_dim": HEAD, "vocab_size": how.vocab, "hidden_act": "silu",
              "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
              "tie_word_embeddings": True, "torch_dtype": "float16",
              "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": how.group, "zero_point": True,
                                      "version": "gemm"}}
    (how.folder / "config.json").write_text(json.dumps(config, indent=1))


main()
