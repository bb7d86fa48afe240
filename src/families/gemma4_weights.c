/* Gemma 4's tensors, bound by name to fields: the one place where their names stand.
 *
 * In: a configuration and a checkpoint's tensors. Out: fr_gemma4. Tensors that nothing reads (k_proj of
 * layers that borrow their KV, vision and audio towers) are not touched. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/error.h"
#include "kernels/rope_table.h"
#include "src/decoder/binder.h"
#include "src/families/gemma4.h"

static fr_status bind_attention(const binder *b, const fr_gemma4_config *c, const fr_gemma4_layer_config *shape,
                                fr_gemma4_layer *layer) {
    size_t q_width = c->heads * shape->head_dim, kv_width = shape->kv_heads * shape->head_dim;
    FR_TRY(matrix(b, "self_attn.q_proj.weight", "attn_q.weight", q_width, c->hidden, &layer->q));
    FR_TRY(matrix(b, "self_attn.o_proj.weight", "attn_output.weight", c->hidden, q_width, &layer->o));
    FR_TRY(vector(b, "self_attn.q_norm.weight", "attn_q_norm.weight", shape->head_dim, &layer->q_norm));
    if (!shape->owns_kv) return FR_OK;
    FR_TRY(matrix(b, "self_attn.k_proj.weight", "attn_k.weight", kv_width, c->hidden, &layer->k));
    FR_TRY(vector(b, "self_attn.k_norm.weight", "attn_k_norm.weight", shape->head_dim, &layer->k_norm));
    if (c->k_eq_v && shape->kind == FR_FULL) return FR_OK; /* values come from the key projection */
    return matrix(b, "self_attn.v_proj.weight", "attn_v.weight", kv_width, c->hidden, &layer->v);
}

static fr_status bind_feed_forward(const binder *b, const fr_gemma4_config *c, size_t ffn, fr_gemma4_layer *layer) {
    FR_TRY(matrix(b, "mlp.gate_proj.weight", "ffn_gate.weight", ffn, c->hidden, &layer->gate));
    FR_TRY(matrix(b, "mlp.up_proj.weight", "ffn_up.weight", ffn, c->hidden, &layer->up));
    return matrix(b, "mlp.down_proj.weight", "ffn_down.weight", c->hidden, ffn, &layer->down);
}

/* Gates and ups: stacked in one tensor, or in GGUF also in two. */
static fr_status bind_expert_inputs(const binder *b, const fr_gemma4_config *c, fr_matrix *inputs) {
    const char *fused = spelled(b, "experts.gate_up_proj", "ffn_gate_up_exps.weight");
    if (!b->weights->files->gguf || fr_weights_has(b->weights, b->prefix, fused))
        return fr_bind_stack(b->weights, b->prefix, fused, c->experts, 2, c->expert_ffn, c->hidden, 1, inputs);
    FR_TRY(fr_bind_stack(b->weights, b->prefix, "ffn_gate_exps.weight", c->experts, 1, c->expert_ffn, c->hidden, 2,
                         inputs));
    return fr_bind_stack(b->weights, b->prefix, "ffn_up_exps.weight", c->experts, 1, c->expert_ffn, c->hidden, 2,
                         inputs + 1);
}

static fr_status bind_experts(const binder *b, const fr_gemma4_config *c, fr_gemma4_layer *layer) {
    layer->expert_in = calloc(3 * c->experts, sizeof(fr_matrix));
    if (!layer->expert_in) return fr_fail_memory("experts", 3 * c->experts * sizeof(fr_matrix));
    layer->expert_out = layer->expert_in + 2 * c->experts;
    FR_TRY(matrix(b, "router.proj.weight", "ffn_gate_inp.weight", c->experts, c->hidden, &layer->router));
    FR_TRY(vector(b, "router.scale", "ffn_gate_inp.scale", c->hidden, &layer->router_scale));
    FR_TRY(vector(b, "router.per_expert_scale", "ffn_down_exps.scale", c->experts, &layer->expert_scale));
    FR_TRY(vector(b, "pre_feedforward_layernorm_2.weight", "pre_ffw_norm_2.weight", c->hidden, &layer->pre_moe_norm));
    FR_TRY(
        vector(b, "post_feedforward_layernorm_1.weight", "post_ffw_norm_1.weight", c->hidden, &layer->post_dense_norm));
    FR_TRY(
        vector(b, "post_feedforward_layernorm_2.weight", "post_ffw_norm_2.weight", c->hidden, &layer->post_moe_norm));
    FR_TRY(bind_expert_inputs(b, c, layer->expert_in));
    return fr_bind_stack(b->weights, b->prefix, spelled(b, "experts.down_proj", "ffn_down_exps.weight"), c->experts, 1,
                         c->hidden, c->expert_ffn, 1, layer->expert_out);
}

