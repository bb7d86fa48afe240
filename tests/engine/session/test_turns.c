/* Tests sessions that go back to an earlier position. After any truncation, aborted call or changed prompt, a session
 * must be equal to a fresh session with the same ids, bit for bit. Also tests the cost: which tokens are run again. */
/* suite: native */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "src/engine/session/state.h"
#include "tests/support/alloc_guard.h"
#include "tests/support/brief.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

#define CONTEXT 640 /* ten times RING, the number of positions that the sliding layers keep */
#define CHUNK   16
#define RING    64
#define MORE    9 /* number of ids that are generated for a comparison */

static uint64_t state;

/* Returns a random number below `limit` (xorshift64*). */
static size_t draw(size_t limit) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (size_t)((state * 0x2545f4914f6cdd1du) >> 33) % limit;
}

static void draw_ids(int32_t *ids, size_t count, size_t vocab) {
    /* excludes the last 5 % of the ids, among which are the image tokens */
    for (size_t i = 0; i < count; i++) ids[i] = (int32_t)draw(vocab - vocab / 20);
}

static fr_options *options_with(int64_t checkpoints, bool swa_full, const char *kv) {
    fr_options *options = fr_options_new();
    require(fr_options_set(options, FR_OPT_THREADS, 1));
    require(fr_options_set(options, FR_OPT_CONTEXT, CONTEXT));
    require(fr_options_set(options, FR_OPT_CHUNK, CHUNK));
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set(options, FR_OPT_CTX_CHECKPOINTS, checkpoints));
    require(fr_options_set(options, FR_OPT_SWA_FULL, swa_full));
    if (kv) require(fr_options_set_text(options, FR_OPT_KV_K, kv));
    if (kv) require(fr_options_set_text(options, FR_OPT_KV_V, kv));
    return options;
}

static void generate(fr_session *session, int32_t *ids, size_t count) {
    for (size_t made = 0, got, accepted; made < count; made += got) {
        require(fr_session_step(session, ids + made, count - made, &got, &accepted));
        ck_assert_uint_ge(got, 1);
    }
}

/* -------------------------------------------------------------------------------------- comparison with a fresh run */

typedef struct walk {
    const fr_reference *reference;
    const fr_options *options;
    const fr_drafter *drafter;
    fr_session *session;
    size_t vocab;
    int countdown; /* number of forward passes until the abort callback returns true; negative: it never does */
} walk;

/* Compares two sessions that have just run a prompt: their next ids, the logits from which these ids were chosen, and
 * their drafts. */
static void compare_states(const walk *w, fr_session *fresh) {
    fr_session *s = w->session;
    size_t hidden = s->model->trunk.spec.hidden;
    ck_assert(s->phase == FR_PHASE_PREDICTED && fresh->phase == FR_PHASE_PREDICTED);
    ck_assert_uint_eq(s->cache.kv.length, fresh->cache.kv.length);
    ck_assert_mem_eq(s->result.logits, fresh->result.logits, w->vocab * sizeof *s->result.logits);
    ck_assert_mem_eq(s->drafting.hidden + s->drafting.hidden_row * hidden,
                     fresh->drafting.hidden + fresh->drafting.hidden_row * hidden, hidden * sizeof *s->drafting.hidden);
    ck_assert_int_eq(s->next, fresh->next);
    if (!w->drafter) return;
    float *logits[2];
    int32_t drafts[2][4];
    fr_session *both[2] = {s, fresh};
    for (size_t i = 0; i < 2; i++) {
        logits[i] = calloc(4 * w->vocab, sizeof(float));
        fr_draft_view view = fr_session_view(both[i]);
        both[i]->ids[view.length++] = s->next; /* appends the next id, as the step does that returns this id */
        fr_proposal proposal = {
            .draft = both[i]->drafting.draft, .view = &view, .count = 4, .ids = drafts[i], .logits = logits[i]};
        require(fr_draft_propose_one(&proposal));
        ck_assert_uint_eq(proposal.proposed, 4);
    }
    ck_assert_mem_eq(drafts[0], drafts[1], sizeof drafts[0]);
    ck_assert_mem_eq(logits[0], logits[1], 4 * w->vocab * sizeof(float));
    free(logits[0]);
    free(logits[1]);
}

