/* Tests sessions that propose drafts together, in one batch. Each must get the drafts and logits that it gets when it
 * proposes alone. This must hold whichever sessions propose with it, and whatever happens to the other sessions. The
 * expected values come from a session alone that went through the same calls; other suites compare such sessions with
 * transformers. Also tests how often the draft methods are called. */
/* suite: threads alone */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sizes.h"
#include "forerun_lab.h"
#include "src/engine/session/state.h"
#include "tests/support/brief.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

enum { SESSIONS = 8, CONTEXT = 256, CHUNK = 8, ROUNDS = 9, LONGEST = 60, MOST = 15 };

/* A target and its drafter. If `drafter` is NULL, the target's own MTP layer drafts. `type` is a type to which the
 * drafter is quantized first; NULL means that it is not quantized. */
typedef struct pair {
    const char *target, *drafter, *type;
    int64_t threads;
    bool mapped;
} pair;

#define E      FR_TEST_MODELS "gemma4-e"
#define DENSE  FR_TEST_MODELS "gemma4-dense"
#define MOE    FR_TEST_MODELS "gemma4-moe-odd"
#define GLM    FR_TEST_MODELS "../glm-ocr"
#define LLAMA  FR_TEST_MODELS "llama"
#define DFLASH "tests/data/dflash/"

static const pair pairs[] = {{E, E "/assistant", NULL, 1, true},
                             {E "-odd", E "-odd/assistant", NULL, 3, true},
                             {E, E "/assistant", "q4_0", 2, false},
                             {E, E "/assistant", "q8_0", 2, true},
                             {DENSE, DENSE "/assistant", NULL, 2, true},
                             {MOE, MOE "/assistant", NULL, 2, true},
                             {FR_TEST_MODELS "glm-ocr-odd", NULL, NULL, 3, true},
                             {GLM, NULL, NULL, 1, true},
                             {GLM "/model-q4_0.gguf", NULL, NULL, 2, false},
                             {LLAMA, "tests/data/llama/eagle3", NULL, 2, true},
                             {LLAMA, "tests/data/llama/eagle3-odd", NULL, 1, true},
                             {LLAMA, "tests/data/llama/eagle3-qwen", NULL, 1, true},
                             {LLAMA, "tests/data/llama/eagle3-layers", NULL, 2, true},
                             {LLAMA, "tests/data/llama/eagle3-layers-qwen", NULL, 3, true},
                             {LLAMA, "tests/data/llama/eagle3.gguf", "q8_0", 3, true},
                             {LLAMA, "tests/data/llama/eagle", NULL, 3, true},
                             {DFLASH "llama-sliding", DFLASH "llama-sliding/drafter", NULL, 2, true},
                             {DFLASH "spec-llama", DFLASH "spec-llama/drafter", NULL, 1, false},
                             {DFLASH "v2-qwen3.5", DFLASH "v2-qwen3.5/drafter", NULL, 3, true},
                             {DFLASH "v2-qwen3", DFLASH "v2-qwen3/drafter.gguf", "q8_0", 2, true},
                             {DFLASH "dspark-qwen3", DFLASH "dspark-qwen3/drafter", NULL, 2, true},
                             {DFLASH "dspark-dense-qwen3", DFLASH "dspark-dense-qwen3/drafter.gguf", NULL, 3, true}};
enum { PAIRS = sizeof pairs / sizeof *pairs };

/* Each crowd is a group of sessions with certain draft methods: session i has the methods words[i % 3], where "mtp"
 * means the drafter's own method. If `scripted` is true, scripted drafts replace those of the methods, so that a known
 * number of drafts is accepted. */
static const struct {
    const char *words[3];
    bool scripted;
} crowds[] = {{{"mtp", "mtp", "mtp"}, false},
              {{"ngram,mtp", "ngram,mtp", "ngram,mtp"}, false},
              {{"mtp", "ngram,mtp", "ngram"}, false},
              {{"mtp", "mtp", "mtp,ngram"}, true}};
enum { CROWDS = sizeof crowds / sizeof *crowds };

static uint32_t state = 1;

static size_t below(size_t n) {
    state = state * 1664525u + 1013904223u;
    return (size_t)(((uint64_t)state * n) >> 32);
}

/* ------------------------------------------------------------------------------------------------------------ world */

/* A session in an engine with other sessions, and the session that it is compared with, which runs alone. */
typedef struct twin {
    fr_session *in, *alone;
} twin;

