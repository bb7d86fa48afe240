"""Writes tests/data/gguf/low-bits.gguf and low-bits.reference.safetensors.

    python3 tests/references/low_bits.py tests/data/gguf        (needs gguf, torch, transformers, safetensors, numpy)

A Qwen3 of random blocks in every type of up to 3 bits, and NVFP4 with a scale for the whole tensor; and transformers'
logits with these weights dequantized by the gguf package (block_types.py: what it doesn't decode).
"""
import sys
from pathlib import Path

import gguf
import numpy as np
import torch
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from safetensors.numpy import save_file
from transformers import Qwen3Config, Qwen3ForCausalLM

from block_types import SCALES, SIZES, decode

HIDDEN, HEADS, VOCAB, LAYERS = 256, 4, 64, 2
TYPES = """IQ1_S IQ1_M TQ1_0 TQ2_0 Q1_0 Q2_0 IQ2_XXS
    IQ2_XS IQ2_S IQ3_XXS IQ3_S Q2_K Q3_K NVFP4""".split()
NAMES = [("attn_q", "self_attn.q_proj"), ("attn_k", "self_attn.k_proj"), ("attn_v", "self_attn.v_proj"),
         ("attn_output", "self_attn.o_proj"), ("ffn_gate", "mlp.gate_proj"), ("ffn_up", "mlp.up_proj"),
         ("ffn_down", "mlp.down_proj")]
IDS = [1, 5, 9, 33, 2, 60, 17, 17, 40, 8, 3, 21, 55, 34, 13, 62, 11, 7, 29, 50, 44, 6, 19, 31]
Q2_0 = 42  # ggml's number, which the package doesn't have


def put_scale(name, blocks, d):
    half = np.frombuffer(np.float16(d).tobytes(), dtype=np.uint8)
    if name == "IQ1_M":
        for i in range(4):
            four = int.from_bytes(half.tobytes(), "little") >> 4 * i & 15
            blocks[:, 49 + 2 * i] = blocks[:, 49 + 2 * i] & 15 | four << 4
    elif name == "NVFP4":
        blocks[:, :4] = 40 + blocks[:, :4] % 24
    else:
        for at in SCALES.get(name, [0]):
            blocks[:, at:at + 2] = half


def matrix(name, random):
    """Random blocks whose values are about as large as weights are, and these values."""
    values, size = SIZES.get(name) or GGML_QUANT_SIZES[GGMLQuantizationType[name]]
    blocks = random.integers(0, 256, (HIDDEN * HIDDEN // values, size), dtype=np.uint8)
    d = 1.0
    for _ in range(2):
        put_scale(name, blocks, d)
        decoded = np.ascontiguousarray(decode(name, blocks), dtype=np.float32).reshape(HIDDEN, HIDDEN)
        d = 1.2 / np.sqrt(HIDDEN) / decoded.std()
    return blocks.reshape(HIDDEN, -1), decoded


def main(folder):
    random = np.random.default_rng(11)
    config = Qwen3Config(hidden_size=HIDDEN, intermediate_size=HIDDEN, num_hidden_layers=LAYERS,
                         head_dim=HIDDEN // HEADS, num_attention_heads=HEADS, num_key_value_heads=HEADS,
                         vocab_size=VOCAB, rms_norm_eps=1e-6,
                         rope_theta=10000.0, max_position_embeddings=1024, tie_word_embeddings=False)
    writer = gguf.GGUFWriter(folder / "low-bits.gguf", "qwen3")
    writer.add_block_count(LAYERS)
    writer.add_context_length(1024)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_key_length(HIDDEN // HEADS)
    writer.add_value_length(HIDDEN // HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10000.0)
    state = {}

    def floats(ours, theirs, values):
        writer.add_tensor(ours, values)
        state[theirs] = torch.from_numpy(values)

    def norm(size):
        return (1 + 0.1 * random.standard_normal(size)).astype(np.float32)

    for ours, theirs in (("token_embd", "model.embed_tokens"), ("output", "lm_head")):
        floats(f"{ours}.weight", f"{theirs}.weight", random.standard_normal((VOCAB, HIDDEN)).astype(np.float32))
    floats("output_norm.weight", "model.norm.weight", norm(HIDDEN))
    for layer in range(LAYERS):
        below, above = f"blk.{layer}.", f"model.layers.{layer}."
        for ours, theirs, size in (("attn_norm", "input_layernorm", HIDDEN),
                                   ("ffn_norm", "post_attention_layernorm", HIDDEN),
                                   ("attn_q_norm", "self_attn.q_norm", HIDDEN // HEADS),
                                   ("attn_k_norm", "self_attn.k_norm", HIDDEN // HEADS)):
            floats(f"{below}{ours}.weight", f"{above}{theirs}.weight", norm(size))
        for (ours, theirs), name in zip(NAMES, TYPES[layer * len(NAMES):]):
            blocks, values = matrix(name, random)
            number = Q2_0 if name == "Q2_0" else GGMLQuantizationType[name]
            if name == "NVFP4":
                scale = np.float32(1.2 / np.sqrt(HIDDEN) / values.std())
                writer.add_tensor(f"{below}{ours}.scale", np.array([scale]))
                writer.add_tensor(f"{below}{ours}.input_scale", np.array([0.5], dtype=np.float32))
                values = values * scale
            add_blocks(writer, f"{below}{ours}.weight", blocks, number)
            state[f"{above}{theirs}.weight"] = torch.from_numpy(np.ascontiguousarray(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    model = Qwen3ForCausalLM(config).eval()
    model.load_state_dict(state)
    with torch.no_grad():
        logits = model(torch.tensor([IDS])).logits[0].float().numpy()
    save_file({"ids": np.array(IDS, dtype=np.int32), "logits": logits}, folder / "low-bits.reference.safetensors")
    print("spread", (logits.max(1) - logits.min(1)).mean())


def add_blocks(writer, name, blocks, number):
    """The package doesn't know Q2_0: it goes in as Q1_0 of as many columns, and is renamed."""
    if number != Q2_0:
        writer.add_tensor(name, blocks, raw_dtype=number)
        return
    writer.add_tensor(name, blocks, raw_shape=(HIDDEN, HIDDEN // 128 * 18), raw_dtype=GGMLQuantizationType.Q1_0)
    writer.tensors[-1][name].dtype = number


if __name__ == "__main__":
    main(Path(sys.argv[1]))
