#!/usr/bin/env python3
"""sparse.py make|verify|seek DATA [NAME...]: tiny random mixtures of experts without an MTP layer, and what
transformers computes with them. sparse.py convert LLAMA_CPP DATA [NAME...]: llama.cpp's GGUF files of them.

make    writes DATA/models/NAME: the model as transformers saves it, with the published names; reference.json,
        reference.safetensors
verify  reads it back and computes everything again, also with a cache and in double precision
convert writes DATA/dense/NAME.gguf in BF16 with the converter of a source tree; its logits are the reference's

The dimensions are such that code written only for the published ones would get them wrong. As in dense.py: float32,
eager attention, no cache, one thread; README.md describes the files, and dense.py `overlooked`.
"""
import json
import math
import os
import random
import re
import runpy
import subprocess
import sys
from pathlib import Path

os.environ |= {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}

import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file, save_file
from transformers.models.llama4 import modeling_llama4

from dense import GREEDY_PROMPTS, LEAST_IDS, LEAST_MARGIN, LEAST_MOVE, compute, passed_by, run, zeroed
from dense_of_norms import FULL, QK_NORMS, SLIDING, all_layers_turn, mean_kept, mean_of_biased_kept, serial, windows
from make_reference import margins

GREEDY, LENGTHS, FIRST = 48, (1, 7, 19, 101), 30
ENDS = dict(bos_token_id=3, eos_token_id=[5, 7])
EAGER = dict(attn_implementation="eager", experts_implementation="eager")
COMMON = ENDS | dict(hidden_act="silu", max_position_embeddings=640, tie_word_embeddings=False)

MIXTRAL = COMMON | dict(
    architectures=["MixtralForCausalLM"], model_type="mixtral", vocab_size=331, hidden_size=72, intermediate_size=44,
    num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, rms_norm_eps=3e-6, rope_theta=7000.0,
    num_local_experts=5, num_experts_per_tok=3, sliding_window=None)
QWEN2 = COMMON | dict(
    architectures=["Qwen2MoeForCausalLM"], model_type="qwen2_moe", vocab_size=337, hidden_size=60,
    intermediate_size=52, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=3, rms_norm_eps=3e-6,
    rope_theta=5000.0, num_experts=7, num_experts_per_tok=3, moe_intermediate_size=26,
    shared_expert_intermediate_size=38, norm_topk_prob=False, decoder_sparse_step=1, mlp_only_layers=[],
    use_sliding_window=False, sliding_window=6, max_window_layers=1)
QWEN3 = COMMON | dict(
    architectures=["Qwen3MoeForCausalLM"], model_type="qwen3_moe", vocab_size=207, hidden_size=44,
    intermediate_size=36, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=14,
    rms_norm_eps=3e-6, rope_theta=5000.0, attention_bias=False, num_experts=5, num_experts_per_tok=2,
    moe_intermediate_size=18, norm_topk_prob=False, decoder_sparse_step=1, mlp_only_layers=[],
    use_sliding_window=True, sliding_window=8)
DEEPSEEK2 = COMMON | dict(
    architectures=["DeepseekV2ForCausalLM"], model_type="deepseek_v2", vocab_size=333, hidden_size=70,
    intermediate_size=76, num_hidden_layers=3, num_attention_heads=5, num_key_value_heads=5, q_lora_rank=None,
    kv_lora_rank=36, qk_rope_head_dim=10, qk_nope_head_dim=14, v_head_dim=18, rms_norm_eps=3e-6, rope_theta=9000.0,
    rope_scaling=dict(type="yarn", factor=12.8, original_max_position_embeddings=100, beta_fast=9, beta_slow=2,
                      mscale=0.707, mscale_all_dim=0.707),
    attention_bias=False, n_routed_experts=9, num_experts_per_tok=3, n_shared_experts=2, moe_intermediate_size=22,
    n_group=1, topk_group=1, topk_method="greedy", norm_topk_prob=False, routed_scaling_factor=1.5,
    scoring_func="softmax", moe_layer_freq=1, first_k_dense_replace=1)
KIMI = COMMON | dict(
    architectures=["DeepseekV3ForCausalLM"], model_type="kimi_k2", vocab_size=339, hidden_size=80,
    intermediate_size=52, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4, q_lora_rank=42,
    kv_lora_rank=28, qk_rope_head_dim=8, qk_nope_head_dim=12, v_head_dim=16, rms_norm_eps=1e-6, rope_theta=5000.0,
    rope_scaling=dict(type="yarn", factor=32.0, original_max_position_embeddings=40, beta_fast=1.0, beta_slow=1.0,
                      mscale=1.0, mscale_all_dim=1.0),
    attention_bias=False, n_routed_experts=11, num_experts_per_tok=4, n_shared_experts=1, moe_intermediate_size=22,
    n_group=1, topk_group=1, topk_method="noaux_tc", norm_topk_prob=True, routed_scaling_factor=2.827,
    scoring_func="sigmoid", moe_layer_freq=1, first_k_dense_replace=1, num_nextn_predict_layers=0)
# The published keys. head_dim is the width of a row in the cache, and is not used.
SARVAM_MLA = COMMON | dict(
    architectures=["SarvamMLAForCausalLM"], model_type="sarvam_mla", vocab_size=353, hidden_size=70,
    intermediate_size=62, num_hidden_layers=3, num_attention_heads=5, q_head_dim=24, kv_lora_rank=30,
    qk_rope_head_dim=10, qk_nope_head_dim=14, v_head_dim=18, head_dim=40, rms_norm_eps=3e-6, rope_theta=700.0,
    rope_scaling=dict(type="deepseek_yarn", factor=16.0, original_max_position_embeddings=40, beta_fast=9,
                      beta_slow=2, mscale=1.0, mscale_all_dim=1.0),
    num_experts=9, num_experts_per_tok=3, num_shared_experts=2, moe_intermediate_size=22, first_k_dense_replace=1,
    routed_scaling_factor=1.7, moe_router_enable_expert_bias=True, use_qk_norm=True)
ERNIE = COMMON | dict(
    architectures=["Ernie4_5_MoeForCausalLM"], model_type="ernie4_5_moe", vocab_size=341, hidden_size=60,
    intermediate_size=68, num_hidden_layers=4, num_attention_heads=6, num_key_value_heads=2, rms_norm_eps=3e-6,
    rope_theta=3000.0, use_bias=False, moe_num_experts=7, moe_k=3, moe_intermediate_size=26, moe_num_shared_experts=2,
    moe_layer_start_index=1, moe_layer_end_index=-1, moe_layer_interval=1, moe_norm_min=1e-12)

MINIMAX = COMMON | dict(
    architectures=["MiniMaxM2ForCausalLM"], model_type="minimax_m2", vocab_size=347, hidden_size=64,
    intermediate_size=26, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, head_dim=14,
    rms_norm_eps=3e-6, rotary_dim=6, rope_parameters=dict(rope_type="default", rope_theta=4000.0,
                                                          partial_rotary_factor=0.45),
    num_local_experts=7, num_experts_per_tok=3, scoring_func="sigmoid", use_qk_norm=True, use_routing_bias=True)
