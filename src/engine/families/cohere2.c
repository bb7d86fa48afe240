/* Cohere 1 (Command R, Aya), Cohere 2 (Command R7B, Command A) and its mixtures (Command A+): config.json of
 * CohereForCausalLM, Cohere2ForCausalLM and Cohere2MoeForCausalLM, GGUF "command-r", "cohere2" and "cohere2moe".
 * Source: transformers 5.24, models cohere, cohere2 and cohere2_moe; for GGUF github.com/ggml-org/llama.cpp,
 * conversion/command_r.py, src/models/command-r.cpp, cohere2.cpp and cohere2moe.cpp, which don't support biases.
 * Attention and feed-forward of a layer read the same LayerNorm, which has no bias. Heads are rotated in pairs of
 * neighbouring values. In Cohere 2, three sliding layers are followed by a full one, whose heads aren't rotated. In
 * Command R+ each head has a LayerNorm of its own. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/families/config_keys.h"
#include "src/engine/families/mixture.h"

static const fr_model_spec defaults = {.trunk = {.vocab = 256000,
                                                 .hidden = 8192,
                                                 .layers = 40,
                                                 .context_limit = 8192,
                                                 .eps = 1e-5F,
                                                 .layer_norm = true,
                                                 .logit_scale = 0.0625F},
                                       .layer = {.norms = FR_NORM_SHARED,
                                                 .attention = {.heads = 64, .window = 4096},
                                                 .ffn = {.width = 22528, .activation = FR_SILU}},
                                       .kinds = {.every = 4}};

static fr_status put(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    (void)w;
    return s->layer[0].attention.o_bias ? fr_fail(FR_INPUT, "%s: GGUF has no name for biases", where) : FR_OK;
}

static const fr_config_part biases = {.put = put};
static const fr_config_row own[] = {
    FR_ONLY("hidden_act", "silu"),
    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
    FR_PART(biases),
    FR_REAL(trunk.logit_scale, "logit_scale", ".logit_scale", 1e-6, 1e6, .required = true),
    FR_SIZE(layer.attention.window, "sliding_window", ".attention.sliding_window", 1, 1 << 24, .required = true),
    FR_KINDS("sliding_window_pattern"),
    {0}};

static const fr_tensor_naming names = {.layer = {fr_attention_names, fr_ffn_names}};

const fr_family fr_family_cohere2 = {.architectures = (const char *const[]){"Cohere2ForCausalLM", "cohere2", NULL},
                                     .gguf = "cohere2",
                                     .tokenizer = "gpt2",
                                     .pre = "command-r",
                                     .counts_ids = true,
                                     .defaults = &defaults,
                                     .rows = {own, fr_size_keys, fr_layer_norm_head_keys},
                                     .rope = fr_rope_whole_heads,
                                     .shape = fr_layers_still_if_full,
                                     .names = &names};

static const fr_model_spec cohere1 = {
    .trunk = {.vocab = 256000,
              .hidden = 8192,
              .layers = 40,
              .context_limit = 8192,
              .eps = 1e-5F,
              .layer_norm = true,
              .logit_scale = 0.0625F,
              .rope = {{.theta = 5e5}}},
    .layer = {.norms = FR_NORM_SHARED, .attention = {.heads = 64}, .ffn = {.width = 22528, .activation = FR_SILU}}};

/* Finds out whether heads have norms. GGUF has no key for this, so the tensor is looked for. */
static fr_status read_head_norms(const fr_source *source, fr_model_spec *s) {
    s->layer.attention.qk_norm = fr_source_has(source, "blk.0.attn_q_norm.weight");
    if (source->gguf) return FR_OK;
    return fr_json_bool(source->text, "use_qk_norm", false, source->where, &s->layer.attention.qk_norm);
}

static fr_status put_head_norms(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    (void)w;
    if (!s->layer[0].attention.qk_norm) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: its norms of heads (use_qk_norm) are not written to GGUF", where);
}

