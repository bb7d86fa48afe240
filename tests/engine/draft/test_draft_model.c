/* Tests a smaller model as drafter. Its drafts must be the ids that it generates by itself after the same text,
 * whatever calls have produced the text. The target's text must be the same with the drafter as without it. A model
 * that can't draft for a target is refused with one line.
 *
 * The expected drafts come from a session that runs only the draft model. Other suites compare the logits of such
 * sessions with transformers. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "forerun_lab.h"
#include "src/engine/session/state.h"
#include "tests/support/brief.h"
#include "tests/support/least_kv.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

#define LLAMA  FR_TEST_MODELS "llama"
#define SMALL  "tests/data/llama/q4_0.gguf"
#define ROOMY  FR_TEST_MODELS "qwen3-moe-odd" /* a model with a longer context */
#define STATES FR_TEST_MODELS "qwen35-tied"

enum { VOCAB = 400, PROMPT = 50, DEPTH = 6, TEXT = 80 };

typedef struct subject {
    fr_options *options;
    fr_model *target, *small;
    fr_drafter *drafter;
} subject;

static void set(const subject *s, fr_option option, int64_t value) {
    require(fr_options_set(s->options, option, value));
}

static subject open_pair(const char *target, const char *drafter, int64_t threads) {
    subject s = {.options = fr_options_new()};
    set(&s, FR_OPT_CONTEXT, 256);
    set(&s, FR_OPT_THREADS, threads);
    set(&s, FR_OPT_IGNORE_EOS, 1);
    require(fr_options_set_text(s.options, FR_OPT_KV_K, "f32"));
    require(fr_options_set_text(s.options, FR_OPT_KV_V, "f32"));
    require(fr_model_open(target, s.options, &s.target));
    require(fr_model_open(drafter, s.options, &s.small));
    require(fr_drafter_open(drafter, s.target, s.options, &s.drafter));
    return s;
}

static subject open_subject(const char *drafter, int64_t threads) {
    return open_pair(LLAMA, drafter, threads);
}

static void close_subject(subject *s) {
    fr_drafter_close(s->drafter);
    fr_model_close(s->small);
    fr_model_close(s->target);
    fr_options_free(s->options);
}

static void make_prompt(int32_t *ids, size_t count, uint32_t seed) {
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        ids[i] = (int32_t)(seed >> 8) % (VOCAB - 10) + 5;
    }
}

/* Lets the small model generate alone after these ids, token by token. */
static void say_alone(const subject *s, const int32_t *ids, size_t count, int32_t *said, size_t wanted) {
    fr_session *session;
    set(s, FR_OPT_DRAFT_MAX, 0);
    require(fr_session_open(s->small, NULL, s->options, &session));
    require(fr_session_prompt(session, ids, count));
    for (size_t made = 0, got, accepted; made < wanted; made += got)
        require(fr_session_step(session, said + made, wanted - made, &got, &accepted));
    fr_session_close(session);
}

/* Checks that the drafts after a session's text are the ids that the small model generates by itself. */
static void check_drafts(const subject *s, fr_session *session, const int32_t *ids, size_t count) {
    int32_t drafts[FR_STEP_MAX], expected[DEPTH];
    size_t proposed;
    require(fr_draft_now(session, DEPTH, drafts, &proposed, NULL));
    ck_assert_uint_eq(proposed, DEPTH);
    say_alone(s, ids, count, expected, DEPTH);
    ck_assert_mem_eq(drafts, expected, sizeof expected);
}

/* Checks drafts after rounds of several draft depths, after a truncation, after another prompt, and after more
 * rounds. */
