/* GLM's tensors, bound by name to fields: the one place where their names stand. */
#include <stdio.h>
#include <stdlib.h>

#include "formats/error.h"
#include "kernels/rope_table.h"
#include "src/decoder/binder.h"
#include "src/families/chained.h"
#include "src/families/glm.h"

static fr_status bind_layer(const binder *b, const fr_glm_config *c, fr_glm_layer *layer) {
    size_t q_width = c->heads * c->head_dim, kv_width = c->kv_heads * c->head_dim;
    FR_TRY(vector(b, "input_layernorm.weight", "attn_norm.weight", c->hidden, &layer->input_norm));
    FR_TRY(
        vector(b, "post_self_attn_layernorm.weight", "post_attention_norm.weight", c->hidden, &layer->post_attn_norm));
    FR_TRY(vector(b, "post_attention_layernorm.weight", "ffn_norm.weight", c->hidden, &layer->pre_ffn_norm));
    FR_TRY(vector(b, "post_mlp_layernorm.weight", "post_ffw_norm.weight", c->hidden, &layer->post_ffn_norm));
    FR_TRY(matrix(b, "self_attn.q_proj.weight", "attn_q.weight", q_width, c->hidden, &layer->q));
    FR_TRY(matrix(b, "self_attn.k_proj.weight", "attn_k.weight", kv_width, c->hidden, &layer->k));
    FR_TRY(matrix(b, "self_attn.v_proj.weight", "attn_v.weight", kv_width, c->hidden, &layer->v));
    FR_TRY(matrix(b, "self_attn.o_proj.weight", "attn_output.weight", c->hidden, q_width, &layer->o));
    FR_TRY(fr_bind_parts(b->weights, b->prefix, spelled(b, "mlp.gate_up_proj.weight", "ffn_up.weight"), 2, c->ffn,
                         c->hidden, layer->gate_up));
    return matrix(b, "mlp.down_proj.weight", "ffn_down.weight", c->hidden, c->ffn, &layer->down);
}

/* The head is bound before the embedding, so that a tied one reads the streamed form. */
static fr_status bind_tables(const binder *b, fr_glm *net) {
    const fr_glm_config *c = &net->config;
    const char *own = spelled(b, "lm_head.weight", "output.weight"),
               *table = spelled(b, "embed_tokens.weight", "token_embd.weight");
    bool tied = !fr_weights_has(b->weights, "", own);
    FR_TRY(fr_bind_matrix(b->weights, tied ? b->prefix : "", tied ? table : own, c->vocab, c->hidden, FR_STREAMED,
                          &net->head));
    FR_TRY(fr_bind_matrix(b->weights, b->prefix, table, c->vocab, c->hidden, FR_LOOKED_UP, &net->embedding));
    return vector(b, "norm.weight", "output_norm.weight", c->hidden, &net->norm);
}

static binder layer_binder(fr_weights *weights, size_t index) {
    binder b = {.weights = weights};
    snprintf(b.prefix, sizeof b.prefix, weights->files->gguf ? "%sblk.%zu." : "%slayers.%zu.", name_prefix(weights),
             index);
    return b;
}

static fr_status make_tables(fr_glm *net) {
    const fr_glm_config *c = &net->config;
    net->inverse = calloc(c->rotary / 2, sizeof *net->inverse);
    net->kv_shapes = calloc(c->layers, sizeof *net->kv_shapes);
    if (!net->inverse || !net->kv_shapes) return fr_fail_memory("rotary frequencies", c->layers);
    fr_rope_frequencies(FR_ROPE_DEFAULT, c->theta, c->rotary, 1.0, 1.0, net->inverse);
    for (size_t i = 0; i < c->layers; i++) net->kv_shapes[i] = (fr_kv_shape){c->kv_heads, c->head_dim, 0};
    return FR_OK;
}