OLMOE = COMMON | dict(
    architectures=["OlmoeForCausalLM"], model_type="olmoe", vocab_size=349, hidden_size=72, intermediate_size=22,
    num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=3, rms_norm_eps=1e-5, rope_theta=600.0,
    num_experts=9, num_experts_per_tok=4, norm_topk_prob=False, attention_bias=False, clip_qkv=None)

GRANITE = COMMON | dict(
    architectures=["GraniteMoeSharedForCausalLM"], model_type="granitemoeshared", vocab_size=343, hidden_size=72,
    intermediate_size=26, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, rms_norm_eps=3e-6,
    rope_theta=4000.0, attention_bias=False, num_local_experts=7, num_experts_per_tok=3, shared_intermediate_size=38,
    embedding_multiplier=2.5, attention_multiplier=0.4, residual_multiplier=0.6, logits_scaling=0.7)

PHI = COMMON | dict(
    architectures=["PhimoeForCausalLM"], model_type="phimoe", vocab_size=337, hidden_size=60, intermediate_size=26,
    num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, rms_norm_eps=3e-6, rope_theta=700.0,
    num_local_experts=7, num_experts_per_tok=2, router_jitter_noise=0.3, attention_bias=True, lm_head_bias=True,
    sliding_window=9, rope_scaling=dict(
        type="longrope", long_factor=[1.2, 1.9, 3.0, 4.1, 5.5], short_factor=[1.0, 1.3, 2.2, 3.1, 4.7],
        short_mscale=1.3, long_mscale=1.3, original_max_position_embeddings=40))

SWASH = GRANITE | dict(
    architectures=["GraniteMoeSWAForCausalLM"], model_type="granitemoe_swa", num_hidden_layers=4, sliding_window=7,
    layer_types=[FULL, SLIDING, SLIDING, FULL], layer_rope_theta=[0, 4000.0, 4000.0, 60000])

HUNYUAN = COMMON | dict(
    architectures=["HunYuanMoEV1ForCausalLM"], model_type="hunyuan_v1_moe", vocab_size=357, hidden_size=72,
    intermediate_size=26, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, head_dim=12,
    rms_norm_eps=3e-6, rope_theta=3000.0, attention_bias=False, num_experts=7, moe_topk=[3, 3, 3],
    moe_intermediate_size=[26, 26, 26], num_shared_expert=[1, 1, 1], use_qk_norm=True)

LFM2 = COMMON | dict(
    architectures=["Lfm2MoeForCausalLM"], model_type="lfm2_moe", vocab_size=341, hidden_size=60, intermediate_size=68,
    moe_intermediate_size=26, num_hidden_layers=5, num_attention_heads=6, num_key_value_heads=2, norm_eps=3e-6,
    rope_theta=700.0, conv_L_cache=3, conv_bias=False, num_dense_layers=2, num_experts=7, num_experts_per_tok=3,
    use_expert_bias=True, norm_topk_prob=True, routed_scaling_factor=1.0,
    layer_types=["conv", "full_attention", "conv", "full_attention", "conv"], tie_word_embeddings=True)
FLEX = COMMON | dict(
    architectures=["FlexOlmoForCausalLM"], model_type="flex_olmo", vocab_size=345, hidden_size=72,
    intermediate_size=22, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=3, rms_norm_eps=3e-6,
    rope_theta=600.0, num_experts=7, num_experts_per_tok=4, norm_topk_prob=False, attention_bias=False,
    pad_token_id=0)
DOTS = COMMON | dict(
    architectures=["Dots1ForCausalLM"], model_type="dots1", vocab_size=343, hidden_size=60, intermediate_size=68,
    moe_intermediate_size=22, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=18,
    rms_norm_eps=3e-6, rope_theta=5000.0, attention_bias=False, n_routed_experts=9, num_experts_per_tok=3,
    n_shared_experts=2, n_group=3, topk_group=2, first_k_dense_replace=1, norm_topk_prob=True,
    routed_scaling_factor=1.6, sliding_window=None, max_window_layers=4)
SOLAR = COMMON | dict(
    architectures=["SolarOpenForCausalLM"], model_type="solar_open", vocab_size=347, hidden_size=56,
    moe_intermediate_size=26, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, head_dim=14,
    rms_norm_eps=3e-6, rope_theta=4000.0, attention_bias=False, n_routed_experts=8, num_experts_per_tok=3,
    n_shared_experts=1, n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=1.3)
SARVAM = COMMON | dict(
    architectures=["SarvamMoEForCausalLM"], model_type="sarvam_moe", vocab_size=345, hidden_size=60,
    intermediate_size=68, moe_intermediate_size=22, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
    head_dim=14, rms_norm_eps=3e-6, rope_theta=4000.0, use_qkv_bias=False, use_bias=False, num_experts=9,
    num_experts_per_tok=3, num_shared_experts=1, first_k_dense_replace=1, norm_topk_prob=True, use_qk_norm=True,
    moe_router_enable_expert_bias=True, routed_scaling_factor=1.6)
GLM4 = COMMON | dict(
    architectures=["Glm4MoeForCausalLM"], model_type="glm4_moe", vocab_size=205, hidden_size=44, intermediate_size=36,
    moe_intermediate_size=14, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=12,
    rms_norm_eps=3e-6, rope_theta=4000.0, attention_bias=True, use_qk_norm=True, n_routed_experts=6,
    num_experts_per_tok=2, n_shared_experts=2, n_group=2, topk_group=1, first_k_dense_replace=1, norm_topk_prob=False,
    routed_scaling_factor=1.4)
EXAONE = COMMON | dict(
    architectures=["ExaoneMoeForCausalLM"], model_type="exaone_moe", vocab_size=349, hidden_size=60,
    intermediate_size=68, moe_intermediate_size=22, num_hidden_layers=5, num_attention_heads=6, num_key_value_heads=2,
    head_dim=14, rms_norm_eps=3e-6, rope_theta=4000.0, num_experts=7, num_experts_per_tok=3, num_shared_experts=2,
    norm_topk_prob=True, routed_scaling_factor=1.6, first_k_dense_replace=1, sliding_window=7,
    sliding_window_pattern="LLG", layer_types=[SLIDING, SLIDING, FULL, SLIDING, FULL],
    mlp_layer_types=["dense"] + ["sparse"] * 4, n_group=1, topk_group=1)
COHERE = COMMON | dict(
    architectures=["Cohere2MoeForCausalLM"], model_type="cohere2_moe", vocab_size=351, hidden_size=60,
    intermediate_size=26, num_hidden_layers=5, num_attention_heads=6, num_key_value_heads=2, head_dim=14,
    layer_norm_eps=3e-6, rope_theta=300.0, logit_scale=0.4, attention_bias=False, num_experts=7,
    num_experts_per_tok=3, num_shared_experts=2, shared_expert_combination_strategy="average",
    expert_selection_fn="sigmoid", norm_topk_prob=True, first_k_dense_replace=1, prefix_dense_intermediate_size=68,
    prefix_dense_sliding_window_pattern=1, sliding_window=7, sliding_window_pattern=3,
    layer_types=[FULL, SLIDING, SLIDING, FULL, SLIDING], tie_word_embeddings=True)

