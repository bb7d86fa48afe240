#!/usr/bin/env python3
"""storages_latent.py OUT      writes a whole model for tests/engine/weights/test_stored_weights.c

It is a small DeepSeek-V3 with random weights. mlx-lm converts and quantizes it, so that the matrices of latent
attention's heads are stacks, of which those of the last layer keep 16 bits. mlx-lm also computes the logits, with the
dequantized weights in float32. Needs mlx and mlx-lm 0.32, torch 2.9, transformers 5.24 and safetensors."""
import json
import os
import sys
import tempfile
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import torch
from mlx.utils import tree_unflatten
from mlx_lm.models.mla import MultiLinear, QuantizedMultiLinear
from mlx_lm.models.switch_layers import QuantizedSwitchLinear, SwitchLinear
from mlx_lm.utils import load_model, quantize_model, save_config, save_model
from safetensors.numpy import save_file
from transformers import DeepseekV3Config, DeepseekV3ForCausalLM

SEED, VOCAB, GROUP, BITS = 31, 96, 32, 4
PLAIN = {nn.QuantizedLinear: lambda: nn.Linear(1, 1, bias=False), nn.QuantizedEmbedding: lambda: nn.Embedding(1, 1),
         QuantizedMultiLinear: lambda: MultiLinear(1, 1, 1),
         QuantizedSwitchLinear: lambda: SwitchLinear(1, 1, 1, bias=False)}


def dequantized(model):
    """Replaces each quantized layer by a plain one with float32 weights."""
    plain = []
    for name, layer in model.named_modules():
        if type(layer) not in PLAIN: continue
        made = PLAIN[type(layer)]()
        made.weight = mx.dequantize(layer.weight, layer.scales.astype(mx.float32), layer.biases.astype(mx.float32),
                                    group_size=layer.group_size, bits=layer.bits)
        plain.append((name, made))
    model.update_modules(tree_unflatten(plain))
    model.set_dtype(mx.float32)
    return model


def published(folder):
    """Writes the model as transformers saves it, with the keys that older versions write and mlx-lm reads."""
    config = DeepseekV3Config(
        vocab_size=VOCAB, hidden_size=64, intermediate_size=64, moe_intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, n_routed_experts=4, num_experts_per_tok=2, n_shared_experts=1,
        n_group=1, topk_group=1, first_k_dense_replace=1, kv_lora_rank=64, q_lora_rank=None, qk_rope_head_dim=16,
        qk_nope_head_dim=32, v_head_dim=32, max_position_embeddings=256, tie_word_embeddings=False)
    model = DeepseekV3ForCausalLM(config).bfloat16()
    for name, tensor in sorted(model.state_dict().items()):
        noise = torch.randn(tensor.shape)
        tensor.copy_(1 + 0.25 * noise if "norm" in name else 0.1 * noise if noise.dim() == 1 else
                     noise if "embed_tokens" in name else noise / tensor.shape[-1] ** 0.5)
    model.save_pretrained(folder)
    with open(f"{folder}/config.json") as file: saved = config.to_dict() | json.load(file)
    saved |= {"rope_theta": saved.pop("rope_parameters")["rope_theta"], "rope_scaling": None}
    with open(f"{folder}/config.json", "w") as file: json.dump(saved, file)


def main(out):
    torch.manual_seed(SEED)
    torch.set_grad_enabled(False)
    mx.set_default_device(mx.cpu)
    with tempfile.TemporaryDirectory() as folder:
        published(folder)
        model, config = load_model(Path(folder))
        stays = ("layers.1.self_attn.embed_q", "layers.1.self_attn.unembed_out")
        model, config = quantize_model(model, config, GROUP, BITS,
                                       quant_predicate=lambda path, layer: not path.endswith(stays))
        save_model(out, model)
        save_config(config, f"{out}/config.json")
    if os.path.exists(f"{out}/model.safetensors.index.json"): os.unlink(f"{out}/model.safetensors.index.json")
    prompt = torch.randint(VOCAB, (1, 12)).tolist()
    logits = dequantized(load_model(Path(out))[0])(mx.array(prompt))[0]
    save_file({"prompt.0.logits": np.array(logits)}, f"{out}/reference.safetensors")
    with open(f"{out}/reference.json", "w") as file: file.write(json.dumps({"prompts": prompt}) + "\n")


main(sys.argv[1])
