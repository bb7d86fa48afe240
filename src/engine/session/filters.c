/* Filters candidates before a draw: see filters.h. */
#include "src/engine/session/filters.h"

#include <float.h>
#include <string.h>

#include "kernels/double_math.h"
#include "src/engine/session/noise.h"

#define LN2 0x1.62e42fefa39efp-1

/* The lowest temperature. It is so low that only the largest logit has any weight, but its inverse does not overflow
 * yet. */
#define COLDEST 1e-6

/* ---------------------------------------------------------------------------------------------------------- choices */

int32_t fr_choice_id(const fr_choices *c, size_t candidate) {
    return c->ids ? c->ids[candidate] : (int32_t)candidate;
}

bool fr_choice_stays(const fr_choices *c, size_t i) {
    return c->logits[i] > c->lowest || (c->logits[i] == c->lowest && fr_choice_id(c, i) <= c->last);
}

double fr_choices_weigh(const fr_sampler *s, const fr_choices *c) {
    double factor = 1 / c->temperature, total = 0;
    for (size_t i = 0; i < c->count; i++) s->weight[i] = (float)((c->logits[i] - c->largest) * factor);
    s->kernels->exp(s->weight, s->weight, c->count);
    for (size_t i = 0; i < c->count; i++) total += s->weight[i];
    return total;
}

/* Appends candidate i to the *kept candidates in the sampler's arrays. If c's candidates are in these arrays too, no
 * candidate after i is overwritten, because at most i candidates were kept before. */
static void keep(fr_sampler *s, const fr_choices *c, size_t i, size_t *kept) {
    s->ids[*kept] = fr_choice_id(c, i);
    s->logits[(*kept)++] = c->logits[i];
}

/* Makes c describe the first `kept` candidates in the sampler's arrays. */
static void become(const fr_sampler *s, fr_choices *c, size_t kept) {
    c->logits = s->logits;
    c->ids = s->ids;
    c->count = kept;
    c->lowest = -FLT_MAX;
    c->last = INT32_MAX;
}

static void find_largest(fr_choices *c) {
    c->largest = -FLT_MAX;
    for (size_t i = 0; i < c->count; i++)
        if (c->logits[i] > c->largest) c->largest = c->logits[i];
}

/* Removes the candidates below the limit c->lowest from the list, because the next filter counts candidates. */
static void settle(fr_sampler *s, fr_choices *c) {
    size_t kept = 0;
    if (c->lowest == -FLT_MAX) return;
    for (size_t i = 0; i < c->count; i++)
        if (fr_choice_stays(c, i)) keep(s, c, i, &kept);
    become(s, c, kept);
}

/* Sets the limit to `lowest` if the present limit is lower. */
static void raise_limit(fr_choices *c, double lowest) {
    if (lowest <= c->lowest) return;
    c->lowest = lowest;
    c->last = INT32_MAX;
}

/* Gives the entropy of the weights, whose sum is `total`. A weight of 0 adds nothing. */
static double entropy(const fr_sampler *s, const fr_choices *c, double total) {
    double factor = 1 / c->temperature, sum = 0;
    for (size_t i = 0; i < c->count; i++)
        if (s->weight[i] > 0) sum += s->weight[i] * ((c->logits[i] - c->largest) * factor);
    return fr_log_double(total) - sum / total;
}

/* ------------------------------------------------------------------------------------------ order of the candidates */

/* rank_of converts a key to its rank, an integer, and key_of converts a rank back. Larger keys have smaller ranks,
 * equal keys have equal ranks. */
static uint32_t rank_of(float key) {
    uint32_t bits;
    key += 0.0f; /* -0 becomes +0 */
    memcpy(&bits, &key, sizeof bits);
    return bits >> 31 ? bits : 0x7fffffff - bits;
}

static float key_of(uint32_t rank) {
    float key;
    uint32_t bits = rank >> 31 ? rank : 0x7fffffff - rank;
    memcpy(&key, &bits, sizeof key);
    return key;
}

/* Adds up the weights from the largest key down, and finds the rank at which the sum reaches the limit. The candidates
 * are the first `count` in s->scratch. The rank is found byte by byte, without sorting. *before gets the sum of the
 * weights before that rank. */
