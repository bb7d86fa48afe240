#!/usr/bin/env python3
"""gpt_oss_mx.py LLAMA_CPP DATA: a tiny gpt-oss whose experts are MXFP4, in its published form and as GGUF.

In: a source tree of llama.cpp; tests/data. Out: DATA/gpt-oss/mx: a folder with codes and exponents in separate
tensors; mx.gguf, which llama.cpp's converter makes of it; and logits.safetensors, which transformers computes with the
experts decoded: float32, eager. Codes and exponents are random, so that the place of every nibble matters.
"""
import json
import random
import subprocess
import sys
from pathlib import Path

import dense
import torch
import transformers
from dense_of_gpt_oss import GPT_OSS, GPT_OSS_KIND, YARN
from safetensors.torch import save_file

BLOCK, SEED, LENGTH = 32, 5301, 60
CONFIG = GPT_OSS | dict(
    vocab_size=301, hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4,
    num_key_value_heads=2, head_dim=16, num_local_experts=4, num_experts_per_tok=2, sliding_window=9, rms_norm_eps=1e-5,
    rope_theta=900.0, rope_scaling=YARN,
    quantization_config={"quant_method": "mxfp4", "modules_to_not_convert": [
        "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]})


def codes_of(generator, experts, rows, cols, spread):
    """Returns random codes, and exponents such that a matrix with this many columns gives values of that size."""
    blocks = torch.randint(0, 256, (experts, rows, cols // BLOCK, BLOCK // 2), generator=generator, dtype=torch.uint8)
    scales = torch.randint(spread - 2, spread + 1, (experts, rows, cols // BLOCK), generator=generator,
                           dtype=torch.uint8)
    return blocks, scales


def make(folder):
    plain = {k: v for k, v in CONFIG.items() if k != "quantization_config"}
    spec = dict(seed=SEED, kind=GPT_OSS_KIND, config=plain)
    state = {k: v.bfloat16().contiguous() for k, v in dense.filled(spec).items()}
    generator, experts, hidden, width = torch.Generator().manual_seed(SEED), 4, 64, 96
    for name in [k for k in state if k.endswith(("gate_up_proj", "down_proj"))]:
        rows, cols = (2 * width, hidden) if name.endswith("gate_up_proj") else (hidden, width)
        del state[name]
        spread = 125 if name.endswith("gate_up_proj") else 122
        state[name + "_blocks"], state[name + "_scales"] = codes_of(generator, experts, rows, cols, spread)
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=1))


def main(tree, data):
    torch.set_num_threads(1)
    folder, out = data / "gpt-oss/mx", data / "gpt-oss/mx.gguf"
    folder.mkdir(parents=True, exist_ok=True)
    make(folder)
    random.seed(SEED)
    ids = [random.randrange(20, 281) for _ in range(LENGTH)]
    model = transformers.GptOssForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", experts_implementation="eager",
        quantization_config=transformers.Mxfp4Config(dequantize=True)).float().eval()
    logits = dense.run(model, ids)
    save_file({"logits": logits.contiguous(), "ids": torch.tensor(ids, dtype=torch.int32)},
              data / "gpt-oss/logits.safetensors")
    here = Path(__file__).with_name("dense_gguf.py")
    subprocess.run([sys.executable, here, "--here", tree, folder, out, "none"], check=True)
    out.chmod(0o644)


if __name__ == "__main__": main(sys.argv[1], Path(sys.argv[2]))
