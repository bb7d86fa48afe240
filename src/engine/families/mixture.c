/* Reads and writes mixtures of experts in configurations: see mixture.h.
 *
 * Names in GGUF: github.com/ggml-org/llama.cpp, gguf-py/gguf/tensor_mapping.py. */
#include "src/engine/families/mixture.h"

#include <string.h>

#include "base/error.h"
#include "src/engine/families/config_keys.h"

/* The names of a mixture's tensors, in two kinds of files. In published files, each matrix of each expert is a separate
 * tensor. In files that transformers has saved since version 5, one tensor has the matrices of all experts, with gate's
 * rows before up's. */
const fr_tensor_name fr_mixture_names[] = {
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, "mlp.gate_proj.weight", "ffn_gate.weight", .needs = FR_IF_DENSE),
    FR_MATRIX(fr_layer, ffn.gate_up[1], FFN, HIDDEN, "mlp.up_proj.weight", "ffn_up.weight", .needs = FR_IF_DENSE),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, "mlp.down_proj.weight", "ffn_down.weight", .needs = FR_IF_DENSE),
    FR_MATRIX(fr_layer, experts.router, EXPERTS, HIDDEN, "mlp.gate.weight", "ffn_gate_inp.weight",
              .needs = FR_IF_EXPERTS),
    FR_VECTOR(fr_layer, experts.router_bias, EXPERTS, "mlp.gate.e_score_correction_bias", "exp_probs_b.bias",
              .needs = FR_IF_CORRECTED),
    FR_VECTOR(fr_layer, experts.router_bias, EXPERTS, "mlp.e_score_correction_bias", "exp_probs_b.bias",
              .needs = FR_IF_CORRECTED),
    FR_NAMED(fr_layer, experts.gate, FR_SLOT_EXPERTS_PARTS, EXPERT_FFN, HIDDEN, "mlp.experts.gate_up_proj", NULL,
             .needs = FR_IF_EXPERTS),
    FR_NAMED(fr_layer, experts.gate, FR_SLOT_EXPERTS_PARTS, EXPERT_FFN, HIDDEN, NULL, "ffn_gate_up_exps.weight",
             .needs = FR_IF_EXPERTS),
    FR_EXPERTS(fr_layer, experts.gate, EXPERT_FFN, HIDDEN, "mlp.experts.*.gate_proj.weight", "ffn_gate_exps.weight",
               .needs = FR_IF_EXPERTS),
    FR_EXPERTS(fr_layer, experts.up, EXPERT_FFN, HIDDEN, "mlp.experts.*.up_proj.weight", "ffn_up_exps.weight",
               .needs = FR_IF_EXPERTS),
    FR_EXPERTS(fr_layer, experts.down, HIDDEN, EXPERT_FFN, "mlp.experts.down_proj", "ffn_down_exps.weight",
               .needs = FR_IF_EXPERTS),
    FR_EXPERTS(fr_layer, experts.down, HIDDEN, EXPERT_FFN, "mlp.experts.*.down_proj.weight", "ffn_down_exps.weight",
               .needs = FR_IF_EXPERTS),
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, "mlp.shared_experts.gate_proj.weight", "ffn_gate_shexp.weight",
              .needs = FR_IF_SHARED),
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, "mlp.shared_expert.gate_proj.weight", "ffn_gate_shexp.weight",
              .needs = FR_IF_SHARED),
    FR_MATRIX(fr_layer, ffn.gate_up[1], FFN, HIDDEN, "mlp.shared_experts.up_proj.weight", "ffn_up_shexp.weight",
              .needs = FR_IF_SHARED),
    FR_MATRIX(fr_layer, ffn.gate_up[1], FFN, HIDDEN, "mlp.shared_expert.up_proj.weight", "ffn_up_shexp.weight",
              .needs = FR_IF_SHARED),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, "mlp.shared_experts.down_proj.weight", "ffn_down_shexp.weight",
              .needs = FR_IF_SHARED),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, "mlp.shared_expert.down_proj.weight", "ffn_down_shexp.weight",
              .needs = FR_IF_SHARED),
    FR_NAMED(fr_layer, experts.shared_gate, FR_SLOT_ROW, ONE, HIDDEN, "mlp.shared_expert_gate.weight",
             "ffn_gate_inp_shexp.weight", .needs = FR_IF_SHARED | FR_IF_SHARED_GATED),
    {0},
};