LAGUNA = COMMON | dict(
    architectures=["LagunaForCausalLM"], model_type="laguna", vocab_size=353, hidden_size=60, intermediate_size=68,
    num_hidden_layers=4, num_attention_heads=6, num_attention_heads_per_layer=[6, 4, 6, 4], num_key_value_heads=2,
    head_dim=16, rms_norm_eps=3e-6, num_experts=7, num_experts_per_tok=3, moe_intermediate_size=22,
    shared_expert_intermediate_size=26, moe_routed_scaling_factor=1.6, moe_router_logit_softcapping=0.0,
    sliding_window=7, layer_types=[FULL, SLIDING, SLIDING, SLIDING], mlp_layer_types=["dense"] + ["sparse"] * 3,
    gating="per-head", attention_bias=False, rope_parameters={
        FULL: dict(rope_type="yarn", rope_theta=900.0, factor=8.0, original_max_position_embeddings=40,
                   attention_factor=1.1, beta_fast=9, beta_slow=2, partial_rotary_factor=0.5),
        SLIDING: dict(rope_type="default", rope_theta=300.0, partial_rotary_factor=0.75)})

MELLUM = COMMON | dict(
    architectures=["MellumForCausalLM"], model_type="mellum", vocab_size=341, hidden_size=60, intermediate_size=68,
    num_hidden_layers=4, num_attention_heads=6, num_key_value_heads=2, head_dim=14, rms_norm_eps=3e-6, num_experts=7,
    num_experts_per_tok=3, moe_intermediate_size=22, norm_topk_prob=True, sliding_window=7, attention_bias=False,
    layer_types=[SLIDING, FULL, SLIDING, SLIDING], mlp_layer_types=["sparse"] * 4, rope_parameters={
        FULL: dict(rope_type="yarn", rope_theta=900.0, factor=8.0, original_max_position_embeddings=40,
                   beta_fast=9.0, beta_slow=2.0),
        SLIDING: dict(rope_type="default", rope_theta=300.0)})

KIMI_LINEAR = COMMON | dict(
    architectures=["KimiLinearForCausalLM"], model_type="kimi_linear", vocab_size=337, hidden_size=72,
    intermediate_size=52, num_hidden_layers=5, num_attention_heads=5, num_key_value_heads=5, q_lora_rank=None,
    kv_lora_rank=28, qk_rope_head_dim=10, qk_nope_head_dim=14, v_head_dim=18, rms_norm_eps=3e-5, rope_theta=5000.0,
    rope_scaling=None, mla_use_nope=True, num_experts=11, num_experts_per_token=4, num_shared_experts=1,
    moe_intermediate_size=22, num_expert_group=1, topk_group=1, moe_renormalize=True, routed_scaling_factor=1.9,
    moe_router_activation_func="sigmoid", moe_layer_freq=1, first_k_dense_replace=1, num_nextn_predict_layers=0,
    head_dim=14, model_max_length=640, pad_token_id=0, linear_attn_config=dict(
        full_attn_layers=[3, 5], kda_layers=[1, 2, 4], head_dim=18, num_heads=5, short_conv_kernel_size=4))

INDEXED = {k: v for k, v in KIMI.items() if k not in ("n_group", "topk_group", "moe_layer_freq")} | dict(
    architectures=["DeepseekV32ForCausalLM"], model_type="deepseek_v32", index_topk=160, index_n_heads=3,
    index_head_dim=18, rms_norm_eps=3e-5, n_routed_experts=12, n_group=4, topk_group=2, vocab_size=343)

LLAMA4 = COMMON | dict(
    architectures=["Llama4ForCausalLM"], model_type="llama4_text", vocab_size=347, hidden_size=60, intermediate_size=26,
    intermediate_size_mlp=44, num_hidden_layers=5, num_attention_heads=6, num_key_value_heads=2, head_dim=14,
    rms_norm_eps=3e-2, num_local_experts=7, num_experts_per_tok=2, interleave_moe_layer_step=2, use_qk_norm=True,
    no_rope_layers=[], no_rope_layer_interval=3, attention_chunk_size=13, attn_temperature_tuning=True, attn_scale=0.7,
    floor_scale=11, attention_bias=True, rope_parameters=dict(
        rope_type="llama3", rope_theta=300.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=1.0,
        original_max_position_embeddings=40))
# These numbers are assumed by readers of GGUF, which has no keys for them.
SCOUT = {k: v for k, v in LLAMA4.items() if k not in (
    "no_rope_layer_interval", "attention_chunk_size", "attn_scale", "floor_scale")}

