/* Tests stop strings. A step must end at the id whose text completes a stop string, with and without drafts, and also
 * in forks. Meanwhile the session reports how much of the text can't belong to a stop string and is safe to show. The
 * expected results come from a search through the decoded text. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "src/engine/session/state.h"
#include "tests/support/brief.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

enum { MOST = 120 };

static uint32_t state = 1;

static size_t below(size_t n) {
    state = state * 1664525u + 1013904223u;
    return (size_t)(((uint64_t)state * n) >> 32);
}

static fr_model *model;
static fr_drafter *drafter;
static fr_options *options;

static void open_demo(void) {
    options = fr_options_new();
    require(fr_options_set(options, FR_OPT_THREADS, 1));
    require(fr_options_set(options, FR_OPT_CONTEXT, 256));
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, 1));
    require(fr_model_open("tools/demo/target", options, &model));
    require(fr_drafter_open("tools/demo/assistant", model, options, &drafter));
}

static void close_demo(void) {
    fr_drafter_close(drafter);
    fr_model_close(model);
    fr_options_free(options);
}

static fr_session *begin(size_t drafts, int64_t seed) {
    static const int32_t prompt[] = {2, 400, 300};
    fr_session *session;
    require(fr_options_set(options, FR_OPT_DRAFT_MAX, (int64_t)drafts));
    require(fr_options_set(options, FR_OPT_SEED, seed));
    require(fr_session_open(model, drafts ? drafter : NULL, options, &session));
    require(fr_session_prompt(session, prompt, 3));
    return session;
}

/* Generates until the session stops or has `most` ids. The length of the text that is safe to show must never
 * shrink. */
static size_t go_on(fr_session *session, int32_t *ids, size_t made, size_t most) {
    size_t count, accepted, shown = 0, now;
    do {
        require(fr_session_step(session, ids + made, fr_smaller(FR_STEP_MAX, most - made), &count, &accepted));
        made += count;
        fr_session_stopped(session, &now);
        ck_assert_uint_ge(now, shown);
        shown = now;
    } while (count && made < most);
    return made;
}

/* A text, and the length of the text after each id. */
typedef struct text {
    char bytes[4096];
    size_t length, end[MOST];
} text;

static void decode(text *t, const int32_t *ids, size_t count) {
    fr_decoder *decoder;
    require(fr_decoder_new(fr_model_tokenizer(model), false, &decoder));
    t->length = 0;
    for (size_t i = 0; i < count; i++) {
        const char *bytes;
        size_t length;
        require(fr_decoder_feed(decoder, ids[i], &bytes, &length));
        memcpy(t->bytes + t->length, bytes, length);
        t->end[i] = t->length += length;
    }
    t->bytes[t->length] = '\0';
    fr_decoder_free(decoder);
}

/* Returns the number of ids up to the first id whose text completes a stop string, or `count` if no id does. Sets
 * *before to the length of the text before this string. Sets *which to the string's index, or to -1 if there is
 * none. */
static size_t expected(const text *t, size_t count, char *const *strings, size_t strings_count, int *which,
                       size_t *before) {
    for (size_t i = 0; i < count; i++) {
        *before = t->end[i];
        *which = -1;
        for (size_t s = 0; s < strings_count; s++) {
            const char *at = memmem(t->bytes, t->end[i], strings[s], strlen(strings[s]));
            if (!at || (*which >= 0 && (size_t)(at - t->bytes) >= *before)) continue;
            *which = (int)s;
            *before = (size_t)(at - t->bytes);
        }
        if (*which >= 0) return i + 1;
    }
    return count;
}

START_TEST(steps_end_where_the_text_does) {
    static const size_t depths[] = {0, 1, 4, 15};
    static text all;
    int32_t ids[MOST], got[MOST];
    size_t stopped = 0;
    for (int64_t seed = 0; seed < 6; seed++) {
        fr_session *free_run = begin(0, seed);
        ck_assert_uint_eq(go_on(free_run, ids, 0, MOST), MOST);
        fr_session_close(free_run);
        decode(&all, ids, MOST);
        for (size_t n = 0; n < 12; n++) {
            char strings[3][24], *list[3] = {strings[0], strings[1], strings[2]};
            size_t count = 1 + below(3), before, told;
            int which;
            for (size_t s = 0; s < count; s++) {
                size_t length = 1 + below(12), from = below(all.length - length);
                memcpy(strings[s], all.bytes + from, length);
                strings[s][length] = '\0';
                /* This stop string begins like a part of the text, but its last character is never generated. */
                if (below(3) == 0) strings[s][length - 1] = '\x01';
            }
            size_t made = expected(&all, MOST, list, count, &which, &before);
            fr_session *session = begin(depths[n % 4], seed);
            require(fr_session_set_stops(session, (const char *const *)list, count));
            ck_assert_uint_eq(go_on(session, got, 0, MOST), made);
            ck_assert_mem_eq(got, ids, made * sizeof *ids);
            ck_assert_int_eq(fr_session_stopped(session, &told), which);
            ck_assert_uint_le(told, before);
            if (which >= 0) ck_assert_uint_eq(told, before);
            stopped += which >= 0;
            fr_session_close(session);
        }
    }
    ck_assert_uint_gt(stopped, 20);
}
END_TEST

