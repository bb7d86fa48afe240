#!/usr/bin/env python3
"""quantized_logits.py FORERUN PEER_LOGITS DATA: writes llama.cpp's logits of quantized files to DATA/quantized.

In: the command, the program of bench/peers that asks llama.cpp, and tests/data. Out: logits.safetensors, float32 [ids,
vocab] for each MODEL.TYPE, of the files that forerun quantize makes of the models, with keys and values in float32;
and ids.json. If the quantizer ever writes other bytes, the logits must be made again.

qwen35.gguf and qwen35moe.gguf in the same folder have random weights from transformers' classes, with two layers, no
MTP layer and hidden size 256. llama.cpp's converter and llama-quantize wrote them in Q8_0.
"""
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

MODELS = {"qwen35": "quantized/qwen35.gguf", "qwen35moe": "quantized/qwen35moe.gguf", "deepseek-v3": "deepseek-v3",
          "glm4-moe-odd": "models/glm4-moe-odd", "qwen3-moe-odd": "models/qwen3-moe-odd"}
TYPES, IDS, FIRST, LAST = ("q8_0", "q4_0", "q4_k"), 16, 270, 299


def main(forerun, peer, data):
    random.seed(25)
    ids, tensors = [random.randrange(FIRST, LAST + 1) for _ in range(IDS)], {}
    for name, path in MODELS.items():
        for kind in TYPES:
            with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
                subprocess.run([forerun, "quantize", "-m", data / path, "--type", kind, "-o", file.name, "--quiet"],
                               check=True)
                told = subprocess.run([peer, file.name, "f32", ",".join(map(str, ids))], check=True,
                                      capture_output=True)
            tensors[f"{name}.{kind}"] = np.frombuffer(told.stdout, np.float32).reshape(IDS, -1)
    save_file(tensors, data / "quantized/logits.safetensors")
    (data / "quantized/ids.json").write_text(json.dumps(ids))


main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