# file: llama.cpp's converter makes a GGUF file with the same model.
MODELS = {
    "mixtral-odd": dict(seed=4102, file=True, config=MIXTRAL),
    # All layers have a window, for which GGUF has no key. The heads together are not as wide as the stream.
    "mixtral-window": dict(seed=4107, config=MIXTRAL | dict(
        hidden_size=58, head_dim=14, num_attention_heads=4, num_key_value_heads=1, num_hidden_layers=2,
        sliding_window=9, num_local_experts=4, num_experts_per_tok=2, tie_word_embeddings=True)),
    "qwen2-moe-odd": dict(seed=4111, file=True, config=QWEN2),
    # decoder_sparse_step and mlp_only_layers each make layers without a mixture; weights are normalized; no biases.
    "qwen2-moe-dense": dict(seed=4112, config=QWEN2 | dict(
        num_hidden_layers=4, num_attention_heads=5, num_key_value_heads=1, num_experts=5, num_experts_per_tok=2,
        moe_intermediate_size=18, shared_expert_intermediate_size=46, norm_topk_prob=True, decoder_sparse_step=2,
        mlp_only_layers=[1], qkv_bias=False, tie_word_embeddings=True)),
    # The first and the third layer have a window. Dynamic scaling has no effect in texts as short as these.
    "qwen2-moe-window": dict(seed=4201, config=QWEN2 | dict(
        vocab_size=211, hidden_size=48, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
        num_experts=5, num_experts_per_tok=2, moe_intermediate_size=18, shared_expert_intermediate_size=22,
        use_sliding_window=True, max_window_layers=3, rope_scaling=dict(rope_type="dynamic", factor=4.0))),
    # All layers have a window.
    "qwen3-moe-window": dict(seed=4211, config=QWEN3),
    "deepseek-v2-lite": dict(seed=4131, file=True, config=DEEPSEEK2),
    # V2's own form: queries have a latent, and experts have groups.
    "deepseek-v2-groups": dict(seed=4126, config=DEEPSEEK2 | dict(
        hidden_size=66, num_attention_heads=3, num_key_value_heads=3, num_hidden_layers=2, q_lora_rank=40,
        rope_scaling=None, n_routed_experts=12, n_shared_experts=1, n_group=4, topk_group=2,
        topk_method="group_limited_greedy", routed_scaling_factor=4.0)),
    "kimi-k2": dict(seed=4132, file=True, config=KIMI),
    # The indexers select all positions, because these texts are short.
    "deepseek-v3.2-odd": dict(seed=4151, file=True, config=INDEXED),
    "glm-5-odd": dict(seed=4166, file=True, config=INDEXED | dict(
        architectures=["GlmMoeDsaForCausalLM"], model_type="glm_moe_dsa", hidden_size=70, num_hidden_layers=4,
        num_attention_heads=3, num_key_value_heads=3, rope_scaling=None, n_group=1, topk_group=1,
        norm_topk_prob=False, first_k_dense_replace=2, indexer_types=["full", "shared", "full", "shared"])),
    "ernie4.5-moe-odd": dict(seed=4142, file=True, config=ERNIE),
    # Every second layer is a mixture, from the first to the last but one. There are no shared experts, and sums of
    # weights are below their lower bound.
    "ernie4.5-moe-steps": dict(seed=4149, config=ERNIE | dict(
        num_hidden_layers=6, num_attention_heads=4, num_key_value_heads=4, head_dim=18, moe_layer_start_index=0,
        moe_layer_end_index=4, moe_layer_interval=2, moe_num_shared_experts=0, moe_norm_min=0.7,
        tie_word_embeddings=True)),
    "minimax-m2-odd": dict(seed=4151, file=True, config=MINIMAX),
    "granite-moe-shared": dict(seed=4171, file=True, config=GRANITE),
    "phimoe-odd": dict(seed=7703, config=PHI),
    # The converter knows only the published name of the architecture, the published nearness, and this magnitude.
    "phimoe-plain": dict(seed=7713, file=True, config=PHI | dict(
        architectures=["PhiMoEForCausalLM"], sliding_window=None, router_jitter_noise=0.01,
        rope_scaling=PHI["rope_scaling"] | dict.fromkeys(
            ("short_mscale", "long_mscale"), (1 + math.log(640 / 40) / math.log(40)) ** 0.5))),
    "granite-moe-swa": dict(seed=7344, file=True, config=SWASH),
    "hunyuan-moe-odd": dict(seed=4181, file=True, config=HUNYUAN),
    # `noise` bounds the distance between float32 and double precision. It is large because states carry rounding
    # errors on.
    "kimi-linear-odd": dict(seed=4303, noise=2e-5, file=True, config=KIMI_LINEAR),
    # Other numbers of heads, queries with a latent, groups of experts, attention in the first layer, two taps.
    "kimi-linear-groups": dict(seed=4313, noise=2e-5, config=KIMI_LINEAR | dict(
        hidden_size=60, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=4, q_lora_rank=34,
        num_experts=12, num_experts_per_token=3, num_shared_experts=2, num_expert_group=4, topk_group=2,
        moe_renormalize=False, routed_scaling_factor=1.3, first_k_dense_replace=2,
        linear_attn_config=dict(full_attn_layers=[1, 3], kda_layers=[2, 4], head_dim=33, num_heads=3,
                                short_conv_kernel_size=2))),
    "lfm2-moe-odd": dict(seed=4401, file=True, config=LFM2),
    "lfm2-moe-plain": dict(seed=4516, config=LFM2 | dict(
        num_hidden_layers=3, num_dense_layers=1, layer_types=["full_attention", "conv", "full_attention"],
        num_experts=5, num_experts_per_tok=2, use_expert_bias=False, norm_topk_prob=False, routed_scaling_factor=1.7,
        tie_word_embeddings=False)),
    "flex-olmo-odd": dict(seed=4601, config=FLEX),
    "dots1-odd": dict(seed=4701, file=True, config=DOTS),
    # The last two layers have a window.
    "dots1-window": dict(seed=4803, config=DOTS | dict(
        num_hidden_layers=3, sliding_window=8, max_window_layers=1, n_group=1, topk_group=1, n_shared_experts=1,
        first_k_dense_replace=0, norm_topk_prob=False, attention_bias=True)),
    "laguna-odd": dict(seed=9403, file=True, config=LAGUNA),
    # A gate for each value, a cap on the routers' logits, and the same number of heads in all layers.
    "laguna-elements": dict(seed=9506, config={
        k: v for k, v in LAGUNA.items() if k not in ("num_attention_heads_per_layer", "mlp_layer_types")} | dict(
        gating="per-element", moe_router_logit_softcapping=1.3, num_attention_heads=4, num_hidden_layers=3,
        layer_types=[SLIDING, FULL, SLIDING], attention_bias=True, tie_word_embeddings=True, rope_parameters={
            FULL: dict(rope_type="default", rope_theta=900.0, partial_rotary_factor=0.25),
            SLIDING: dict(rope_type="default", rope_theta=300.0)})),
    "mellum-odd": dict(seed=9554, file=True, config=MELLUM),
    # A dense layer, biases, weights that are not normalized; kinds and bases by default.
    "mellum-plain": dict(seed=9598, config={k: v for k, v in MELLUM.items() if k not in ("rope_parameters",)} | dict(
        num_hidden_layers=3, layer_types=[FULL, SLIDING, FULL], mlp_layer_types=["sparse", "dense", "sparse"],
        norm_topk_prob=False, attention_bias=True, tie_word_embeddings=True)),
    "exaone-moe-odd": dict(seed=7201, file=True, config=EXAONE),
    "cohere2-moe-odd": dict(seed=7219, file=True, config=COHERE),
    # Softmax instead of sigmoid, RMSNorm, shared experts that are added without a factor, dense layers with a window,
    # kinds of layers given by intervals.
    "cohere2-moe-plain": dict(seed=7221, config={k: v for k, v in COHERE.items() if k != "layer_types"} | dict(
        expert_selection_fn="softmax", shared_expert_combination_strategy="sum", rms_norm_eps=1e-5, num_experts=5,
        norm_topk_prob=False, num_experts_per_tok=2, first_k_dense_replace=2, prefix_dense_sliding_window_pattern=2,
        num_shared_experts=1, attention_bias=True, num_key_value_heads=3, tie_word_embeddings=False)),
    "solar-open-odd": dict(seed=4903, config=SOLAR),
    "sarvam-odd": dict(seed=4951, file=True, config=SARVAM),
    "sarvam-saved": dict(seed=4974, saved=True, config=SARVAM | dict(
        vocab_size=203, hidden_size=44, intermediate_size=36, moe_intermediate_size=14, num_attention_heads=4,
        use_qkv_bias=True, use_qk_norm=False, num_experts=8, num_shared_experts=2, first_k_dense_replace=0,
        num_hidden_layers=2, n_group=4, topk_group=2, head_dim=12, partial_rotary_factor=0.5,
        tie_word_embeddings=True)),
    "sarvam-mla-odd": dict(seed=5013, config=SARVAM_MLA),
    "sarvam-mla-saved": dict(seed=5034, saved=True, config=SARVAM_MLA | dict(
        vocab_size=207, hidden_size=44, intermediate_size=36, moe_intermediate_size=14, num_attention_heads=3,
        num_experts=12, num_shared_experts=1, first_k_dense_replace=0, num_hidden_layers=2, n_group=4, topk_group=2,
        q_lora_rank=20, rope_interleave=False, tie_word_embeddings=True)),
    "glm4-moe-saved": dict(seed=4999, saved=True, config=GLM4),
    "llama4-odd": dict(seed=9604, config=LLAMA4),
    # Lists say which layers are mixtures, rotated, chunked; one of them is chunked and not rotated. Queries don't grow.
    "llama4-listed": dict(seed=9701, config=LLAMA4 | dict(
        num_hidden_layers=4, num_experts_per_tok=3, moe_layers=[1, 2], no_rope_layers=[1, 0, 0, 1],
        layer_types=["full_attention", "chunked_attention", "full_attention", "chunked_attention"],
        attention_chunk_size=9, attn_temperature_tuning=False, attention_bias=False, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=700.0))),
    "llama4-scout": dict(seed=9802, file=True, config=SCOUT | dict(
        interleave_moe_layer_step=1, num_experts_per_tok=1, num_hidden_layers=4, attention_bias=False)),
    "llama4-maverick": dict(seed=9901, file=True, config=SCOUT | dict(
        hidden_size=36, intermediate_size=6, num_local_experts=128, num_experts_per_tok=1, num_hidden_layers=4,
        num_attention_heads=4, use_qk_norm=False, attention_bias=False,
        rope_parameters=dict(rope_type="default", rope_theta=700.0))),
    "olmoe-odd": dict(seed=4165, file=True, config=OLMOE),
}

