/* GLM's decoder layer, run by a team of threads.
 *
 * In: a pass whose stream x holds the layer's input. Out: x holds its output, K/V of the rows are in the cache.
 *
 * A layer is phases with barriers between; in each phase a thread computes the weight rows, the heads or the batch rows
 * it owns:
 *
 *     rows   normed = input_norm(x)
 *     outs   q, k, v = projections of normed
 *     heads  q: rotate; k: rotate, store; v: store
 *     heads  attn = attention(q, cache)
 *     outs   out = o(attn)
 *     rows   x += post_attn_norm(out); normed = pre_ffn_norm(x)
 *     outs   gate = silu(gate(normed)) * up(normed)
 *     outs   out = down(gate)
 *     rows   x += post_ffn_norm(out)
 */
#include <math.h>

#include "kernels/rope_table.h"
#include "src/families/glm.h"

void fr_glm_pass_layout(fr_glm_pass *pass, const fr_glm *net, const fr_kernels *kernels, bool packed, fr_arena *arena,
                        size_t max_rows, size_t threads) {
    const fr_glm_config *c = &net->config;
    size_t q_width = c->heads * c->head_dim, kv_width = c->kv_heads * c->head_dim;
    struct {
        float **rows;
        size_t width;
    } all[] = {{&pass->x, c->hidden},        {&pass->normed, c->hidden},    {&pass->out, c->hidden},
               {&pass->q, q_width},          {&pass->attn, q_width},        {&pass->k, kv_width},
               {&pass->v, kv_width},         {&pass->gate, c->ffn},         {&pass->up, c->ffn},
               {&pass->sine, c->rotary / 2}, {&pass->cosine, c->rotary / 2}};
    size_t widest = c->hidden;
    *pass = (fr_glm_pass){.net = net, .kernels = kernels};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        *all[i].rows = fr_arena_take(arena, max_rows * all[i].width, sizeof(float));
        if (all[i].width > widest) widest = all[i].width;
    }
    fr_attend_layout(&pass->attend, arena, c->head_dim, threads);
    fr_work_layout(&pass->work, kernels, arena, packed, max_rows, widest, threads);
}

void fr_glm_rotations(const fr_team *team, const fr_glm_pass *pass, const fr_place *places) {
    const fr_glm_config *c = &pass->net->config;
    size_t begin, end, angles = c->rotary / 2;
    fr_rows_part(team, pass->rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        size_t at = 0;
        for (int axis = 0; axis < FR_AXES; axis++) {
            fr_rope_angles(pass->net->inverse + at, c->sections[axis], places[r].at[axis],
                           pass->cosine + r * angles + at, pass->sine + r * angles + at);
            at += c->sections[axis];
        }
    }
}

static void norm_rows(const fr_team *team, const fr_glm_pass *pass, const float *weight) {
    size_t begin, end, hidden = pass->net->config.hidden;
    fr_rows_part(team, pass->rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *normed = pass->normed + r * hidden;
        pass->kernels->rmsnorm(normed, pass->x + r * hidden, weight, hidden, pass->net->config.eps);
        fr_work_row(&pass->work, r, normed, hidden);
    }
}

/* x += norm(out), by the row's owner. */
static void join_rows(const fr_team *team, const fr_glm_pass *pass, const float *weight) {
    size_t begin, end, hidden = pass->net->config.hidden;
    fr_rows_part(team, pass->rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *out = pass->out + r * hidden;
        pass->kernels->rmsnorm(out, out, weight, hidden, pass->net->config.eps);
        pass->kernels->add(pass->x + r * hidden, out, hidden);
    }
}

/* The product of rows that were prepared, or of `prepare`d ones; all rows are [rows, cols] and [rows, outs]. */
static void apply(const fr_team *team, const fr_glm_pass *pass, const fr_matrix *matrix, float *y, const float *x) {
    fr_matrix_apply(team, &pass->work, matrix, y, matrix->outs, x, matrix->cols, pass->rows);
}

static void prepare(const fr_team *team, const fr_glm_pass *pass, const fr_matrix *matrix, const float *x) {
    fr_work_rows(team, &pass->work, x, matrix->cols, matrix->cols, pass->rows);
}

