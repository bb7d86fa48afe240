/* EAGLE drafters opened: see eagle.h. */
#include "src/draft/eagle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/error.h"

/* ------------------------------------------------------------------------------------------------ what it is called */

/* A layer as Llama's, but for its projections of the input, which is twice as wide in EAGLE-3. */
static const fr_name layer_names[] = {
    FR_VECTOR(fr_layer, q_bias, QUERIES, "self_attn.q_proj.bias", "attn_q.bias", .needs = FR_IF_ATTENTION_BIASED),
    FR_VECTOR(fr_layer, k_bias, KEYS, "self_attn.k_proj.bias", "attn_k.bias", .needs = FR_IF_ATTENTION_BIASED),
    FR_VECTOR(fr_layer, v_bias, KEYS, "self_attn.v_proj.bias", "attn_v.bias", .needs = FR_IF_ATTENTION_BIASED),
    FR_MATRIX(fr_layer, o, HIDDEN, QUERIES, "self_attn.o_proj.weight", "attn_output.weight"),
    FR_VECTOR(fr_layer, o_bias, HIDDEN, "self_attn.o_proj.bias", "attn_output.bias", .needs = FR_IF_THERE),
    FR_VECTOR(fr_layer, pre_ffn_norm, HIDDEN, "post_attention_layernorm.weight", "ffn_norm.weight"),
    FR_MATRIX(fr_layer, gate_up[0], FFN, HIDDEN, "mlp.gate_proj.weight", "ffn_gate.weight"),
    FR_MATRIX(fr_layer, gate_up[1], FFN, HIDDEN, "mlp.up_proj.weight", "ffn_up.weight"),
    FR_MATRIX(fr_layer, down, HIDDEN, FFN, "mlp.down_proj.weight", "ffn_down.weight"),
    {0},
};

static const fr_name wide_names[] = {
    FR_MATRIX(fr_layer, q, QUERIES, TWICE_HIDDEN, "self_attn.q_proj.weight", "attn_q.weight",
              .order = FR_ROWS_TO_PAIRS),
    FR_MATRIX(fr_layer, k, KEYS, TWICE_HIDDEN, "self_attn.k_proj.weight", "attn_k.weight", .order = FR_ROWS_TO_PAIRS),
    FR_MATRIX(fr_layer, v, KEYS, TWICE_HIDDEN, "self_attn.v_proj.weight", "attn_v.weight"),
    {0},
};

static const fr_name norm_names[] = {
    FR_VECTOR(fr_eagle, embedding_norm, HIDDEN, "input_layernorm.weight", "attn_norm.weight"),
    FR_VECTOR(fr_eagle, hidden_norm, HIDDEN, "hidden_norm.weight", "attn_norm_2.weight"),
    {0},
};

/* EAGLE-1's layer is its model's first one, which has no norm before it. */
static const fr_name narrow_names[] = {
    FR_VECTOR(fr_layer, input_norm, HIDDEN, "input_layernorm.weight", NULL, .needs = FR_IF_THERE),
    FR_MATRIX(fr_layer, q, QUERIES, HIDDEN, "self_attn.q_proj.weight", NULL),
    FR_MATRIX(fr_layer, k, KEYS, HIDDEN, "self_attn.k_proj.weight", NULL),
    FR_MATRIX(fr_layer, v, KEYS, HIDDEN, "self_attn.v_proj.weight", NULL),
    {0},
};

/* The way back from the target's ids, and frequencies that early checkpoints were saved with. */
static const char *const extras[] = {"t2d", "*rotary_emb.inv_freq", NULL};
static const fr_naming naming = {.extras = extras};

/* ---------------------------------------------------------------------------------------------------------- binding */

static fr_binding layer_binding(fr_weights *weights, const fr_trunk_spec *spec) {
    fr_binding b = {.weights = weights, .trunk = spec, .layer = spec->layer};
    bool middle = fr_weights_has_any(weights, "midlayer.");
    snprintf(b.prefix, sizeof b.prefix, "%s", weights->files->gguf ? "blk.0." : middle ? "midlayer." : "layers.0.");
    return b;
}

static fr_status make_trunk(fr_trunk *trunk, const fr_eagle_config *c) {
    FR_TRY(fr_uniform_spec(&c->layer, &trunk->spec));
    trunk->layers = calloc(1, sizeof *trunk->layers);
    return trunk->layers ? FR_OK : fr_fail_memory("drafter", sizeof *trunk->layers);
}

/* Its own table of the target's ids, or the target's, if that is as wide. */
static fr_status bind_embedding(fr_eagle *e, const fr_eagle_config *c, fr_weights *weights) {
    const char *name = weights->files->gguf ? "token_embd.weight" : "embed_tokens.weight";
    if (fr_weights_has(weights, "", name))
        return fr_bind_matrix(weights, "", name, c->layer.vocab, c->layer.hidden, FR_LOOKED_UP, &e->trunk.embedding);
    if (c->layer.hidden == c->target_hidden) return FR_OK;
    return fr_fail(FR_INPUT, "%s: tensor %s is missing, and its width of %zu is not the target's %zu",
                   weights->files->path, name, c->layer.hidden, c->target_hidden);
}

