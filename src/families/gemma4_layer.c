/* Gemma 4's decoder layer, run by a team of threads.
 *
 * In: a pass whose stream x holds the layer's input. Out: x holds its output, K/V of the rows are in the cache.
 *
 * A layer is phases with barriers between; in each phase a thread computes the weight rows, the heads or the batch rows
 * it owns:
 *
 *     rows   normed = input_norm(x)
 *     outs   q, k, v = projections of normed
 *     heads  q: norm, rotate; k: norm, rotate, store; v: norm, store
 *     heads  attn = attention(q, cache)
 *     outs   out = o(attn)
 *     rows   x += post_attn_norm(out); normed = pre_ffn_norm(x)
 *     outs   gate = gelu(gate(normed)) * up(normed)
 *     outs   out = down(gate)                              (mixture of experts: gemma4_moe.c runs beside these)
 *     rows   x += post_ffn_norm(out)
 *     outs   gate = gelu(ple_gate(x)) * ple                (only with per-layer embeddings)
 *     outs   out = ple_out(gate)
 *     rows   x += post_ple_norm(out); x *= scalar
 *
 * With packed weights the rows of a product are quantized before it: whole rows by the thread that made them, others in
 * a phase of their own (fr_work_rows).
 */
#include "kernels/rope_table.h"
#include "src/base/sizes.h"
#include "src/families/gemma4.h"

void fr_gemma4_pass_layout(fr_gemma4_pass *pass, const fr_gemma4 *net, const fr_kernels *kernels, fr_arena *arena,
                           size_t max_rows, size_t input_width, size_t threads) {
    const fr_gemma4_config *c = &net->config;
    size_t head_dim = 0, kv_width = 0, ffn = c->ple;
    for (size_t i = 0; i < c->layers; i++) {
        head_dim = fr_larger(head_dim, c->layer[i].head_dim);
        kv_width = fr_larger(kv_width, c->layer[i].head_dim * c->layer[i].kv_heads);
        ffn = fr_larger(ffn, c->layer[i].ffn);
    }
    *pass = (fr_gemma4_pass){
        .net = net, .kernels = kernels, .q_width = c->heads * head_dim, .kv_width = kv_width, .ffn_width = ffn};
    pass->x = fr_arena_take(arena, max_rows * c->hidden, sizeof(float));
    pass->normed = fr_arena_take(arena, max_rows * c->hidden, sizeof(float));
    pass->out = fr_arena_take(arena, max_rows * c->hidden, sizeof(float));
    pass->q = fr_arena_take(arena, max_rows * pass->q_width, sizeof(float));
    pass->attn = fr_arena_take(arena, max_rows * pass->q_width, sizeof(float));
    pass->k = fr_arena_take(arena, max_rows * kv_width, sizeof(float));
    pass->v = fr_arena_take(arena, max_rows * kv_width, sizeof(float));
    pass->gate = fr_arena_take(arena, max_rows * ffn, sizeof(float));
    pass->up = fr_arena_take(arena, max_rows * ffn, sizeof(float));
    if (c->ple) {
        pass->ple = fr_arena_take(arena, max_rows * c->layers * c->ple, sizeof(float));
        pass->ple_table = fr_arena_take(arena, max_rows * c->layers * c->ple, sizeof(float));
    }
    for (int kind = 0; kind < FR_LAYER_KINDS; kind++) {
        pass->cosine[kind] = fr_arena_take(arena, max_rows * (net->rope_dim[kind] / 2), sizeof(float));
        pass->sine[kind] = fr_arena_take(arena, max_rows * (net->rope_dim[kind] / 2), sizeof(float));
    }
    fr_attend_layout(&pass->attend, arena, head_dim, threads);
    fr_work_layout(&pass->work, kernels, arena, net->packed, max_rows,
                   fr_larger(fr_larger(c->hidden, pass->q_width), fr_larger(ffn, input_width)), threads);
    if (c->experts) fr_moe_layout(pass, arena, max_rows, threads);
}

