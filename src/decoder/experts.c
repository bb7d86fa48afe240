/* A mixture of experts: the routed branch of a feed-forward. See parts.h.
 *
 * In: the stream before the feed-forward. Out: experts->sum, the weighted outputs of each row's chosen experts, added
 * per element in ascending expert id by one fma chain from 0 (quant/NUMERICS.md), whichever thread computed them.
 *
 * Router: r = (rmsnorm(x) * scale) / sqrt(hidden); the top experts by score, lowest id first of equals; weight =
 * softmax of the chosen scores * per_expert_scale. Shazeer et al. 2017, arXiv:1701.06538. */
#include <math.h>
#include <string.h>

#include "src/base/sizes.h"
#include "src/decoder/parts.h"

void fr_experts_layout(fr_activations *a, const fr_experts_spec *spec, bool packed, fr_arena *arena, size_t max_rows,
                       size_t threads) {
    size_t pairs = max_rows * spec->top, hidden = a->trunk->spec.hidden;
    fr_experts_rows e = {0}, *place = fr_arena_take(arena, 1, sizeof *place);
    fr_workspace_layout(&e.workspace, a->kernels, arena, packed, pairs, fr_larger(hidden, spec->width), threads);
    e.scores = fr_arena_take(arena, max_rows * spec->count, sizeof(float));
    e.routed = fr_arena_take(arena, max_rows * hidden, sizeof(float));
    e.normed = fr_arena_take(arena, max_rows * hidden, sizeof(float));
    e.input = fr_arena_take(arena, pairs * hidden, sizeof(float));
    e.inner = fr_arena_take(arena, pairs * 2 * spec->width, sizeof(float));
    e.output = fr_arena_take(arena, pairs * hidden, sizeof(float));
    e.sum = fr_arena_take(arena, max_rows * hidden, sizeof(float));
    e.row = fr_arena_take(arena, pairs, sizeof(int32_t));
    e.weight = fr_arena_take(arena, pairs, sizeof(float));
    e.first = fr_arena_take(arena, spec->count + 1, sizeof(size_t));
    e.chosen = fr_arena_take(arena, pairs, sizeof(int32_t));
    e.chosen_weight = fr_arena_take(arena, pairs, sizeof(float));
    e.scratch = fr_arena_take(arena, spec->count, sizeof(int32_t));
    a->experts = place;
    if (place) *place = e;
}

void fr_experts_prepare(const fr_activations *a, const fr_layer *layer, size_t row) {
    const fr_kernels *k = a->kernels;
    size_t hidden = a->trunk->spec.hidden;
    const float *x = a->x + row * hidden;
    float *routed = a->experts->routed + row * hidden, eps = a->trunk->spec.eps;
    k->rmsnorm(routed, x, layer->router_scale, hidden, eps);
    k->scale(routed, hidden, (float)(1.0 / sqrt((double)hidden)));
    fr_matrix_input_row(&a->experts->workspace, row, routed, hidden);
    k->rmsnorm(a->experts->normed + row * hidden, x, layer->pre_experts_norm, hidden, eps);
}

void fr_experts_score(const fr_team *team, const fr_activations *a, const fr_experts_spec *spec,
                      const fr_layer *layer) {
    size_t hidden = a->trunk->spec.hidden;
    fr_matrix_apply(team, &a->experts->workspace, &layer->router, a->experts->scores, spec->count, a->experts->routed,
                    hidden, a->batch.count);
}

/* The chosen experts of one row and their weights. */
static void choose(const fr_activations *a, const fr_experts_spec *spec, const fr_layer *layer, size_t row) {
    fr_experts_rows *m = a->experts;
    const float *scores = m->scores + row * spec->count;
    int32_t *chosen = m->chosen + row * spec->top;
    float *weight = m->chosen_weight + row * spec->top, sum = 0.0f;
    a->kernels->topk(scores, spec->count, spec->top, chosen, m->scratch);
    for (size_t i = 0; i < spec->top; i++) weight[i] = scores[chosen[i]] - scores[chosen[0]];
    a->kernels->exp(weight, weight, spec->top);
    for (size_t i = 0; i < spec->top; i++) sum += weight[i];
    for (size_t i = 0; i < spec->top; i++) weight[i] = weight[i] / sum * layer->expert_scale[chosen[i]];
}

