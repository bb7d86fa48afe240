"""Reads GGUF files with the gguf package and decodes every tensor, to show that others can read what `forerun
quantize` writes.

    python3 tests/references/gguf_read.py FILE...
"""
import sys

import numpy as np
from gguf import GGUFReader, quants

for path in sys.argv[1:]:
    reader = GGUFReader(path)
    keys = [field.contents() for name, field in reader.fields.items() if not name.startswith("GGUF.")]
    for tensor in reader.tensors:
        values = tensor.data if tensor.tensor_type.name == "I32" else quants.dequantize(tensor.data, tensor.tensor_type)
        if not np.isfinite(values).all() or values.size != tensor.n_elements:
            sys.exit(f"{path}: tensor {tensor.name}")
    print(f"{path}: {len(keys)} keys, {len(reader.tensors)} tensors")
