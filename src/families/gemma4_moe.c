/* Gemma 4's mixture of experts: the routed branch of a feed-forward.
 *
 * In: the stream before the feed-forward. Out: moe->sum, the weighted outputs of each row's chosen experts, added per
 * element in ascending expert id by one fma chain from 0 (quant/NUMERICS.md), whichever thread computed them.
 *
 * Router: r = (rmsnorm(x) * scale) / sqrt(hidden); the top experts by score, lowest id first of equals; weight =
 * softmax of the chosen scores * per_expert_scale. Shazeer et al. 2017, arXiv:1701.06538. */
#include <math.h>
#include <string.h>

#include "src/families/gemma4.h"

void fr_moe_layout(fr_gemma4_pass *pass, fr_arena *arena, size_t max_rows, size_t threads) {
    const fr_gemma4_config *c = &pass->net->config;
    size_t pairs = max_rows * c->expert_top;
    fr_moe moe = {0};
    fr_moe *place = fr_arena_take(arena, 1, sizeof *place);
    fr_work_layout(&moe.work, pass->kernels, arena, pass->net->packed, pairs,
                   c->hidden > c->expert_ffn ? c->hidden : c->expert_ffn, threads);
    moe.scores = fr_arena_take(arena, max_rows * c->experts, sizeof(float));
    moe.routed = fr_arena_take(arena, max_rows * c->hidden, sizeof(float));
    moe.normed = fr_arena_take(arena, max_rows * c->hidden, sizeof(float));
    moe.input = fr_arena_take(arena, pairs * c->hidden, sizeof(float));
    moe.inner = fr_arena_take(arena, pairs * 2 * c->expert_ffn, sizeof(float));
    moe.output = fr_arena_take(arena, pairs * c->hidden, sizeof(float));
    moe.sum = fr_arena_take(arena, max_rows * c->hidden, sizeof(float));
    moe.row = fr_arena_take(arena, pairs, sizeof(int32_t));
    moe.weight = fr_arena_take(arena, pairs, sizeof(float));
    moe.first = fr_arena_take(arena, c->experts + 1, sizeof(size_t));
    moe.chosen = fr_arena_take(arena, pairs, sizeof(int32_t));
    moe.chosen_weight = fr_arena_take(arena, pairs, sizeof(float));
    moe.room = fr_arena_take(arena, c->experts, sizeof(int32_t));
    pass->moe = place;
    if (place) *place = moe;
}

void fr_moe_prepare(const fr_gemma4_pass *pass, const fr_gemma4_layer *layer, size_t row) {
    const fr_gemma4_config *c = &pass->net->config;
    const fr_kernels *k = pass->kernels;
    const float *x = pass->x + row * c->hidden;
    float *routed = pass->moe->routed + row * c->hidden;
    k->rmsnorm(routed, x, layer->router_scale, c->hidden, c->eps);
    k->scale(routed, c->hidden, (float)(1.0 / sqrt((double)c->hidden)));
    fr_work_row(&pass->moe->work, row, routed, c->hidden);
    k->rmsnorm(pass->moe->normed + row * c->hidden, x, layer->pre_moe_norm, c->hidden, c->eps);
}

void fr_moe_score(const fr_team *team, fr_gemma4_pass *pass, const fr_gemma4_layer *layer) {
    const fr_gemma4_config *c = &pass->net->config;
    fr_matrix_apply(team, &pass->moe->work, &layer->router, pass->moe->scores, c->experts, pass->moe->routed, c->hidden,
                    pass->rows);
}

/* The chosen experts of one row and their weights. */
static void choose(const fr_gemma4_pass *pass, const fr_gemma4_layer *layer, size_t row) {
    const fr_gemma4_config *c = &pass->net->config;
    fr_moe *moe = pass->moe;
    const float *scores = moe->scores + row * c->experts;
    int32_t *chosen = moe->chosen + row * c->expert_top;
    float *weight = moe->chosen_weight + row * c->expert_top, sum = 0.0f;
    pass->kernels->topk(scores, c->experts, c->expert_top, chosen, moe->room);
    for (size_t i = 0; i < c->expert_top; i++) weight[i] = scores[chosen[i]] - scores[chosen[0]];
    pass->kernels->exp(weight, weight, c->expert_top);
    for (size_t i = 0; i < c->expert_top; i++) sum += weight[i];
    for (size_t i = 0; i < c->expert_top; i++) weight[i] = weight[i] / sum * layer->expert_scale[chosen[i]];
}

