/* Tests 16 sessions of one engine with hundreds of random calls. The calls are prompts, rounds of some of the sessions,
 * truncations, and forks with options of their own. Timelines are saved, and restored later or in another session.
 * Sessions are closed and opened. The calls on a session, from opening to closing, are its life. Afterwards each life
 * is run again alone. All its ids and their log-probabilities must be equal to the last bit.
 *
 * The fixtures have dense, sliding and recurrent layers, latent attention and mixtures of experts. They run with and
 * without drafters. They also run with enough pages for all sessions, and with so few pages that calls are refused. A
 * life is stored as a list of events. The life of a fork begins with the ids that the fork had at first. FULL in the
 * environment makes the test longer. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sizes.h"
#include "forerun.h"
#include "tests/support/brief.h"
#include "tests/support/least_kv.h"
#include "tests/support/parts.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

enum { PLACES = 16, CONTEXT = 208, LONGEST = 140, BEST = 3, SAVED = 4, CALLS = 160, LIVES_MAX = PLACES + CALLS };
enum { TIGHT = 5 }; /* number of timelines for which there are enough pages */

static const char *const fixtures[] = {"gemma4-dense",    "gemma4-moe",    "qwen35-odd",     "deepseek-v3-odd",
                                       "deepseek-v3-own", "qwen3-moe-odd", "qwen35-moe-odd", "glm4-moe-own",
                                       "llama",           "gemma4-e-odd"};
enum { FIXTURES = sizeof fixtures / sizeof *fixtures };

static uint32_t state = 1;

static size_t below(size_t n) {
    state = state * 1664525u + 1013904223u;
    return (size_t)(((uint64_t)state * n) >> 32);
}

/* ------------------------------------------------------------------------------------------------------------ lives */

typedef struct token {
    int32_t id;
    float own;
    int32_t ids[BEST];
    float values[BEST];
} token;

/* An event in a session's life. PUT: the whole timeline becomes `ids`. CUT: the timeline is truncated to `count` ids.
 * SAID: the session generates `tokens`. */
typedef struct event {
    enum { PUT, CUT, SAID } what;
    size_t count;
    int32_t *ids;
    token *tokens;
} event;

typedef struct life {
    fr_options *options;
    event *events;
    size_t count;
} life;

static event *add_event(life *l, int what) {
    l->events = realloc(l->events, (l->count + 1) * sizeof *l->events);
    l->events[l->count] = (event){.what = what};
    return &l->events[l->count++];
}

static void add_put(life *l, const int32_t *ids, size_t count) {
    event *e = add_event(l, PUT);
    e->count = count;
    e->ids = malloc((count + 1) * sizeof *ids);
    if (count) memcpy(e->ids, ids, count * sizeof *ids);
}

/* Adds the ids of a step to the life. */
static void add_said(life *l, const fr_session *session, const int32_t *ids, size_t count) {
    if (count == 0) return;
    event *e = l->count && l->events[l->count - 1].what == SAID ? &l->events[l->count - 1] : add_event(l, SAID);
    e->tokens = realloc(e->tokens, (e->count + count) * sizeof *e->tokens);
    for (size_t i = 0; i < count; i++) {
        token *t = &e->tokens[e->count + i];
        const int32_t *best;
        const float *values;
        t->id = ids[i];
        ck_assert_uint_eq(fr_session_logprobs(session, i, &t->own, &best, &values), BEST);
        memcpy(t->ids, best, sizeof t->ids);
        memcpy(t->values, values, sizeof t->values);
    }
    e->count += count;
}

static void free_life(life *l) {
    for (size_t i = 0; i < l->count; i++) {
        free(l->events[i].ids);
        free(l->events[i].tokens);
    }
    free(l->events);
    fr_options_free(l->options);
}

/* ------------------------------------------------------------------------------------------------------------ world */

typedef struct saved {
    void *bytes;
    size_t size, count;
    int32_t ids[CONTEXT];
} saved;