typedef struct world {
    fr_model *model;
    fr_drafter *drafter;
    fr_options *options;
    fr_engine *engine;
    twin twins[SESSIONS];
    size_t drafted, stood; /* the number of drafts so far, and how many of them were accepted */
} world;

static fr_drafter *open_drafter(const pair *p, const fr_model *model, const fr_options *options) {
    char path[64] = "/tmp/test_propose_XXXXXX";
    fr_drafter *drafter;
    if (!p->type) {
        require(fr_drafter_open(p->drafter, model, options, &drafter));
        return drafter;
    }
    FILE *out = fdopen(mkstemp(path), "wb");
    ck_assert_ptr_nonnull(out);
    require(fr_lab_quantize(p->drafter, &(fr_lab_quantization){.type = p->type, .pure = true}, NULL, out));
    ck_assert_int_eq(fclose(out), 0);
    require(fr_drafter_open(path, model, options, &drafter));
    unlink(path);
    return drafter;
}

static void set(fr_options *options, fr_option option, int64_t value) {
    require(fr_options_set(options, option, value));
}

static world open_world(const pair *p) {
    world w = {.options = fr_options_new()};
    set(w.options, FR_OPT_THREADS, p->threads);
    set(w.options, FR_OPT_CONTEXT, CONTEXT);
    set(w.options, FR_OPT_CHUNK, CHUNK);
    set(w.options, FR_OPT_MMAP, p->mapped);
    set(w.options, FR_OPT_IGNORE_EOS, 1);
    set(w.options, FR_OPT_DRAFT_MAX, MOST);
    require(fr_model_open(p->target, w.options, &w.model));
    w.drafter = open_drafter(p, w.model, w.options);
    require(fr_engine_open(w.model, w.drafter, w.options, SESSIONS, &w.engine));
    return w;
}

static void close_world(world *w) {
    for (size_t i = 0; i < SESSIONS; i++) {
        fr_session_close(w->twins[i].in);
        fr_session_close(w->twins[i].alone);
    }
    fr_engine_close(w->engine);
    fr_drafter_close(w->drafter);
    fr_model_close(w->model);
    fr_options_free(w->options);
}

/* Makes random ids. Every second text repeats the same nine ids, so that the draft method ngram finds drafts in it. */
static void make_text(const world *w, size_t i, int32_t *ids, size_t count) {
    size_t circle = i % 2 ? 9 : count;
    for (size_t at = 0; at < count; at++) {
        ids[at] = at < circle ? (int32_t)below(w->model->trunk.spec.vocab) : ids[at - circle];
        if (ids[at] == w->model->image_token) ids[at] = 0;
    }
}

/* Returns true if the draft at this depth of a round is to be right. In the first round no draft is right, so each
 * session has one new row. In the second round all drafts are right, so all sessions together have more new rows than
 * fit in a batch. */
static bool right(void *context, size_t round, size_t depth) {
    static const size_t stand[] = {0, MOST, 7, 3, 14};
    (void)context;
    return depth < stand[round % 5];
}

/* Gives both sessions of a twin scripted drafts, which are the ids that the target generates without drafts. */
static void script(const world *w, twin *t, const int32_t *text, size_t count) {
    int32_t ids[CONTEXT];
    fr_session *plain;
    fr_session *both[2] = {t->in, t->alone};
    memcpy(ids, text, count * sizeof *ids);
    require(fr_options_set_text(w->options, FR_OPT_SPEC_TYPE, "none"));
    require(fr_session_open(w->model, NULL, w->options, &plain));
    require(fr_session_prompt(plain, ids, count));
    for (size_t made = 0, got, accepted; made < CONTEXT - LONGEST; made += got)
        require(fr_session_step(plain, ids + count + made, fr_smaller(FR_STEP_MAX, CONTEXT - LONGEST - made), &got,
                                &accepted));
    fr_session_close(plain);
    for (size_t i = 0; i < 2; i++) require(fr_lab_session_script(both[i], ids, count + CONTEXT - LONGEST, right, NULL));
}

/* Sets the draft methods for the sessions that are opened next. The word "mtp" in `words` means the drafter's own
 * method. */
