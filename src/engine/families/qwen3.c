/* Qwen3, dense: config.json of Qwen3ForCausalLM, GGUF "qwen3". Source: the published checkpoints and transformers 5.17,
 * model qwen3; for GGUF github.com/ggml-org/llama.cpp, conversion/qwen.py. Heads have norms. A key says whether
 * projections have biases. */
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {
    .trunk =
        {.vocab = 151936, .hidden = 4096, .layers = 32, .context_limit = 32768, .eps = 1e-6F, .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 32, .kv_heads = 32, .head_dim = 128, .qk_norm = true},
              .ffn = {.width = 22016, .activation = FR_SILU}}};

static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"),
                                    FR_PART(fr_window_part),
                                    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
                                    {0}};

const fr_family fr_family_qwen3 = {
    .architectures = (const char *const[]){"Qwen3ForCausalLM", "Qwen3Model", "qwen3", NULL},
    .gguf = "qwen3",
    .tokenizer = "gpt2",
    .pre = "qwen2",
    .finds_biases = true,
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys},
    .rope = fr_rope_whole_heads,
    .shape = fr_layers_by_kind,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, fr_ffn_names}}};
