/* Binds a text encoder's tensors by the names of its kind.
 *
 * In: a spec that was read, and a checkpoint. Out: an fr_encoder whose weights are not loaded yet. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kernels/alibi.h"
#include "kernels/rope_table.h"
#include "src/engine/encoder/encoder_kinds.h"

/* Binds the tensors of one layer, or the tensors outside the layers. prefix: the beginning of the tensors' names. */
typedef struct binder {
    fr_weights *weights;
    const fr_encoder_spec *spec;
    const fr_encoder_names *names;
    char prefix[160];
} binder;

static bool has(const binder *b, const char *name, const char *end) {
    char full[256];
    snprintf(full, sizeof full, "%s%s", name, end);
    return fr_weights_has(b->weights, b->prefix, full);
}

static fr_status bind_vector(const binder *b, const char *name, const char *end, size_t n, fr_values values,
                             const float **vector) {
    char full[256];
    snprintf(full, sizeof full, "%s%s", name, end);
    return fr_bind_values(b->weights, b->prefix, full, n, values, vector);
}

/* Binds a norm. Old files of BERT call its weight gamma and its bias beta. */
static fr_status bind_norm(const binder *b, const char *name, size_t n, fr_encoder_norm *norm) {
    bool old = !has(b, name, ".weight") && has(b, name, ".gamma");
    FR_TRY(bind_vector(b, name, old ? ".gamma" : ".weight", n, b->spec->norm_values, &norm->weight));
    if (!b->spec->norm_bias) return FR_OK;
    return bind_vector(b, name, old ? ".beta" : ".bias", n, FR_AS_THEY_ARE, &norm->bias);
}

static fr_status bind_matrix(const binder *b, const char *name, size_t features, size_t cols, fr_access access,
                             fr_matrix *matrix) {
    char full[256];
    snprintf(full, sizeof full, "%s.weight", name);
    return fr_bind_matrix(b->weights, b->prefix, full, features, cols, access, matrix);
}

static fr_status bind_product(const binder *b, const char *name, size_t features, size_t cols, bool biased,
                              fr_matrix *product, const float **bias) {
    FR_TRY(bind_matrix(b, name, features, cols, FR_STREAMED, product));
    return biased ? bind_vector(b, name, ".bias", features, FR_AS_THEY_ARE, bias) : FR_OK;
}

static fr_status bind_qkv(const binder *b, fr_encoder_layer *l) {
    const fr_encoder_spec *s = b->spec;
    const char *const names[] = {b->names->q, b->names->k, b->names->v};
    size_t q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
    const size_t features[] = {q, kv, kv};
    bool fused = b->names->qkv && (!b->names->q || has(b, b->names->qkv, ".weight"));
    l->qkv_count = fused ? 1 : 3;
    if (fused) return bind_product(b, b->names->qkv, q + 2 * kv, s->hidden, s->qkv_bias, &l->qkv[0], &l->qkv_bias[0]);
    for (size_t i = 0; i < 3; i++)
        FR_TRY(bind_product(b, names[i], features[i], s->hidden, s->qkv_bias, &l->qkv[i], &l->qkv_bias[i]));
    return FR_OK;
}

static fr_status bind_feed_forward(const binder *b, fr_encoder_layer *l) {
    const fr_encoder_spec *s = b->spec;
    const fr_encoder_names *n = b->names;
    if (s->gated && n->gate_up && (!n->gate || !has(b, n->gate, ".weight"))) {
        fr_matrix both[2];
        char full[256];
        snprintf(full, sizeof full, "%s.weight", n->gate_up);
        FR_TRY(fr_bind_parts(b->weights, b->prefix, full, 2, s->ffn, s->hidden, both));
        l->gate = both[n->up_first];
        l->up = both[!n->up_first];
    } else {
        if (s->gated) FR_TRY(bind_matrix(b, n->gate, s->ffn, s->hidden, FR_STREAMED, &l->gate));
        const char *up = !s->gated && n->up_alone ? n->up_alone : n->up;
        FR_TRY(bind_product(b, up, s->ffn, s->hidden, s->up_bias, &l->up, &l->up_bias));
    }
    return bind_product(b, n->down, s->hidden, s->ffn, s->down_bias, &l->down, &l->down_bias);
}

