/* Opens EAGLE drafters: see eagle.h. */
#include "src/engine/draft/eagle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sizes.h"
#include "src/engine/draft/drafter_target.h"

/* ------------------------------------------------------------------------------------------------- names of tensors */

/* The tensors of attention in a layer like Llama's, without the projections of queries, keys and values. In EAGLE-3 the
 * input of these projections is twice as wide, so they are in tables of their own. */
static const fr_tensor_name attention_names[] = {
    FR_VECTOR(fr_layer, attention.q_bias, QUERIES, "self_attn.q_proj.bias", "attn_q.bias", .needs = FR_IF_QKV_BIAS,
              .order = FR_ROWS_TO_PAIRS),
    FR_VECTOR(fr_layer, attention.k_bias, KEYS, "self_attn.k_proj.bias", "attn_k.bias", .needs = FR_IF_QKV_BIAS,
              .order = FR_ROWS_TO_PAIRS),
    FR_VECTOR(fr_layer, attention.v_bias, KEYS, "self_attn.v_proj.bias", "attn_v.bias", .needs = FR_IF_QKV_BIAS),
    FR_VECTOR(fr_layer, attention.q_norm, QUERY_NORM, "self_attn.q_norm.weight", NULL, .needs = FR_IF_NORMED_HEADS),
    FR_VECTOR(fr_layer, attention.k_norm, KEY_NORM, "self_attn.k_norm.weight", NULL, .needs = FR_IF_NORMED_HEADS),
    FR_MATRIX(fr_layer, attention.o, HIDDEN, QUERIES, "self_attn.o_proj.weight", "attn_output.weight"),
    FR_VECTOR(fr_layer, attention.o_bias, HIDDEN, "self_attn.o_proj.bias", "attn_output.bias", .needs = FR_IF_THERE),
    {0},
};

static const fr_tensor_name wide_names[] = {
    FR_MATRIX(fr_layer, attention.q, QUERIES, TWICE_HIDDEN, "self_attn.q_proj.weight", "attn_q.weight",
              .order = FR_ROWS_TO_PAIRS),
    FR_MATRIX(fr_layer, attention.k, KEYS, TWICE_HIDDEN, "self_attn.k_proj.weight", "attn_k.weight",
              .order = FR_ROWS_TO_PAIRS),
    FR_MATRIX(fr_layer, attention.v, KEYS, TWICE_HIDDEN, "self_attn.v_proj.weight", "attn_v.weight"),
    {0},
};

static const fr_tensor_name norm_names[] = {
    FR_VECTOR(fr_eagle, embedding_norm, HIDDEN, "input_layernorm.weight", "attn_norm.weight"),
    FR_VECTOR(fr_eagle, hidden_norm, HIDDEN, "hidden_norm.weight", "attn_norm_2.weight"),
    {0},
};

/* The tensors of EAGLE-1's layer. In most files this layer has no norm at its beginning. */
static const fr_tensor_name narrow_names[] = {
    FR_VECTOR(fr_layer, input_norm, HIDDEN, "input_layernorm.weight", NULL, .needs = FR_IF_THERE),
    FR_MATRIX(fr_layer, attention.q, QUERIES, HIDDEN, "self_attn.q_proj.weight", NULL),
    FR_MATRIX(fr_layer, attention.k, KEYS, HIDDEN, "self_attn.k_proj.weight", NULL),
    FR_MATRIX(fr_layer, attention.v, KEYS, HIDDEN, "self_attn.v_proj.weight", NULL),
    {0},
};

/* The tensors that do not belong to the layer. */
typedef enum own { FC, FC_NORM, NORM, HEAD, EMBEDDING, IDS, OWN } own;

static const struct {
    const char *published, *gguf;
} own_names[OWN] = {
    [FC] = {"fc.weight", "fc.weight"},
    [FC_NORM] = {"input_norm.weight", "enc.output_norm.weight"},
    [NORM] = {"norm.weight", "output_norm.weight"},
    [HEAD] = {"lm_head.weight", "output.weight"},
    [EMBEDDING] = {"embed_tokens.weight", "token_embd.weight"},
    [IDS] = {"d2t", "d2t"},
};

static const char *own_name(const fr_weights *weights, own which) {
    return weights->files->gguf ? own_names[which].gguf : own_names[which].published;
}

/* Tensors that are not needed: the map from the target's ids to the drafter's, and the rotary frequencies that early
 * checkpoints contain. */
static const char *const extras[] = {"t2d", "*rotary_emb.inv_freq", NULL};
const fr_tensor_naming fr_eagle_names = {.extras = extras};

/* Gives the part of a published name after the layer's prefix, which has two spellings. Gives NULL if the name has no
 * such prefix. */
static const char *of_layer(const char *published) {
    static const char *const prefixes[] = {"midlayer.", "layers.0."};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(published, prefixes[i], strlen(prefixes[i])) == 0) return published + strlen(prefixes[i]);
    return NULL;
}

