/* Tests the sessions of one engine. Each session must give the same ids and the same bits of its logits as it gives
 * alone. This must hold whatever its neighbours are, in whatever order they are called, and whatever happens to them.
 * The expected values come from a session that runs alone; other suites compare such sessions with transformers. */
/* suite: threads alone */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/sizes.h"
#include "src/engine/session/state.h"
#include "tests/support/brief.h"
#include "tests/support/least_kv.h"
#include "tests/support/parts.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"
#include "tests/support/unread_logits.h"

enum { CONTEXT = 256, CHUNK = 24, MOST = 16, LONGEST = 200 };

static const char *const fixtures[] = {"gemma4-e", "gemma4-dense", "gemma4-moe", "glm-ocr-odd",
                                       "llama",    "gemma4-e-odd", "qwen35-odd", "qwen35-moe-odd"};
enum { FIXTURES = sizeof fixtures / sizeof *fixtures };

static uint32_t state = 1;

static size_t below(size_t n) {
    state = state * 1664525u + 1013904223u;
    return (size_t)(((uint64_t)state * n) >> 32);
}

/* ------------------------------------------------------------------------------------------ the sessions under test */

typedef struct subject {
    fr_model *model;
    fr_drafter *drafter; /* NULL: the fixture has none */
    fr_options *options;
} subject;

static void set(subject *s, fr_option option, int64_t value) {
    require(fr_options_set(s->options, option, value));
}

/* Returns the number of times that sessions hold pages with recurrent states. The prefix index holds such pages too.
 * Its own holds are not counted, because the index gives its pages up when sessions need them. */
static size_t holders_of_states(const fr_kv_prefixes *prefixes) {
    size_t holders = 0;
    for (size_t i = 0; i < prefixes->point_count; i++) {
        holders += prefixes->states->holders[i];
        holders -= prefixes->points[i].node != 0;
    }
    return holders;
}

/* Checks, after all sessions have been closed, that every page is free or held only by the prefix cache. */
static void check_nobody_holds(const fr_engine *engine) {
    ck_assert_uint_eq(holders_of_states(&engine->prefixes), 0);
    fr_kv_use use = fr_kv_prefixes_use(&engine->prefixes, &engine->kv);
    ck_assert_uint_eq(use.used, 0);
    ck_assert_uint_eq(use.shared, 0);
}

static subject open_subject(const char *fixture, int64_t threads) {
    subject s = {.options = fr_options_new()};
    char path[256];
    set(&s, FR_OPT_THREADS, threads);
    set(&s, FR_OPT_CONTEXT, CONTEXT);
    set(&s, FR_OPT_CHUNK, CHUNK);
    set(&s, FR_OPT_IGNORE_EOS, 1);
    snprintf(path, sizeof path, "%s%s", FR_TEST_MODELS, fixture);
    require(fr_model_open(path, s.options, &s.model));
    snprintf(path, sizeof path, "%s%s/assistant", FR_TEST_MODELS, fixture);
    if (access(path, F_OK) == 0)
        require(fr_drafter_open(path, s.model, s.options, &s.drafter));
    else if (fr_model_fact(s.model, FR_FACT_MTP_LAYERS) > 0)
        require(fr_drafter_open(NULL, s.model, s.options, &s.drafter));
    return s;
}

static void close_subject(subject *s) {
    fr_drafter_close(s->drafter);
    fr_model_close(s->model);
    fr_options_free(s->options);
}

static void sample(fr_options *options, int64_t seed) {
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, 0.8));
    require(fr_options_set(options, FR_OPT_SEED, seed));
}

static void make_ids(const subject *s, int32_t *ids, size_t count) {
    for (size_t i = 0; i < count; i++) {
        ids[i] = (int32_t)below((size_t)fr_model_fact(s->model, FR_FACT_VOCAB));
        if (ids[i] == fr_model_fact(s->model, FR_FACT_IMAGE_TOKEN)) ids[i] = 1;
    }
}

/* ------------------------------------------------------------------------------------------------------ the answers */

/* The ids that a session generates, and a hash of the logits from which these ids were chosen. The hash does not
 * include the logits of the first id. */
typedef struct answer {
    int32_t ids[CONTEXT];
    size_t count;
    uint64_t logits;
} answer;

static void hear(answer *a, const fr_session *s, const int32_t *ids, size_t count, bool first) {
    size_t bytes = s->model->trunk.spec.vocab * sizeof *s->result.logits;
    memcpy(a->ids + a->count, ids, count * sizeof *ids);
    for (size_t i = 0; i < count && !first; i++)
        a->logits = fr_hash(a->logits, s->result.logits + i * bytes / sizeof *s->result.logits, bytes);
    a->count += count;
}

static answer answer_alone(const subject *s, const int32_t *prompt, size_t length, size_t most) {
    answer a = {0};
    int32_t ids[FR_STEP_MAX];
    fr_session *session;
    require(fr_session_open(s->model, s->drafter, s->options, &session));
    require(fr_session_prompt(session, prompt, length));
    while (a.count < most) {
        size_t count, accepted;
        bool first = session->phase == FR_PHASE_PREDICTED;
        require(fr_session_step(session, ids, fr_smaller(FR_STEP_MAX, most - a.count), &count, &accepted));
        hear(&a, session, ids, count, first);
    }
    fr_session_close(session);
    return a;
}

/* ------------------------------------------------------------------------------------------------------- neighbours */

typedef struct talk {
    fr_session *session;
    int32_t prompt[LONGEST];
    size_t length, most, starts; /* starts: the round in which the session begins */
    bool begun;                  /* true: the session has been given the prompt */
    answer said, alone;
} talk;