/* All rows' pairs, sorted by expert and then row: a counting sort. */
static void route(const fr_gemma4_pass *pass, const fr_gemma4_layer *layer) {
    const fr_gemma4_config *c = &pass->net->config;
    fr_moe *moe = pass->moe;
    size_t pairs = pass->rows * c->expert_top, *first = moe->first;
    memset(first, 0, (c->experts + 1) * sizeof *first);
    for (size_t r = 0; r < pass->rows; r++) choose(pass, layer, r);
    for (size_t i = 0; i < pairs; i++) first[moe->chosen[i] + 1]++;
    for (size_t e = 0; e < c->experts; e++) first[e + 1] += first[e];
    for (size_t i = 0; i < pairs; i++) {
        size_t at = first[moe->chosen[i]]++;
        moe->row[at] = (int32_t)(i / c->expert_top);
        moe->weight[at] = moe->chosen_weight[i];
    }
    for (size_t e = c->experts; e > 0; e--) first[e] = first[e - 1]; /* the fill moved each start to its end */
    first[0] = 0;
    moe->use.all += c->experts;
    moe->use.pairs += pairs;
    for (size_t e = 0; e < c->experts; e++) moe->use.read += first[e + 1] > first[e];
}

/* Each expert's rows side by side, so that one matmul serves them all. */
static void gather(const fr_team *team, const fr_gemma4_pass *pass) {
    const fr_moe *moe = pass->moe;
    size_t hidden = pass->net->config.hidden, begin, end;
    fr_partition(moe->first[pass->net->config.experts], 1, team->index, team->count, &begin, &end);
    for (size_t p = begin; p < end; p++) {
        memcpy(moe->input + p * hidden, moe->normed + (size_t)moe->row[p] * hidden, hidden * sizeof(float));
        fr_work_row(&moe->work, p, moe->input + p * hidden, hidden);
    }
}

/* gelu(gate) * up of every pair, for the thread's own inner columns. */
static void experts_in(const fr_team *team, const fr_gemma4_pass *pass, const fr_gemma4_layer *layer) {
    const fr_gemma4_config *c = &pass->net->config;
    const fr_kernels *k = pass->kernels;
    const fr_moe *moe = pass->moe;
    size_t ffn = c->expert_ffn, stride = 2 * ffn, begin, end;
    fr_partition(ffn, FR_OUT_UNIT, team->index, team->count, &begin, &end);
    for (size_t e = 0; e < c->experts; e++) {
        size_t p = moe->first[e], rows = moe->first[e + 1] - p;
        if (rows == 0 || begin == end) continue;
        const float *input = moe->input + p * c->hidden;
        float *inner = moe->inner + p * stride;
        for (size_t half = 0; half < 2; half++)
            fr_matrix_apply_part(team, &moe->work, &layer->expert_in[2 * e + half], begin, end, inner + half * ffn,
                                 stride, input, c->hidden, p, rows);
        for (size_t r = 0; r < rows; r++) {
            float *gate = inner + r * stride + begin;
            k->gelu_mul(gate, gate, gate + ffn, end - begin);
        }
    }
}

/* Weighted outputs joined, for the thread's own columns of the stream. */
static void experts_out(const fr_team *team, const fr_gemma4_pass *pass, const fr_gemma4_layer *layer) {
    const fr_gemma4_config *c = &pass->net->config;
    const fr_kernels *k = pass->kernels;
    const fr_moe *moe = pass->moe;
    size_t stride = 2 * c->expert_ffn, begin, end;
    fr_partition(c->hidden, FR_OUT_UNIT, team->index, team->count, &begin, &end);
    for (size_t r = 0; r < pass->rows; r++) memset(moe->sum + r * c->hidden + begin, 0, (end - begin) * sizeof(float));
    for (size_t e = 0; e < c->experts; e++) {
        size_t p = moe->first[e], rows = moe->first[e + 1] - p;
        if (rows == 0) continue;
        fr_matrix_apply_part(team, &moe->work, &layer->expert_out[e], begin, end, moe->output + p * c->hidden,
                             c->hidden, moe->inner + p * stride, stride, p, rows);
        for (size_t i = p; i < p + rows; i++)
            k->axpy(moe->sum + (size_t)moe->row[i] * c->hidden + begin, moe->output + i * c->hidden + begin,
                    end - begin, moe->weight[i]);
    }
}

void fr_moe_run(const fr_team *team, fr_gemma4_pass *pass, const fr_gemma4_layer *layer) {
    if (team->index == 0) route(pass, layer);
    fr_team_sync(team);
    gather(team, pass);
    fr_team_sync(team);
    experts_in(team, pass, layer);
    fr_team_sync(team);
    fr_work_rows(team, &pass->moe->work, pass->moe->inner, 2 * pass->net->config.expert_ffn,
                 pass->net->config.expert_ffn, pass->moe->first[pass->net->config.experts]);
    experts_out(team, pass, layer);
}