const fr_tensor_name *const fr_eagle3_layer_names[] = {wide_names,   attention_names, fr_pre_norm_names,
                                                       fr_ffn_names, norm_names,      NULL};

bool fr_eagle3_name(const char *published, const char **gguf, fr_tensor_name_found *found) {
    const char *name = of_layer(published);
    *found = (fr_tensor_name_found){.of_layer = name != NULL};
    for (size_t i = 0; i < OWN && !name; i++) {
        *gguf = own_names[i].gguf;
        if (strcmp(published, own_names[i].published) == 0) return true;
    }
    for (const fr_tensor_name *const *table = fr_eagle3_layer_names; *table && name; table++)
        for (found->name = *table; found->name->published; found->name++) {
            *gguf = found->name->gguf;
            if (strcmp(name, found->name->published) == 0) return *gguf;
        }
    return false;
}

/* ---------------------------------------------------------------------------------------------------------- binding */

static fr_binding layer_binding(fr_weights *weights, const fr_trunk_spec *spec) {
    fr_binding b = {.weights = weights, .trunk = spec, .layer = spec->layer};
    bool middle = fr_weights_has_any(weights, "midlayer.");
    snprintf(b.prefix, sizeof b.prefix, "%s", weights->files->gguf ? "blk.0." : middle ? "midlayer." : "layers.0.");
    return b;
}

/* Binds the first layer, which reads embeddings. projections: the names of the projections of queries, keys and
 * values. */
static fr_status bind_first(const fr_binding *b, const fr_tensor_name *projections, fr_layer *layer) {
    FR_TRY(fr_tensor_names_bind(b, projections, layer));
    FR_TRY(fr_tensor_names_bind(b, attention_names, layer));
    FR_TRY(fr_tensor_names_bind(b, fr_pre_norm_names, layer));
    return fr_tensor_names_bind(b, fr_ffn_names, layer);
}

static fr_status make_trunk(fr_trunk *trunk, const fr_eagle_config *c) {
    trunk->spec = c->spec.trunk;
    trunk->layers = calloc(trunk->spec.layers, sizeof *trunk->layers);
    return trunk->layers ? FR_OK : fr_fail_memory("drafter", trunk->spec.layers * sizeof *trunk->layers);
}

/* Binds the drafter's own embedding table. If the drafter has none, the target's table is used, provided that both
 * models have the same width. */
static fr_status bind_embedding(fr_eagle *e, const fr_eagle_config *c, fr_weights *weights) {
    const char *name = own_name(weights, EMBEDDING);
    if (fr_weights_has(weights, "", name))
        return fr_bind_matrix(weights, "", name, c->spec.trunk.vocab, c->spec.trunk.hidden, FR_LOOKED_UP,
                              &e->trunk.embedding);
    if (c->spec.trunk.hidden == c->target_hidden) return FR_OK;
    return fr_fail(FR_INPUT, "%s: tensor %s is missing, and its width of %zu is not the target's %zu",
                   weights->files->path, name, c->spec.trunk.hidden, c->target_hidden);
}

/* Binds the drafter's own head. If it has none, the target's head is used. The drafter must then score all ids of the
 * target, and both models must have the same width. */
static fr_status bind_head(fr_eagle *e, const fr_eagle_config *c, fr_drafter *drafter) {
    fr_weights *weights = &drafter->weights;
    const char *name = own_name(weights, HEAD);
    e->own_head = fr_weights_has(weights, "", name);
    if (e->own_head)
        return fr_bind_matrix(weights, "", name, c->draft_vocab, c->spec.trunk.hidden, FR_STREAMED, &e->trunk.head);
    bool alike = c->draft_vocab == c->spec.trunk.vocab && !fr_weights_has(weights, "", own_name(weights, IDS));
    if (!alike || c->spec.trunk.hidden != c->target_hidden)
        return fr_fail(FR_INPUT, "%s: tensor %s is missing, and the target's is no head of %zu ids by %zu",
                       weights->files->path, name, c->draft_vocab, c->spec.trunk.hidden);
    if (drafter->target) {
        e->trunk.head = drafter->target->trunk.head;
        e->pairs.softcap = drafter->target->trunk.spec.softcap;
    }
    return FR_OK;
}

static fr_eagle_needs needs_of(const fr_eagle_config *c) {
    fr_eagle_needs needs = {
        .hidden = c->target_hidden, .architecture = c->target, .default_aux_layers = c->default_aux_layers};
    needs.layers = c->default_aux_layers ? c->aux_layers.count : 1;
    for (size_t i = 0; i < c->aux_layers.count; i++) needs.layers = fr_larger(needs.layers, c->aux_layers.layer[i]);
    return needs;
}

/* Completes an EAGLE drafter of either kind. Its spec must have been read, and the tensors outside of the layer must be
 * bound. */
