/* Routing: which experts a row is sent to, and with which weights. See parts.h.
 *
 * In: the router's products with a row, one an expert. Out: the ids of its experts, by what chooses them largest first,
 * the lowest id first of equals; their weights (quant/NUMERICS.md, 11).
 *
 * Two kinds of scores. Softmax: products choose. Sigmoid, of DeepSeek-AI 2024, arXiv:2412.19437: scores that a bias
 * corrects choose, in the groups whose two best are the best; weights are of the scores as they were. A row with a
 * product that is not finite has no weights: they are NaN, and so is all that comes of it. */
#include <math.h>

#include "src/layers/parts.h"

/* What one row's routing works with: the calling thread's own. */
typedef struct routing {
    const fr_kernels *kernels;
    const fr_experts_spec *spec;
    float *scores;           /* [experts] products, then what they say */
    float *choice, *groups;  /* [experts] of each */
    int32_t *scratch, *best; /* [experts] of each */
} routing;

static bool all_finite(const float *values, size_t n) {
    bool finite = true;
    for (size_t i = 0; i < n; i++) finite &= (bool)isfinite(values[i]);
    return finite;
}

/* Products to weights before normalization, and what those of all experts sum to, or of the chosen ones. */
static float weigh_softmax(const routing *r, const int32_t *chosen, float *weight) {
    const fr_experts_spec *spec = r->spec;
    float most = r->scores[chosen[0]], sum = 0.0f;
    for (size_t i = 0; i < spec->top_k; i++) weight[i] = r->scores[chosen[i]] - most;
    r->kernels->exp(weight, weight, spec->top_k);
    if (spec->norm_top_k) {
        for (size_t i = 0; i < spec->top_k; i++) sum += weight[i];
        return sum;
    }
    for (size_t e = 0; e < spec->count; e++) r->scores[e] -= most;
    r->kernels->exp(r->scores, r->scores, spec->count);
    for (size_t e = 0; e < spec->count; e++) sum += r->scores[e];
    return sum;
}

static void score_sigmoid(const routing *r) {
    for (size_t e = 0; e < r->spec->count; e++) r->scores[e] = -r->scores[e];
    r->kernels->exp(r->scores, r->scores, r->spec->count);
    for (size_t e = 0; e < r->spec->count; e++) r->scores[e] = 1.0f / (1.0f + r->scores[e]);
}

/* The sum keeps away from 0, as the published code does. */
static float weigh_sigmoid(const routing *r, const int32_t *chosen, float *weight) {
    float sum = 0.0f;
    for (size_t i = 0; i < r->spec->top_k; i++) weight[i] = r->scores[chosen[i]];
    if (!r->spec->norm_top_k) return 1.0f;
    for (size_t i = 0; i < r->spec->top_k; i++) sum += weight[i];
    return sum + 1e-20f;
}

/* The sum of the two largest of n >= 2 values. */
static float best_two(const float *values, size_t n) {
    float first = values[0], second = -INFINITY;
    for (size_t i = 1; i < n; i++) {
        if (values[i] > first) {
            second = first;
            first = values[i];
        } else if (values[i] > second) {
            second = values[i];
        }
    }
    return first + second;
}

/* Leaves no choice outside of the best groups. */
static void keep_best_groups(const routing *r) {
    size_t groups = r->spec->groups, size = r->spec->count / groups;
    for (size_t g = 0; g < groups; g++) r->groups[g] = best_two(r->choice + g * size, size);
    r->kernels->topk(r->groups, groups, r->spec->top_groups, r->best, r->scratch);
    for (size_t g = 0; g < groups; g++) r->groups[g] = -INFINITY;
    for (size_t i = 0; i < r->spec->top_groups; i++) r->groups[r->best[i]] = 0.0f;
    for (size_t e = 0; e < r->spec->count; e++)
        if (r->groups[e / size] < 0.0f) r->choice[e] = -INFINITY;
}

static void choose_by_softmax(const routing *r, int32_t *chosen) {
    r->kernels->topk(r->scores, r->spec->count, r->spec->top_k, chosen, r->scratch);
}

/* bias: NULL: none. */
static void choose_by_sigmoid(const routing *r, const float *bias, int32_t *chosen) {
    score_sigmoid(r);
    for (size_t e = 0; e < r->spec->count; e++) r->choice[e] = bias ? r->scores[e] + bias[e] : r->scores[e];
    if (r->spec->groups > 1) keep_best_groups(r);
    r->kernels->topk(r->choice, r->spec->count, r->spec->top_k, chosen, r->scratch);
}

void fr_experts_choose(const fr_activations *a, const fr_experts_spec *spec, const fr_experts_weights *weights,
                       size_t row, size_t thread) {
    fr_experts_rows *m = a->experts;
    const routing r = {.kernels = a->kernels,
                       .spec = spec,
                       .scores = m->scores + row * spec->count,
                       .choice = m->choices + 2 * thread * spec->count,
                       .groups = m->choices + (2 * thread + 1) * spec->count,
                       .scratch = m->scratch + 2 * thread * spec->count,
                       .best = m->scratch + (2 * thread + 1) * spec->count};
    int32_t *chosen = m->chosen + row * spec->top_k;
    float *weight = m->chosen_weight + row * spec->top_k, sum, scaling = spec->routed_scaling;
    if (weights->product_bias) a->kernels->add(r.scores, weights->product_bias, spec->count);
    if (!all_finite(r.scores, spec->count)) scaling = NAN;
    if (spec->scoring == FR_SCORING_SIGMOID) {
        choose_by_sigmoid(&r, weights->router_bias, chosen);
        sum = weigh_sigmoid(&r, chosen, weight);
    } else {
        choose_by_softmax(&r, chosen);
        sum = weigh_softmax(&r, chosen, weight);
    }
    for (size_t i = 0; i < spec->top_k; i++) {
        weight[i] /= sum;
        if (weights->scale) weight[i] *= weights->scale[chosen[i]];
        weight[i] *= scaling;
    }
}
