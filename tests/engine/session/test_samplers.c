/* Tests llama.cpp's samplers and several orders of them: DRY, XTC, typical, top-n-sigma, mirostat 2, and dynamic
 * temperature. The expected distributions come from llama.cpp's own functions (tests/data/sampling/samplers.json, made
 * by tests/references/samplers.cpp). Drafts and neighbouring sessions must not change the text. mirostat's state must
 * follow a session through truncations, forks and restored states. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/dispatch.h"
#include "src/engine/session/filters.h"
#include "src/engine/session/noise.h"
#include "src/engine/session/state.h"
#include "tests/support/alloc_guard.h"
#include "tests/support/answer.h"
#include "tests/support/reference.h"
#include "tests/support/suite.h"

#define VOCAB 512
#define MODEL "tests/data/llama/q4_0.gguf" /* some cases need this model's tokenizer */

static json_t *cases;

static void read_cases(void) {
    ck_assert_int_eq(fr_json_read("tests/data/sampling/samplers.json", 1 << 20, &cases), FR_OK);
}

static void free_cases(void) {
    json_decref(cases);
}

static void require(fr_status status) {
    ck_assert_msg(status == FR_OK, "%s", fr_last_error());
}

/* ------------------------------------------------------------------------------------------------ reading the cases */

static const struct {
    const char *key;
    fr_option option;
    bool whole;
} keys[] = {{"temperature", FR_OPT_TEMPERATURE, false},
            {"top_k", FR_OPT_TOP_K, true},
            {"top_p", FR_OPT_TOP_P, false},
            {"min_p", FR_OPT_MIN_P, false},
            {"typical_p", FR_OPT_TYPICAL_P, false},
            {"top_n_sigma", FR_OPT_TOP_N_SIGMA, false},
            {"xtc_probability", FR_OPT_XTC_PROBABILITY, false},
            {"xtc_threshold", FR_OPT_XTC_THRESHOLD, false},
            {"dynatemp_range", FR_OPT_DYNATEMP_RANGE, false},
            {"dynatemp_exponent", FR_OPT_DYNATEMP_EXPONENT, false},
            {"repeat_penalty", FR_OPT_REPEAT_PENALTY, false},
            {"repeat_last_n", FR_OPT_REPEAT_LAST_N, true},
            {"frequency_penalty", FR_OPT_FREQUENCY_PENALTY, false},
            {"presence_penalty", FR_OPT_PRESENCE_PENALTY, false},
            {"dry_multiplier", FR_OPT_DRY_MULTIPLIER, false},
            {"dry_base", FR_OPT_DRY_BASE, false},
            {"dry_allowed_length", FR_OPT_DRY_ALLOWED_LENGTH, true},
            {"dry_penalty_last_n", FR_OPT_DRY_PENALTY_LAST_N, true},
            {"mirostat_ent", FR_OPT_MIROSTAT_ENT, false},
            {"mirostat_lr", FR_OPT_MIROSTAT_LR, false}};

static fr_options *options_of(const json_t *members) {
    fr_options *options = fr_options_new();
    const json_t *breakers = json_object_get(members, "dry_sequence_breakers"), *breaker;
    size_t i, known = 0;
    for (i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *value = json_object_get(members, keys[i].key);
        if (!value) continue;
        known++;
        if (keys[i].whole)
            require(fr_options_set(options, keys[i].option, json_integer_value(value)));
        else
            require(fr_options_set_number(options, keys[i].option, json_number_value(value)));
    }
    if (breakers) require(fr_options_set_text(options, FR_OPT_DRY_SEQUENCE_BREAKER, "none"));
    json_array_foreach (breakers, i, breaker)
        require(fr_options_set_text(options, FR_OPT_DRY_SEQUENCE_BREAKER, json_string_value(breaker)));
    const char *order = json_string_value(json_object_get(members, "samplers"));
    if (order) require(fr_options_set_text(options, FR_OPT_SAMPLERS, order));
    known += (breakers != NULL) + (order != NULL) + (json_object_get(members, "rows") != NULL);
    ck_assert_uint_eq(known, json_object_size(members));
    return options;
}