/* Its own head, or the target's, if it scores all ids and is as wide. */
static fr_status bind_head(fr_eagle *e, const fr_eagle_config *c, fr_drafter *drafter) {
    fr_weights *weights = &drafter->weights;
    const char *name = weights->files->gguf ? "output.weight" : "lm_head.weight";
    e->own_head = fr_weights_has(weights, "", name);
    if (e->own_head)
        return fr_bind_matrix(weights, "", name, c->draft_vocab, c->layer.hidden, FR_STREAMED, &e->trunk.head);
    bool alike = c->draft_vocab == c->layer.vocab && !fr_weights_has(weights, "", "d2t");
    if (!alike || c->layer.hidden != c->target_hidden)
        return fr_fail(FR_INPUT, "%s: tensor %s is missing, and the target's is no head of %zu ids by %zu",
                       weights->files->path, name, c->draft_vocab, c->layer.hidden);
    e->trunk.head = drafter->target->trunk.head;
    e->pairs.softcap = drafter->target->trunk.spec.softcap;
    return FR_OK;
}

/* The target's id of each of the drafter's: differences to its own in folders, the ids themselves in GGUF. */
static fr_status bind_ids(fr_eagle *e, const fr_eagle_config *c, fr_weights *weights) {
    int64_t vocab = (int64_t)c->layer.vocab;
    if (c->draft_vocab == c->layer.vocab && !fr_weights_has(weights, "", "d2t")) return FR_OK;
    FR_TRY(weights->files->gguf ? fr_bind_indices(weights, "", "d2t", c->draft_vocab, vocab, &e->ids)
                                : fr_bind_offsets(weights, "", "d2t", c->draft_vocab, vocab, &e->ids));
    uint8_t *seen = calloc(c->layer.vocab, 1);
    if (!seen) return fr_fail_memory("draft vocabulary", c->layer.vocab);
    size_t i = 0;
    while (i < c->draft_vocab && !seen[e->ids[i]]++) i++;
    free(seen);
    if (i == c->draft_vocab) return FR_OK;
    return fr_fail(FR_INPUT, "%s: tensor d2t has the target's id %d twice, again at index %zu", weights->files->path,
                   e->ids[i], i);
}

/* What all of them have, once the spec is there and their own tensors are bound. */
static fr_status finish(fr_eagle *e, const fr_eagle_config *c, fr_drafter *drafter) {
    fr_weights *weights = &drafter->weights;
    FR_TRY(bind_embedding(e, c, weights));
    FR_TRY(bind_head(e, c, drafter));
    FR_TRY(bind_ids(e, c, weights));
    FR_TRY(fr_trunk_derive(&e->trunk, weights->files->path));
    e->pairs.trunk = &e->trunk;
    e->pairs.spec = e->trunk.spec.layer;
    e->pairs.layer = e->trunk.layers;
    e->pairs.head = &e->trunk.head;
    e->pairs.candidates = e->ids;
    e->pairs.packed = weights->has_packed || drafter->target->weights.has_packed;
    fr_weights_note_slow(weights);
    return fr_names_check_read(weights, &naming, 1, 0);
}

/* ---------------------------------------------------------------------------------------------------------- EAGLE-3 */

fr_status fr_eagle3_open(fr_eagle *e, const fr_eagle_config *c, fr_drafter *drafter) {
    fr_weights *weights = &drafter->weights;
    bool gguf = weights->files->gguf != NULL;
    size_t taps = c->taps.count * c->target_hidden;
    const char *fc_norm = gguf ? "enc.output_norm.weight" : "input_norm.weight";
    FR_TRY(make_trunk(&e->trunk, c));
    fr_binding b = layer_binding(weights, &e->trunk.spec);
    FR_TRY(fr_bind_matrix(weights, "", "fc.weight", c->layer.hidden, taps, FR_STREAMED, &e->fc));
    if (c->norm_before_fc) FR_TRY(fr_bind_vector(weights, "", fc_norm, taps, &e->fc_norm));
    FR_TRY(fr_names_bind(&b, wide_names, e->trunk.layers));
    FR_TRY(fr_names_bind(&b, layer_names, e->trunk.layers));
    FR_TRY(fr_names_bind(&b, norm_names, e));
    FR_TRY(fr_bind_vector(weights, "", gguf ? "output_norm.weight" : "norm.weight", c->layer.hidden, &e->trunk.norm));
    e->norm_before_residual = c->norm_before_residual;
    e->pairs.norm = e->trunk.norm;
    e->pairs.carries_norm = c->norm_output;
    return finish(e, c, drafter);
}

/* ---------------------------------------------------------------------------------------------------------- EAGLE-1 */

fr_status fr_eagle1_open(fr_eagle *e, const fr_eagle_config *c, fr_drafter *drafter) {
    fr_weights *weights = &drafter->weights;
    FR_TRY(make_trunk(&e->trunk, c));
    fr_binding b = layer_binding(weights, &e->trunk.spec);
    FR_TRY(fr_bind_matrix(weights, "", "fc.weight", c->layer.hidden, 2 * c->layer.hidden, FR_STREAMED, &e->fc));
    if (fr_weights_has(weights, "", "fc.bias"))
        FR_TRY(fr_bind_vector(weights, "", "fc.bias", c->layer.hidden, &e->fc_bias));
    FR_TRY(fr_names_bind(&b, narrow_names, e->trunk.layers));
    FR_TRY(fr_names_bind(&b, layer_names, e->trunk.layers));
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