/* Runs rounds until all sessions have generated their ids. The sessions begin and end in different rounds. */
static void converse(fr_engine *engine, talk *talks, size_t count) {
    static int32_t ids[MOST][FR_STEP_MAX];
    for (size_t turn = 0, left = count; left > 0; turn++) {
        fr_round rounds[MOST];
        talk *whose[MOST];
        bool first[MOST];
        size_t n = 0;
        for (talk *t = talks; t < talks + count; t++) {
            if (turn == t->starts && !t->begun) require(fr_session_put(t->session, t->prompt, t->length));
            if (turn < t->starts || t->said.count == t->most) continue;
            whose[n] = t;
            /* the first id has not been chosen yet; other rows of the round may overwrite its logits */
            first[n] = t->session->phase == FR_PHASE_PENDING;
            rounds[n] = (fr_round){
                .session = t->session, .ids = ids[n], .limit = fr_smaller(FR_STEP_MAX, t->most - t->said.count)};
            n++;
        }
        fr_engine_set_piece(engine, turn * 7 % CHUNK); /* a different limit of prompt rows in each round */
        require(fr_engine_step(engine, rounds, n));
        for (size_t i = 0; i < n; i++) {
            ck_assert_msg(rounds[i].status == FR_OK, "%s", rounds[i].error);
            hear(&whose[i]->said, whose[i]->session, ids[i], rounds[i].count, first[i]);
            left -= whose[i]->said.count == whose[i]->most;
        }
    }
}

static const struct {
    size_t sessions;
    int64_t threads, draft_max;
    bool sampled;
} crowds[] = {{1, 1, 3, false}, {2, 2, 0, false},  {2, 1, FR_DRAFT_AUTO, true}, {8, 2, 3, true},
              {8, 3, 0, true},  {16, 2, 5, false}, {16, 1, FR_DRAFT_AUTO, true}};
enum { CROWDS = sizeof crowds / sizeof *crowds };

START_TEST(neighbours_change_nothing) {
    size_t fixture = (size_t)_i / CROWDS, crowd = (size_t)_i % CROWDS, sessions = crowds[crowd].sessions;
    static talk talks[MOST];
    fr_engine *engine;
    state = (uint32_t)_i + 1;
    subject s = open_subject(fixtures[fixture], crowds[crowd].threads);
    set(&s, FR_OPT_DRAFT_MAX, crowds[crowd].draft_max);
    require(fr_engine_open(s.model, s.drafter, s.options, sessions, &engine));
    for (size_t i = 0; i < sessions; i++) {
        if (crowds[crowd].sampled) sample(s.options, (int64_t)i);
        talks[i] = (talk){.length = 1 + below(90), .most = 1 + below(120), .starts = below(6)};
        make_ids(&s, talks[i].prompt, talks[i].length);
        require(fr_engine_session(engine, s.options, &talks[i].session));
        talks[i].alone = answer_alone(&s, talks[i].prompt, talks[i].length, talks[i].most);
    }
    converse(engine, talks, sessions);
    for (size_t i = 0; i < sessions; i++) {
        const talk *t = &talks[i];
        ck_assert_msg(memcmp(t->said.ids, t->alone.ids, t->most * sizeof *t->said.ids) == 0,
                      "%s: session %zu of %zu says something else than alone", fixtures[fixture], i, sessions);
        ck_assert_msg(t->said.logits == t->alone.logits, "%s: session %zu of %zu has other logits than alone",
                      fixtures[fixture], i, sessions);
        fr_session_close(t->session);
    }
    check_nobody_holds(engine);
    fr_engine_close(engine);
    close_subject(&s);
}
END_TEST

/* ----------------------------------------------------------------------------------------------------- random calls */

enum { SESSIONS = 8 };

/* A session in an engine, and a session that runs alone and gets the same calls. */
typedef struct twin {
    fr_session *in, *alone;
    fr_options *options;
} twin;

typedef struct world {
    subject subject;
    fr_engine *engine;
    twin twins[SESSIONS];
    char file[64];
    int32_t texts[2][180]; /* two texts; many prompts begin with a part of one of them */
    size_t calls[13];
} world;

static fr_options *options_like(const world *w, size_t number) {
    fr_options *options = fr_options_new();
    *options = *w->subject.options;
    if (number % 2) sample(options, (int64_t)below(3));
    require(fr_options_set(options, FR_OPT_DRAFT_MAX, number % 3 ? (int64_t)below(6) : FR_DRAFT_AUTO));
    return options;
}

static void open_twin(world *w, size_t i) {
    twin *t = &w->twins[i];
    t->options = options_like(w, i);
    require(fr_engine_session(w->engine, t->options, &t->in));
    require(fr_session_open(w->subject.model, w->subject.drafter, t->options, &t->alone));
}

static void close_twin(twin *t) {
    fr_session_close(t->in);
    fr_session_close(t->alone);
    fr_options_free(t->options);
    *t = (twin){0};
}

static void check_twin(const twin *t) {
    ck_assert_uint_eq(t->in->length, t->alone->length);
    ck_assert_mem_eq(t->in->ids, t->alone->ids, t->in->length * sizeof *t->in->ids);
}

static void prompt(world *w, twin *t, bool whole) {
    int32_t ids[180];
    size_t count = 1 + below(whole ? 180 : 40), base = below(2), shared = below(count + 1);
    make_ids(&w->subject, ids, count);
    if (whole) memcpy(ids, w->texts[base], shared * sizeof *ids);
    if (t->in->length + count > CONTEXT - 60) whole = true;
    if (whole && below(2)) memcpy(ids, t->in->ids, fr_smaller(count, t->in->length) * sizeof *ids);
    fr_status (*call)(fr_session *, const int32_t *, size_t) = whole ? fr_session_set_prompt : fr_session_prompt;
    require(call(t->alone, ids, count));
    require(whole && below(2) ? fr_session_put(t->in, ids, count) : call(t->in, ids, count));
}

/* Generates `count` ids with the session that runs alone. */
static void step_alone(const twin *t, size_t count, int32_t *ids) {
    for (size_t made = 0, got, accepted; made < count; made += got)
        require(fr_session_step(t->alone, ids + made, fr_smaller(FR_STEP_MAX, count - made), &got, &accepted));
}

/* Lets some of the sessions generate together in rounds. Between rounds the test asks some of these sessions for drafts
 * in advance. */