# transformers has no class for these configurations, and uses those of another family.
ALIASES = {"kimi_k2": "deepseek_v3"}
BIASES = ("e_score_correction_bias", "expert_bias")


# ------------------------------------------------------------------------------------------------------------- models

def config_of(spec, changes=None):
    plain = json.loads(json.dumps(spec["config"] | (changes or {})))
    kind = plain.pop("model_type")
    plain.pop("architectures")
    config = transformers.AutoConfig.for_model(ALIASES.get(kind, kind), **plain)
    config._attn_implementation = config._experts_implementation = "eager"
    return config


def class_of(spec):
    name = spec["config"]["architectures"][0]
    return getattr(transformers, {"PhiMoEForCausalLM": "PhimoeForCausalLM",
                                  "SarvamMoEForCausalLM": "Glm4MoeForCausalLM",
                                  "SarvamMLAForCausalLM": "DeepseekV3ForCausalLM"}.get(name, name))


@torch.no_grad()
def fill(state, seed):
    """Makes routers choose clearly, and corrections as different from each other as scores are."""
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in sorted(state.items()):
        noise = torch.randn(tensor.shape, generator=generator)
        if name.endswith(BIASES): tensor.copy_(0.15 * noise)
        elif name.endswith("A_log"): tensor.copy_(0.8 * noise)
        elif name.endswith("dt_bias"): tensor.copy_(noise - 1)
        elif name.endswith("conv1d.weight"): tensor.copy_(0.8 * noise)
        elif name.endswith("bias"): tensor.copy_(0.5 * noise)
        elif "norm" in name: tensor.copy_(1 + 0.3 * noise)
        else: tensor.copy_(noise * 1.7 * tensor.shape[-1] ** -0.5)
        if not name.endswith(BIASES): tensor.copy_(tensor.bfloat16().float())


def filled(spec):
    model = class_of(spec)(config_of(spec)).float().eval()
    state = {k: v for k, v in model.state_dict().items()
             if k != "lm_head.weight" or not spec["config"]["tie_word_embeddings"]}
    fill(state, spec["seed"])
    if spec["config"]["tie_word_embeddings"]: model.tie_weights()
    return model


def load(folder, spec, changes=None):
    """Returns the logits that transformers computes from the folder, with `changes` in its configuration."""
    config = config_of(spec, changes)
    model = class_of(spec).from_pretrained(folder, config=config, dtype=torch.float32, **EAGER)
    return model.float().eval()


def save(folder, spec):
    """Saves by transformers, which writes the published names, and config.json in its published form; or, if the table
    says `saved`, in the form that transformers gives it."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.iterdir(): file.unlink()
    filled(spec).save_pretrained(folder)
    state = {k: v if k.endswith(BIASES) else v.bfloat16() for k, v in load_file(folder / "model.safetensors").items()}
    # transformers saves Kimi Linear's dense layers under other names than the published ones.
    if spec.get("file"):
        state = {re.sub(r"block_sparse_moe\.(gate|up|down)_proj", r"mlp.\1_proj", k): v for k, v in state.items()}
    save_file({k: v.contiguous() for k, v in state.items()}, folder / "model.safetensors", metadata={"format": "pt"})
    if not spec.get("saved"):
        (folder / "config.json").write_text(json.dumps(spec["config"] | {"torch_dtype": "bfloat16"}, indent=1))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": ENDS["eos_token_id"], "top_p": 0.95}))


# ----------------------------------------------------------------------------------------- features that are left out

def routed(change):
    """Replaces the choice of the routers: `change` gets a row's weights and indices and returns others."""
    def edit(model):
        for module in model.modules():
            if type(module).__name__.endswith(("TopKRouter", "TopkRouter")):
                module.forward = lambda x, forward=module.forward, of=module: change(of, *forward(x), x)
    return edit


def normalized(module, logits, weights, chosen, x):
    return logits, weights / weights.sum(-1, keepdim=True), chosen


def unnormalized(module, logits, weights, chosen, x):
    """Chooses by a softmax over all experts."""
    return logits, logits.softmax(-1).gather(-1, chosen), chosen


def by_sigmoid(module, logits, weights, chosen, x):
    scores = logits.sigmoid().gather(-1, chosen)
    return logits, scores / scores.sum(-1, keepdim=True), chosen


def silent(part):
    """Makes a part of all layers return zeros."""
    def edit(model):
        for name, module in model.named_modules():
            if name.endswith(part):
                module.forward = lambda x, forward=module.forward: torch.zeros_like(forward(x))
    return edit


def ungated(model):
    for name, module in model.named_modules():
        if name.endswith("shared_expert_gate"): module.forward = lambda x: torch.full(x.shape[:-1] + (1,), 1e4)


def scaled(c, **other):
    return {"rope_scaling": c["rope_scaling"] | other}


def of_yarn(c):
    if not c.get("rope_scaling"): return {}
    return {"scaling": {"rope_scaling": None}, "mscale": scaled(c, mscale=0.1), "beta_slow": scaled(c, beta_slow=0.05),
            "mscale_all_dim": scaled(c, mscale=0.0, mscale_all_dim=0.0)}


def of_mixtral(c):
    features = {"rope_theta": {"rope_theta": 1e6}, "experts' number": {"num_experts_per_tok": 1},
                "normalized": routed(unnormalized)}
    return features | ({"window": {"sliding_window": None}, "window, of one more": {"sliding_window": 10}}
                       if c["sliding_window"] else {})


def of_qwen2_moe(c):
    features = {"rope_theta": {"rope_theta": 1e4}, "experts' number": {"num_experts_per_tok": 1},
                "norm_topk_prob": {"norm_topk_prob": not c["norm_topk_prob"]},
                "shared expert": silent("shared_expert"), "shared expert's gate": ungated}
    if c.get("qkv_bias", True):
        features |= {"bias of " + one: zeroed(one + "_proj.bias") for one in "qkv"}
        features["use_sliding_window false"] = {"use_sliding_window": not c["use_sliding_window"]}
    if c["use_sliding_window"]: features |= {"window, of one more": {"sliding_window": c["sliding_window"] + 1},
                                             "max_window_layers": {"max_window_layers": 1}}
    return features


def of_qwen3_moe(c):
    return QK_NORMS | {"rope_theta": {"rope_theta": 1e4}, "experts' number": {"num_experts_per_tok": 1},
                       "norm_topk_prob": {"norm_topk_prob": not c["norm_topk_prob"]},
                       "window": {"use_sliding_window": False}, "window, of one more": {"sliding_window": 9}}


