/* Tests block drafters with targets of every family. The text must be that of plain decoding, which is decoding without
 * drafts. The drafts come from a drafter with random weights (tests/support/made_drafter.h), or they are scripted, so
 * that some are right and some wrong. The text must also be the same with a prompt in several chunks, together with
 * other sessions, after a truncation, and after a picture if the target reads pictures. */
/* suite: no-valgrind */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forerun_lab.h"
#include "tests/support/made_drafter.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

enum { PROMPT = 40, TEXT = 40, CONTEXT = 160, SESSIONS = 3, BACK = 15, AT = 9 };

static const struct {
    const char *target, *picture; /* picture: NULL if the target reads no pictures */
} seeing[] = {{"tests/data/glm-ocr", "tests/data/glm-ocr/image/digits.png"},
              {FR_TEST_MODELS "glm-ocr-odd", FR_TEST_MODELS "glm-ocr-odd/image/digits.png"}};
enum { SEEING = sizeof seeing / sizeof *seeing };

static const char *const more[] = {"qwen3-window",   "mistral-window", "gemma3-odd",  "gpt-oss-odd",    "lfm2-long",
                                   "exaone4-full",   "phi3-window",    "granite-odd", "minimax-m2-odd", "olmo3-yarn",
                                   "cohere2-window", "hunyuan-odd",    "smollm3-odd", "stablelm-serial"};
enum { MORE = sizeof more / sizeof *more };

typedef struct subject {
    fr_options *options;
    fr_model *model;
    fr_drafter *drafter;
    fr_picture *picture;
    char folder[64];
    int32_t ids[PROMPT + CONTEXT];
    size_t prompt;
} subject;

/* Makes a prompt of random ids. If there is a picture, its tokens are in the prompt. */
static void make_prompt(subject *s) {
    int32_t vocab = (int32_t)fr_model_fact(s->model, FR_FACT_VOCAB), image;
    size_t tokens = s->picture ? fr_picture_tokens(s->picture) : 0;
    image = (int32_t)fr_model_fact(s->model, FR_FACT_IMAGE_TOKEN);
    s->prompt = PROMPT + tokens;
    ck_assert_uint_lt(s->prompt + TEXT + FR_STEP_MAX, CONTEXT);
    for (size_t i = 0; i < s->prompt; i++) {
        s->ids[i] = (int32_t)((i * i * 31 + 7 * i + 2) % (size_t)(vocab - 8));
        if (s->ids[i] == image) s->ids[i]--;
        if (i >= AT && i < AT + tokens) s->ids[i] = image;
    }
}

static subject open_subject(const char *target, const char *picture) {
    subject s = {.options = fr_options_new()};
    require(fr_options_set(s.options, FR_OPT_CONTEXT, CONTEXT));
    require(fr_options_set(s.options, FR_OPT_THREADS, 1));
    require(fr_options_set(s.options, FR_OPT_IGNORE_EOS, 1));
    require(fr_model_open(target, s.options, &s.model));
    snprintf(s.folder, sizeof s.folder, "%s/forerun-made-XXXXXX", P_tmpdir);
    ck_assert_ptr_nonnull(mkdtemp(s.folder));
    fr_made_drafter(s.model, s.folder);
    require(fr_drafter_open(s.folder, s.model, s.options, &s.drafter));
    if (picture) require(fr_picture_open(picture, s.model, &s.picture));
    make_prompt(&s);
    return s;
}

static void close_subject(subject *s) {
    if (s->picture) fr_picture_close(s->picture);
    fr_drafter_close(s->drafter);
    fr_model_close(s->model);
    fr_options_free(s->options);
    fr_made_drafter_remove(s->folder);
}

static void put(const subject *s, fr_session *session) {
    if (s->picture) require(fr_session_show(session, (const fr_picture *const *)&s->picture, 1));
    require(fr_session_put(session, s->ids, s->prompt));
}

/* Generates the text that follows the prompt without drafts. */
static void say_plain(subject *s) {
    fr_session *session;
    require(fr_session_open(s->model, NULL, s->options, &session));
    put(s, session);
    for (size_t made = 0, got; made < TEXT; made += got)
        require(fr_session_step(session, s->ids + s->prompt + made, 1, &got, NULL));
    fr_session_close(session);
}