/* Binds the router and the experts of a mixture. In a flat tensor, the rows of all experts follow each other. */
static fr_status bind_mixture(const binder *b, fr_encoder_layer *l) {
    const fr_encoder_spec *s = b->spec;
    const fr_encoder_names *n = b->names;
    fr_weights *w = b->weights;
    char router[128];
    snprintf(router, sizeof router, "%.100s.weight", n->router);
    FR_TRY(fr_bind_router(w, b->prefix, router, s->experts, s->hidden, &l->router));
    if (n->expert_bias && fr_weights_has(w, b->prefix, n->expert_bias))
        FR_TRY(fr_bind_vector(w, b->prefix, n->expert_bias, s->hidden, &l->expert_bias));
    if (!n->experts_flat) {
        FR_TRY(
            fr_bind_stack(w, b->prefix, n->expert_up, FR_LAYOUT_ROWS, s->experts, 1, s->ffn, s->hidden, l->expert_up));
        return fr_bind_stack(w, b->prefix, n->expert_down, FR_LAYOUT_ROWS, s->experts, 1, s->hidden, s->ffn,
                             l->expert_down);
    }
    FR_TRY(fr_bind_parts(w, b->prefix, n->expert_up, s->experts, s->ffn, s->hidden, l->expert_up));
    return fr_bind_stack(w, b->prefix, n->expert_down, FR_LAYOUT_COLUMNS, s->experts, 1, s->hidden, s->ffn,
                         l->expert_down);
}

static bool is_mixture(const fr_encoder_spec *s, size_t layer) {
    return s->experts && layer % s->expert_every == 1;
}

static fr_status bind_layer(const binder *outside, size_t index, fr_encoder_layer *l) {
    binder b = *outside;
    const fr_encoder_spec *s = b.spec;
    const fr_encoder_names *n = b.names;
    snprintf(b.prefix, sizeof b.prefix, "%.80s%.40s%zu.", outside->prefix, n->layer, index);
    if (!s->first_bare || index > 0) FR_TRY(bind_norm(&b, n->norm1, s->hidden, &l->norm1));
    FR_TRY(bind_norm(&b, n->norm2, s->hidden, &l->norm2));
    if (s->branch_norms) {
        FR_TRY(bind_norm(&b, n->post1, s->hidden, &l->post1));
        FR_TRY(bind_norm(&b, n->post2, s->hidden, &l->post2));
    }
    if (s->qk_norm) {
        FR_TRY(bind_vector(&b, n->q_norm, ".weight", s->head_dim, s->norm_values, &l->q_norm));
        FR_TRY(bind_vector(&b, n->k_norm, ".weight", s->head_dim, s->norm_values, &l->k_norm));
    }
    FR_TRY(bind_qkv(&b, l));
    FR_TRY(bind_product(&b, n->o, s->hidden, s->heads * s->head_dim, s->o_bias, &l->o, &l->o_bias));
    return is_mixture(s, index) ? bind_mixture(&b, l) : bind_feed_forward(&b, l);
}

/* Binds the classifier, whose names have no prefix. */
static fr_status bind_head(const binder *outside, fr_encoder *e) {
    const fr_encoder_spec *s = &e->spec;
    const fr_encoder_names *n = outside->names;
    binder b = *outside;
    if (!s->labels) return FR_OK;
    if (n->head_dense) {
        bool pooler = has(&b, n->head_dense, ".weight"); /* a pooler is a part of the model, so its name has the model's
                                                          * prefix */
        if (!pooler) b.prefix[0] = '\0';
        FR_TRY(
            bind_product(&b, n->head_dense, s->hidden, s->hidden, s->head_bias, &e->head_dense, &e->head_dense_bias));
    }
    b.prefix[0] = '\0';
    if (s->head_norm) FR_TRY(bind_norm(&b, n->head_norm, s->hidden, &e->head_norm));
    return bind_product(&b, n->head_label, s->labels, s->hidden, s->label_bias, &e->head_label, &e->head_label_bias);
}

