/* HyperCLOVA X SEED: config.json of HyperCLOVAXForCausalLM; llama.cpp has no GGUF for it. Source: transformers 5.24,
 * model hyperclovax. It has Granite's four multipliers, but multiplies logits by their multiplier instead of dividing.
 * Norms come before attention and feed-forward. If use_post_norm is not false, norms also come after them. */
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {
    .trunk = {.vocab = 32000,
              .hidden = 4096,
              .layers = 32,
              .context_limit = 2048,
              .eps = 1e-6F,
              .post_norms = true,
              .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 32}, .ffn = {.width = 11008, .activation = FR_SILU}}};

static const fr_config_row own[] = {
    FR_ONLY("hidden_act", "silu"),
    FR_FLAG(trunk.post_norms, "use_post_norm", NULL),
    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
    FR_FLAG(layer.ffn.biased, "mlp_bias", NULL),
    FR_REAL(layer.attention.scale, "attention_multiplier", NULL, 0, 1e6, .null_is_none = true),
    FR_REAL(trunk.embedding_scale, "embedding_multiplier", NULL, 0, 1e6),
    FR_REAL(trunk.residual_scale, "residual_multiplier", NULL, 0, 1e6),
    FR_REAL(trunk.logit_scale, "logits_scaling", NULL, 0, 1e6),
    {0}};

#define POST .also = FR_ALSO_POST_NORMS
static const fr_tensor_name norm_names[] = {
    FR_VECTOR(fr_layer, post_attn_norm, HIDDEN, "post_norm1.weight", NULL, .norm = true, POST),
    FR_VECTOR(fr_layer, pre_ffn_norm, HIDDEN, "post_attention_layernorm.weight", NULL, .norm = true),
    FR_VECTOR(fr_layer, post_ffn_norm, HIDDEN, "post_norm2.weight", NULL, .norm = true, POST),
    {0},
};

const fr_family fr_family_hyperclovax = {
    .architectures = (const char *const[]){"HyperCLOVAXForCausalLM", NULL},
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys},
    .rope = fr_rope_whole_heads,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, norm_names, fr_ffn_names}}};
