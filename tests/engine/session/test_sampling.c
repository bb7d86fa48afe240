/* Tests sampling. The random generator, noise, filters, penalties, decisions and distributions are compared with values
 * that numpy computed; tests/data/sampling has these values and the scripts. Log-probabilities are compared with those
 * of transformers' logits. Distributions are tested with 200,000 samples per case, for both ways of accepting drafts,
 * by a chi-square test with a significance level of 1e-5. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/dispatch.h"
#include "src/engine/session/noise.h"
#include "src/engine/session/sampler.h"
#include "src/engine/session/state.h"
#include "tests/support/alloc_guard.h"
#include "tests/support/brief.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

#define DATA  "tests/data/sampling/"
#define VOCAB 64 /* vocabulary of the largest case */

/* Returns the number of samples per case. An emulator is slow, so it gets fewer. Its arithmetic is the same. */
static size_t draw_count(void) {
    return getenv("FORERUN_EMULATOR") ? 5000 : 200000;
}

static json_t *distributions, *cases;

static void read_files(void) {
    ck_assert_int_eq(fr_json_read(DATA "distributions.json", 1 << 20, &distributions), FR_OK);
    ck_assert_int_eq(fr_json_read(DATA "cases.json", 1 << 20, &cases), FR_OK);
}

static void free_files(void) {
    json_decref(distributions);
    json_decref(cases);
}

/* ------------------------------------------------------------------------------------------------ reading the cases */

static size_t doubles_of(const json_t *array, double *values) {
    size_t count = json_array_size(array);
    ck_assert_uint_le(count, VOCAB);
    for (size_t i = 0; i < count; i++) values[i] = json_number_value(json_array_get(array, i));
    return count;
}

static size_t floats_of(const json_t *array, float *values) {
    double wide[VOCAB];
    size_t count = doubles_of(array, wide);
    for (size_t i = 0; i < count; i++) values[i] = (float)wide[i];
    return count;
}

static void set_number(fr_options *options, const json_t *params, const char *name, fr_option option) {
    const json_t *value = json_object_get(params, name);
    if (!value) return;
    if (json_is_integer(value))
        require(fr_options_set(options, option, json_integer_value(value)));
    else
        require(fr_options_set_number(options, option, json_real_value(value)));
}

/* Returns the options of a case. The temperature is 1 unless the case sets another one. The references apply the
 * temperature before the filters, so the options select this order. */
static fr_options *options_of(const json_t *params, bool rejection) {
    fr_options *options = fr_options_new();
    size_t i;
    const json_t *bias;
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, 1));
    require(fr_options_set_text(options, FR_OPT_SAMPLERS, "edtkpm"));
    set_number(options, params, "temperature", FR_OPT_TEMPERATURE);
    set_number(options, params, "top_k", FR_OPT_TOP_K);
    set_number(options, params, "top_p", FR_OPT_TOP_P);
    set_number(options, params, "min_p", FR_OPT_MIN_P);
    set_number(options, params, "repeat", FR_OPT_REPEAT_PENALTY);
    set_number(options, params, "presence", FR_OPT_PRESENCE_PENALTY);
    set_number(options, params, "frequency", FR_OPT_FREQUENCY_PENALTY);
    set_number(options, params, "repeat_last_n", FR_OPT_REPEAT_LAST_N);
    json_array_foreach (json_object_get(params, "bias"), i, bias) {
        char text[64];
        snprintf(text, sizeof text, "%d:%g", (int)json_integer_value(json_array_get(bias, 0)),
                 json_number_value(json_array_get(bias, 1)));
        require(fr_options_set_text(options, FR_OPT_LOGIT_BIAS, text));
    }
    if (rejection) require(fr_options_set_text(options, FR_OPT_ACCEPT, "rejection"));
    return options;
}

/* A sampler, with the memory for past tokens that it needs. */
typedef struct drawer {
    fr_sampler sampler;
    fr_arena arena;
} drawer;

static void open_drawer(drawer *d, fr_options *options, size_t vocab) {
    const fr_kernels *kernels;
    require(fr_kernels_select(NULL, &kernels));
    require(fr_sampler_set(&d->sampler, options, kernels, vocab));
    d->arena = (fr_arena){0};
    fr_sampler_layout(&d->sampler, &d->arena, FR_STEP_MAX - 1);
    size_t size = d->arena.used;
    require(fr_arena_open(&d->arena, size, "sampler"));
    fr_sampler_layout(&d->sampler, &d->arena, FR_STEP_MAX - 1);
    fr_options_free(options);
}

/* Writes the probability of each id of the vocabulary. An id that the distribution leaves out gets probability 0. */
static void spread(const fr_distribution *p, double *probability, size_t vocab) {
    for (size_t i = 0; i < vocab; i++) probability[i] = 0;
    for (size_t i = 0; i < p->count; i++) probability[p->ids ? p->ids[i] : (int32_t)i] = p->weight[i] / p->total;
}

/* -------------------------------------------------------------------------------------------------------- generator */

START_TEST(philox_gives_the_published_words) {
    size_t at;
    const json_t *known;
    json_array_foreach (json_object_get(cases, "philox"), at, known) {
        uint32_t counter[4], key[2], words[4], got[4];
        for (size_t i = 0; i < 4; i++) {
            counter[i] = (uint32_t)json_integer_value(json_array_get(json_object_get(known, "counter"), i));
            words[i] = (uint32_t)json_integer_value(json_array_get(json_object_get(known, "words"), i));
        }
        for (size_t i = 0; i < 2; i++)
            key[i] = (uint32_t)json_integer_value(json_array_get(json_object_get(known, "key"), i));
        fr_philox(counter, key, got);
        ck_assert_mem_eq(got, words, sizeof got);
    }
    ck_assert_uint_eq(at, 3);
}
END_TEST