static void set_words(const world *w, const char *words) {
    char own[64];
    const char *at = strstr(words, "mtp");
    if (at)
        snprintf(own, sizeof own, "%.*s%s%s", (int)(at - words), words, w->drafter->method->name, at + strlen("mtp"));
    require(fr_options_set_text(w->options, FR_OPT_SPEC_TYPE, at ? own : words));
}

/* Opens the pairs of sessions. If scripted drafts decide how many are accepted, no pair samples. Otherwise every second
 * pair samples. */
static void open_twins(world *w, size_t crowd) {
    int32_t text[LONGEST];
    for (size_t i = 0; i < SESSIONS; i++) {
        twin *t = &w->twins[i];
        size_t count = 12 + below(LONGEST - 12);
        make_text(w, i, text, count);
        set_words(w, crowds[crowd].words[i % 3]);
        bool draws = i % 2 && !crowds[crowd].scripted;
        require(fr_options_set_number(w->options, FR_OPT_TEMPERATURE, draws ? 0.7 : 0.0));
        set(w->options, FR_OPT_SEED, (int64_t)i);
        require(fr_engine_session(w->engine, w->options, &t->in));
        require(fr_session_open(w->model, w->drafter, w->options, &t->alone));
        if (crowds[crowd].scripted) script(w, t, text, count);
        require(fr_session_prompt(t->in, text, count));
        require(fr_session_prompt(t->alone, text, count));
    }
}

/* ------------------------------------------------------------------------------------------------ drafts and logits */

static void step(world *w, twin *t, size_t limit) {
    int32_t here[FR_STEP_MAX], there[FR_STEP_MAX];
    size_t got, count, accepted, stood;
    require(fr_session_step(t->in, here, limit, &got, &accepted));
    require(fr_session_step(t->alone, there, limit, &count, &stood));
    ck_assert_uint_eq(got, count);
    ck_assert_uint_eq(accepted, stood);
    ck_assert_mem_eq(here, there, got * sizeof *here);
    w->stood += accepted;
}

typedef struct question {
    fr_draft_view view;
    int32_t ids[MOST];
    float *logits; /* [MOST, vocab] */
} question;

/* Prepares a request for `count` drafts of one session. If `hidden` is not NULL, the method sees these hidden rows
 * instead of the target's. */
static fr_proposal ask(fr_session *s, question *q, size_t count, bool scores, const float *hidden) {
    size_t bytes = MOST * s->model->trunk.spec.vocab * sizeof *q->logits;
    *q = (question){.view = fr_session_view(s), .logits = malloc(bytes)};
    memset(q->logits, 0, bytes);
    if (hidden) q->view.hidden = hidden + s->drafting.hidden_row * s->engine->hidden_width;
    if (hidden) q->view.aux_hidden = hidden + s->drafting.hidden_row * s->engine->aux_width;
    fr_sampler_forget(&s->sampling.sampler);
    return (fr_proposal){.draft = s->drafting.draft,
                         .view = &q->view,
                         .count = count,
                         .ids = q->ids,
                         .logits = scores ? q->logits : NULL,
                         .proposed = 99};
}

/* Returns the number of rows in the draft method's own cache. */
static size_t frontier(const fr_proposal *p) {
    fr_draft *reader = fr_draft_reader(p->draft, 0);
    const fr_kv *kv = reader && reader->method->kv ? reader->method->kv(reader) : NULL;
    return kv ? kv->length : 0;
}

static void compare(world *w, const fr_proposal *together, const fr_proposal *alone, const question *a,
                    const question *b, size_t i) {
    size_t bytes = MOST * w->model->trunk.spec.vocab * sizeof *a->logits;
    ck_assert_int_eq(together->failure.status, alone->failure.status);
    if (alone->failure.status != FR_OK) ck_assert_str_eq(together->failure.line, alone->failure.line);
    ck_assert_msg(together->proposed == alone->proposed, "session %zu has %zu drafts, alone %zu", i, together->proposed,
                  alone->proposed);
    ck_assert_msg(memcmp(a->ids, b->ids, alone->proposed * sizeof *a->ids) == 0, "session %zu: other drafts than alone",
                  i);
    ck_assert_msg(memcmp(a->logits, b->logits, bytes) == 0, "session %zu: other logits than alone", i);
    ck_assert_uint_eq(frontier(together), frontier(alone));
    w->drafted += alone->proposed;
}

/* Lets n sessions propose drafts together, in an arbitrary order. Session number `damaged` gets hidden rows of NaN, so
 * it must fail, and all other sessions must succeed. If `damaged` is n or more, no session is damaged. */