static fr_status bind_layer(const binder *b, const fr_gemma4_config *c, const fr_gemma4_layer_config *shape,
                            fr_gemma4_layer *layer) {
    FR_TRY(vector(b, "input_layernorm.weight", "attn_norm.weight", c->hidden, &layer->input_norm));
    FR_TRY(
        vector(b, "post_attention_layernorm.weight", "post_attention_norm.weight", c->hidden, &layer->post_attn_norm));
    FR_TRY(vector(b, "pre_feedforward_layernorm.weight", "ffn_norm.weight", c->hidden, &layer->pre_ffn_norm));
    FR_TRY(vector(b, "post_feedforward_layernorm.weight", "post_ffw_norm.weight", c->hidden, &layer->post_ffn_norm));
    FR_TRY(bind_attention(b, c, shape, layer));
    FR_TRY(bind_feed_forward(b, c, shape->ffn, layer));
    const float *scalar;
    FR_TRY(vector(b, "layer_scalar", "layer_output_scale.weight", 1, &scalar));
    layer->scalar = *scalar;
    if (c->experts) FR_TRY(bind_experts(b, c, layer));
    if (c->ple == 0) return FR_OK;
    FR_TRY(matrix(b, "per_layer_input_gate.weight", "inp_gate.weight", c->ple, c->hidden, &layer->ple_gate));
    FR_TRY(matrix(b, "per_layer_projection.weight", "proj.weight", c->hidden, c->ple, &layer->ple_out));
    return vector(b, "post_per_layer_input_norm.weight", "post_norm.weight", c->hidden, &layer->post_ple_norm);
}

/* The head is bound before the embedding, so that a tied one reads the streamed form. */
static fr_status bind_head(const binder *b, fr_gemma4 *net) {
    const fr_gemma4_config *c = &net->config;
    const char *own = spelled(b, "lm_head.weight", "output.weight"),
               *table = spelled(b, "embed_tokens.weight", "token_embd.weight");
    bool tied = !fr_weights_has(b->weights, "", own);
    const char *prefix = tied ? b->prefix : "", *head = tied ? table : own;
    if (c->head_order)
        return fr_bind_sorted(b->weights, prefix, head, c->head_order, c->vocab, c->hidden, &net->head,
                              &net->head_sorted);
    FR_TRY(fr_bind_matrix(b->weights, prefix, head, c->vocab, c->hidden, FR_STREAMED, &net->head));
    return fr_bind_matrix(b->weights, b->prefix, table, c->vocab, c->hidden, FR_LOOKED_UP, &net->embedding);
}

static fr_status bind_tables(const binder *b, fr_gemma4 *net) {
    const fr_gemma4_config *c = &net->config;
    FR_TRY(bind_head(b, net));
    FR_TRY(vector(b, "norm.weight", "output_norm.weight", c->hidden, &net->norm));
    if (c->ple == 0) return FR_OK;
    size_t width = c->layers * c->ple;
    FR_TRY(fr_bind_matrix(b->weights, b->prefix,
                          spelled(b, "embed_tokens_per_layer.weight", "per_layer_token_embd.weight"), c->vocab, width,
                          FR_LOOKED_UP, &net->ple_embedding));
    FR_TRY(matrix(b, "per_layer_model_projection.weight", "per_layer_model_proj.weight", width, c->hidden,
                  &net->ple_projection));
    return vector(b, "per_layer_projection_norm.weight", "per_layer_proj_norm.weight", c->ple, &net->ple_norm);
}

/* Which KV layer each layer writes or borrows, and what it stores. */
static fr_status map_kv(fr_gemma4 *net) {
    const fr_gemma4_config *c = &net->config;
    net->kv_shapes = calloc(c->layers, sizeof *net->kv_shapes);
    if (!net->kv_shapes) return fr_fail_memory("KV shapes", c->layers * sizeof *net->kv_shapes);
    net->kv_last[FR_SLIDING] = net->kv_last[FR_FULL] = SIZE_MAX;
    for (size_t i = 0; i < c->layers; i++) {
        const fr_gemma4_layer_config *shape = &c->layer[i];
        if (shape->owns_kv) {
            size_t window = shape->kind == FR_SLIDING ? c->window : 0;
            net->kv_shapes[net->kv_count] = (fr_kv_shape){shape->kv_heads, shape->head_dim, window};
            net->kv_last[shape->kind] = net->kv_count++;
            net->owners = i + 1;
        }
        net->layers[i].kv = net->kv_last[shape->kind];
    }
    return FR_OK;
}