static size_t floats_of(const json_t *array, float *values) {
    size_t count = json_array_size(array);
    ck_assert_uint_le(count, VOCAB);
    for (size_t i = 0; i < count; i++) values[i] = (float)json_number_value(json_array_get(array, i));
    return count;
}

/* A sampler, with the memory for past tokens that it needs. */
typedef struct drawer {
    fr_sampler sampler;
    fr_arena arena;
} drawer;

static void open_drawer(drawer *d, const fr_options *options, size_t vocab, const fr_tokenizer *tokenizer) {
    const fr_kernels *kernels;
    require(fr_kernels_select(NULL, &kernels));
    require(fr_sampler_set(&d->sampler, options, kernels, vocab));
    fr_sampler_limit(&d->sampler, 1000);
    require(fr_sampler_open(&d->sampler, options, tokenizer));
    d->arena = (fr_arena){0};
    fr_sampler_layout(&d->sampler, &d->arena, FR_STEP_MAX - 1);
    size_t size = d->arena.used;
    require(fr_arena_open(&d->arena, size, "sampler"));
    fr_sampler_layout(&d->sampler, &d->arena, FR_STEP_MAX - 1);
}

static void close_drawer(drawer *d) {
    fr_sampler_close(&d->sampler);
    fr_arena_close(&d->arena);
}

/* ------------------------------------------------------------------------------------------------------- references */

static void check_probabilities(const fr_distribution *p, const json_t *expected, const char *what, size_t at) {
    double got[VOCAB] = {0};
    for (size_t i = 0; i < p->count; i++) got[p->ids ? p->ids[i] : (int32_t)i] = p->weight[i] / p->total;
    for (size_t i = 0; i < json_array_size(expected); i++) {
        double want = json_number_value(json_array_get(expected, i));
        bool left = want == 0 || want > 1e-12; /* a probability this small may become 0 in float32 */
        ck_assert_msg((got[i] == 0) == (want == 0) || !left, "%s %zu, id %zu: %g, not %g", what, at, i, got[i], want);
        ck_assert_msg(fabs(got[i] - want) <= 1e-5, "%s %zu, id %zu: %.9g, not %.9g", what, at, i, got[i], want);
    }
}

/* Tests one case. Up to four of the last past tokens are passed as drafts. The sampler must treat them like the other
 * past tokens. */
static void check_case(const json_t *one, const fr_tokenizer *tokenizer, const char *what, size_t at) {
    static drawer d;
    static float logits[VOCAB];
    size_t past, drafted = at % 5;
    fr_options *options = options_of(json_object_get(one, "options"));
    fr_scores scores = {.logits = logits, .count = floats_of(json_object_get(one, "logits"), logits)};
    int32_t *ids = fr_json_ids_of(json_object_get(one, "past"), &past);
    const fr_past before = {.ids = ids, .length = past - drafted, .drafts = ids + past - drafted, .drafted = drafted};
    open_drawer(&d, options, scores.count, tokenizer);
    /* sampling changes no state, so the second call must give the same distribution */
    for (int again = 0; again < 2; again++) {
        fr_distribution p = fr_sampler_distribution(&d.sampler, &scores, &before);
        check_probabilities(&p, json_object_get(one, "probs"), what, at);
    }
    close_drawer(&d);
    fr_options_free(options);
    free(ids);
}

START_TEST(samplers_leave_llama_cpps_distributions) {
    size_t at;
    const json_t *one;
    json_array_foreach (json_object_get(cases, "cases"), at, one) check_case(one, NULL, "case", at);
    ck_assert_uint_gt(at, 100);
}
END_TEST

START_TEST(sequences_break_where_llama_cpps_do) {
    size_t at;
    const json_t *one;
    fr_tokenizer *tokenizer;
    require(fr_tokenizer_open(MODEL, NULL, &tokenizer));
    json_array_foreach (json_object_get(cases, "texts"), at, one) check_case(one, tokenizer, "text", at);
    ck_assert_uint_eq(at, 15);
    fr_tokenizer_close(tokenizer);
}
END_TEST