START_TEST(gumbel_noise_is_numpys_and_within_its_bounds) {
    size_t at;
    const json_t *pair;
    json_array_foreach (json_object_get(cases, "gumbel"), at, pair) {
        uint32_t word = (uint32_t)json_integer_value(json_array_get(pair, 0));
        double expected = json_real_value(json_array_get(pair, 1)), got = fr_gumbel(word);
        ck_assert_double_le(fabs(got - expected), 4e-15 * (1 + fabs(expected)));
    }
    for (uint64_t word = 0; word <= UINT32_MAX; word += word < 1000 || word > UINT32_MAX - 1000 ? 1 : 99991) {
        double got = fr_gumbel((uint32_t)word), bound = fr_gumbel_bound((uint32_t)word);
        if (got < FR_GUMBEL_MIN || got > bound || bound > FR_GUMBEL_MAX) ck_abort_msg("word %u", (unsigned)word);
    }
}
END_TEST

/* There are 4 streams of random numbers. Their numbers at 500 positions and with 2 seeds must all be different, be in
 * (0, 1), and have the mean 1/2. */
START_TEST(streams_positions_and_seeds_are_apart) {
    enum { POSITIONS = 500, ALL = 4 * POSITIONS * 2 };
    static double all[ALL];
    double sum = 0;
    size_t count = 0;
    for (int stream = FR_NOISE_GUMBEL; stream <= FR_NOISE_RESIDUAL; stream++)
        for (uint64_t position = 0; position < POSITIONS; position++)
            for (uint64_t seed = 0; seed < 2; seed++) {
                double u = all[count++] = fr_noise_uniform(seed << 32, position, (fr_noise)stream);
                sum += u;
                bool apart = u > 0 && u < 1;
                for (size_t i = 0; i + 1 < count; i++) apart = apart && all[i] != u;
                ck_assert(apart);
            }
    ck_assert_double_le(fabs(sum / ALL - 0.5), 4 * sqrt(1.0 / 12 / ALL));
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------- filters */

static void check_probabilities(drawer *d, const fr_scores *scores, const fr_past *past, const json_t *expected) {
    double want[VOCAB], got[VOCAB];
    size_t vocab = doubles_of(expected, want);
    fr_distribution p = fr_sampler_distribution(&d->sampler, scores, past);
    spread(&p, got, vocab);
    for (size_t i = 0; i < vocab; i++) {
        ck_assert_msg((got[i] == 0) == (want[i] == 0), "id %zu: %g, not %g", i, got[i], want[i]);
        ck_assert_msg(fabs(got[i] - want[i]) <= 1e-6, "id %zu: %.9g, not %.9g", i, got[i], want[i]);
    }
}

START_TEST(filters_leave_the_reference_distributions) {
    size_t at;
    const json_t *one;
    json_array_foreach (json_object_get(distributions, "filters"), at, one) {
        static drawer d;
        float logits[VOCAB];
        const json_t *params = json_object_get(one, "params"), *probs = json_object_get(one, "probs");
        fr_scores scores = {.logits = logits, .count = floats_of(json_object_get(one, "logits"), logits)};
        const fr_past past = {0};
        open_drawer(&d, options_of(params, false), scores.count);
        if (d.sampler.set.temperature > 0)
            check_probabilities(&d, &scores, &past, probs);
        else
            ck_assert(!d.sampler.on); /* at temperature 0 the session itself takes the largest logit */
        fr_arena_close(&d.arena);
    }
    ck_assert_uint_eq(at, 120);
}
END_TEST

static int32_t *past_of(const json_t *one, fr_past *past, size_t drafted) {
    size_t count;
    int32_t *ids = fr_json_ids_of(json_object_get(one, "past"), &count);
    *past = (fr_past){.ids = ids, .length = count - drafted, .drafts = ids + count - drafted, .drafted = drafted};
    return ids;
}

START_TEST(penalties_bias_and_draws_are_numpys) {
    size_t at, i;
    const json_t *one, *draw;
    json_array_foreach (json_object_get(cases, "draws"), at, one) {
        static drawer d;
        float logits[VOCAB];
        fr_past past;
        int32_t *ids = past_of(one, &past, at % 4); /* some past ids are passed as drafts */
        fr_scores scores = {.logits = logits, .count = floats_of(json_object_get(one, "logits"), logits)};
        json_array_foreach (json_object_get(one, "draws"), i, draw) {
            fr_options *options = options_of(json_object_get(one, "params"), false);
            require(fr_options_set(options, FR_OPT_SEED, json_integer_value(json_array_get(draw, 0))));
            open_drawer(&d, options, scores.count);
            int32_t want = (int32_t)json_integer_value(json_array_get(draw, 1));
            ck_assert_int_eq(fr_sampler_draw(&d.sampler, &scores, &past), want);
            ck_assert_int_eq(fr_sampler_draw(&d.sampler, &scores, &past), want); /* a draw changes no state */
            if (d.sampler.set.temperature > 0) check_probabilities(&d, &scores, &past, json_object_get(one, "probs"));
            fr_arena_close(&d.arena);
        }
        free(ids);
    }
    ck_assert_uint_eq(at, 24);
}
END_TEST

/* A candidate of a vocabulary of MANY ids, in which many candidates have equal logits. The tests sort the candidates
 * by best_first and compare the sampler's filters with the sorted list. */
typedef struct ranked {
    float logit;
    int32_t id;
} ranked;

static int best_first(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->logit != y->logit) return x->logit < y->logit ? 1 : -1;
    return x->id < y->id ? -1 : 1;
}

enum { MANY = 5000 };

static void random_row(uint64_t row, float *logits, int32_t *ids, ranked *order) {
    for (size_t i = 0; i < MANY; i++) {
        ids[i] = (int32_t)((i * 1999 + 17) % MANY);
        double u = fr_noise_uniform(row, i, FR_NOISE_DRAFT);
        logits[i] = (float)rint(-12 * log(u)) / (row % 2 ? 4 : 1024);
        order[i] = (ranked){logits[i], ids[i]};
    }
    qsort(order, MANY, sizeof *order, best_first);
}

/* Returns how many of the sorted candidates remain when the filters are applied by their definitions. */
static size_t count_staying(const ranked *order, double top_p, size_t top_k, double min_p) {
    size_t most = MANY;
    if (top_k) {
        most = top_k;
        while (most < MANY && order[most].logit == order[top_k - 1].logit) most++;
    }
    double total = 0, before = 0;
    for (size_t i = 0; i < most; i++) total += exp((double)order[i].logit - order[0].logit);
    size_t kept = 0;
    for (; kept < most && (kept == 0 || top_p >= 1 || before < top_p * total); kept++)
        before += exp((double)order[kept].logit - order[0].logit);
    while (kept && exp((double)order[kept - 1].logit - order[0].logit) < min_p) kept--;
    return kept;
}

