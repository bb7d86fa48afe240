/* The names of tensors that decoders share: see family.h.
 *
 * The published names are those of transformers. The names in GGUF are those of github.com/ggml-org/llama.cpp,
 * gguf-py/gguf/tensor_mapping.py. */
#include "src/engine/families/family.h"

#define NORM(of, at, ...) FR_VECTOR(of, at, __VA_ARGS__, .norm = true)

const fr_tensor_name fr_attention_names[] = {
    NORM(fr_layer, input_norm, HIDDEN, "input_layernorm.weight", "attn_norm.weight", .needs = FR_IF_INPUT_NORM),
    FR_VECTOR(fr_layer, input_norm_bias, HIDDEN, "input_layernorm.bias", "attn_norm.bias", .needs = FR_IF_NORM_BIAS),
    FR_FUSED_QKV(QUERIES_GATED, .needs = FR_IF_ATTENTION),
    FR_MATRIX(fr_layer, attention.q, QUERIES_GATED, HIDDEN, "self_attn.q_proj.weight", "attn_q.weight",
              .needs = FR_IF_ATTENTION, .rotary = true),
    FR_MATRIX(fr_layer, attention.k, KEYS, HIDDEN, "self_attn.k_proj.weight", "attn_k.weight",
              .needs = FR_IF_ATTENTION | FR_IF_KEYS, .rotary = true),
    FR_MATRIX(fr_layer, attention.v, KEYS, HIDDEN, "self_attn.v_proj.weight", "attn_v.weight",
              .needs = FR_IF_ATTENTION | FR_IF_VALUES),
    FR_MATRIX(fr_layer, attention.o, HIDDEN, QUERIES, "self_attn.o_proj.weight", "attn_output.weight",
              .needs = FR_IF_ATTENTION),
    FR_FUSED_QKV_BIAS,
    FR_VECTOR(fr_layer, attention.q_bias, QUERIES, "self_attn.q_proj.bias", "attn_q.bias", .needs = FR_IF_QKV_BIAS,
              .rotary = true),
    FR_VECTOR(fr_layer, attention.k_bias, KEYS, "self_attn.k_proj.bias", "attn_k.bias", .needs = FR_IF_QKV_BIAS,
              .rotary = true),
    FR_VECTOR(fr_layer, attention.v_bias, KEYS, "self_attn.v_proj.bias", "attn_v.bias", .needs = FR_IF_QKV_BIAS),
    FR_VECTOR(fr_layer, attention.o_bias, HIDDEN, "self_attn.o_proj.bias", "attn_output.bias", .needs = FR_IF_O_BIAS),
    NORM(fr_layer, attention.q_norm, QUERY_NORM, "self_attn.q_norm.weight", "attn_q_norm.weight",
         .needs = FR_IF_NORMED_HEADS),
    NORM(fr_layer, attention.k_norm, KEY_NORM, "self_attn.k_norm.weight", "attn_k_norm.weight",
         .needs = FR_IF_NORMED_HEADS | FR_IF_KEYS),
    {0},
};

const fr_tensor_name fr_pre_norm_names[] = {
    NORM(fr_layer, pre_ffn_norm, HIDDEN, "post_attention_layernorm.weight", "ffn_norm.weight", .needs = FR_IF_FFN_NORM),
    FR_VECTOR(fr_layer, pre_ffn_norm_bias, HIDDEN, "post_attention_layernorm.bias", "ffn_norm.bias",
              .needs = FR_IF_FFN_NORM | FR_IF_NORM_BIAS),
    {0},
};

const fr_tensor_name fr_post_norm_names[] = {
    NORM(fr_layer, pre_ffn_norm, HIDDEN, "post_attention_layernorm.weight", "post_attention_norm.weight"),
    {0},
};

const fr_tensor_name fr_sandwich_norm_names[] = {
    NORM(fr_layer, post_attn_norm, HIDDEN, "post_attention_layernorm.weight", "post_attention_norm.weight"),
    NORM(fr_layer, pre_ffn_norm, HIDDEN, "pre_feedforward_layernorm.weight", "ffn_norm.weight"),
    NORM(fr_layer, post_ffn_norm, HIDDEN, "post_feedforward_layernorm.weight", "post_ffw_norm.weight"),
    {0},
};

const fr_tensor_name fr_behind_norm_names[] = {
    NORM(fr_layer, post_attn_norm, HIDDEN, "post_attention_layernorm.weight", "post_attention_norm.weight"),
    NORM(fr_layer, post_ffn_norm, HIDDEN, "post_feedforward_layernorm.weight", "post_ffw_norm.weight"),
    {0},
};

/* Names for files in which gate and up are one tensor, both in folders and in GGUF. The rows of gate come first in this
 * tensor. */
const fr_tensor_name fr_fused_ffn_names[] = {
    FR_NAMED(fr_layer, ffn.gate_up, FR_SLOT_PARTS, FFN, HIDDEN, "mlp.gate_up_proj.weight", "ffn_up.weight"),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, "mlp.down_proj.weight", "ffn_down.weight"),
    {0},
};

const fr_tensor_name fr_ffn_names[] = {
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, "mlp.gate_proj.weight", "ffn_gate.weight"),
    FR_MATRIX(fr_layer, ffn.gate_up[1], FFN, HIDDEN, "mlp.up_proj.weight", "ffn_up.weight"),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, "mlp.down_proj.weight", "ffn_down.weight"),
    FR_VECTOR(fr_layer, ffn.gate_bias, FFN, "mlp.gate_proj.bias", "ffn_gate.bias", .needs = FR_IF_FFN_BIASED),
    FR_VECTOR(fr_layer, ffn.up_bias, FFN, "mlp.up_proj.bias", "ffn_up.bias", .needs = FR_IF_FFN_BIASED),
    FR_VECTOR(fr_layer, ffn.down_bias, HIDDEN, "mlp.down_proj.bias", "ffn_down.bias", .needs = FR_IF_FFN_BIASED),
    {0},
};