START_TEST(mirostats_bound_is_llama_cpps_along_a_text) {
    size_t at, i;
    const json_t *series, *row;
    json_array_foreach (json_object_get(cases, "mirostat"), at, series) {
        static drawer d;
        static float logits[VOCAB];
        fr_options *options = options_of(series);
        require(fr_options_set(options, FR_OPT_MIROSTAT, 2));
        /* with mirostat, this option and the next two have no effect */
        require(fr_options_set_number(options, FR_OPT_REPEAT_PENALTY, 2));
        require(fr_options_set(options, FR_OPT_TOP_K, 1));
        require(fr_options_set_number(options, FR_OPT_DRY_MULTIPLIER, 1));
        open_drawer(&d, options, 24, NULL);
        json_array_foreach (json_object_get(series, "rows"), i, row) {
            fr_scores scores = {.logits = logits, .count = floats_of(json_object_get(row, "logits"), logits)};
            fr_past before = {.ids = (int32_t[]){1, 1, 1, 1}, .length = 4};
            fr_distribution p = fr_sampler_distribution(&d.sampler, &scores, &before);
            check_probabilities(&p, json_object_get(row, "probs"), "row", 100 * at + i);
            fr_choices c = {.logits = logits, .count = 24, .temperature = 1, .largest = -INFINITY, .lowest = -1e30};
            for (size_t id = 0; id < 24; id++) c.largest = fmax(c.largest, logits[id]);
            fr_filters_run(&d.sampler, &c);
            d.sampler.mu = fr_mirostat_next(&d.sampler, &c, (int32_t)json_integer_value(json_object_get(row, "drawn")));
        }
        close_drawer(&d);
        fr_options_free(options);
    }
    ck_assert_uint_eq(at, 4);
}
END_TEST

/* XTC is applied at about a third of 4000 positions. Only the seed and the position decide whether it is applied there;
 * the order in which the positions are evaluated must not matter. */
START_TEST(xtcs_coin_is_the_positions_own) {
    static drawer d;
    float logits[6] = {3, 3, 2, 1, 0, -1};
    bool left_out[4000];
    size_t count = 0, other = 0;
    fr_options *options = fr_options_new();
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, 1));
    require(fr_options_set_number(options, FR_OPT_XTC_PROBABILITY, 1.0 / 3));
    for (int64_t seed = 0; seed < 3; seed++) {
        require(fr_options_set(options, FR_OPT_SEED, seed % 2));
        open_drawer(&d, options, 6, NULL);
        for (size_t i = 0; i < 4000; i++) {
            size_t position = seed == 2 ? 3999 - i : i;
            fr_scores scores = {.logits = logits, .count = 6};
            fr_distribution p = fr_sampler_distribution(&d.sampler, &scores, &(fr_past){.length = position});
            bool without = fr_probability(&p, 0) == 0;
            if (seed == 0) left_out[position] = without;
            if (seed == 0) count += without;
            if (seed == 1) other += without != left_out[position];
            if (seed == 2) ck_assert_int_eq(without, left_out[position]);
        }
        close_drawer(&d);
    }
    ck_assert_double_le(fabs((double)count - 4000.0 / 3), 4 * sqrt(4000.0 * 2 / 9));
    ck_assert_uint_gt(other, 1000);
    fr_options_free(options);
}
END_TEST

/* ------------------------------------------------------------------------------------------------- one answer */

static void set_more(fr_options *options, size_t which) {
    require(fr_options_set(options, FR_OPT_SEED, 5));
    switch (which) {
    case 0:
        require(fr_options_set_number(options, FR_OPT_DRY_MULTIPLIER, 0.8));
        require(fr_options_set(options, FR_OPT_DRY_ALLOWED_LENGTH, 1));
        require(fr_options_set(options, FR_OPT_DRY_PENALTY_LAST_N, -1));
        break;
    case 1:
        require(fr_options_set_number(options, FR_OPT_XTC_PROBABILITY, 0.5));
        require(fr_options_set_number(options, FR_OPT_XTC_THRESHOLD, 0.01));
        break;
    case 2: require(fr_options_set_number(options, FR_OPT_TYPICAL_P, 0.5)); break;
    case 3:
        require(fr_options_set(options, FR_OPT_MIROSTAT, 2));
        require(fr_options_set_number(options, FR_OPT_MIROSTAT_ENT, 1.5));
        break;
    case 4: require(fr_options_set_number(options, FR_OPT_DYNATEMP_RANGE, 0.5)); break;
    case 5: require(fr_options_set_number(options, FR_OPT_TOP_N_SIGMA, 1)); break;
    default:
        set_more(options, 0);
        set_more(options, 1);
        set_more(options, 4);
        require(fr_options_set_text(options, FR_OPT_SAMPLERS, "dry;typ_p;xtc;min_p;temperature;top_p"));
        require(fr_options_set_number(options, FR_OPT_TYPICAL_P, 0.9));
        require(fr_options_set_number(options, FR_OPT_TOP_P, 0.8));
    }
}
enum { SETS = 7, TEXT = 120 };

