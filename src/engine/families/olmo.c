/* OLMo 1 and 1.7: config.json of OlmoForCausalLM, GGUF "olmo". Source: transformers 5.24, model olmo; for GGUF
 * github.com/ggml-org/llama.cpp, conversion/olmo.py. Norms are LayerNorms without weights. Queries, keys and values may
 * be clamped. */
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {
    .trunk = {.vocab = 50304,
              .hidden = 4096,
              .layers = 32,
              .context_limit = 2048,
              .eps = 1e-5F,
              .layer_norm = true,
              .plain_norms = true,
              .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 32}, .ffn = {.width = 11008, .activation = FR_SILU}}};

static const fr_config_row own[] = {
    FR_ONLY("hidden_act", "silu"),
    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
    FR_REAL(layer.attention.clamp, "clip_qkv", ".attention.clamp_kqv", 0, 1e6, .null_is_none = true),
    {0}};

/* Folders have no key for eps, so eps is always the default there. */
static const fr_config_row heads[] = {
    FR_REAL(trunk.rope[0].theta, NULL, ".rope.freq_base", 1.001, 1e12),
    FR_REAL(trunk.eps, NULL, ".attention.layer_norm_epsilon", 0, 1),
    FR_SIZE(layer.attention.head_dim, "head_dim", ".attention.key_length", 2, 4096, .per_head = true),
    FR_SAME(layer.attention.head_dim, ".attention.value_length"),
    FR_SIZE(trunk.rope[0].dims, NULL, ".rope.dimension_count", 2, 4096,
            .like = offsetof(fr_model_spec, layer.attention.head_dim)),
    {0}};

static const fr_tensor_name model_names[] = {
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "lm_head.weight", "output.weight", .top = true),
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "embed_tokens.weight", "token_embd.weight"),
    FR_TABLE(fr_trunk, embedding, VOCAB, HIDDEN, "embed_tokens.weight", "token_embd.weight"),
    {0}};

const fr_family fr_family_olmo = {
    .architectures = (const char *const[]){"OlmoForCausalLM", "OLMoForCausalLM", "olmo", NULL},
    .gguf = "olmo",
    .tokenizer = "gpt2",
    .pre = "olmo",
    .finds_biases = true,
    .defaults = &defaults,
    .rows = {own, fr_size_keys, heads},
    .rope = fr_rope_whole_heads,
    .names = &(const fr_tensor_naming){.model = model_names,
                                       .layer = {fr_attention_names, fr_pre_norm_names, fr_ffn_names},
                                       .rotary_rows = FR_ROWS_TO_PAIRS}};
