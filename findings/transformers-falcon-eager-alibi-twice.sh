#!/usr/bin/env bash
# transformers 5.24.0 gives Falcon models with ALiBi, such as Falcon RW, other logits with attn_implementation="eager"
# than with "sdpa", from the same weights and ids. Falcon models with rotary positions get the same logits from both.
#
# The slopes are added twice in the eager form: the model puts them into the mask, and the eager attention adds them to
# the scores once more before it adds that mask. So eager logits are those of sdpa with slopes twice as steep.
# References for such a model must be made with sdpa. forerun adds the slopes once.
#
# usage: findings/transformers-falcon-eager-alibi-twice.sh
# Needs Python 3.10 or later with venv and a package index; installs into a temporary folder (several GB with torch).
# Exit 0: as it was seen with these versions. Exit 1: it has changed, and the lines say how.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/compare.py" <<'END'
import torch
from transformers import FalconConfig, FalconForCausalLM
from transformers.models.falcon import modeling_falcon as falcon


def model(way, alibi):
    torch.manual_seed(1)
    config = FalconConfig(vocab_size=96, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, alibi=alibi,
                          multi_query=False, parallel_attn=False, new_decoder_architecture=False, bias=True)
    made = FalconForCausalLM._from_config(config, attn_implementation=way).float().eval()
    for weights in made.parameters():
        weights.data.normal_(0, 0.2)
    return made


def apart(a, b):
    return float((a - b).abs().max() / b.abs().max())


ids = torch.arange(40)[None] * 7 % 96
with torch.no_grad():
    eager, sdpa = model("eager", True)(ids).logits, model("sdpa", True)(ids).logits
    rotary = apart(model("eager", False)(ids).logits, model("sdpa", False)(ids).logits)
    once = falcon.build_alibi_tensor
    falcon.build_alibi_tensor = lambda *given, **more: 2 * once(*given, **more)
    twice = model("sdpa", True)(ids).logits
print(f"alike: rotary {rotary < 1e-5}, ALiBi {apart(eager, sdpa) < 1e-3}, twice as steep {apart(eager, twice) < 1e-5}")
END

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.15.0 numpy==2.4.6 transformers==5.24.0
said=$("$folder/venv/bin/python" "$folder/compare.py" 2>/dev/null)
echo "$said"
seen="alike: rotary True, ALiBi False, twice as steep True"
[ "$said" = "$seen" ] || { echo "it was: $seen"; exit 1; }