static uint32_t rank_reaching(const fr_sampler *s, const float *keys, size_t count, double limit, double *before) {
    uint32_t prefix = 0;
    *before = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        double sums[256] = {0}, sum = *before;
        uint32_t digit = 0;
        bool found = false;
        for (size_t i = 0; i < count; i++) {
            uint32_t rank = rank_of(keys[s->scratch[i]]);
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

/* Finds the `wanted`-th smallest id among the listed candidates that equal `logit`, by halving the range of ids. */
static int32_t id_reaching(const fr_sampler *s, const fr_choices *c, size_t count, float logit, size_t wanted) {
    int32_t low = 0, high = (int32_t)s->vocab - 1;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        size_t below = 0;
        for (size_t i = 0; i < count; i++)
            below += c->logits[s->scratch[i]] == logit && fr_choice_id(c, (size_t)s->scratch[i]) <= middle;
        if (below >= wanted)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* ---------------------------------------------------------------------------------------------------------- filters */

/* Keeps the logits that are at most top_n_sigma standard deviations below the largest logit. */
static void filter_top_n_sigma(fr_sampler *s, fr_choices *c) {
    double sum = 0, squares = 0;
    size_t count = 0;
    settle(s, c);
    for (size_t i = 0; i < c->count; i++) {
        if (!(c->logits[i] >= -FLT_MAX)) continue;
        sum += c->logits[i];
        count++;
    }
    double mean = sum / (double)count;
    for (size_t i = 0; i < c->count; i++)
        if (c->logits[i] >= -FLT_MAX) squares += (c->logits[i] - mean) * (c->logits[i] - mean);
    double variance = squares / (double)count;
    if (variance > 0) raise_limit(c, c->largest - s->set.top_n_sigma * fr_exp_double(0.5 * fr_log_double(variance)));
}

/* Gives the k-th largest logit. The top-k kernel is faster, but writes ids to s->ids. If the candidates' own ids are
 * there, the kernel must not be used, and the logit is found by its rank. */
static float kth_largest(const fr_sampler *s, const fr_choices *c) {
    double before;
    if (c->ids != s->ids) {
        s->kernels->topk(c->logits, c->count, (size_t)s->set.top_k, s->ids, s->scratch);
        return c->logits[s->ids[s->set.top_k - 1]];
    }
    for (size_t i = 0; i < c->count; i++) {
        s->scratch[i] = (int32_t)i;
        s->weight[i] = 1;
    }
    return key_of(rank_reaching(s, c->logits, c->count, (double)s->set.top_k, &before));
}

/* Keeps the k largest logits, and all other logits that equal the smallest of these. */
static void filter_top_k(fr_sampler *s, fr_choices *c) {
    size_t kept = 0;
    settle(s, c);
    if ((size_t)s->set.top_k >= c->count) return;
    float least = kth_largest(s, c);
    for (size_t i = 0; i < c->count; i++)
        if (c->logits[i] >= least) keep(s, c, i, &kept);
    become(s, c, kept);
}

/* Keeps the most typical candidates: the fewest whose probabilities sum to more than the limit, and all others that are
 * exactly as typical as the last of these. */
static void filter_typical(fr_sampler *s, fr_choices *c) {
    settle(s, c);
    double total = fr_choices_weigh(s, c), factor = 1 / c->temperature, before;
    double expected = fr_log_double(total) - entropy(s, c, total);
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < c->count; i++) {
        if (!(s->weight[i] > 0)) continue;
        double off = (c->logits[i] - c->largest) * factor - expected;
        s->nearness[i] = (float)(off < 0 ? off : -off);
        s->scratch[count++] = (int32_t)i;
    }
    double more = s->set.typical_p * total * (1 + 0x1p-52);
    float least = key_of(rank_reaching(s, s->nearness, count, more, &before));
    for (size_t i = 0; i < c->count; i++)
        if (s->weight[i] > 0 && s->nearness[i] >= least) keep(s, c, i, &kept);
    become(s, c, kept);
    find_largest(c);
}

/* Keeps the fewest candidates, best first, whose probabilities sum to at least top_p. A candidate that weighs less than
 * (1 - top_p) of the average can't be among them, so few candidates must be examined. */
static void filter_top_p(fr_sampler *s, fr_choices *c) {
    settle(s, c);
    double total = fr_choices_weigh(s, c), least = (1 - s->set.top_p) * total / (double)c->count, before;
    size_t count = 0, equal = 0, wanted = 1;
    for (size_t i = 0; i < c->count; i++) {
        s->scratch[count] = (int32_t)i;
        count += s->weight[i] >= least;
    }
    float logit = key_of(rank_reaching(s, c->logits, count, s->set.top_p * total, &before)), weight = 0;
    for (size_t i = 0; i < count; i++) {
        if (c->logits[s->scratch[i]] != logit) continue;
        weight = s->weight[s->scratch[i]];
        equal++;
    }
    while (wanted < equal && before + (double)wanted * weight < s->set.top_p * total) wanted++;
    c->lowest = logit;
    if (wanted < equal) c->last = id_reaching(s, c, count, logit, wanted);
}

static void filter_min_p(fr_sampler *s, fr_choices *c) {
    raise_limit(c, c->largest + c->temperature * fr_log_double(s->set.min_p));
}

/* Removes all candidates whose probability reaches the threshold, except the last of them in the order of logits and
 * then ids. This happens only if the position's random number is at most xtc_probability. */
static void filter_xtc(fr_sampler *s, fr_choices *c) {
    if (fr_noise_uniform(s->seed, c->position, FR_NOISE_XTC) > s->set.xtc_probability) return;
    settle(s, c);
    double least = s->set.xtc_threshold * fr_choices_weigh(s, c);
    size_t last = c->count, kept = 0;
    for (size_t i = 0; i < c->count; i++) {
        if (!(s->weight[i] >= least) || !fr_choice_stays(c, i)) continue;
        bool later =
            last < c->count && (c->logits[i] < c->logits[last] ||
                                (c->logits[i] == c->logits[last] && fr_choice_id(c, i) > fr_choice_id(c, last)));
        if (last == c->count || later) last = i;
    }
    if (last == c->count) return;
    for (size_t i = 0; i < c->count; i++)
        if (i == last || !(s->weight[i] >= least)) keep(s, c, i, &kept);
    become(s, c, kept);
    find_largest(c);
}

/* Gives a temperature within the range. The temperature grows with the entropy of the remaining candidates, divided by
 * the largest entropy that so many candidates can have. */
static double dynamic_temperature(fr_sampler *s, fr_choices *c) {
    double low = s->set.temperature > s->set.dynatemp_range ? s->set.temperature - s->set.dynatemp_range : 0;
    double high = s->set.temperature + s->set.dynatemp_range;
    settle(s, c);
    if (c->count < 2) return 1;
    double share = entropy(s, c, fr_choices_weigh(s, c)) / fr_log_double((double)c->count);
    double power = share > 0x1p-1000 ? s->set.dynatemp_exponent * fr_log_double(share) : -1000;
    if (s->set.dynatemp_exponent == 0) return high;
    return low + (high - low) * (power > -700 ? fr_exp_double(power) : 0);
}

static void filter_temperature(fr_sampler *s, fr_choices *c) {
    double t = s->set.dynatemp_range > 0 ? dynamic_temperature(s, c) : s->set.temperature;
    if (t <= 0) raise_limit(c, c->largest);
    c->temperature = t > 0 && t < COLDEST ? COLDEST : t;
}

/* Keeps the candidates whose surprise, in bits, is at most the bound. The best candidate is always kept. */
static void filter_mirostat(fr_sampler *s, fr_choices *c) {
    if (c->temperature <= 0) return;
    double lowest = c->largest + c->temperature * (fr_log_double(fr_choices_weigh(s, c)) - s->mu * LN2);
    if (lowest <= c->largest) {
        raise_limit(c, lowest);
        return;
    }
    raise_limit(c, c->largest);
    c->last = -1;
    for (size_t i = 0; i < c->count; i++)
        if (c->logits[i] == c->largest && (c->last < 0 || fr_choice_id(c, i) < c->last)) c->last = fr_choice_id(c, i);
}

double fr_mirostat_next(const fr_sampler *s, const fr_choices *c, int32_t id) {
    double total = 0, factor = 1 / c->temperature;
    if (c->temperature <= 0 || id < 0) return s->mu;
    fr_choices_weigh(s, c);
    for (size_t i = 0; i < c->count; i++)
        if (fr_choice_stays(c, i)) total += s->weight[i];
    double surprise = (fr_log_double(total) - (c->logits[id] - c->largest) * factor) / LN2;
    return s->mu - s->set.mirostat_eta * (surprise - s->set.mirostat_tau);
}

/* -------------------------------------------------------------------------------------------------------- the chain */

/* samplers.def lists the samplers in the default order. Mirostat has an order of its own. */
static const uint8_t usual_order[] = {
#define FR_SAMPLER(id, word, letter, run, drops_best, works) FR_FILTER_##id,
#include "samplers.def"
};
static const uint8_t mirostat_order[] = {FR_FILTER_TEMPERATURE, FR_FILTER_MIROSTAT};

void fr_filters_choose(fr_sampler *s, const fr_options *options) {
    static const bool drops_best[FR_FILTER_COUNT] = {
#define FR_SAMPLER(id, word, letter, run, drops_best, works) drops_best,
#include "samplers.def"
    };
    const bool does_something[FR_FILTER_COUNT] = {
#define FR_SAMPLER(id, word, letter, run, drops_best, works) works,
#define FR_SAMPLER_INSTEAD(id, run)                          true,
#include "samplers.def"
    };
    const uint8_t *order = usual_order;
    size_t count = sizeof usual_order;
    if (options->filters_given) {
        order = options->filters;
        count = options->filter_count;
    }
    if (s->mirostat) {
        order = mirostat_order;
        count = sizeof mirostat_order;
    }
    s->selects = s->draws;
    for (size_t i = 0; i < count; i++) {
        if (!does_something[order[i]]) continue;
        s->filters[s->filter_count++] = order[i];
        s->selects |= drops_best[order[i]];
    }
}

void fr_filters_run(fr_sampler *s, fr_choices *c) {
    typedef void filter(fr_sampler * s, fr_choices * c);
    static filter *const filters[FR_FILTER_COUNT] = {
#define FR_SAMPLER(id, word, letter, run, drops_best, works) run,
#define FR_SAMPLER_INSTEAD(id, run)                          run,
#include "samplers.def"
    };
    /* Runs the filters. At temperature 0 only the largest logits are left, so no further filter is needed. */
    for (size_t i = 0; i < s->filter_count && c->temperature > 0; i++)
        if (filters[s->filters[i]]) filters[s->filters[i]](s, c);
}