static const fr_config_part head_norms = {.read = read_head_norms, .put = put_head_norms};
static const fr_config_row own1[] = {
    FR_ONLY("hidden_act", "silu"),
    FR_PART(head_norms),
    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
    FR_PART(biases),
    FR_REAL(trunk.logit_scale, "logit_scale", ".logit_scale", 1e-6, 1e6, .required = true),
    {0}};

const fr_family fr_family_cohere = {.architectures = (const char *const[]){"CohereForCausalLM", "command-r", NULL},
                                    .gguf = "command-r",
                                    .tokenizer = "gpt2",
                                    .pre = "command-r",
                                    .defaults = &cohere1,
                                    .rows = {own1, fr_size_keys, fr_layer_norm_head_keys},
                                    .rope = fr_rope_whole_heads,
                                    .names = &names};

/* --------------------------------------------------------------------------------------------------------- mixtures */

static const fr_mixture_words words = {
    .count = "num_experts", .width = "intermediate_size", .shared = "num_shared_experts"};

static const fr_model_spec sparse = {
    .trunk = {.vocab = 256000, .hidden = 8192, .layers = 40, .context_limit = 8192, .logit_scale = 0.0625F},
    .layer = {.norms = FR_NORM_SHARED,
              .attention = {.heads = 64, .head_dim = 128, .window = 4096},
              .ffn = {.width = 22528, .activation = FR_SILU},
              .experts = {.count = 8,
                          .top_k = 2,
                          .width = 22528,
                          .activation = FR_SILU,
                          .scoring = FR_SCORING_SOFTMAX,
                          .norm_top_k = true,
                          .routed_scaling = 1,
                          .halved = true}},
    .mixture = {.words = &words, .shared_by_count = true, .any_scoring = true},
    .kinds = {.every = 4}};

static const fr_model_spec sparse_gguf = {
    .trunk = {.logit_scale = 0.0625F},
    .layer = {.norms = FR_NORM_SHARED,
              .ffn = {.activation = FR_SILU},
              .experts = {.activation = FR_SILU, .scoring = FR_SCORING_SIGMOID, .routed_scaling = 1, .halved = true}},
    .mixture = {.shared_by_count = true, .any_scoring = true},
    .kinds = {.every = 4}};

/* Reads how a router computes scores, how the shared experts' output is joined, and how wide dense layers are. If there
 * is no key for the width, dense layers are as wide as the experts. A softmax is taken over the chosen experts only. */
static fr_status read_sparse(const fr_source *source, fr_model_spec *s) {
    fr_experts_spec *e = &s->layer.experts;
    const char *score, *join, *where = source->where;
    if (!source->gguf) {
        FR_TRY(fr_json_text(source->text, "expert_selection_fn", where, &score));
        FR_TRY(fr_json_text(source->text, "shared_expert_combination_strategy", where, &join));
        FR_TRY(fr_json_size(source->text, "prefix_dense_intermediate_size", 1, 1 << 22, (int64_t)s->layer.ffn.width,
                            where, &s->layer.ffn.width));
        bool sigmoid = score && strcmp(score, "sigmoid") == 0;
        e->halved = !join || strcmp(join, "average") == 0;
        e->scoring = sigmoid ? FR_SCORING_SIGMOID : FR_SCORING_SOFTMAX;
        if (score && !sigmoid && strcmp(score, "softmax") != 0)
            return fr_fail(FR_UNBUILT, "%s: expert_selection_fn \"%.40s\" is not built", where, score);
        if (!e->halved && strcmp(join, "sum") != 0)
            return fr_fail(FR_UNBUILT, "%s: shared_expert_combination_strategy \"%.40s\" is not built", where, join);
    }
    if (e->scoring == FR_SCORING_SOFTMAX) e->norm_top_k = true;
    return FR_OK;
}

