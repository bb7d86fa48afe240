#!/usr/bin/env python3
"""dequantized.py FORERUN PEERS TEXT MODEL TYPE...: checks that a model's weights are decoded as by the gguf package.

In: the command; the folder of bench/peers/build.sh; a text; a GGUF file; types in the form of quantized.py, or "as-is"
for the file itself. Out: a line of markdown for each type. It has the number of values of each type of tensor that
forerun has decoded (`quantize --type f32 --pure`), and how many of them differ in their bits from the values that
gguf.quants decodes from the same blocks. The exit status is 1 if any does.
"""
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np

import peers
import quantized


def compare(model, decoded):
    """Returns {type: number of values}, and how many values differ. Tensors are matched by their names, because
    forerun wrote all of them."""
    values, different = {}, 0
    ours = {tensor.name: tensor for tensor in gguf.GGUFReader(decoded).tensors}
    for tensor in gguf.GGUFReader(model).tensors:
        said = ours[tensor.name].data.view(np.uint32).reshape(-1)
        meant = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32).view(np.uint32).reshape(-1)
        if ours[tensor.name].tensor_type != gguf.GGMLQuantizationType.F32 or said.size != meant.size:
            sys.exit(f"dequantized.py: {tensor.name} is not written as float32")
        name = tensor.tensor_type.name
        values[name] = values.get(name, 0) + said.size
        different += int(np.count_nonzero(said != meant))
    return values, different


def main(forerun, programs, text, model, *kinds):
    failed = False
    print(f"{Path(model).stem}\n\n| file | values by type | different |\n| --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        importances, made, decoded = (Path(folder, name) for name in ("imatrix.gguf", "made.gguf", "decoded.gguf"))
        peers.run(forerun, "imatrix", "-m", model, "-f", text, "-c", 512, "--chunks", 8, "-o", importances)
        for kind in kinds:
            if kind != "as-is": quantized.quantize(Path(programs), model, importances, made, kind)
            file = model if kind == "as-is" else made
            peers.run(forerun, "quantize", "-m", file, "--type", "f32", "--pure", "-o", decoded, "--quiet")
            values, different = compare(file, decoded)
            told = ", ".join(f"{name} {count}" for name, count in sorted(values.items()))
            print(f"| {kind} | {told} | {different} |", flush=True)
            failed |= different > 0
    return failed


if __name__ == "__main__":
    if len(sys.argv) < 6: sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
