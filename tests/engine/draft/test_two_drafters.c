/* Tests a session with two drafters: a block drafter, and the MTP layer in the target's own checkpoint. Each drafter
 * must make the same drafts as in a session where it is the only one, whichever of the two drafted before. This must
 * also hold after forks, truncations and restored states, and after prompts whose pages another session has run. The
 * session must reserve memory for a second drafter only if the options ask for two. */
/* suite: native threads no-valgrind */
#include <check.h>
#include <string.h>

#include "base/sizes.h"
#include "src/engine/session/state.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

#define TARGET  "tests/data/dflash/v2-qwen3.5-mtp"
#define DRAFTER "tests/data/dflash/v2-qwen3.5/drafter"

enum { PROMPT = 140, TEXT = 60, DRAFTS = 5, CONTEXT = 640, WAYS = 3, VOCAB = 320 };

/* The sessions of the test. The first session has both drafters: drafter 0 is the block drafter, and drafter 1 is the
 * MTP layer. Each of the other two sessions has one of these drafters. */
static const struct {
    const char *drafter, *words;
} ways[WAYS] = {{DRAFTER, "dflash2,mtp"}, {DRAFTER, "dflash2"}, {NULL, "mtp"}};

typedef struct subject {
    fr_options *options;
    fr_model *model;
    fr_drafter *drafter[WAYS];
    fr_engine *engine[WAYS];
    fr_session *session[WAYS];
    int32_t ids[CONTEXT];
    size_t length;
    uint32_t state;
    size_t compared, proposed;
} subject;

static size_t below(subject *s, size_t n) {
    s->state = s->state * 1664525u + 1013904223u;
    return (s->state >> 8) % n;
}

