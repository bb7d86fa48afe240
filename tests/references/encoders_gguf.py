"""Converts models of encoders.py to GGUF with llama.cpp's own converter.

usage: encoders_gguf.py LLAMA_CPP PRE FOLDER FILE.gguf

In: llama.cpp's sources; PRE, the pre-tokenizer's name for the file (bert-bge for WordPiece, modern-bert), because the
converter recognizes tokenizers by a hash and doesn't know those of encoders.py; a folder. Out: a file in F32. For
modernbert, config.json needs layer_norm_eps, global_attn_every_n_layers, global_rope_theta and local_rope_theta, and
for nomic n_positions and max_trained_positions of 2048, as in the published folders.
"""
import runpy
import sys

if len(sys.argv) != 5:
    sys.exit(__doc__)
llama, pre, folder, file = sys.argv[1:]
sys.path[:0] = [llama, llama + "/gguf-py"]

import conversion.base

conversion.base.TextModel.get_vocab_base_pre = lambda self, tokenizer: pre
sys.argv = ["convert_hf_to_gguf.py", "--outtype", "f32", "--outfile", file, folder]
runpy.run_path(llama + "/convert_hf_to_gguf.py", run_name="__main__")
