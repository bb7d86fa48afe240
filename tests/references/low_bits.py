"""Writes tests/data/gguf/low-bits.gguf, nvfp4-experts.gguf and their .reference.safetensors.

    python3 tests/references/low_bits.py tests/data/gguf        (needs gguf, torch, transformers, safetensors, numpy)

low-bits.gguf is a Qwen3 of random blocks of every type of up to 3 bits, and of NVFP4 with a scale for the whole
tensor. nvfp4-experts.gguf is a Qwen3-MoE whose stacks of experts are NVFP4 with a scale per expert, except for the
last stack, which has none. The references have transformers' logits with the weights that the gguf package dequantizes
(or block_types.py, for types that it doesn't decode).
"""
import sys
from pathlib import Path

import gguf
import numpy as np
import torch
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from safetensors.numpy import save_file
from transformers import Qwen3Config, Qwen3ForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM

from block_types import SCALES, SIZES, decode

HIDDEN, HEADS, VOCAB, LAYERS = 256, 4, 64, 2
EXPERTS, CHOSEN, SMALL = 5, 2, 64
TYPES = """IQ1_S IQ1_M TQ1_0 TQ2_0 Q1_0 Q2_0 IQ2_XXS
    IQ2_XS IQ2_S IQ3_XXS IQ3_S Q2_K Q3_K NVFP4""".split()
NAMES = [("attn_q", "self_attn.q_proj"), ("attn_k", "self_attn.k_proj"), ("attn_v", "self_attn.v_proj"),
         ("attn_output", "self_attn.o_proj"), ("ffn_gate", "mlp.gate_proj"), ("ffn_up", "mlp.up_proj"),
         ("ffn_down", "mlp.down_proj")]
IDS = [1, 5, 9, 33, 2, 60, 17, 17, 40, 8, 3, 21, 55, 34, 13, 62, 11, 7, 29, 50, 44, 6, 19, 31]
Q2_0 = 42  # ggml's number of a type that the package doesn't have


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


