/* Qwen2, Qwen2.5: config.json of Qwen2ForCausalLM, GGUF "qwen2". Source: transformers 5.17, model qwen2; for GGUF
 * github.com/ggml-org/llama.cpp, conversion/qwen.py. The projections of queries, keys and values have biases; the
 * output projection has none. */
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {
    .trunk =
        {.vocab = 151936, .hidden = 4096, .layers = 32, .context_limit = 32768, .eps = 1e-6F, .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 32, .qkv_bias = true}, .ffn = {.width = 22016, .activation = FR_SILU}}};

static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"), FR_PART(fr_window_part), {0}};

const fr_family fr_family_qwen2 = {
    .architectures = (const char *const[]){"Qwen2ForCausalLM", "Qwen2Model", "qwen2", NULL},
    .gguf = "qwen2",
    .tokenizer = "gpt2",
    .pre = "qwen2",
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys},
    .rope = fr_rope_whole_heads,
    .shape = fr_layers_by_kind,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, fr_ffn_names}}};