void fr_gemma4_rotations(const fr_team *team, fr_gemma4_pass *pass) {
    size_t begin, end;
    fr_rows_part(team, pass->rows, &begin, &end);
    for (int kind = 0; kind < FR_LAYER_KINDS; kind++) {
        size_t angles = pass->net->rope_dim[kind] / 2;
        for (size_t r = begin; r < end; r++)
            fr_rope_angles(pass->net->inverse[kind], angles, pass->position + (int64_t)r,
                           pass->cosine[kind] + r * angles, pass->sine[kind] + r * angles);
    }
}

static void norm_input(const fr_team *team, const fr_gemma4_pass *pass, const fr_gemma4_layer *layer) {
    size_t begin, end, hidden = pass->net->config.hidden;
    fr_rows_part(team, pass->rows, &begin, &end);
    for (size_t r = begin; r < end; r++)
        pass->kernels->rmsnorm(pass->normed + r * hidden, pass->x + r * hidden, layer->input_norm, hidden,
                               pass->net->config.eps);
    for (size_t r = begin; r < end; r++) fr_work_row(&pass->work, r, pass->normed + r * hidden, hidden);
}

static void project(const fr_team *team, const fr_gemma4_pass *pass, const fr_gemma4_layer *layer, bool owns_kv) {
    const fr_work *w = &pass->work;
    size_t hidden = pass->net->config.hidden;
    fr_matrix_apply(team, w, &layer->q, pass->q, pass->q_width, pass->normed, hidden, pass->rows);
    if (!owns_kv) return;
    fr_matrix_apply(team, w, &layer->k, pass->k, pass->kv_width, pass->normed, hidden, pass->rows);
    if (layer->v.data) fr_matrix_apply(team, w, &layer->v, pass->v, pass->kv_width, pass->normed, hidden, pass->rows);
}

/* One key head and its value head of one row: normed, the key rotated, in the pass's own rows; then stored at slot =
 * position. The value may come from the raw key, so it is first. */
static void store_kv(const fr_gemma4_pass *pass, const fr_gemma4_layer *layer, const fr_gemma4_layer_config *shape,
                     size_t row, size_t head) {
    const fr_kernels *k = pass->kernels;
    const fr_kv_layer *cache = &pass->kv->layers[layer->kv];
    size_t n = shape->head_dim, at = row * pass->kv_width + head * n, position = (size_t)pass->position + row;
    float *key = pass->k + at, *value = pass->v + at, eps = pass->net->config.eps;
    k->rmsnorm(value, layer->v.data ? value : key, NULL, n, eps);
    k->rmsnorm(key, key, layer->k_norm, n, eps);
    k->rope_half(key, pass->cosine[shape->kind] + row * (n / 2), pass->sine[shape->kind] + row * (n / 2), n);
    k->kv_store[cache->k.type](fr_kv_slot(cache, &cache->k, head, position), key, n);
    k->kv_store[cache->v.type](fr_kv_slot(cache, &cache->v, head, position), value, n);
}

/* Queries are dealt as attention deals them, and keys and values by heads too: what a thread reads there, it mostly
 * wrote here, and its part of the projections before. */
static void norm_and_rotate(const fr_team *team, const fr_gemma4_pass *pass, const fr_gemma4_layer *layer,
                            const fr_gemma4_layer_config *shape) {
    size_t heads = pass->net->config.heads, n = shape->head_dim, begin, end;
    fr_partition(pass->rows * heads, 1, team->index, team->count, &begin, &end);
    for (size_t item = begin; item < end; item++) {
        size_t row, head;
        fr_attend_place(item, pass->rows, heads, shape->kv_heads, &row, &head);
        float *q = pass->q + row * pass->q_width + head * n;
        pass->kernels->rmsnorm(q, q, layer->q_norm, n, pass->net->config.eps);
        pass->kernels->rope_half(q, pass->cosine[shape->kind] + row * (n / 2), pass->sine[shape->kind] + row * (n / 2),
                                 n);
    }
    if (!shape->owns_kv) return;
    fr_partition(pass->rows * shape->kv_heads, 1, team->index, team->count, &begin, &end);
    for (size_t item = begin; item < end; item++)
        store_kv(pass, layer, shape, item % pass->rows, item / pass->rows);
}

