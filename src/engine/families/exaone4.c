/* EXAONE 4: config.json of Exaone4ForCausalLM, GGUF "exaone4"; K-EXAONE, a mixture: ExaoneMoeForCausalLM and
 * ExaoneMoEForCausalLM, "exaone-moe". Source: transformers 5.24, models exaone4 and exaone_moe; for GGUF
 * github.com/ggml-org/llama.cpp, conversion/exaone.py and src/models/exaone4.cpp, which has windows only in models of
 * 64 layers. Norms come only after attention and feed-forward, in the mixture only before them. If some layers slide,
 * the heads of full layers aren't rotated. The MTP layer of the mixture isn't built. */
#include "base/error.h"
#include "src/engine/families/mixture.h"

static const fr_model_spec defaults = {
    .trunk =
        {.vocab = 102400, .hidden = 4096, .layers = 32, .context_limit = 2048, .eps = 1e-5F, .rope = {{.neox = true}}},
    .layer = {.norms = FR_NORMS_BEHIND,
              .attention = {.heads = 32, .kv_heads = 32, .window = 4096, .qk_norm = true},
              .ffn = {.width = 16384, .activation = FR_SILU}},
    .kinds = {.every = 4}};

/* Reads the window, which may be null in config.json, and the pattern. If the pattern is a text of letters, the kinds
 * of layers are in layer_types instead. */
static fr_status read_window(const fr_source *source, fr_model_spec *s) {
    static const char pattern[] = "sliding_window_pattern";
    const json_t *window = json_object_get(source->text, "sliding_window");
    bool lettered = json_is_string(json_object_get(source->text, pattern));
    if (json_is_null(window)) s->layer.attention.window = 0;
    if (source->gguf || lettered) return FR_OK;
    return fr_json_size(source->text, pattern, 0, FR_LAYERS_MAX, (int64_t)s->kinds.every, source->where,
                        &s->kinds.every);
}

static fr_status put_pattern(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    (void)where;
    fr_layers_put_kinds(s, defaults.kinds.every, w);
    return FR_OK;
}

static const fr_config_part windows = {.read = read_window, .put = put_pattern};
static const fr_config_row own[] = {
    FR_ONLY("hidden_act", "silu"),
    FR_SIZE(layer.attention.window, "sliding_window", ".attention.sliding_window", 0, 1 << 24, .sparse = true),
    FR_PART(windows),
    {0}};

const fr_family fr_family_exaone4 = {
    .architectures = (const char *const[]){"Exaone4ForCausalLM", "exaone4", NULL},
    .gguf = "exaone4",
    .tokenizer = "gpt2",
    .pre = "exaone4",
    .counts_ids = true,
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys},
    .rope = fr_rope_whole_heads,
    .shape = fr_layers_still_if_full,
    .put_rope_factors = fr_rope_llama3_factors,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_behind_norm_names, fr_ffn_names}}};

/* --------------------------------------------------------------------------------------------------------- mixture */

static const fr_mixture_words words = {.count = "num_experts", .shared = "num_shared_experts"};

static const fr_model_spec sparse = {
    .trunk =
        {.vocab = 102400, .hidden = 4096, .layers = 32, .context_limit = 2048, .eps = 1e-5F, .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 32, .kv_heads = 32, .window = 4096, .qk_norm = true},
              .ffn = {.width = 16384, .activation = FR_SILU},
              .experts = {.count = 64,
                          .top_k = 8,
                          .width = 1024,
                          .activation = FR_SILU,
                          .scoring = FR_SCORING_SIGMOID,
                          .score_bias = true,
                          .norm_top_k = true,
                          .routed_scaling = 2.5F}},
    .mixture = {.words = &words, .shared = 1, .shared_by_count = true, .leading_dense = 1},
    .kinds = {.every = 4}};

/* The defaults for keys that a GGUF file lacks are llama.cpp's. The other members here are the same in every file. */
static const fr_model_spec sparse_gguf = {.trunk = {.rope = {{.neox = true}}},
                                          .layer = {.attention = {.qk_norm = true},
                                                    .ffn = {.activation = FR_SILU},
                                                    .experts = {.activation = FR_SILU,
                                                                .scoring = FR_SCORING_SIGMOID,
                                                                .score_bias = true,
                                                                .routed_scaling = 1.0F}},
                                          .mixture = {.shared = 1},
                                          .kinds = {.every = 4}};

static fr_status sparse_shape(const fr_source *source, fr_model_spec *s) {
    FR_TRY(fr_mixture_told_layers(source, s));
    return fr_layers_mark_still(source, s);
}

static const fr_config_row no_mtp[] = {FR_NONE(".nextn_predict_layers"), {0}};

const fr_family fr_family_exaone_moe = {
    .architectures = (const char *const[]){"ExaoneMoeForCausalLM", "ExaoneMoEForCausalLM", "exaone-moe", NULL},
    .gguf = "exaone-moe",
    .tokenizer = "gpt2",
    .pre = "exaone-moe",
    .counts_ids = true,
    .defaults = &sparse,
    .gguf_defaults = &sparse_gguf,
    .rows = {own, fr_size_keys, fr_head_keys, fr_mixture_rows, no_mtp},
    .rope = fr_rope_whole_heads,
    .shape = sparse_shape,
    .put_rope_factors = fr_rope_llama3_factors,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, fr_mixture_names},
                                       .extras = (const char *const[]){"mtp.*", NULL}}};