static fr_answer answer_of(const fr_manner *manner, const int32_t *script, int32_t *text) {
    return fr_answer_of(FR_TEST_MODELS "gemma4-e", FR_TEST_MODELS "gemma4-e/assistant", manner, TEXT, script, text,
                        false);
}

START_TEST(drafts_change_no_text) {
    int32_t script[TEXT];
    const fr_manner plain = {
        .threads = 1, .chunk = 64, .draws = {.temperature = 0.9, .set = set_more, .which = (size_t)_i}};
    fr_manner without = plain;
    without.draws.set = NULL;
    fr_answer want = answer_of(&plain, NULL, script), other = answer_of(&without, NULL, NULL);
    ck_assert(want.ids != other.ids);
    static const struct {
        fr_test_method method;
        int depth, threads, chunk;
    } ways[] = {{FR_TEST_MTP, 1, 2, 7},
                {FR_TEST_MTP, 4, 1, 64},
                {FR_TEST_NGRAM, 3, 1, 64},
                {FR_TEST_SCRIPTED, 3, 1, 7},
                {FR_TEST_SCRIPTED, 15, 2, 64},
                {FR_TEST_REPLACED, 5, 1, 64},
                {FR_TEST_NGRAM_MTP, FR_DRAFT_AUTO, 2, 64}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        fr_manner manner = plain;
        manner.method = ways[i].method;
        manner.depth = ways[i].depth;
        manner.threads = ways[i].threads;
        manner.chunk = ways[i].chunk;
        fr_answer got = answer_of(&manner, script, NULL);
        ck_assert_msg(got.ids == want.ids, "samplers %d, way %zu", _i, i);
    }
}
END_TEST

/* ---------------------------------------------------------------------------------------- samplers along a timeline */

/* The model and the options of the tests below. The options set several samplers. */
typedef struct subject {
    fr_reference r;
    fr_options *options;
    int32_t *prompt;
    size_t count;
} subject;

