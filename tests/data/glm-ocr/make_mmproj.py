"""make_mmproj.py LLAMA: writes mmproj-bf16.gguf, beside this file.

LLAMA is a folder with llama.cpp's sources. Its converter makes the file from model.safetensors and the configurations
here. The file has only the vision encoder; model-bf16.gguf has the text model. The encoder's values are those of
model.safetensors, bit for bit, so the results that transformers computed from those (reference.safetensors,
reference.json) are expected with this file too."""
import os, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))
subprocess.run([sys.executable, f"{sys.argv[1]}/convert_hf_to_gguf.py", HERE, "--mmproj", "--outtype", "bf16",
                "--outfile", f"{HERE}/mmproj-bf16.gguf"], check=True)