#define SPARSE "block_sparse_moe."
const fr_tensor_name fr_block_sparse_names[] = {
    FR_MATRIX(fr_layer, experts.router, EXPERTS, HIDDEN, SPARSE "gate.weight", "ffn_gate_inp.weight",
              .needs = FR_IF_EXPERTS),
    FR_VECTOR(fr_layer, experts.router_bias, EXPERTS, SPARSE "e_score_correction_bias", "exp_probs_b.bias",
              .needs = FR_IF_CORRECTED),
    FR_EXPERTS(fr_layer, experts.gate, EXPERT_FFN, HIDDEN, SPARSE "experts.*.w1.weight", "ffn_gate_exps.weight",
               .needs = FR_IF_EXPERTS),
    FR_EXPERTS(fr_layer, experts.up, EXPERT_FFN, HIDDEN, SPARSE "experts.*.w3.weight", "ffn_up_exps.weight",
               .needs = FR_IF_EXPERTS),
    FR_EXPERTS(fr_layer, experts.down, HIDDEN, EXPERT_FFN, SPARSE "experts.*.w2.weight", "ffn_down_exps.weight",
               .needs = FR_IF_EXPERTS),
    {0},
};

/* ---------------------------------------------------------------------------------------------------------- reading */

enum { EXPERTS_MAX = 4096, WIDTH_MAX = 1 << 22, SHARED_MAX = 64 };

static bool has_key(const json_t *text, const char *key) {
    const json_t *value = json_object_get(text, key);
    return value && !json_is_null(value);
}

/* Gives the spelling of a key that the object has. The family's own spelling is tried first. Then come the usual
 * spellings; most configurations of transformers accept these too. */
static const char *key_there(const json_t *text, const char *own, const char *const *usual) {
    if (own && has_key(text, own)) return own;
    while (usual[1] && !has_key(text, usual[0])) usual++;
    return usual[0];
}

/* Gives the keys in config.json. A key is the family's own if the family has one, and otherwise a usual key. */
static fr_mixture_words words_of(const fr_model_spec *spec, const json_t *text) {
    static const char *const counts[] = {"num_experts", "num_local_experts", "n_routed_experts", NULL};
    static const char *const chosen[] = {"num_experts_per_tok", NULL};
    fr_mixture_words w = {0};
    if (spec->mixture.words) w = *spec->mixture.words;
    w.count = key_there(text, w.count, counts);
    w.top_k = key_there(text, w.top_k, chosen);
    if (!w.width) w.width = "moe_intermediate_size";
    if (!w.shared || !json_object_get(text, w.shared)) w.shared = "n_shared_experts";
    return w;
}

static fr_status read_router(fr_model_spec *spec, const json_t *text, const char *where) {
    fr_experts_spec *e = &spec->layer.experts;
    double scaling;
    FR_TRY(fr_config_only(text, "scoring_func", e->scoring == FR_SCORING_SIGMOID ? "sigmoid" : "softmax", where));
    if (!spec->mixture.normalizes) FR_TRY(fr_json_bool(text, "norm_topk_prob", e->norm_top_k, where, &e->norm_top_k));
    FR_TRY(fr_json_real(text, "routed_scaling_factor", 0, 1e6, (double)e->routed_scaling, where, &scaling));
    e->routed_scaling = (float)scaling;
    if (e->scoring != FR_SCORING_SIGMOID) return FR_OK;
    return fr_mixture_read_groups(text, where, e);
}

fr_status fr_mixture_read_groups(const json_t *text, const char *where, fr_experts_spec *e) {
    FR_TRY(fr_json_size(text, "n_group", 1, EXPERTS_MAX, e->groups ? (int64_t)e->groups : 1, where, &e->groups));
    return fr_json_size(text, "topk_group", 1, EXPERTS_MAX, e->top_groups ? (int64_t)e->top_groups : 1, where,
                        &e->top_groups);
}

/* Reads the width of all shared experts together. If there is no key for this width, it is computed from the number of
 * shared experts. If that number is null, there are none, as in the modeling file of Ling 2.0. If the number is
 * missing, the family's default is used. */