static void open_subject(subject *s, size_t set, int64_t drafts) {
    s->options = fr_options_new();
    require(fr_options_set_number(s->options, FR_OPT_TEMPERATURE, 0.9));
    require(fr_options_set(s->options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set(s->options, FR_OPT_DRAFT_MAX, drafts));
    set_more(s->options, set);
    fr_reference_open(&s->r, "gemma4-e", s->options);
    s->prompt = fr_json_ids_of(json_array_get(json_object_get(s->r.info, "prompts"), 2), &s->count);
}

static void close_subject(subject *s) {
    free(s->prompt);
    fr_reference_close(&s->r);
    fr_options_free(s->options);
}

static fr_session *session_of(const subject *s, bool drafts) {
    fr_session *session;
    require(fr_session_open(s->r.model, drafts ? s->r.drafter : NULL, s->options, &session));
    return session;
}

static void generate(fr_session *session, int32_t *ids, size_t count) {
    for (size_t made = 0, got, accepted; made < count; made += got)
        require(fr_session_step(session, ids + made, count - made, &got, &accepted));
}

enum { FIRST = 21, REST = 40, BOTH = FIRST + REST, MIROSTAT = 3 };

START_TEST(mirostats_bound_follows_the_timeline) {
    subject s;
    int32_t whole[BOTH], first[BOTH], ids[BOTH];
    void *bytes;
    size_t size;
    open_subject(&s, MIROSTAT, 4);
    fr_session *session = session_of(&s, false), *restored = session_of(&s, true), *drafted = session_of(&s, true);
    require(fr_session_prompt(session, s.prompt, s.count));
    generate(session, whole, BOTH);
    require(fr_session_prompt(drafted, s.prompt, s.count));
    generate(drafted, first, FIRST);
    ck_assert_mem_eq(first, whole, FIRST * sizeof *first);
    require(fr_session_save_bytes(drafted, &bytes, &size));
    require(fr_session_restore_bytes(restored, bytes, size));
    fr_free(bytes);
    generate(restored, ids, REST);
    ck_assert_mem_eq(ids, whole + FIRST, REST * sizeof *ids);
    generate(drafted, ids, REST);
    ck_assert_mem_eq(ids, whole + FIRST, REST * sizeof *ids);
    require(fr_session_truncate(drafted, s.count)); /* truncates to the prompt, so that the text starts again */
    generate(drafted, ids, BOTH);
    ck_assert_mem_eq(ids, whole, BOTH * sizeof *ids);
    require(fr_session_set_prompt(restored, s.prompt, s.count));
    generate(restored, ids, BOTH);
    ck_assert_mem_eq(ids, whole, BOTH * sizeof *ids);
    /* a reply changes mirostat's state, but a prompt does not */
    require(fr_session_set_prompt(session, s.prompt, s.count));
    require(fr_session_prompt(session, whole, FIRST));
    generate(session, ids, REST);
    ck_assert(memcmp(ids, whole + FIRST, REST * sizeof *ids) != 0);
    fr_session_close(session);
    fr_session_close(restored);
    fr_session_close(drafted);
    close_subject(&s);
}
END_TEST

/* The sessions of an engine. Those in the first half have different options. Those in the second half are forks of the
 * first half. */
typedef struct neighbours {
    fr_engine *engine;
    fr_session *sessions[2 * SETS];
    int32_t ids[2 * SETS][BOTH];
    size_t made[2 * SETS], count;
} neighbours;

/* Runs a round. Returns true while at least one session has ids left to generate. */
static bool run_round(neighbours *n) {
    fr_round rounds[2 * SETS];
    size_t who[2 * SETS], going = 0;
    for (size_t i = 0; i < n->count; i++) {
        if (n->made[i] == BOTH) continue;
        rounds[going] =
            (fr_round){.session = n->sessions[i], .ids = n->ids[i] + n->made[i], .limit = BOTH - n->made[i]};
        who[going++] = i;
    }
    require(fr_engine_step(n->engine, rounds, going));
    for (size_t i = 0; i < going; i++) {
        require(rounds[i].status);
        n->made[who[i]] += rounds[i].count;
    }
    return going > 0;
}

static void fork_all(neighbours *n) {
    for (size_t i = 0; i < SETS; i++, n->count++) {
        require(fr_session_fork(n->sessions[i], NULL, &n->sessions[n->count]));
        memcpy(n->ids[n->count], n->ids[i], sizeof n->ids[i]);
        n->made[n->count] = n->made[i];
    }
}

/* Opens a session with options number `set` and gives it the prompt. Writes to `alone` the ids that a session without
 * drafts and neighbours generates. */
static void join(neighbours *n, const subject *s, size_t set, int32_t *alone) {
    fr_session *plain;
    fr_options *options = fr_options_new();
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, 0.9));
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set(options, FR_OPT_DRAFT_MAX, (int64_t)(1 + 2 * set)));
    set_more(options, set);
    require(fr_session_open(s->r.model, NULL, options, &plain));
    require(fr_session_prompt(plain, s->prompt, s->count - set));
    generate(plain, alone, BOTH);
    fr_session_close(plain);
    require(fr_engine_session(n->engine, options, &n->sessions[n->count]));
    require(fr_session_put(n->sessions[n->count++], s->prompt, s->count - set));
    fr_options_free(options);
}

