#!/usr/bin/env python3
"""fp8.py make|verify FOLDER: a tiny random Llama with FP8 weights, and what transformers computes with it.

make    writes FOLDER/llama-fp8: the model in the form of DeepSeek-V3's and Qwen's published FP8 checkpoints,
        reference.json, reference.safetensors
verify  reads it back and computes everything again

Codes are torch.float8_e4m3fn. There is a scale for each block of 128 rows by 128 columns, in layer 0 as float32, in
layer 1 as bfloat16. No size is a multiple of a block. Blocks differ in the size of their values, and some values are
so small that their codes are subnormal. The head, the embeddings, the norms and one projection are not converted. The
reference is computed in float32 from code * scale, each weight rounded once: eager attention, no cache, one thread.
reference.json has `codes`, the value that torch reads each of the 256 codes as (null: NaN), and what llama.py writes.
"""
import json
import os
import random
import sys
from pathlib import Path

os.environ |= {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}

import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

NAME, SEED, GREEDY, LENGTHS, BLOCK = "llama-fp8", 59, 48, (1, 7, 19, 101), 128
PLAIN = "model.layers.1.mlp.down_proj"  # this projection is not converted
CONFIG = dict(vocab_size=211, hidden_size=150, intermediate_size=270, num_hidden_layers=2, num_attention_heads=6,
              num_key_value_heads=2, head_dim=22, hidden_act="silu", max_position_embeddings=640, rms_norm_eps=1e-5,
              attention_bias=False, mlp_bias=False, tie_word_embeddings=False, bos_token_id=1, eos_token_id=[2, 5],
              rope_parameters={"rope_type": "default", "rope_theta": 10000.0})


def spread(scales, shape):
    """Returns the scale of each weight."""
    return scales.float().repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)[:shape[0], :shape[1]]


def random_weights(shape):
    blocks = torch.rand((shape[0] + BLOCK - 1) // BLOCK, (shape[1] + BLOCK - 1) // BLOCK) + 0.5
    weights = torch.randn(shape) * shape[-1] ** -0.5 * 1.7 * spread(blocks, shape)
    return torch.where(torch.rand(shape) < 0.03, weights * 1e-4, weights)


def quantize(weights, kind):
    rows, cols = [(n + BLOCK - 1) // BLOCK for n in weights.shape]
    scales = torch.empty(rows, cols)
    for r in range(rows):
        for c in range(cols):
            scales[r, c] = weights[r * BLOCK:(r + 1) * BLOCK, c * BLOCK:(c + 1) * BLOCK].abs().max() / 448
    scales = scales.to(kind)
    return (weights / spread(scales, weights.shape)).clamp(-448, 448).to(torch.float8_e4m3fn), scales


def make(folder):
    torch.manual_seed(SEED)
    tensors = {}
    for name, parameter in LlamaForCausalLM(LlamaConfig(**CONFIG)).named_parameters():
        shape = tuple(parameter.shape)
        if "_proj" in name and PLAIN not in name:
            kind = torch.float32 if ".layers.0." in name else torch.bfloat16
            tensors[name], tensors[name + "_scale_inv"] = quantize(random_weights(shape), kind)
        else:
            tensors[name] = (random_weights(shape) if len(shape) > 1 else 1 + 0.2 * torch.randn(shape)).bfloat16()
    folder.mkdir(parents=True, exist_ok=True)
    save_file({k: v.contiguous() for k, v in tensors.items()}, folder / "model.safetensors", {"format": "pt"})
    config = LlamaConfig(**CONFIG, architectures=["LlamaForCausalLM"], dtype="bfloat16").to_dict()
    config["quantization_config"] = {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8",
                                     "weight_block_size": [BLOCK, BLOCK], "modules_to_not_convert": ["lm_head", PLAIN]}
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def read(folder):
    config = json.loads((folder / "config.json").read_text())
    config.pop("quantization_config")
    model = LlamaForCausalLM(LlamaConfig(**config, attn_implementation="eager")).float().eval()
    tensors = load_file(folder / "model.safetensors")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values, scales = tensors[name].float(), tensors.get(name + "_scale_inv")
            parameter.copy_(values if scales is None else values * spread(scales, values.shape))
    return model


@torch.no_grad()
def compute(model):
    rnd, tensors = random.Random(SEED), {}
    prompts = [[1] + [rnd.randrange(8, CONFIG["vocab_size"]) for _ in range(n - 1)] for n in LENGTHS]
    run = lambda ids: model(torch.tensor([ids]), use_cache=False).logits[0]
    codes = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float().tolist()
    info = {"family": NAME, "seed": SEED, "transformers": "5.17.0", "prompts": prompts, "greedy": [],
            "codes": [None if c != c else c for c in codes]}
    for i, prompt in enumerate(prompts):
        tensors[f"prompt.{i}.logits"] = run(prompt)
    for i in (2, 3):
        ids, rows = [], []
        while len(ids) < GREEDY:
            rows.append(run(prompts[i] + ids)[-1])
            ids.append(int(rows[-1].argmax()))
        best, second = torch.stack(rows).topk(2, -1).values.unbind(-1)
        tensors[f"greedy.{i}.logits"] = torch.stack(rows)
        info["greedy"].append({"prompt": i, "tokens": ids, "margins": [round(float(m), 6) for m in best - second]})
    return info, tensors


def main():
    torch.set_num_threads(1)
    folder = Path(sys.argv[2], NAME)
    if sys.argv[1] == "make":
        make(folder)
    info, tensors = compute(read(folder))
    if sys.argv[1] == "make":
        save_file({k: v.contiguous() for k, v in tensors.items()}, folder / "reference.safetensors")
        (folder / "reference.json").write_text(json.dumps(info, separators=(",", ":")))
    stored = load_file(folder / "reference.safetensors")
    apart = max(float((stored[k] - v).abs().max()) for k, v in tensors.items())
    assert apart == 0 and info == json.loads((folder / "reference.json").read_text()), apart
    print(f"{NAME}: verified; smallest margin {min(min(g['margins']) for g in info['greedy'])}")


main()