static fr_status read_shared(fr_model_spec *spec, const json_t *text, const char *where, const char *count) {
    static const char width[] = "shared_expert_intermediate_size";
    fr_mixture_keys *c = &spec->mixture;
    if (json_is_null(json_object_get(text, count))) c->shared = 0;
    FR_TRY(fr_json_size(text, count, 0, SHARED_MAX, (int64_t)c->shared, where, &c->shared));
    c->shared *= spec->layer.experts.width;
    if (c->shared_by_count) return FR_OK;
    return fr_json_size(text, width, 0, WIDTH_MAX, (int64_t)(c->shared_width ? c->shared_width : c->shared), where,
                        &c->shared);
}

static fr_status from_json(fr_model_spec *spec, const json_t *text, const char *where) {
    fr_experts_spec *e = &spec->layer.experts;
    fr_mixture_keys *c = &spec->mixture;
    const fr_mixture_words w = words_of(spec, text);
    FR_TRY(fr_json_size(text, w.count, 1, EXPERTS_MAX, (int64_t)e->count, where, &e->count));
    FR_TRY(fr_json_size(text, w.top_k, 1, EXPERTS_MAX, (int64_t)e->top_k, where, &e->top_k));
    if (c->as_wide)
        e->width = spec->layer.ffn.width;
    else
        FR_TRY(fr_json_size(text, w.width, 1, WIDTH_MAX, (int64_t)e->width, where, &e->width));
    FR_TRY(read_shared(spec, text, where, w.shared));
    FR_TRY(fr_json_size(text, "first_k_dense_replace", 0, FR_LAYERS_MAX, (int64_t)c->leading_dense, where,
                        &c->leading_dense));
    return read_router(spec, text, where);
}

/* Reads how the router computes scores: 1 stands for softmax, 2 for sigmoid. If the key is 0 or missing, scores are
 * computed in the family's own way. */
static fr_status read_scoring(const fr_gguf *gguf, bool any, fr_scoring *scoring) {
    int64_t number, built = *scoring == FR_SCORING_SIGMOID ? 2 : 1;
    FR_TRY(fr_gguf_int(gguf, ".expert_gating_func", 0, 255, 0, &number));
    if (number == 0 || number == built) return FR_OK;
    *scoring = number == 2 ? FR_SCORING_SIGMOID : FR_SCORING_SOFTMAX;
    if (any && number <= 2) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: key %s.expert_gating_func: %lld is not built (%lld is)", gguf->path,
                   gguf->architecture, (long long)number, (long long)built);
}

static fr_status read_gguf_router(fr_model_spec *spec, const fr_gguf *gguf) {
    fr_experts_spec *e = &spec->layer.experts;
    double scaling;
    FR_TRY(read_scoring(gguf, spec->mixture.any_scoring, &e->scoring));
    if (!spec->mixture.normalizes) FR_TRY(fr_gguf_bool(gguf, ".expert_weights_norm", e->norm_top_k, &e->norm_top_k));
    FR_TRY(fr_gguf_real(gguf, ".expert_weights_scale", 0, 1e6, (double)e->routed_scaling, &scaling));
    if (scaling > 0) e->routed_scaling = (float)scaling; /* files of models without a scaling have a 0 here */
    if (e->scoring != FR_SCORING_SIGMOID && !spec->mixture.any_scoring) return FR_OK;
    FR_TRY(fr_gguf_size(gguf, ".expert_group_count", 0, EXPERTS_MAX, 0, &e->groups));
    return fr_gguf_size(gguf, ".expert_group_used_count", 0, EXPERTS_MAX, 0, &e->top_groups);
}

/* Reads GGUF's keys. If an expert is as wide as the feed-forward (as_wide), files have no key for its width. */
static fr_status from_gguf(fr_model_spec *spec, const fr_gguf *gguf) {
    fr_experts_spec *e = &spec->layer.experts;
    fr_mixture_keys *c = &spec->mixture;
    int64_t width = spec->mixture.as_wide ? (int64_t)spec->layer.ffn.width : FR_GGUF_REQUIRED;
    FR_TRY(fr_gguf_size(gguf, ".expert_count", 1, EXPERTS_MAX, FR_GGUF_REQUIRED, &e->count));
    FR_TRY(fr_gguf_size(gguf, ".expert_used_count", 1, EXPERTS_MAX, FR_GGUF_REQUIRED, &e->top_k));
    FR_TRY(fr_gguf_size(gguf, ".expert_feed_forward_length", 1, WIDTH_MAX, width, &e->width));
    FR_TRY(fr_gguf_size(gguf, ".expert_shared_count", 0, SHARED_MAX, (int64_t)c->shared, &c->shared));
    c->shared *= e->width;
    if (!c->shared_by_count)
        FR_TRY(fr_gguf_size(gguf, ".expert_shared_feed_forward_length", 0, WIDTH_MAX, (int64_t)c->shared, &c->shared));
    FR_TRY(fr_gguf_size(gguf, ".leading_dense_block_count", 0, FR_LAYERS_MAX, (int64_t)c->leading_dense,
                        &c->leading_dense));
    return read_gguf_router(spec, gguf);
}

