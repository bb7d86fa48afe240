/* ERNIE 4.5, dense: config.json of Ernie4_5ForCausalLM, GGUF "ernie4_5". Source: the published checkpoints and
 * transformers 5.17, model ernie4_5; for GGUF github.com/ggml-org/llama.cpp, conversion/ernie.py. Heads are rotated in
 * pairs of neighbouring values. One flag says whether all projections have biases or none has one. */
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {.trunk = {.vocab = 103424,
                                                 .hidden = 1024,
                                                 .layers = 18,
                                                 .context_limit = 131072,
                                                 .eps = 1e-5F,
                                                 .rope = {{.theta = 5e5}}},
                                       .layer = {.attention = {.heads = 16, .kv_heads = 2, .head_dim = 128},
                                                 .ffn = {.width = 3072, .activation = FR_SILU}}};

static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"),
                                    FR_FLAG(layer.attention.qkv_bias, "use_bias", NULL),
                                    FR_FLAG(layer.attention.o_bias, "use_bias", NULL),
                                    FR_FLAG(layer.ffn.biased, "use_bias", NULL),
                                    {0}};

const fr_family fr_family_ernie45 = {
    .architectures = (const char *const[]){"Ernie4_5ForCausalLM", "Ernie4_5_ForCausalLM", "ernie4_5", NULL},
    .gguf = "ernie4_5",
    .tokenizer = "llama",
    .finds_biases = true,
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys},
    .rope = fr_rope_whole_heads,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, fr_ffn_names}}};