START_TEST(selecting_without_sorting_keeps_what_sorting_keeps) {
    static const struct {
        double top_p, min_p;
        int top_k;
    } settings[] = {{0.3, 0, 0}, {0.9, 0, 0}, {0.99, 0, 0}, {0.9, 0, 50}, {1, 0, 700}, {0, 0, 0}, {1, 0.03, 0}};
    static float logits[MANY];
    static int32_t ids[MANY];
    static ranked order[MANY];
    for (uint64_t row = 0; row < 14; row++) {
        static drawer d;
        fr_options *options = options_of(NULL, false);
        size_t setting = row % 7;
        require(fr_options_set_number(options, FR_OPT_TOP_P, settings[setting].top_p));
        require(fr_options_set_number(options, FR_OPT_MIN_P, settings[setting].min_p));
        require(fr_options_set(options, FR_OPT_TOP_K, settings[setting].top_k));
        open_drawer(&d, options, MANY);
        random_row(row, logits, ids, order);
        size_t want =
            count_staying(order, settings[setting].top_p, (size_t)settings[setting].top_k, settings[setting].min_p);
        static double got[MANY];
        const fr_scores scores = {.logits = logits, .ids = ids, .count = MANY};
        fr_distribution p = fr_sampler_distribution(&d.sampler, &scores, &(fr_past){0});
        spread(&p, got, MANY);
        for (size_t i = 0; i < MANY; i++)
            if ((got[order[i].id] > 0) != (i < want)) ck_abort_msg("row %d: place %zu of %zu", (int)row, i, want);
        fr_arena_close(&d.arena);
    }
}
END_TEST

/* top-p 0.75 keeps the first two of the probabilities 0.5, 0.3 and 0.2. If a temperature of 2 were applied first, top-p
 * would keep all three. So the result shows that top-p runs before the temperature. */
START_TEST(the_default_order_filters_before_the_temperature) {
    static drawer d;
    float logits[3] = {logf(0.5f), logf(0.3f), logf(0.2f)};
    double got[3];
    fr_options *options = fr_options_new();
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, 2));
    require(fr_options_set_number(options, FR_OPT_TOP_P, 0.75));
    open_drawer(&d, options, 3);
    const fr_scores scores = {.logits = logits, .count = 3};
    fr_distribution p = fr_sampler_distribution(&d.sampler, &scores, &(fr_past){0});
    spread(&p, got, 3);
    ck_assert_double_eq_tol(got[0], sqrt(0.5) / (sqrt(0.5) + sqrt(0.3)), 1e-6);
    ck_assert_double_eq_tol(got[1], sqrt(0.3) / (sqrt(0.5) + sqrt(0.3)), 1e-6);
    ck_assert(got[2] == 0);
    fr_arena_close(&d.arena);
}
END_TEST

START_TEST(passing_by_hopeless_tokens_changes_no_draw) {
    static float logits[MANY];
    static int32_t ids[MANY];
    static ranked order[MANY];
    static drawer d;
    fr_options *options = options_of(NULL, false);
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, 0.9));
    open_drawer(&d, options, MANY);
    for (uint64_t row = 0; row < 40; row++) {
        random_row(row, logits, ids, order);
        double best = -INFINITY;
        int32_t want = -1;
        for (size_t i = 0; i < MANY; i++) {
            uint32_t words[4];
            fr_noise_words(0, row, (uint32_t)order[i].id / 4, words);
            double u = (words[order[i].id % 4] + 0.5) / 4294967296.0;
            double score = order[i].logit / 0.9 - log(-log(u));
            if (score > best) want = order[i].id;
            if (score > best) best = score;
        }
        fr_past past = {.length = row};
        const fr_scores scores = {.logits = logits, .ids = ids, .count = MANY};
        ck_assert_int_eq(fr_sampler_draw(&d.sampler, &scores, &past), want);
    }
    fr_arena_close(&d.arena);
}
END_TEST

START_TEST(banned_tokens_are_never_drawn) {
    static drawer d;
    float logits[5] = {9, 8, 7, 6, 5};
    fr_scores scores = {.logits = logits, .count = 5};
    const char *const bans[] = {"0-inf,1-inf", "2:-inf,3:-inf,4:-inf", "0-inf,1-inf,2-inf,3-inf,4-inf"};
    for (size_t i = 0; i < 3; i++)
        for (int hot = 0; hot < 2; hot++) {
            fr_options *options = options_of(NULL, false);
            require(fr_options_set_number(options, FR_OPT_TEMPERATURE, hot * 50));
            require(fr_options_set_text(options, FR_OPT_LOGIT_BIAS, bans[i]));
            open_drawer(&d, options, 5);
            for (size_t position = 0; position < 200; position++) {
                int32_t id = fr_sampler_draw(&d.sampler, &scores, &(fr_past){.length = position});
                ck_assert(i == 2 ? id == -1 : i == 1 ? id == 0 || id == 1 : id >= 2);
                ck_assert(hot || i == 2 || id == (i == 1 ? 0 : 2));
            }
            fr_arena_close(&d.arena);
        }
}
END_TEST

START_TEST(of_equal_logits_the_lowest_id_is_the_greedy_draw) {
    static drawer d;
    fr_options *options = options_of(NULL, false);
    require(fr_options_set(options, FR_OPT_TEMPERATURE, 0));
    require(fr_options_set_text(options, FR_OPT_LOGIT_BIAS, "2+3"));
    open_drawer(&d, options, 5);
    fr_scores scores = {.logits = (float[]){4, 1, 4, 4}, .ids = (int32_t[]){4, 2, 1, 3}, .count = 4};
    ck_assert_int_eq(fr_sampler_draw(&d.sampler, &scores, &(fr_past){0}), 1);
    fr_arena_close(&d.arena);
}
END_TEST

/* -------------------------------------------------------------------------------------------------------- decisions */

