/* Tests sessions that have only just enough pages of the KV cache. A session that drafts must need no more pages than a
 * session that doesn't, and must give the same ids. The test itself takes free pages from the engine's pools. It leaves
 * as many pages as a case says. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "src/engine/session/state.h"
#include "tests/support/brief.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

enum { CONTEXT = 256, DRAFTS = 6, SESSIONS = 3, PAGE = FR_KV_PAGE, CHUNK = 100, PAGES_MAX = 200 };

static const struct {
    const char *target, *drafter; /* drafter: NULL means the target's own MTP layer */
} subjects[] = {{FR_TEST_MODELS "glm4-moe-own", NULL},
                {FR_TEST_MODELS "llama", "tests/data/llama/eagle3"},
                {"tests/data/dflash/llama-sliding", "tests/data/dflash/llama-sliding/drafter"},
                {FR_TEST_MODELS "gemma4-e-odd", FR_TEST_MODELS "gemma4-e-odd/assistant"},
                {FR_TEST_MODELS "llama", "tests/data/llama/q4_0.gguf"},
                {FR_TEST_MODELS "qwen35-odd", NULL}};
enum {
    SUBJECTS = sizeof subjects / sizeof *subjects,
    FOLLOWERS = 3
}; /* in the first FOLLOWERS subjects, the drafter reads the target's rows */

typedef struct subject {
    fr_options *options;
    fr_model *model;
    fr_drafter *drafter;
    fr_engine *engine;
    fr_session *sessions[SESSIONS];
    uint8_t *hoard[FR_KV_KINDS][PAGES_MAX]; /* free pages that the test has taken from the pools */
    size_t hoarded[FR_KV_KINDS];
} subject;

static void open_subject(subject *s, int which, int64_t drafts) {
    *s = (subject){.options = fr_options_new()};
    require(fr_options_set(s->options, FR_OPT_CONTEXT, CONTEXT));
    require(fr_options_set(s->options, FR_OPT_THREADS, 1));
    require(fr_options_set(s->options, FR_OPT_CHUNK, CHUNK));
    require(fr_options_set(s->options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set(s->options, FR_OPT_DRAFT_MAX, drafts));
    require(fr_model_open(subjects[which].target, s->options, &s->model));
    require(fr_drafter_open(subjects[which].drafter, s->model, s->options, &s->drafter));
    require(fr_engine_open(s->model, s->drafter, s->options, SESSIONS, &s->engine));
    for (size_t i = 0; i < SESSIONS; i++) require(fr_engine_session(s->engine, s->options, &s->sessions[i]));
}

static void close_subject(subject *s) {
    for (size_t i = 0; i < SESSIONS; i++) fr_session_close(s->sessions[i]);
    for (fr_kv_kind kind = 0; kind < FR_KV_KINDS; kind++)
        fr_kv_pages_drop(&s->engine->kv.pages[kind], s->hoard[kind], 0, s->hoarded[kind]);
    fr_engine_close(s->engine);
    fr_drafter_close(s->drafter);
    fr_model_close(s->model);
    fr_options_free(s->options);
}

/* Takes free pages from the pools until only `left` free pages of each kind remain. The remaining pages hold no cached
 * rows. */
static void leave(subject *s, size_t left) {
    for (fr_kv_kind kind = 0; kind < FR_KV_KINDS; kind++) {
        fr_kv_pages *pool = &s->engine->kv.pages[kind];
        uint8_t **hoard = s->hoard[kind], *page;
        size_t *count = &s->hoarded[kind];
        ck_assert_uint_le(pool->count, PAGES_MAX);
        while ((page = fr_kv_pages_take(pool))) hoard[(*count)++] = page;
        for (size_t i = 0; i < left && *count; i++, --*count) fr_kv_pages_drop(pool, hoard, *count - 1, *count);
    }
}

/* Makes ids that differ for each seed. If two prompts have the same seed, the longer one begins with the shorter
 * one. */
static void make_prompt(const subject *s, int32_t *ids, size_t count, uint32_t seed) {
    size_t vocab = (size_t)fr_model_fact(s->model, FR_FACT_VOCAB);
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        ids[i] = (int32_t)(((uint64_t)seed * (vocab - 10)) >> 32);
    }
}

static void prompt(subject *s, size_t session, size_t count, uint32_t seed) {
    int32_t ids[CONTEXT];
    make_prompt(s, ids, count, seed);
    require(fr_session_prompt(s->sessions[session], ids, count));
}

static size_t length(const subject *s, size_t session) {
    return fr_session_length(s->sessions[session]);
}

