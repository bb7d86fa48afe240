/* Mixtral: config.json of MixtralForCausalLM, GGUF "llama" with experts. Source: the published checkpoints and
 * transformers 5.17, model mixtral; for GGUF github.com/ggml-org/llama.cpp, conversion/llama.py, which has no key for a
 * window. Every layer is a mixture. If there is a window, every layer slides. */
#include "base/error.h"
#include "src/engine/families/mixture.h"

static const fr_model_spec defaults = {.trunk = {.vocab = 32000,
                                                 .hidden = 4096,
                                                 .layers = 32,
                                                 .context_limit = 131072,
                                                 .eps = 1e-5F,
                                                 .rope = {{.neox = true, .theta = 1e6}}},
                                       .layer = {.attention = {.heads = 32, .kv_heads = 8},
                                                 .ffn = {.width = 14336, .activation = FR_SILU},
                                                 .experts = {.count = 8,
                                                             .top_k = 2,
                                                             .activation = FR_SILU,
                                                             .scoring = FR_SCORING_SOFTMAX,
                                                             .norm_top_k = true,
                                                             .routed_scaling = 1.0F}},
                                       .mixture = {.as_wide = true, .normalizes = true}};

static fr_status put_mixture(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    if (fr_spec_window(s)) return fr_fail(FR_INPUT, "%s: GGUF has no key for its window", where);
    fr_mixture_put_counts(s, w);
    return FR_OK;
}

static const fr_config_part mixture = {.read = fr_mixture_read, .put = put_mixture};
static const fr_config_row own[] = {
    FR_ONLY("hidden_act", "silu"), FR_SIZE(layer.attention.window, "sliding_window", NULL, 1, 1 << 24), {0}};
static const fr_config_row mixtures[] = {FR_PART(mixture), {0}};

const fr_family fr_family_mixtral = {.architectures = (const char *const[]){"MixtralForCausalLM", "llama", NULL},
                                     .gguf = "llama",
                                     .gguf_with = ".expert_count",
                                     .tokenizer = "llama",
                                     .pre = "default",
                                     .counts_ids = true,
                                     .defaults = &defaults,
                                     .rows = {own, fr_size_keys, fr_head_keys, mixtures},
                                     .rope = fr_rope_whole_heads,
                                     .shape = fr_mixture_behind_leading,
                                     .names =
                                         &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names,
                                                                             fr_block_sparse_names, fr_mixture_names},
                                                                   .rotary_rows = FR_ROWS_TO_PAIRS}};