typedef struct world {
    fr_model *model;
    fr_drafter *drafter; /* NULL: the fixture has none */
    fr_options *options;
    fr_engine *engine;
    fr_session *sessions[PLACES]; /* NULL: the session is closed */
    size_t whose[PLACES];         /* for each session, the index in `lives` of its life */
    life lives[LIVES_MAX];
    size_t life_count;
    saved saved[SAVED];
    int32_t texts[2][LONGEST]; /* two texts. Many prompts begin like one of them */
    size_t calls[7], refused;
} world;

static void set(fr_options *options, fr_option option, int64_t value) {
    require(fr_options_set(options, option, value));
}

static void open_world(world *w, const char *fixture, bool few_pages) {
    char path[256];
    *w = (world){.options = fr_options_new()};
    set(w->options, FR_OPT_THREADS, 2);
    set(w->options, FR_OPT_CONTEXT, CONTEXT);
    set(w->options, FR_OPT_CHUNK, 24);
    set(w->options, FR_OPT_IGNORE_EOS, 1);
    set(w->options, FR_OPT_LOGPROBS, BEST);
    snprintf(path, sizeof path, FR_TEST_MODELS "%s", fixture);
    require(fr_model_open(path, w->options, &w->model));
    snprintf(path, sizeof path, FR_TEST_MODELS "%s/assistant", fixture);
    bool own = fr_model_fact(w->model, FR_FACT_MTP_LAYERS) > 0;
    if (own || access(path, F_OK) == 0) require(fr_drafter_open(own ? NULL : path, w->model, w->options, &w->drafter));
    fr_options *options = fr_options_copy(w->options);
    if (few_pages) set(options, FR_OPT_KV_MEMORY, TIGHT * fr_test_least_kv(w->model, w->drafter, options, PLACES));
    require(fr_engine_open(w->model, w->drafter, options, PLACES, &w->engine));
    fr_options_free(options);
}

static void close_world(world *w) {
    for (size_t i = 0; i < PLACES; i++) fr_session_close(w->sessions[i]);
    for (size_t i = 0; i < w->life_count; i++) free_life(&w->lives[i]);
    for (size_t i = 0; i < SAVED; i++) fr_free(w->saved[i].bytes);
    fr_engine_close(w->engine);
    fr_drafter_close(w->drafter);
    fr_model_close(w->model);
    fr_options_free(w->options);
}

static void make_ids(const world *w, int32_t *ids, size_t count) {
    for (size_t i = 0; i < count; i++) {
        ids[i] = (int32_t)below((size_t)fr_model_fact(w->model, FR_FACT_VOCAB));
        if (ids[i] == fr_model_fact(w->model, FR_FACT_IMAGE_TOKEN)) ids[i] = 1;
    }
}

/* ----------------------------------------------------------------------------------------------------------- calls */

/* Options of a random session. It is greedy, or samples in one of three ways. */
static fr_options *some_options(const world *w) {
    fr_options *options = fr_options_copy(w->options);
    size_t way = below(4);
    set(options, FR_OPT_DRAFT_MAX, below(3) ? (int64_t)below(7) : FR_DRAFT_AUTO);
    if (way == 0) return options;
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, 0.9));
    set(options, FR_OPT_SEED, (int64_t)below(4));
    if (way == 2) {
        set(options, FR_OPT_TOP_K, 40);
        require(fr_options_set_number(options, FR_OPT_REPEAT_PENALTY, 1.2));
    } else if (way == 3) {
        require(fr_options_set_number(options, FR_OPT_DRY_MULTIPLIER, 0.8));
        require(fr_options_set_number(options, FR_OPT_XTC_PROBABILITY, 0.5));
        require(fr_options_set_number(options, FR_OPT_DYNATEMP_RANGE, 0.3));
    }
    return options;
}

static life *life_at(world *w, size_t place) {
    return &w->lives[w->whose[place]];
}

static life *begin_life(world *w, size_t place, fr_options *options) {
    ck_assert_uint_lt(w->life_count, LIVES_MAX);
    w->whose[place] = w->life_count++;
    *life_at(w, place) = (life){.options = options};
    return life_at(w, place);
}