START_TEST(drafts_are_what_the_small_model_says) {
    int32_t ids[PROMPT + 3 * TEXT];
    subject s = open_subject(SMALL, 1 + _i);
    fr_session *session;
    size_t length = PROMPT, got, accepted;
    set(&s, FR_OPT_DRAFT_MAX, 3);
    set(&s, FR_OPT_CHUNK, _i ? 7 : 512);
    require(fr_session_open(s.target, s.drafter, s.options, &session));
    make_prompt(ids, PROMPT, 1);
    require(fr_session_prompt(session, ids, PROMPT));
    for (int part = 0; part < 3; part++) {
        for (int round = 0; round < 6; round++, length += got) {
            require(fr_session_step(session, ids + length, FR_STEP_MAX, &got, &accepted));
            check_drafts(&s, session, ids, length + got);
        }
        if (part == 0) {
            require(fr_session_truncate(session, length -= 9));
            ck_assert_uint_eq(session->drafting.draft->method->kv(session->drafting.draft)->length, length - 1);
        }
        if (part == 1) {
            make_prompt(ids + length, 20, 2);
            require(fr_session_prompt(session, ids + length, 20));
            length += 20;
        }
    }
    fr_session_close(session);
    close_subject(&s);
}
END_TEST

static void write_text(const subject *s, bool drafts, int64_t depth, int32_t *text) {
    int32_t prompt[PROMPT];
    fr_session *session;
    set(s, FR_OPT_DRAFT_MAX, depth);
    require(fr_session_open(s->target, drafts ? s->drafter : NULL, s->options, &session));
    make_prompt(prompt, PROMPT, 3);
    require(fr_session_prompt(session, prompt, PROMPT));
    for (size_t made = 0, got, accepted; made < TEXT; made += got)
        require(fr_session_step(session, text + made, TEXT - made, &got, &accepted));
    fr_session_close(session);
}

static void draw(const subject *s) {
    require(fr_options_set_number(s->options, FR_OPT_TEMPERATURE, 0.9));
    set(s, FR_OPT_SEED, 5);
}

/* Tests every draft depth, greedy and sampled. */
START_TEST(the_text_is_the_targets) {
    static int32_t plain[TEXT], drafted[TEXT];
    subject s = open_subject(SMALL, 2);
    if (_i) draw(&s);
    write_text(&s, false, 0, plain);
    for (int64_t depth = 1; depth < FR_STEP_MAX; depth++) {
        write_text(&s, true, depth, drafted);
        ck_assert_msg(memcmp(plain, drafted, sizeof plain) == 0, "depth %d", (int)depth);
    }
    close_subject(&s);
}
END_TEST

/* Here a model drafts for itself, so no draft may be rejected, greedy or sampled. */
START_TEST(a_models_own_drafts_all_stand) {
    int32_t ids[TEXT + FR_STEP_MAX], prompt[PROMPT];
    subject s = open_subject(LLAMA, 1);
    fr_session *session;
    if (_i) draw(&s);
    set(&s, FR_OPT_DRAFT_MAX, 5);
    require(fr_session_open(s.target, s.drafter, s.options, &session));
    make_prompt(prompt, PROMPT, 4);
    require(fr_session_prompt(session, prompt, PROMPT));
    for (size_t made = 0, got, accepted; made < TEXT; made += got)
        require(fr_session_step(session, ids, FR_STEP_MAX, &got, &accepted));
    ck_assert_double_gt(fr_session_stat(session, FR_STAT_DRAFTED), 60);
    ck_assert_double_eq(fr_session_stat(session, FR_STAT_ACCEPTED), fr_session_stat(session, FR_STAT_DRAFTED));
    fr_session_close(session);
    close_subject(&s);
}
END_TEST

static const uint8_t *first_page(const fr_session *session) {
    return session->drafting.draft->method->kv(session->drafting.draft)->table[FR_KV_FULL][0];
}

/* The sessions of an engine make their drafts in one batch. One session is forked. The fork has its own sequence in the
 * draft model, which shares cache pages with the original session's. */
