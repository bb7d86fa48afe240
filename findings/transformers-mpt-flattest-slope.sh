#!/usr/bin/env bash
# transformers 5.24.0 gives an MPT model the same logits whatever its attn_config says of alibi_bias_max, the exponent
# of the flattest slope. Models are trained with that slope, and llama.cpp and the makers' code use it.
#
# The functions that compute the slopes have the number as a parameter (default 8), but the model leaves it out. Given
# the folder's number, the same function gives other slopes and the model other logits. References for a folder with
# another number than 8 must pass it. forerun reads the number, from folders and from GGUF.
#
# usage: findings/transformers-mpt-flattest-slope.sh
# Needs Python 3.10 or later with venv and a package index; installs into a temporary folder (several GB with torch).
# Exit 0: as it was seen with these versions. Exit 1: it has changed, and the lines say how.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/compare.py" <<'END'
import torch
from transformers import MptConfig, MptForCausalLM
from transformers.models.mpt import modeling_mpt as mpt


def logits(most):
    torch.manual_seed(1)
    config = MptConfig(d_model=64, n_heads=4, n_layers=2, vocab_size=96, max_seq_len=64,
                       attn_config={"alibi": True, "alibi_bias_max": most})
    model = MptForCausalLM(config).float().eval()
    for weights in model.parameters():
        weights.data.normal_(0, 0.2)
    with torch.no_grad():
        return model(torch.arange(40)[None] * 7 % 96).logits


usual, other = logits(8), logits(13)
slopes = mpt.build_mpt_alibi_tensor
mpt.build_mpt_alibi_tensor = lambda heads, length, most, device=None: slopes(heads, length, 13, device)
passed = logits(13)
print(f"alike: 8 and 13 {torch.equal(usual, other)}, 13 and 13 passed on {torch.allclose(other, passed, rtol=1e-2)}")
END

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.9.1 numpy==2.4.6 transformers==5.24.0
said=$("$folder/venv/bin/python" "$folder/compare.py" 2>/dev/null)
echo "$said"
seen="alike: 8 and 13 True, 13 and 13 passed on False"
[ "$said" = "$seen" ] || { echo "it was: $seen"; exit 1; }
