/* Seed-OSS: config.json of SeedOssForCausalLM, GGUF "seed_oss". Source: the published checkpoint and transformers 5.17,
 * model seed_oss; for GGUF github.com/ggml-org/llama.cpp, conversion/olmo.py and src/models/seed-oss.cpp. One key says
 * whether the projections of queries, keys and values have biases. Another key says it for the output projection. */
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {
    .trunk = {.vocab = 155136,
              .hidden = 4096,
              .layers = 64,
              .context_limit = 524288,
              .eps = 1e-6F,
              .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 80, .kv_heads = 8, .head_dim = 128, .qkv_bias = true},
              .ffn = {.width = 27648, .activation = FR_SILU}}};

static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"),
                                    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                    FR_FLAG(layer.attention.o_bias, "attention_out_bias", NULL),
                                    FR_FLAG(layer.ffn.biased, "mlp_bias", NULL),
                                    {0}};

const fr_family fr_family_seed_oss = {
    .architectures = (const char *const[]){"SeedOssForCausalLM", "seed_oss", NULL},
    .gguf = "seed_oss",
    .tokenizer = "gpt2",
    .pre = "seed-coder",
    .finds_biases = true,
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys},
    .rope = fr_rope_whole_heads,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_post_norm_names, fr_ffn_names}}};
