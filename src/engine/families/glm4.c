/* GLM-4, dense: config.json of Glm4ForCausalLM, whose GGUF "glm4" is read by glm.c. Its predecessor: config.json of
 * GlmForCausalLM, GGUF "chatglm". Source: the published checkpoints and transformers 5.17, models glm4 and glm; for
 * GGUF github.com/ggml-org/llama.cpp, conversion/glm.py and chatglm.py. Half of a head is rotated, in pairs of
 * neighbouring values. Gate and up are one tensor. Glm4ForCausalLM has norms before and after attention and
 * feed-forward. */
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {
    .trunk = {.vocab = 151552,
              .hidden = 4096,
              .layers = 40,
              .context_limit = 131072,
              .eps = 1.5625e-7F,
              .rope = {{.partial = 0.5}}},
    .layer = {.attention = {.heads = 32, .kv_heads = 2, .head_dim = 128, .qkv_bias = true},
              .ffn = {.width = 13696, .activation = FR_SILU}}};

/* In GGUF there is no key for the width of a head: all heads together are as wide as the hidden row. */
static const fr_model_spec gguf_defaults = {.trunk = {.rope = {{.partial = 0.5}}},
                                            .layer = {.ffn = {.activation = FR_SILU}}};

static const fr_config_row own[] = {
    FR_ONLY("hidden_act", "silu"), FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL), {0}};

const fr_family fr_family_glm4 = {
    .architectures = (const char *const[]){"Glm4ForCausalLM", NULL},
    .gguf = "glm4",
    .tokenizer = "gpt2",
    .pre = "glm4",
    .finds_biases = true,
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys},
    .rope = fr_rope_one_form,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_glm_norm_names, fr_fused_ffn_names}}};

/* For the eps and the rotary base, the converter writes constants instead of the model's numbers
 * (conversion/chatglm.py), so GGUF loses both numbers. */
const fr_family fr_family_chatglm = {
    .architectures = (const char *const[]){"GlmForCausalLM", "chatglm", NULL},
    .gguf = "chatglm",
    .tokenizer = "gpt2",
    .pre = "chatglm-bpe",
    .finds_biases = true,
    .defaults = &defaults,
    .gguf_defaults = &gguf_defaults,
    .rows = {own, fr_size_keys, fr_head_keys},
    .rope = fr_rope_one_form,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, fr_fused_ffn_names}}};