static void compare(const subject *s, const int32_t *said, size_t count, const char *when) {
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(said[i] == s->ids[s->prompt + i], "%s, id %zu is %d, not %d", when, i, said[i],
                      s->ids[s->prompt + i]);
}

static bool reject_in_turn(void *context, size_t round, size_t depth) {
    return depth != round % (*(size_t *)context + 1);
}

/* Three sessions generate the text together. The first session has the drafter's own drafts, and the others have
 * scripted drafts. Each session starts some rounds after the session before it. The second session is truncated in the
 * middle. */
static void say_together(const subject *s, int64_t depth, int64_t chunk) {
    fr_engine *engine;
    fr_session *sessions[SESSIONS];
    int32_t said[SESSIONS][TEXT + FR_STEP_MAX];
    size_t made[SESSIONS] = {0}, drafts = (size_t)depth;
    bool cut = false;
    require(fr_options_set(s->options, FR_OPT_DRAFT_MAX, depth));
    require(fr_options_set(s->options, FR_OPT_CHUNK, chunk));
    require(fr_engine_open(s->model, s->drafter, s->options, SESSIONS, &engine));
    for (size_t i = 0; i < SESSIONS; i++) {
        require(fr_engine_session(engine, s->options, &sessions[i]));
        if (i) require(fr_lab_session_script(sessions[i], s->ids, s->prompt + TEXT, reject_in_turn, &drafts));
    }
    for (size_t turn = 0, left = 1; left; turn++) {
        fr_round rounds[SESSIONS];
        size_t n = left = 0;
        for (size_t i = 0; i < SESSIONS; i++) {
            if (turn == 4 * i) put(s, sessions[i]);
            left += made[i] < TEXT;
            if (turn >= 4 * i && made[i] < TEXT)
                rounds[n++] = (fr_round){.session = sessions[i], .ids = said[i] + made[i], .limit = FR_STEP_MAX};
        }
        if (n) require(fr_engine_step(engine, rounds, n));
        for (size_t i = 0, r = 0; i < SESSIONS; i++) {
            if (r == n || rounds[r].session != sessions[i]) continue;
            ck_assert_msg(rounds[r].status == FR_OK, "%s", rounds[r].error);
            made[i] += rounds[r++].count;
        }
        if (cut || made[1] < 2 * BACK || made[1] >= TEXT) continue;
        made[1] -= BACK;
        require(fr_session_truncate(sessions[1], s->prompt + made[1]));
        cut = true;
    }
    ck_assert_double_gt(fr_session_stat(sessions[0], FR_STAT_DRAFTED), 0);
    ck_assert_double_gt(fr_session_stat(sessions[1], FR_STAT_ACCEPTED), 0);
    for (size_t i = 0; i < SESSIONS; i++) {
        compare(s, said[i], TEXT, i ? "known drafts" : "random drafts");
        fr_session_close(sessions[i]);
    }
    fr_engine_close(engine);
}

static void run(const char *target, const char *picture) {
    subject s = open_subject(target, picture);
    say_plain(&s);
    say_together(&s, 1, 64);
    say_together(&s, 4, 7);
    say_together(&s, 15, 64);
    close_subject(&s);
}

static void run_named(const char *name) {
    char path[128];
    snprintf(path, sizeof path, FR_TEST_MODELS "%s", name);
    run(path, NULL);
}

START_TEST(targets_with_a_drafter_of_their_own) {
    run_named(fr_reference_name((size_t)_i));
}
END_TEST

START_TEST(targets_without_one) {
    run_named(fr_reference_alone((size_t)_i));
}
END_TEST

START_TEST(more_families) {
    run_named(more[_i]);
}
END_TEST

START_TEST(targets_that_see) {
    run(seeing[_i].target, seeing[_i].picture);
}
END_TEST

FR_SUITE("block drafters of all targets") {
    int own = 0, alone = 0;
    while (fr_reference_name((size_t)own)) own++;
    while (fr_reference_alone((size_t)alone)) alone++;
    TCase *cases = tcase_create("targets");
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, targets_with_a_drafter_of_their_own, 0, own);
    tcase_add_loop_test(cases, targets_without_one, 0, alone);
    tcase_add_loop_test(cases, more_families, 0, MORE);
    tcase_add_loop_test(cases, targets_that_see, 0, SEEING);
    suite_add_tcase(suite, cases);
}