START_TEST(sessions_draft_together) {
    enum { SESSIONS = 3 };
    int32_t ids[SESSIONS][PROMPT + 2 * TEXT], forked[FR_STEP_MAX];
    size_t length[SESSIONS], got, accepted;
    subject s = open_subject(SMALL, 2);
    fr_session *sessions[SESSIONS], *fork;
    fr_engine *engine;
    set(&s, FR_OPT_DRAFT_MAX, 4);
    require(fr_engine_open(s.target, s.drafter, s.options, SESSIONS + 1, &engine));
    for (size_t i = 0; i < SESSIONS; i++) {
        length[i] = PROMPT - 7 * i;
        make_prompt(ids[i], length[i], 10 + (uint32_t)i);
        set(&s, FR_OPT_DRAFT_MAX, 1 + (int64_t)i);
        require(fr_engine_session(engine, s.options, &sessions[i]));
        require(fr_session_put(sessions[i], ids[i], length[i]));
    }
    for (size_t round = 0; round < 20; round++) {
        fr_round rounds[SESSIONS];
        for (size_t i = 0; i < SESSIONS; i++)
            rounds[i] = (fr_round){.session = sessions[i], .ids = ids[i] + length[i], .limit = FR_STEP_MAX};
        require(fr_engine_step(engine, rounds, SESSIONS));
        for (size_t i = 0; i < SESSIONS; i++) {
            require(rounds[i].status);
            length[i] += rounds[i].count;
            if (round > 1) check_drafts(&s, sessions[i], ids[i], length[i]);
        }
    }
    require(fr_session_fork(sessions[0], NULL, &fork));
    ck_assert_ptr_eq(first_page(fork), first_page(sessions[0]));
    require(fr_session_step(fork, forked, FR_STEP_MAX, &got, &accepted));
    memcpy(ids[0] + length[0], forked, got * sizeof *forked);
    check_drafts(&s, fork, ids[0], length[0] + got);
    fr_session_close(fork);
    for (size_t i = 0; i < SESSIONS; i++) fr_session_close(sessions[i]);
    fr_engine_close(engine);
    close_subject(&s);
}
END_TEST

/* Checks that the memory reported for a session is the sum of its parts, each counted once. */
static void check_memory(const fr_session *session) {
    double all = (double)(session->engine->arena.used + session->arena.used);
    ck_assert_double_gt(fr_session_stat(session, FR_STAT_DRAFT_KV_BYTES), 0);
    ck_assert_double_eq(
        all, fr_session_stat(session, FR_STAT_TARGET_KV_BYTES) + fr_session_stat(session, FR_STAT_DRAFT_KV_BYTES) +
                 fr_session_stat(session, FR_STAT_CHECKPOINT_BYTES) + fr_session_stat(session, FR_STAT_SCRATCH_BYTES));
}

/* The sessions' texts begin alike and share cache pages, both the target's and the draft model's. When the last session
 * starts, the draft model has no free page left for it. This session must generate the same ids without drafts. It must
 * draft again when pages become free. */
START_TEST(without_pages_nothing_is_drafted) {
    enum { SESSIONS = 4, BEGINNING = 600, SAID = 12, LAST = SESSIONS - 1 };
    int32_t ids[SESSIONS][BEGINNING + 4 * SAID], plain[SESSIONS][SAID];
    subject s = open_pair(ROOMY, ROOMY, 2);
    fr_session *sessions[SESSIONS], *alone;
    fr_engine *engine;
    fr_kv_pages *pages = NULL;
    uint8_t *taken[100] = {0};
    size_t got, accepted, silent = 0, count = 0;
    set(&s, FR_OPT_CONTEXT, 640);
    set(&s, FR_OPT_DRAFT_MAX, 3);
    set(&s, FR_OPT_KV_MEMORY, 2 * fr_test_least_kv(s.target, s.drafter, s.options, SESSIONS));
    require(fr_engine_open(s.target, s.drafter, s.options, SESSIONS, &engine));
    for (size_t i = 0; i < SESSIONS; i++) {
        make_prompt(ids[i], BEGINNING, 3);
        ids[i][BEGINNING - 1] = (int32_t)i + 5;
        require(fr_session_open(s.target, NULL, s.options, &alone));
        require(fr_session_prompt(alone, ids[i], BEGINNING));
        require(fr_engine_session(engine, s.options, &sessions[i]));
        check_memory(sessions[i]);
        pages = &sessions[i]->drafting.draft->method->kv(sessions[i]->drafting.draft)->pages[FR_KV_FULL];
        while (i == LAST && count < 100 && (taken[count] = fr_kv_pages_take(pages))) count++;
        require(fr_session_prompt(sessions[i], ids[i], BEGINNING));
        for (size_t n = 0; n < SAID; n += got) require(fr_session_step(alone, plain[i] + n, SAID - n, &got, &accepted));
        for (size_t n = 0; n < SAID; n += got)
            require(fr_session_step(sessions[i], ids[i] + BEGINNING + n, SAID - n, &got, &accepted));
        ck_assert_mem_eq(ids[i] + BEGINNING, plain[i], sizeof plain[i]);
        silent += fr_session_stat(sessions[i], FR_STAT_DRAFTED) == 0;
        fr_session_close(alone);
    }
    ck_assert_uint_eq(silent, 1);
    ck_assert_double_eq(fr_session_stat(sessions[LAST], FR_STAT_DRAFTED), 0);
    fr_kv_pages_drop(pages, taken, 0, count);
    for (size_t i = 0; i < 3; i++) require(fr_session_step(sessions[LAST], ids[0], FR_STEP_MAX, &got, &accepted));
    ck_assert_double_gt(fr_session_stat(sessions[LAST], FR_STAT_DRAFTED), 0);
    for (size_t i = 0; i < SESSIONS; i++) fr_session_close(sessions[i]);
    fr_engine_close(engine);
    close_subject(&s);
}
END_TEST