fr_status fr_mixture_read(const fr_source *source, fr_model_spec *spec) {
    return source->gguf ? from_gguf(spec, source->gguf) : from_json(spec, source->text, source->where);
}

/* ----------------------------------------------------------------------------------------------------------- layers */

fr_status fr_mixture_check(const fr_model_spec *spec, const char *where) {
    const fr_experts_spec *e = &spec->layer.experts;
    if (e->top_k > e->count) return fr_fail(FR_INPUT, "%s: %zu experts are chosen of %zu", where, e->top_k, e->count);
    if (spec->mixture.leading_dense > spec->trunk.layers)
        return fr_fail(FR_INPUT, "%s: %zu layers stand before the first mixture of experts, and there are %zu", where,
                       spec->mixture.leading_dense, spec->trunk.layers);
    if (e->groups < 2) return FR_OK;
    size_t each = e->count / e->groups;
    bool whole = e->count % e->groups == 0 && each >= 2, chosen = e->top_groups >= 1 && e->top_groups <= e->groups;
    if (whole && chosen && e->top_k <= e->top_groups * each) return FR_OK;
    return fr_fail(FR_INPUT, "%s: %zu of %zu experts can't be chosen in %zu of %zu groups", where, e->top_k, e->count,
                   e->top_groups, e->groups);
}

/* Makes the layers of a spec, and gives the MTP layer a mixture too. */
fr_status fr_mixture_layers(const fr_source *source, fr_model_spec *spec, const bool *dense) {
    const fr_experts_spec experts = spec->layer.experts;
    fr_trunk_spec *trunk = &spec->trunk;
    FR_TRY(fr_mixture_check(spec, source->where));
    spec->layer.experts = (fr_experts_spec){0};
    FR_TRY(fr_layers_alike(source, spec));
    for (size_t i = spec->mixture.leading_dense; i <= trunk->layers; i++) {
        fr_layer_spec *layer = i < trunk->layers ? &trunk->layer[i] : &trunk->mtp;
        if (i < trunk->layers && dense && dense[i]) continue;
        layer->experts = experts;
        layer->ffn.width = spec->mixture.shared;
    }
    return FR_OK;
}

void fr_mixture_dense_mtp(fr_model_spec *spec) {
    spec->trunk.mtp.experts = (fr_experts_spec){0};
    spec->trunk.mtp.ffn.width = spec->layer.ffn.width;
}

/* Finds the dense layers. Every decoder_sparse_step-th layer has a mixture, except the layers in mlp_only_layers. GGUF
 * has no keys for these two facts. */
static fr_status read_steps(const fr_source *source, bool *is_dense) {
    const json_t *dense = json_object_get(source->text, "mlp_only_layers"), *number;
    int64_t step;
    size_t i;
    FR_TRY(fr_json_int(source->text, "decoder_sparse_step", 1, FR_LAYERS_MAX, 1, source->where, &step));
    for (i = 0; i < FR_LAYERS_MAX; i++) is_dense[i] = (i + 1) % (size_t)step != 0;
    if (dense && !json_is_null(dense) && !json_is_array(dense))
        return fr_fail(FR_INPUT, "%s: mlp_only_layers is no list", source->where);
    json_array_foreach (dense, i, number) {
        json_int_t layer = json_is_integer(number) ? json_integer_value(number) : -1;
        if (layer < 0 || layer >= FR_LAYERS_MAX)
            return fr_fail(FR_INPUT, "%s: mlp_only_layers has something that is no layer's number", source->where);
        is_dense[layer] = true;
    }
    return FR_OK;
}

fr_status fr_mixture_behind_leading(const fr_source *source, fr_model_spec *spec) {
    return fr_mixture_layers(source, spec, NULL);
}

