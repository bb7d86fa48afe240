"""Writes tests/data/blocks: the values to which the gguf package decodes blocks of each GGUF type.

    python3 tests/references/block_types.py tests/data/blocks

TYPE.bin, little-endian: u32 count; u32 length; u64 hash; `count` blocks as in a GGUF file; their values in float32.
The hash is over the values of `length` further blocks, whose bytes `noise` gives. These are so many that every point
of a grid and every scale occurs.
"""
import struct
import sys
from pathlib import Path

import numpy as np
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

TYPES = """F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 IQ4_NL MXFP4 Q4_K Q5_K Q6_K IQ4_XS Q2_K Q3_K IQ1_S IQ1_M IQ2_XXS IQ2_XS
    IQ2_S IQ3_XXS IQ3_S TQ1_0 TQ2_0 NVFP4 Q1_0 Q2_0 PQ2_0 PTQ1_0""".split()

# The package (0.19) doesn't have these types: their values and bytes per block.
SIZES = {"Q2_0": (64, 18), "PQ2_0": (128, 34), "PTQ1_0": (128, 28)}

# Offsets of a block's float16 scales that are not at its beginning.
SCALES = {"Q4_1": [0, 2], "Q5_1": [0, 2], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "Q2_K": [80, 82],
          "Q3_K": [108], "TQ1_0": [52], "TQ2_0": [64],
          "PTQ1_0": [26]}

# float16: zeros, the smallest and largest subnormal numbers, the smallest normal number, the largest number.
EXTREMES = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x7BFF, 0xFBFF]
EXTREME_BYTES = [0x00, 0x01, 0x02, 0x07, 0x7E, 0x7F, 0x80, 0xFE, 0xFF]

VALUES, NOISE_VALUES = 2048, 1 << 18


def noise(length):
    """Returns bytes of a 64-bit linear congruential generator, with Knuth's constants for MMIX."""
    state, out = 0, bytearray(length)
    for i in range(length):
        state = (state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        out[i] = state >> 56
    return np.frombuffer(bytes(out), dtype=np.uint8)


def fnv1a(values):
    """Returns FNV-1a over the bits of float32 values, one value at a time instead of a byte. Every NaN counts as the
    same one."""
    bits = np.where(np.isnan(values), np.uint32(0x7FC00000), values.view(np.uint32))
    state = 0xCBF29CE484222325
    for word in bits.tolist():
        state = (state ^ word) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return state


def ptq1_0(blocks):
    """Decodes PTQ1_0 by the package's TQ1_0. A block of PTQ1_0 has 16, 8 and 2 bytes of digits, and one of TQ1_0 has
    32, 16 and 4. So zero bytes are put after each part, and digit j of the first part's byte i, column 16 j + i of
    PTQ1_0, is column 32 j + i of TQ1_0; the other parts follow likewise."""
    wide = np.zeros((len(blocks), 54), dtype=np.uint8)
    wide[:, :16], wide[:, 32:40], wide[:, 48:50] = blocks[:, :16], blocks[:, 16:24], blocks[:, 24:26]
    wide[:, 52:] = blocks[:, 26:]
    with np.errstate(all="ignore"):
        values = quants.dequantize(wide, GGMLQuantizationType.TQ1_0)
    parts = values[:, :160].reshape(-1, 5, 32)[:, :, :16], values[:, 160:240].reshape(-1, 5, 16)[:, :, :8], \
        values[:, 240:].reshape(-1, 4, 4)[:, :, :2]
    return np.concatenate([part.reshape(len(blocks), -1) for part in parts], axis=1)


def decode(name, blocks):
    if name == "Q1_0":  # the package doesn't decode it: one bit per sign, set for +
        d = blocks[:, :2].copy().view(np.float16).astype(np.float32)
        return np.where(np.unpackbits(blocks[:, 2:], axis=1, bitorder="little") == 1, d, -d)
    if name in ("Q2_0", "PQ2_0"):  # not decoded by it either: two bits per value, the lowest first, minus 1
        d = blocks[:, :2].copy().view(np.float16).astype(np.float32)
        codes = blocks[:, 2:, None] >> np.arange(0, 8, 2, dtype=np.uint8) & 3
        return (codes.reshape(len(blocks), -1).astype(np.float32) - 1) * d
    if name == "PTQ1_0":  # the package's TQ1_0 decodes it, given half a block's digits with others in between
        return ptq1_0(blocks)
    with np.errstate(all="ignore"):
        return quants.dequantize(blocks.copy(), GGMLQuantizationType[name])


def put_scale(name, block, which):
    """Puts an extreme scale into a block. In types with a minimum, the minimum gets the next one of the list."""
    if name == "MXFP4":
        block[0] = EXTREME_BYTES[which]
    elif name == "NVFP4":
        block[:4] = np.roll(EXTREME_BYTES, which)[:4]
    elif name == "IQ1_M":  # four bits of the scale are at the top of each of four words
        for i in range(4):
            block[49 + 2 * i] = (block[49 + 2 * i] & 15) | (EXTREMES[which] >> 4 * i & 15) << 4
    else:
        for i, at in enumerate(SCALES.get(name, [0])):
            block[at:at + 2] = np.frombuffer(struct.pack("<H", EXTREMES[(which + i) % len(EXTREMES)]), dtype=np.uint8)


def sample(name, count, size):
    random = np.random.default_rng(4)
    blocks = random.integers(0, 256, (count, size), dtype=np.uint8)
    if not name.endswith(("F32", "F16")):
        for which in range(len(EXTREMES)):
            put_scale(name, blocks[2 + which], which)
    blocks[0], blocks[1] = 0, 255
    return blocks


def write(folder, name):
    values, size = SIZES.get(name) or GGML_QUANT_SIZES[GGMLQuantizationType[name]]
    length = NOISE_VALUES // values
    blocks = sample(name, max(16, min(VALUES // values, 128)), size)
    expected = decode(name, blocks).astype(np.float32)
    assert expected.size == len(blocks) * values
    further = decode(name, noise(length * size).reshape(length, size)).astype(np.float32).ravel()
    head = struct.pack("<IIQ", len(blocks), length, fnv1a(further))
    (folder / f"{name}.bin").write_bytes(head + blocks.tobytes() + expected.tobytes())


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for kind in TYPES:
        write(target, kind)