static fr_distribution distribution_of(const json_t *array, float *weight) {
    fr_distribution p = {.weight = weight, .count = floats_of(array, weight)};
    for (size_t i = 0; i < p.count; i++) p.total += weight[i];
    return p;
}

START_TEST(decisions_are_the_references) {
    size_t at;
    const json_t *one;
    json_array_foreach (json_object_get(distributions, "exact_decisions"), at, one) {
        float a[VOCAB], b[VOCAB];
        fr_distribution p = distribution_of(json_object_get(one, "p"), a);
        fr_distribution q = distribution_of(json_object_get(one, "q"), b);
        int32_t draft = (int32_t)json_integer_value(json_object_get(one, "draft")), token = draft;
        bool stands = fr_accept_draft(fr_probability(&p, draft), fr_probability(&q, draft),
                                      json_number_value(json_object_get(one, "u")));
        if (!stands) token = fr_sample_residual(&p, &q, draft, json_number_value(json_object_get(one, "u_residual")));
        ck_assert_int_eq(stands, json_is_true(json_object_get(one, "accepted")));
        ck_assert_int_eq(token, json_integer_value(json_object_get(one, "token")));
    }
    ck_assert_uint_eq(at, 40);
}
END_TEST

/* Tries STEPS values of the random number u, spread evenly over [0, 1), and counts which token each value gives. A
 * token's share of the values must be its probability in the residual distribution. */
static void check_residual(const fr_distribution *p, const fr_distribution *q, int32_t draft, const json_t *expected) {
    enum { STEPS = 20000 };
    double want[VOCAB], got[VOCAB] = {0};
    size_t count = doubles_of(expected, want);
    for (size_t i = 0; i < STEPS; i++) got[fr_sample_residual(p, q, draft, (i + 0.5) / STEPS)] += 1.0 / STEPS;
    for (size_t i = 0; i < count; i++) ck_assert_double_le(fabs(got[i] - want[i]), 2.0 / STEPS);
}