fr_status fr_mixture_told_layers(const fr_source *source, fr_model_spec *spec) {
    bool is_dense[FR_LAYERS_MAX], found;
    if (source->gguf) return fr_mixture_behind_leading(source, spec);
    FR_TRY(fr_source_words(source, "mlp_layer_types", "dense", "sparse", spec->trunk.layers, is_dense, &found));
    if (!found) return fr_mixture_behind_leading(source, spec);
    spec->mixture.leading_dense = 0;
    return fr_mixture_layers(source, spec, is_dense);
}

fr_status fr_mixture_sparse_layers(const fr_source *source, fr_model_spec *spec) {
    bool is_dense[FR_LAYERS_MAX];
    FR_TRY(read_steps(source, is_dense));
    return fr_mixture_layers(source, spec, is_dense);
}

/* ---------------------------------------------------------------------------------------------------------- writing */

void fr_mixture_put_counts(const fr_trunk_spec *s, fr_gguf_writer *w) {
    const fr_experts_spec *e = fr_spec_experts(s);
    fr_gguf_put_u32(w, ".expert_count", (uint32_t)e->count);
    fr_gguf_put_u32(w, ".expert_used_count", (uint32_t)e->top_k);
}

fr_status fr_mixture_first(const fr_trunk_spec *s, const char *where, size_t *first) {
    *first = 0;
    if (!fr_spec_experts(s)) return fr_fail(FR_INPUT, "%s: GGUF has no key for a model without experts", where);
    while (*first < s->layers && s->layer[*first].experts.count == 0) ++*first;
    return FR_OK;
}

/* Finds the first layer that has a mixture, and checks that all later layers have one too. */
static fr_status find_first(const fr_trunk_spec *s, const char *where, size_t *first) {
    FR_TRY(fr_mixture_first(s, where, first));
    for (size_t i = *first; i < s->layers; i++)
        if (s->layer[i].experts.count == 0)
            return fr_fail(FR_INPUT, "%s: GGUF has no key for layer %zu, which has no mixture behind one that has",
                           where, i);
    return FR_OK;
}

static void put_sizes(const fr_trunk_spec *s, fr_gguf_writer *w) {
    const fr_experts_spec *e = fr_spec_experts(s);
    fr_mixture_put_counts(s, w);
    fr_gguf_put_u32(w, ".expert_feed_forward_length", (uint32_t)e->width);
    if (e->groups > 1) fr_gguf_put_u32(w, ".expert_group_count", (uint32_t)e->groups);
    if (e->groups > 1) fr_gguf_put_u32(w, ".expert_group_used_count", (uint32_t)e->top_groups);
}

fr_status fr_mixture_put_keys(const fr_trunk_spec *s, const char *where, fr_gguf_writer *w) {
    size_t first;
    FR_TRY(find_first(s, where, &first));
    put_sizes(s, w);
    if (fr_spec_experts(s)->shared_gated)
        fr_gguf_put_u32(w, ".expert_shared_feed_forward_length", (uint32_t)fr_spec_layer(s, first)->ffn.width);
    if (first == 0) return FR_OK;
    return fr_fail(FR_INPUT, "%s: GGUF has no key for %zu leading layers without a mixture", where, first);
}

/* Writes all keys of a mixture, for families whose GGUF files describe their routers. */
static fr_status put_all(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    const fr_experts_spec *e = fr_spec_experts(s);
    size_t first;
    (void)mtp_layers;
    FR_TRY(find_first(s, where, &first));
    put_sizes(s, w);
    fr_gguf_put_u32(w, ".expert_shared_count", (uint32_t)(fr_spec_layer(s, first)->ffn.width / e->width));
    fr_gguf_put_u32(w, ".leading_dense_block_count", (uint32_t)first);
    fr_gguf_put_u32(w, ".expert_gating_func", e->scoring == FR_SCORING_SIGMOID ? 2 : 1);
    fr_gguf_put_f32(w, ".expert_weights_scale", e->routed_scaling);
    fr_gguf_put_bool(w, ".expert_weights_norm", e->norm_top_k);
    return FR_OK;
}

static const fr_config_part mixture_part = {.read = fr_mixture_read, .put = put_all};
const fr_config_row fr_mixture_rows[] = {FR_PART(mixture_part), {0}};
