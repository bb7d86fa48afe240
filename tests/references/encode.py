"""Writes tests/data/blocks/encode.json and encode.bf16: the errors that llama.cpp's quantizers make with some weights.

    python3 tests/references/encode.py LIBGGML tests/data/blocks

LIBGGML is libggml-base.so of a llama.cpp build; llama-quantize calls its ggml_quantize_chunk. encode.bf16 has weights
in rows of 256 bfloat16 values, of four kinds: from the demo model, from a reference model, normal noise, and noise
with heavy tails (Student's t, 3 degrees of freedom). encode.json has, for each kind and type, the sum of squared
errors after decoding, and with an importance matrix (`importance`, one for all rows) the sum of importance * error^2.
"""
import ctypes
import json
import sys
from pathlib import Path

import numpy as np
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from safetensors import safe_open

TYPES = "Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 IQ4_NL MXFP4 Q4_K Q5_K Q6_K IQ4_XS Q2_K Q3_K TQ1_0 TQ2_0".split()
WEIGHED = [t for t in TYPES if t not in ("Q8_0", "MXFP4", "TQ1_0", "TQ2_0")]
ROWS, COLS = 48, 256
TOP = Path(__file__).resolve().parents[2]


def weights_of(folder, rng):
    """Returns random rows of a checkpoint's matrices."""
    with safe_open(TOP / folder / "model.safetensors", "pt") as file:
        matrices = [file.get_tensor(name).float().numpy() for name in file.keys()]
    rows = np.concatenate([m.reshape(-1, COLS) for m in matrices if m.ndim == 2 and m.shape[1] % COLS == 0])
    return rows[rng.choice(len(rows), ROWS, replace=False)]


def to_bf16(values):
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def squared_error(library, kind, values, importance=None):
    if kind.name.startswith("TQ"):  # the package's own quantizers, which make the same blocks
        return float(np.sum((quants.dequantize(quants.quantize(values.reshape(ROWS, COLS), kind), kind)
                             .astype(np.float64) - values.reshape(ROWS, COLS)) ** 2))
    _, size = GGML_QUANT_SIZES[kind]
    blocks = np.zeros((ROWS, COLS // GGML_QUANT_SIZES[kind][0] * size), np.uint8)
    library.ggml_quantize_chunk(int(kind), values.ctypes.data_as(ctypes.c_void_p),
                                blocks.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(0), ctypes.c_int64(ROWS),
                                ctypes.c_int64(COLS),
                                None if importance is None else importance.ctypes.data_as(ctypes.c_void_p))
    decoded = quants.dequantize(blocks, kind).astype(np.float64)
    return float(np.sum((1 if importance is None else importance) * (decoded - values) ** 2))


def main():
    library, out = ctypes.CDLL(sys.argv[1]), Path(sys.argv[2])
    rng = np.random.default_rng(2)
    kinds = {
        "demo": weights_of("tools/demo/target", rng),
        "reference": weights_of("tests/data/models/gemma4-e", rng),
        "normal": rng.standard_normal((ROWS, COLS)) * 0.02,
        "heavy": rng.standard_t(3, (ROWS, COLS)) * 0.02,
    }
    stored = {name: to_bf16(values) for name, values in kinds.items()}
    importance = np.exp(rng.standard_normal(COLS) * 1.5).astype(np.float32)
    errors, weighed = {}, {}
    for name, bits in stored.items():
        values = np.ascontiguousarray((bits.astype(np.uint32) << 16).view(np.float32))
        errors[name] = {t: squared_error(library, GGMLQuantizationType[t], values) for t in TYPES}
        weighed[name] = {t: squared_error(library, GGMLQuantizationType[t], values, importance) for t in WEIGHED}
    (out / "encode.bf16").write_bytes(b"".join(bits.tobytes() for bits in stored.values()))
    (out / "encode.json").write_text(json.dumps({"rows": ROWS, "squared_errors": errors, "weighed_errors": weighed,
                                                  "importance": [float(i) for i in importance]}, indent=1) + "\n")


main()
