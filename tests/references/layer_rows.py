#!/usr/bin/env python3
"""layer_rows.py FOLDER OUT: the inputs that transformers gives the layers of a model, and the last layer's output.

FOLDER: one of Llama's fixtures, with its reference.json. OUT: a safetensors file with prompt.I.rows, [T, layers + 1,
hidden] in float32, of its third prompt: the inputs of all layers, and the last one's output before the final norm.
"""
import json
import os
import sys
from pathlib import Path

os.environ |= {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}

import torch
from safetensors.torch import save_file
from transformers import LlamaForCausalLM

PROMPT = 2


def main():
    torch.set_num_threads(1)
    folder, rows = Path(sys.argv[1]), []
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    for layer in model.model.layers:
        layer.register_forward_pre_hook(
            lambda module, args, kwargs: rows.append((args or [kwargs["hidden_states"]])[0]), with_kwargs=True)
    model.model.norm.register_forward_pre_hook(lambda module, args: rows.append(args[0]))
    ids = json.loads((folder / "reference.json").read_text())["prompts"][PROMPT]
    with torch.no_grad():
        model(torch.tensor([ids]), use_cache=False)
    save_file({f"prompt.{PROMPT}.rows": torch.stack([row[0] for row in rows], 1).contiguous()}, sys.argv[2])


main()
