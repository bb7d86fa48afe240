#!/usr/bin/env python3
"""llama.py make|verify FOLDER: a tiny random Llama, and what transformers computes with it.

make    writes FOLDER/llama-odd: the model in its published form, reference.json, reference.safetensors
verify  reads it back and computes everything again, also with a cache

The dimensions are such that code written only for the published ones would get them wrong: heads that together are not
as wide as the stream, no powers of two, biases everywhere, tied embeddings, linearly scaled rotary positions. As in
make_reference.py: float32, eager attention, no cache, one thread; prompt.I.logits [T, vocab], greedy.I.logits [48,
vocab].
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

NAME, SEED, GREEDY, LENGTHS = "llama-odd", 517, 48, (1, 7, 19, 101)
CONFIG = dict(vocab_size=403, hidden_size=90, intermediate_size=76, num_hidden_layers=3, num_attention_heads=6,
              num_key_value_heads=3, head_dim=22, hidden_act="silu", max_position_embeddings=640, rms_norm_eps=3e-6,
              attention_bias=True, mlp_bias=True, tie_word_embeddings=True, bos_token_id=1, eos_token_id=[2, 5],
              rope_parameters={"rope_type": "linear", "factor": 2.5, "rope_theta": 7000.0})


def build():
    torch.manual_seed(SEED)
    model = LlamaForCausalLM(LlamaConfig(**CONFIG, attn_implementation="eager")).float().eval()
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            scale = 0.3 if name.endswith("bias") else tensor.shape[-1] ** -0.5
            tensor.copy_(torch.randn_like(tensor) * scale * 1.7 if tensor.dim() > 1 or name.endswith("bias")
                         else 1 + 0.2 * torch.randn_like(tensor))
            tensor.copy_(tensor.bfloat16().float())
    return model


@torch.no_grad()
def compute(model):
    rnd, tensors = random.Random(SEED), {}
    prompts = [[1] + [rnd.randrange(8, CONFIG["vocab_size"]) for _ in range(n - 1)] for n in LENGTHS]
    run = lambda ids: model(torch.tensor([ids]), use_cache=False).logits[0]
    info = {"family": NAME, "seed": SEED, "transformers": "5.17.0", "prompts": prompts, "greedy": []}
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
        build().bfloat16().save_pretrained(folder)
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    info, tensors = compute(model)
    if sys.argv[1] == "make":
        save_file({k: v.contiguous() for k, v in tensors.items()}, folder / "reference.safetensors")
        (folder / "reference.json").write_text(json.dumps(info, separators=(",", ":")))
    stored = load_file(folder / "reference.safetensors")
    apart = max(float((stored[k] - v).abs().max()) for k, v in tensors.items())
    cached = model.generate(torch.tensor([info["prompts"][2]]), max_new_tokens=GREEDY, do_sample=False,
                            eos_token_id=None, pad_token_id=0)[0].tolist()
    least = min(min(g["margins"]) for g in info["greedy"])
    assert apart == 0 and cached[len(info["prompts"][2]):] == info["greedy"][0]["tokens"], apart
    print(f"{NAME}: verified; smallest margin {least}")


main()
