/* Drawing tokens: see sampler.h. */
#include "src/session/sampler.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sizes.h"
#include "kernels/double_math.h"
#include "src/session/noise.h"

/* ------------------------------------------------------------------------------------------------- settings, memory */

/* Below it the largest logit is certain, and its inverse must not overflow. */
#define COLDEST 1e-6

static bool penalizes(const fr_sampler *s) {
    return s->last_n && (s->repeat != 1 || s->presence != 0 || s->frequency != 0);
}

fr_status fr_sampler_set(fr_sampler *s, const fr_options *options, const fr_kernels *kernels, size_t vocab) {
    const double *number = options->number, temperature = number[FR_OPT_TEMPERATURE];
    int64_t last_n = options->value[FR_OPT_REPEAT_LAST_N], top_k = options->value[FR_OPT_TOP_K];
    *s = (fr_sampler){.kernels = kernels,
                      .vocab = vocab,
                      .rejection = temperature > 0 && options->value[FR_OPT_ACCEPT] == FR_ACCEPT_REJECTION,
                      .temperature = temperature > 0 && temperature < COLDEST ? COLDEST : temperature,
                      .top_p = number[FR_OPT_TOP_P],
                      .min_p = number[FR_OPT_MIN_P],
                      .repeat = number[FR_OPT_REPEAT_PENALTY],
                      .presence = number[FR_OPT_PRESENCE_PENALTY],
                      .frequency = number[FR_OPT_FREQUENCY_PENALTY],
                      .top_k = (size_t)top_k < vocab ? (size_t)top_k : 0,
                      .last_n = last_n < 0 ? SIZE_MAX : (size_t)last_n,
                      .seed = (uint64_t)options->value[FR_OPT_SEED],
                      .bias_count = options->bias_count};
    memcpy(s->biases, options->biases, sizeof s->biases);
    for (size_t i = 0; i < s->bias_count; i++)
        if ((size_t)s->biases[i].id >= vocab)
            return fr_fail(FR_INPUT, "logit bias: id %d is outside the vocabulary of %zu", s->biases[i].id, vocab);
    s->on = s->temperature > 0 || s->bias_count || penalizes(s);
    return FR_OK;
}

void fr_sampler_suppress(fr_sampler *s, const int32_t *ids, size_t count) {
    s->suppressed = ids;
    s->suppressed_count = count;
    s->on |= count > 0;
}

fr_status fr_sampler_mask(fr_sampler *s, fr_mask_fn *mask, void *context) {
    if (mask && !s->masked) s->masked = malloc(s->vocab * sizeof *s->masked);
    if (mask && !s->masked) return fr_fail_memory("masked logits", s->vocab * sizeof *s->masked);
    s->mask = mask;
    s->mask_context = context;
    s->mask_status = FR_OK;
    return FR_OK;
}

static void set_biases(fr_sampler *s) {
    for (size_t i = 0; i < s->bias_count; i++) s->bias[s->biases[i].id] = s->biases[i].bias;
    for (size_t i = 0; i < s->suppressed_count; i++) s->bias[s->suppressed[i]] = -INFINITY;
}

void fr_sampler_layout(fr_sampler *s, fr_arena *arena, size_t depths) {
    if (!s->on) return;
    s->logits = fr_arena_take(arena, s->vocab, sizeof *s->logits);
    if (s->temperature > 0) {
        s->ids = fr_arena_take(arena, s->vocab, sizeof *s->ids);
        s->scratch = fr_arena_take(arena, s->vocab, sizeof *s->scratch);
        s->weight = fr_arena_take(arena, s->vocab, sizeof *s->weight);
    }
    if (penalizes(s)) s->seen = fr_arena_take(arena, s->vocab, sizeof *s->seen);
    if (s->bias_count || s->suppressed_count) s->bias = fr_arena_take(arena, s->vocab, sizeof *s->bias);
    if (s->bias) set_biases(s);
    s->depths = s->rejection ? depths : 0;
    s->drafter = fr_arena_take(arena, s->depths, s->vocab * sizeof *s->drafter);
}

