#!/usr/bin/env python3
"""configurations.py DATA: what transformers computes for fixtures whose rotary positions are scaled in another way.

In: tests/data. Out: DATA/configurations: cases.json has ids and the members that replace those of a fixture's
config.json (if it is nested, those of its text_config); logits.safetensors has for each case the float32 logits after
the last id.
"""
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

import mixtures
import qwen35

TRAINED = dict(factor=4.0, original_max_position_embeddings=24)
LLAMA3 = dict(rope_type="llama3", low_freq_factor=1.0, high_freq_factor=4.0) | TRAINED
PROMPT = 3  # 40 ids, or 75

SCALED = {
    "deepseek-linear": ("deepseek-v3-odd", dict(type="linear", factor=2.0, mscale_all_dim=1.0)),
    "deepseek-llama3": ("deepseek-v3-odd", LLAMA3),
    "deepseek-yarn": ("deepseek-v3-own", dict(type="yarn", beta_fast=8) | TRAINED),
    "flash-yarn": ("glm-4.7-flash-odd", dict(rope_type="yarn", mscale=0.7, mscale_all_dim=0.9) | TRAINED),
    "glm4-linear": ("glm4-moe-odd", dict(type="linear", factor=3.0)),
    "qwen3-yarn": ("qwen3-moe-odd", dict(rope_type="yarn", attention_factor=1.25) | TRAINED),
    "qwen35-yarn": ("qwen35-odd", dict(rope_type="yarn") | TRAINED),
    "qwen35-moe-llama3": ("qwen35-moe-odd", LLAMA3),
}


def of_mixture(folder, name, scaling):
    config = mixtures.MODELS[name]["config"]
    key = "rope_parameters" if config.get("rope_parameters") else "rope_scaling"
    changes = {key: scaling | ({"rope_theta": config[key]["rope_theta"]} if key == "rope_parameters" else {})}
    mixtures.MODELS[name]["config"] = config | json.loads(json.dumps(changes))
    model = mixtures.load(folder, name)
    mixtures.MODELS[name]["config"] = config
    return changes, model, False


def of_qwen35(folder, name, scaling):
    spec = qwen35.MODELS[name]
    rope = spec["rope"] | scaling
    model = qwen35.load(folder, spec | {"rope": dict(rope)})
    return {"rope_parameters": rope}, model, spec["nested"]


@torch.no_grad()
def main(data):
    cases, tensors = [], {}
    torch.set_num_threads(1)
    for case, (name, scaling) in SCALED.items():
        folder = data / "models" / name
        changes, model, nested = (of_qwen35 if name.startswith("qwen35") else of_mixture)(folder, name, scaling)
        ids = json.loads((folder / "reference.json").read_text())["prompts"][PROMPT]
        tensors[case] = model.run(ids)[0][-1].float().contiguous()
        cases.append({"case": case, "model": name, "nested": nested, "changes": changes, "ids": ids})
    (data / "configurations").mkdir(exist_ok=True)
    save_file(tensors, data / "configurations/logits.safetensors")
    (data / "configurations/cases.json").write_text(json.dumps(cases, indent=1))


main(Path(sys.argv[1]))
