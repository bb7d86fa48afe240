/* Chooses the experts to which a row is sent, and their weights. See parts.h.
 *
 * In: the router's products with a row, one for each expert. Out: the ids of the chosen experts, and their weights
 * (section 11 of quant/NUMERICS.md). The ids are sorted by the score by which experts are chosen, the largest score
 * first. If scores are equal, the lowest id comes first.
 *
 * Scores are softmax or sigmoid of the products. A bias may correct them, as in DeepSeek-AI 2024, arXiv:2412.19437, and
 * in ERNIE 4.5. Experts are then chosen by the corrected scores, but weights are made from the uncorrected ones. For
 * softmax without a bias, experts are chosen by the products, which have the same order. If experts have groups, a row
 * chooses only in its best groups (DeepSeek-V2, arXiv:2405.04434). A group is rated by the sum of its two best scores,
 * or by its best one. If a product of a row is not finite, the row's weights and its result are NaN. */
#include <math.h>
#include <string.h>

#include "src/engine/layers/parts.h"

/* The memory in which one row's experts are chosen. Each thread has memory of its own. */
typedef struct routing {
    const fr_kernels *kernels;
    const fr_experts_spec *spec;
    float *scores;           /* [experts] products, then scores */
    float *choice, *groups;  /* [experts] each. choice: the scores by which experts are chosen; groups: the scores of
                              * groups */
    int32_t *scratch, *best; /* [experts] each. scratch: room for top-k; best: the best groups */
} routing;

/* Computes the weights of the chosen experts as exp(product - largest product). They are not divided by their sum yet.
 * Returns that sum: over the chosen experts if norm_top_k is set, otherwise over all experts. */
static float weigh_products(const routing *r, const int32_t *chosen, float *weight) {
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

static void score_softmax(const routing *r) {
    float most = r->scores[0], sum = 0.0f;
    for (size_t e = 1; e < r->spec->count; e++) most = r->scores[e] > most ? r->scores[e] : most;
    for (size_t e = 0; e < r->spec->count; e++) r->scores[e] -= most;
    r->kernels->exp(r->scores, r->scores, r->spec->count);
    for (size_t e = 0; e < r->spec->count; e++) sum += r->scores[e];
    for (size_t e = 0; e < r->spec->count; e++) r->scores[e] /= sum;
}

/* Takes the scores as weights. Returns the number by which the weights must be divided. Without norm_top_k this is 1.
 * With norm_top_k it is the sum of the weights, changed by the family's own rule so that it is never 0. */
static float weigh_scores(const routing *r, const int32_t *chosen, float *weight) {
    float sum = 0.0f;
    for (size_t i = 0; i < r->spec->top_k; i++) weight[i] = r->scores[chosen[i]];
    if (!r->spec->norm_top_k) return 1.0f;
    for (size_t i = 0; i < r->spec->top_k; i++) sum += weight[i];
    if (r->spec->norm_min > 0.0f) return sum > r->spec->norm_min ? sum : r->spec->norm_min;
    return sum + (r->spec->norm_added > 0.0f ? r->spec->norm_added : 1e-20f);
}

/* Gives the sum of the two largest of n >= 2 values. */
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

static float best_one(const float *values, size_t n) {
    float best = values[0];
    for (size_t i = 1; i < n; i++) best = values[i] > best ? values[i] : best;
    return best;
}

/* Excludes all experts outside of the best groups. */
static void keep_best_groups(const routing *r) {
    size_t groups = r->spec->groups, size = r->spec->count / groups;
    float (*worth)(const float *, size_t) = r->spec->groups_by_best ? best_one : best_two;
    for (size_t g = 0; g < groups; g++) r->groups[g] = worth(r->choice + g * size, size);
    r->kernels->topk(r->groups, groups, r->spec->top_groups, r->best, r->scratch);
    for (size_t g = 0; g < groups; g++) r->groups[g] = -INFINITY;
    for (size_t i = 0; i < r->spec->top_groups; i++) r->groups[r->best[i]] = 0.0f;
    for (size_t e = 0; e < r->spec->count; e++)
        if (r->groups[e / size] < 0.0f) r->choice[e] = -INFINITY;
}

/* Chooses two experts, each with the largest score among those left, and gives their weights. An expert's weight is its
 * softmax over the experts whose scores are near to its own (spec->nearness). The first expert is left out of the
 * second one's choice and sum. */
static void choose_one_by_one(const routing *r, int32_t *chosen, float *weight) {
    size_t count = r->spec->count;
    for (size_t i = 0; i < 2; i++) {
        size_t best = i == 1 && chosen[0] == 0 ? 1 : 0, near = 0;
        float sum = 0;
        for (size_t e = best + 1; e < count; e++)
            if (!(i == 1 && (size_t)chosen[0] == e) && r->scores[e] > r->scores[best]) best = e;
        float most = r->scores[best];
        for (size_t e = 0; e < count; e++) {
            float size = fabsf(r->scores[e]), against = size > most ? size : most;
            bool taken = i == 1 && (size_t)chosen[0] == e;
            if (!taken && !((most - r->scores[e]) / against > r->spec->nearness))
                r->choice[near++] = r->scores[e] - most;
        }
        r->kernels->exp(r->choice, r->choice, near);
        for (size_t e = 0; e < near; e++) sum += r->choice[e];
        chosen[i] = (int32_t)best;
        weight[i] = 1 / sum;
    }
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
    if (spec->product_cap > 0.0F) a->kernels->softcap(r.scores, spec->count, spec->product_cap);
    for (size_t e = 0; e < spec->count; e++)
        if (!isfinite(r.scores[e])) scaling = NAN;
    if (spec->one_by_one) {
        choose_one_by_one(&r, chosen, weight);
        for (size_t i = 0; i < spec->top_k; i++) weight[i] *= scaling;
        return;
    }
    /* Sigmoid and softmax keep the order of their inputs. So the router's products choose the same experts as the
     * scores. This holds if there are no groups, or if a group is rated by its best expert alone. There are two reasons
     * for choosing by products. Large products have equal sigmoids in float32, and the softmax need not be computed. */
    bool ordered = !weights->router_bias && (spec->groups < 2 || spec->groups_by_best);
    bool products = spec->scoring == FR_SCORING_SOFTMAX && ordered;
    if (ordered) memcpy(r.choice, r.scores, spec->count * sizeof *r.choice);
    if (spec->scoring == FR_SCORING_SIGMOID)
        score_sigmoid(&r);
    else if (!products)
        score_softmax(&r);
    for (size_t e = 0; e < spec->count && !ordered; e++)
        r.choice[e] = weights->router_bias ? r.scores[e] + weights->router_bias[e] : r.scores[e];
    if (spec->groups > 1) keep_best_groups(&r);
    a->kernels->topk(r.choice, spec->count, spec->top_k, chosen, r.scratch);
    sum = products ? weigh_products(&r, chosen, weight) : weigh_scores(&r, chosen, weight);
    for (size_t i = 0; i < spec->top_k; i++) {
        weight[i] /= sum;
        if (weights->scale) weight[i] *= weights->scale[chosen[i]];
        weight[i] *= scaling;
    }
}
