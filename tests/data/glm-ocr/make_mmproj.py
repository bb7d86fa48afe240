"""make_mmproj.py LLAMA: mmproj-bf16.gguf, beside this file.

LLAMA is a folder with the sources of llama.cpp: its own converter makes the file of model.safetensors and the configurations
here (the vision tower alone; model-bf16.gguf has the text model). The tower's numbers are those of model.safetensors, bit for
bit, so what transformers computed from those (reference.safetensors, reference.json) is expected of this file too."""
import os, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))
subprocess.run([sys.executable, f"{sys.argv[1]}/convert_hf_to_gguf.py", HERE, "--mmproj", "--outtype", "bf16",
                "--outfile", f"{HERE}/mmproj-bf16.gguf"], check=True)