static void rounds(world *w) {
    static int32_t ids[SESSIONS][64], alone[64];
    size_t want[SESSIONS], made[SESSIONS] = {0}, left = 0;
    for (size_t i = 0; i < SESSIONS; i++) {
        const fr_session *s = w->twins[i].in;
        want[i] = s && s->length && s->length < CONTEXT - 60 ? below(2) * (1 + below(12)) : 0;
        left += want[i] > 0;
    }
    for (size_t run = 0; left > 0; run++) {
        ck_assert_uint_lt(run, 1000); /* each round makes progress */
        fr_round all[SESSIONS];
        size_t who[SESSIONS], n = 0;
        for (size_t i = 0; i < SESSIONS; i++)
            if (made[i] < want[i]) {
                who[n] = i;
                all[n++] = (fr_round){.session = w->twins[i].in, .ids = ids[i] + made[i], .limit = want[i] - made[i]};
            }
        size_t ahead = below(2 * SESSIONS);
        fr_session *drafting = ahead < SESSIONS ? w->twins[ahead].in : NULL;
        if (drafting && drafting->length && drafting->drafting.async.state == FR_ASYNC_NONE)
            require(fr_draft_submit(drafting));
        require(fr_engine_step(w->engine, all, n));
        for (size_t r = 0; r < n; r++) {
            ck_assert_msg(all[r].status == FR_OK, "%s", all[r].error);
            made[who[r]] += all[r].count;
            left -= made[who[r]] == want[who[r]];
        }
    }
    for (size_t i = 0; i < SESSIONS; i++) {
        if (want[i] == 0) continue;
        step_alone(&w->twins[i], want[i], alone);
        ck_assert_mem_eq(ids[i], alone, want[i] * sizeof *alone);
    }
}

static void cut(twin *t) {
    size_t length = below(t->in->length + 1);
    require(fr_session_truncate(t->in, length));
    require(fr_session_truncate(t->alone, length));
}

/* Forks the session in the engine. The fork is compared with a session alone whose prompt is the fork's text. */
static void fork_twin(world *w, size_t from, size_t to) {
    const twin *t = &w->twins[from];
    twin *f = &w->twins[to];
    if (f->in) close_twin(f);
    f->options = options_like(w, below(2) ? from : to);
    require(fr_session_fork(t->in, f->options, &f->in));
    require(fr_session_open(w->subject.model, w->subject.drafter, f->options, &f->alone));
    if (t->in->length) require(fr_session_set_prompt(f->alone, t->in->ids, t->in->length));
}

/* Cancels a step before it runs anything. The session must then continue as without the cancelled step. If the step
 * would need no forward pass, it could not be aborted, so the function does nothing. */
static void cancel(const world *w, twin *t) {
    bool rests = t->in->phase == FR_PHASE_PREDICTED || t->in->ended || t->in->length == t->in->context;
    if (rests && t->in->phase != FR_PHASE_PENDING) return;
    int32_t ids[4];
    fr_round round = {.session = t->in, .ids = ids, .limit = 4};
    fr_session_cancel(t->in);
    require(fr_engine_step(w->engine, &round, 1));
    ck_assert_int_eq(round.status, FR_ABORTED);
    ck_assert_ptr_nonnull(strstr(round.error, "aborted"));
    ck_assert_uint_eq(round.count, 0);
}

/* Saves both sessions of twin `t` and restores them in twin `into`. The session in the engine is saved to memory, and
 * the session alone to a file. */
static void save_and_restore(world *w, twin *t, twin *into) {
    void *bytes;
    size_t size;
    require(fr_session_save_bytes(t->in, &bytes, &size));
    require(fr_session_save(t->alone, w->file));
    require(fr_session_restore_bytes(into->in, bytes, size));
    require(fr_session_restore(into->alone, w->file));
    fr_free(bytes);
}

/* Scores a text in session `in`. After scoring, the text is the session's prompt. So session `alone` gets the text as a
 * prompt. */
static void score(const world *w, twin *t) {
    int32_t ids[90];
    size_t count = 1 + below(90);
    make_ids(&w->subject, ids, count);
    require(fr_session_logits(t->in, ids, count, below(count), fr_test_unread_logits, NULL));
    fr_session_reset(t->alone);
    require(fr_session_prompt(t->alone, ids, count));
}

static void call_something(world *w) {
    size_t what = below(13), i = below(SESSIONS), j = (i + 1 + below(SESSIONS - 1)) % SESSIONS;
    twin *t = &w->twins[i];
    if (!t->in) open_twin(w, i);
    if (t->in->length == 0 && what > 2) what = 1;
    w->calls[what]++;
    switch (what) {
    case 0: close_twin(t); return;
    case 1: prompt(w, t, false); break;
    case 2:
        prompt(w, t, true);
        if (below(4) == 0) cancel(w, t);
        break;
    case 3: cut(t); break;
    case 4: fork_twin(w, i, j); break;
    case 5: cancel(w, t); break;
    case 6:
        if (w->twins[j].in) save_and_restore(w, t, &w->twins[j]);
        break;
    case 7:
        fr_session_reset(t->in);
        fr_session_reset(t->alone);
        break;
    case 8: score(w, t); break;
    default: rounds(w);
    }
    check_twin(t);
}

/* Returns how many random sequences of calls a fixture runs. When all parts run (make check-all), the fixtures run at
 * least 10,000 sequences in total, and the two fixtures with recurrent states run 10,000. All sequences of a fixture
 * run in one engine, because damage from one sequence may show only after hundreds of others. */
static size_t sequences(const subject *s) {
    if (fr_test_in_parts()) return s->model->trunk.recurrent_count > 0 ? 5000 : 2000;
    return 10;
}

/* Returns true if each kind of call was made more than five times. The number of calls of a kind depends on the lengths
 * of the texts, which depend on how many drafts were made in time and accepted. */
static bool called_all(const world *w) {
    size_t often = 0;
    for (size_t what = 0; what < 10; what++) often += w->calls[what] > 5;
    return often == 10;
}

START_TEST(any_calls_say_what_they_say_alone) {
    world w = {.subject = open_subject(fixtures[_i], 1 + _i % 3)};
    state = (uint32_t)_i + 77;
    for (size_t i = 0; i < 2; i++) make_ids(&w.subject, w.texts[i], 180);
    snprintf(w.file, sizeof w.file, "/tmp/forerun-engine-%d", getpid());
    require(fr_engine_open(w.subject.model, w.subject.drafter, w.subject.options, SESSIONS, &w.engine));
    size_t least = sequences(&w.subject);
    for (size_t n = 0; n < least || (n < 4 * least && !called_all(&w)); n++) {
        for (size_t call = 0; call < 25; call++) call_something(&w);
        for (size_t i = 0; i < SESSIONS; i++)
            if (w.twins[i].in) close_twin(&w.twins[i]);
        check_nobody_holds(w.engine);
    }
    ck_assert(called_all(&w));
    unlink(w.file);
    fr_engine_close(w.engine);
    close_subject(&w.subject);
}
END_TEST