START_TEST(acceptance_and_residual_are_the_references) {
    size_t at, i;
    const json_t *one, *chance;
    json_array_foreach (json_object_get(distributions, "speculative"), at, one) {
        float a[VOCAB], b[VOCAB];
        const json_t *greedy = json_object_get(one, "greedy_draft");
        fr_distribution p = distribution_of(json_object_get(one, "p"), a);
        fr_distribution q = distribution_of(json_object_get(one, "q"), b);
        json_array_foreach (json_object_get(one, "accept_prob"), i, chance) {
            double want = json_number_value(chance), of_p = fr_probability(&p, (int32_t)i),
                   of_q = fr_probability(&q, (int32_t)i);
            if (b[i] == 0) continue; /* the drafter's probability of this token is 0 */
            ck_assert(fr_accept_draft(of_p, of_q, want - 1e-6) || want == 0);
            ck_assert(want >= 1 || !fr_accept_draft(of_p, of_q, want + 1e-6));
        }
        check_residual(&p, &q, 0, json_object_get(one, "residual"));
        int32_t draft = (int32_t)json_integer_value(json_object_get(greedy, "draft"));
        double want = json_number_value(json_object_get(greedy, "p_accept"));
        ck_assert_double_le(fabs(fr_probability(&p, draft) - want), 1e-6);
        check_residual(&p, NULL, draft, json_object_get(greedy, "residual"));
    }
    ck_assert_uint_eq(at, 11);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------- distributions */

/* Returns the chi-square statistic of the counts. Bins with fewer than 10 expected samples are joined. A bin whose
 * probability is 0 must be empty. */
static double chi_square(const size_t *counts, const double *expected, size_t bins, double draws) {
    double sum = 0, rest = 0, rest_expected = 0;
    for (size_t i = 0; i < bins; i++) {
        double want = expected[i] * draws, off = (double)counts[i] - want;
        ck_assert_msg(expected[i] > 0 || counts[i] == 0, "bin %zu: %zu that can't be", i, counts[i]);
        if (want >= 10)
            sum += off * off / want;
        else
            rest += (double)counts[i];
        if (want < 10) rest_expected += want;
    }
    double off = rest - rest_expected;
    return rest_expected > 1 ? sum + off * off / rest_expected : sum;
}

/* The ways to sample a case's token. PLAIN: without a draft. DRAFTED: with a draft sampled from the drafter's logits.
 * CERTAIN: with the drafter's best token, reported with probability 1. NARROW: with a draft from a draft vocabulary
 * that lacks every third token. */
typedef enum way { PLAIN, DRAFTED, CERTAIN, NARROW } way;

/* Samples one token at the position after `past`. Makes a draft in the given way, which the sampler accepts or
 * rejects. */
static int32_t one_token(fr_sampler *s, const float *rows, const fr_scores *drafter, const fr_past *past, way how) {
    int32_t draft, token;
    fr_past round = *past;
    fr_sampler_forget(s);
    if (how == PLAIN) return fr_sampler_draw(s, &(fr_scores){.logits = rows, .count = drafter->count}, past);
    draft = fr_sampler_draft(s, drafter, past);
    if (how == CERTAIN) {
        fr_sampler_forget(s);
        draft = (int32_t)s->kernels->argmax(drafter->logits, drafter->count);
    }
    round.drafts = &draft;
    round.drafted = 1;
    return fr_sampler_verify(s, rows, NULL, &round, &token) ? draft : token;
}

/* Returns the scores of a drafter whose draft vocabulary has two of every three tokens, together with the ids of these
 * tokens. */
static fr_scores draft_vocabulary(const float *drafter, size_t vocab, float *logits, int32_t *ids) {
    fr_scores scores = {.logits = logits, .ids = ids};
    for (size_t i = 0; i < vocab; i++) {
        if (i % 3 == 0) continue;
        logits[scores.count] = drafter[i];
        ids[scores.count++] = (int32_t)i;
    }
    return scores;
}

static void check_distribution(const json_t *one, bool rejection, way how) {
    static drawer d;
    float rows[2 * VOCAB], drafter[VOCAB], narrow[VOCAB];
    int32_t narrow_ids[VOCAB];
    double expected[VOCAB];
    size_t counts[VOCAB] = {0}, vocab = doubles_of(json_object_get(one, "probs"), expected);
    floats_of(json_object_get(one, "logits"), rows);
    floats_of(json_object_get(one, "logits"), rows + vocab); /* the row after the draft, used if it is accepted */
    fr_scores scores = {.logits = drafter, .count = floats_of(json_object_get(one, "drafter"), drafter)};
    if (how == NARROW) scores = draft_vocabulary(drafter, scores.count, narrow, narrow_ids);
    fr_past past;
    int32_t *ids = past_of(one, &past, 0);
    fr_options *options = options_of(json_object_get(one, "params"), rejection);
    open_drawer(&d, options, vocab);
    for (uint64_t seed = 0; seed < draw_count(); seed++) { /* the position is constant, so the seed varies */
        d.sampler.seed = seed;
        counts[one_token(&d.sampler, rows, &scores, &past, how)]++;
    }
    double got = chi_square(counts, expected, vocab, (double)draw_count()),
           most = json_number_value(json_object_get(one, "critical"));
    ck_assert_msg(got <= most, "%s, way %d: chi-square %g is above %g", rejection ? "rejection" : "gumbel", how, got,
                  most);
    fr_arena_close(&d.arena);
    free(ids);
}

/* The first HOT cases have 16 ids and a temperature. Each runs with both ways of accepting drafts, and for each of
 * these with every way of drafting that could change the result. */
enum { HOT = 6 };

START_TEST(gumbel_draws_have_the_targets_distribution) {
    check_distribution(json_array_get(json_object_get(cases, "draws"), (size_t)_i), false, _i % 2 ? DRAFTED : PLAIN);
}
END_TEST

START_TEST(rejection_draws_have_the_targets_distribution) {
    check_distribution(json_array_get(json_object_get(cases, "draws"), (size_t)_i), true, _i % 2 ? CERTAIN : PLAIN);
    check_distribution(json_array_get(json_object_get(cases, "draws"), (size_t)_i), true, DRAFTED);
    check_distribution(json_array_get(json_object_get(cases, "draws"), (size_t)_i), true, NARROW);
}
END_TEST

/* Numbers the sequences of up to 3 tokens, where each token is below 3. Returns the number of this sequence, from 0 to
 * 39. */
static size_t bin_of(const int32_t *tokens, size_t count) {
    size_t bin = 0;
    for (size_t i = 0; i < count; i++) bin = 3 * bin + (size_t)tokens[i] + 1;
    return bin;
}

/* Returns the bin of a key such as "", "0" or "01". Each character of a key is a token id. */
static size_t bin_of_key(const char *key) {
    int32_t tokens[3];
    for (size_t i = 0; key[i]; i++) tokens[i] = key[i] - '0';
    return bin_of(tokens, strlen(key));
}

/* Logits for whole rounds of 2 drafts over a vocabulary of 3 tokens. They depend on the preceding tokens of the round,
 * so there is a row for each sequence of up to 2 tokens. */
typedef float tables[13][3];

static void read_tables(const json_t *object, tables logits) {
    const char *key;
    const json_t *row;
    json_object_foreach ((json_t *)object, key, row) {
        float p[VOCAB];
        ck_assert_uint_eq(floats_of(row, p), 3);
        for (size_t i = 0; i < 3; i++) logits[bin_of_key(key)][i] = logf(p[i]);
    }
}

static size_t one_round(fr_sampler *s, const tables target, const tables drafter, int32_t *tokens) {
    float rows[3][3];
    fr_past past = {.drafts = tokens};
    fr_sampler_forget(s);
    for (; past.drafted < 2; past.drafted++) {
        fr_scores scores = {.logits = drafter[bin_of(tokens, past.drafted)], .count = 3};
        tokens[past.drafted] = fr_sampler_draft(s, &scores, &past);
    }
    for (size_t r = 0; r < 3; r++) memcpy(rows[r], target[bin_of(tokens, r)], sizeof rows[r]);
    int32_t token;
    size_t stood = fr_sampler_verify(s, rows[0], NULL, &past, &token);
    tokens[stood] = token;
    return stood + 1;
}

START_TEST(rounds_of_rejection_have_the_references_distribution) {
    static drawer d;
    const json_t *one = json_array_get(json_object_get(distributions, "chain"), (size_t)_i), *probability;
    const char *key;
    static tables target, drafter;
    double expected[40] = {0};
    size_t counts[40] = {0};
    read_tables(json_object_get(one, "target"), target);
    read_tables(json_object_get(one, "draft"), drafter);
    json_object_foreach ((json_t *)json_object_get(one, "emitted"), key, probability)
        expected[bin_of_key(key)] = json_number_value(probability);
    open_drawer(&d, options_of(NULL, true), 3);
    for (uint64_t seed = 0; seed < draw_count(); seed++) {
        int32_t tokens[3];
        d.sampler.seed = seed;
        counts[bin_of(tokens, one_round(&d.sampler, target, drafter, tokens))]++;
    }
    /* with at most 38 degrees of freedom, the statistic exceeds 93 by chance once in 1e6 */
    ck_assert_double_le(chi_square(counts, expected, 40, (double)draw_count()), 93);
    fr_arena_close(&d.arena);
}
END_TEST

/* ------------------------------------------------------------------------------------------------ log-probabilities */

static void compare_logprobs(float own, const int32_t *ids, const float *values, const json_t *expected, size_t at) {
    const json_t *ids_there = json_array_get(json_object_get(expected, "ids"), at),
                 *values_there = json_array_get(json_object_get(expected, "values"), at);
    double want = json_number_value(json_array_get(json_object_get(expected, "own"), at));
    ck_assert_msg(fabs((double)own - want) < 2e-4, "token %zu: %g, not %g", at, (double)own, want);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_int_eq(ids[i], json_integer_value(json_array_get(ids_there, i)));
        ck_assert_double_le(fabs((double)values[i] - json_number_value(json_array_get(values_there, i))), 2e-4);
    }
}

static void check_logprobs(const fr_session *session, size_t index, const json_t *expected, size_t at) {
    const int32_t *ids;
    const float *values;
    float own;
    ck_assert_uint_eq(fr_session_logprobs(session, index, &own, &ids, &values), 5);
    compare_logprobs(own, ids, values, expected, at);
}

