#!/usr/bin/env bash
# transformers 5.24.0 gives a Gemma 4 12B ("unified", Gemma4UnifiedForConditionalGeneration) two answers about one
# picture: generate() with its usual cache, and with cache_implementation="static".
#
# Rows of a picture may see later rows of the same picture. With a static cache generate() makes the masks by itself
# and lets them look ahead in sliding layers alone, as the other Gemma 4 models do in both cases. With the usual cache
# the masks are made in forward(), which hands the picture's runs to masks of both kinds of layers: global layers look
# ahead too. A picture's rows then differ from the first global layer on, and with them the logits of the text behind
# it. Texts without pictures are the same. llama.cpp looks ahead in sliding layers alone, and so does forerun.
#
# usage: findings/transformers-gemma4-unified-masks.sh
# Needs Python 3.10 or later with venv and a package index; installs into a temporary folder (several GB with torch).
# Exit 0: as it was seen with these versions. Exit 1: it has changed, and the lines say how.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/compare.py" <<'END'
import torch
from transformers import Gemma4UnifiedConfig, Gemma4UnifiedForConditionalGeneration

torch.manual_seed(0)
IMAGE, BEGIN, END_, ROWS = 60, 58, 59, 12
text = dict(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=4, num_attention_heads=2,
            num_key_value_heads=2, num_global_key_value_heads=1, head_dim=16, global_head_dim=32, sliding_window=64,
            layer_types=["full_attention", "sliding_attention", "full_attention", "full_attention"],
            use_bidirectional_attention="vision", max_position_embeddings=256, attention_k_eq_v=True,
            initializer_range=0.4)
vision = dict(patch_size=2, pooling_kernel_size=2, mm_embed_dim=24, mm_posemb_size=16, output_proj_dims=24)
model = Gemma4UnifiedForConditionalGeneration(Gemma4UnifiedConfig(
    text_config=text, vision_config=vision, audio_config=None, image_token_id=IMAGE, boi_token_id=BEGIN,
    eoi_token_id=END_)).float().eval()
words = torch.tensor([[2, 7, 9, 21, 33, 11, 5, 8]])
shown = torch.tensor([[2, 7, 9, BEGIN] + [IMAGE] * ROWS + [END_, 11, 5, 8]])
picture = dict(pixel_values=torch.rand(1, ROWS, 48), mm_token_type_ids=(shown == IMAGE).long(),
               image_position_ids=torch.stack([torch.arange(ROWS) % 4, torch.arange(ROWS) // 4], -1)[None])


def first_logits(ids, **more):
    out = model.generate(input_ids=ids, max_new_tokens=1, do_sample=False, output_logits=True,
                         return_dict_in_generate=True, **more)
    return out.logits[0][0]


def apart(ids, **more):
    usual, static = first_logits(ids, **more), first_logits(ids, cache_implementation="static", **more)
    return float((usual - static).abs().max() / usual.abs().max())


print(f"text {apart(words) < 1e-5}, picture {apart(shown, **picture) < 1e-5}")
END

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.15.0 numpy==2.4.6 transformers==5.24.0
said=$("$folder/venv/bin/python" "$folder/compare.py" 2>/dev/null)
echo "logits of both caches alike: $said"
[ "$said" = "text True, picture False" ] || { echo "it was: text True, picture False"; exit 1; }