/* ----------------------------------------------------------------------------------------- penalties, bias, filters */

/* What a draw chooses from: candidates whose logit is above `lowest`, or equal to it with an id up to `last`. */
typedef struct choices {
    const float *logits;
    const int32_t *ids; /* NULL: candidate i is token i */
    size_t count;
    double largest, lowest;
    int32_t last;
    uint64_t position;
} choices;

static int32_t id_of(const choices *c, size_t candidate) {
    return c->ids ? c->ids[candidate] : (int32_t)candidate;
}

static bool stays(const choices *c, size_t i) {
    return c->logits[i] > c->lowest || (c->logits[i] == c->lowest && id_of(c, i) <= c->last);
}

/* Counts, or takes back what was counted of, the last tokens before the draw. */
static void count_past(fr_sampler *s, const fr_past *past, bool count) {
    size_t end = past->length + past->drafted, begin = end > s->last_n ? end - s->last_n : 0;
    for (size_t i = begin; i < end; i++) {
        uint32_t *seen = &s->seen[i < past->length ? past->ids[i] : past->drafts[i - past->length]];
        *seen = count ? *seen + 1 : 0;
    }
}

/* As llama.cpp does it: the repeat penalty moves a logit towards less, whatever its sign, once for any number of
 * occurrences. The clamp keeps logits finite. */
static float adjusted(const fr_sampler *s, float logit, uint32_t seen, int32_t id) {
    double x = logit;
    if (seen) {
        x = x > 0 ? x / s->repeat : x * s->repeat;
        x -= seen * s->frequency + s->presence;
    }
    if (s->bias) x += s->bias[id];
    return x > FLT_MAX ? FLT_MAX : (float)x;
}

/* Nothing but ids that the model keeps out: what adjusted() gives, without its arithmetic. */
static void ban(fr_sampler *s, choices *c) {
    memcpy(s->logits, c->logits, c->count * sizeof *s->logits);
    for (size_t i = 0; i < s->suppressed_count; i++) s->logits[s->suppressed[i]] = -INFINITY;
    c->logits = s->logits;
}

static void adjust(fr_sampler *s, choices *c, const fr_past *past) {
    if (!s->seen && !s->bias) return;
    if (!s->seen && !s->bias_count && !c->ids) {
        ban(s, c);
        return;
    }
    if (s->seen) count_past(s, past, true);
    for (size_t i = 0; i < c->count; i++) {
        int32_t id = id_of(c, i);
        s->logits[i] = adjusted(s, c->logits[i], s->seen ? s->seen[id] : 0, id);
    }
    if (s->seen) count_past(s, past, false);
    c->logits = s->logits;
}

/* Index of the largest logit, the first of equals; c->count if there is none above -infinity. */
static size_t find_largest(const fr_sampler *s, const choices *c) {
    int64_t at = s->kernels->argmax(c->logits, c->count);
    if (at >= 0) return (size_t)at;
    size_t best = c->count; /* something is not finite: ids that are not there */
    for (size_t i = 0; i < c->count; i++)
        if (c->logits[i] >= -FLT_MAX && (best == c->count || c->logits[i] > c->logits[best])) best = i;
    return best;
}

/* Keeps the k largest and what equals the last of them. */
static void filter_top_k(fr_sampler *s, choices *c) {
    if (s->top_k == 0 || s->top_k >= c->count) return;
    s->kernels->topk(c->logits, c->count, s->top_k, s->ids, s->scratch);
    float least = c->logits[s->ids[s->top_k - 1]];
    size_t kept = 0;
    for (size_t i = 0; i < c->count; i++) {
        if (!(c->logits[i] >= least)) continue;
        s->ids[kept] = id_of(c, i);
        s->logits[kept++] = c->logits[i];
    }
    c->logits = s->logits;
    c->ids = s->ids;
    c->count = kept;
}