def matrix(name, random, rows=HIDDEN, cols=HIDDEN):
    """Returns random blocks whose values have about the size of weights, and these values."""
    values, size = SIZES.get(name) or GGML_QUANT_SIZES[GGMLQuantizationType[name]]
    blocks = random.integers(0, 256, (rows * cols // values, size), dtype=np.uint8)
    d = 1.0
    for _ in range(2):
        put_scale(name, blocks, d)
        decoded = np.ascontiguousarray(decode(name, blocks), dtype=np.float32).reshape(rows, cols)
        d = 1.2 / np.sqrt(cols) / decoded.std()
    return blocks.reshape(rows, -1), decoded


class Fixture:
    """A GGUF file, and the same tensors by transformers' names."""

    def __init__(self, path, architecture, random, hidden, layers):
        self.writer, self.state, self.random, self.hidden = gguf.GGUFWriter(path, architecture), {}, random, hidden
        self.writer.add_block_count(layers)
        self.writer.add_context_length(1024)
        self.writer.add_embedding_length(hidden)
        self.writer.add_feed_forward_length(hidden)
        self.writer.add_head_count(HEADS)
        self.writer.add_head_count_kv(HEADS)
        self.writer.add_key_length(hidden // HEADS)
        self.writer.add_value_length(hidden // HEADS)
        self.writer.add_layer_norm_rms_eps(1e-6)
        self.writer.add_rope_freq_base(10000.0)

    def floats(self, ours, theirs, values):
        self.writer.add_tensor(ours, values)
        self.state[theirs] = torch.from_numpy(values)

    def norm(self, size):
        return (1 + 0.1 * self.random.standard_normal(size)).astype(np.float32)

    def ends(self):
        for ours, theirs in (("token_embd", "model.embed_tokens"), ("output", "lm_head")):
            self.floats(f"{ours}.weight", f"{theirs}.weight",
                        self.random.standard_normal((VOCAB, self.hidden)).astype(np.float32))
        self.floats("output_norm.weight", "model.norm.weight", self.norm(self.hidden))

    def norms(self, below, above):
        for ours, theirs, size in (("attn_norm", "input_layernorm", self.hidden),
                                   ("ffn_norm", "post_attention_layernorm", self.hidden),
                                   ("attn_q_norm", "self_attn.q_norm", self.hidden // HEADS),
                                   ("attn_k_norm", "self_attn.k_norm", self.hidden // HEADS)):
            self.floats(f"{below}{ours}.weight", f"{above}{theirs}.weight", self.norm(size))

    def write(self, model, path):
        """Writes the file, and the logits of the model with the same weights."""
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()
        model.load_state_dict(self.state)
        with torch.no_grad():
            logits = model(torch.tensor([IDS])).logits[0].float().numpy()
        save_file({"ids": np.array(IDS, dtype=np.int32), "logits": logits}, path)
        print("spread", (logits.max(1) - logits.min(1)).mean())


def settings(hidden, **others):
    return dict(hidden_size=hidden, intermediate_size=hidden, head_dim=hidden // HEADS, num_attention_heads=HEADS,
                num_key_value_heads=HEADS, vocab_size=VOCAB, rms_norm_eps=1e-6, rope_theta=10000.0,
                max_position_embeddings=1024, tie_word_embeddings=False, **others)


def all_types(folder):
    random = np.random.default_rng(11)
    fixture = Fixture(folder / "low-bits.gguf", "qwen3", random, HIDDEN, LAYERS)
    fixture.ends()
    for layer in range(LAYERS):
        below, above = f"blk.{layer}.", f"model.layers.{layer}."
        fixture.norms(below, above)
        for (ours, theirs), name in zip(NAMES, TYPES[layer * len(NAMES):]):
            blocks, values = matrix(name, random)
            number = Q2_0 if name == "Q2_0" else GGMLQuantizationType[name]
            if name == "NVFP4":
                scale = np.float32(1.2 / np.sqrt(HIDDEN) / values.std())
                fixture.writer.add_tensor(f"{below}{ours}.scale", np.array([scale]))
                fixture.writer.add_tensor(f"{below}{ours}.input_scale", np.array([0.5], dtype=np.float32))
                values = values * scale
            add_blocks(fixture.writer, f"{below}{ours}.weight", blocks, number)
            fixture.state[f"{above}{theirs}.weight"] = torch.from_numpy(np.ascontiguousarray(values))
    model = Qwen3ForCausalLM(Qwen3Config(num_hidden_layers=LAYERS, **settings(HIDDEN))).eval()
    fixture.write(model, folder / "low-bits.reference.safetensors")


def stack(fixture, below, ours, scaled):
    """Adds a stack of experts in the converter's form. Returns its values [EXPERTS, SMALL, SMALL]."""
    made = [matrix("NVFP4", fixture.random, SMALL, SMALL) for _ in range(EXPERTS)]
    scales = np.array([1.2 / np.sqrt(SMALL) / values.std() for _, values in made], dtype=np.float32)
    scales = scales * np.linspace(0.5, 1.5, EXPERTS, dtype=np.float32) if scaled else np.ones_like(scales)
    fixture.writer.add_tensor(f"{below}{ours}.weight", np.stack([blocks for blocks, _ in made]),
                              raw_dtype=GGMLQuantizationType.NVFP4)
    if scaled:
        fixture.writer.add_tensor(f"{below}{ours}.scale", scales)
        fixture.writer.add_tensor(f"{below}{ours}.input_scale", np.full(EXPERTS, 0.5, dtype=np.float32))
    return np.stack([values * scale for (_, values), scale in zip(made, scales)])


def experts(folder):
    random = np.random.default_rng(12)
    fixture = Fixture(folder / "nvfp4-experts.gguf", "qwen3moe", random, SMALL, 1)
    fixture.writer.add_expert_count(EXPERTS)
    fixture.writer.add_expert_used_count(CHOSEN)
    fixture.writer.add_expert_feed_forward_length(SMALL)
    fixture.ends()
    below, above = "blk.0.", "model.layers.0."
    fixture.norms(below, above)
    for ours, theirs in NAMES[:4]:
        fixture.floats(f"{below}{ours}.weight", f"{above}{theirs}.weight",
                       (1.2 / np.sqrt(SMALL) * random.standard_normal((SMALL, SMALL))).astype(np.float32))
    fixture.floats(f"{below}ffn_gate_inp.weight", f"{above}mlp.gate.weight",
                   (0.3 * random.standard_normal((EXPERTS, SMALL))).astype(np.float32))
    gate, up = stack(fixture, below, "ffn_gate_exps", True), stack(fixture, below, "ffn_up_exps", True)
    fixture.state[f"{above}mlp.experts.gate_up_proj"] = torch.from_numpy(np.concatenate([gate, up], axis=1))
    fixture.state[f"{above}mlp.experts.down_proj"] = torch.from_numpy(stack(fixture, below, "ffn_down_exps", False))
    config = Qwen3MoeConfig(num_hidden_layers=1, num_experts=EXPERTS, num_experts_per_tok=CHOSEN,
                            moe_intermediate_size=SMALL, norm_topk_prob=True, experts_implementation="eager",
                            **settings(SMALL))
    fixture.write(Qwen3MoeForCausalLM(config).eval(), folder / "nvfp4-experts.reference.safetensors")


def add_blocks(writer, name, blocks, number):
    """Adds blocks of Q2_0, which the package doesn't know: as Q1_0 with the same number of columns, and then
    renamed."""
    if number != Q2_0:
        writer.add_tensor(name, blocks, raw_dtype=number)
        return
    writer.add_tensor(name, blocks, raw_shape=(HIDDEN, HIDDEN // 128 * 18), raw_dtype=GGMLQuantizationType.Q1_0)
    writer.tensors[-1][name].dtype = number


if __name__ == "__main__":
    all_types(Path(sys.argv[1]))
    experts(Path(sys.argv[1]))