def of_deepseek_v2(c):
    features = {"rope_theta": {"rope_theta": 1e4}, "experts' number": {"num_experts_per_tok": 1},
                "normalized": routed(normalized), "routed_scaling_factor": {"routed_scaling_factor": 1.0},
                "shared experts": silent("shared_experts"), "softmax": routed(by_sigmoid),
                "norm of the latent": passed_by("kv_a_layernorm")}
    if c["n_group"] > 1: features["groups"] = {"topk_method": "greedy"}
    if c["q_lora_rank"]: features["norm of queries"] = passed_by("q_a_layernorm")
    return features | of_yarn(c)


def of_kimi_k2(c):
    return {"rope_theta": {"rope_theta": 1e4}, "experts' number": {"num_experts_per_tok": 1},
            "norm_topk_prob": {"norm_topk_prob": False}, "routed_scaling_factor": {"routed_scaling_factor": 1.0},
            "correction": zeroed_buffers("e_score_correction_bias"), "shared experts": silent("shared_experts")
            } | of_yarn(c)


def of_deepseek_v32(c):
    features = of_kimi_k2(c) | {"norm of queries": passed_by("q_a_layernorm"), "norm of the latent":
                                passed_by("kv_a_layernorm"), "indexer": {"index_topk": 40}}
    features["norm_topk_prob"] = {"norm_topk_prob": not c["norm_topk_prob"]}
    return features | ({"groups": {"topk_group": c["n_group"]}} if c["n_group"] > 1 else {})


of_glm_moe_dsa = of_deepseek_v32


def zeroed_buffers(part):
    def edit(model):
        for name, tensor in model.state_dict().items():
            if name.endswith(part): tensor.zero_()
    return edit


def of_minimax_m2(c):
    rope = c["rope_parameters"]
    return {"rope_theta": {"rope_parameters": rope | {"rope_theta": 5e6}},
            "partial_rotary_factor": {"rope_parameters": rope | {"partial_rotary_factor": 1.0}},
            "experts' number": {"num_experts_per_tok": 1}, "correction": zeroed_buffers("e_score_correction_bias"),
            "norm of q": passed_by("q_norm"), "norm of k": passed_by("k_norm"),
            "norms of each head": by_heads(c["head_dim"])}


def by_heads(dim):
    """Computes norms for each head by itself instead of over all heads' values."""
    def edit(model):
        for name, module in model.named_modules():
            if name.endswith(("q_norm", "k_norm")):
                module.forward = lambda x, of=module: of.weight * F.rms_norm(
                    x.unflatten(-1, (-1, dim)), (dim,), eps=of.variance_epsilon).flatten(-2)
    return edit


def of_granitemoeshared(c):
    return {"rope_theta": {"rope_theta": 1e4}, "experts' number": {"num_experts_per_tok": 1},
            "shared experts": silent("shared_mlp")} | {
        name: {name: 1.0} for name in ("embedding_multiplier", "attention_multiplier", "residual_multiplier",
                                       "logits_scaling")}


def of_hunyuan_v1_moe(c):
    return {"rope_theta": {"rope_theta": 1e4}, "experts' number": {"moe_topk": 1},
            "shared experts": silent("shared_mlp"), "norm of q": passed_by("query_layernorm"),
            "norm of k": passed_by("key_layernorm")}


