/* Tests asynchronous drafting. The caller submits, awaits and cancels drafts and truncates the text in random order;
 * the ids must be those of decoding without drafts. A second submit is refused. The session's own thread and the
 * caller's thread must have no data race, which ThreadSanitizer would report.
 *
 * A build for ThreadSanitizer runs 10,000 random interleavings of the calls. Other builds run fewer. If FORERUN_BRIEF
 * is set in the environment (for valgrind), 75 are run. */
/* suite: threads native */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "forerun.h"
#include "tests/support/brief.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

#ifdef __SANITIZE_THREAD__
#define INTERLEAVINGS 10000
#else
#define INTERLEAVINGS 1500
#endif
#define CONTEXT 96

/* The first drafter reads the target's KV cache. The second drafter has its own KV cache. */
static const struct {
    const char *target, *drafter; /* if drafter is NULL, the MTP layer in the target's files drafts */
} models[] = {{"tools/demo/target", "tools/demo/assistant"}, {"tests/data/glm-ocr", NULL}};

static const char text[] =
    "import os\nimport sys\n\nclass Parser:\n    def __init__(self, name):\n        self.name = name";

typedef struct pair {
    fr_model *model;
    fr_drafter *drafter;
    fr_options *options;
    fr_session *async, *plain;
    int32_t *text; /* source code as ids; the demo model was trained on such code */
    size_t text_length, accepted;
} pair;

static size_t interleavings(void) {
    return fr_test_brief() ? 75 : INTERLEAVINGS;
}

static uint32_t state;

static uint32_t below(uint32_t limit) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % limit;
}

static void open_sessions(pair *p) {
    require(fr_session_open(p->model, p->drafter, p->options, &p->async));
    require(fr_session_open(p->model, NULL, p->options, &p->plain));
}

static void close_sessions(pair *p) {
    fr_session_close(p->async);
    fr_session_close(p->plain);
}

