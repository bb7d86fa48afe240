#!/usr/bin/env bash
# mlx-lm 0.32.2 writes exceptions of single modules without a mode, and they are affine, whatever the folder's mode is.
#
# A mixture that is quantized with mode mxfp4 gets {"group_size": 32, "bits": 4, "mode": "mxfp4"} for the folder, and
# {"group_size": 64, "bits": 8} for each router. The router's tensors are affine: floats as scales, and biases beside
# them. All other modules have bytes as scales (exponents) and no biases. Bits and group size of an exception replace
# the folder's, so one expects that a key which it leaves out is the folder's too; a reader that believes so looks for
# MXFP4 of 8 bits, which does not exist. The tensors of each module say what it is.
#
# usage: findings/mlx-lm-exceptions-without-mode.sh
# Needs Python 3.10 or later with venv and a package index; installs into a temporary folder. Exit 0: as it was seen
# with these versions. Exit 1: it has changed, and the lines say how.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/ask.py" <<'END'
import json
import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten
from mlx_lm.models.qwen3_moe import Model, ModelArgs
from mlx_lm.utils import quantize_model

mx.set_default_device(mx.cpu)
sizes = dict(model_type="qwen3_moe", hidden_size=128, num_hidden_layers=1, intermediate_size=128,
             num_attention_heads=4, num_experts=4, num_experts_per_tok=2, decoder_sparse_step=1, mlp_only_layers=[],
             moe_intermediate_size=64, rms_norm_eps=1e-6, vocab_size=64, num_key_value_heads=2, head_dim=32,
             rope_theta=1e4, tie_word_embeddings=False, max_position_embeddings=64, norm_topk_prob=True)
model, config = quantize_model(Model(ModelArgs.from_dict(sizes)), dict(sizes), 32, 4, mode="mxfp4")
said = config["quantization"]
print("folder", json.dumps({k: v for k, v in said.items() if not isinstance(v, dict)}))
print("exceptions", json.dumps({k: v for k, v in said.items() if isinstance(v, dict)}))
for name, value in tree_flatten(model.parameters()):
    if name.startswith(("model.layers.0.mlp.gate.", "model.layers.0.self_attn.q_proj.")):
        print(name, list(value.shape), value.dtype)
END
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q "mlx[cpu]==0.32.4" mlx-lm==0.32.2
said=$("$folder/venv/bin/python" "$folder/ask.py" | grep -v "^\[INFO\]")
printf '%s\n' "$said"
expected='folder {"group_size": 32, "bits": 4, "mode": "mxfp4"}
exceptions {"model.layers.0.mlp.gate": {"group_size": 64, "bits": 8}}
model.layers.0.self_attn.q_proj.weight [128, 16] mlx.core.uint32
model.layers.0.self_attn.q_proj.scales [128, 4] mlx.core.uint8
model.layers.0.mlp.gate.weight [4, 32] mlx.core.uint32
model.layers.0.mlp.gate.scales [4, 2] mlx.core.float32
model.layers.0.mlp.gate.biases [4, 2] mlx.core.float32'
[ "$said" = "$expected" ] || { printf 'expected\n%s\n' "$expected"; exit 1; }