/* A text that is scored, and the expected scores of its ids after the prompt. */
typedef struct scored {
    const int32_t *ids;
    size_t at, prompt, stop; /* stop: the callback aborts at this id; 0 means never */
    const json_t *expected;
} scored;

static fr_status take_score(void *context, int32_t id, float own, const int32_t *ids, const float *values,
                            size_t best) {
    scored *s = context;
    ck_assert_int_eq(id, s->ids[++s->at]);
    ck_assert_uint_eq(best, 5);
    if (s->at >= s->prompt) compare_logprobs(own, ids, values, s->expected, s->at - s->prompt);
    return s->at == s->stop ? FR_ABORTED : FR_OK;
}

START_TEST(logprobs_of_a_large_vocabulary_are_libms) {
    static float logits[MANY];
    static int32_t ids[MANY];
    static ranked order[MANY];
    const fr_kernels *kernels;
    fr_arena arena = {0};
    fr_logprobs l;
    random_row(1, logits, ids, order);
    double sum = 0, largest = order[0].logit;
    for (size_t i = 0; i < MANY; i++) sum += exp(logits[i] - largest);
    require(fr_kernels_select(NULL, &kernels));
    require(fr_arena_open(&arena, 1 << 20, "log-probabilities"));
    fr_logprobs_layout(&l, &arena, 3, false, kernels, MANY);
    fr_logprobs_take(&l, logits, (int32_t[]){4321}, 1);
    ck_assert_double_le(fabs(l.own[0] - (logits[4321] - largest - log(sum))), 1e-6);
    for (size_t i = 0; i < 3; i++) {
        ck_assert(logits[l.ids[i]] == order[i].logit && (i == 0 || logits[l.ids[i - 1]] >= logits[l.ids[i]]));
        ck_assert_double_le(fabs(l.values[i] - (order[i].logit - largest - log(sum))), 1e-6);
    }
    fr_arena_close(&arena);
}
END_TEST

/* Generates greedy text after the fixture's prompt 2, with and without drafts. The expected log-probabilities are
 * numpy's log softmax of transformers' logits. */
START_TEST(logprobs_are_the_targets_with_and_without_drafting) {
    fr_reference r;
    fr_options *options = fr_options_new();
    require(fr_options_set(options, FR_OPT_LOGPROBS, 5));
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set(options, FR_OPT_DRAFT_MAX, 3)); /* a fixed number, since "auto" depends on the clock */
    fr_reference_open(&r, "gemma4-e", options);
    size_t count;
    int32_t *prompt = fr_json_ids_of(json_array_get(json_object_get(r.info, "prompts"), 2), &count);
    for (int draft = 0; draft < 2; draft++) {
        fr_session *session;
        require(fr_session_open(r.model, draft ? r.drafter : NULL, options, &session));
        require(fr_session_prompt(session, prompt, count));
        for (size_t made = 0, got, accepted; made < 48; made += got) {
            int32_t ids[FR_STEP_MAX];
            require(fr_session_step(session, ids, 48 - made, &got, &accepted));
            for (size_t i = 0; i < got; i++) check_logprobs(session, i, json_object_get(cases, "logprobs"), made + i);
        }
        ck_assert(!draft || fr_session_stat(session, FR_STAT_ACCEPTED) > 0);
        const int32_t *timeline;
        size_t length = fr_session_ids(session, &timeline);
        int32_t *text = malloc(length * sizeof *text);
        memcpy(text, timeline, length * sizeof *text);
        scored s = {.ids = text, .prompt = count, .expected = json_object_get(cases, "logprobs")};
        require(fr_session_score(session, text, length, take_score, &s));
        ck_assert_uint_eq(s.at, length - 1);
        require(fr_session_put(session, text, length)); /* now the scored text is the session's text */
        ck_assert_uint_eq(fr_session_waiting(session), 1);
        s.at = 0;
        s.stop = 7;
        ck_assert_int_eq(fr_session_score(session, text, length, take_score, &s), FR_ABORTED);
        ck_assert_uint_eq(s.at, 7);
        free(text);
        fr_session_close(session);
    }
    free(prompt);
    fr_reference_close(&r);
    fr_options_free(options);
}
END_TEST

/* Collects the log-probabilities of a sampled text with penalties. The caller compares runs by their bits. */
static void sampled_logprobs(const fr_reference *r, const fr_options *options, bool draft, int32_t *text, float *own) {
    fr_session *session;
    const int32_t prompt[] = {2, 100, 200, 300, 40}, *ids;
    const float *values;
    require(fr_session_open(r->model, draft ? r->drafter : NULL, options, &session));
    require(fr_session_prompt(session, prompt, 5));
    for (size_t made = 0, got, accepted; made < 60; made += got) {
        require(fr_session_step(session, text + made, 60 - made, &got, &accepted));
        for (size_t i = 0; i < got; i++) fr_session_logprobs(session, i, own + made + i, &ids, &values);
    }
    fr_session_close(session);
}

START_TEST(logprobs_are_of_the_logits_before_filters) {
    fr_reference r;
    fr_options *options = fr_options_new();
    int32_t plain[60], drafted[60];
    float own[60], again[60];
    require(fr_options_set(options, FR_OPT_LOGPROBS, 0));
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, 0.7));
    require(fr_options_set(options, FR_OPT_TOP_K, 1)); /* with top-k 1 only one id remains */
    require(fr_options_set_number(options, FR_OPT_REPEAT_PENALTY, 1.5));
    fr_reference_open(&r, "gemma4-e", options);
    sampled_logprobs(&r, options, false, plain, own);
    sampled_logprobs(&r, options, true, drafted, again);
    ck_assert_mem_eq(plain, drafted, sizeof plain);
    ck_assert_mem_eq(own, again, sizeof own);
    size_t unlikely = 0;
    for (size_t i = 0; i < 60; i++) unlikely += own[i] < -0.5f;
    ck_assert_uint_gt(unlikely, 10);
    fr_reference_close(&r);
    fr_options_free(options);
}
END_TEST

enum { DRAWN = 40, OF_DRAW = 5, KEPT_OF_DRAW = 3 };