/* A borrower's heads must fit the cache it reads. An assistant's are checked against its target instead. */
static fr_status check_borrowers(const fr_gemma4 *net, const char *path) {
    const fr_gemma4_config *c = &net->config;
    for (size_t i = 0; i < c->layers; i++) {
        if (c->layer[i].owns_kv || net->layers[i].kv == SIZE_MAX) continue;
        const fr_kv_shape *kv = &net->kv_shapes[net->layers[i].kv];
        if (kv->head_dim != c->layer[i].head_dim || c->heads % kv->heads)
            return fr_fail(FR_INPUT, "%s: layer %zu has head_dim %zu, the KV cache it borrows has %zu", path, i,
                           c->layer[i].head_dim, kv->head_dim);
    }
    return FR_OK;
}

/* Rotary frequencies of each kind. One kind's layers share a head_dim: the table has one row of angles a kind. */
static fr_status make_ropes(fr_gemma4 *net, const char *path) {
    const fr_gemma4_config *c = &net->config;
    for (size_t i = 0; i < c->layers; i++) {
        fr_layer_kind kind = c->layer[i].kind;
        size_t head_dim = c->layer[i].head_dim;
        if (net->rope_dim[kind] && net->rope_dim[kind] != head_dim)
            return fr_fail(FR_UNBUILT, "%s: layers of one kind have head_dim %zu and %zu, which is not built", path,
                           net->rope_dim[kind], head_dim);
        net->rope_dim[kind] = head_dim;
    }
    for (int kind = 0; kind < FR_LAYER_KINDS; kind++) {
        const fr_gemma4_rope *rope = &c->rope[kind];
        size_t angles = net->rope_dim[kind] / 2;
        net->inverse[kind] = calloc(angles + 1, sizeof(float));
        if (!net->inverse[kind]) return fr_fail_memory("rotary frequencies", angles * sizeof(float));
        fr_rope_frequencies(rope->proportional ? FR_ROPE_PROPORTIONAL : FR_ROPE_DEFAULT, rope->theta,
                            net->rope_dim[kind], rope->partial, rope->factor, net->inverse[kind]);
    }
    return FR_OK;
}

static fr_status open_all(fr_gemma4 *net, fr_weights *weights) {
    const fr_gemma4_config *c = &net->config;
    const char *path = weights->files->path, *prefix = name_prefix(weights);
    binder b = {.weights = weights};
    net->layers = calloc(c->layers, sizeof *net->layers);
    if (!net->layers) return fr_fail_memory("layers", c->layers * sizeof *net->layers);
    snprintf(b.prefix, sizeof b.prefix, "%s", prefix);
    FR_TRY(bind_tables(&b, net));
    for (size_t i = 0; i < c->layers; i++) {
        snprintf(b.prefix, sizeof b.prefix, weights->files->gguf ? "%sblk.%zu." : "%slayers.%zu.", prefix, i);
        FR_TRY(bind_layer(&b, c, &c->layer[i], &net->layers[i]));
    }
    net->packed = weights->has_packed;
    FR_TRY(map_kv(net));
    FR_TRY(check_borrowers(net, path));
    return make_ropes(net, path);
}

fr_status fr_gemma4_open(fr_gemma4 *net, fr_gemma4_config *config, fr_weights *weights) {
    *net = (fr_gemma4){.config = *config};
    *config = (fr_gemma4_config){0};
    fr_status status = open_all(net, weights);
    if (status != FR_OK) fr_gemma4_close(net);
    return status;
}

void fr_gemma4_close(fr_gemma4 *net) {
    for (size_t i = 0; net->layers && i < net->config.layers; i++) free(net->layers[i].expert_in);
    free(net->layers);
    free(net->kv_shapes);
    for (int kind = 0; kind < FR_LAYER_KINDS; kind++) free(net->inverse[kind]);
    fr_gemma4_config_free(&net->config);
    *net = (fr_gemma4){0};
}