/* Compares the session with a fresh session whose prompt is the whole text of the first. */
static void compare_with_fresh(walk *w, bool after_prompt) {
    fr_session *fresh;
    int32_t here[MORE], there[MORE];
    size_t count = fr_session_length(w->session);
    require(fr_session_open(w->reference->model, w->drafter, w->options, &fresh));
    require(fr_session_prompt(fresh, w->session->ids, count));
    if (after_prompt) compare_states(w, fresh);
    generate(w->session, here, MORE);
    generate(fresh, there, MORE);
    ck_assert_mem_eq(here, there, sizeof here);
    fr_session_close(fresh);
}

/* ----------------------------------------------------------------------------------------------------- random walks */

static bool count_down(void *context) {
    int *countdown = context;
    return *countdown >= 0 && (*countdown)-- == 0;
}

/* Replaces the end of the session's text by a new prompt, as a chat program does when the user edits a message. */
static fr_status set_prompt(walk *w) {
    int32_t ids[CONTEXT];
    size_t kept = draw(fr_session_length(w->session) + 1), more = draw(100);
    if (kept + more == 0) more = 1;
    memcpy(ids, w->session->ids, kept * sizeof *ids);
    draw_ids(ids + kept, more, w->vocab);
    fr_status status = fr_session_set_prompt(w->session, ids, kept + more);
    ck_assert_uint_eq(fr_session_length(w->session), kept + more);
    ck_assert_mem_eq(w->session->ids, ids, (kept + more) * sizeof *ids);
    return status;
}

static fr_status append(walk *w) {
    int32_t ids[100];
    size_t count = 1 + draw(100);
    draw_ids(ids, count, w->vocab);
    return fr_session_prompt(w->session, ids, count);
}

/* Makes one random change of the session's text. The call may be aborted. Sets *ran to true if the call has run a
 * prompt to its end. */
static void change(walk *w, bool *ran) {
    size_t length = fr_session_length(w->session);
    int32_t ids[30];
    w->countdown = draw(3) ? -1 : (int)draw(5);
    fr_status status = FR_OK;
    *ran = true;
    if (length > CONTEXT - 160) {
        require(fr_session_truncate(w->session, draw(length + 1)));
        *ran = false;
    } else if (length == 0 || draw(3) == 0) {
        status = append(w);
    } else if (draw(2)) {
        status = set_prompt(w);
    } else if (draw(2)) {
        require(fr_session_truncate(w->session, draw(8) ? length - draw(length < 40 ? length : 40) : draw(length)));
        *ran = false;
    } else {
        w->countdown = -1;
        generate(w->session, ids, 1 + draw(30));
        *ran = false;
    }
    ck_assert(status == FR_OK || (status == FR_ABORTED && strstr(fr_last_error(), "aborted")));
    *ran = *ran && status == FR_OK;
    w->countdown = -1;
}

static void walk_randomly(const fr_reference *reference, const fr_options *options, bool draft, size_t changes) {
    walk w = {.reference = reference, .options = options, .drafter = draft ? reference->drafter : NULL};
    w.vocab = reference->model->trunk.spec.vocab;
    require(fr_session_open(reference->model, w.drafter, options, &w.session));
    fr_session_set_abort(w.session, count_down, &w.countdown);
    for (size_t i = 0; i < changes; i++) {
        bool ran;
        change(&w, &ran);
        if (fr_session_length(w.session) > 0 && draw(2)) compare_with_fresh(&w, ran);
    }
    fr_session_close(w.session);
}

START_TEST(any_change_of_the_timeline_equals_a_fresh_run) {
    static const int64_t checkpoints[] = {0, 2, 8};
    const char *name = fr_reference_long((size_t)_i);
    fr_reference reference;
    state = 0x9e3779b97f4a7c15u + (uint64_t)_i;
    fr_options *options = options_with(0, false, NULL);
    fr_reference_open(&reference, name, options);
    fr_options_free(options);
    for (size_t c = 0; c < 3; c++)
        for (int draft = 0; draft < 2; draft++) {
            options = options_with(checkpoints[c], c == 1 && draft, draft ? "f16" : NULL);
            walk_randomly(&reference, options, draft, fr_test_brief() ? 8 : 30);
            fr_options_free(options);
        }
    fr_reference_close(&reference);
}
END_TEST

/* ---------------------------------------------------------------------------------------- tokens that are run again */

