"""Compares the decoder in quant/ with the gguf package, for random blocks of every block type.

    python3 tests/references/decode_blocks.py [BLOCKS [TYPE...]]     from the repository's root; a million blocks each

The system's `cc` compiles the sources. Every bit must agree, except that all NaNs count as equal. A scale may be any
float16, so infinities and NaNs occur. For types that the package doesn't decode, block_types.py's own decoder is used.
"""
import ctypes
import subprocess
import sys
import tempfile
from glob import glob

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from block_types import SIZES, TYPES, decode

STEP = 20000


def load(folder):
    path = folder + "/decode.so"
    sources = ["quant/dtype.c", "quant/iq_grids.c", *glob("quant/decode_*.c")]
    subprocess.run(["cc", "-std=c11", "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-I.", "-Iinclude", *sources,
                    "-o", path], check=True)
    library = ctypes.CDLL(path)
    library.fr_dtype_from_name.argtypes = [ctypes.c_char_p]
    library.fr_dtype_decode.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    return library


def bits(values):
    return np.where(np.isnan(values), np.uint32(0x7FC00000), values.view(np.uint32))


def differing(library, name, blocks, random):
    values, size = SIZES.get(name) or GGML_QUANT_SIZES[GGMLQuantizationType[name]]
    wrong = 0
    for first in range(0, blocks, STEP):
        count = min(STEP, blocks - first)
        source = random.integers(0, 256, (count, size), dtype=np.uint8)
        got = np.empty(count * values, dtype=np.float32)
        library.fr_dtype_decode(library.fr_dtype_from_name(name.encode()), source.ctypes.data, got.ctypes.data,
                                got.size)
        expected = np.ascontiguousarray(decode(name, source), dtype=np.float32).ravel()
        wrong += np.count_nonzero((bits(got) != bits(expected)).reshape(count, values).any(axis=1))
    return wrong


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1000000
    names = sys.argv[2:] or [name for name in TYPES if name not in ("F32", "F16", "BF16")]
    np.seterr(all="ignore")
    total = 0
    with tempfile.TemporaryDirectory() as scratch:
        library = load(scratch)
        for name in names:
            found = differing(library, name, number, np.random.default_rng(7))
            total += found
            print(f"{name:8} {number} blocks, {found} differ", flush=True)
    sys.exit(total > 0)