static void open_pair(pair *p, size_t which, int threads, int depth, double temperature) {
    *p = (pair){.options = fr_options_new()};
    require(fr_options_set(p->options, FR_OPT_THREADS, threads));
    require(fr_options_set(p->options, FR_OPT_CONTEXT, CONTEXT));
    require(fr_options_set(p->options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set(p->options, FR_OPT_DRAFT_MAX, depth));
    require(fr_options_set_number(p->options, FR_OPT_TEMPERATURE, temperature));
    require(fr_model_open(models[which].target, p->options, &p->model));
    require(fr_drafter_open(models[which].drafter, p->model, p->options, &p->drafter));
    if (models[which].drafter)
        require(fr_tokenize(fr_model_tokenizer(p->model), text, strlen(text), true, true, &p->text, &p->text_length));
    open_sessions(p);
}

static void close_pair(pair *p) {
    close_sessions(p);
    fr_drafter_close(p->drafter);
    fr_model_close(p->model);
    fr_options_free(p->options);
    fr_free(p->text);
}

/* Runs one step of the asynchronous session. Then runs steps of the plain session until it has as many ids, and
 * compares the ids. */
static size_t step_both(pair *p, size_t limit) {
    int32_t ids[FR_STEP_MAX], id;
    size_t count, accepted, one;
    require(fr_session_step(p->async, ids, limit, &count, &accepted));
    ck_assert_uint_le(count, limit);
    p->accepted += accepted;
    for (size_t i = 0; i < count; i++) {
        require(fr_session_step(p->plain, &id, 1, &one, &accepted));
        ck_assert_uint_eq(one, 1);
        ck_assert_int_eq(id, ids[i]);
    }
    return count;
}

/* Appends a prompt to both sessions. While the text has ids left, the prompt is mostly the next part of the text.
 * Sometimes it is random ids. */
static void prompt_both(pair *p, size_t count) {
    int32_t ids[CONTEXT];
    size_t length = fr_session_length(p->async);
    bool known = length + count <= p->text_length && below(8);
    for (size_t i = 0; i < count; i++) ids[i] = known ? p->text[length + i] : (int32_t)below(400);
    require(fr_session_prompt(p->async, ids, count));
    require(fr_session_prompt(p->plain, ids, count));
}

START_TEST(ids_are_those_of_plain_decoding) {
    static const int depths[] = {3, 15, FR_DRAFT_AUTO};
    pair p;
    size_t accepted;
    const uint8_t *lengths;
    state = 7;
    open_pair(&p, (size_t)_i / 6, 2, depths[_i % 3], _i % 6 < 3 ? 0 : 0.8);
    prompt_both(&p, 9);
    for (size_t got = 1; got; got = step_both(&p, FR_STEP_MAX)) require(fr_draft_submit(p.async));
    ck_assert_uint_eq(fr_session_length(p.async), CONTEXT);
    accepted = fr_session_accepted_lengths(p.async, &lengths);
    ck_assert_uint_gt(accepted, 0);
    close_pair(&p);
}
END_TEST

/* A step that follows fr_draft_wait must verify the drafts that fr_draft_wait returned. */
START_TEST(a_step_takes_the_drafts_that_were_submitted) {
    pair p;
    int32_t drafts[FR_STEP_MAX], ids[FR_STEP_MAX];
    size_t drafted, count, accepted;
    state = 3;
    open_pair(&p, (size_t)_i, 1, 3, 0);
    prompt_both(&p, 5);
    step_both(&p, 1);
    for (int round = 0; round < 10; round++) {
        double before = fr_session_stat(p.async, FR_STAT_DRAFTED);
        require(fr_draft_submit(p.async));
        require(fr_draft_wait(p.async, drafts, &drafted));
        ck_assert_uint_eq(drafted, 3);
        require(fr_session_step(p.async, ids, FR_STEP_MAX, &count, &accepted));
        ck_assert_mem_eq(ids, drafts, accepted * sizeof *ids);
        ck_assert(accepted == 3 || ids[accepted] != drafts[accepted]);
        ck_assert_double_eq(fr_session_stat(p.async, FR_STAT_DRAFTED) - before, 3);
    }
    close_pair(&p);
}
END_TEST

static size_t count_call(void *context, fr_drafting *drafting) {
    drafting->drafts[0] = 7;
    ++*(size_t *)context;
    return 1;
}

/* A step uses the submitted drafts. It must not ask the draft method for more. */
START_TEST(a_step_asks_for_no_drafts_beside_those_submitted) {
    pair p;
    size_t calls = 0;
    state = 3;
    open_pair(&p, (size_t)_i, 1, 3, 0);
    require(fr_session_set_proposer(p.async, &(fr_proposer){.propose = count_call, .context = &calls}));
    prompt_both(&p, 5);
    step_both(&p, 1);
    for (size_t round = 1; round <= 10; round++) {
        require(fr_draft_submit(p.async));
        step_both(&p, FR_STEP_MAX);
        ck_assert_uint_eq(calls, round);
    }
    close_pair(&p);
}
END_TEST

START_TEST(one_is_under_way_at_most) {
    pair p;
    int32_t ids[FR_STEP_MAX];
    size_t count;
    state = 5;
    open_pair(&p, (size_t)_i, 1, 3, 0);
    prompt_both(&p, 5);
    step_both(&p, 1);
    ck_assert_int_eq(fr_draft_wait(p.async, ids, &count), FR_USAGE);
    require(fr_draft_submit(p.async));
    ck_assert_int_eq(fr_draft_submit(p.async), FR_USAGE);
    ck_assert_int_eq(fr_draft_now(p.async, 2, ids, &count, NULL), FR_USAGE);
    require(fr_draft_wait(p.async, ids, &count));
    require(fr_draft_submit(p.async));
    fr_draft_cancel(p.async);
    ck_assert_int_eq(fr_draft_wait(p.async, ids, &count), FR_USAGE);
    require(fr_draft_now(p.async, 2, ids, &count, NULL));
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(fr_draft_now(p.async, FR_STEP_MAX, ids, &count, NULL), FR_USAGE);
    require(fr_draft_submit(p.async));
    fr_session_cancel(p.async);
    ck_assert_int_eq(fr_session_step(p.async, ids, 1, &count, &count), FR_ABORTED);
    require(fr_draft_submit(p.async));
    step_both(&p, FR_STEP_MAX);
    close_pair(&p);
}
END_TEST

typedef struct rows {
    float *logits;
    size_t vocab;
} rows;

static fr_status keep(void *context, const float *logits, size_t count, size_t vocab) {
    rows *r = context;
    memcpy(r->logits, logits, count * vocab * sizeof *logits);
    return FR_OK;
}

/* Checks the number and the form of the logits. test_reference.c compares the logits of fr_session_draft_logits with
 * the reference. */
START_TEST(drafting_now_gives_the_full_logits) {
    enum { STEPS = 4, COUNT = 12 };
    pair p;
    int32_t ids[COUNT], drafts[STEPS], next;
    size_t count, accepted;
    state = 11;
    open_pair(&p, (size_t)_i, 1, 3, 0);
    size_t vocab = (size_t)fr_model_fact(p.model, FR_FACT_VOCAB);
    float *now = malloc(STEPS * vocab * sizeof *now), *then = malloc(STEPS * vocab * sizeof *then);
    for (int i = 0; i < COUNT; i++) ids[i] = (int32_t)below(400);
    require(fr_session_prompt(p.async, ids, COUNT - 1));
    require(fr_session_step(p.async, &next, 1, &count, &accepted));
    ids[COUNT - 1] = next;
    require(fr_draft_now(p.async, STEPS, drafts, &count, now));
    ck_assert_uint_eq(count, STEPS);
    rows kept = {then, vocab};
    require(fr_session_draft_logits(p.async, ids, COUNT, STEPS, keep, &kept));
    ck_assert_mem_eq(now, then, STEPS * vocab * sizeof *now);
    for (size_t i = 0; i < vocab; i++) ck_assert(!(now[i] > now[drafts[0]]));
    free(now);
    free(then);
    close_pair(&p);
}
END_TEST

static void act(pair *p) {
    int32_t ids[FR_STEP_MAX];
    size_t count, length = fr_session_length(p->async);
    switch (below(12)) {
    case 0:
        if (length + 10 < CONTEXT) prompt_both(p, 1 + below(8));
        break;
    case 1:
        length = length ? below((uint32_t)length + 1) : 0;
        require(fr_session_truncate(p->async, length));
        require(fr_session_truncate(p->plain, length));
        break;
    case 2: fr_draft_cancel(p->async); break;
    case 3: fr_draft_wait(p->async, ids, &count); break;
    case 4: fr_draft_now(p->async, 1 + below(15), ids, &count, NULL); break;
    case 5:
        if (below(8)) break;
        close_sessions(p);
        open_sessions(p);
        break;
    case 6:
        if (below(4)) break;
        fr_session_reset(p->async);
        fr_session_reset(p->plain);
        break;
    case 7:
    case 8:
    case 9:
        if (length) step_both(p, 1 + below(FR_STEP_MAX));
        break;
    default: fr_draft_submit(p->async);
    }
}

START_TEST(random_interleavings_change_nothing) {
    pair p;
    state = 17 + (uint32_t)_i;
    open_pair(&p, (size_t)_i % 2, 1 + _i / 2, _i / 2 ? FR_DRAFT_AUTO : 4, 0);
    for (size_t i = 0; i < interleavings(); i++) act(&p);
    /* With draft depth "auto" the number of drafts depends on the clock, so the test requires fewer accepted drafts. */
    if (p.text) ck_assert_uint_gt(p.accepted, interleavings() / (_i / 2 ? 100 : 20));
    close_pair(&p);
}
END_TEST

FR_SUITE("async_draft") {
    TCase *core = tcase_create("async_draft");
    tcase_set_timeout(core, 600);
    tcase_add_loop_test(core, ids_are_those_of_plain_decoding, 0, 12);
    tcase_add_loop_test(core, a_step_takes_the_drafts_that_were_submitted, 0, 2);
    tcase_add_loop_test(core, a_step_asks_for_no_drafts_beside_those_submitted, 0, 2);
    tcase_add_loop_test(core, one_is_under_way_at_most, 0, 2);
    tcase_add_loop_test(core, drafting_now_gives_the_full_logits, 0, 2);
    tcase_add_loop_test(core, random_interleavings_change_nothing, 0, 4);
    suite_add_tcase(suite, core);
}