/* Opens a session, runs a prompt of `count` ids and generates `made` ids. */
static fr_session *open_long(const fr_reference *reference, const fr_options *options, size_t count, size_t made) {
    int32_t ids[CONTEXT];
    fr_session *session;
    require(fr_session_open(reference->model, reference->drafter, options, &session));
    draw_ids(ids, count, reference->model->trunk.spec.vocab);
    require(fr_session_prompt(session, ids, count));
    if (made) generate(session, ids, made);
    return session;
}

static double rerun_of(const fr_reference *reference, const fr_options *options, size_t prompt, size_t made,
                       size_t to) {
    fr_session *session = open_long(reference, options, prompt, made);
    require(fr_session_truncate(session, to));
    ck_assert_uint_eq(fr_session_length(session), to);
    double rerun = fr_session_stat(session, FR_STAT_RERUN_TOKENS);
    fr_session_close(session);
    return rerun;
}

START_TEST(what_a_truncation_runs_again) {
    fr_reference reference;
    fr_options *none = options_with(0, false, NULL), *some = options_with(8, false, NULL),
               *whole = options_with(0, true, NULL);
    state = 7;
    fr_reference_open(&reference, "gemma4-e", none);
    /* Sliding layers keep only some positions. If a truncation falls within them, only the last token is run again, to
     * get the target's logits after it. At length 300, the kept positions are those from 192 on: the page with position
     * 299 and the page before it. A row needs the 9 positions before it. */
    ck_assert(rerun_of(&reference, none, 300, 0, 300) == 0);
    ck_assert(rerun_of(&reference, none, 300, 0, 299) == 1);
    ck_assert(rerun_of(&reference, none, 300, 0, 192 + 9 + 1) == 1);
    ck_assert(rerun_of(&reference, none, 300, 0, 192 + 9) == 192 + 9);
    ck_assert(rerun_of(&reference, none, 300, 0, 0) == 0);
    /* With checkpoints, a session can go back to the end of its prompt after a reply of any length, and only the last
     * token is run again. It can also go back to a position shortly before the prompt's end. This is needed because a
     * chat template may change the last ids of a prompt. */
    ck_assert(rerun_of(&reference, some, 316, 200, 316) == 1);
    ck_assert(rerun_of(&reference, some, 316, 200, 316 - 40) == 1);
    ck_assert(rerun_of(&reference, none, 316, 200, 316) == 316);
    /* For other positions, the number of tokens that are run again is at most the number of positions that sliding
     * layers keep. */
    for (size_t to = 1; to < 500; to += 7) ck_assert(rerun_of(&reference, some, 500, 0, to) <= RING);
    for (size_t to = 1; to < 500; to += 31) ck_assert(rerun_of(&reference, whole, 500, 0, to) <= 1);
    fr_reference_close(&reference);
    fr_options_free(none);
    fr_options_free(some);
    fr_options_free(whole);
}
END_TEST

START_TEST(few_checkpoints_stay_spread) {
    fr_reference reference;
    fr_options *options = options_with(3, false, NULL);
    state = 8;
    fr_reference_open(&reference, "gemma4-dense", options);
    for (size_t length = 100; length <= 600; length += 100) {
        double worst = 0;
        for (size_t to = 1; to < length; to += 9) {
            double rerun = rerun_of(&reference, options, length, 0, to);
            worst = rerun > worst ? rerun : worst;
        }
        /* Three checkpoints and the positions that are always kept divide the text into four parts. No part may be
         * longer than half of the text. */
        ck_assert_msg(worst <= (double)(length / 2 + RING), "%zu: %g", length, worst);
    }
    fr_reference_close(&reference);
    fr_options_free(options);
}
END_TEST