static fr_status make_ropes(fr_encoder *e) {
    const fr_encoder_spec *s = &e->spec;
    bool used[FR_ENCODER_REACHES] = {false};
    for (size_t i = 0; i < s->layers; i++) used[s->local[i]] = true;
    for (size_t i = 0; i < FR_ENCODER_REACHES && s->rope_dims; i++) {
        if (!used[i]) continue;
        e->inverse[i] = calloc(s->rope_dims / 2 + 1, sizeof *e->inverse[i]);
        if (!e->inverse[i]) return fr_fail_memory("rotary frequencies", s->rope_dims * sizeof(float));
        fr_rope_frequencies(s->rope_factor[i] != 1 ? FR_ROPE_LINEAR : FR_ROPE_DEFAULT, s->theta[i], s->rope_dims, 1.0,
                            s->rope_factor[i], e->inverse[i]);
    }
    return FR_OK;
}

static fr_status make_slopes(fr_encoder *e) {
    size_t heads = e->spec.heads;
    if (!e->spec.alibi) return FR_OK;
    e->bias_slopes = calloc(heads, sizeof *e->bias_slopes);
    if (!e->bias_slopes) return fr_fail_memory("slopes of heads", heads * sizeof(float));
    fr_alibi_slopes(heads, 8, e->bias_slopes);
    return FR_OK;
}

/* Chooses the spelling and the prefix of the tensors' names. They are the first ones with which the files have the
 * table of words. */
static fr_status choose_names(binder *b, const fr_encoder_kind *kind, fr_encoder *e) {
    static const char *const none[] = {"", NULL};
    const fr_encoder_names *list = b->weights->files->gguf ? kind->gguf_names : kind->names;
    for (const fr_encoder_names *n = list; n && n->words; n++)
        for (const char *const *prefix = n->prefixes ? n->prefixes : none; *prefix; prefix++) {
            snprintf(b->prefix, sizeof b->prefix, "%s", *prefix);
            b->names = e->names = n;
            e->prefix = *prefix;
            char first[128];
            snprintf(first, sizeof first, "%s0.%s", n->layer, n->o);
            if (has(b, n->words, ".weight") && (b->spec->layers == 0 || has(b, first, ".weight"))) return FR_OK;
        }
    return fr_fail(FR_INPUT, "%s: the tensors are not named as those of %s: %s.weight and %s0.%s.weight are looked for",
                   b->weights->files->path, kind->name, list ? list->words : "", list ? list->layer : "",
                   list ? list->o : "");
}

fr_status fr_encoder_bind(fr_encoder *e, fr_weights *weights) {
    const fr_encoder_spec *s = &e->spec;
    binder b = {.weights = weights, .spec = s};
    FR_TRY(choose_names(&b, s->kind, e));
    FR_TRY(bind_matrix(&b, b.names->words, s->vocab, s->hidden, FR_LOOKED_UP, &e->words));
    if (s->types) FR_TRY(bind_matrix(&b, b.names->types, s->types, s->hidden, FR_LOOKED_UP, &e->types));
    if (s->positions) FR_TRY(bind_matrix(&b, b.names->positions, s->positions, s->hidden, FR_LOOKED_UP, &e->positions));
    if (s->embedding_norm) FR_TRY(bind_norm(&b, b.names->embedding_norm, s->hidden, &e->embedding_norm));
    if (s->pre_norm) FR_TRY(bind_norm(&b, b.names->final_norm, s->hidden, &e->final_norm));
    if (s->buckets)
        FR_TRY(fr_bind_array(weights, b.prefix, "encoder.relative_attention_bias.weight",
                             (uint64_t[]){s->buckets, s->heads}, 2, &e->relative));
    e->layers = calloc(s->layers + 1, sizeof *e->layers);
    if (!e->layers) return fr_fail_memory("an encoder's layers", s->layers * sizeof *e->layers);
    e->experts = calloc(2 * s->layers * s->experts + 1, sizeof *e->experts);
    if (!e->experts) return fr_fail_memory("an encoder's experts", 2 * s->layers * s->experts * sizeof *e->experts);
    for (size_t i = 0; i < s->layers; i++) {
        e->layers[i].expert_up = e->experts + 2 * i * s->experts;
        e->layers[i].expert_down = e->layers[i].expert_up + s->experts;
        FR_TRY(bind_layer(&b, i, &e->layers[i]));
    }
    FR_TRY(bind_head(&b, e));
    FR_TRY(make_ropes(e));
    FR_TRY(make_slopes(e));
    e->packed = weights->has_packed;
    return FR_OK;
}
