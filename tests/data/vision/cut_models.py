"""Cuts folders of models that read pictures down to the parts that tests/engine/vision/test_vision_models.c reads:
python3 cut_models.py ROOT

ROOT/NAME has a model with random weights, its pictures, and reference.json and reference.safetensors with what
transformers 5.24 computed from them in float32: prompts, logits, greedy texts, rows of pictures, and drafts of the MTP
layer or of the assistant in its own folder. The experts of Qwen3-VL's mixture are transposed, as published. text.gguf
and mmproj.gguf are llama.cpp's conversions (--outtype bf16, and --mmproj). Needs numpy and safetensors.

The model is kept whole. Of the reference, only these are kept: the last rows of logits, the values of some patches
(and some layers of Gemma 4's many patches), and the drafts after two of the prompts. reference.json has the widths,
the sizes of pictures and the seed.
"""
import json
import os
import shutil
import sys

import numpy as np
from safetensors.numpy import load_file, save_file

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = ["qwen3.5", "qwen3-vl", "qwen3-vl-moe", "qwen2.5-vl", "gemma3", "gemma4-dense", "gemma4-e", "gemma4-unified"]
FILES = ["config.json", "generation_config.json", "preprocessor_config.json", "processor_config.json", "tokenizer.json",
         "tokenizer_config.json", "chat_template.jinja", "model.safetensors"]
PAIRED = ["qwen3.5", "qwen3-vl-moe", "qwen2.5-vl", "gemma3", "gemma4-dense", "gemma4-e", "gemma4-unified"]
PAIR = ["text.gguf", "mmproj.gguf"]
ROWS, PATCHES, LAYER_PATCHES, DRAFTED = 4, 6, 60, (3, 4)
DROPPED = ("debug.", "greedy.", "draft_placeholder.")


def cut(root, name):
    folder, out = os.path.join(root, name), os.path.join(HERE, name)
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    for file in FILES + (PAIR if name in PAIRED else []):
        if os.path.exists(os.path.join(folder, file)):
            shutil.copyfile(os.path.join(folder, file), os.path.join(out, file))
    shutil.copytree(os.path.join(folder, "image"), os.path.join(out, "image"))
    if os.path.exists(os.path.join(folder, "assistant")):
        shutil.copytree(os.path.join(folder, "assistant"), os.path.join(out, "assistant"))
    with open(os.path.join(folder, "reference.json")) as file:
        info = json.load(file)
    tensors = {}
    for key, value in load_file(os.path.join(folder, "reference.safetensors")).items():
        part = key.split(".")
        if key.startswith(DROPPED) or key.endswith((".hidden", ".mm_token_type_ids")):
            continue
        if part[0] == "draft" and int(part[1]) not in DRAFTED:
            continue
        if part[0] == "prompt" and part[2] == "logits":
            value = value[-ROWS:]
        if part[-1] == "pixel_values" and value.ndim == 2:
            value = value[:PATCHES]
        if part[-1] == "vision_layers" and name.startswith("gemma4"):
            value = value[:, :LAYER_PATCHES]
        tensors[key] = np.ascontiguousarray(value)
    info["logits_from"] = [len(ids) - ROWS for ids in info["prompts"]]
    for key in ("debug_prompt", "draft_placeholder", "numerics", "specials"):
        info.pop(key, None)
    for entry in info.get("draft", {}).get("cases", []):
        entry["kept"] = entry["prompt"] in DRAFTED
    if "draft" in info:
        info["draft"]["cases"] = [entry for entry in info["draft"]["cases"] if entry.pop("kept")]
    save_file(tensors, os.path.join(out, "reference.safetensors"))
    with open(os.path.join(out, "reference.json"), "w") as file:
        json.dump(info, file)
        file.write("\n")


if __name__ == "__main__":
    for name in NAMES:
        if os.path.exists(os.path.join(sys.argv[1], name)):
            cut(sys.argv[1], name)
