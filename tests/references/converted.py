#!/usr/bin/env python3
"""converted.py LLAMA_CPP FOLDER FILE [--mtp|--no-mtp|--fuse-qkv]: llama.cpp's GGUF of a tiny model, by the converter
of its source tree, in BF16; of its MTP layer alone, without it, or with queries, keys and values in one tensor.

The converter knows tokenizers by what they make of a text, which a cut one makes otherwise: it is told. A folder
without a tokenizer becomes a file without one.
"""
import runpy
import sys
from pathlib import Path

tree, folder, file, *options = sys.argv[1:]
sys.path[:0] = [tree, f"{tree}/gguf-py"]

from conversion.base import TextModel

TextModel.get_vocab_base_pre = lambda self, tokenizer: "qwen35"
if not Path(folder, "tokenizer.json").exists():
    TextModel.set_vocab = lambda self: self._set_vocab_none()
sys.argv = ["convert_hf_to_gguf.py", folder, "--outtype", "bf16", "--outfile", file, *options]
runpy.run_path(f"{tree}/convert_hf_to_gguf.py", run_name="__main__")