static void propose(world *w, size_t n, bool scores, size_t damaged) {
    question together[SESSIONS], alone[SESSIONS];
    fr_proposal asked[SESSIONS];
    size_t who[SESSIONS], first = below(SESSIONS),
                          values = FR_STEP_MAX * fr_larger(w->engine->hidden_width, w->engine->aux_width);
    float *rows = malloc(values * sizeof *rows);
    for (size_t i = 0; i < values; i++) rows[i] = NAN;
    for (size_t i = 0; i < n; i++) {
        who[i] = (first + i * 5) % SESSIONS;
        asked[i] = ask(w->twins[who[i]].in, &together[i], 1 + below(MOST), scores, who[i] == damaged ? rows : NULL);
    }
    fr_draft_propose(asked, n);
    for (size_t i = 0; i < n; i++) {
        fr_proposal p = ask(w->twins[who[i]].alone, &alone[i], asked[i].count, scores, who[i] == damaged ? rows : NULL);
        ck_assert_int_eq(fr_draft_propose_one(&p), who[i] == damaged ? FR_NUMERIC : FR_OK);
        compare(w, &asked[i], &p, &together[i], &alone[i], who[i]);
        free(together[i].logits);
        free(alone[i].logits);
    }
    free(rows);
}

START_TEST(together_as_alone) {
    size_t crowd = (size_t)_i % CROWDS;
    state = (uint32_t)_i + 1;
    world w = open_world(&pairs[(size_t)_i / CROWDS]);
    open_twins(&w, crowd);
    for (size_t i = 0; i < SESSIONS; i++) step(&w, &w.twins[i], 1);
    for (size_t round = 0; round < ROUNDS; round++) {
        propose(&w, round < 2 || round % 2 ? SESSIONS : 1 + below(SESSIONS), round % 3 > 0, SESSIONS);
        for (size_t i = 0; i < SESSIONS; i++)
            step(&w, &w.twins[i], round % 4 == 2 ? below(FR_STEP_MAX) + 1 : FR_STEP_MAX);
    }
    propose(&w, SESSIONS, true, 0);
    ck_assert_uint_gt(w.drafted, 0);
    if (crowds[crowd].scripted) ck_assert_uint_gt(w.stood, 100);
    close_world(&w);
}
END_TEST

/* --------------------------------------------------------------------------------------------- the order of methods */

/* A draft method that records its calls in `notes`. A call of `propose` appends `name`. A call of `follow` appends a +
 * and `name`. If `drafts` is true, the method drafts the id 7. If `fails` is true, it fails. */
typedef struct noting {
    fr_draft base;
    char name;
    bool drafts, fails;
} noting;

static char notes[128];

static void note(char character) {
    size_t length = strlen(notes);
    ck_assert_uint_lt(length + 1, sizeof notes);
    notes[length] = character;
    notes[length + 1] = 0;
}

static void noting_propose(fr_proposal *first) {
    for (fr_proposal *p = first; p; p = p->next) {
        const noting *n = (const noting *)p->draft;
        note(n->name);
        if (n->fails) p->failure = fr_failure_keep(fr_fail(FR_NUMERIC, "%c fails", n->name));
        if (n->drafts) p->ids[p->proposed++] = 7;
    }
    note(' ');
}

static fr_status noting_follow(fr_draft *draft, const fr_draft_view *view) {
    (void)view;
    note('+');
    note(((const noting *)draft)->name);
    return FR_OK;
}

static fr_draft *open_noting(const fr_draft_method *method, fr_arena *arena) {
    noting *place = fr_arena_take(arena, 1, sizeof *place);
    if (place) *place = (noting){.base = {.method = method, .follows = true}};
    return place ? &place->base : NULL;
}

static fr_draft *open_a(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes);
static fr_draft *open_b(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes);
static const fr_draft_method method_a = {
    .name = "a", .open = open_a, .propose = noting_propose, .follow = noting_follow};
static const fr_draft_method method_b = {
    .name = "b", .open = open_b, .propose = noting_propose, .follow = noting_follow};

/* The drafts (open instances of a method) that open_a and open_b have made last. */
static noting *opened_a, *opened_b;

static fr_draft *open_a(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes) {
    (void)drafter;
    (void)sizes;
    opened_a = (noting *)open_noting(&method_a, arena);
    return (fr_draft *)opened_a;
}

