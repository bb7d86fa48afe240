"""Writes tests/data/gguf/rotated.gguf, rotated.reference.safetensors and rotated-qwen35.gguf. Their weights are stored
rotated, like those of PrismML's Bonsai 2 (formats/rotation.h).

    python3 tests/references/rotated.py tests/data/gguf     (needs gguf, torch, transformers, safetensors, numpy)

rotated.gguf is a Qwen3 of random blocks of PQ2_0, PTQ1_0 and other types. All matrices but one, and the embedding
table, are rotated, with explicit signs for two widths. The reference has transformers' logits with the weights rotated
back. rotated-qwen35.gguf is the model qwen35-odd, for which transformers' results are stored, in float16: every weight
that may be rotated is, and the heads of ssm_out are grouped. The matrix of the transform is Sylvester's: H[r][c] =
(-1)^(bits that r and c share) / sqrt(block).
"""
import json
import sys
from pathlib import Path

import gguf
import numpy as np
import torch
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from transformers import Qwen3Config, Qwen3ForCausalLM

from block_types import SIZES, decode
from low_bits import HEADS, HIDDEN, IDS, LAYERS, NAMES, VOCAB, Fixture, put_scale, settings

INNER, BLOCK = 384, 128
NUMBERS = {"PQ2_0": 142, "PTQ1_0": 143}
TYPES = ["PQ2_0", "PTQ1_0", "PQ2_0", "PTQ1_0", "PTQ1_0", "Q4_0", "PQ2_0",
         "Q4_0", "TQ2_0", "PQ2_0", "PTQ1_0", "PQ2_0", "PTQ1_0", "PQ2_0"]
PLAIN = "blk.1.attn_q.weight"  # this matrix is not rotated; others that read the same rows are


def transform(block):
    index = np.arange(block)
    shared = np.array([bin(i).count("1") for i in range(block)])[index[:, None] & index[None, :]]
    return np.where(shared % 2 == 0, 1.0, -1.0) / np.sqrt(block)


def back(rows, signs, block):
    """Returns w = signs * (H w'), block by block. H is its own inverse, so H (signs * w) rotates."""
    return (rows.reshape(-1, block) @ transform(block)).reshape(rows.shape) * signs


def forth(rows, signs, block):
    return ((rows * signs).reshape(-1, block) @ transform(block)).reshape(rows.shape)


def add_blocks(writer, name, blocks, kind, rows, cols):
    """Adds blocks of PrismML's types, which the package doesn't know: as bytes, which are then renamed."""
    if kind in NUMBERS:
        writer.add_tensor(name, blocks, raw_dtype=GGMLQuantizationType.I8)
        info = writer.tensors[-1][name]
        info.dtype, info.shape = NUMBERS[kind], (rows, cols)
    else:
        writer.add_tensor(name, blocks, raw_dtype=GGMLQuantizationType[kind])