/* A generated text with its log-probabilities. ids[i] has the log-probability own[i]. At each position, `best` has the
 * most likely ids and `values` has their log-probabilities. */
typedef struct told {
    int32_t ids[DRAWN], best[DRAWN][OF_DRAW];
    float own[DRAWN], values[DRAWN][OF_DRAW];
} told;

static void tell_draws(const fr_reference *r, double temperature, bool drawn, bool drafts, told *t) {
    fr_session *session;
    fr_options *options = fr_options_new();
    require(fr_options_set(options, FR_OPT_LOGPROBS, OF_DRAW));
    require(fr_options_set(options, FR_OPT_LOGPROBS_DRAWN, drawn));
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set(options, FR_OPT_DRAFT_MAX, 3));
    require(fr_options_set(options, FR_OPT_TOP_K, KEPT_OF_DRAW));
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, temperature));
    require(fr_session_open(r->model, drafts ? r->drafter : NULL, options, &session));
    require(fr_session_prompt(session, (int32_t[]){2, 100, 200}, 3));
    for (size_t made = 0, got, accepted; made < DRAWN; made += got) {
        int32_t ids[FR_STEP_MAX];
        require(fr_session_step(session, ids, DRAWN - made, &got, &accepted));
        for (size_t i = 0; i < got; i++) {
            const int32_t *best;
            const float *values;
            ck_assert_uint_eq(fr_session_logprobs(session, i, &t->own[made + i], &best, &values), OF_DRAW);
            memcpy(t->best[made + i], best, sizeof t->best[0]);
            memcpy(t->values[made + i], values, sizeof t->values[0]);
            t->ids[made + i] = ids[i];
        }
    }
    fr_session_close(session);
    fr_options_free(options);
}

/* Samples from the three most likely ids with a temperature. With FR_OPT_LOGPROBS_DRAWN the log-probabilities must be
 * those of this distribution. Without it they must be those of the raw logits. */
START_TEST(draws_tell_what_they_were_drawn_from) {
    static told raw, drawn, drafted;
    fr_reference r;
    double temperature = _i ? 0.7 : 0;
    fr_reference_open(&r, "gemma4-e", NULL);
    tell_draws(&r, temperature, false, false, &raw);
    tell_draws(&r, temperature, true, false, &drawn);
    tell_draws(&r, temperature, true, true, &drafted);
    ck_assert_mem_eq(raw.ids, drawn.ids, sizeof raw.ids);
    ck_assert_mem_eq(&drawn, &drafted, sizeof drawn);
    for (size_t t = 0; t < DRAWN; t++) {
        double sum = 0;
        ck_assert_mem_eq(raw.best[t], drawn.best[t], sizeof raw.best[t]);
        for (size_t i = 0; i < OF_DRAW; i++) {
            bool left = _i ? i < KEPT_OF_DRAW : i == 0;
            ck_assert_int_eq(isfinite(drawn.values[t][i]), left);
            sum += exp((double)drawn.values[t][i]);
            if (drawn.ids[t] == drawn.best[t][i]) ck_assert(drawn.own[t] == drawn.values[t][i]);
            if (_i && left)
                ck_assert_double_eq_tol((double)drawn.values[t][i] - (double)drawn.values[t][0],
                                        ((double)raw.values[t][i] - (double)raw.values[t][0]) / 0.7, 1e-4);
        }
        ck_assert_double_eq_tol(sum, 1, 1e-5);
    }
    fr_reference_close(&r);
}
END_TEST

START_TEST(drawing_allocates_nothing) {
    fr_reference r;
    fr_session *session;
    fr_options *options = options_of(NULL, _i);
    require(fr_options_set(options, FR_OPT_LOGPROBS, 3));
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set(options, FR_OPT_DRAFT_MAX, 3));
    require(fr_options_set_number(options, FR_OPT_TOP_P, 0.9));
    require(fr_options_set_number(options, FR_OPT_REPEAT_PENALTY, 1.1));
    require(fr_options_set_text(options, FR_OPT_LOGIT_BIAS, "5+1"));
    fr_reference_open(&r, "gemma4-e", options);
    require(fr_session_open(r.model, r.drafter, options, &session));
    size_t before = fr_alloc_count(), accepted, got = 1;
    fr_status status = fr_session_prompt(session, (int32_t[]){2, 100, 200}, 3);
    for (size_t made = 0; status == FR_OK && made < 60; made += got) { /* no assertions here: they allocate */
        int32_t ids[FR_STEP_MAX];
        status = fr_session_step(session, ids, FR_STEP_MAX, &got, &accepted);
    }
    size_t after = fr_alloc_count();
    require(status);
    ck_assert_uint_eq(after, before);
    ck_assert(fr_session_stat(session, FR_STAT_DRAFTED) > 0);
    fr_session_close(session);
    fr_reference_close(&r);
    fr_options_free(options);
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- settings */

START_TEST(settings_that_mean_nothing_are_refused) {
    fr_options *options = fr_options_new();
    static const char *const lists[] = {"",        "5",    "5+",   "+1",   "5+x",  "5+nan", "5+inf",         "5+1,",
                                        "5+1;6+1", "-5+1", " 5+1", "5+ 1", "5: 1", "5:",    "99999999999+1", "5+1e39",
                                        "5:-1e39"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        ck_assert_msg(fr_options_set_text(options, FR_OPT_LOGIT_BIAS, lists[i]) == FR_USAGE, "'%s'", lists[i]);
    ck_assert_uint_eq(options->bias_count, 0);
    require(fr_options_set_text(options, FR_OPT_LOGIT_BIAS, "5+1.5,6-1e-3,7:2,8:-inf"));
    require(fr_options_set_text(options, FR_OPT_LOGIT_BIAS, "9-inf"));
    ck_assert_uint_eq(options->bias_count, 5);
    ck_assert(options->biases[1].id == 6 && options->biases[1].bias == -1e-3f && isinf(options->biases[4].bias));
    ck_assert_int_eq(fr_options_set_text(options, FR_OPT_ACCEPT, "always"), FR_USAGE);
    ck_assert_int_eq(fr_options_set_number(options, FR_OPT_TEMPERATURE, -1), FR_USAGE);
    ck_assert_int_eq(fr_options_set_number(options, FR_OPT_TEMPERATURE, NAN), FR_USAGE);
    ck_assert_int_eq(fr_options_set_number(options, FR_OPT_TOP_P, 1.01), FR_USAGE);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "1.01"));
    ck_assert_int_eq(fr_options_set_number(options, FR_OPT_REPEAT_PENALTY, 0), FR_USAGE);
    ck_assert_int_eq(fr_options_set_number(options, FR_OPT_THREADS, 1), FR_USAGE);
    ck_assert_int_eq(fr_options_set(options, FR_OPT_LOGPROBS, FR_LOGPROBS_MAX + 1), FR_USAGE);
    require(fr_options_set(options, FR_OPT_TEMPERATURE, 1)); /* a whole number is accepted too */
    fr_options_free(options);
}
END_TEST