static void rotate_head(const fr_glm_pass *pass, size_t row, float *head) {
    const fr_glm_config *c = &pass->net->config;
    const fr_kernels *k = pass->kernels;
    size_t angles = c->rotary / 2;
    fr_rope_fn *rope = c->halves ? k->rope_half : k->rope_pair;
    rope(head, pass->cosine + row * angles, pass->sine + row * angles, c->rotary);
}

/* Dealt by heads, queries as attention deals them: what a thread reads there, it mostly wrote here. */
static void rotate_and_store(const fr_team *team, const fr_glm_pass *pass, const fr_kv_layer *cache) {
    const fr_glm_config *c = &pass->net->config;
    const fr_kernels *k = pass->kernels;
    size_t n = c->head_dim, begin, end;
    fr_partition(pass->rows * c->heads, 1, team->index, team->count, &begin, &end);
    for (size_t item = begin; item < end; item++) {
        size_t row, head;
        fr_attend_place(item, pass->rows, c->heads, c->kv_heads, &row, &head);
        rotate_head(pass, row, pass->q + (row * c->heads + head) * n);
    }
    fr_partition(pass->rows * c->kv_heads, 1, team->index, team->count, &begin, &end);
    for (size_t item = begin; item < end; item++) {
        size_t row = item % pass->rows, head = item / pass->rows, slot = pass->slot + row;
        size_t at = (row * c->kv_heads + head) * n;
        rotate_head(pass, row, pass->k + at);
        k->kv_store[cache->k.type](fr_kv_slot(cache, &cache->k, head, slot), pass->k + at, n);
        k->kv_store[cache->v.type](fr_kv_slot(cache, &cache->v, head, slot), pass->v + at, n);
    }
}

static void attend(const fr_team *team, const fr_glm_pass *pass, const fr_kv_layer *cache) {
    const fr_glm_config *c = &pass->net->config;
    const fr_attend_rows rows = {.kernels = pass->kernels,
                                 .room = &pass->attend,
                                 .cache = cache,
                                 .q = pass->q,
                                 .out = pass->attn,
                                 .rows = pass->rows,
                                 .stride = c->heads * c->head_dim,
                                 .heads = c->heads,
                                 .last = (int64_t)pass->slot,
                                 .scale = (float)(1.0 / sqrt((double)c->head_dim))};
    fr_attend_run(team, &rows);
}

/* A thread's gate and up outs are the same range, so the activation needs no barrier. */
static void gate_and_up(const fr_team *team, const fr_glm_pass *pass, const fr_glm_layer *layer) {
    size_t begin, end, ffn = pass->net->config.ffn;
    apply(team, pass, &layer->gate_up[0], pass->gate, pass->normed);
    apply(team, pass, &layer->gate_up[1], pass->up, pass->normed);
    fr_matrix_part(team, &layer->gate_up[0], &begin, &end);
    for (size_t r = 0; r < pass->rows; r++) {
        float *gate = pass->gate + r * ffn + begin;
        pass->kernels->silu_mul(gate, gate, pass->up + r * ffn + begin, end - begin);
    }
}

void fr_glm_layer_run(const fr_team *team, const fr_glm_pass *pass, const fr_glm_layer *layer,
                      const fr_kv_layer *cache) {
    norm_rows(team, pass, layer->input_norm);
    fr_team_sync(team);
    apply(team, pass, &layer->q, pass->q, pass->normed);
    apply(team, pass, &layer->k, pass->k, pass->normed);
    apply(team, pass, &layer->v, pass->v, pass->normed);
    fr_team_sync(team);
    rotate_and_store(team, pass, cache);
    fr_team_sync(team);
    attend(team, pass, cache);
    fr_team_sync(team);
    prepare(team, pass, &layer->o, pass->attn);
    apply(team, pass, &layer->o, pass->out, pass->attn);
    fr_team_sync(team);
    join_rows(team, pass, layer->post_attn_norm);
    norm_rows(team, pass, layer->pre_ffn_norm);
    fr_team_sync(team);
    gate_and_up(team, pass, layer);
    fr_team_sync(team);
    prepare(team, pass, &layer->down, pass->gate);
    apply(team, pass, &layer->down, pass->out, pass->gate);
    fr_team_sync(team);
    join_rows(team, pass, layer->post_ffn_norm);
}