/* Runs a round of the first `count` sessions. */
static void run_round(subject *s, size_t count, int32_t ids[][FR_STEP_MAX]) {
    fr_round rounds[SESSIONS];
    for (size_t i = 0; i < count; i++)
        rounds[i] = (fr_round){.session = s->sessions[i], .ids = ids[i], .limit = FR_STEP_MAX};
    require(fr_engine_step(s->engine, rounds, count));
    for (size_t i = 0; i < count; i++) ck_assert_msg(rounds[i].status == FR_OK, "session %zu: %s", i, rounds[i].error);
}

static double drafted(const subject *s, size_t session) {
    return fr_session_stat(s->sessions[session], FR_STAT_DRAFTED);
}

/* Steps a session whose timeline has 56 ids and one page. No other page is free. The function stops when a page is
 * missing, and returns how many ids the session has given. */
static size_t say(int which, int64_t drafts, int32_t *text) {
    subject s;
    size_t made = 0, got, accepted;
    fr_status status;
    open_subject(&s, which, drafts);
    prompt(&s, 0, 56, 1);
    leave(&s, 0);
    while ((status = fr_session_step(s.sessions[0], text + made, FR_STEP_MAX, &got, &accepted)) == FR_OK) made += got;
    ck_assert_int_eq(status, FR_MEMORY);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "no page for keys and values at position 64 is left"));
    ck_assert(drafted(&s, 0) > 0 || drafts == 0);
    close_subject(&s);
    return made;
}

START_TEST(drafts_end_where_pages_do) {
    int32_t plain[CONTEXT + FR_STEP_MAX], text[CONTEXT + FR_STEP_MAX];
    size_t said = say(_i, 0, plain);
    ck_assert_uint_eq(said, PAGE + 1 - 56);
    ck_assert_uint_eq(say(_i, DRAFTS, text), said);
    ck_assert_mem_eq(text, plain, said * sizeof *text);
}
END_TEST

/* Three pages are free, and the rows of the three sessions need all of them. The drafts of the first session must not
 * take any of these pages. */
START_TEST(drafts_take_no_page_of_a_row) {
    int32_t ids[SESSIONS][FR_STEP_MAX], waiting[CHUNK];
    subject s;
    open_subject(&s, _i, DRAFTS);
    prompt(&s, 0, 62, 1);
    prompt(&s, 1, PAGE, 2);
    make_prompt(&s, waiting, CHUNK, 3);
    run_round(&s, 2, ids); /* gives the first id after each prompt */
    require(fr_session_put(s.sessions[2], waiting, CHUNK));
    leave(&s, 3);
    run_round(&s, SESSIONS, ids);
    ck_assert_uint_eq(length(&s, 2), CHUNK + 1);
    close_subject(&s);
}
END_TEST

/* If a session's pages have room for fewer drafts than --draft-min, the session makes no drafts. Here there is room for
 * one draft. */
START_TEST(few_drafts_are_none) {
    int32_t ids[1][FR_STEP_MAX];
    subject s;
    open_subject(&s, _i, DRAFTS);
    for (int64_t fewest = 1; fewest <= 2; fewest++) {
        fr_session_close(s.sessions[0]);
        require(fr_options_set(s.options, FR_OPT_DRAFT_MIN, fewest));
        require(fr_engine_session(s.engine, s.options, &s.sessions[0]));
        prompt(&s, 0, 62, 1);
        leave(&s, 0);
        run_round(&s, 1, ids); /* gives the first id after the prompt */
        run_round(&s, 1, ids);
        ck_assert_double_eq(drafted(&s, 0), fewest == 1 ? 1 : 0);
    }
    close_subject(&s);
}
END_TEST

/* A prompt that waits for a free page must not stop sessions that need no page. */
START_TEST(who_waits_for_a_page_holds_up_nobody) {
    int32_t ids[2][FR_STEP_MAX], text[2 * CHUNK];
    subject s;
    open_subject(&s, _i, 0);
    prompt(&s, 0, PAGE, 1);
    prompt(&s, 1, 30, 2);
    leave(&s, 0);
    make_prompt(&s, text, 2 * CHUNK, 1);
    require(fr_session_put(s.sessions[0], text, 2 * CHUNK));
    make_prompt(&s, text, 50, 2);
    require(fr_session_put(s.sessions[1], text, 50));
    fr_round rounds[] = {{.session = s.sessions[0], .ids = ids[0], .limit = FR_STEP_MAX},
                         {.session = s.sessions[1], .ids = ids[1], .limit = FR_STEP_MAX}};
    require(fr_engine_step(s.engine, rounds, 2));
    ck_assert_int_eq(rounds[0].status, FR_MEMORY);
    ck_assert_int_eq(rounds[1].status, FR_OK);
    ck_assert_uint_eq(rounds[1].count, 1);
    close_subject(&s);
}
END_TEST

