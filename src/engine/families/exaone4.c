/* EXAONE 4: config.json of Exaone4ForCausalLM, GGUF "exaone4". K-EXAONE, a mixture: config.json of ExaoneMoeForCausalLM
 * and ExaoneMoEForCausalLM, GGUF "exaone-moe". Source: transformers 5.24, models exaone4 and exaone_moe; for GGUF
 * github.com/ggml-org/llama.cpp, conversion/exaone.py and src/models/exaone4.cpp, which has windows only in models of
 * 64 layers. In EXAONE 4, norms come only after attention and feed-forward; in K-EXAONE, they come only before them. If
 * some layers slide, the heads of full layers aren't rotated. transformers and llama.cpp ignore the mixture's MTP
 * layer; the source for it is github.com/vllm-project/vllm, exaone_moe_mtp.py. */
#include "base/error.h"
#include "src/engine/families/config_keys.h"
#include "src/engine/families/mixture.h"
#include "src/engine/families/mtp_layer.h"

static const fr_model_spec defaults = {
    .trunk =
        {.vocab = 102400, .hidden = 4096, .layers = 32, .context_limit = 2048, .eps = 1e-5F, .rope = {{.neox = true}}},
    .layer = {.norms = FR_NORMS_BEHIND,
              .attention = {.heads = 32, .kv_heads = 32, .window = 4096, .qk_norm = true},
              .ffn = {.width = 16384, .activation = FR_SILU}},
    .kinds = {.every = 4}};

/* Reads the window, which may be null in config.json, and the pattern of sliding layers. If the pattern is a text of
 * letters, the kinds of layers are read from layer_types instead. */
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

/* The defaults for keys that a GGUF file lacks, which are llama.cpp's. Other members of this spec are the same in every
 * file. */
static const fr_model_spec sparse_gguf = {.trunk = {.rope = {{.neox = true}}},
                                          .layer = {.attention = {.qk_norm = true},
                                                    .ffn = {.activation = FR_SILU},
                                                    .experts = {.activation = FR_SILU,
                                                                .scoring = FR_SCORING_SIGMOID,
                                                                .score_bias = true,
                                                                .routed_scaling = 1.0F}},
                                          .mixture = {.shared = 1},
                                          .kinds = {.every = 4}};

/* Reads the number of MTP layers. If a folder has several MTP layers, they are ignored. */
static fr_status read_mtp(const fr_source *source, fr_model_spec *s) {
    size_t layers;
    if (source->gguf) return fr_config_gguf_mtp(source->gguf, &s->trunk.layers, &s->mtp_layers);
    FR_TRY(fr_json_size(source->text, "num_nextn_predict_layers", 0, 64, 0, source->where, &layers));
    s->mtp_layers = layers == 1;
    return FR_OK;
}

/* Refuses a list whose windows differ from those of the layers. K-EXAONE 2.0 has windows of several widths. */
static fr_status check_windows(const fr_source *source, const char *key, const fr_layer_spec *layers, size_t count) {
    const json_t *list = json_object_get(source->text, key), *window;
    size_t i;
    if (list && !json_is_null(list) && !json_is_array(list))
        return fr_fail(FR_INPUT, "%s: %s is no list", source->where, key);
    json_array_foreach (list, i, window)
        if (i >= count || json_integer_value(window) != (json_int_t)layers[i].attention.window)
            return fr_fail(FR_UNBUILT,
                           "%s: %s has another window for layer %zu than sliding_window, which is not built",
                           source->where, key, i);
    return FR_OK;
}

/* Makes the layers. The MTP layer has a dense feed-forward even if all other layers are mixtures. In all published
 * models it has full attention. */
static fr_status sparse_shape(const fr_source *source, fr_model_spec *s) {
    fr_layer_spec *mtp = &s->trunk.mtp;
    FR_TRY(fr_mixture_told_layers(source, s));
    FR_TRY(fr_layers_mark_still(source, s));
    fr_mixture_dense_mtp(s);
    FR_TRY(fr_layers_mark_mtp(source, s, false));
    mtp->attention.no_rope = s->layer.attention.window && !mtp->attention.window;
    FR_TRY(check_windows(source, "sliding_windows", s->trunk.layer, s->trunk.layers));
    return s->mtp_layers ? check_windows(source, "mtp_sliding_windows", mtp, 1) : FR_OK;
}

static const fr_config_part mtp = {.read = read_mtp, .put = fr_mtp_put};
static const fr_config_row mtp_rows[] = {FR_PART(mtp), FR_ABSENT("swiglu_limits"), {0}};

const fr_family fr_family_exaone_moe = {
    .architectures = (const char *const[]){"ExaoneMoeForCausalLM", "ExaoneMoEForCausalLM", "exaone-moe", NULL},
    .gguf = "exaone-moe",
    .tokenizer = "gpt2",
    .pre = "exaone-moe",
    .counts_ids = true,
    .defaults = &sparse,
    .gguf_defaults = &sparse_gguf,
    .rows = {own, fr_size_keys, fr_head_keys, fr_mixture_rows, mtp_rows},
    .rope = fr_rope_whole_heads,
    .shape = sparse_shape,
    .put_rope_factors = fr_rope_llama3_factors,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, fr_mixture_names},
                                       .mtp = fr_qwen_mtp_names,
                                       .mtp_prefixes = (const char *const[]){"mtp.", NULL},
                                       .extras = (const char *const[]){"mtp.*", NULL}}};