/* Runs rounds of one id each. Such rounds make no drafts, so the draft model does not run these ids. */
static void idle(fr_session *session, int32_t *ids, size_t rounds) {
    size_t got, accepted;
    for (size_t i = 0; i < rounds; i++) {
        require(fr_session_step(session, ids + i, 1, &got, &accepted));
        ck_assert_uint_eq(got, 1);
        ck_assert_uint_eq(accepted, 0);
    }
}

/* In rounds without drafts the draft model does not run the new rows. When a session wants drafts again, the draft
 * model must first run the missing rows. In some cases here one session drafts, in others several draft together. The
 * sessions miss different numbers of rows, and the missing rows of all sessions may be too many for one forward pass.
 * In the last cases a model with recurrent states drafts for itself. */
START_TEST(what_rounds_without_drafts_left_is_followed_together) {
    enum { SESSIONS = 3, MOST = 50 };
    static const size_t behind[][SESSIONS] = {{0, 1, 2}, {3, 0, MOST}, {17, 16, 15}, {MOST, MOST, 1}};
    int32_t ids[SESSIONS][PROMPT + 4 * MOST];
    size_t length[SESSIONS], got, accepted;
    subject s = _i < 2 ? open_subject(SMALL, 1 + _i) : open_pair(STATES, STATES, 2);
    fr_session *sessions[SESSIONS];
    fr_round rounds[SESSIONS];
    fr_engine *engine;
    set(&s, FR_OPT_DRAFT_MAX, 3);
    set(&s, FR_OPT_CHUNK, _i == 1 ? 7 : 512);
    require(fr_engine_open(s.target, s.drafter, s.options, SESSIONS, &engine));
    for (size_t i = 0; i < SESSIONS; i++) {
        make_prompt(ids[i], length[i] = PROMPT - 7 * i, 30 + (uint32_t)i);
        require(fr_engine_session(engine, s.options, &sessions[i]));
        require(fr_session_prompt(sessions[i], ids[i], length[i]));
    }
    for (size_t part = 0; part < sizeof behind / sizeof *behind; part++) {
        for (size_t i = 0; i < SESSIONS; i++) {
            idle(sessions[i], ids[i] + length[i], behind[part][i]);
            length[i] += behind[part][i];
            rounds[i] = (fr_round){.session = sessions[i], .ids = ids[i] + length[i], .limit = FR_STEP_MAX};
        }
        if (part % 2) check_drafts(&s, sessions[0], ids[0], length[0]);
        require(fr_engine_step(engine, rounds, SESSIONS));
        for (size_t i = 0; i < SESSIONS; i++) {
            require(rounds[i].status);
            length[i] += rounds[i].count;
            check_drafts(&s, sessions[i], ids[i], length[i]);
        }
    }
    require(fr_session_step(sessions[0], ids[0] + length[0], FR_STEP_MAX, &got, &accepted));
    check_drafts(&s, sessions[0], ids[0], length[0] + got);
    for (size_t i = 0; i < SESSIONS; i++) fr_session_close(sessions[i]);
    fr_engine_close(engine);
    close_subject(&s);
}
END_TEST

