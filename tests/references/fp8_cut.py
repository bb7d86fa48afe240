#!/usr/bin/env python3
"""fp8_cut.py FOLDER [--layers N] [--experts N] [--vocab N]: random weights with DeepSeek-V3's shape, in its published
form.

They are for timing engines; `forerun synth` writes such models only as GGUF, which has no FP8. The layers' matrices
are E4M3 codes with a scale for each block of 128 x 128. Routers, embeddings, the head and the MTP layer's eh_proj are
BF16. The model has the first N layers, N experts in each mixture, and the MTP layer, without its copies of the
embedding table and the head. There is no tokenizer, and the text is noise, but memory and speed are those of the
shape. Needs only numpy.
"""
import argparse
import json
from pathlib import Path

import numpy as np

BLOCK, SEED = 128, 71
CONFIG = dict(architectures=["DeepseekV3ForCausalLM"], model_type="deepseek_v3", vocab_size=129280, hidden_size=7168,
              intermediate_size=18432, num_hidden_layers=61, num_attention_heads=128, num_key_value_heads=128,
              q_lora_rank=1536, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128,
              hidden_act="silu", max_position_embeddings=163840, rms_norm_eps=1e-6, rope_theta=10000.0,
              rope_scaling=dict(type="yarn", factor=40, original_max_position_embeddings=4096, beta_fast=32,
                                beta_slow=1, mscale=1.0, mscale_all_dim=1.0),
              attention_bias=False, tie_word_embeddings=False, n_routed_experts=256, num_experts_per_tok=8,
              n_shared_experts=1, moe_intermediate_size=2048, n_group=8, topk_group=4, norm_topk_prob=True,
              routed_scaling_factor=2.5, first_k_dense_replace=3, scoring_func="sigmoid", topk_method="noaux_tc",
              moe_layer_freq=1, num_nextn_predict_layers=1, bos_token_id=0, eos_token_id=1,
              quantization_config=dict(activation_scheme="dynamic", fmt="e4m3", quant_method="fp8",
                                       weight_block_size=[BLOCK, BLOCK]))


def codes_of(values):
    """Returns the E4M3 codes nearest to values of at most 448."""
    magnitude = np.arange(127)
    exponent, fraction = magnitude // 8, magnitude % 8
    table = np.where(exponent, (8 + fraction) * 2.0 ** (exponent - 10), fraction * 2.0 ** -9)
    nearest = np.searchsorted((table[1:] + table[:-1]) / 2, np.abs(values))
    return (nearest | (values < 0) << 7).astype(np.uint8)


class Noise:
    """A long list of normal numbers. Each tensor takes values from a random place on, and begins again at the end."""

    def __init__(self):
        self.random = np.random.default_rng(SEED)
        values = self.random.standard_normal(1 << 24, dtype=np.float32)
        self.codes = codes_of(values * 100)  # the largest of a block is then near 448
        self.halves = values

    def pieces(self, run, count):
        at = int(self.random.integers(len(run)))
        while count:
            piece = run[at:at + count]
            yield piece
            at, count = 0, count - len(piece)


def bf16(values):
    return ((values.view(np.uint32) + 0x8000) >> 16).astype(np.uint16)