START_TEST(rejected_drafts_hold_no_page) {
    int32_t ids[1][FR_STEP_MAX];
    subject s;
    open_subject(&s, _i, DRAFTS);
    prompt(&s, 0, 50, 1);
    const fr_kv *kv = &s.sessions[0]->cache.kv;
    while (length(&s, 0) < 2 * PAGE + 4) {
        run_round(&s, 1, ids);
        for (fr_kv_kind kind = 0; kind < FR_KV_KINDS; kind++)
            ck_assert_ptr_null(kv->table[kind][fr_kv_blocks(kv->length)]);
    }
    ck_assert_double_gt(drafted(&s, 0), 0);
    close_subject(&s);
}
END_TEST

/* Another session has run the first 70 ids of this prompt. One page is free for the rest. If the drafter reads the
 * target's rows, the last shared id is run again. Then the page with that id must be copied. */
START_TEST(what_is_found_is_enough) {
    int32_t ids[100];
    subject s;
    open_subject(&s, _i / 2, _i % 2 ? DRAFTS : 0);
    prompt(&s, 0, 100, 1);
    leave(&s, 1);
    make_prompt(&s, ids, 100, 1);
    ids[70]++;
    require(fr_session_prompt(s.sessions[1], ids, 100));
    ck_assert_double_eq(fr_session_stat(s.sessions[1], FR_STAT_REUSED_TOKENS), _i % 2 ? 69 : 70);
    close_subject(&s);
}
END_TEST

/* The first rows of a prompt have been run, and the others wait. Another session must already be able to reuse the
 * first rows. */
START_TEST(pieces_are_shared_at_once) {
    int32_t ids[1][FR_STEP_MAX], text[150];
    subject s;
    open_subject(&s, _i / 2, _i % 2 ? DRAFTS : 0);
    make_prompt(&s, text, 150, 1);
    require(fr_session_put(s.sessions[0], text, 150));
    run_round(&s, 1, ids);
    ck_assert_uint_eq(fr_session_waiting(s.sessions[0]), 150 - CHUNK);
    require(fr_session_put(s.sessions[1], text, 150));
    ck_assert_double_eq(fr_session_stat(s.sessions[1], FR_STAT_REUSED_TOKENS), CHUNK);
    close_subject(&s);
}
END_TEST

/* Two sessions generate the same text up to the end of a page. When both have completed the page, they share one copy
 * of it, and the other copy becomes free. With that page and the page that was free before, both sessions can
 * continue. */
START_TEST(texts_are_shared_at_once) {
    int32_t ids[2][FR_STEP_MAX];
    subject s;
    open_subject(&s, _i / 2, _i % 2 ? DRAFTS : 0);
    for (size_t begin = 30; begin < PAGE; begin += fr_test_brief() ? 6 : 1) {
        for (size_t i = 0; i < 2; i++) {
            fr_session_reset(s.sessions[i]);
            prompt(&s, i, begin, (uint32_t)begin);
        }
        leave(&s, 1);
        while (length(&s, 0) < PAGE + 2 || length(&s, 1) < PAGE + 2) run_round(&s, 2, ids);
        uint8_t **pages[] = {s.sessions[0]->cache.kv.table[FR_KV_FULL], s.sessions[1]->cache.kv.table[FR_KV_FULL]};
        ck_assert_ptr_eq(pages[0][0], pages[1][0]);
        ck_assert_ptr_ne(pages[0][1], pages[1][1]);
    }
    close_subject(&s);
}
END_TEST

FR_SUITE("few_pages") {
    TCase *tests = tcase_create("tests");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, drafts_end_where_pages_do, 0, SUBJECTS);
    tcase_add_loop_test(tests, drafts_take_no_page_of_a_row, 0, SUBJECTS);
    tcase_add_loop_test(tests, few_drafts_are_none, 0, SUBJECTS);
    tcase_add_loop_test(tests, who_waits_for_a_page_holds_up_nobody, 0, SUBJECTS);
    tcase_add_loop_test(tests, rejected_drafts_hold_no_page, 0, SUBJECTS);
    tcase_add_loop_test(tests, what_is_found_is_enough, 0, 2 * FOLLOWERS);
    tcase_add_loop_test(tests, pieces_are_shared_at_once, 0, 2 * FOLLOWERS);
    tcase_add_loop_test(tests, texts_are_shared_at_once, 0, 2 * FOLLOWERS);
    suite_add_tcase(suite, tests);
}