static void attend(const fr_team *team, const fr_gemma4_pass *pass, const fr_gemma4_layer *layer,
                   const fr_gemma4_layer_config *shape) {
    const fr_attend_rows rows = {.kernels = pass->kernels,
                                 .room = &pass->attend,
                                 .cache = &pass->kv->layers[layer->kv],
                                 .q = pass->q,
                                 .out = pass->attn,
                                 .rows = pass->rows,
                                 .stride = pass->q_width,
                                 .heads = pass->net->config.heads,
                                 .last = pass->last,
                                 .span = pass->span[shape->kind],
                                 .scale = 1.0f};
    fr_attend_run(team, &rows);
}

static void join_attention(const fr_team *team, const fr_gemma4_pass *pass, const fr_gemma4_layer *layer) {
    const fr_kernels *k = pass->kernels;
    size_t begin, end, hidden = pass->net->config.hidden;
    float eps = pass->net->config.eps;
    fr_rows_part(team, pass->rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *x = pass->x + r * hidden, *out = pass->out + r * hidden;
        k->rmsnorm(out, out, layer->post_attn_norm, hidden, eps);
        k->add(x, out, hidden);
        k->rmsnorm(pass->normed + r * hidden, x, layer->pre_ffn_norm, hidden, eps);
        fr_work_row(&pass->work, r, pass->normed + r * hidden, hidden);
        if (pass->moe) fr_moe_prepare(pass, layer, r);
    }
}

/* A thread's gate and up outs are the same range, so the activation needs no barrier. */
static void gate_and_up(const fr_team *team, const fr_gemma4_pass *pass, const fr_gemma4_layer *layer) {
    const fr_kernels *k = pass->kernels;
    size_t begin, end, hidden = pass->net->config.hidden;
    fr_matrix_apply(team, &pass->work, &layer->gate, pass->gate, pass->ffn_width, pass->normed, hidden, pass->rows);
    fr_matrix_apply(team, &pass->work, &layer->up, pass->up, pass->ffn_width, pass->normed, hidden, pass->rows);
    fr_matrix_part(team, &layer->gate, &begin, &end);
    for (size_t r = 0; r < pass->rows; r++) {
        float *gate = pass->gate + r * pass->ffn_width + begin;
        k->gelu_mul(gate, gate, pass->up + r * pass->ffn_width + begin, end - begin);
    }
}

static void join_feed_forward(const fr_team *team, const fr_gemma4_pass *pass, const fr_gemma4_layer *layer) {
    const fr_kernels *k = pass->kernels;
    size_t begin, end, hidden = pass->net->config.hidden;
    float eps = pass->net->config.eps;
    fr_rows_part(team, pass->rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *x = pass->x + r * hidden, *out = pass->out + r * hidden;
        if (pass->moe) {
            float *routed = pass->moe->sum + r * hidden;
            k->rmsnorm(out, out, layer->post_dense_norm, hidden, eps);
            k->rmsnorm(routed, routed, layer->post_moe_norm, hidden, eps);
            k->add(out, routed, hidden);
        }
        k->rmsnorm(out, out, layer->post_ffn_norm, hidden, eps);
        k->add(x, out, hidden);
        if (pass->net->config.ple) fr_work_row(&pass->work, r, x, hidden);
        else k->scale(x, hidden, layer->scalar);
    }
}