/* -------------------------------------------------------------------------------------------------- shared prefixes */

/* Runs a prompt in a new session of the engine. Compares the generated ids with those of a session alone. Returns how
 * many ids of the prompt were reused from the cache. */
static double ask(const subject *s, fr_engine *engine, const int32_t *ids, size_t count, const char *what) {
    static answer said, alone;
    talk t = {.length = count, .most = 24};
    memcpy(t.prompt, ids, count * sizeof *ids);
    require(fr_engine_session(engine, s->options, &t.session));
    converse(engine, &t, 1);
    said = t.said;
    alone = answer_alone(s, ids, count, t.most);
    ck_assert_msg(memcmp(said.ids, alone.ids, t.most * sizeof *said.ids) == 0, "%s: other ids than alone", what);
    ck_assert_msg(said.logits == alone.logits, "%s: other logits than alone", what);
    double spared = fr_session_stat(t.session, FR_STAT_REUSED_TOKENS);
    ck_assert(spared + fr_session_stat(t.session, FR_STAT_PROMPT_TOKENS) == (double)count);
    fr_session_close(t.session);
    return spared;
}

/* Changes a prompt so that messages end after its first 100 and after its first 150 ids, and nowhere else. The engine
 * keeps the states of recurrent layers at the ends of messages and at the end of the prompt. */
static void end_messages(const subject *s, int32_t *ids) {
    int32_t none = 0;
    while (fr_model_is_eos(s->model, none)) none++;
    for (size_t i = 0; i < LONGEST; i++)
        if (fr_model_is_eos(s->model, ids[i])) ids[i] = none;
    ids[99] = ids[149] = s->model->eos[0];
}

/* When a prompt is given a second time, the engine must reuse everything that it still has of it. A prompt with the
 * same beginning as an earlier one must reuse the common beginning. This must hold even if each session is closed
 * before the next one opens. */
START_TEST(what_was_run_is_not_run_again) {
    const char *name = fixtures[_i / 4];
    int32_t ids[LONGEST], other[LONGEST];
    fr_engine *engine;
    subject s = open_subject(name, 2);
    bool follows = s.drafter && _i % 2 && fr_model_fact(s.model, FR_FACT_MTP_LAYERS) > 0;
    set(&s, FR_OPT_DRAFT_MAX, _i % 2 ? 3 : 0);
    require(fr_engine_open(s.model, s.drafter, s.options, _i / 2 % 2 ? 3 : 1, &engine));
    make_ids(&s, ids, LONGEST);
    make_ids(&s, other, LONGEST);
    end_messages(&s, ids);
    end_messages(&s, other);
    memcpy(other, ids, 140 * sizeof *ids);
    other[140] = ids[140] == 5 ? 6 : 5;
    bool states = s.model->trunk.recurrent_count > 0;
    ck_assert(ask(&s, engine, ids, LONGEST, name) == 0);
    ck_assert(ask(&s, engine, ids, LONGEST, name) == LONGEST - 1);
    ck_assert(ask(&s, engine, other, LONGEST, name) == (states ? 127 : 140 - follows));
    ck_assert(ask(&s, engine, other, LONGEST, name) == LONGEST - 1);
    ck_assert(ask(&s, engine, ids, 129, name) == (states ? 127 : 128 - follows));
    ck_assert(ask(&s, engine, ids, 128, name) == 127);
    fr_engine_close(engine);
    close_subject(&s);
}
END_TEST

/* Makes prompts that begin with the same `common` ids. All of them will be given to the engine in the same round. */
static void make_crowd(const subject *s, fr_engine *engine, talk *talks, size_t count, size_t common) {
    int32_t beginning[LONGEST];
    make_ids(s, beginning, LONGEST);
    end_messages(s, beginning);
    beginning[149] = beginning[148];
    for (talk *t = talks; t < talks + count; t++) {
        *t = (talk){.length = common + 3 + below(30), .most = 5};
        make_ids(s, t->prompt, t->length);
        memcpy(t->prompt, beginning, common * sizeof *beginning);
        t->prompt[common] = (int32_t)(t - talks) + 3; /* no other prompt has this id */
        require(fr_engine_session(engine, s->options, &t->session));
        t->alone = answer_alone(s, t->prompt, t->length, t->most);
    }
}

/* Lets all sessions generate. Checks that each session gives the same ids as alone. Returns how many ids of the prompts
 * were run. */
static double end_crowd(fr_engine *engine, talk *talks, size_t count, const char *what) {
    double ran = 0;
    converse(engine, talks, count);
    for (const talk *t = talks; t < talks + count; t++) {
        ck_assert_msg(memcmp(t->said.ids, t->alone.ids, t->most * sizeof *t->said.ids) == 0 &&
                          t->said.logits == t->alone.logits,
                      "%s: another answer than alone", what);
        double fresh = fr_session_stat(t->session, FR_STAT_PROMPT_TOKENS);
        ck_assert(fresh + fr_session_stat(t->session, FR_STAT_REUSED_TOKENS) == (double)t->length);
        ran += fresh;
        fr_session_close(t->session);
    }
    return ran;
}

static size_t all_ids(const talk *talks, size_t count) {
    size_t ids = 0;
    for (size_t i = 0; i < count; i++) ids += talks[i].length;
    return ids;
}

enum { CROWD = 5, COMMON = 150, WHOLE = 128 }; /* WHOLE: number of the common ids that fill whole pages */

/* Several prompts with the same beginning are given in the same round. One session must run the common ids, while the
 * other sessions wait. */