static void open_place(world *w, size_t place) {
    fr_options *options = some_options(w);
    require(fr_engine_session(w->engine, options, &w->sessions[place]));
    begin_life(w, place, options);
}

static void close_place(world *w, size_t place) {
    fr_session_close(w->sessions[place]);
    w->sessions[place] = NULL;
}

/* Gives a session a new prompt. The prompt begins like one of the two texts, or like the session's timeline, or with
 * random ids. */
static void put(world *w, size_t place) {
    int32_t ids[LONGEST];
    const int32_t *own;
    size_t count = 1 + below(LONGEST), had = fr_session_ids(w->sessions[place], &own), way = below(3);
    make_ids(w, ids, count);
    if (way == 0) memcpy(ids, w->texts[below(2)], below(count + 1) * sizeof *ids);
    if (way == 1) memcpy(ids, own, below(fr_smaller(count, had) + 1) * sizeof *ids);
    require(fr_session_put(w->sessions[place], ids, count));
    add_put(life_at(w, place), ids, count);
}

static void cut(world *w, size_t place) {
    size_t length = below(fr_session_length(w->sessions[place]) + 1);
    require(fr_session_truncate(w->sessions[place], length));
    add_event(life_at(w, place), CUT)->count = length;
}

/* Returns true if the call succeeded, and false if there were too few free pages for it. If there were too few pages,
 * the call must have changed nothing. */
static bool found_pages(world *w, fr_status status) {
    if (status == FR_MEMORY)
        w->refused++;
    else
        require(status);
    return status == FR_OK;
}

static void fork_place(world *w, size_t from, size_t to) {
    const int32_t *ids;
    size_t count = fr_session_ids(w->sessions[from], &ids);
    fr_options *options = below(3) ? some_options(w) : fr_options_copy(life_at(w, from)->options);
    close_place(w, to);
    if (found_pages(w, fr_session_fork(w->sessions[from], options, &w->sessions[to])))
        add_put(begin_life(w, to, options), ids, count);
    else
        fr_options_free(options);
}

static void save_place(world *w, size_t place) {
    saved *s = &w->saved[below(SAVED)];
    const int32_t *ids;
    fr_free(s->bytes);
    require(fr_session_save_bytes(w->sessions[place], &s->bytes, &s->size));
    s->count = fr_session_ids(w->sessions[place], &ids);
    memcpy(s->ids, ids, s->count * sizeof *ids);
}

static void restore_place(world *w, size_t place) {
    const saved *s = &w->saved[below(SAVED)];
    if (!s->bytes || !found_pages(w, fr_session_restore_bytes(w->sessions[place], s->bytes, s->size))) return;
    add_put(life_at(w, place), s->ids, s->count);
}

/* Runs a round of some of the sessions that can continue. Each session may give at most a random number of ids. */
static void round_of_some(world *w) {
    static int32_t ids[PLACES][FR_STEP_MAX];
    fr_round rounds[PLACES];
    size_t places[PLACES], count = 0, turn = below(PLACES);
    for (size_t i = 0; i < PLACES; i++) {
        size_t place = (i + turn) % PLACES;
        if (!w->sessions[place] || fr_session_length(w->sessions[place]) == 0 || below(3) == 0) continue;
        rounds[count] = (fr_round){.session = w->sessions[place], .ids = ids[place], .limit = 1 + below(FR_STEP_MAX)};
        places[count++] = place;
    }
    if (count == 0) return;
    require(fr_engine_step(w->engine, rounds, count));
    for (size_t i = 0; i < count; i++) {
        ck_assert_msg(rounds[i].status == FR_OK || rounds[i].status == FR_MEMORY, "%s", rounds[i].error);
        w->refused += rounds[i].status == FR_MEMORY;
        add_said(life_at(w, places[i]), rounds[i].session, rounds[i].ids, rounds[i].count);
    }
}