START_TEST(neighbours_and_forks_change_no_text) {
    static int32_t alone[SETS][BOTH];
    static neighbours n;
    subject s;
    open_subject(&s, MIROSTAT, 3);
    require(fr_options_set(s.options, FR_OPT_CONTEXT, 512));
    require(fr_engine_open(s.r.model, s.r.drafter, s.options, 2 * SETS, &n.engine));
    for (size_t set = 0; set < SETS; set++) join(&n, &s, set, alone[set]);
    while (n.made[MIROSTAT] < FIRST) run_round(&n);
    fork_all(&n);
    while (run_round(&n)) continue;
    ck_assert_uint_eq(n.count, 2 * SETS);
    for (size_t i = 0; i < n.count; i++) {
        ck_assert_msg(memcmp(n.ids[i], alone[i % SETS], sizeof *n.ids) == 0, "session %zu", i);
        fr_session_close(n.sessions[i]);
    }
    fr_engine_close(n.engine);
    close_subject(&s);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------- distributions */

enum { FEW = 8 };
static const float target_row[FEW] = {2, 1.6F, 1.5F, 0.4F, 0.1F, -0.3F, -1, -2},
                   drafter_row[FEW] = {1, 2.2F, 0.3F, 1.1F, -0.2F, 0.6F, -1, -3};

static void spread(drawer *d, double share, double *probability) {
    fr_scores scores = {.logits = target_row, .count = FEW};
    fr_distribution p = fr_sampler_distribution(&d->sampler, &scores, &(fr_past){.ids = (int32_t[]){1}, .length = 1});
    for (size_t i = 0; i < p.count; i++) probability[p.ids ? p.ids[i] : (int32_t)i] += share * p.weight[i] / p.total;
}

/* There are two ways of accepting drafts. Both decide about a draft from the target's and the drafter's logits. The
 * counts of 60,000 samples must fit the distributions that the tests above check. For XTC the expected distribution is
 * a mean of two, with and without XTC, weighted by the probability that XTC is applied. With at most 7 degrees of
 * freedom, the chi-square statistic exceeds 36 by chance once in 1e5. */
START_TEST(drafted_draws_have_the_samplers_distributions) {
    static drawer d;
    double expected[FEW] = {0}, sum = 0;
    size_t counts[FEW] = {0}, draws = getenv("FORERUN_EMULATOR") ? 5000 : 60000;
    fr_options *options = fr_options_new();
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, 1.2));
    set_more(options, 1 + (size_t)_i / 2);
    require(fr_options_set_number(options, FR_OPT_XTC_THRESHOLD, 0.1));
    if (_i % 2) require(fr_options_set_text(options, FR_OPT_ACCEPT, "rejection"));
    open_drawer(&d, options, FEW, NULL);
    double coin = d.sampler.set.xtc_probability;
    d.sampler.set.xtc_probability = 1;
    spread(&d, coin > 0 ? coin : 1, expected);
    d.sampler.set.xtc_probability = 0;
    if (coin > 0) spread(&d, 1 - coin, expected);
    d.sampler.set.xtc_probability = coin;
    for (uint64_t seed = 0; seed < draws; seed++) {
        float rows[2 * FEW];
        int32_t token, draft;
        memcpy(rows, target_row, sizeof target_row);
        memcpy(rows + FEW, target_row, sizeof target_row);
        fr_past past = {.ids = (int32_t[]){1}, .length = 1};
        d.sampler.seed = seed;
        fr_sampler_forget(&d.sampler);
        draft = fr_sampler_draft(&d.sampler, &(fr_scores){.logits = drafter_row, .count = FEW}, &past);
        past.drafts = &draft;
        past.drafted = 1;
        counts[fr_sampler_verify(&d.sampler, rows, NULL, &past, &token) ? draft : token]++;
    }
    for (size_t i = 0; i < FEW; i++) {
        double want = expected[i] * (double)draws, off = (double)counts[i] - want;
        ck_assert_msg(expected[i] > 0 || counts[i] == 0, "id %zu", i);
        if (expected[i] > 0) sum += off * off / want;
    }
    ck_assert_msg(sum < 36, "chi-square %g", sum);
    close_drawer(&d);
    fr_options_free(options);
}
END_TEST

