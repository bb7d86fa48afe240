/* Helium 1 (2B): config.json of HeliumForCausalLM; llama.cpp has no GGUF for it. Source: transformers 5.24, model
 * helium. Its layers are Llama's with two differences: heads are rotated in pairs of neighbouring values, and the
 * output projection never has a bias. */
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {
    .trunk =
        {.vocab = 48000, .hidden = 2560, .layers = 24, .context_limit = 4096, .eps = 1e-8F, .rope = {{.theta = 1e5}}},
    .layer = {.attention = {.heads = 20, .kv_heads = 20, .head_dim = 128},
              .ffn = {.width = 7040, .activation = FR_SILU}}};

static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"),
                                    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                    FR_FLAG(layer.ffn.biased, "mlp_bias", NULL),
                                    {0}};

const fr_family fr_family_helium = {
    .architectures = (const char *const[]){"HeliumForCausalLM", NULL},
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys},
    .rope = fr_rope_whole_heads,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, fr_ffn_names}}};
