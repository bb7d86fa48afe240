#!/usr/bin/env python3
"""converted.py LLAMA_CPP FOLDER FILE [--mtp|--no-mtp|--fuse-qkv]: llama.cpp's converter writes a tiny model as a GGUF
file in BF16: all of it, only its MTP layer, or without that; or with queries, keys and values in one tensor.

The converter recognizes a tokenizer by the ids that it gives a text. A tokenizer that was cut short gives others, so
this script tells the converter the name. If a folder has no tokenizer, neither has the file.
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
