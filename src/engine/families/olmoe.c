/* OLMoE: config.json of OlmoeForCausalLM, GGUF "olmoe". FlexOlmo: config.json of FlexOlmoForCausalLM, folders only.
 * Source: the published checkpoints and transformers 5.24, models olmoe and flex_olmo; for GGUF
 * github.com/ggml-org/llama.cpp, conversion/olmo.py. GGUF has no key for normalizing router weights, so a model with
 * normalized weights is not written. One norm covers the queries of all heads, and another norm the keys. Every layer
 * is a mixture. */
#include "base/error.h"
#include "src/engine/families/mixture.h"

static const fr_model_spec defaults = {
    .trunk =
        {.vocab = 50304, .hidden = 2048, .layers = 16, .context_limit = 4096, .eps = 1e-5F, .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 16, .qk_norm = true, .qk_norm_wide = true},
              .ffn = {.width = 2048, .activation = FR_SILU},
              .experts = {.count = 64,
                          .top_k = 8,
                          .activation = FR_SILU,
                          .scoring = FR_SCORING_SOFTMAX,
                          .routed_scaling = 1.0F}},
    .mixture = {.as_wide = true}};

static fr_status put_mixture(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    if (fr_spec_experts(s)->norm_top_k)
        return fr_fail(FR_INPUT, "%s: GGUF has no key for a mixture whose weights are normalized", where);
    fr_mixture_put_counts(s, w);
    return FR_OK;
}

static const fr_config_part mixture = {.read = fr_mixture_read, .put = put_mixture};
static const fr_config_row own[] = {
    FR_ONLY("hidden_act", "silu"), FR_WITHOUT("attention_bias"), FR_ABSENT("clip_qkv"), {0}};
static const fr_config_row mixtures[] = {FR_PART(mixture), {0}};

const fr_family fr_family_olmoe = {
    .architectures = (const char *const[]){"OlmoeForCausalLM", "olmoe", NULL},
    .gguf = "olmoe",
    .tokenizer = "gpt2",
    .pre = "olmo",
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys, mixtures},
    .rope = fr_rope_whole_heads,
    .shape = fr_mixture_behind_leading,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, fr_mixture_names}}};

/* FlexOlmo's norms come only after attention and after the mixture. */
static const fr_model_spec flex = {.trunk = {.vocab = 100352,
                                             .hidden = 4096,
                                             .layers = 32,
                                             .context_limit = 4096,
                                             .eps = 1e-6F,
                                             .rope = {{.neox = true, .theta = 5e5}}},
                                   .layer = {.norms = FR_NORMS_BEHIND,
                                             .attention = {.heads = 32, .qk_norm = true, .qk_norm_wide = true},
                                             .ffn = {.width = 11008, .activation = FR_SILU},
                                             .experts = {.count = 7,
                                                         .top_k = 5,
                                                         .activation = FR_SILU,
                                                         .scoring = FR_SCORING_SOFTMAX,
                                                         .routed_scaling = 1.0F}},
                                   .mixture = {.as_wide = true}};

static const fr_config_row flex_own[] = {FR_ONLY("hidden_act", "silu"),
                                         FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                         FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
                                         {0}};

const fr_family fr_family_flex_olmo = {
    .architectures = (const char *const[]){"FlexOlmoForCausalLM", NULL},
    .defaults = &flex,
    .rows = {flex_own, fr_size_keys, fr_head_keys, mixtures},
    .rope = fr_rope_whole_heads,
    .shape = fr_mixture_behind_leading,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_behind_norm_names, fr_mixture_names}}};