static fr_status finish(fr_eagle *e, const fr_eagle_config *c, fr_drafter *drafter) {
    fr_weights *weights = &drafter->weights;
    FR_TRY(bind_embedding(e, c, weights));
    FR_TRY(bind_head(e, c, drafter));
    const char *ids = own_name(weights, IDS);
    size_t vocab = c->spec.trunk.vocab;
    if (c->draft_vocab != vocab || fr_weights_has(weights, "", ids))
        FR_TRY(fr_drafter_bind_ids(weights, "", ids, c->draft_vocab, vocab, &e->ids));
    FR_TRY(fr_trunk_derive(&e->trunk, weights->files->path));
    e->pairs.trunk = &e->trunk;
    e->pairs.spec = e->trunk.spec.layer;
    e->pairs.layer = e->trunk.layers;
    e->pairs.layers = e->trunk.spec.layers;
    e->pairs.head = &e->trunk.head;
    e->pairs.candidates = e->ids;
    e->pairs.packed = weights->has_packed || (drafter->target && drafter->target->weights.has_packed);
    e->needs = needs_of(c);
    return fr_tensor_names_check_read(weights, &fr_eagle_names, e->trunk.spec.layers, 0);
}

/* ---------------------------------------------------------------------------------------------------------- EAGLE-3 */

static fr_status bind_fc_norms(fr_eagle *e, const fr_eagle_config *c, fr_weights *weights) {
    char name[40];
    e->fc_norm_count = c->fc_norm ? c->aux_layers.count : c->norm_before_fc;
    if (e->fc_norm_count == 0) return FR_OK;
    size_t width = c->aux_layers.count * c->target_hidden / e->fc_norm_count;
    if (!c->fc_norm) return fr_bind_vector(weights, "", own_name(weights, FC_NORM), width, &e->fc_norms[0]);
    for (size_t i = 0; i < e->fc_norm_count; i++) {
        snprintf(name, sizeof name, "fc_norm.%zu.weight", i);
        FR_TRY(fr_bind_vector(weights, "", name, width, &e->fc_norms[i]));
    }
    return FR_OK;
}

/* Binds the layers after the first one. */
static fr_status bind_further(fr_trunk *trunk, fr_weights *weights) {
    for (size_t i = 1; i < trunk->spec.layers; i++) {
        fr_binding b = {.weights = weights, .trunk = &trunk->spec, .layer = &trunk->spec.layer[i]};
        snprintf(b.prefix, sizeof b.prefix, "layers.%zu.", i);
        FR_TRY(fr_tensor_names_bind_layer(&b, fr_family_llama.names, &trunk->layers[i]));
    }
    return FR_OK;
}

fr_status fr_eagle3_open(fr_eagle *e, const fr_eagle_config *c, fr_drafter *drafter) {
    fr_weights *weights = &drafter->weights;
    size_t aux_layers = c->aux_layers.count * c->target_hidden;
    FR_TRY(make_trunk(&e->trunk, c));
    fr_binding b = layer_binding(weights, &e->trunk.spec);
    FR_TRY(fr_bind_matrix(weights, "", own_name(weights, FC), c->spec.trunk.hidden, aux_layers, FR_STREAMED, &e->fc));
    FR_TRY(bind_fc_norms(e, c, weights));
    FR_TRY(bind_first(&b, wide_names, e->trunk.layers));
    FR_TRY(fr_tensor_names_bind(&b, norm_names, e));
    FR_TRY(bind_further(&e->trunk, weights));
    FR_TRY(fr_bind_vector(weights, "", own_name(weights, NORM), c->spec.trunk.hidden, &e->trunk.norm));
    e->norm_before_residual = c->norm_before_residual;
    e->pairs.norm = e->trunk.norm;
    e->pairs.carries_norm = c->norm_output;
    return finish(e, c, drafter);
}

/* ---------------------------------------------------------------------------------------------------------- EAGLE-1 */

fr_status fr_eagle1_open(fr_eagle *e, const fr_eagle_config *c, fr_drafter *drafter) {
    fr_weights *weights = &drafter->weights;
    size_t hidden = c->spec.trunk.hidden;
    FR_TRY(make_trunk(&e->trunk, c));
    fr_binding b = layer_binding(weights, &e->trunk.spec);
    FR_TRY(fr_bind_matrix(weights, "", "fc.weight", hidden, 2 * hidden, FR_STREAMED, &e->fc));
    if (fr_weights_has(weights, "", "fc.bias")) FR_TRY(fr_bind_vector(weights, "", "fc.bias", hidden, &e->fc_bias));
    FR_TRY(bind_first(&b, narrow_names, e->trunk.layers));
    return finish(e, c, drafter);
}

void fr_eagle_close(fr_eagle *e) {
    fr_trunk_close(&e->trunk);
}

void fr_eagle_embed(const fr_eagle *e, const fr_model *target, const fr_pair *pair, float *out) {
    if (e->trunk.embedding.data)
        fr_matrix_row(target->kernels, &e->trunk.embedding, (size_t)pair->id, 1.0f, out);
    else if (pair->embedding)
        memcpy(out, pair->embedding, e->trunk.spec.hidden * sizeof *out);
    else
        fr_model_embed(target, pair->id, out);
}
