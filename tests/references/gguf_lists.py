"""Writes tests/data/gguf_lists.json: the keys, tensors and types that llama.cpp gives the models of tests/data/models.

    python3 tests/references/gguf_lists.py LLAMA_CPP LLAMA_QUANTIZE tests/data/gguf_lists.json

LLAMA_CPP is a source tree, whose convert_hf_to_gguf.py runs. LLAMA_QUANTIZE is the llama-quantize of a build. For each
model the file has the converter's keys (of long arrays the length and the first elements), the shapes of its tensors,
and for each file type the type that llama-quantize gives each tensor that is not F32.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from gguf import GGUFReader

MODELS = ["gemma4-e", "gemma4-dense", "gemma4-dense/assistant"]
TYPES = {"bf16": None, "q4_0": "Q4_0", "q8_0": "Q8_0", "q4_k": "Q4_K_M", "q5_k": "Q5_K_M", "q6_k": "Q6_K",
         "iq4_nl": "IQ4_NL", "iq4_xs": "IQ4_XS", "q2_k": "Q2_K", "q3_k_s": "Q3_K_S", "q3_k": "Q3_K_M",
         "q3_k_l": "Q3_K_L", "q4_k_s": "Q4_K_S", "q5_k_s": "Q5_K_S"}
LONG = 16


def plain(value):
    if isinstance(value, list):
        short = [plain(item) for item in value[:LONG]]
        return short if len(value) <= LONG else {"length": len(value), "first": short}
    return value.item() if isinstance(value, np.generic) else value


def types_of(reader):
    return {t.name: t.tensor_type.name for t in reader.tensors if t.tensor_type.name != "F32"}


def lists_of(model, converter, quantize, folder):
    plain_file = folder / "bf16.gguf"
    subprocess.run([sys.executable, converter, model, "--outtype", "bf16", "--outfile", plain_file], check=True,
                   capture_output=True)
    reader = GGUFReader(plain_file)
    types = {"bf16": types_of(reader)}
    for name, theirs in TYPES.items():
        if theirs:
            subprocess.run([quantize, plain_file, folder / "other.gguf", theirs], check=True, capture_output=True)
            types[name] = types_of(GGUFReader(folder / "other.gguf"))
    keys = {name: plain(field.contents()) for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    shapes = {t.name: [int(n) for n in reversed(t.shape)] for t in reader.tensors}
    return {"keys": keys, "shapes": shapes, "types": types}


def main():
    converter, quantize, out = Path(sys.argv[1]) / "convert_hf_to_gguf.py", sys.argv[2], Path(sys.argv[3])
    models = Path(__file__).resolve().parents[2] / "tests/data/models"
    with tempfile.TemporaryDirectory() as folder:
        lists = {name: lists_of(models / name, converter, quantize, Path(folder)) for name in MODELS}
    out.write_text(json.dumps(lists, indent=1, ensure_ascii=False) + "\n")


main()