static fr_status open_all(fr_glm *net, fr_weights *weights) {
    binder b = {.weights = weights};
    size_t layers = net->config.layers;
    net->layers = calloc(layers, sizeof *net->layers);
    if (!net->layers) return fr_fail_memory("layers", layers * sizeof *net->layers);
    snprintf(b.prefix, sizeof b.prefix, "%s", name_prefix(weights));
    FR_TRY(bind_tables(&b, net));
    for (size_t i = 0; i < layers; i++) {
        b = layer_binder(weights, i);
        FR_TRY(bind_layer(&b, &net->config, &net->layers[i]));
    }
    b = layer_binder(weights, layers);
    if (!fr_weights_has(weights, b.prefix, spelled(&b, "eh_proj.weight", "nextn.eh_proj.weight")))
        net->config.mtp_layers = 0; /* announced, and dropped by whoever saved the file */
    return make_tables(net);
}

fr_status fr_glm_open(fr_glm *net, const fr_glm_config *config, fr_weights *weights) {
    *net = (fr_glm){.config = *config};
    fr_status status = open_all(net, weights);
    if (status != FR_OK) fr_glm_close(net);
    return status;
}

void fr_glm_close(fr_glm *net) {
    free(net->layers);
    free(net->inverse);
    free(net->kv_shapes);
    *net = (fr_glm){0};
}

/* -------------------------------------------------------------------------------------------------------- MTP layer */

static fr_status chained_open(fr_chained *chained, const fr_model *target, fr_weights *weights) {
    const fr_glm *net = target->net;
    const fr_glm_config *c = &net->config;
    const binder b = layer_binder(weights, c->layers);
    const char *table = spelled(&b, "embed_tokens.weight", "nextn.embed_tokens.weight"),
               *head = spelled(&b, "shared_head.head.weight", "nextn.shared_head_head.weight");
    fr_glm_layer *layer = calloc(1, sizeof *layer);
    chained->layer = layer;
    if (!layer) return fr_fail_memory("MTP layer", sizeof *layer);
    chained->eps = c->eps;
    chained->kv = net->kv_shapes[0];
    FR_TRY(vector(&b, "enorm.weight", "nextn.enorm.weight", c->hidden, &chained->enorm));
    FR_TRY(vector(&b, "hnorm.weight", "nextn.hnorm.weight", c->hidden, &chained->hnorm));
    FR_TRY(vector(&b, "shared_head.norm.weight", "nextn.shared_head_norm.weight", c->hidden, &chained->norm));
    FR_TRY(matrix(&b, "eh_proj.weight", "nextn.eh_proj.weight", c->hidden, 2 * c->hidden, &chained->eh_proj));
    FR_TRY(bind_layer(&b, c, layer));
    chained->head = net->head;
    if (fr_weights_has(weights, b.prefix, head))
        FR_TRY(fr_bind_matrix(weights, b.prefix, head, c->vocab, c->hidden, FR_STREAMED, &chained->head));
    if (fr_weights_has(weights, b.prefix, table))
        FR_TRY(fr_bind_matrix(weights, b.prefix, table, c->vocab, c->hidden, FR_LOOKED_UP, &chained->embedding));
    return FR_OK;
}

static void chained_close(fr_chained *chained) {
    free(chained->layer);
}

static void *chained_layout(const fr_chained *chained, const fr_model *target, fr_arena *arena, size_t max_rows,
                            size_t threads) {
    fr_glm_pass pass, *place = fr_arena_take(arena, 1, sizeof *place);
    fr_glm_pass_layout(&pass, target->net, target->kernels, chained->packed, arena, max_rows, threads);
    if (place) *place = pass;
    return place;
}

static void chained_run(const fr_team *team, const fr_chained *chained, void *shared, const fr_chained_rows *rows) {
    fr_glm_pass pass = *(fr_glm_pass *)shared;
    pass.x = rows->x;
    pass.rows = rows->count;
    pass.slot = rows->slot;
    fr_glm_rotations(team, &pass, rows->places);
    fr_glm_layer_run(team, &pass, chained->layer, &rows->kv->layers[0]);
}

const fr_chained_family fr_glm_chained = {
    .open = chained_open,
    .close = chained_close,
    .layout = chained_layout,
    .run = chained_run,
};