START_TEST(what_is_being_run_is_waited_for) {
    const char *name = fixtures[_i / 2];
    talk talks[CROWD];
    fr_engine *engine;
    state = (uint32_t)_i + 5;
    subject s = open_subject(name, 2);
    bool follows = s.drafter && _i % 2 && fr_model_fact(s.model, FR_FACT_MTP_LAYERS) > 0;
    bool states = s.model->trunk.recurrent_count > 0;
    set(&s, FR_OPT_DRAFT_MAX, _i % 2 ? 3 : 0);
    require(fr_engine_open(s.model, s.drafter, s.options, CROWD, &engine));
    make_crowd(&s, engine, talks, CROWD, COMMON);
    size_t spared = (CROWD - 1) * (size_t)(WHOLE - (follows || states)), all = all_ids(talks, CROWD);
    double ran = end_crowd(engine, talks, CROWD, name);
    ck_assert_msg(ran == (double)(all - spared), "%s: %g of %zu ids were run, not all but %zu", name, ran, all, spared);
    fr_engine_close(engine);
    close_subject(&s);
}
END_TEST

/* Several sessions wait while one session runs the ids that they have in common. This session is closed in the middle
 * of a page. Then one of the waiting sessions must run the rest. */
START_TEST(who_is_waited_for_may_go) {
    const char *name = fixtures[_i / 2];
    talk talks[CROWD];
    fr_round rounds[CROWD];
    int32_t ids[CROWD][FR_STEP_MAX];
    fr_engine *engine;
    state = (uint32_t)_i + 6;
    subject s = open_subject(name, 1);
    set(&s, FR_OPT_DRAFT_MAX, 3);
    require(fr_engine_open(s.model, s.drafter, s.options, CROWD, &engine));
    make_crowd(&s, engine, talks, CROWD, COMMON);
    for (size_t i = 0; i < CROWD; i++) {
        require(fr_session_put(talks[i].session, talks[i].prompt, talks[i].length));
        talks[i].begun = true;
        rounds[i] = (fr_round){.session = talks[i].session, .ids = ids[i], .limit = FR_STEP_MAX};
    }
    for (int round = 0; round < 4; round++) require(fr_engine_step(engine, rounds, CROWD)); /* runs 96 rows */
    ck_assert_uint_eq(fr_session_waiting(talks[0].session), talks[0].length - 4 * CHUNK);
    for (size_t i = 1; i < CROWD; i++) ck_assert(fr_session_stat(talks[i].session, FR_STAT_PROMPT_TOKENS) == 0);
    if (_i % 2) {
        /* this session looks as if its last round had failed; the others must not wait for it, since it makes no
         * progress */
        talks[0].session->round.last_failed = true;
        require(fr_engine_step(engine, rounds + 1, CROWD - 1));
    }
    fr_session_close(talks[0].session);
    size_t spared = (CROWD - 2) * (size_t)(WHOLE - 1), all = all_ids(talks + 1, CROWD - 1);
    ck_assert(end_crowd(engine, talks + 1, CROWD - 1, name) <= (double)(all - spared));
    check_nobody_holds(engine);
    fr_engine_close(engine);
    close_subject(&s);
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- pictures */

#define GLM    "../glm-ocr"
#define IMAGES "tests/data/images/jpeg-"

/* Lengths of a prompt with two pictures. It consists of AT ids of text, the first picture, BETWEEN ids of text, the
 * second picture, and BEHIND ids of text. SEEN ids are generated after the prompt. */
enum { AT = 50, BETWEEN = 40, BEHIND = 60, SEEN = 8 };

typedef struct album {
    fr_picture *pictures[3]; /* all have the same size */
    size_t tokens;
    int32_t ids[CONTEXT];
    size_t second, count; /* second: position of the second picture; count: number of ids */
} album;

static album open_album(const subject *s) {
    static const char *const paths[] = {IMAGES "444.jpg", IMAGES "grey.jpg", IMAGES "420.jpg"};
    album a = {.tokens = 0};
    for (size_t i = 0; i < 3; i++) {
        require(fr_picture_open(paths[i], s->model, &a.pictures[i]));
        ck_assert(i == 0 || fr_picture_tokens(a.pictures[i]) == a.tokens);
        a.tokens = fr_picture_tokens(a.pictures[i]);
    }
    a.second = AT + a.tokens + BETWEEN;
    a.count = a.second + a.tokens + BEHIND;
    ck_assert_uint_lt(a.count, CONTEXT - SEEN);
    make_ids(s, a.ids, a.count);
    for (size_t i = 0; i < a.tokens; i++)
        a.ids[AT + i] = a.ids[a.second + i] = (int32_t)fr_model_fact(s->model, FR_FACT_IMAGE_TOKEN);
    return a;
}

/* Shows the pictures with the numbers `which` to the session. Then appends the ids from `from` to `end` of the album's
 * prompt. */
static void show(fr_session *session, const album *a, const size_t *which, size_t pictures, size_t from, size_t end) {
    const fr_picture *shown[2];
    for (size_t i = 0; i < pictures; i++) shown[i] = a->pictures[which[i]];
    require(fr_session_show(session, shown, pictures));
    require(fr_session_prompt(session, a->ids + from, end - from));
}

static void see(fr_session *session, int32_t *ids) {
    for (size_t made = 0, got, accepted; made < SEEN; made += got)
        require(fr_session_step(session, ids + made, SEEN - made, &got, &accepted));
}

/* Generates ids after a prompt with two of the pictures, once in the engine and once in a session alone. Compares the
 * ids. Returns how many ids of the prompt the engine reused. */
static double look(const subject *s, fr_engine *engine, const album *a, size_t first, size_t second) {
    int32_t said[SEEN], alone[SEEN];
    const size_t which[] = {first, second};
    fr_session *session;
    require(fr_session_open(s->model, s->drafter, s->options, &session));
    show(session, a, which, 2, 0, a->count);
    see(session, alone);
    fr_session_close(session);
    require(fr_engine_session(engine, s->options, &session));
    show(session, a, which, 2, 0, a->count);
    double spared = fr_session_stat(session, FR_STAT_REUSED_TOKENS);
    see(session, said);
    ck_assert_mem_eq(said, alone, sizeof said);
    fr_session_close(session);
    return spared;
}

/* In the engine, a truncation removes the second picture, and another picture takes its place. The text must be that of
 * a session alone that never saw the removed picture. */
static void look_again(const subject *s, fr_engine *engine, const album *a) {
    int32_t said[2][SEEN];
    for (size_t i = 0; i < 2; i++) {
        fr_session *session;
        if (i)
            require(fr_engine_session(engine, s->options, &session));
        else
            require(fr_session_open(s->model, s->drafter, s->options, &session));
        show(session, a, (size_t[]){0}, 1, 0, AT + a->tokens + 3);
        show(session, a, (size_t[]){2}, i, AT + a->tokens + 3, i ? a->count : a->second);
        if (i) require(fr_session_truncate(session, a->second));
        show(session, a, (size_t[]){1}, 1, a->second, a->count);
        see(session, said[i]);
        fr_session_close(session);
    }
    ck_assert_mem_eq(said[0], said[1], sizeof *said);
}

/* Two prompts have equal ids but different pictures. The engine must not reuse rows of one prompt for the other
 * prompt. */
START_TEST(pictures_are_told_apart) {
    fr_engine *engine;
    subject s = open_subject(GLM, 2);
    set(&s, FR_OPT_DRAFT_MAX, _i ? 3 : 0);
    album a = open_album(&s);
    double all = (double)(a.count - 1);
    double before = (double)(a.second / FR_KV_PAGE * FR_KV_PAGE);
    require(fr_engine_open(s.model, s.drafter, s.options, 3, &engine));
    ck_assert_double_eq(look(&s, engine, &a, 0, 1), 0);
    ck_assert_double_eq(look(&s, engine, &a, 0, 1), all);
    ck_assert_double_le(look(&s, engine, &a, 0, 2), before);
    ck_assert_double_eq(look(&s, engine, &a, 0, 2), all);
    ck_assert_double_eq(look(&s, engine, &a, 1, 2), 0);
    ck_assert_double_eq(look(&s, engine, &a, 0, 1), all);
    fr_engine_close(engine);
    require(fr_engine_open(s.model, s.drafter, s.options, 3, &engine));
    look_again(&s, engine, &a);
    ck_assert_double_eq(look(&s, engine, &a, 0, 1), all);
    check_nobody_holds(engine);
    fr_engine_close(engine);
    for (size_t i = 0; i < 3; i++) fr_picture_close(a.pictures[i]);
    close_subject(&s);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------ few pages */

/* Opens an engine with the smallest number of pages that allows this many sessions. */
static fr_engine *open_tight(subject *s, size_t sessions) {
    fr_engine *engine;
    set(s, FR_OPT_KV_MEMORY, fr_test_least_kv(s->model, s->drafter, s->options, sessions));
    require(fr_engine_open(s->model, s->drafter, s->options, sessions, &engine));
    return engine;
}

/* There are pages for only a little more than one session, so pages of earlier texts are evicted all the time. */
START_TEST(evicted_and_run_again) {
    int32_t texts[5][LONGEST];
    double spared = 0;
    state = (uint32_t)_i + 5;
    subject s = open_subject(fixtures[_i], 1);
    set(&s, FR_OPT_DRAFT_MAX, 3);
    fr_engine *engine = open_tight(&s, 2);
    for (size_t i = 0; i < 5; i++) {
        make_ids(&s, texts[i], LONGEST);
        if (i % 2) memcpy(texts[i], texts[i - 1], 100 * sizeof **texts);
    }
    size_t asked = fr_test_full() ? 60 : 20;
    for (size_t n = 0; n < asked; n++) spared += ask(&s, engine, texts[below(5)], 1 + below(LONGEST), fixtures[_i]);
    ck_assert(spared > 0);
    fr_engine_close(engine);
    close_subject(&s);
}
END_TEST

/* Sessions hold all pages. A call that needs another page is refused, and its error line states how many pages exist.
 * The session must continue when pages become free. */
START_TEST(no_page_is_left) {
    talk talks[3] = {{.most = 20}, {.most = 20}, {.most = 20}};
    int32_t ids[FR_STEP_MAX];
    subject s = open_subject(fixtures[_i], 1);
    fr_engine *engine = open_tight(&s, 3);
    size_t refused = 3;
    for (size_t i = 0; i < 3; i++) {
        talk *t = &talks[i];
        t->length = LONGEST;
        make_ids(&s, t->prompt, t->length);
        t->alone = answer_alone(&s, t->prompt, t->length, t->most);
        require(fr_engine_session(engine, s.options, &t->session));
        require(fr_session_put(t->session, t->prompt, t->length));
        while (fr_session_waiting(t->session) && refused == 3) {
            fr_round round = {.session = t->session, .ids = ids, .limit = FR_STEP_MAX};
            require(fr_engine_step(engine, &round, 1));
            if (round.status == FR_OK) continue;
            ck_assert_int_eq(round.status, FR_MEMORY);
            ck_assert_ptr_nonnull(strstr(round.error, "no page for keys and values"));
            refused = i;
        }
    }
    ck_assert_uint_lt(refused, 3);
    for (size_t i = 0; i < 3; i++)
        if (i != refused) fr_session_close(talks[i].session);
    converse(engine, &talks[refused], 1);
    ck_assert_mem_eq(talks[refused].said.ids, talks[refused].alone.ids, 20 * sizeof *ids);
    fr_session_close(talks[refused].session);
    check_nobody_holds(engine);
    fr_engine_close(engine);
    close_subject(&s);
}
END_TEST

/* Several sessions run different texts one after the other. Each is reset before the next one begins. A reset session
 * must hold no page, so that all other sessions have enough pages, also for drafts. */
START_TEST(a_reset_session_holds_no_page) {
    enum { TEXTS = 4, LONG = 600, SAID = 20 };
    int32_t prompt[LONG], ids[FR_STEP_MAX];
    subject s = open_subject(_i ? "qwen35-odd" : "glm4-moe-odd", 2);
    set(&s, FR_OPT_CONTEXT, LONG + 40);
    set(&s, FR_OPT_DRAFT_MAX, 3);
    fr_engine *engine = open_tight(&s, TEXTS);
    fr_session *sessions[TEXTS];
    for (size_t i = 0; i < TEXTS; i++) {
        size_t accepted, count;
        make_ids(&s, prompt, LONG);
        require(fr_engine_session(engine, s.options, &sessions[i]));
        require(fr_session_prompt(sessions[i], prompt, LONG));
        for (size_t said = 0; said < SAID; said += count)
            require(fr_session_step(sessions[i], ids, FR_STEP_MAX, &count, &accepted));
        ck_assert_double_gt(fr_session_stat(sessions[i], FR_STAT_DRAFTED), 0);
        fr_session_reset(sessions[i]);
        check_nobody_holds(engine);
        fr_kv *drafters[FR_DRAFTERS_MAX];
        fr_session_draft_kv(sessions[i], drafters);
        for (size_t b = 0; b < sessions[i]->cache.kv.blocks; b++) ck_assert_ptr_null(drafters[0]->table[FR_KV_FULL][b]);
    }
    for (size_t i = 0; i < TEXTS; i++) fr_session_close(sessions[i]);
    fr_engine_close(engine);
    close_subject(&s);
}
END_TEST

/* A session is closed while two others still hold its pages: its fork, and a session that reuses its prompt. Both must
 * continue as if the closed session still existed. */
START_TEST(closed_while_others_hold_its_pages) {
    talk talks[3] = {{.length = LONGEST, .most = 40}};
    state = (uint32_t)_i + 3;
    subject s = open_subject(fixtures[_i], 1);
    set(&s, FR_OPT_DRAFT_MAX, 3);
    fr_engine *engine;
    require(fr_engine_open(s.model, s.drafter, s.options, 3, &engine));
    make_ids(&s, talks[0].prompt, LONGEST);
    talks[0].alone = answer_alone(&s, talks[0].prompt, LONGEST, 40);
    talks[1] = talks[2] = talks[0];
    talks[0].most = 20;
    require(fr_engine_session(engine, s.options, &talks[0].session));
    converse(engine, &talks[0], 1);
    require(fr_session_fork(talks[0].session, s.options, &talks[1].session));
    require(fr_engine_session(engine, s.options, &talks[2].session));
    talks[1].said = talks[0].said;
    talks[1].begun = true;
    require(fr_session_put(talks[2].session, talks[2].prompt, LONGEST));
    talks[2].begun = true;
    fr_session_close(talks[0].session);
    converse(engine, &talks[1], 2);
    for (size_t i = 1; i < 3; i++) {
        ck_assert_mem_eq(talks[i].said.ids, talks[i].alone.ids, 40 * sizeof *talks[i].said.ids);
        fr_session_close(talks[i].session);
    }
    check_nobody_holds(engine);
    fr_engine_close(engine);
    close_subject(&s);
}
END_TEST

/* Runs a prompt in a session alone and saves this session to memory. */
static void save_alone(const subject *s, const talk *t, void **bytes, size_t *size) {
    fr_session *alone;
    require(fr_session_open(s->model, s->drafter, s->options, &alone));
    require(fr_session_prompt(alone, t->prompt, t->length));
    require(fr_session_attach(alone, "saved", 6));
    require(fr_session_save_bytes(alone, bytes, size));
    fr_session_close(alone);
}

/* Two sessions share an engine with few pages. The first session restores a saved state. While too few pages are free,
 * this is refused and must leave the session unchanged. When the second session is closed, enough pages are free, and
 * restoring must succeed. */
START_TEST(a_restore_without_pages_changes_nothing) {
    talk saved = {.length = LONGEST, .most = 20}, talks[2] = {{.length = 30, .most = 12}, {.length = 100, .most = 12}};
    void *bytes;
    size_t size, kept;
    subject s = open_subject(fixtures[_i], 1);
    make_ids(&s, saved.prompt, saved.length);
    saved.alone = answer_alone(&s, saved.prompt, saved.length, saved.most);
    save_alone(&s, &saved, &bytes, &size);
    fr_engine *engine = open_tight(&s, 2);
    for (talk *t = talks; t < talks + 2; t++) {
        make_ids(&s, t->prompt, t->length);
        t->alone = answer_alone(&s, t->prompt, t->length, t->most);
        require(fr_engine_session(engine, s.options, &t->session));
        require(fr_session_set_prompt(t->session, t->prompt, t->length));
        t->begun = true;
    }
    require(fr_session_attach(talks[0].session, "mine", 5));
    ck_assert_int_eq(fr_session_restore_bytes(talks[0].session, bytes, size), FR_MEMORY);
    ck_assert_msg(strstr(fr_last_error(), "pages for keys and values are needed"), "%s", fr_last_error());
    ck_assert_str_eq(fr_session_attached(talks[0].session, &kept), "mine");
    converse(engine, talks, 2);
    for (size_t i = 0; i < 2; i++)
        ck_assert_mem_eq(talks[i].said.ids, talks[i].alone.ids, talks[i].most * sizeof(int32_t));
    fr_session_close(talks[1].session);
    saved.session = talks[0].session;
    saved.begun = true;
    require(fr_session_restore_bytes(saved.session, bytes, size));
    ck_assert_str_eq(fr_session_attached(saved.session, &kept), "saved");
    converse(engine, &saved, 1);
    ck_assert_mem_eq(saved.said.ids, saved.alone.ids, saved.most * sizeof(int32_t));
    fr_free(bytes);
    fr_session_close(saved.session);
    fr_engine_close(engine);
    close_subject(&s);
}
END_TEST

/* -------------------------------------------------------------------------------------------------- cancelled steps */

/* A cancellation takes effect at the next forward pass. So a step that needs no forward pass still returns its id, and
 * the following step is aborted. */
START_TEST(a_cancel_waits_for_a_forward) {
    subject s = open_subject("gemma4-e", 1);
    fr_session *session;
    int32_t prompt[2] = {2, 5}, ids[FR_STEP_MAX];
    size_t count, accepted;
    require(fr_session_open(s.model, s.drafter, s.options, &session));
    require(fr_session_prompt(session, prompt, 2));
    fr_session_cancel(session);
    require(fr_session_step(session, ids, FR_STEP_MAX, &count, &accepted));
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(fr_session_step(session, ids, FR_STEP_MAX, &count, &accepted), FR_ABORTED);
    require(fr_session_step(session, ids, FR_STEP_MAX, &count, &accepted));
    ck_assert_uint_ge(count, 1);
    fr_session_close(session);
    close_subject(&s);
}
END_TEST

/* The engine limits the total number of prompt rows in a round. The first prompt takes as many of these rows as it can,
 * and the second prompt takes the rest. */
START_TEST(a_piece_bounds_a_round) {
    subject s = open_subject("gemma4-e", 1);
    fr_engine *engine;
    fr_session *sessions[2];
    int32_t ids[2][FR_STEP_MAX], prompt[CHUNK + 7];
    fr_round rounds[2];
    require(fr_engine_open(s.model, s.drafter, s.options, 2, &engine));
    ck_assert_uint_eq(fr_engine_set_piece(NULL, 3), 0);
    ck_assert_uint_eq(fr_engine_set_piece(engine, 0), CHUNK);
    ck_assert_uint_eq(fr_engine_set_piece(engine, CHUNK + 1), CHUNK);
    for (size_t i = 0; i < 2; i++) {
        make_ids(&s, prompt, CHUNK + 7);
        require(fr_engine_session(engine, s.options, &sessions[i]));
        require(fr_session_put(sessions[i], prompt, CHUNK + 7));
        rounds[i] = (fr_round){.session = sessions[i], .ids = ids[i], .limit = FR_STEP_MAX};
    }
    require(fr_engine_step(engine, rounds, 2));
    ck_assert_uint_eq(fr_session_waiting(sessions[0]), 7);
    ck_assert_uint_eq(fr_session_waiting(sessions[1]), CHUNK + 7);
    ck_assert_uint_eq(fr_engine_set_piece(engine, 10), 10);
    require(fr_engine_step(engine, rounds, 2));
    ck_assert_uint_eq(fr_session_waiting(sessions[0]), 0);
    ck_assert_uint_eq(fr_session_waiting(sessions[1]), CHUNK + 4);
    for (size_t i = 0; i < 2; i++) fr_session_close(sessions[i]);
    fr_engine_close(engine);
    close_subject(&s);
}
END_TEST

/* ----------------------------------------------------------------------------------------------------------- misuse */

START_TEST(calls_that_can_not_be_are_refused) {
    subject s = open_subject("gemma4-e", 1);
    fr_engine *engine;
    fr_session *session, *more, *alone;
    int32_t ids[2] = {1, 2};
    ck_assert_int_eq(fr_engine_open(s.model, s.drafter, s.options, 0, &engine), FR_USAGE);
    ck_assert_int_eq(fr_engine_open(s.model, s.drafter, s.options, FR_SESSIONS_MAX + 1, &engine), FR_USAGE);
    require(fr_engine_open(s.model, s.drafter, s.options, 1, &engine));
    require(fr_engine_session(engine, s.options, &session));
    ck_assert_int_eq(fr_engine_session(engine, s.options, &more), FR_USAGE);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "room for 1 session"));
    ck_assert_int_eq(fr_session_fork(session, NULL, &more), FR_USAGE);
    fr_round rounds[2] = {{.session = session, .ids = ids, .limit = 2}, {.session = session, .ids = ids, .limit = 2}};
    ck_assert_int_eq(fr_engine_step(engine, rounds, 1), FR_USAGE);
    require(fr_session_put(session, ids, 2));
    ck_assert_uint_eq(fr_session_waiting(session), 2);
    ck_assert_int_eq(fr_engine_step(engine, rounds, 2), FR_USAGE);
    require(fr_session_open(s.model, s.drafter, s.options, &alone));
    rounds[1].session = alone;
    ck_assert_int_eq(fr_engine_step(engine, rounds, 2), FR_USAGE);
    require(fr_engine_step(engine, rounds, 1));
    ck_assert_uint_eq(fr_session_waiting(session), 0);
    fr_session_close(alone);
    fr_session_close(session);
    require(fr_engine_session(engine, s.options, &session));
    fr_session_close(session);
    fr_engine_close(engine);
    close_subject(&s);
}
END_TEST

