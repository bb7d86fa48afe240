#!/usr/bin/env bash
# dflash 0.1.0's own loop of drafting and verifying (dflash.model.dflash_generate) writes another text than greedy
# decoding of the same target where the target has recurrent layers, as Qwen3.5's gated DeltaNet layers are.
#
# After each verification the loop crops the target's cache to the accepted tokens. Keys and values can be cropped. The
# state of a linear layer can't: it has already taken in the drafts that were rejected. Drafts that are seldom right, as
# those of an untrained drafter, show it at once: over a small random Qwen3 all 24 ids are those of greedy decoding,
# over a small random Qwen3.5 only the first few. Drafters for Qwen3.5 are published for this package, but its loop over
# transformers' models is no reference for them: accepted drafts have to be counted with whole forwards.
#
# usage: findings/dflash-loop-over-recurrent-targets.sh
# Needs Python 3.10 or later with venv and a package index; installs into a temporary folder. Exit 0: as it was seen
# with these versions. Exit 1: it has changed, and the lines say how.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/compare.py" <<'END'
import torch
import dflash.model as dflash
from transformers import Qwen3Config, Qwen3ForCausalLM
from transformers.models.qwen3_5 import Qwen3_5ForCausalLM, Qwen3_5TextConfig

torch.manual_seed(0)
sizes = dict(vocab_size=64, hidden_size=32, intermediate_size=64, num_attention_heads=2, num_key_value_heads=1,
             head_dim=16, max_position_embeddings=256, tie_word_embeddings=False)
linear = dict(layer_types=["linear_attention", "full_attention"] * 2, linear_key_head_dim=8, linear_value_head_dim=8,
              linear_num_key_heads=2, linear_num_value_heads=4)
targets = {
    "qwen3": Qwen3ForCausalLM(Qwen3Config(**sizes, num_hidden_layers=4, initializer_range=0.4)),
    "qwen3_5": Qwen3_5ForCausalLM(Qwen3_5TextConfig(**sizes, **linear, num_hidden_layers=4, initializer_range=0.4)),
}
prompt, count = torch.tensor([[5, 9, 2, 7, 30, 11]]), 24
for name, target in targets.items():
    target, greedy = target.float().eval(), prompt
    drafter = dflash.DFlashDraftModel(Qwen3Config(**sizes, num_hidden_layers=1, num_target_layers=4, dflash_config={
        "mask_token_id": 63, "target_layer_ids": [1], "block_size": 4})).float().eval()
    with torch.no_grad():
        for _ in range(count):
            greedy = torch.cat([greedy, target(greedy, use_cache=False).logits[:, -1:].argmax(-1)], 1)
    drafted = dflash.dflash_generate(drafter, target, prompt, count, None)
    same = (drafted[0] == greedy[0]).int().cumprod(0).sum().item() - prompt.shape[1]
    print(name, "the whole text is greedy decoding's" if same == count else "another text from an early id on")
END

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.15.0 transformers==5.15.0
"$folder/venv/bin/pip" install -q --no-deps dflash==0.1.0
said=$("$folder/venv/bin/python" "$folder/compare.py" 2>/dev/null)
printf '%s\n' "$said"
expected='qwen3 the whole text is greedy decoding'"'"'s
qwen3_5 another text from an early id on'
[ "$said" = "$expected" ] || { printf 'expected\n%s\n' "$expected"; exit 1; }