START_TEST(a_prompt_that_goes_on_runs_only_what_is_new) {
    fr_reference reference;
    fr_options *options = options_with(8, false, NULL);
    int32_t ids[200];
    state = 9;
    fr_reference_open(&reference, "gemma4-e", options);
    fr_session *session;
    require(fr_session_open(reference.model, NULL, options, &session));
    draw_ids(ids, 200, reference.model->trunk.spec.vocab);
    require(fr_session_set_prompt(session, ids, 150));
    require(fr_session_set_prompt(session, ids, 200));
    ck_assert(fr_session_stat(session, FR_STAT_PROMPT_TOKENS) == 200);
    ck_assert(fr_session_stat(session, FR_STAT_REUSED_TOKENS) == 150);
    ck_assert(fr_session_stat(session, FR_STAT_RERUN_TOKENS) == 0);
    ids[190] = (ids[190] + 1) % (int32_t)reference.model->trunk.spec.vocab;
    require(fr_session_set_prompt(session, ids, 200));
    ck_assert(fr_session_stat(session, FR_STAT_PROMPT_TOKENS) == 210);
    ck_assert(fr_session_stat(session, FR_STAT_REUSED_TOKENS) == 150 + 190);
    ck_assert(fr_session_stat(session, FR_STAT_RERUN_TOKENS) == 1);
    fr_session_close(session);
    fr_reference_close(&reference);
    fr_options_free(options);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------ abort */

START_TEST(an_abort_is_seen_between_chunks) {
    fr_reference reference;
    fr_options *options = options_with(0, false, NULL);
    int32_t ids[100], given[FR_STEP_MAX];
    size_t count, accepted;
    state = 10;
    fr_reference_open(&reference, "gemma4-e", options);
    fr_session *session;
    require(fr_session_open(reference.model, NULL, options, &session));
    draw_ids(ids, 100, reference.model->trunk.spec.vocab);
    for (int chunks = 0; chunks < 7; chunks++) {
        int countdown = chunks;
        fr_session_set_abort(session, count_down, &countdown);
        ck_assert_int_eq(fr_session_set_prompt(session, ids, 100), FR_ABORTED);
        ck_assert_str_eq(fr_status_name(FR_ABORTED), "aborted");
        ck_assert_uint_eq(session->cache.kv.length, (size_t)chunks * CHUNK);
        ck_assert_uint_eq(fr_session_length(session), 100);
        ck_assert(fr_session_stat(session, FR_STAT_PROMPT_TOKENS) == (double)chunks * CHUNK);
        countdown = -1; /* the next call is not aborted and runs the rest of the prompt */
        require(fr_session_set_prompt(session, ids, 100));
        ck_assert(fr_session_stat(session, FR_STAT_PROMPT_TOKENS) == 100);
        ck_assert(fr_session_stat(session, FR_STAT_REUSED_TOKENS) == (double)chunks * CHUNK);
        ck_assert(fr_session_stat(session, FR_STAT_RERUN_TOKENS) == 0);
        fr_session_reset(session);
    }
    int countdown = -1; /* from here on an aborted step must neither return nor remove an id */
    fr_session_set_abort(session, count_down, &countdown);
    require(fr_session_prompt(session, ids, 20));
    for (int step = 0; step < 3; step++) require(fr_session_step(session, given, 4, &count, &accepted));
    size_t length = fr_session_length(session);
    countdown = 0;
    ck_assert_int_eq(fr_session_step(session, given, 4, &count, &accepted), FR_ABORTED);
    ck_assert_uint_eq(count, 0);
    ck_assert_uint_eq(fr_session_length(session), length);
    require(fr_session_step(session, given, 4, &count, &accepted));
    ck_assert_uint_ge(count, 1);
    fr_session_close(session);
    fr_reference_close(&reference);
    fr_options_free(options);
}
END_TEST

static void check_nothing_held(const fr_session *session) {
    for (fr_kv_kind kind = 0; kind < FR_KV_KINDS; kind++)
        ck_assert_uint_eq(session->cache.kv.pages[kind].free_count, session->cache.kv.pages[kind].count);
}

/* A reset must release every page, including those that checkpoints hold. */
START_TEST(a_reset_lets_go_of_every_page) {
    fr_reference reference;
    fr_options *options = options_with(4, false, NULL);
    int32_t ids[CONTEXT];
    fr_rows rows = {0};
    fr_reference_open(&reference, "gemma4-e", options);
    size_t vocab = reference.model->trunk.spec.vocab;
    fr_session *session;
    require(fr_session_open(reference.model, reference.drafter, options, &session));
    draw_ids(ids, 500, vocab);
    for (size_t turn = 0; turn < 20; turn++) {
        require(fr_session_prompt(session, ids, 500 - turn));
        ck_assert_uint_gt(session->cache.checkpoints.count, 0);
        fr_session_reset(session);
        check_nothing_held(session);
    }
    rows.values = malloc(500 * vocab * sizeof *rows.values);
    rows.capacity = 500 * vocab;
    require(fr_session_prompt(session, ids, 500));
    require(fr_session_logits(session, ids + 100, 300, 0, fr_rows_collect, &rows));
    fr_session_reset(session);
    check_nothing_held(session);
    free(rows.values);
    fr_session_close(session);
    fr_reference_close(&reference);
    fr_options_free(options);
}
END_TEST

START_TEST(going_back_allocates_nothing) {
    fr_reference reference;
    fr_options *options = options_with(4, false, NULL);
    int32_t ids[CONTEXT];
    size_t count, accepted;
    state = 11;
    fr_reference_open(&reference, "gemma4-e", options);
    fr_session *session;
    require(fr_session_open(reference.model, reference.drafter, options, &session));
    draw_ids(ids, 500, reference.model->trunk.spec.vocab);
    size_t before = fr_alloc_count();
    fr_status status = fr_session_set_prompt(session, ids, 500);
    if (status == FR_OK) status = fr_session_truncate(session, 130);
    if (status == FR_OK) status = fr_session_step(session, ids, FR_STEP_MAX, &count, &accepted);
    if (status == FR_OK) status = fr_session_set_prompt(session, ids, 200);
    size_t after = fr_alloc_count();
    require(status);
    ck_assert_uint_eq(after, before);
    fr_session_close(session);
    fr_reference_close(&reference);
    fr_options_free(options);
}
END_TEST

static fr_status keep_row(void *context, const float *logits, size_t rows, size_t vocab) {
    memcpy(context, logits + (rows - 1) * vocab, vocab * sizeof *logits);
    return FR_OK;
}

START_TEST(a_session_goes_on_after_scoring) {
    fr_reference reference;
    fr_options *options = options_with(4, false, NULL);
    int32_t ids[90], here[MORE], there[MORE];
    state = 12;
    fr_reference_open(&reference, "gemma4-moe", options);
    fr_session *session, *fresh;
    require(fr_session_open(reference.model, reference.drafter, options, &session));
    require(fr_session_open(reference.model, NULL, options, &fresh));
    draw_ids(ids, 90, reference.model->trunk.spec.vocab);
    float *row = calloc(reference.model->trunk.spec.vocab, sizeof *row);
    require(fr_session_logits(session, ids, 90, 0, keep_row, row));
    require(fr_session_prompt(fresh, ids, 90));
    ck_assert_mem_eq(row, fresh->result.logits, reference.model->trunk.spec.vocab * sizeof *row);
    generate(session, here, MORE);
    generate(fresh, there, MORE);
    ck_assert_mem_eq(here, there, sizeof here);
    free(row);
    fr_session_close(session);
    fr_session_close(fresh);
    fr_reference_close(&reference);
    fr_options_free(options);
}
END_TEST

START_TEST(a_cut_beyond_the_timeline_is_refused) {
    fr_reference reference;
    fr_options *options = options_with(4, false, NULL);
    int32_t ids[20], given[FR_STEP_MAX];
    size_t count, accepted;
    state = 13;
    fr_reference_open(&reference, "gemma4-e", options);
    fr_session *session = open_long(&reference, options, 20, 0);
    ck_assert_int_eq(fr_session_truncate(session, 21), FR_USAGE);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "20 tokens, not 21"));
    draw_ids(ids, 20, reference.model->trunk.spec.vocab);
    ids[3] = -1;
    ck_assert_int_eq(fr_session_set_prompt(session, ids, 20), FR_INPUT);
    ck_assert_uint_eq(fr_session_length(session), 20); /* the refused prompt removed nothing */
    require(fr_session_truncate(session, 0));
    ck_assert_int_eq(fr_session_step(session, given, 1, &count, &accepted), FR_USAGE);
    fr_session_close(session);
    fr_reference_close(&reference);
    fr_options_free(options);
}
END_TEST

FR_SUITE("turns") {
    int fixtures = 0;
    while (fr_reference_long((size_t)fixtures)) fixtures++;
    TCase *turns = tcase_create("turns");
    tcase_set_timeout(turns, 300);
    fr_test_add_loop(turns, any_change_of_the_timeline_equals_a_fresh_run, fixtures, 2);
    tcase_add_test(turns, what_a_truncation_runs_again);
    fr_test_add_long(turns, few_checkpoints_stay_spread);
    tcase_add_test(turns, a_prompt_that_goes_on_runs_only_what_is_new);
    tcase_add_test(turns, an_abort_is_seen_between_chunks);
    tcase_add_test(turns, a_reset_lets_go_of_every_page);
    tcase_add_test(turns, going_back_allocates_nothing);
    tcase_add_test(turns, a_session_goes_on_after_scoring);
    tcase_add_test(turns, a_cut_beyond_the_timeline_is_refused);
    suite_add_tcase(suite, turns);
}