def of_olmoe(c):
    return {"rope_theta": {"rope_theta": 1e4}, "experts' number": {"num_experts_per_tok": 1},
            "norm_topk_prob": {"norm_topk_prob": True}, "norm of q": passed_by("q_norm"),
            "norm of k": passed_by("k_norm"),
            "norms of each head": by_heads(c["hidden_size"] // c["num_attention_heads"])}


def taps_kept(model):
    """Leaves out the oldest tap of the convolution."""
    for name, tensor in model.named_parameters():
        if name.endswith("conv1d.weight"): tensor[..., 0].zero_()


def one_decay(model):
    """Gives all values of a head the mean of their decays."""
    for module in model.modules():
        if type(module).__name__.endswith("ForgetGate"):
            module.forward = lambda x, forward=module.forward: (
                lambda g: g.mean(-1, keepdim=True).expand_as(g))(forward(x))


def of_kimi_linear(c):
    features = {name: change for name, change in of_kimi_k2(c).items() if name not in ("rope_theta", "norm_topk_prob",
                                                                                      "experts' number")}
    features |= {"experts' number": {"num_experts_per_token": 1}, "oldest tap": taps_kept, "slopes": zeroed("A_log"),
                 "moe_renormalize": {"moe_renormalize": not c["moe_renormalize"]}, "bias of decays": zeroed("dt_bias"),
                 "decays of each value": one_decay, "gates": zeroed("g_b_proj.weight"),
                 "norm of the latent": passed_by("kv_a_layernorm"), "shared part of keys": unshared}
    if c["num_expert_group"] > 1: features["groups"] = {"topk_group": c["num_expert_group"]}
    if c["q_lora_rank"]: features["norm of queries"] = passed_by("q_a_layernorm")
    return features


def unshared(model):
    """Leaves out the part of latent attention's keys that all heads share (and that other models rotate)."""
    for name, tensor in model.named_parameters():
        if name.endswith("kv_a_proj_with_mqa.weight"): tensor[model.config.kv_lora_rank:].zero_()


def of_lfm2_moe(c):
    features = {"rope_theta": {"rope_theta": 1e4}, "experts' number": {"num_experts_per_tok": 1},
                "norm_topk_prob": {"norm_topk_prob": not c["norm_topk_prob"]},
                "norm of q": passed_by("q_layernorm"), "norm of k": passed_by("k_layernorm")}
    if c["use_expert_bias"]: features["correction"] = zeroed_buffers("expert_bias")
    if c["routed_scaling_factor"] != 1: features["routed_scaling_factor"] = {"routed_scaling_factor": 1.0}
    return features


def of_phimoe(c):
    features = {"rope_theta": {"rope_theta": 1e6}, "scaling": {"rope_scaling": None},
                "mscale": scaled(c, short_mscale=1, long_mscale=1), "bias of the head": zeroed("lm_head.bias"),
                "biases of norms": zeroed("norm.bias"), "mean of norms": mean_of_biased_kept} | {
        "bias of " + one: zeroed(one + "_proj.bias") for one in "qkvo"}
    if c["sliding_window"]: features["window, of one more"] = {"sliding_window": c["sliding_window"] + 1}
    return features | {"nearness": {"router_jitter_noise": 0.01 if c["router_jitter_noise"] != 0.01 else 0.3}}


def of_granitemoe_swa(c):
    bases = c["layer_rope_theta"]
    features = {name: change for name, change in of_granitemoeshared(c).items() if name != "rope_theta"}
    return features | {"sinks": zeroed("sinks"), "window, of one more": {"sliding_window": 8},
                       "layer_types": {"layer_types": None}, "bases": {"layer_rope_theta": None},
                       "still layer": {"layer_rope_theta": bases[1:2] + bases[1:]}}


def of_flex_olmo(c):
    """norm_topk_prob is not among the features, because the norm after the mixture removes its effect."""
    features = {name: change for name, change in of_olmoe(c).items() if name != "norm_topk_prob"}
    return features | {"norm behind attention": passed_by("post_attention_layernorm"),
                       "norm behind the mixture": passed_by("post_feedforward_layernorm")}


def of_dots1(c):
    features = of_kimi_k2(c) | {"norm of q": passed_by("q_norm"), "norm of k": passed_by("k_norm"),
                                "norm_topk_prob": {"norm_topk_prob": not c["norm_topk_prob"]}}
    if c["n_group"] > 1: features["groups"] = {"topk_group": c["n_group"]}
    if c["attention_bias"]: features |= {"bias of " + one: zeroed(one + "_proj.bias") for one in "qvo"}
    if c["sliding_window"]: features |= {"window": {"sliding_window": None}, "window, of one more":
                                         {"sliding_window": c["sliding_window"] + 1},
                                         "max_window_layers": {"max_window_layers": 0}}
    return features


def of_exaone_moe(c):
    return of_kimi_k2(c) | QK_NORMS | windows(c) | {
        "full layers without positions": all_layers_turn, "layer_types": {"layer_types": c["layer_types"][::-1]}}


def of_laguna(c):
    rope = c["rope_parameters"]
    of = lambda kind, **other: {"rope_parameters": rope | {kind: rope[kind] | other}}
    features = {"base of full layers": of(FULL, rope_theta=50.0),
                "base of sliding layers": of(SLIDING, rope_theta=50.0),
                "part of full layers": of(FULL, partial_rotary_factor=1.0), "experts' number":
                {"num_experts_per_tok": 1}, "routed scaling": {"moe_routed_scaling_factor": 1.0}, "correction":
                zeroed_buffers("e_score_correction_bias"), "shared expert": silent("shared_experts"), "gates": zeroed(
                    "g_proj.weight"), "window, of one more": {"sliding_window": c["sliding_window"] + 1}} | QK_NORMS
    if c["moe_router_logit_softcapping"]: features["cap of routers"] = {"moe_router_logit_softcapping": 0.0}
    if rope[FULL]["rope_type"] == "yarn": features |= {"scaling": of(FULL, factor=1.0, attention_factor=1.0),
                                                       "part of sliding layers": of(SLIDING, partial_rotary_factor=1.0)}
    if c["attention_bias"]: features |= {"bias of " + one: zeroed(one + "_proj.bias") for one in "qvo"}
    return features


def of_mellum(c):
    rope = c.get("rope_parameters") or {FULL: dict(rope_type="default", rope_theta=5e5),
                                        SLIDING: dict(rope_type="default", rope_theta=1e4)}
    of = lambda kind, **other: {"rope_parameters": rope | {kind: rope[kind] | other}}
    features = {"base of full layers": of(FULL, rope_theta=50.0), "base of sliding layers":
                of(SLIDING, rope_theta=50.0), "experts' number": {"num_experts_per_tok": 1}, "norm_topk_prob":
                {"norm_topk_prob": not c["norm_topk_prob"]}, "window, of one more":
                {"sliding_window": c["sliding_window"] + 1}} | QK_NORMS
    if rope[FULL]["rope_type"] == "yarn": features["scaling"] = of(FULL, factor=1.0)
    if c["attention_bias"]: features |= {"bias of " + one: zeroed(one + "_proj.bias") for one in "qvo"}
    return features


def of_cohere2_moe(c):
    features = {"rope_theta": {"rope_theta": 1e4}, "logit_scale": {"logit_scale": 1.0}, "experts' number":
                {"num_experts_per_tok": 1}, "parallel block": serial, "neighbours turn": turning_by_halves,
                "shared experts": silent("shared_experts"), "window, of one more": {"sliding_window": 8},
                "full layers without positions": all_layers_turn}
    other = {"average": "sum", "sum": "average"}[c["shared_expert_combination_strategy"]]
    features["how shared experts are added"] = {"shared_expert_combination_strategy": other}
    if c["expert_selection_fn"] == "softmax":
        return features | {"sigmoid": {"expert_selection_fn": "sigmoid"}, "intervals": {"sliding_window_pattern": 4},
                           "interval of dense layers": {"prefix_dense_sliding_window_pattern": 1}}
    return features | {"norm_topk_prob": {"norm_topk_prob": False}, "softmax": {"expert_selection_fn": "softmax"},
                       "mean of norms": mean_kept, "dense layers turn":
                       {"prefix_dense_sliding_window_pattern": 2}}


def of_llama4_text(c):
    rope = c["rope_parameters"]
    layers = range(c["num_hidden_layers"])
    features = {"rope_theta": {"rope_parameters": rope | {"rope_theta": 50.0}}, "experts' number":
                {"num_experts_per_tok": c["num_experts_per_tok"] + 1}, "shared expert": silent("shared_expert"),
                "layers that turn": {"no_rope_layers": [1] * len(layers)}, "neighbours turn": turning_by_halves,
                "weights of inputs": weights_of_outputs}
    if rope["rope_type"] == "llama3": features["scaling"] = {"rope_parameters": dict(
        rope_type="default", rope_theta=rope["rope_theta"])}
    if c["use_qk_norm"]: features["norms of heads"] = {"use_qk_norm": False}
    if c["attention_bias"]: features |= {"bias of " + one: zeroed(one + "_proj.bias") for one in "qvo"}
    if "attention_chunk_size" in c:
        chunk = c["attention_chunk_size"]
        features |= {"chunks": {"attention_chunk_size": 1000}, "chunks, of one more": {
            "attention_chunk_size": chunk + 1}, "windows": windows_not_chunks}
        if c["attn_temperature_tuning"]: features |= {"growth": {"attn_temperature_tuning": False},
                                                      "growth, counted from 1": {"floor_scale": c["floor_scale"] + 1}}
    return features


def windows_not_chunks(model):
    """Makes chunked layers see a window of as many positions."""
    model.config.sliding_window = model.config.attention_chunk_size
    of = transformers.masking_utils.create_sliding_window_causal_mask
    forward = model.model.forward

    def windowed(*arguments, **named):
        kept, modeling_llama4.create_chunked_causal_mask = modeling_llama4.create_chunked_causal_mask, of
        try: return forward(*arguments, **named)
        finally: modeling_llama4.create_chunked_causal_mask = kept
    model.model.forward = windowed


def weights_of_outputs(model):
    """Multiplies the experts' outputs by the weights instead of their inputs."""
    for module in model.modules():
        if type(module).__name__ != "Llama4TextMoe": continue

        def forward(x, of=module):
            rows = x.reshape(-1, of.hidden_dim)
            scores, logits = of.router(rows)
            out = of.experts(rows.repeat(of.num_experts, 1)).reshape(of.num_experts, -1, of.hidden_dim)
            return of.shared_expert(rows) + (out * scores.T[..., None]).sum(0), logits
        module.forward = forward


def of_solar_open(c):
    return of_kimi_k2(c)


def of_sarvam_moe(c):
    features = of_kimi_k2(c) | (QK_NORMS if c["use_qk_norm"] else {})
    if c.get("n_group", 1) > 1: features["groups"] = {"topk_group": c["n_group"]}
    if c.get("partial_rotary_factor"): features["partial_rotary_factor"] = {"partial_rotary_factor": 1.0}
    if c.get("use_qkv_bias"): features |= {"bias of " + one: zeroed(one + "_proj.bias") for one in "qv"}
    return features


def of_sarvam_mla(c):
    features = of_kimi_k2(c) | {"norm of the latent": passed_by("kv_a_layernorm")}
    if c.get("n_group", 1) > 1: features["groups"] = {"topk_group": c["n_group"]}
    if c.get("q_lora_rank"): features["norm of queries"] = passed_by("q_a_layernorm")
    return features | {"neighbours that turn": {"rope_interleave": not c.get("rope_interleave", True)}}


def of_glm4_moe(c):
    return of_kimi_k2(c) | QK_NORMS | {
        "norm_topk_prob": {"norm_topk_prob": True}, "groups": {"topk_group": 2}, "partial_rotary_factor":
        {"partial_rotary_factor": 1.0}} | {"bias of " + one: zeroed(one + "_proj.bias") for one in "qkv"}


def of_ernie4_5_moe(c):
    features = {"rope_theta": {"rope_theta": 5e5}, "experts' number": {"moe_k": 1},
                "correction": zeroed_buffers("e_score_correction_bias"), "normalized": routed(unnormalized),
                "softmax": routed(by_sigmoid), "neighbours that turn": turning_by_halves}
    if c["moe_num_shared_experts"]: features["shared experts"] = silent("shared_experts")
    if c["moe_norm_min"] > 1e-6: features["least sum"] = {"moe_norm_min": 1e-12}
    return features


def turning_by_halves(model):
    """Reorders rows of queries and keys as if pairs of values were half a head apart."""
    for name, tensor in model.named_parameters():
        if not name.endswith(("q_proj.weight", "k_proj.weight")): continue
        dim = model.model.layers[0].self_attn.head_dim
        heads = tensor.reshape(-1, dim // 2, 2, tensor.shape[-1])
        tensor.copy_(heads.transpose(1, 2).reshape(tensor.shape))


@torch.no_grad()
def overlooked(folder, spec, prompt, right):
    moved = {}
    for feature, change in globals()["of_" + spec["config"]["model_type"]](spec["config"]).items():
        model = load(folder, spec, change if isinstance(change, dict) else None)
        if not isinstance(change, dict): change(model)
        moved[feature] = round(float((run(model, prompt) - right).abs().max() / right.abs().max()), 4)
    return moved


# --------------------------------------------------------------------------------------------------------- references

def make_prompts(spec):
    rnd = random.Random(spec["seed"])
    return [[FIRST] + [rnd.randrange(FIRST, spec["config"]["vocab_size"]) for _ in range(length - 1)]
            for length in LENGTHS]


def make(root, name):
    spec, folder = MODELS[name], root / name
    save(folder, spec)
    info, tensors = compute(load(folder, spec), make_prompts(spec))
    head = {"family": name, "seed": spec["seed"], "transformers": transformers.__version__, "torch": torch.__version__,
            "n_greedy": GREEDY, "special_ids": {"bos": ENDS["bos_token_id"], "eos": ENDS["eos_token_id"]},
            "overlooked": overlooked(folder, spec, info["prompts"][-1], tensors["prompt.3.logits"])}
    save_file({k: v.contiguous() for k, v in tensors.items()}, folder / "reference.safetensors")
    (folder / "reference.json").write_text(json.dumps(head | info, separators=(",", ":")))
    for file in folder.iterdir(): file.chmod(0o644)


@torch.no_grad()
def seek(name):
    """Prints the first seed, from that of the table on, with which greedy text passes. Writes nothing."""
    spec = MODELS[name]
    for seed in range(spec["seed"], spec["seed"] + 100):
        again = spec | dict(seed=seed)
        model, sure = filled(again), True
        for prompt in (make_prompts(again)[i] for i in GREEDY_PROMPTS):
            out = model.generate(torch.tensor([prompt]), max_new_tokens=GREEDY, do_sample=False, eos_token_id=-1,
                                 pad_token_id=0, output_logits=True, return_dict_in_generate=True)
            least, ids = min(margins(torch.cat(out.logits))), out.sequences[0].tolist()[len(prompt):]
            sure = sure and least > LEAST_MARGIN and len(set(ids)) >= LEAST_IDS
            if not sure: break
        if sure: return print(f"{name}: seed {seed}", flush=True)
    print(f"{name}: no seed", flush=True)


@torch.no_grad()
def verify(root, name):
    spec, folder = MODELS[name], root / name
    stored, info = load_file(folder / "reference.safetensors"), json.loads((folder / "reference.json").read_text())
    model = load(folder, spec)
    again, tensors = compute(model, info["prompts"])
    apart = max(float((stored[k] - v).abs().max()) for k, v in tensors.items())
    assert stored.keys() == tensors.keys() and apart < 1e-5 and all(info[k] == again[k] for k in again), apart
    for greedy in info["greedy"]:
        prompt = info["prompts"][greedy["prompt"]]
        cached = model.generate(torch.tensor([prompt]), max_new_tokens=GREEDY, do_sample=False, eos_token_id=-1,
                                pad_token_id=0)[0].tolist()
        assert cached[len(prompt):] == greedy["tokens"], "generation with a cache differs"
        assert len(set(greedy["tokens"])) >= LEAST_IDS, greedy["tokens"]
    right = stored["prompt.3.logits"]
    noise = float((run(model.double(), info["prompts"][-1]).float() - right).abs().max() / right.abs().max())
    moved, least = info["overlooked"], min(g["min_margin"] for g in info["greedy"])
    print(f"{name}: verified within {apart:.1e}, float32 within {noise:.1e}; smallest margin {least}, "
          f"an overlooked feature moves {min(moved.values())} to {max(moved.values())}", flush=True)
    assert noise < spec.get("noise", 1e-5) and min(moved.values()) > LEAST_MOVE and least > LEAST_MARGIN, moved


# --------------------------------------------------------------------------------------------------------------- GGUF

def convert_here(tree, folder, out):
    """Runs the converter, as the program that it is; the caller starts a process for it. If a folder has no tokenizer,
    neither has the file."""
    sys.path[:0] = [tree, f"{tree}/gguf-py"]
    from conversion.base import ModelBase, TextModel

    config = json.loads(Path(folder, "config.json").read_text())
    kind = config["architectures"][0]
    # transformers names keys of Sarvam differently than the converter expects
    if config["model_type"] == "sarvam_moe": ModelBase.load_hparams = staticmethod(lambda *arguments: config)
    from conversion import get_model_class

    get_model_class(kind).set_vocab = lambda self: self._set_vocab_none()
    sys.argv = ["convert_hf_to_gguf.py", folder, "--outtype", "bf16", "--outfile", out]
    runpy.run_path(f"{tree}/convert_hf_to_gguf.py", run_name="__main__")


def convert(tree, data, name):
    out = data / "dense" / f"{name}.gguf"
    subprocess.run([sys.executable, __file__, "--here", tree, data / "models" / name, out], check=True)
    out.chmod(0o644)


def main(verb, root, *names):
    torch.set_num_threads(1)
    if verb == "convert":
        for name in names[1:] or [n for n, spec in MODELS.items() if spec.get("file")]:
            convert(root, Path(names[0]), name)
        return
    for name in names or MODELS:
        if verb == "seek":
            seek(name)
            continue
        if verb == "make": make(Path(root, "models"), name)
        verify(Path(root, "models"), name)


if __name__ == "__main__":
    if sys.argv[1] == "--here": convert_here(*sys.argv[2:])
    else: main(*sys.argv[1:])
