#!/usr/bin/env python3
"""Decodes a BF16 model by PyTorch, as transformers runs it, for results.py.

usage: peer_torch.py make FOLDER
       peer_torch.py decode FOLDER THREADS IDS

make: writes random weights of forerun's shape gemma4-1b as a published folder. decode: prints a line of JSON with the
versions. Then, for each line that it reads, it prints a line with the nanoseconds of IDS decode steps from an empty
context. Each step decodes the id that the logits before chose. One id is decoded first, untimed, as in forerun bench
model.
"""
import json
import sys
import time

import torch
import transformers

LAYERS, FULL_EVERY = 18, 6


def config():
    kinds = ["sliding_attention" if (i + 1) % FULL_EVERY else "full_attention" for i in range(LAYERS)]
    return transformers.Gemma4TextConfig(
        vocab_size=262144, hidden_size=1536, intermediate_size=6144, num_hidden_layers=LAYERS, num_attention_heads=8,
        num_key_value_heads=2, head_dim=256, global_head_dim=512, sliding_window=512, layer_types=kinds,
        hidden_size_per_layer_input=0, num_kv_shared_layers=0, final_logit_softcapping=30.0,
        tie_word_embeddings=True, enable_moe_block=False, use_double_wide_mlp=False)


@torch.no_grad()
def make(folder):
    torch.manual_seed(7)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("meta"):
        model = transformers.Gemma4ForCausalLM(config())
    model.to_empty(device="cpu")
    for tensor in model.parameters():
        if tensor.dim() > 1:
            tensor.uniform_(-(3 / tensor.shape[-1]) ** 0.5, (3 / tensor.shape[-1]) ** 0.5)
        else:
            tensor.fill_(1)
    for name, tensor in model.named_buffers():
        if name.endswith("layer_scalar"):
            tensor.fill_(0.7)
    model.tie_weights()
    model.save_pretrained(folder)


@torch.inference_mode()
def decode(model, count):
    cache = transformers.DynamicCache(config=model.config)
    token = torch.tensor([[2]])
    start = time.perf_counter_ns()
    for _ in range(count):
        token = model(token, past_key_values=cache, use_cache=True).logits[:, -1].argmax(-1, keepdim=True)
    return time.perf_counter_ns() - start


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "make":
        return make(sys.argv[2])
    if len(sys.argv) != 5 or sys.argv[1] != "decode":
        sys.exit(__doc__)
    torch.set_num_threads(int(sys.argv[3]))
    model = transformers.Gemma4ForCausalLM.from_pretrained(sys.argv[2], dtype=torch.bfloat16).eval()
    decode(model, 1)
    print(json.dumps({"torch": torch.__version__, "transformers": transformers.__version__}), flush=True)
    for _ in sys.stdin:
        print(json.dumps({"samples_ns": [decode(model, int(sys.argv[4]))]}), flush=True)


if __name__ == "__main__":
    main()