/* The per-layer embedding's branch: what the token itself says to this layer. */
static void per_layer_branch(const fr_team *team, const fr_gemma4_pass *pass, const fr_gemma4_layer *layer,
                             size_t index) {
    const fr_kernels *k = pass->kernels;
    const fr_gemma4_config *c = &pass->net->config;
    size_t begin, end;
    const fr_work *w = &pass->work;
    fr_team_sync(team);
    fr_matrix_apply(team, w, &layer->ple_gate, pass->gate, pass->ffn_width, pass->x, c->hidden, pass->rows);
    fr_matrix_part(team, &layer->ple_gate, &begin, &end);
    for (size_t r = 0; r < pass->rows; r++) {
        float *gate = pass->gate + r * pass->ffn_width + begin;
        k->gelu_mul(gate, gate, pass->ple + (r * c->layers + index) * c->ple + begin, end - begin);
    }
    fr_team_sync(team);
    fr_work_rows(team, w, pass->gate, pass->ffn_width, c->ple, pass->rows);
    fr_matrix_apply(team, w, &layer->ple_out, pass->out, c->hidden, pass->gate, pass->ffn_width, pass->rows);
    fr_team_sync(team);
    fr_rows_part(team, pass->rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *x = pass->x + r * c->hidden, *out = pass->out + r * c->hidden;
        k->rmsnorm(out, out, layer->post_ple_norm, c->hidden, c->eps);
        k->add(x, out, c->hidden);
        k->scale(x, c->hidden, layer->scalar);
    }
}

/* Leaves the rows from `keep` on: where the working rows that outlive this point begin. */
static void narrow(fr_gemma4_pass *pass) {
    const fr_gemma4_config *c = &pass->net->config;
    size_t keep = pass->keep;
    pass->x += keep * c->hidden;
    pass->q += keep * pass->q_width;
    pass->attn += keep * pass->q_width;
    if (c->ple) pass->ple += keep * c->layers * c->ple;
    for (int kind = 0; kind < FR_LAYER_KINDS; kind++) {
        pass->cosine[kind] += keep * (pass->net->rope_dim[kind] / 2);
        pass->sine[kind] += keep * (pass->net->rope_dim[kind] / 2);
    }
    pass->position += (int64_t)keep;
    pass->last += (int64_t)keep;
    pass->rows -= keep;
    pass->keep = 0;
}

void fr_gemma4_layer_run(const fr_team *team, fr_gemma4_pass *pass, size_t index) {
    const fr_work *w = &pass->work;
    const fr_gemma4_config *c = &pass->net->config;
    const fr_gemma4_layer *layer = &pass->net->layers[index];
    const fr_gemma4_layer_config *shape = &c->layer[index];

    norm_input(team, pass, layer);
    fr_team_sync(team);
    project(team, pass, layer, shape->owns_kv);
    fr_team_sync(team);
    norm_and_rotate(team, pass, layer, shape);
    fr_team_sync(team);
    if (index + 1 == pass->net->owners) narrow(pass);
    attend(team, pass, layer, shape);
    fr_team_sync(team);
    fr_work_rows(team, w, pass->attn, pass->q_width, layer->o.cols, pass->rows);
    fr_matrix_apply(team, w, &layer->o, pass->out, c->hidden, pass->attn, pass->q_width, pass->rows);
    fr_team_sync(team);
    join_attention(team, pass, layer);
    fr_team_sync(team);
    gate_and_up(team, pass, layer);
    if (pass->moe) fr_moe_score(team, pass, layer);
    fr_team_sync(team);
    fr_work_rows(team, w, pass->gate, pass->ffn_width, layer->down.cols, pass->rows);
    fr_matrix_apply(team, w, &layer->down, pass->out, c->hidden, pass->gate, pass->ffn_width, pass->rows);
    if (pass->moe) fr_moe_run(team, pass, layer);
    fr_team_sync(team);
    join_feed_forward(team, pass, layer);
    if (c->ple) per_layer_branch(team, pass, layer, index);
}