/* Reads eps. If rms_norm_eps is given, the model's norms are RMSNorms; otherwise they are LayerNorms. */
static fr_status read_eps(const fr_source *source, fr_model_spec *s) {
    static const char rms[] = ".attention.layer_norm_rms_epsilon", mean[] = ".attention.layer_norm_epsilon";
    const json_t *told = json_object_get(source->text, "rms_norm_eps");
    double eps;
    s->trunk.layer_norm = source->gguf ? !fr_gguf_find(source->gguf, rms) : !told || json_is_null(told);
    FR_TRY(source->gguf ? fr_gguf_real(source->gguf, s->trunk.layer_norm ? mean : rms, 0, 1, NAN, &eps)
                        : fr_json_real(source->text, s->trunk.layer_norm ? "layer_norm_eps" : "rms_norm_eps", 0, 1,
                                       1e-5, source->where, &eps));
    s->trunk.eps = (float)eps;
    return FR_OK;
}

static fr_status put_eps(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    fr_gguf_put_f32(w, s->layer_norm ? ".attention.layer_norm_epsilon" : ".attention.layer_norm_rms_epsilon", s->eps);
    if (!fr_spec_experts(s)->halved && fr_spec_layer(s, s->layers - 1)->ffn.width)
        return fr_fail(FR_INPUT, "%s: GGUF has no key for shared experts whose output is added whole", where);
    for (size_t i = 0; i < s->layers; i++)
        if (!s->layer[i].attention.window && s->layer[i].attention.no_rope != (s->layer[i].experts.count > 0))
            return fr_fail(FR_INPUT, "%s: GGUF has no key for the rotary positions of layer %zu", where, i);
    return FR_OK;
}

/* Sets the kinds of layers if no key lists them. Full layers come at regular intervals. The leading dense layers have
 * one interval, and the other layers another. */
static fr_status mark_kinds(const fr_source *source, fr_model_spec *s, size_t prefix_every) {
    const json_t *types = json_object_get(source->text, "layer_types");
    if (source->gguf || (types && !json_is_null(types))) return fr_layers_mark_kinds(source, s);
    size_t leading;
    FR_TRY(fr_json_size(source->text, "first_k_dense_replace", 0, FR_LAYERS_MAX, 0, source->where, &leading));
    for (size_t i = 0; i < s->trunk.layers; i++) {
        bool full = i < leading ? (i + 1) % prefix_every == 0 : (i - leading + 1) % s->kinds.every == 0;
        s->trunk.layer[i].attention.window = full ? 0 : s->layer.attention.window;
    }
    return FR_OK;
}

/* Makes the layers. Heads of full layers aren't rotated. The only exception is that all leading dense layers are full:
 * their heads are rotated. */
static fr_status sparse_shape(const fr_source *source, fr_model_spec *s) {
    size_t every = 1;
    if (!source->gguf)
        FR_TRY(fr_json_size(source->text, "prefix_dense_sliding_window_pattern", 1, FR_LAYERS_MAX, 1, source->where,
                            &every));
    FR_TRY(fr_mixture_told_layers(source, s));
    FR_TRY(mark_kinds(source, s, every));
    for (size_t i = 0; i < s->trunk.layers; i++) {
        fr_layer_spec *layer = &s->trunk.layer[i];
        layer->attention.no_rope = !layer->attention.window && (layer->experts.count || every != 1);
    }
    return FR_OK;
}

static const fr_config_part eps_part = {.read = read_eps, .put = put_eps}, sparse_part = {.read = read_sparse};
static const fr_config_row sparse_last[] = {
    FR_PART(sparse_part), FR_PART(eps_part), FR_NONE(".nextn_predict_layers"), {0}};

const fr_family fr_family_cohere2_moe = {
    .architectures = (const char *const[]){"Cohere2MoeForCausalLM", "cohere2moe", NULL},
    .gguf = "cohere2moe",
    .tokenizer = "gpt2",
    .pre = "cohere2moe",
    .counts_ids = true,
    .defaults = &sparse,
    .gguf_defaults = &sparse_gguf,
    .rows = {own, fr_size_keys, fr_normless_head_keys, fr_mixture_rows, sparse_last},
    .rope = fr_rope_whole_heads,
    .shape = sparse_shape,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_mixture_names}}};
