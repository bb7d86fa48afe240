"""Writes importance matrices with llama.cpp to tests/data/imatrix.

    python3 tests/references/imatrix.py LLAMA_IMATRIX tests/data

In: the llama-imatrix of a build; text.txt in the output's folder. Out: for a dense model llama.gguf and llama.dat, the
two file formats; for a mixture moe.gguf. The text is run as four chunks of 32 ids, each a batch of its own, on one
thread.
"""
import subprocess
import sys
from pathlib import Path

FILES = {"llama.gguf": ("llama/q4_0.gguf", "gguf"), "llama.dat": ("llama/q4_0.gguf", "dat"),
         "moe.gguf": ("gguf/moe-odd.gguf", "gguf")}


def main():
    program, data = sys.argv[1], Path(sys.argv[2]).resolve()
    for name, (model, form) in FILES.items():
        subprocess.run([program, "-m", data / model, "-f", "text.txt", "-c", "32", "-b", "32", "-t", "1", "--chunks",
                        "4", "--output-format", form, "-o", name], cwd=data / "imatrix", check=True)


main()