def matrix(kind, random, rows, cols):
    values, size = SIZES.get(kind) or GGML_QUANT_SIZES[GGMLQuantizationType[kind]]
    blocks = random.integers(0, 256, (rows * cols // values, size), dtype=np.uint8)
    d = 1.0
    for _ in range(2):
        put_scale(kind, blocks, d)
        decoded = np.ascontiguousarray(decode(kind, blocks), dtype=np.float32).reshape(rows, cols)
        d = 1.2 / np.sqrt(cols) / decoded.std()
    return blocks.reshape(rows, -1), decoded


def add_keys(writer, block, signs, names, tables, grouped=None):
    key = "prism.hadamard."
    writer.add_uint32(key + "version", 1)
    writer.add_uint32(key + "block_size", block)
    writer.add_string(key + "transform", "normalized-sylvester-walsh-hadamard")
    writer.add_string(key + "axis", "input-last-dimension")
    writer.add_string(key + "sign_mode", "explicit")
    writer.add_array(key + "sign_widths", [int(width) for width in signs])
    writer.add_array(key + "sign_values", [int(v) for of_width in signs.values() for v in of_width])
    writer.add_array(key + "weight_names", names)
    writer.add_array(key + "inverse_weight_names", tables)
    if grouped is not None:
        writer.add_bool(key + "gdn_v_grouped", grouped)


def ternary(folder):
    random = np.random.default_rng(21)
    fixture = Fixture(folder / "rotated.gguf", "qwen3", random, HIDDEN, LAYERS)
    fixture.writer.kv_data[0]["qwen3.feed_forward_length"].value = INNER
    signs = {width: random.choice([-1.0, 1.0], width) for width in (HIDDEN, INNER)}
    names = []

    def add(ours, theirs, kind, rows, cols, rotated=True):
        blocks, values = matrix(kind, random, rows, cols)
        add_blocks(fixture.writer, ours, blocks, kind, rows, cols)
        if rotated and ours != "token_embd.weight":
            names.append(ours)
        values = back(values.astype(np.float64), signs[cols], BLOCK) if rotated else values
        fixture.state[theirs] = torch.from_numpy(values.astype(np.float32))

    for layer in range(LAYERS):
        below, above = f"blk.{layer}.", f"model.layers.{layer}."
        fixture.norms(below, above)
        for (ours, theirs), kind in zip(NAMES, TYPES[layer * len(NAMES):]):
            cols = INNER if ours == "ffn_down" else HIDDEN
            rows = INNER if ours in ("ffn_gate", "ffn_up") else HIDDEN
            add(f"{below}{ours}.weight", f"{above}{theirs}.weight", kind, rows, cols, f"{below}{ours}.weight" != PLAIN)
    add("token_embd.weight", "model.embed_tokens.weight", "PQ2_0", VOCAB, HIDDEN)
    add("output.weight", "lm_head.weight", "PTQ1_0", VOCAB, HIDDEN)
    fixture.floats("output_norm.weight", "model.norm.weight", fixture.norm(HIDDEN))
    add_keys(fixture.writer, BLOCK, signs, names, ["token_embd.weight"])
    config = settings(HIDDEN) | dict(intermediate_size=INNER)
    model = Qwen3ForCausalLM(Qwen3Config(num_hidden_layers=LAYERS, **config)).eval()
    fixture.write(model, folder / "rotated.reference.safetensors")


KINDS = ("attn_q attn_k attn_v attn_qkv attn_gate attn_output ffn_gate ffn_up ffn_down ssm_out").split()


def hybrid(folder, source):
    """source: qwen35-odd as forerun quantize --type f32 writes it, with value heads in GGUF's order."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(folder / "rotated-qwen35.gguf", "qwen35")
    random, block = np.random.default_rng(22), 4
    for field in reader.fields.values():
        if field.name == "general.architecture" or field.name.startswith("GGUF."):
            continue
        sub = field.types[-1] if len(field.types) > 1 else None
        writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=sub)
    groups = int(reader.fields["qwen35.ssm.group_count"].contents())
    heads = int(reader.fields["qwen35.ssm.time_step_rank"].contents())
    signs, names, tensors = {}, [], []
    for tensor in reader.tensors:
        values = np.array(tensor.data, dtype=np.float32)
        kind = tensor.name.split(".")[-2]
        if kind in KINDS or kind in ("output", "token_embd"):
            cols = values.shape[-1]
            if cols not in signs:
                signs[cols] = random.choice([-1.0, 1.0], cols)
            if kind == "ssm_out":  # columns [head r * groups + g] move to [head g * each + r]
                values = values.reshape(len(values), heads // groups, groups, -1).swapaxes(1, 2).reshape(values.shape)
            values = forth(values.astype(np.float64), signs[cols], block).astype(np.float16)
            if kind != "token_embd":
                names.append(tensor.name)
        tensors.append((tensor.name, values))
    add_keys(writer, block, signs, names, ["token_embd.weight"], True)
    for name, values in tensors:
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def packed(random, rows, cols, signs):
    """Returns a rotated matrix, packed by MLX with two bits per value in groups of 128, and its values."""
    codes = random.integers(0, 3, (rows, cols), dtype=np.uint32)
    scales = (1.5 / np.sqrt(cols) * random.uniform(0.5, 1.5, (rows, cols // 128))).astype(np.float16)
    values = (codes.astype(np.float64) - 1) * np.repeat(scales.astype(np.float64), 128, axis=1)
    words = (codes.reshape(rows, -1, 16) << np.arange(0, 32, 2, dtype=np.uint32)).sum(axis=2, dtype=np.uint32)
    parts = {"weight": words, "scales": scales, "biases": -scales, "signs": signs.astype(np.float16)}
    return parts, torch.from_numpy(back(values, signs, BLOCK).astype(np.float32))


def published(folder):
    """Writes a small folder in the form in which MLX reads a Bonsai 2: DeltaNet and attention, rows of three
    widths."""
    from safetensors.numpy import save_file
    from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig
    random = np.random.default_rng(23)
    torch.manual_seed(23)
    text = dict(vocab_size=96, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4,
                num_key_value_heads=2, head_dim=32, linear_num_key_heads=2, linear_num_value_heads=6,
                linear_key_head_dim=32, linear_value_head_dim=64, linear_conv_kernel_dim=4, rms_norm_eps=1e-6,
                layer_types=["linear_attention", "full_attention"], max_position_embeddings=512,
                tie_word_embeddings=False, rope_parameters=dict(rope_type="default", rope_theta=10000.0,
                partial_rotary_factor=0.5, mrope_section=[3, 3, 2], mrope_interleaved=True))
    model = Qwen3_5ForCausalLM(Qwen3_5TextConfig(**text, attn_implementation="eager")).eval()
    signs = {width: random.choice([-1.0, 1.0], width) for width in (128, 256, 384)}
    tensors, names, tables, state = {}, [], [], model.state_dict()
    for name, value in state.items():
        module = name.rsplit(".", 1)[0]
        ours = f"language_model.{name}"
        kind = module.rsplit(".", 1)[-1]
        if value.dim() == 2 and kind not in ("in_proj_a", "in_proj_b"):
            parts, state[name] = packed(random, *value.shape, signs[value.shape[1]])
            for part, values in parts.items():
                tensors[f"language_model.{module}.{part}"] = values
            (tables if kind == "embed_tokens" else names).append(ours)
            continue
        value = 0.1 * torch.randn_like(value) if "norm" in kind else value
        value = 1 + value if name.endswith("linear_attn.norm.weight") else value
        state[name] = value
        plain = value.numpy()
        if kind == "conv1d":  # [channels, 1, kernel]
            plain = plain.transpose(0, 2, 1)
        elif "norm" in kind and not name.endswith("linear_attn.norm.weight"):
            plain = 1 + plain  # MLX's norms multiply by the stored value
        tensors[ours] = np.ascontiguousarray(plain.astype(np.float32))
    model.load_state_dict(state)
    with torch.no_grad():
        logits = model(torch.tensor([IDS]), use_cache=False).logits[0].float().numpy()
    print("spread", (logits.max(1) - logits.min(1)).mean())
    folder.mkdir(exist_ok=True)
    save_file(tensors, folder / "model.safetensors")
    save_file({"ids": np.array(IDS, dtype=np.int32), "logits": logits}, folder / "reference.safetensors")
    (folder / "config.json").write_text(json.dumps({
        "model_type": "prism_hadamard_qwen35", "base_model_type": "qwen3_5", "hadamard_config": "hadamard.json",
        "gdn_activation_layout": "grouped", "quantization": {"bits": 2, "group_size": 128, "mode": "affine"},
        "text_config": text | {"model_type": "qwen3_5_text"}}, indent=1) + "\n")
    key = "prism.hadamard."
    (folder / "hadamard.json").write_text(json.dumps({
        key + "version": 1, key + "block_size": BLOCK, key + "transform": "normalized-sylvester-walsh-hadamard",
        key + "axis": "input-last-dimension", key + "sign_mode": "explicit", key + "weight_names": names,
        key + "inverse_weight_names": tables, key + "sign_widths": list(signs),
        key + "sign_values": [float(v) for of_width in signs.values() for v in of_width],
        key + "gdn_v_grouped": True}) + "\n")


if __name__ == "__main__":
    ternary(Path(sys.argv[1]))
    published(Path(sys.argv[1]).parent / "rotated-mlx")
    if len(sys.argv) > 2:
        hybrid(Path(sys.argv[1]), sys.argv[2])