static fr_draft *open_b(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes) {
    (void)drafter;
    (void)sizes;
    opened_b = (noting *)open_noting(&method_b, arena);
    return (fr_draft *)opened_b;
}

START_TEST(a_method_is_asked_once) {
    noting states[] = {{{.method = &method_a}, 'p', true, false},
                       {{.method = &method_b}, 'q', true, false},
                       {{.method = &method_a}, 'r', false, true},
                       {{.method = &method_b}, 's', false, false},
                       {{.method = &method_a}, 't', true, false}};
    int32_t ids[5];
    fr_proposal asked[5];
    for (size_t i = 0; i < 5; i++)
        asked[i] = (fr_proposal){.draft = &states[i].base, .count = 1, .ids = &ids[i], .proposed = 9};
    notes[0] = 0;
    fr_draft_propose(asked, 5);
    ck_assert_str_eq(notes, "prt qs ");
    for (size_t i = 0; i < 5; i++) ck_assert_uint_eq(asked[i].proposed, states[i].drafts);
    for (size_t i = 0; i < 5; i++) ck_assert_int_eq(asked[i].failure.status, states[i].fails ? FR_NUMERIC : FR_OK);
    ck_assert_str_eq(asked[2].failure.line, "r fails");
    notes[0] = 0;
    fr_draft_propose(asked, 0);
    ck_assert_str_eq(notes, "");
}
END_TEST

/* Each of four sessions has a list of two draft methods. Three lists begin with method a, and one begins with method b.
 * In some lists the first method drafts nothing. Then the second method is called, together with the methods of the
 * other lists. If the first method fails, the second is not called. */
START_TEST(silent_links_go_on_together) {
    static const fr_draft_list ab = {.methods = {&method_a, &method_b}, .count = 2};
    static const fr_draft_list ba = {.methods = {&method_b, &method_a}, .count = 2};
    void *const none[FR_DRAFTERS_MAX] = {NULL};
    const fr_draft_view view = {0};
    static const fr_draft_list *const lists[] = {&ab, &ab, &ba, &ab};
    fr_arena arena = {.base = NULL};
    fr_proposal asked[4];
    int32_t ids[4];
    for (size_t i = 0; i < 4; i++)
        ck_assert_ptr_null(fr_draft_list_open(lists[i], NULL, &arena, &(fr_draft_sizes){0}, none));
    require(fr_arena_open(&arena, arena.used, "lists"));
    for (size_t i = 0; i < 4; i++) {
        fr_draft *draft = fr_draft_list_open(lists[i], NULL, &arena, &(fr_draft_sizes){0}, none);
        opened_a->name = (char)('a' + i);
        opened_b->name = (char)('A' + i);
        opened_a->drafts = i == 1;
        opened_a->fails = i == 3;
        opened_b->drafts = i == 0;
        asked[i] = (fr_proposal){.draft = draft, .view = &view, .count = 1, .ids = &ids[i]};
    }
    notes[0] = 0;
    fr_draft_propose(asked, 4);
    /* A method that is called appends its letter: a small letter for method_a, a capital for method_b, in the order of
     * the lists. The first methods of the same kind are called together: a, b and d, then C. The first methods of lists
     * 1 and 3 drafted nothing, so the second methods, A and c, are called. The first method of list 4 failed, so the
     * second is not called. At the end B only follows the rows, because b has already drafted. */
    ck_assert_str_eq(notes, "abd C A c +B");
    ck_assert(asked[0].proposed == 1 && asked[1].proposed == 1 && asked[2].proposed == 0 && asked[3].proposed == 0);
    ck_assert_int_eq(asked[3].failure.status, FR_NUMERIC);
    ck_assert_str_eq(asked[3].failure.line, "d fails");
    for (size_t i = 0; i < 3; i++) ck_assert_int_eq(asked[i].failure.status, FR_OK);
    fr_arena_close(&arena);
}
END_TEST

FR_SUITE("propose") {
    TCase *cases = tcase_create("propose");
    tcase_set_timeout(cases, 120);
    fr_test_add_pairs(cases, together_as_alone, PAIRS, CROWDS, 2, 3);
    tcase_add_test(cases, a_method_is_asked_once);
    tcase_add_test(cases, silent_links_go_on_together);
    suite_add_tcase(suite, cases);
}
