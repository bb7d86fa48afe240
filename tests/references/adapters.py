#!/usr/bin/env python3
"""Makes tests/data/adapters: LoRA adapters for tiny models, and what peft computes with them in float32.

    PYTHONPATH=FOLDER python3 tests/references/adapters.py [--llama.cpp FOLDER] [NAME...]

Needs torch, transformers 5.15, peft 0.18 and accelerate 1.12. Each adapter has reference.json (the model's folder, the
prompt's ids, 48 greedy ids) and reference.safetensors (the prompt's logits). One also has merged.safetensors (16 rows
of two matrices after merge_and_unload). If llama.cpp's folder is given, its convert_lora_to_gguf.py also writes
adapter.gguf. peft can't run adapters of single experts with transformers 5, which has all experts in one parameter.
For these, b(a) is added to the model's own weights instead."""
import argparse
import json
import os
import struct
import subprocess
import sys

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
FFN = ["gate_proj", "up_proj", "down_proj"]
CASES = {
    "llama": ("llama", dict(target_modules=ATTENTION + FFN + ["lm_head"], r=2, lora_alpha=4,
                            rank_pattern={"layers.0.self_attn.q_proj": 3, r"layers\.1\..*down_proj": 1},
                            alpha_pattern={"down_proj": 5})),
    "llama-other": ("llama", dict(target_modules=["q_proj", "up_proj"], r=5, lora_alpha=3, use_rslora=True)),
    "mistral-nemo": ("mistral-nemo", dict(target_modules=ATTENTION + FFN, r=2, lora_alpha=4)),
    "qwen3": ("qwen3-odd", dict(target_modules=ATTENTION + FFN, r=2, lora_alpha=4)),
    "phi3": ("phi3-window", dict(target_modules=["qkv_proj", "o_proj", "gate_up_proj", "down_proj"], r=2,
                                 lora_alpha=4)),
    "gemma4": ("gemma4-e-odd", dict(target_modules=ATTENTION + FFN + [
        "per_layer_input_gate", "per_layer_projection", "per_layer_model_projection"], r=2, lora_alpha=4)),
    "qwen2-moe": ("qwen2-moe-odd", dict(target_modules=ATTENTION + [
        "shared_expert.gate_proj", "shared_expert.down_proj"], r=2, lora_alpha=4)),
    "gpt-neox": ("gpt-neox-odd", dict(target_modules=["query_key_value", "dense_4h_to_h"], r=2, lora_alpha=4)),
    "falcon": ("falcon-40b", dict(target_modules=["query_key_value", "dense_h_to_4h"], r=2, lora_alpha=4)),
    "gpt2": ("gpt2-odd", dict(target_modules=["c_attn", "c_fc"], r=2, lora_alpha=4, fan_in_fan_out=True)),
    "glm4": ("glm4-dense", dict(target_modules=["q_proj", "k_proj", "gate_up_proj"], r=2, lora_alpha=4)),
    "mla": ("deepseek-v3-odd", dict(target_modules=["q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "o_proj"], r=2,
                                    lora_alpha=4)),
    "deltanet": ("qwen35-odd", dict(target_modules=ATTENTION + FFN + [
        "in_proj_qkv", "in_proj_z", "in_proj_a", "in_proj_b", "out_proj"], r=2, lora_alpha=4)),
}
EXPERTS = {"experts": "qwen3-moe-odd"}
PROMPT, GREEDY = 12, 48


def values(shape, generator, size):
    """Returns random values whose products are as large as the model's own. They are rounded to BF16, as files store
    them."""
    return (torch.randn(shape, generator=generator) * size / shape[-1] ** 0.5).to(torch.bfloat16).float()


def run(model, base, folder):
    vocab = base.config.get_text_config().vocab_size
    ids = torch.tensor([[(7 + 13 * i) % vocab for i in range(PROMPT)]])
    with torch.no_grad():
        logits = model(ids).logits[0].float().contiguous()
        text = ids
        for _ in range(GREEDY):
            text = torch.cat([text, model(text).logits[0, -1].argmax()[None, None]], 1)
    save_file({"logits": logits}, os.path.join(folder, "reference.safetensors"))
    return {"ids": ids[0].tolist(), "greedy": text[0, PROMPT:].tolist()}


def make(name, of, config):
    folder = os.path.join(ROOT, "adapters", name)
    base = AutoModelForCausalLM.from_pretrained(os.path.join(ROOT, "models", of), dtype=torch.float32,
                                                experts_implementation="eager").eval()
    model = get_peft_model(base, LoraConfig(task_type="CAUSAL_LM", **config)).eval()
    generator = torch.Generator().manual_seed(len(name) * 1000 + sum(map(ord, name)))
    for key, parameter in model.named_parameters():
        if "lora_" in key:
            parameter.data = values(parameter.shape, generator, 0.5 if "lora_B" in key else 1)
    model.save_pretrained(folder, save_embedding_layers=False)
    os.remove(os.path.join(folder, "README.md"))
    with open(os.path.join(folder, "adapter_config.json")) as file:
        said = json.load(file)
    said["base_model_name_or_path"] = f"tests/data/models/{of}"  # peft writes this machine's path
    with open(os.path.join(folder, "adapter_config.json"), "w") as file:
        json.dump(said, file, indent=2)
    path = os.path.join(folder, "adapter_model.safetensors")
    save_file({key: value.to(torch.bfloat16).contiguous() for key, value in load_file(path).items()}, path)
    write_reference(folder, of, run(model, base, folder))
    if name == "llama":
        layer = model.merge_and_unload().model.layers[0]
        save_file({"v_proj": layer.self_attn.v_proj.weight.data[:16].contiguous(),
                   "down_proj": layer.mlp.down_proj.weight.data[:16].contiguous()},
                  os.path.join(folder, "merged.safetensors"))


def make_experts(name, of):
    folder = os.path.join(ROOT, "adapters", name)
    os.makedirs(folder, exist_ok=True)
    model = AutoModelForCausalLM.from_pretrained(os.path.join(ROOT, "models", of), dtype=torch.float32,
                                                experts_implementation="eager").eval()
    generator = torch.Generator().manual_seed(77)
    tensors, rank, alpha = {}, 2, 4
    for index, layer in enumerate(model.model.layers):
        experts = layer.mlp.experts
        for e in range(experts.gate_up_proj.shape[0]):
            half = experts.gate_up_proj.shape[1] // 2
            targets = {"gate_proj": experts.gate_up_proj.data[e, :half], "up_proj": experts.gate_up_proj.data[e, half:],
                       "down_proj": experts.down_proj.data[e]}
            for module, weight in targets.items():
                a = values((rank, weight.shape[1]), generator, 1)
                b = values((weight.shape[0], rank), generator, 0.5)
                weight += alpha / rank * (b @ a)
                stem = f"base_model.model.model.layers.{index}.mlp.experts.{e}.{module}"
                tensors[stem + ".lora_A.weight"] = a.to(torch.bfloat16)
                tensors[stem + ".lora_B.weight"] = b.to(torch.bfloat16)
    save_file(tensors, os.path.join(folder, "adapter_model.safetensors"))
    with open(os.path.join(folder, "adapter_config.json"), "w") as file:
        json.dump({"peft_type": "LORA", "r": rank, "lora_alpha": alpha, "target_modules": list(targets)}, file)
    write_reference(folder, of, run(model, model, folder))


def write_reference(folder, of, reference):
    with open(os.path.join(folder, "reference.json"), "w") as file:
        json.dump({"model": of, **reference}, file)


def make_vector(name, of):
    """Makes a control vector. Its logits are those of the model with hooks that add it: all of it by 1, and layers 2
    to 4 by -0.5."""
    folder = os.path.join(ROOT, "adapters", name)
    os.makedirs(folder, exist_ok=True)
    model = AutoModelForCausalLM.from_pretrained(os.path.join(ROOT, "models", of), dtype=torch.float32).eval()
    layers, hidden = model.model.layers, model.config.hidden_size
    generator = torch.Generator().manual_seed(5)
    directions = {n: values((hidden,), generator, 3) for n in range(1, len(layers))}
    text = lambda value: struct.pack("<Q", len(value)) + value.encode()
    infos = b"".join(text(f"direction.{n}") + struct.pack("<IQIQ", 1, hidden, 0, i * -(-hidden * 4 // 32) * 32)
                     for i, n in enumerate(directions))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(directions), 2) + b"".join(
        text(key) + struct.pack("<I", 8) + text(value)
        for key, value in [("general.architecture", "controlvector"), ("controlvector.model_hint", "llama")]) + infos
    data = b"".join(row.numpy().tobytes() + bytes(-hidden * 4 % 32) for row in directions.values())
    with open(os.path.join(folder, "vector.gguf"), "wb") as file:
        file.write(head + bytes(-len(head) % 32) + data)
    logits, add = {}, lambda row: lambda module, inputs, output: output + row
    for key, scale, chosen in [("all", 1, range(1, len(layers))), ("part", -0.5, range(2, 5))]:
        hooks = [layers[n].register_forward_hook(add(scale * directions[n])) for n in chosen]
        ids = torch.tensor([[(7 + 13 * i) % model.config.vocab_size for i in range(PROMPT)]])
        with torch.no_grad():
            logits[key] = model(ids).logits[0].float().contiguous()
        for hook in hooks:
            hook.remove()
    save_file(logits, os.path.join(folder, "reference.safetensors"))


def convert(tree, name, of):
    folder = os.path.join(ROOT, "adapters", name)
    subprocess.run([sys.executable, os.path.join(tree, "convert_lora_to_gguf.py"), "--base",
                    os.path.join(ROOT, "models", of), "--outtype", "f32", "--outfile",
                    os.path.join(folder, "adapter.gguf"), folder], check=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--llama.cpp", dest="tree")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    torch.set_num_threads(1)
    for name, (of, config) in CASES.items():
        if args.names and name not in args.names:
            continue
        make(name, of, config)
        if args.tree and name in ("mistral-nemo", "qwen3"):
            convert(args.tree, name, of)
    if not args.names or "llama-vector" in args.names:
        make_vector("llama-vector", "llama")
    for name, of in EXPERTS.items():
        if not args.names or name in args.names:
            make_experts(name, of)


main()