/* All rows' pairs, sorted by expert and then row: a counting sort. */
static void route(const fr_activations *a, const fr_experts_spec *spec, const fr_layer *layer) {
    fr_experts_rows *m = a->experts;
    size_t pairs = a->batch.count * spec->top, *first = m->first;
    memset(first, 0, (spec->count + 1) * sizeof *first);
    for (size_t r = 0; r < a->batch.count; r++) choose(a, spec, layer, r);
    for (size_t i = 0; i < pairs; i++) first[m->chosen[i] + 1]++;
    for (size_t e = 0; e < spec->count; e++) first[e + 1] += first[e];
    for (size_t i = 0; i < pairs; i++) {
        size_t at = first[m->chosen[i]]++;
        m->row[at] = (int32_t)(i / spec->top);
        m->weight[at] = m->chosen_weight[i];
    }
    for (size_t e = spec->count; e > 0; e--) first[e] = first[e - 1]; /* the fill moved each start to its end */
    first[0] = 0;
    m->use.all += spec->count;
    m->use.pairs += pairs;
    for (size_t e = 0; e < spec->count; e++) m->use.read += first[e + 1] > first[e];
}

/* Each expert's rows side by side, so that one matmul serves them all. */
static void gather(const fr_team *team, const fr_activations *a, const fr_experts_spec *spec) {
    const fr_experts_rows *m = a->experts;
    size_t hidden = a->trunk->spec.hidden, begin, end;
    fr_partition(m->first[spec->count], 1, team->index, team->count, &begin, &end);
    for (size_t p = begin; p < end; p++) {
        memcpy(m->input + p * hidden, m->normed + (size_t)m->row[p] * hidden, hidden * sizeof(float));
        fr_matrix_input_row(&m->workspace, p, m->input + p * hidden, hidden);
    }
}

/* gelu(gate) * up of every pair, for the thread's own inner columns. */
static void experts_in(const fr_team *team, const fr_activations *a, const fr_experts_spec *spec,
                       const fr_layer *layer) {
    const fr_kernels *k = a->kernels;
    const fr_experts_rows *m = a->experts;
    size_t ffn = spec->width, stride = 2 * ffn, hidden = a->trunk->spec.hidden, begin, end;
    fr_partition(ffn, FR_FEATURE_UNIT, team->index, team->count, &begin, &end);
    for (size_t e = 0; e < spec->count; e++) {
        size_t p = m->first[e], rows = m->first[e + 1] - p;
        if (rows == 0 || begin == end) continue;
        const float *input = m->input + p * hidden;
        float *inner = m->inner + p * stride;
        fr_matrix_apply_part(team, &m->workspace, &layer->expert_gate[e], begin, end, inner, stride, input, hidden, p,
                             rows);
        fr_matrix_apply_part(team, &m->workspace, &layer->expert_up[e], begin, end, inner + ffn, stride, input, hidden,
                             p, rows);
        for (size_t r = 0; r < rows; r++) {
            float *gate = inner + r * stride + begin;
            k->gelu_mul(gate, gate, gate + ffn, end - begin);
        }
    }
}

/* Weighted outputs joined, for the thread's own columns of the stream. */
static void experts_out(const fr_team *team, const fr_activations *a, const fr_experts_spec *spec,
                        const fr_layer *layer) {
    const fr_kernels *k = a->kernels;
    const fr_experts_rows *m = a->experts;
    size_t stride = 2 * spec->width, hidden = a->trunk->spec.hidden, begin, end;
    fr_partition(hidden, FR_FEATURE_UNIT, team->index, team->count, &begin, &end);
    for (size_t r = 0; r < a->batch.count; r++) memset(m->sum + r * hidden + begin, 0, (end - begin) * sizeof(float));
    for (size_t e = 0; e < spec->count; e++) {
        size_t p = m->first[e], rows = m->first[e + 1] - p;
        if (rows == 0) continue;
        fr_matrix_apply_part(team, &m->workspace, &layer->expert_down[e], begin, end, m->output + p * hidden,
                             hidden, m->inner + p * stride, stride, p, rows);
        for (size_t i = p; i < p + rows; i++)
            k->axpy(m->sum + (size_t)m->row[i] * hidden + begin, m->output + i * hidden + begin,
                    end - begin, m->weight[i]);
    }
}

void fr_experts_run(const fr_team *team, const fr_activations *a, const fr_experts_spec *spec, const fr_layer *layer) {
    if (team->index == 0) route(a, spec, layer);
    fr_team_sync(team);
    gather(team, a, spec);
    fr_team_sync(team);
    experts_in(team, a, spec, layer);
    fr_team_sync(team);
    fr_matrix_input_rows(team, &a->experts->workspace, a->experts->inner, 2 * spec->width, spec->width,
                         a->experts->first[spec->count]);
    experts_out(team, a, spec, layer);
}
