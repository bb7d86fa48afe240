#!/usr/bin/env python3
"""storages_floats.py fp8 OUT      writes a folder with one module for tests/formats/test_storage.c
storages_floats.py fp4 OUT      writes a whole model for tests/engine/weights/test_stored_weights.c

fp8 is the form of Ministral 3 and Devstral 2: FP8 codes with one scale for the matrix, named weight_scale_inv, and a
scale for activations. transformers' own dequantization gives the expected rows. fp4 is a small Llama whose attention
is NVFP4 and whose MLP is MXFP4. compressed-tensors quantizes and decompresses it, and transformers computes logits
with the decompressed weights. Needs compressed-tensors 0.20.1, torch 2.9, transformers 5.24 and safetensors."""
import json
import math
import os
import sys

import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.compressors.mx_utils import decompress_mx_scale
from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
from compressed_tensors.quantization import preset_name_to_scheme
from compressed_tensors.quantization.lifecycle.forward import dequantize
from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.integrations.finegrained_fp8 import _dequantize_fp8_weight

MODULE = "model.layers.0.self_attn.k_proj"
FORMS = {"self_attn": ("NVFP4A16", "nvfp4-pack-quantized"), "mlp": ("MXFP4A16", "mxfp4-pack-quantized")}
SEED, VOCAB = 21, 96


def write(path, value):
    with open(path, "w") as file:
        json.dump(value, file)
        file.write("\n")


def fp8(out):
    weights = torch.randn(64, 256) * torch.exp(torch.randn(64, 1)) * 0.05
    scale = (weights.abs().max() / 448).to(torch.bfloat16)
    codes = (weights / scale.float()).clamp(-448, 448).to(torch.float8_e4m3fn)
    save_file({f"{MODULE}.weight": codes, f"{MODULE}.weight_scale_inv": scale,
               f"{MODULE}.activation_scale": torch.tensor(0.5, dtype=torch.bfloat16)}, f"{out}/model.safetensors")
    rows = _dequantize_fp8_weight(codes, scale, None, torch.float32)
    save_file({"rows": rows[:8].contiguous()}, f"{out}/expected.safetensors")
    write(f"{out}/config.json", {"model_type": "ministral3", "quantization_config": {
        "quant_method": "fp8", "activation_scheme": "static", "weight_block_size": None, "dequantize": False,
        "modules_to_not_convert": ["model.vision_tower", "model.multi_modal_projector", "lm_head"]}})


def pack(weights, preset, form):
    """Returns compressed-tensors' tensors of a matrix, and the values that they stand for."""
    scheme = preset_name_to_scheme(preset, ["Linear"])
    args = scheme.weights
    groups = weights.reshape(weights.shape[0], -1, args.group_size)
    of_matrix = generate_gparam(weights.min(), weights.max()).float().view(1) if preset.startswith("NV") else None
    scale, _ = calculate_qparams(groups.amin(-1), groups.amax(-1), args, global_scale=of_matrix)
    given = {"weight": weights, "weight_scale": scale}
    if of_matrix is not None: given["weight_global_scale"] = of_matrix
    stored = BaseCompressor.get_value_from_registry(form).compress(given, scheme)
    scales = stored["weight_scale"].float() if of_matrix is not None else decompress_mx_scale(stored["weight_scale"])
    values = unpack_fp4_from_uint8(stored["weight_packed"], *weights.shape, torch.float32)
    return stored, dequantize(x_q=values, scale=scales.float(), args=args, global_scale=of_matrix, dtype=torch.float32)


def fp4(out):
    config = LlamaConfig(vocab_size=VOCAB, hidden_size=64, intermediate_size=96, num_hidden_layers=2, head_dim=32,
                         num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=256,
                         tie_word_embeddings=True, rms_norm_eps=1e-5)
    model = LlamaForCausalLM._from_config(config, dtype=torch.float32, attn_implementation="eager").eval()
    groups = {f"group_{i}": {"targets": [f"re:.*{part}.*"], "format": form,
                             "weights": json.loads(preset_name_to_scheme(preset, ["Linear"]).weights.model_dump_json())}
              for i, (part, (preset, form)) in enumerate(FORMS.items())}
    tensors = {}
    for name, tensor in model.named_parameters():
        noise = torch.randn(tensor.shape)
        part = next((part for part in FORMS if f".{part}." in name), None)
        if part:
            stored, values = pack(noise * torch.exp(0.5 * torch.randn(tensor.shape[0], 1)) / math.sqrt(tensor.shape[1]),
                                  *FORMS[part])
            tensors |= {name.removesuffix("weight") + key: value.data.contiguous() for key, value in stored.items()}
        else:
            values = (1 + 0.25 * noise if "norm" in name else noise).to(torch.bfloat16)
            tensors[name] = values
        tensor.data = values.float()
    prompt = torch.randint(VOCAB, (1, 12))
    save_file(tensors, f"{out}/model.safetensors")
    save_file({"prompt.0.logits": model(prompt).logits[0].contiguous()}, f"{out}/reference.safetensors")
    write(f"{out}/reference.json", {"prompts": prompt.tolist()})
    write(f"{out}/config.json", config.to_dict() | {"architectures": ["LlamaForCausalLM"], "quantization_config": {
        "quant_method": "compressed-tensors", "format": "mixed-precision", "config_groups": groups,
        "ignore": ["lm_head"], "quantization_status": "compressed"}})


if __name__ == "__main__":
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    os.makedirs(sys.argv[2], exist_ok=True)
    {"fp8": fp8, "fp4": fp4}[sys.argv[1]](sys.argv[2])