START_TEST(forks_stop_there_too) {
    static text all;
    int32_t ids[MOST], got[MOST];
    fr_engine *engine;
    fr_session *session = begin(0, 1), *fork;
    go_on(session, ids, 0, MOST);
    fr_session_close(session);
    decode(&all, ids, MOST);
    require(fr_options_set(options, FR_OPT_DRAFT_MAX, 3));
    require(fr_engine_open(model, drafter, options, 2, &engine));
    for (size_t at = 1; at < 60; at += 7) {
        char string[16] = "", *list[1] = {string};
        size_t before, told, from = all.end[at - 1] - fr_smaller(all.end[at - 1], 3);
        int which;
        memcpy(string, all.bytes + from, 12); /* the string begins before the fork and ends after it */
        size_t made = expected(&all, MOST, list, 1, &which, &before);
        require(fr_engine_session(engine, options, &session));
        require(fr_session_set_stops(session, (const char *const *)list, 1));
        require(fr_session_prompt(session, (int32_t[]){2, 400, 300}, 3));
        size_t so_far = go_on(session, got, 0, fr_smaller(at, made));
        require(fr_session_fork(session, NULL, &fork));
        fr_session_close(session);
        if (so_far < made) so_far = go_on(fork, got, so_far, MOST);
        ck_assert_uint_eq(so_far, made);
        ck_assert_int_eq(fr_session_stopped(fork, &told), which);
        ck_assert_uint_eq(told, before);
        fr_session_close(fork);
    }
    fr_engine_close(engine);
}
END_TEST

/* A fork has a draft method that needs every row, so it runs its text again. These rows give no new text. A stop string
 * that began before the fork must still end the fork's text. */
START_TEST(forks_with_another_method_stop_there_too) {
    static const int32_t prompt[] = {40, 41, 42, 43, 44, 45, 46, 47};
    enum { FORKED = 5, ENOUGH = 30 };
    fr_options *greedy = fr_options_new(), *drafts;
    fr_model *glm;
    fr_drafter *mtp;
    fr_engine *engine;
    fr_session *session, *fork;
    int32_t ids[MOST];
    require(fr_options_set(greedy, FR_OPT_CONTEXT, 256));
    require(fr_options_set(greedy, FR_OPT_IGNORE_EOS, 1));
    drafts = fr_options_copy(greedy);
    require(fr_options_set_text(greedy, FR_OPT_SPEC_TYPE, "ngram"));
    require(fr_model_open("tests/data/models/glm4-moe-odd", greedy, &glm));
    require(fr_drafter_open(NULL, glm, greedy, &mtp));
    require(fr_engine_open(glm, mtp, drafts, 2, &engine));
    require(fr_engine_session(engine, greedy, &session));
    require(fr_session_prompt(session, prompt, 8));
    go_on(session, ids, 0, ENOUGH);
    char *string;
    size_t length, made, before, told;
    require(fr_detokenize(fr_model_tokenizer(glm), ids + FORKED - 1, 3, &string, &length));
    require(fr_session_set_stops(session, (const char *const[]){string}, 1));
    require(fr_session_set_prompt(session, prompt, 8));
    go_on(session, ids, 0, FORKED);
    require(fr_session_fork(session, drafts, &fork));
    made = go_on(session, ids, FORKED, ENOUGH);
    ck_assert_int_eq(fr_session_stopped(session, &before), 0);
    ck_assert_uint_eq(go_on(fork, ids, FORKED, ENOUGH), made);
    ck_assert_int_eq(fr_session_stopped(fork, &told), 0);
    ck_assert_uint_eq(told, before);
    fr_free(string);
    fr_session_close(fork);
    fr_session_close(session);
    fr_engine_close(engine);
    fr_drafter_close(mtp);
    fr_model_close(glm);
    fr_options_free(drafts);
    fr_options_free(greedy);
}
END_TEST

START_TEST(a_new_prompt_is_a_new_text) {
    int32_t ids[MOST];
    size_t before;
    fr_session *session = begin(3, 1);
    require(fr_session_set_stops(session, (const char *const[]){"e"}, 1));
    size_t made = go_on(session, ids, 0, MOST);
    ck_assert_int_eq(fr_session_stopped(session, &before), 0);
    require(fr_session_prompt(session, (int32_t[]){400}, 1));
    ck_assert_int_eq(fr_session_stopped(session, &before), -1);
    ck_assert_uint_eq(before, 0);
    made = go_on(session, ids, 0, MOST);
    ck_assert_int_eq(fr_session_stopped(session, &before), 0);
    int32_t whole[3 + MOST + 1 + MOST] = {2, 400, 300};
    size_t length = fr_session_length(session);
    memcpy(whole, session->ids, length * sizeof *whole); /* gives the session's whole text again as a prompt */
    require(fr_session_set_prompt(session, whole, length));
    ck_assert_int_eq(fr_session_stopped(session, &before), -1);
    ck_assert_uint_eq(before, 0);
    require(fr_session_set_stops(session, NULL, 0));
    made = go_on(session, ids, 0, MOST);
    ck_assert_uint_eq(made, MOST);
    ck_assert_int_eq(fr_session_set_stops(session, (const char *const[]){""}, 1), FR_USAGE);
    ck_assert_int_eq(fr_session_set_stops(session, NULL, 1), FR_USAGE);
    ck_assert_int_eq(fr_session_set_stops(session, NULL, FR_STOPS_MAX + 1), FR_USAGE);
    fr_session_close(session);
}
END_TEST

FR_SUITE("stops") {
    TCase *cases = tcase_create("stops");
    tcase_set_timeout(cases, 60);
    tcase_add_unchecked_fixture(cases, open_demo, close_demo);
    fr_test_add_long(cases, steps_end_where_the_text_does);
    tcase_add_test(cases, forks_stop_there_too);
    tcase_add_test(cases, forks_with_another_method_stop_there_too);
    tcase_add_test(cases, a_new_prompt_is_a_new_text);
    suite_add_tcase(suite, cases);
}
