/* Computes the log softmax of a few tokens: see logprobs.h. */
#include "src/engine/session/logprobs.h"

#include <math.h>

#include "kernels/double_math.h"

#define BLOCK ((size_t)1024)

/* The logits of tokens that a draw excludes are lowered by this number, so that these tokens rank below all others. */
#define BELOW 1e5f

void fr_logprobs_layout(fr_logprobs *l, fr_arena *arena, int64_t best, bool drawn, const fr_kernels *kernels,
                        size_t vocab) {
    *l = (fr_logprobs){.kernels = kernels, .vocab = vocab, .on = best >= 0, .drawn = drawn && best >= 0};
    if (!l->on) return;
    if (l->drawn) l->row = fr_arena_take(arena, vocab, sizeof *l->row);
    l->best = (size_t)best < vocab ? (size_t)best : vocab;
    l->ids = fr_arena_take(arena, FR_LOGPROBS_ROWS * l->best, sizeof *l->ids);
    l->values = fr_arena_take(arena, FR_LOGPROBS_ROWS * l->best, sizeof *l->values);
    l->scratch = fr_arena_take(arena, vocab, sizeof *l->scratch);
}

/* Gives the logarithm of the sum of exp(logits - largest). */
static double log_sum(const fr_logprobs *l, const float *logits, float largest) {
    double sum = 0;
    for (size_t from = 0; from < l->vocab; from += BLOCK) {
        float part[BLOCK];
        size_t count = l->vocab - from < BLOCK ? l->vocab - from : BLOCK;
        for (size_t i = 0; i < count; i++) part[i] = logits[from + i] - largest;
        l->kernels->exp(part, part, count);
        for (size_t i = 0; i < count; i++) sum += part[i];
    }
    return fr_log_double(sum);
}

static float chance_of(float value) {
    return value > -BELOW / 2 ? value : -INFINITY;
}

void fr_logprobs_draw(fr_logprobs *l, size_t row, const fr_distribution *p, const float *logits) {
    int32_t *best = l->ids + row * l->best;
    float *values = l->values + row * l->best;
    for (size_t i = 0; i < l->vocab; i++) l->row[i] = logits[i] - BELOW;
    for (size_t i = 0; i < p->count; i++) {
        double chance = p->weight[i] / p->total;
        if (chance > 0) l->row[p->ids ? (size_t)p->ids[i] : i] = (float)fr_log_double(chance);
    }
    if (l->best) l->kernels->topk(l->row, l->vocab, l->best, best, l->scratch);
    for (size_t i = 0; i < l->best; i++) values[i] = chance_of(l->row[best[i]]);
}

void fr_logprobs_drew(fr_logprobs *l, size_t row, int32_t id) {
    l->own[row] = id >= 0 ? chance_of(l->row[id]) : NAN;
}

/* Computes the log softmax of one row's logits. */
static void compute_row(fr_logprobs *l, size_t r, const float *logits, int32_t id) {
    int32_t *best = l->ids + r * l->best;
    float *values = l->values + r * l->best, largest = logits[l->kernels->argmax(logits, l->vocab)];
    double below = log_sum(l, logits, largest);
    if (l->best) l->kernels->topk(logits, l->vocab, l->best, best, l->scratch);
    for (size_t i = 0; i < l->best; i++) values[i] = (float)((double)logits[best[i]] - largest - below);
    l->own[r] = (float)((double)logits[id] - largest - below);
}

void fr_logprobs_take(fr_logprobs *l, const float *logits, const int32_t *ids, size_t count) {
    if (!l->on) return;
    l->count = count;
    for (size_t r = 0; r < count && !l->drawn; r++) compute_row(l, r, logits + r * l->vocab, ids[r]);
}

fr_status fr_logprobs_score(fr_logprobs *l, const float *logits, int32_t id, fr_score_fn *sink, void *context) {
    size_t row = FR_LOGPROBS_ROWS - 1;
    compute_row(l, row, logits, id);
    return sink(context, id, l->own[row], l->ids + row * l->best, l->values + row * l->best, l->best);
}

void fr_logprobs_forget(fr_logprobs *l) {
    l->count = 0;
}