/* Opens an engine and a session for each row of `ways`. Each engine has room for a second session. */
static void open_subject(subject *s) {
    *s = (subject){.options = fr_options_new(), .length = PROMPT, .state = 5};
    require(fr_options_set(s->options, FR_OPT_CONTEXT, CONTEXT));
    require(fr_options_set(s->options, FR_OPT_THREADS, 1));
    require(fr_options_set(s->options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set(s->options, FR_OPT_CHUNK, 48));
    require(fr_options_set(s->options, FR_OPT_DRAFT_MAX, DRAFTS));
    require(fr_model_open(TARGET, s->options, &s->model));
    for (size_t i = 0; i < PROMPT; i++) s->ids[i] = (int32_t)((i * i * 31 + 7 * i + 2) % 300);
    for (size_t i = 0; i < WAYS; i++) {
        require(fr_options_set_text(s->options, FR_OPT_SPEC_TYPE, ways[i].words));
        require(fr_drafter_open(ways[i].drafter, s->model, s->options, &s->drafter[i]));
        require(fr_engine_open(s->model, s->drafter[i], s->options, 2, &s->engine[i]));
        require(fr_engine_session(s->engine[i], s->options, &s->session[i]));
        require(fr_session_prompt(s->session[i], s->ids, PROMPT));
    }
}

static void close_subject(subject *s) {
    for (size_t i = 0; i < WAYS; i++) {
        fr_session_close(s->session[i]);
        fr_engine_close(s->engine[i]);
        fr_drafter_close(s->drafter[i]);
    }
    fr_model_close(s->model);
    fr_options_free(s->options);
}

/* Runs rounds until one round generates ids. Before that round, the prompt may take several rounds. The round generates
 * at most `limit` ids. Returns the number of ids. */
static size_t run_round(subject *s, size_t way, size_t length, size_t limit) {
    fr_round round = {.session = s->session[way], .ids = s->ids + length, .limit = limit};
    for (size_t rounds = 0; round.count == 0; rounds++) {
        ck_assert_uint_lt(rounds, CONTEXT);
        require(fr_engine_step(s->engine[way], &round, 1));
        require(round.status);
    }
    return round.count;
}

/* Lets the session with both drafters generate. It generates either one id without drafts, or as many ids as one round
 * gives with the drafts of one drafter. Then the other sessions generate the same number of ids. */
static void step(subject *s) {
    size_t count = run_round(s, 0, s->length, below(s, 2) ? 1 : FR_STEP_MAX);
    for (size_t i = 1; i < WAYS; i++)
        for (size_t made = 0; made < count;) made += run_round(s, i, s->length + made, count - made);
    s->length += count;
}

/* Drafts of a session and their scores. */
typedef struct drafts {
    size_t count;
    int32_t ids[DRAFTS];
    float scores[DRAFTS * VOCAB];
} drafts;

static void ask(fr_session *session, size_t by, drafts *d) {
    fr_draft_view view = fr_session_view(session);
    fr_proposal p = {
        .draft = session->drafting.draft, .view = &view, .count = DRAFTS, .by = by, .ids = d->ids, .logits = d->scores};
    require(fr_draft_propose_one(&p));
    d->count = p.proposed;
}

/* Requests drafts of the same drafter in two sessions: in the session that has both drafters, and in the session that
 * has only this one. The drafts must be the same, and their scores must have the same bits. */
static void compare(subject *s, size_t drafter) {
    static drafts both, alone;
    ask(s->session[0], 1 + drafter, &both);
    ask(s->session[1 + drafter], 0, &alone);
    bool same = both.count == alone.count && memcmp(both.ids, alone.ids, both.count * sizeof *both.ids) == 0 &&
                memcmp(both.scores, alone.scores, both.count * VOCAB * sizeof *both.scores) == 0;
    ck_assert_msg(same, "%s at length %zu: %zu drafts beginning with %d, alone %zu with %d", ways[1 + drafter].words,
                  s->length, both.count, both.ids[0], alone.count, alone.ids[0]);
    s->compared++;
    s->proposed += both.count;
}

/* Runs rounds. After some rounds the test asks one or both drafters for drafts, and compares these drafts. A drafter
 * that is not asked must still process the rows of the round. */
static void go_on(subject *s, size_t rounds) {
    for (size_t i = 0; i < rounds; i++) {
        step(s);
        for (size_t drafter = 0; drafter < 2; drafter++)
            if (below(s, 3) == 0) compare(s, drafter);
    }
}

START_TEST(each_drafts_as_it_does_alone) {
    subject s;
    open_subject(&s);
    go_on(&s, TEXT);
    ck_assert_uint_gt(s.compared, TEXT / 2);
    ck_assert_uint_eq(s.proposed, s.compared * DRAFTS);
    close_subject(&s);
}
END_TEST

static void fork_all(subject *s) {
    for (size_t i = 0; i < WAYS; i++) {
        fr_session *fork;
        require(fr_session_fork(s->session[i], NULL, &fork));
        fr_session_close(s->session[i]);
        s->session[i] = fork;
    }
}

static void cut_all(subject *s) {
    s->length -= 25;
    for (size_t i = 0; i < WAYS; i++) require(fr_session_truncate(s->session[i], s->length));
}

static void save_all(subject *s) {
    for (size_t i = 0; i < WAYS; i++) {
        void *bytes;
        size_t size;
        int32_t other[30];
        for (size_t k = 0; k < 30; k++) other[k] = (int32_t)(k * k % 300);
        require(fr_session_save_bytes(s->session[i], &bytes, &size));
        require(fr_session_set_prompt(s->session[i], other, 30));
        require(fr_session_restore_bytes(s->session[i], bytes, size));
        fr_free(bytes);
    }
}

/* Replaces each session by a new one with the same ids. The new session finds most of its rows in the engine's cache
 * pages. */
static void find_all(subject *s) {
    for (size_t i = 0; i < WAYS; i++) {
        fr_session *found;
        require(fr_options_set_text(s->options, FR_OPT_SPEC_TYPE, ways[i].words));
        require(fr_engine_session(s->engine[i], s->options, &found));
        fr_session_close(s->session[i]);
        require(fr_session_prompt(found, s->ids, s->length));
        ck_assert_double_ge(fr_session_stat(found, FR_STAT_REUSED_TOKENS), 64);
        s->session[i] = found;
    }
}

START_TEST(and_after_what_happens_to_sessions) {
    static void (*const events[])(subject *) = {fork_all, cut_all, save_all, find_all};
    for (uint32_t seed = 0; seed < 3; seed++) {
        subject s;
        open_subject(&s);
        s.state = 77 * seed;
        for (size_t i = 0; i < 6; i++) {
            go_on(&s, 12);
            events[(i + seed) % 4](&s);
            step(&s);
            for (size_t drafter = 0; drafter < 2; drafter++) compare(&s, drafter);
        }
        close_subject(&s);
    }
}
END_TEST

START_TEST(memory_is_for_both_only_if_both_are_asked_for) {
    subject s;
    open_subject(&s);
    double kv[WAYS], weights[WAYS];
    for (size_t i = 0; i < WAYS; i++) {
        kv[i] = fr_session_stat(s.session[i], FR_STAT_DRAFT_KV_BYTES);
        weights[i] = fr_session_stat(s.session[i], FR_STAT_DRAFT_WEIGHT_BYTES);
        ck_assert_double_gt(kv[i], 0);
    }
    ck_assert_double_eq(kv[0], kv[1] + kv[2]);
    ck_assert_double_eq(weights[0], weights[1] + weights[2]);
    ck_assert_ptr_nonnull(s.drafter[0]->beside);
    ck_assert_ptr_null(s.drafter[1]->beside);
    close_subject(&s);
}
END_TEST

START_TEST(an_engine_of_one_opens_no_session_of_two) {
    subject s;
    fr_session *session;
    fr_engine *engine;
    open_subject(&s);
    require(fr_options_set_text(s.options, FR_OPT_SPEC_TYPE, "dflash2,mtp"));
    ck_assert_int_eq(fr_engine_session(s.engine[1], s.options, &session), FR_USAGE);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "spec-type mtp"));
    require(fr_options_set_text(s.options, FR_OPT_SPEC_TYPE, "mtp"));
    require(fr_engine_open(s.model, s.drafter[0], s.options, 1, &engine));
    require(fr_options_set_text(s.options, FR_OPT_SPEC_TYPE, "dflash2"));
    ck_assert_int_eq(fr_engine_session(engine, s.options, &session), FR_USAGE);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "drafts of another kind"));
    fr_engine_close(engine);
    close_subject(&s);
}
END_TEST

FR_SUITE("two drafters") {
    TCase *cases = tcase_create("two drafters");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, each_drafts_as_it_does_alone);
    tcase_add_test(cases, and_after_what_happens_to_sessions);
    tcase_add_test(cases, memory_is_for_both_only_if_both_are_asked_for);
    tcase_add_test(cases, an_engine_of_one_opens_no_session_of_two);
    suite_add_tcase(suite, cases);
}
