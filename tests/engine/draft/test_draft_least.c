/* Tests the limits below which drafts are not used. A chain of drafts ends before the first draft whose probability is
 * below FR_OPT_DRAFT_P_MIN. If the chain is then shorter than FR_OPT_DRAFT_MIN, it is dropped. With FR_DRAFT_P_AUTO the
 * engine decides from measured times where a chain ends. The text must be the same as without drafting, except with
 * rejection sampling.
 *
 * The test computes the expected probability of a draft from the drafter's logits, in double precision. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/brief.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

enum { PROMPT = 30, TEXT = 60, DEPTH = 6 };

static const struct {
    const char *target, *drafter; /* if drafter is NULL, the target's own layer drafts */
} subjects[] = {{FR_TEST_MODELS "gemma4-e", FR_TEST_MODELS "gemma4-e/assistant"},
                {FR_TEST_MODELS "gemma4-dense-odd", FR_TEST_MODELS "gemma4-dense-odd/assistant"},
                {FR_TEST_MODELS "llama", "tests/data/llama/eagle3"},
                {FR_TEST_MODELS "llama", "tests/data/llama/eagle"},
                {FR_TEST_MODELS "llama", "tests/data/llama/q4_0.gguf"},
                {FR_TEST_MODELS "glm-ocr-odd", NULL},
                {"tests/data/dflash/qwen3", "tests/data/dflash/qwen3/drafter"},
                {"tests/data/dflash/v2-qwen3.5", "tests/data/dflash/v2-qwen3.5/drafter"}};

/* Pairs of limits: the least probability of a draft, and the least number of drafts in a chain. */
static const struct {
    double least;
    int64_t fewest;
} limits[] = {{0.0, 3}, {0.1, 0}, {0.4, 0}, {0.6, 0}, {0.3, 2}, {0.9, 1}};

typedef struct subject {
    fr_options *options;
    fr_model *model;
    fr_drafter *drafter;
    size_t vocab;
} subject;

static subject open_subject(int which) {
    subject s = {.options = fr_options_new()};
    require(fr_options_set(s.options, FR_OPT_CONTEXT, 256));
    require(fr_options_set(s.options, FR_OPT_THREADS, 2));
    require(fr_options_set(s.options, FR_OPT_IGNORE_EOS, 1));
    require(fr_model_open(subjects[which].target, s.options, &s.model));
    require(fr_drafter_open(subjects[which].drafter, s.model, s.options, &s.drafter));
    s.vocab = (size_t)fr_model_fact(s.model, FR_FACT_VOCAB);
    return s;
}

static void close_subject(subject *s) {
    fr_drafter_close(s->drafter);
    fr_model_close(s->model);
    fr_options_free(s->options);
}

static fr_session *open_session(const subject *s, int64_t depth, double least, int64_t fewest) {
    int32_t prompt[PROMPT];
    fr_session *session;
    require(fr_options_set(s->options, FR_OPT_DRAFT_MAX, depth));
    require(fr_options_set_number(s->options, FR_OPT_DRAFT_P_MIN, least));
    require(fr_options_set(s->options, FR_OPT_DRAFT_MIN, fewest));
    require(fr_session_open(s->model, s->drafter, s->options, &session));
    for (int32_t i = 0; i < PROMPT; i++) prompt[i] = 5 + i * 37 % ((int32_t)s->vocab - 20);
    require(fr_session_prompt(session, prompt, PROMPT));
    return session;
}

static double chance(const float *logits, size_t count, int32_t id) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += exp((double)logits[i] - (double)logits[id]);
    return 1 / sum;
}

/* Returns how many of the next drafts remain when both limits are applied. */
static size_t worth(const subject *s, fr_session *session, double least, int64_t fewest, float *logits) {
    int32_t ids[DEPTH];
    size_t count, kept = 0;
    require(fr_draft_now(session, DEPTH, ids, &count, logits));
    while (kept < count && chance(logits + kept * s->vocab, s->vocab, ids[kept]) >= least) kept++;
    return kept < (size_t)fewest ? 0 : kept;
}

static void write_plain(const subject *s, int32_t *text) {
    fr_session *session = open_session(s, 0, 0, 0);
    for (size_t made = 0, got, accepted; made < TEXT; made += got)
        require(fr_session_step(session, text + made, TEXT - made, &got, &accepted));
    fr_session_close(session);
}

/* Checks in each step how many drafts the session makes. In every second step the test requests the drafts before the
 * step. */
static size_t check_steps(const subject *s, int limit, const int32_t *plain, float *logits) {
    int32_t text[TEXT + FR_STEP_MAX], shown[FR_STEP_MAX];
    double least = limits[limit].least;
    fr_session *session = open_session(s, DEPTH, least, limits[limit].fewest);
    size_t drafted = 0, made = 0, got, accepted, count;
    for (size_t step = 0; made < TEXT; made += got, step++) {
        size_t wanted = step ? worth(s, session, least, limits[limit].fewest, logits) : 0;
        if (step % 2) {
            require(fr_draft_submit(session));
            require(fr_draft_wait(session, shown, &count));
            ck_assert_uint_eq(count, step ? wanted : 0);
        }
        require(fr_session_step(session, text + made, FR_STEP_MAX, &got, &accepted));
        ck_assert_double_eq(fr_session_stat(session, FR_STAT_DRAFTED), (double)(drafted += wanted));
    }
    ck_assert_mem_eq(text, plain, TEXT * sizeof *plain);
    fr_session_close(session);
    return drafted;
}