/* The weights of all candidates; their sum. */
static double weigh(const fr_sampler *s, const choices *c) {
    double factor = 1 / s->temperature, total = 0;
    for (size_t i = 0; i < c->count; i++) s->weight[i] = (float)((c->logits[i] - c->largest) * factor);
    s->kernels->exp(s->weight, s->weight, c->count);
    for (size_t i = 0; i < c->count; i++) total += s->weight[i];
    return total;
}

/* A logit's place from above, as an integer: larger ones have smaller ranks, equal ones the same. And back. */
static uint32_t rank_of(float logit) {
    uint32_t bits;
    logit += 0.0f; /* -0 becomes +0 */
    memcpy(&bits, &logit, sizeof bits);
    return bits >> 31 ? bits : 0x7fffffff - bits;
}

static float logit_of(uint32_t rank) {
    float logit;
    uint32_t bits = rank >> 31 ? rank : 0x7fffffff - rank;
    memcpy(&logit, &bits, sizeof logit);
    return logit;
}

/* Of `count` candidates, the rank at which the sum of the weights, from the largest logit down, reaches the limit:
 * found digit by digit, without sorting. *before gets the sum ahead of that rank. */
static uint32_t rank_reaching(const fr_sampler *s, const choices *c, size_t count, double limit, double *before) {
    uint32_t prefix = 0;
    *before = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        double sums[256] = {0}, sum = *before;
        uint32_t digit = 0;
        bool found = false;
        for (size_t i = 0; i < count; i++) {
            uint32_t rank = rank_of(c->logits[s->scratch[i]]);
            if ((uint64_t)rank >> (shift + 8) == prefix) sums[rank >> shift & 255] += s->weight[s->scratch[i]];
        }
        for (uint32_t d = 0; d < 256 && !(found && sum >= limit); d++) {
            if (sums[d] == 0) continue;
            found = true;
            digit = d;
            *before = sum;
            sum += sums[d];
        }
        prefix = prefix << 8 | digit;
    }
    return prefix;
}

