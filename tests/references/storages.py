#!/usr/bin/env python3
"""storages.py cut REFERENCE.. OUT        writes small folders of quantized weights for tests/formats/test_storage.c
storages.py whole REFERENCE OUT        writes a whole model for tests/engine/weights/test_stored_weights.c

REFERENCE is a folder that a quantizer's own package wrote, with reference.safetensors. In it dequant.MODULE has the
first 8 rows of each module of layer 0 as float32, which were compared with the package's own dequantization (for
MLX's stacked experts, those of the first expert). With `cut`, OUT/KIND gets the configuration, the tensors of one
module, and its rows. With `whole`, OUT gets all tensors, and what transformers computes for two prompts with the
dequantized weights. Needs only Python."""
import json
import os
import struct
import sys

MODULE = "model.layers.0.self_attn.k_proj"
STACK = "model.layers.0.mlp.switch_mlp.down_proj"
PROMPTS = (1, 2)  # prompts of a whole model
EXPERTS = 2  # experts of a stack that are kept


def read(path):
    """Returns {name: (dtype, shape, bytes)}."""
    data = open(path, "rb").read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    at = 8 + length
    return {n: (t["dtype"], t["shape"], data[at + t["data_offsets"][0]:at + t["data_offsets"][1]])
            for n, t in header.items()}


def write(path, tensors):
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values()))


def cut(reference, root):
    kind = os.path.basename(reference.rstrip("/")).removeprefix("storage-")
    tensors, expected = read(f"{reference}/model.safetensors"), read(f"{reference}/reference.safetensors")
    module = STACK if f"{STACK}.weight" in tensors else MODULE
    kept = {n: t for n, t in tensors.items() if n.rsplit(".", 1)[0] == module}
    if module == STACK:
        kept = {n: (d, [EXPERTS] + s[1:], b[:len(b) // s[0] * EXPERTS]) for n, (d, s, b) in kept.items()}
    out = f"{root}/{kind}"
    os.makedirs(out, exist_ok=True)
    write(f"{out}/model.safetensors", kept)
    write(f"{out}/expected.safetensors", {"rows": expected[f"dequant.{module}"]})
    config = json.load(open(f"{reference}/config.json"))
    with open(f"{out}/config.json", "w") as file:
        json.dump({k: v for k, v in config.items() if k in ("model_type", "quantization_config", "quantization")}, file)
        file.write("\n")


def whole(reference, out):
    os.makedirs(out, exist_ok=True)
    info = json.load(open(f"{reference}/reference.json"))
    expected = read(f"{reference}/reference.safetensors")
    write(f"{out}/model.safetensors", read(f"{reference}/model.safetensors"))
    write(f"{out}/reference.safetensors", {f"prompt.{i}.logits": expected[f"prompt.{i}.logits"] for i in PROMPTS})
    with open(f"{out}/reference.json", "w") as file:
        json.dump({"prompts": info["prompts"]}, file)
        file.write("\n")
    with open(f"{out}/config.json", "w") as file:
        json.dump(json.load(open(f"{reference}/config.json")), file)
        file.write("\n")


if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[1] not in ("cut", "whole"):
        sys.exit(__doc__)
    if sys.argv[1] == "whole":
        whole(*sys.argv[2:4])
        sys.exit()
    for folder in sys.argv[2:-1]:
        cut(folder, sys.argv[-1])