static void add_calls(TCase *calls) {
    if (!fr_test_in_parts()) {
        fr_test_add_loop(calls, any_calls_say_what_they_say_alone, FIXTURES, 3);
        return;
    }
    fr_test_part part = fr_test_part_here();
    for (size_t i = part.first; i < FIXTURES; i += part.step)
        tcase_add_loop_test(calls, any_calls_say_what_they_say_alone, (int)i, (int)i + 1);
}

FR_SUITE("engine") {
    TCase *one = tcase_create("neighbours"), *calls = tcase_create("calls"), *misuse = tcase_create("misuse");
    TCase *shared = tcase_create("shared");
    tcase_set_timeout(shared, 60);
    tcase_set_timeout(one, 60);
    tcase_set_timeout(calls, fr_test_in_parts() ? 0 : 120);
    fr_test_add_pairs(one, neighbours_change_nothing, FIXTURES, CROWDS, 3, 2);
    fr_test_add_pairs(shared, what_was_run_is_not_run_again, FIXTURES, 4, 2, 4);
    fr_test_add_pairs(shared, what_is_being_run_is_waited_for, FIXTURES, 2, 2, 2);
    fr_test_add_pairs(shared, who_is_waited_for_may_go, FIXTURES, 2, 2, 2);
    tcase_add_loop_test(shared, pictures_are_told_apart, 0, 2);
    fr_test_add_loop(shared, evicted_and_run_again, FIXTURES, 1);
    fr_test_add_loop(shared, no_page_is_left, FIXTURES, 3);
    tcase_add_loop_test(shared, a_reset_session_holds_no_page, 0, 2);
    fr_test_add_loop(shared, closed_while_others_hold_its_pages, FIXTURES, 3);
    fr_test_add_loop(shared, a_restore_without_pages_changes_nothing, FIXTURES, 3);
    add_calls(calls);
    tcase_add_test(misuse, a_cancel_waits_for_a_forward);
    tcase_add_test(misuse, a_piece_bounds_a_round);
    tcase_add_test(misuse, calls_that_can_not_be_are_refused);
    suite_add_tcase(suite, one);
    suite_add_tcase(suite, shared);
    suite_add_tcase(suite, calls);
    suite_add_tcase(suite, misuse);
}
