#!/usr/bin/env bash
# llama.cpp's convert_hf_to_gguf.py, as llama-cpp-python 0.3.36 publishes it, fails on every StableLM folder whose heads
# have norms of their own (qk_layernorm, as StableLM 2 12B has), although it has code that stacks them. The same folder
# without these norms goes on to the next step, which needs a tokenizer.
#
# The function that should give the stacked tensors is a generator that returns them instead of yielding them, so they
# are lost, and a check at the end names all norms as unprocessed. forerun reads such folders and writes them to GGUF
# with the names that the code has in mind (blk.N.attn_q_norm.weight, one row for each head).
#
# usage: findings/llama-cpp-converter-norms-of-heads.sh
# Needs Python 3.10 or later with venv and a package index; installs into a temporary folder (several GB with torch).
# Exit 0: as it was seen with these versions. Exit 1: it has changed, and the lines say how.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/make.py" <<'END'
import sys
import torch
from transformers import StableLmConfig, StableLmForCausalLM

for norms in (False, True):
    torch.manual_seed(1)
    config = StableLmConfig(vocab_size=64, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                            num_attention_heads=4, num_key_value_heads=2, qk_layernorm=norms)
    StableLmForCausalLM(config).save_pretrained(f"{sys.argv[1]}/{'norms' if norms else 'plain'}")
END

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.9.1 numpy==2.4.6 transformers==5.24.0 safetensors==0.8.0 \
    sentencepiece==0.2.1 protobuf==6.33.1
"$folder/venv/bin/pip" download --quiet --no-deps --no-binary llama-cpp-python -d "$folder" llama-cpp-python==0.3.36
tar -xzf "$folder/llama_cpp_python-0.3.36.tar.gz" -C "$folder"
tree=$folder/llama_cpp_python-0.3.36/vendor/llama.cpp
"$folder/venv/bin/python" "$folder/make.py" "$folder" >/dev/null 2>&1
said=""
for kind in plain norms; do
    "$folder/venv/bin/python" "$tree/convert_hf_to_gguf.py" "$folder/$kind" --outfile "$folder/$kind.gguf" \
        >"$folder/$kind.log" 2>&1 || true
    said+="$kind: unprocessed norms $(grep -c 'ValueError: Unprocessed norms' "$folder/$kind.log" || true), "
    said+="stacked norms $(grep -c 'attn_q_norm.weight' "$folder/$kind.log" || true); "
done
echo "$said"
seen="plain: unprocessed norms 0, stacked norms 0; norms: unprocessed norms 1, stacked norms 0; "
[ "$said" = "$seen" ] || { echo "it was: $seen"; tail -n 3 "$folder"/*.log; exit 1; }