START_TEST(drawing_allocates_nothing) {
    subject s;
    open_subject(&s, SETS - 1, 3);
    fr_session *session = session_of(&s, true);
    size_t before = fr_alloc_count(), accepted, got = 1;
    fr_status status = fr_session_prompt(session, s.prompt, s.count);
    for (size_t made = 0; status == FR_OK && made < 60; made += got) { /* no assertions here: they allocate */
        int32_t ids[FR_STEP_MAX];
        status = fr_session_step(session, ids, FR_STEP_MAX, &got, &accepted);
    }
    size_t after = fr_alloc_count();
    require(status);
    ck_assert_uint_eq(after, before);
    fr_session_close(session);
    close_subject(&s);
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- settings */

START_TEST(settings_that_mean_nothing_are_refused) {
    static drawer d;
    const fr_kernels *kernels;
    fr_options *options = fr_options_new();
    static const char *const orders[] = {"", ";", "top_k;", "topk;nucleus;temp", "dry;penalties", "kk", "xtcx"};
    char long_text[42];
    memset(long_text, 'x', 41);
    long_text[41] = 0;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        bool good = i == 2 || i == 3;
        ck_assert_msg((fr_options_set_text(options, FR_OPT_SAMPLERS, orders[i]) == FR_OK) == good, "'%s'", orders[i]);
    }
    ck_assert_uint_eq(options->filter_count, 3);
    ck_assert(options->filters[0] == FR_FILTER_TOP_K && options->filters[2] == FR_FILTER_TEMPERATURE);
    require(fr_options_set_text(options, FR_OPT_SAMPLERS, "edskypmxt"));
    ck_assert_uint_eq(options->filter_count, 9);
    ck_assert_int_eq(fr_options_set_text(options, FR_OPT_SAMPLERS, "adaptive_p"), FR_UNBUILT);
    ck_assert_int_eq(fr_options_set_text(options, FR_OPT_DRY_SEQUENCE_BREAKER, long_text), FR_USAGE);
    require(fr_options_set_text(options, FR_OPT_DRY_SEQUENCE_BREAKER, long_text + 1));
    require(fr_options_set_text(options, FR_OPT_DRY_SEQUENCE_BREAKER, "none"));
    for (size_t i = 0; i < FR_BREAKERS_MAX; i++)
        require(fr_options_set_text(options, FR_OPT_DRY_SEQUENCE_BREAKER, "."));
    ck_assert_int_eq(fr_options_set_text(options, FR_OPT_DRY_SEQUENCE_BREAKER, "."), FR_USAGE);
    require(fr_options_set_number(options, FR_OPT_DRY_MULTIPLIER, 1));
    require(fr_kernels_select(NULL, &kernels));
    require(fr_sampler_set(&d.sampler, options, kernels, FEW));
    /* DRY needs the texts of tokens, but here is no tokenizer */
    ck_assert_int_eq(fr_sampler_open(&d.sampler, options, NULL), FR_INPUT);
    fr_sampler_close(&d.sampler);
    require(fr_options_set(options, FR_OPT_MIROSTAT, 1));
    ck_assert_int_eq(fr_sampler_set(&d.sampler, options, kernels, FEW), FR_UNBUILT);
    ck_assert_int_eq(fr_options_set_number(options, FR_OPT_DRY_BASE, 0.99), FR_USAGE);
    ck_assert_int_eq(fr_options_set_number(options, FR_OPT_TYPICAL_P, NAN), FR_USAGE);
    ck_assert_int_eq(fr_options_set(options, FR_OPT_MIROSTAT, 3), FR_USAGE);
    ck_assert_int_eq(fr_options_set(options, FR_OPT_DRY_PENALTY_LAST_N, -2), FR_USAGE);
    fr_options_free(options);
}
END_TEST

FR_SUITE("samplers") {
    TCase *references = tcase_create("references"), *answers = tcase_create("answers");
    tcase_add_unchecked_fixture(references, read_cases, free_cases);
    tcase_set_timeout(references, 120);
    tcase_set_timeout(answers, 120);
    tcase_add_test(references, samplers_leave_llama_cpps_distributions);
    tcase_add_test(references, sequences_break_where_llama_cpps_do);
    tcase_add_test(references, mirostats_bound_is_llama_cpps_along_a_text);
    tcase_add_test(references, xtcs_coin_is_the_positions_own);
    tcase_add_test(references, settings_that_mean_nothing_are_refused);
    tcase_add_loop_test(references, drafted_draws_have_the_samplers_distributions, 0, 10);
    tcase_add_loop_test(answers, drafts_change_no_text, 0, SETS);
    tcase_add_test(answers, mirostats_bound_follows_the_timeline);
    tcase_add_test(answers, neighbours_and_forks_change_no_text);
    tcase_add_test(answers, drawing_allocates_nothing);
    suite_add_tcase(suite, references);
    suite_add_tcase(suite, answers);
}