/* To ban a script or all digits, a caller may give biases for thousands of ids, one by one or as a list. A copy of the
 * options must be independent of the original, and so must the copy that a session keeps. A fork that gets no options
 * must sample like the original session. */
START_TEST(biases_may_be_many) {
    enum { IDS = 20000, LEFT = 77, A_BIAS = 16 };
    fr_model *model;
    fr_engine *engine;
    fr_session *session, *fork;
    char *list = malloc(IDS * A_BIAS), *end = list;
    fr_options *options = fr_options_new(), *copy = NULL;
    for (int id = 0; id < IDS; id++) end += snprintf(end, A_BIAS, "%s%d-1.5", id ? "," : "", id);
    require(fr_options_set_text(options, FR_OPT_LOGIT_BIAS, list));
    ck_assert_uint_eq(options->bias_count, IDS);
    ck_assert(options->biases[IDS - 1].id == IDS - 1 && options->biases[IDS - 1].bias == -1.5F);
    fr_options_free(options);
    free(list);
    options = fr_options_new();
    require(fr_options_set(options, FR_OPT_CONTEXT, 64));
    require(fr_model_open(FR_TEST_MODELS "llama", options, &model));
    require(fr_engine_open(model, NULL, options, 2, &engine));
    for (int id = 0, vocab = (int)fr_model_fact(model, FR_FACT_VOCAB); id < vocab; id++) {
        char text[A_BIAS];
        snprintf(text, sizeof text, "%d-inf", id);
        if (id == 3) copy = fr_options_copy(options); /* from here on the copy gets the biases */
        if (id != LEFT) require(fr_options_set_text(copy ? copy : options, FR_OPT_LOGIT_BIAS, text));
    }
    ck_assert_uint_eq(options->bias_count, 3);
    fr_options_free(options);
    require(fr_engine_session(engine, copy, &session));
    require(fr_session_set_options(session, copy));
    fr_options_free(copy);
    require(fr_session_prompt(session, (int32_t[]){1, 2}, 2));
    require(fr_session_fork(session, NULL, &fork));
    for (int i = 0; i < 2; i++) {
        int32_t ids[FR_STEP_MAX];
        size_t count, accepted;
        require(fr_session_step(i ? fork : session, ids, FR_STEP_MAX, &count, &accepted));
        ck_assert_int_eq(ids[0], LEFT);
    }
    fr_session_close(fork);
    fr_session_close(session);
    fr_engine_close(engine);
    fr_model_close(model);
}
END_TEST

START_TEST(a_bias_outside_the_vocabulary_is_an_error_line) {
    fr_model *model;
    fr_session *session;
    fr_options *options = fr_options_new();
    require(fr_model_open(FR_TEST_MODELS "gemma4-e", NULL, &model));
    require(fr_options_set_text(options, FR_OPT_LOGIT_BIAS, "511+1,512+1"));
    ck_assert_int_eq(fr_session_open(model, NULL, options, &session), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "512"));
    ck_assert_ptr_null(session);
    fr_model_close(model);
    fr_options_free(options);
}
END_TEST

FR_SUITE("sampling") {
    TCase *exact = tcase_create("exact"), *draws = tcase_create("draws");
    tcase_add_unchecked_fixture(exact, read_files, free_files);
    tcase_add_unchecked_fixture(draws, read_files, free_files);
    tcase_set_timeout(exact, 120);
    tcase_set_timeout(draws, 120);
    tcase_add_test(exact, philox_gives_the_published_words);
    tcase_add_test(exact, gumbel_noise_is_numpys_and_within_its_bounds);
    tcase_add_test(exact, streams_positions_and_seeds_are_apart);
    tcase_add_test(exact, filters_leave_the_reference_distributions);
    tcase_add_test(exact, penalties_bias_and_draws_are_numpys);
    tcase_add_test(exact, selecting_without_sorting_keeps_what_sorting_keeps);
    tcase_add_test(exact, the_default_order_filters_before_the_temperature);
    tcase_add_test(exact, passing_by_hopeless_tokens_changes_no_draw);
    tcase_add_test(exact, banned_tokens_are_never_drawn);
    tcase_add_test(exact, of_equal_logits_the_lowest_id_is_the_greedy_draw);
    tcase_add_test(exact, decisions_are_the_references);
    tcase_add_test(exact, acceptance_and_residual_are_the_references);
    tcase_add_test(exact, logprobs_of_a_large_vocabulary_are_libms);
    tcase_add_test(exact, logprobs_are_the_targets_with_and_without_drafting);
    tcase_add_test(exact, logprobs_are_of_the_logits_before_filters);
    tcase_add_loop_test(exact, draws_tell_what_they_were_drawn_from, 0, 2);
    tcase_add_loop_test(exact, drawing_allocates_nothing, 0, 2);
    tcase_add_test(exact, settings_that_mean_nothing_are_refused);
    tcase_add_test(exact, biases_may_be_many);
    tcase_add_test(exact, a_bias_outside_the_vocabulary_is_an_error_line);
    fr_test_add_loop(draws, gumbel_draws_have_the_targets_distribution, HOT, 1);
    fr_test_add_loop(draws, rejection_draws_have_the_targets_distribution, HOT, 1);
    tcase_add_loop_test(draws, rounds_of_rejection_have_the_references_distribution, 0, 5);
    suite_add_tcase(suite, exact);
    suite_add_tcase(suite, draws);
}