static void call_something(world *w) {
    size_t what = below(10), place = below(PLACES), to = (place + 1 + below(PLACES - 1)) % PLACES;
    if (!w->sessions[place]) open_place(w, place);
    if (what > 6) what = 6;
    if (fr_session_length(w->sessions[place]) == 0 && what >= 2 && what <= 4) what = 0;
    w->calls[what]++;
    switch (what) {
    case 0: put(w, place); break;
    case 1: close_place(w, place); break;
    case 2: cut(w, place); break;
    case 3: fork_place(w, place, to); break;
    case 4: save_place(w, place); break;
    case 5: restore_place(w, place); break;
    default:
        for (size_t rounds = 1 + below(6); rounds > 0; rounds--) round_of_some(w);
    }
}

/* -------------------------------------------------------------------------------------------------- lives run alone */

static void say_alone(fr_session *session, const event *e, life *alone) {
    int32_t ids[FR_STEP_MAX];
    for (size_t made = 0, count, accepted; made < e->count; made += count) {
        require(fr_session_step(session, ids, fr_smaller(FR_STEP_MAX, e->count - made), &count, &accepted));
        ck_assert_uint_gt(count, 0);
        add_said(alone, session, ids, count);
    }
}

/* Repeats the life in an engine of its own, with a different number of threads and a different size of chunks. Returns
 * how many tokens were compared. */
static size_t repeat_life(const world *w, const life *l, size_t number) {
    fr_engine *engine;
    fr_session *session;
    fr_options *options = fr_options_copy(l->options);
    size_t said = 0;
    set(options, FR_OPT_THREADS, 1);
    set(options, FR_OPT_CHUNK, 64);
    require(fr_engine_open(w->model, w->drafter, options, 1, &engine));
    require(fr_engine_session(engine, options, &session));
    for (size_t i = 0; i < l->count; i++) {
        const event *e = &l->events[i];
        life alone = {.count = 0};
        if (e->what == PUT) require(fr_session_put(session, e->ids, e->count));
        if (e->what == CUT) require(fr_session_truncate(session, e->count));
        if (e->what != SAID) continue;
        say_alone(session, e, &alone);
        for (size_t t = 0; t < e->count; t++)
            ck_assert_msg(memcmp(&e->tokens[t], &alone.events[0].tokens[t], sizeof(token)) == 0,
                          "life %zu, event %zu, token %zu: id %d of %.9g, alone %d of %.9g", number, i, t,
                          e->tokens[t].id, (double)e->tokens[t].own, alone.events[0].tokens[t].id,
                          (double)alone.events[0].tokens[t].own);
        said += e->count;
        free_life(&alone);
    }
    fr_session_close(session);
    fr_engine_close(engine);
    fr_options_free(options);
    return said;
}

/* ------------------------------------------------------------------------------------------------------------ tests */

static size_t sequences(void) {
    return fr_test_full() ? 12 : 1;
}

START_TEST(each_says_what_it_says_alone) {
    static world w;
    size_t said = 0, calls[7] = {0}, refused = 0, fixture = (size_t)_i % FIXTURES;
    bool few_pages = (fixture + (size_t)_i / FIXTURES) % 2 != 0;
    for (size_t n = 0; n < sequences(); n++) {
        state = (uint32_t)(_i + 1000 * (int)n + 1);
        open_world(&w, fixtures[fixture], few_pages);
        for (size_t i = 0; i < 2; i++) make_ids(&w, w.texts[i], LONGEST);
        for (size_t call = 0; call < CALLS; call++) call_something(&w);
        for (size_t i = 0; i < w.life_count; i++) said += repeat_life(&w, &w.lives[i], i);
        for (size_t what = 0; what < 7; what++) calls[what] += w.calls[what];
        refused += w.refused;
        close_world(&w);
    }
    for (size_t what = 0; what < 7; what++) ck_assert_uint_gt(calls[what], 0);
    ck_assert_uint_gt(said, 500 * sequences());
    ck_assert(few_pages ? refused > 0 : refused == 0);
}
END_TEST

FR_SUITE("crowd") {
    TCase *lives = tcase_create("lives");
    tcase_set_timeout(lives, fr_test_full() ? 0 : 60);
    fr_test_add_loop(lives, each_says_what_it_says_alone, (fr_test_full() ? 2 : 1) * FIXTURES, 2);
    suite_add_tcase(suite, lives);
}