/* Of the candidates that equal `logit`, the `wanted`-th smallest id: by halving the range of ids. */
static int32_t id_reaching(const fr_sampler *s, const choices *c, size_t count, float logit, size_t wanted) {
    int32_t low = 0, high = (int32_t)s->vocab - 1;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        size_t below = 0;
        for (size_t i = 0; i < count; i++)
            below += c->logits[s->scratch[i]] == logit && id_of(c, (size_t)s->scratch[i]) <= middle;
        if (below >= wanted)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Keeps the fewest candidates, best first, that have at least top_p of all. Those that weigh less than (1 - top_p) of
 * the average can't be among them, which leaves few to look at. */
static void filter_top_p(fr_sampler *s, choices *c) {
    if (s->top_p >= 1) return;
    double total = weigh(s, c), least = (1 - s->top_p) * total / (double)c->count, before;
    size_t count = 0, equal = 0, wanted = 1;
    for (size_t i = 0; i < c->count; i++) {
        s->scratch[count] = (int32_t)i;
        count += s->weight[i] >= least;
    }
    float logit = logit_of(rank_reaching(s, c, count, s->top_p * total, &before)), weight = 0;
    for (size_t i = 0; i < count; i++) {
        if (c->logits[s->scratch[i]] != logit) continue;
        weight = s->weight[s->scratch[i]];
        equal++;
    }
    while (wanted < equal && before + (double)wanted * weight < s->top_p * total) wanted++;
    c->lowest = logit;
    if (wanted < equal) c->last = id_reaching(s, c, count, logit, wanted);
}

static void filter_min_p(const fr_sampler *s, choices *c) {
    if (s->min_p <= 0) return;
    double least = c->largest + s->temperature * fr_log_double(s->min_p);
    if (least <= c->lowest) return;
    c->lowest = least;
    c->last = INT32_MAX;
}

/* False: nothing is left. */
static bool filter(fr_sampler *s, const fr_scores *scores, const fr_past *past, choices *c) {
    *c = (choices){.logits = scores->logits,
                   .ids = scores->ids,
                   .count = scores->count,
                   .lowest = -FLT_MAX,
                   .last = INT32_MAX,
                   .position = past->length + past->drafted};
    adjust(s, c, past);
    size_t largest = find_largest(s, c);
    if (largest == c->count) return false;
    c->largest = c->logits[largest];
    if (s->temperature <= 0) {
        c->lowest = c->largest;
        return true;
    }
    filter_top_k(s, c);
    filter_top_p(s, c);
    filter_min_p(s, c);
    return true;
}

/* ------------------------------------------------------------------------------------------------------------ draws */

/* argmax of (logit - largest) / temperature + noise. Noise has a smallest and a largest value, so a logit far below the
 * best so far is passed by, and of the others only those whose word is large enough need its logarithms. */
static int32_t draw_gumbel(const fr_sampler *s, const choices *c) {
    double factor = 1 / s->temperature, best = FR_GUMBEL_MIN, least = c->lowest;
    uint32_t words[4], block = UINT32_MAX;
    int32_t chosen = -1;
    for (size_t i = 0; i < c->count; i++) {
        if (!(c->logits[i] >= least) || !stays(c, i)) continue;
        int32_t id = id_of(c, i);
        if ((uint32_t)id / 4 != block) fr_noise_words(s->seed, c->position, block = (uint32_t)id / 4, words);
        double x = (c->logits[i] - c->largest) * factor;
        if (x + fr_gumbel_bound(words[id % 4]) < best) continue;
        x += fr_gumbel(words[id % 4]);
        if (x < best || (x == best && id > chosen)) continue;
        chosen = id;
        best = x;
        least = c->largest + (best - FR_GUMBEL_MAX) * s->temperature;
    }
    return chosen;
}

/* Temperature 0: what is left are the equals of the largest logit. */
static int32_t draw_greedy(const choices *c) {
    int32_t chosen = -1;
    for (size_t i = 0; i < c->count; i++)
        if (stays(c, i) && (chosen < 0 || id_of(c, i) < chosen)) chosen = id_of(c, i);
    return chosen;
}

/* The weights of what the filters left, 0 for the others. */
static fr_distribution distribution_of(fr_sampler *s, const choices *c) {
    fr_distribution p = {.ids = c->ids, .weight = s->weight, .count = c->count};
    weigh(s, c);
    for (size_t i = 0; i < c->count; i++) {
        if (!stays(c, i)) s->weight[i] = 0;
        p.total += s->weight[i];
    }
    return p;
}

static double uniform(const fr_sampler *s, uint64_t position, fr_noise stream) {
    return fr_noise_uniform(s->seed, position, stream);
}

fr_distribution fr_sampler_distribution(fr_sampler *s, const fr_scores *scores, const fr_past *past) {
    choices c;
    if (!filter(s, scores, past, &c)) return (fr_distribution){0};
    return distribution_of(s, &c);
}

/* Greedy, with no penalty or bias: the largest logit, unless the model keeps its id out (-1). That spares nearly every
 * draw the other passes over all logits: 0.03 ms instead of 0.45 of 262144 (Zen 5). */
static int32_t draw_largest(const fr_sampler *s, const fr_scores *scores) {
    if (s->temperature > 0 || s->seen || s->bias_count || !s->suppressed_count || scores->ids) return -1;
    int64_t at = s->kernels->argmax(scores->logits, scores->count);
    return at >= 0 && s->bias[at] == 0 ? (int32_t)at : -1;
}

int32_t fr_sampler_draw(fr_sampler *s, const fr_scores *scores, const fr_past *past) {
    choices c;
    int32_t largest = draw_largest(s, scores);
    if (largest >= 0) return largest;
    if (!filter(s, scores, past, &c)) return -1;
    if (s->temperature <= 0) return draw_greedy(&c);
    if (!s->rejection) return draw_gumbel(s, &c);
    fr_distribution p = distribution_of(s, &c);
    return fr_sample(&p, uniform(s, c.position, FR_NOISE_RESIDUAL));
}

void fr_sampler_forget(fr_sampler *s) {
    s->known = 0;
}

static int32_t pick(void *sampler, const fr_scores *scores, const fr_past *past) {
    return fr_sampler_draft(sampler, scores, past);
}

static void keep(void *sampler, size_t depths) {
    fr_sampler *s = sampler;
    s->known = fr_smaller(s->known, depths);
}

static void tell(void *sampler, size_t depth, const float *weight, double sum) {
    fr_sampler *s = sampler;
    s->drafted[depth] = (fr_distribution){.weight = weight, .count = s->vocab, .total = sum};
    s->known = depth + 1;
}

fr_picker fr_sampler_picker(fr_sampler *sampler) {
    return (fr_picker){.compares = sampler->rejection, .pick = pick, .keep = keep, .tell = tell, .sampler = sampler};
}

int32_t fr_sampler_draft(fr_sampler *s, const fr_scores *scores, const fr_past *past) {
    if (!s->rejection) return fr_sampler_draw(s, scores, past);
    fr_distribution q = fr_sampler_distribution(s, scores, past);
    float *row = s->drafter + past->drafted * s->vocab;
    memset(row, 0, s->vocab * sizeof *row);
    for (size_t i = 0; i < q.count; i++) row[q.ids ? q.ids[i] : (int32_t)i] = q.weight[i];
    s->drafted[past->drafted] = (fr_distribution){.weight = row, .count = s->vocab, .total = q.total};
    s->known = past->drafted + 1;
    return fr_sample(&q, uniform(s, past->length + past->drafted, FR_NOISE_DRAFT));
}

/* One row under rejection: whether the draft stands; if not, or if there is none, *token is what comes instead. */
static bool judge(fr_sampler *s, const fr_scores *scores, const fr_past *past, const int32_t *draft, int32_t *token) {
    uint64_t position = past->length + past->drafted;
    const fr_distribution *q = past->drafted < s->known ? &s->drafted[past->drafted] : NULL;
    fr_distribution p = fr_sampler_distribution(s, scores, past);
    double u = uniform(s, position, FR_NOISE_RESIDUAL);
    if (!draft) {
        *token = fr_sample(&p, u);
        return false;
    }
    double drafted = q ? fr_probability(q, *draft) : 1;
    *token = *draft;
    if (fr_accept_draft(fr_probability(&p, *draft), drafted, uniform(s, position, FR_NOISE_ACCEPT))) return true;
    *token = fr_sample_residual(&p, q, *draft, u);
    return false;
}

/* The row as the mask leaves it; NULL: it has failed. Drafts lie behind the timeline's ids. */
static const float *masked(fr_sampler *s, const float *row, const fr_past *past) {
    if (!s->mask) return row;
    memcpy(s->masked, row, s->vocab * sizeof *row);
    s->mask_status = s->mask(s->mask_context, past->ids, past->length + past->drafted, s->masked, s->vocab);
    return s->mask_status == FR_OK ? s->masked : NULL;
}

size_t fr_sampler_verify(fr_sampler *s, const float *logits, const fr_past *past, int32_t *token) {
    fr_past before = *past;
    *token = -1;
    for (before.drafted = 0;; before.drafted++) {
        const fr_scores row = {.logits = masked(s, logits + before.drafted * s->vocab, &before), .count = s->vocab};
        if (!row.logits) return before.drafted;
        const int32_t *draft = before.drafted < past->drafted ? &past->drafts[before.drafted] : NULL;
        bool stands;
        if (s->rejection) {
            stands = judge(s, &row, &before, draft, token);
        } else {
            *token = fr_sampler_draw(s, &row, &before);
            stands = draft && *draft == *token;
        }
        if (!stands) return before.drafted;
    }
}
