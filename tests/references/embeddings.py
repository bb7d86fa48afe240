#!/usr/bin/env python3
"""embeddings.py FOLDER: a tiny Qwen3 in the form of published embedding models, and the vectors that transformers
computes.

In: nothing. Out: FOLDER with the decoder alone (tensors' names without "model.", no head), config.json,
1_Pooling/config.json as sentence-transformers writes it, and reference.safetensors: for each text its ids and its
hidden rows pooled by mean, cls and last, with length 1.
"""
import json
import os
import sys
from pathlib import Path

os.environ |= {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1"}

import torch
from safetensors.torch import save_file
from transformers import Qwen3Config, Qwen3Model

LENGTHS = (1, 5, 77)
MODES = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")


def pooled(rows):
    each = {"mean": rows.mean(0), "cls": rows[0], "last": rows[-1]}
    return {name: torch.nn.functional.normalize(row, dim=0) for name, row in each.items()}


def main():
    folder = Path(sys.argv[1])
    torch.manual_seed(51)
    torch.set_num_threads(1)
    config = Qwen3Config(vocab_size=120, hidden_size=48, intermediate_size=72, num_hidden_layers=3, head_dim=20,
                         num_attention_heads=6, num_key_value_heads=2, max_position_embeddings=256, rope_theta=5000.0,
                         tie_word_embeddings=True, attn_implementation="eager", initializer_range=0.2,
                         eos_token_id=1, bos_token_id=None)
    model = Qwen3Model(config).eval().float()
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            if "norm" in name: tensor.add_(0.3 * torch.randn_like(tensor))
    (folder / "1_Pooling").mkdir(parents=True, exist_ok=True)
    save_file({name: t.contiguous() for name, t in model.state_dict().items()}, folder / "model.safetensors",
              metadata={"format": "pt"})
    said = config.to_dict() | {"architectures": ["Qwen3ForCausalLM"]}
    (folder / "config.json").write_text(json.dumps(said, indent=1) + "\n")
    modes = {f"pooling_mode_{mode}": mode == "lasttoken" for mode in MODES}
    said = json.dumps({"word_embedding_dimension": 48} | modes, indent=1)
    (folder / "1_Pooling" / "config.json").write_text(said + "\n")
    reference = {}
    for i, length in enumerate(LENGTHS):
        ids = torch.randint(2, 120, (length,))
        with torch.no_grad(): rows = model(ids[None]).last_hidden_state[0].double()
        reference[f"ids.{i}"] = ids.int()
        reference |= {f"{name}.{i}": row.float() for name, row in pooled(rows).items()}
    save_file(reference, folder / "reference.safetensors")


main()
