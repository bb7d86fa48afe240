/* Tests prompts that are scored while rounds run them. Each log-probability must be given once, with the same bits as
 * from fr_session_score. The generated texts must be the same as without scoring. This must hold however the prompt is
 * divided into pieces, beside any neighbouring sessions, and whatever happens to the session meanwhile. test_sampling.c
 * compares fr_session_score with transformers. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "src/engine/session/state.h"
#include "tests/support/brief.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

enum { CONTEXT = 256, CHUNK = 24, LENGTH = 150, SAID = 20, BEST = 2, PIECE = 7 };

static const char *const fixtures[] = {"gemma4-e",        "llama",      "gpt-oss-odd",
                                       "deepseek-v3-own", "qwen35-odd", "lfm2-long"};
enum { FIXTURES = sizeof fixtures / sizeof *fixtures };

typedef struct subject {
    fr_model *model;
    fr_drafter *drafter; /* NULL: the fixture has none */
    fr_options *options;
    int32_t prompt[LENGTH];
} subject;

static subject open_subject(const char *fixture) {
    subject s = {.options = fr_options_new()};
    char path[256];
    uint32_t chance = 1;
    require(fr_options_set(s.options, FR_OPT_THREADS, 2));
    require(fr_options_set(s.options, FR_OPT_CONTEXT, CONTEXT));
    require(fr_options_set(s.options, FR_OPT_CHUNK, CHUNK));
    require(fr_options_set(s.options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set(s.options, FR_OPT_LOGPROBS, BEST));
    require(fr_options_set(s.options, FR_OPT_DRAFT_MAX, 3));
    require(fr_options_set_number(s.options, FR_OPT_TEMPERATURE, 0.8));
    snprintf(path, sizeof path, FR_TEST_MODELS "%s", fixture);
    require(fr_model_open(path, s.options, &s.model));
    snprintf(path, sizeof path, FR_TEST_MODELS "%s/assistant", fixture);
    if (access(path, F_OK) == 0)
        require(fr_drafter_open(path, s.model, s.options, &s.drafter));
    else if (fr_model_fact(s.model, FR_FACT_MTP_LAYERS) > 0)
        require(fr_drafter_open(NULL, s.model, s.options, &s.drafter));
    for (size_t i = 0; i < LENGTH; i++) {
        chance = chance * 1664525u + 1013904223u;
        s.prompt[i] = (int32_t)(((uint64_t)chance * (uint64_t)fr_model_fact(s.model, FR_FACT_VOCAB)) >> 32);
        if (s.prompt[i] == fr_model_fact(s.model, FR_FACT_IMAGE_TOKEN)) s.prompt[i] = 1;
    }
    return s;
}

static void close_subject(subject *s) {
    fr_drafter_close(s->drafter);
    fr_model_close(s->model);
    fr_options_free(s->options);
}

typedef struct scores {
    struct {
        int32_t id, best[BEST];
        float own, values[BEST];
    } at[LENGTH];
    size_t count, stop; /* stop: the callback aborts the scoring at this score; 0 means never */
} scores;

static fr_status take(void *context, int32_t id, float own, const int32_t *ids, const float *values, size_t best) {
    scores *s = context;
    ck_assert_uint_eq(best, BEST);
    ck_assert_uint_lt(s->count, LENGTH);
    s->at[s->count].id = id;
    s->at[s->count].own = own;
    memcpy(s->at[s->count].best, ids, BEST * sizeof *ids);
    memcpy(s->at[s->count].values, values, BEST * sizeof *values);
    return ++s->count == s->stop ? FR_ABORTED : FR_OK;
}

/* The scores of a prompt, and the ids that are generated after it, each with its log-probability. */
typedef struct answer {
    scores prompt;
    int32_t ids[SAID + FR_STEP_MAX];
    float own[SAID + FR_STEP_MAX];
    size_t count;
} answer;

static void hear(answer *a, const fr_session *session, const int32_t *ids, size_t count) {
    for (size_t i = 0; i < count && a->count < SAID; i++) {
        a->ids[a->count] = ids[i];
        fr_session_logprobs(session, i, &a->own[a->count++], NULL, NULL);
    }
}

static void answer_alone(const subject *s, answer *a) {
    fr_session *session;
    int32_t ids[FR_STEP_MAX];
    require(fr_session_open(s->model, s->drafter, s->options, &session));
    require(fr_session_score(session, s->prompt, LENGTH, take, &a->prompt));
    fr_session_close(session);
    require(fr_session_open(s->model, s->drafter, s->options, &session));
    require(fr_session_prompt(session, s->prompt, LENGTH));
    for (size_t count, accepted; a->count < SAID; hear(a, session, ids, count))
        require(fr_session_step(session, ids, FR_STEP_MAX, &count, &accepted));
    fr_session_close(session);
}

static void check_same(const char *name, const answer *got, const answer *expected) {
    ck_assert_uint_eq(expected->prompt.count, LENGTH - 1);
    ck_assert_msg(got->prompt.count == LENGTH - 1, "%s: %zu ids were scored", name, got->prompt.count);
    ck_assert_msg(memcmp(got->prompt.at, expected->prompt.at, sizeof got->prompt.at) == 0, "%s: other scores", name);
    ck_assert_msg(memcmp(got->ids, expected->ids, SAID * sizeof *got->ids) == 0, "%s: another text", name);
    ck_assert_msg(memcmp(got->own, expected->own, SAID * sizeof *got->own) == 0, "%s: other log-probabilities", name);
}

/* One session generates, the second runs a prompt without scores, and the third is scored in pieces. The first session
 * has already run the scored prompt, but its rows must not be reused for the scores. Meanwhile the scored session is
 * cancelled once. It is also suspended once: it gives its pages back and is resumed later. */
START_TEST(rounds_score_as_a_run_of_its_own) {
    static answer expected, got, plain;
    subject s = open_subject(fixtures[_i]);
    fr_engine *engine;
    fr_session *sessions[3];
    int32_t ids[3][FR_STEP_MAX];
    fr_round rounds[3];
    answer_alone(&s, &expected);
    got = plain = (answer){0};
    require(fr_engine_open(s.model, s.drafter, s.options, 3, &engine));
    for (size_t i = 0; i < 3; i++) {
        require(fr_engine_session(engine, s.options, &sessions[i]));
        rounds[i] = (fr_round){.session = sessions[i], .ids = ids[i], .limit = FR_STEP_MAX};
    }
    require(fr_session_put(sessions[0], s.prompt, LENGTH));
    do require(fr_engine_step(engine, rounds, 1));
    while (fr_session_waiting(sessions[0]));
    require(fr_session_put_scored(sessions[1], s.prompt, LENGTH, take, &got.prompt));
    ck_assert_uint_eq(fr_session_waiting(sessions[1]), LENGTH);
    require(fr_options_set(s.options, FR_OPT_PROMPT_REUSE, 0));
    fr_session_close(sessions[2]);
    require(fr_engine_session(engine, s.options, &sessions[2]));
    rounds[2].session = sessions[2];
    require(fr_session_put(sessions[2], s.prompt, LENGTH));
    fr_engine_set_piece(engine, PIECE);
    for (size_t round = 0; got.count < SAID || plain.count < SAID; round++) {
        if (round == 3) fr_session_cancel(sessions[1]);
        if (round == 6) require(fr_lab_session_set_aside(sessions[1]));
        if (round == 8) require(fr_lab_session_take_up(sessions[1]));
        bool aside = round >= 6 && round < 8;
        fr_round some[3] = {rounds[0], rounds[aside ? 2 : 1], rounds[2]};
        some[0].limit = 1; /* the first session makes no drafts, so the prompts get the other rows of a round */
        require(fr_engine_step(engine, some, aside ? 2 : 3));
        ck_assert_int_eq(some[1].status, round == 3 ? FR_ABORTED : FR_OK);
        hear(&plain, sessions[2], ids[2], some[aside ? 1 : 2].count);
        if (!aside) hear(&got, sessions[1], ids[1], some[1].count);
    }
    check_same(s.model ? fixtures[_i] : "", &got, &expected);
    ck_assert_mem_eq(plain.ids, expected.ids, SAID * sizeof *plain.ids);
    ck_assert_double_eq(fr_session_stat(sessions[1], FR_STAT_REUSED_TOKENS), 0);
    for (size_t i = 0; i < 3; i++) fr_session_close(sessions[i]);
    fr_engine_close(engine);
    close_subject(&s);
}
END_TEST

/* A session alone scores the prompt in its first step. If the callback aborts the scoring, this step ends, and the next
 * step runs the rest of the prompt without scores. */
START_TEST(a_step_scores_its_prompt) {
    static answer expected, got;
    subject s = open_subject(fixtures[_i]);
    fr_session *session;
    int32_t ids[FR_STEP_MAX];
    size_t count, accepted;
    answer_alone(&s, &expected);
    got = (answer){.prompt.stop = LENGTH / 2};
    require(fr_session_open(s.model, s.drafter, s.options, &session));
    require(fr_session_prompt(session, s.prompt, LENGTH - 9));
    require(fr_session_put_scored(session, s.prompt, LENGTH, take, &got.prompt));
    ck_assert_int_eq(fr_session_step(session, ids, FR_STEP_MAX, &count, &accepted), FR_ABORTED);
    ck_assert_uint_eq(got.prompt.count, LENGTH / 2);
    for (; got.count < SAID; hear(&got, session, ids, count))
        require(fr_session_step(session, ids, FR_STEP_MAX, &count, &accepted));
    ck_assert_uint_eq(got.prompt.count, LENGTH / 2);
    ck_assert_mem_eq(got.ids, expected.ids, SAID * sizeof *got.ids);
    fr_session_close(session);
    close_subject(&s);
}
END_TEST

/* When a new prompt replaces a prompt with scoring, the new prompt is not scored. */
START_TEST(another_prompt_is_not_scored) {
    subject s = open_subject("llama");
    static scores some;
    fr_session *session;
    int32_t ids[FR_STEP_MAX];
    size_t count, accepted;
    some = (scores){0};
    require(fr_session_open(s.model, NULL, s.options, &session));
    require(fr_session_put_scored(session, s.prompt, LENGTH, take, &some));
    require(fr_session_put(session, s.prompt, LENGTH / 2));
    require(fr_session_step(session, ids, FR_STEP_MAX, &count, &accepted));
    require(fr_session_put_scored(session, s.prompt, LENGTH, take, &some));
    fr_session_reset(session);
    require(fr_session_prompt(session, s.prompt, LENGTH));
    ck_assert_uint_eq(some.count, 0);
    require(fr_session_put_scored(session, s.prompt, 1, take, &some));
    require(fr_session_step(session, ids, FR_STEP_MAX, &count, &accepted));
    require(fr_session_prompt(session, s.prompt, LENGTH / 2));
    ck_assert_uint_eq(some.count, 0);
    fr_session_close(session);
    close_subject(&s);
}
END_TEST

FR_SUITE("prompt_score") {
    TCase *cases = tcase_create("scores");
    tcase_set_timeout(cases, 60);
    fr_test_add_loop(cases, rounds_score_as_a_run_of_its_own, FIXTURES, 3);
    fr_test_add_loop(cases, a_step_scores_its_prompt, FIXTURES, 3);
    tcase_add_test(cases, another_prompt_is_not_scored);
    suite_add_tcase(suite, cases);
}
