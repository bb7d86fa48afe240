"""Defines the demo's two networks: configurations, loading and saving, greedy text, and drafting over a whole text at
once.

In drafting, row q is the draft that starts when ids[0..q+1] are accepted and the target has run ids[0..q]. Its k-th
step takes ids[q+1+k] and predicts ids[q+2+k], always at position q+1, over the target's keys and values 0..q. No row
reads another, so all rows of a text are drafted together. The input of every step is the text itself. On a greedy text
an engine drafts exactly the same, up to the first wrong draft, after which it makes no more.
"""
from pathlib import Path

import torch
from transformers import (Gemma4AssistantConfig, Gemma4AssistantForCausalLM, Gemma4ForCausalLM, Gemma4TextConfig,
                          GenerationConfig)
from transformers.utils import logging

from corpus import BOS, EOS, PAD, VOCAB

logging.disable_progress_bar()

WINDOW = 128
COMMON = dict(
    vocab_size=VOCAB, num_attention_heads=4, num_key_value_heads=1, head_dim=64, global_head_dim=128,
    sliding_window=WINDOW, max_position_embeddings=4096, eos_token_id=EOS, bos_token_id=BOS, pad_token_id=PAD,
    attn_implementation="sdpa",
    rope_parameters={
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0}})


def new_target():
    """Returns a small Gemma 4 like the E series: it has per-layer embeddings, and its last three layers share KV and
    have double-wide MLPs."""
    return Gemma4ForCausalLM(Gemma4TextConfig(
        hidden_size=256, intermediate_size=512, num_hidden_layers=6, num_kv_shared_layers=3, use_double_wide_mlp=True,
        layer_types=["sliding_attention", "sliding_attention", "full_attention"] * 2,
        vocab_size_per_layer_input=VOCAB, hidden_size_per_layer_input=32, final_logit_softcapping=30.0, **COMMON))


def new_assistant():
    text = Gemma4TextConfig(
        hidden_size=128, intermediate_size=256, num_hidden_layers=4, num_kv_shared_layers=4,
        layer_types=["sliding_attention"] * 3 + ["full_attention"], vocab_size_per_layer_input=0,
        hidden_size_per_layer_input=0, **COMMON)
    return Gemma4AssistantForCausalLM(Gemma4AssistantConfig(
        text_config=text, backbone_hidden_size=256, use_ordered_embeddings=True, num_centroids=64,
        centroid_intermediate_top_k=8, tie_word_embeddings=True))


def load_target(folder):
    model = Gemma4ForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa")
    return model.eval().requires_grad_(False)


def load_assistant(folder):
    return Gemma4AssistantForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa")


def save(model, folder):
    """Saves a model as a published folder, with weights in BF16."""
    half = type(model)(model.config)
    half.load_state_dict(model.state_dict())
    half.to(torch.bfloat16).save_pretrained(folder, safe_serialization=True)
    Path(folder, "model.safetensors").chmod(0o644)


@torch.no_grad()
def greedy(target, prompts, count):
    """Returns prompts of equal length [B, P] with the target's own greedy text after them, [B, P + count]."""
    how = GenerationConfig(do_sample=False, max_new_tokens=count, min_new_tokens=count, pad_token_id=PAD)
    return target.generate(prompts, generation_config=how)


@torch.no_grad()
def read(target, ids):
    """Runs one forward over whole texts [B, n] and returns the inputs of drafts: hidden rows, shared KV, logits."""
    out = target(ids, use_cache=False, output_hidden_states=True, return_shared_kv_states=True)
    return out.hidden_states[-1], {kind: (k, v) for kind, (k, v) in dict(out.shared_kv_states).items()}, out.logits


def masks(rows, length):
    """Returns masks of what each row sees: KV 0..row in full-attention layers, the last WINDOW + 1 of them in sliding
    layers."""
    q, k = rows[:, None], torch.arange(length)[None]
    full, near = k <= q, (k <= q) & (k >= q - WINDOW)
    hidden = torch.finfo(torch.float32).min
    return {kind: torch.zeros(seen.shape).masked_fill(~seen, hidden)[None, None]
            for kind, seen in (("full_attention", full), ("sliding_attention", near))}


def drafts(assistant, embed, ids, rows, hidden, kv, depth):
    """Yields, step by step, the assistant's last hidden rows [B, R, H] and the ids that they should predict [B, R].

    rows [R]: any of 0..n-2-depth, so that the input and the answer of every step are in ids [B, n]."""
    seen, position, state = masks(rows, ids.shape[1]), (rows + 1)[None], hidden[:, rows]
    for k in range(depth):
        inputs = assistant.pre_projection(torch.cat([embed(ids[:, rows + 1 + k]), state], -1))
        out = assistant.model(inputs_embeds=inputs, attention_mask=seen, position_ids=position, shared_kv_states=kv,
                              use_cache=False).last_hidden_state
        yield out, ids[:, rows + 2 + k]
        state = assistant.post_projection(out)
