"""Converts models of encoders.py to GGUF with llama.cpp's own converter, which tells tokenizers by a hash.

usage: encoders_gguf.py LLAMA_CPP PRE FOLDER FILE.gguf

In: llama.cpp's sources; the pre-tokenizer that the file is to name, since the converter does not know those of
encoders.py (bert-bge for WordPiece, modern-bert); a folder. Out: a file of F32. Of modernbert, config.json needs
layer_norm_eps, global_attn_every_n_layers, global_rope_theta and local_rope_theta, and of nomic n_positions and
max_trained_positions of 2048, as the published folders have them.
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