START_TEST(chains_end_where_they_should) {
    enum { LIMITS = sizeof limits / sizeof *limits };
    subject s = open_subject(_i);
    float *logits = calloc(DEPTH * s.vocab, sizeof *logits);
    int32_t plain[TEXT];
    size_t drafted[LIMITS];
    write_plain(&s, plain);
    for (int i = 0; i < LIMITS; i++) drafted[i] = check_steps(&s, i, plain, logits);
    ck_assert_uint_gt(drafted[0], drafted[5]);
    free(logits);
    close_subject(&s);
}
END_TEST

/* Tests the limits with sampled text. With draft depth "auto" the text must be the one without drafts. With rejection
 * sampling the text may differ, but the limits must hold. */
START_TEST(every_way_of_drafting_heeds_them) {
    subject s = open_subject(_i);
    int32_t plain[TEXT], text[TEXT + FR_STEP_MAX];
    require(fr_options_set_number(s.options, FR_OPT_TEMPERATURE, 0.8));
    write_plain(&s, plain);
    for (int by_chance = 0; by_chance < 2; by_chance++) {
        require(fr_options_set_text(s.options, FR_OPT_ACCEPT, by_chance ? "rejection" : "gumbel"));
        fr_session *session = open_session(&s, by_chance ? DEPTH : FR_DRAFT_AUTO, 0.02, by_chance ? 1 : 2);
        for (size_t made = 0, got, accepted; made < TEXT; made += got) {
            double before = fr_session_stat(session, FR_STAT_DRAFTED);
            require(fr_session_step(session, text + made, FR_STEP_MAX, &got, &accepted));
            ck_assert(by_chance || fr_session_stat(session, FR_STAT_DRAFTED) - before != 1);
        }
        ck_assert(by_chance || memcmp(text, plain, sizeof plain) == 0);
        fr_session_close(session);
    }
    close_subject(&s);
}
END_TEST

/* The clock of this test reports arbitrary times, so chains of drafts end at arbitrary places. The text must stay the
 * same. */
START_TEST(worthwhile_chains_write_the_same_text) {
    subject s = open_subject(_i);
    int32_t plain[TEXT], text[TEXT + FR_STEP_MAX];
    for (int drawn = 0; drawn < 2; drawn++) {
        require(fr_options_set_number(s.options, FR_OPT_TEMPERATURE, drawn ? 0.8 : 0));
        write_plain(&s, plain);
        fr_session *session = open_session(&s, FR_DRAFT_AUTO, FR_DRAFT_P_AUTO, 0);
        for (size_t made = 0, got, accepted; made < TEXT; made += got)
            require(fr_session_step(session, text + made, FR_STEP_MAX, &got, &accepted));
        ck_assert_double_gt(fr_session_stat(session, FR_STAT_DRAFTED), 0);
        ck_assert_mem_eq(text, plain, sizeof plain);
        fr_session_close(session);
    }
    close_subject(&s);
}
END_TEST

START_TEST(what_can_not_be_heeded_is_refused) {
    subject s = open_subject(0);
    fr_session *session;
    require(fr_options_set(s.options, FR_OPT_DRAFT_MAX, 2));
    require(fr_options_set(s.options, FR_OPT_DRAFT_MIN, 3));
    ck_assert_int_eq(fr_session_open(s.model, s.drafter, s.options, &session), FR_USAGE);
    ck_assert_str_eq(fr_last_error(), "draft-min 3 is more than the 2 drafts of draft-max");
    require(fr_options_set(s.options, FR_OPT_DRAFT_MIN, 2));
    require(fr_options_set_number(s.options, FR_OPT_TEMPERATURE, 1));
    require(fr_options_set_text(s.options, FR_OPT_ACCEPT, "rejection"));
    ck_assert_int_eq(fr_session_open(s.model, s.drafter, s.options, &session), FR_USAGE);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "under rejection"));
    ck_assert_int_eq(fr_options_set_number(s.options, FR_OPT_DRAFT_P_MIN, 1.5), FR_USAGE);
    ck_assert_int_eq(fr_options_set_number(s.options, FR_OPT_DRAFT_P_MIN, -0.5), FR_USAGE);
    require(fr_options_set_number(s.options, FR_OPT_DRAFT_P_MIN, FR_DRAFT_P_AUTO));
    ck_assert_int_eq(fr_options_set(s.options, FR_OPT_DRAFT_MIN, 16), FR_USAGE);
    close_subject(&s);
}
END_TEST

FR_SUITE("draft_least") {
    enum { SUBJECTS = sizeof subjects / sizeof *subjects };
    TCase *tests = tcase_create("tests");
    tcase_set_timeout(tests, 120);
    fr_test_add_loop(tests, chains_end_where_they_should, SUBJECTS, 1);
    tcase_add_loop_test(tests, every_way_of_drafting_heeds_them, 0, SUBJECTS);
    tcase_add_loop_test(tests, worthwhile_chains_write_the_same_text, 0, SUBJECTS);
    tcase_add_test(tests, what_can_not_be_heeded_is_refused);
    suite_add_tcase(suite, tests);
}