static size_t followed(const fr_session *session) {
    return session->drafting.draft->method->kv(session->drafting.draft)->length;
}

/* An engine has several sessions, and each drafts only as much as saves time. In this case the draft model runs a
 * session's prompt only when the session first wants drafts. If the prompt changes after the draft model has run it,
 * the draft model keeps the beginning that has not changed. In an engine with one session, the draft model runs the
 * prompt at once. */
START_TEST(a_crowds_prompts_are_run_for_those_who_draft) {
    enum { SESSIONS = 2, KEPT = 20 };
    int32_t ids[PROMPT], id;
    size_t got, accepted;
    subject s = open_subject(SMALL, 1);
    fr_session *alone, *sessions[SESSIONS];
    fr_engine *engine;
    set(&s, FR_OPT_DRAFT_MAX, FR_DRAFT_AUTO);
    require(fr_engine_open(s.target, s.drafter, s.options, SESSIONS, &engine));
    make_prompt(ids, PROMPT, 77);
    for (size_t i = 0; i < SESSIONS; i++) {
        require(fr_engine_session(engine, s.options, &sessions[i]));
        require(fr_session_prompt(sessions[i], ids, PROMPT));
        require(fr_session_step(sessions[i], &id, 1, &got, &accepted));
        ck_assert_uint_eq(followed(sessions[i]), 0);
        ck_assert_uint_ge(sessions[i]->drafting.depth.by[0].behind, PROMPT);
    }
    check_drafts(&s, sessions[0], sessions[0]->ids, sessions[0]->length);
    ck_assert_uint_eq(followed(sessions[0]), sessions[0]->length);
    ck_assert_uint_eq(followed(sessions[1]), 0);
    ids[KEPT] ^= 1;
    require(fr_session_set_prompt(sessions[0], ids, PROMPT));
    ck_assert_uint_le(followed(sessions[0]), KEPT);
    ck_assert_uint_eq(sessions[0]->drafting.depth.by[0].behind, PROMPT - followed(sessions[0]));
    require(fr_session_step(sessions[0], &id, 1, &got, &accepted));
    check_drafts(&s, sessions[0], sessions[0]->ids, PROMPT + 1);
    set(&s, FR_OPT_DRAFT_MAX, FR_DRAFT_AUTO);
    require(fr_session_open(s.target, s.drafter, s.options, &alone));
    require(fr_session_prompt(alone, ids, PROMPT));
    ck_assert_uint_eq(followed(alone), PROMPT - 1);
    fr_session_close(alone);
    for (size_t i = 0; i < SESSIONS; i++) fr_session_close(sessions[i]);
    fr_engine_close(engine);
    close_subject(&s);
}
END_TEST

/* These models have no tokenizers. Without a tokenizer a draft model must have the target's vocabulary, but here the
 * vocabularies differ. Models with tokenizers would draft by text instead (test_draft_text.c). */
START_TEST(what_can_not_draft_is_refused) {
    fr_options *options = fr_options_new();
    fr_model *target;
    fr_drafter *drafter;
    require(fr_model_open(LLAMA, options, &target));
    ck_assert_int_eq(fr_drafter_open(FR_TEST_MODELS "llama-odd", target, options, &drafter), FR_INPUT);
    ck_assert_msg(strstr(fr_last_error(), "llama-odd: its vocabulary has ") != NULL, "%s", fr_last_error());
    fr_model_close(target);
    fr_options_free(options);
}
END_TEST

FR_SUITE("draft_model") {
    TCase *cases = tcase_create("draft_model");
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, drafts_are_what_the_small_model_says, 0, 2);
    fr_test_add_loop(cases, the_text_is_the_targets, 2, 1);
    tcase_add_loop_test(cases, a_models_own_drafts_all_stand, 0, 2);
    tcase_add_test(cases, sessions_draft_together);
    tcase_add_test(cases, without_pages_nothing_is_drafted);
    tcase_add_loop_test(cases, what_rounds_without_drafts_left_is_followed_together, 0, 3);
    tcase_add_test(cases, a_crowds_prompts_are_run_for_those_who_draft);
    tcase_add_test(cases, what_can_not_draft_is_refused);
    suite_add_tcase(suite, cases);
}