def tensors(config):
    """Yields the name, the kind and the shape of each tensor."""
    hidden, heads, rope = config["hidden_size"], config["num_attention_heads"], config["qk_rope_head_dim"]
    nope, latent, query = config["qk_nope_head_dim"], config["kv_lora_rank"], config["q_lora_rank"]
    values, layers = heads * config["v_head_dim"], config["num_hidden_layers"]

    def ffn(name, width):
        for part, shape in ("gate", (width, hidden)), ("up", (width, hidden)), ("down", (hidden, width)):
            yield f"{name}.{part}_proj.weight", "fp8", shape

    yield "model.embed_tokens.weight", "bf16", (config["vocab_size"], hidden)
    yield "lm_head.weight", "bf16", (config["vocab_size"], hidden)
    yield "model.norm.weight", "norm", (hidden,)
    for i in range(layers + 1):
        at = f"model.layers.{i}."
        for name, width in ("input_layernorm", hidden), ("post_attention_layernorm", hidden):
            yield f"{at}{name}.weight", "norm", (width,)
        yield f"{at}self_attn.q_a_proj.weight", "fp8", (query, hidden)
        yield f"{at}self_attn.q_a_layernorm.weight", "norm", (query,)
        yield f"{at}self_attn.q_b_proj.weight", "fp8", (heads * (nope + rope), query)
        yield f"{at}self_attn.kv_a_proj_with_mqa.weight", "fp8", (latent + rope, hidden)
        yield f"{at}self_attn.kv_a_layernorm.weight", "norm", (latent,)
        yield f"{at}self_attn.kv_b_proj.weight", "fp8", (heads * nope + values, latent)
        yield f"{at}self_attn.o_proj.weight", "fp8", (hidden, values)
        if i < config["first_k_dense_replace"]:
            yield from ffn(at + "mlp", config["intermediate_size"])
            continue
        yield f"{at}mlp.gate.weight", "bf16", (config["n_routed_experts"], hidden)
        yield f"{at}mlp.gate.e_score_correction_bias", "bias", (config["n_routed_experts"],)
        for e in range(config["n_routed_experts"]):
            yield from ffn(f"{at}mlp.experts.{e}", config["moe_intermediate_size"])
        yield from ffn(at + "mlp.shared_experts", config["moe_intermediate_size"])
    for name in "enorm", "hnorm", "shared_head.norm":
        yield f"model.layers.{layers}.{name}.weight", "norm", (hidden,)
    yield f"model.layers.{layers}.eh_proj.weight", "bf16", (hidden, 2 * hidden)


def stored(config):
    """Yields each stored tensor, in the file's order: name, type, kind of content, shape, bytes, deviation of the
    values."""
    for name, kind, shape in tensors(config):
        count, deviation = int(np.prod(shape)), shape[-1] ** -0.5
        if kind != "fp8":
            kinds = {"bf16": ("BF16", 2, deviation), "norm": ("BF16", 2, 0), "bias": ("F32", 4, 0)}
            dtype, size, deviation = kinds[kind]
            yield name, dtype, kind, shape, count * size, deviation
            continue
        blocks = tuple((n + BLOCK - 1) // BLOCK for n in shape)
        yield name, "F8_E4M3", kind, shape, count, deviation
        yield name + "_scale_inv", "F32", "scale", blocks, int(np.prod(blocks)) * 4, deviation


def write(file, noise, kind, size, deviation):
    if kind == "fp8":
        for piece in noise.pieces(noise.codes, size): file.write(piece)
    elif kind == "bf16":
        for piece in noise.pieces(noise.halves, size // 2): file.write(bf16(piece * np.float32(deviation)))
    else:
        value = {"norm": bf16(np.ones(size // 2, np.float32)), "bias": np.zeros(size // 4, np.float32),
                 "scale": np.full(size // 4, deviation / 100, np.float32)}[kind]
        file.write(value)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    for key in "layers", "experts", "vocab": parser.add_argument("--" + key, type=int)
    chosen = parser.parse_args()
    keys = {"num_hidden_layers": chosen.layers, "n_routed_experts": chosen.experts, "vocab_size": chosen.vocab}
    config = CONFIG | {key: value for key, value in keys.items() if value}
    chosen.folder.mkdir(parents=True, exist_ok=True)
    (chosen.folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    header, at, noise = {}, 0, Noise()
    for name, dtype, _, shape, size, _ in stored(config):
        header[name] = dict(dtype=dtype, shape=shape, data_offsets=[at, at + size])
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(chosen.folder / "model.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, _, kind, _, size, deviation in stored(config): write(file, noise, kind, size, deviation)


main()
