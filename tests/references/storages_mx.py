#!/usr/bin/env python3
"""storages_mx.py mxfp4|mxfp8 OUT        writes a folder with one module for tests/formats/test_storage.c

The module's weights are random. compressed-tensors quantizes and packs them, and its own decompression gives the
expected rows. Needs compressed-tensors 0.20.0, torch, transformers and safetensors."""
import json
import os
import sys

import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.quantization import preset_name_to_scheme
from compressed_tensors.quantization.utils.helpers import calculate_qparams
from safetensors.torch import save_file

MODULE = "model.layers.0.self_attn.k_proj"
ROWS, COLS, GROUP = 64, 256, 32
KINDS = {"mxfp4": ("MXFP4A16", "mxfp4-pack-quantized"), "mxfp8": ("MXFP8A16", "mxfp8-quantized")}


def main(kind, out):
    preset, form = KINDS[kind]
    torch.manual_seed(11)
    weights = torch.randn(ROWS, COLS) * torch.exp(torch.randn(ROWS, 1)) * 0.05
    scheme = preset_name_to_scheme(preset, ["Linear"])
    groups = weights.reshape(ROWS, -1, GROUP)
    scale, _ = calculate_qparams(torch.amin(groups, -1), torch.amax(groups, -1), scheme.weights)
    compressor = BaseCompressor.get_value_from_registry(form)
    stored = compressor.compress({"weight": weights, "weight_scale": scale}, scheme)
    rows = compressor.decompress(dict(stored), scheme)["weight"]
    os.makedirs(out, exist_ok=True)
    save_file({f"{MODULE}.{name}": value.contiguous() for name, value in stored.items()}, f"{out}/model.safetensors")
    save_file({"rows": rows[:8].float().contiguous()}, f"{out}/expected.safetensors")
    group = {"targets": ["Linear"], "weights": json.loads(scheme.weights.model_dump_json()), "format": form}
    with open(f"{out}/config.json", "w") as file:
        json.dump({"model_type": "llama", "quantization_config": {
            "quant_method": "compressed-tensors", "format": form, "config_groups": {"group_0": group},
            "ignore": ["lm_head"], "quantization_status": "compressed"}}, file)
        file.write("\n")


main(*sys.argv[1:])
