/* Tests rows of several timelines (the texts of sessions) in one forward pass. Each row's logits must have the same
 * bits as when its timeline is run alone. They must not depend on the other rows of the batch, or on how the timeline
 * is divided into batches. The expected logits come from a session with that timeline; tests/behaviour/test_reference.c
 * compares such sessions with transformers. */
/* suite: threads */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "src/engine/model/model.h"
#include "tests/support/brief.h"
#include "tests/support/reference.h"
#include "tests/support/suite.h"

enum { CONTEXT = 256, ROWS = 40, TIMELINES = 4 };

static const struct {
    const char *fixture;
    size_t threads;
} subjects[] = {{"gemma4-e", 1},       {"gemma4-dense", 2}, {"gemma4-moe", 3},    {"gemma4-e-odd", 2},
                {"glm-ocr-odd", 2},    {"llama", 2},        {"llama-odd", 3},     {"gemma4-dense-odd", 1},
                {"gemma4-moe-odd", 2}, {"qwen35-odd", 3},   {"qwen35-moe-odd", 2}};

static uint32_t state;

static size_t below(size_t n) {
    state = state * 1664525u + 1013904223u;
    return (size_t)(((uint64_t)state * n) >> 32);
}

/* A model, the working memory of its forward passes, and several KV caches. */
typedef struct engine {
    fr_model *model;
    fr_options *options;
    fr_pool *pool;
    fr_arena arena;
    fr_kv caches[TIMELINES];
    fr_kv *timelines[TIMELINES];
    void *activations;
    fr_row rows[ROWS];
    float *hidden, *logits;
    int64_t *best;
} engine;

static void layout(engine *e, fr_arena *arena) {
    const fr_trunk *trunk = &e->model->trunk;
    size_t threads = e->model->plan.threads;
    const fr_kv_sizes sizes = {.context = CONTEXT,
                               .batch = ROWS,
                               .timelines = 1,
                               .recurrent = trunk->recurrent_shapes,
                               .recurrent_count = trunk->recurrent_count};
    for (size_t t = 0; t < TIMELINES; t++)
        fr_kv_layout(&e->caches[t], arena, trunk->kv_shapes, trunk->kv_count, fr_model_kv_types(e->model, e->options),
                     sizes);
    e->activations = fr_model_layout(e->model, arena, ROWS, threads);
    e->hidden = fr_arena_take(arena, ROWS * trunk->spec.hidden, sizeof(float));
    e->logits = fr_arena_take(arena, ROWS * trunk->spec.vocab, sizeof(float));
    e->best = fr_arena_take(arena, threads * FR_STEP_MAX, sizeof *e->best);
}

/* Opens the model. Also sets the seed of the random numbers, so that each case draws the same numbers whichever cases
 * ran before it. */
static engine *open_engine(const char *fixture, size_t threads) {
    char path[256];
    engine *e = calloc(1, sizeof *e);
    fr_arena measured = {0};
    state = 1;
    e->options = fr_options_new();
    snprintf(path, sizeof path, "%s%s", FR_TEST_MODELS, fixture);
    ck_assert_int_eq(fr_options_set(e->options, FR_OPT_THREADS, (int64_t)threads), FR_OK);
    ck_assert_int_eq(fr_options_set(e->options, FR_OPT_CONTEXT, CONTEXT), FR_OK);
    ck_assert_msg(fr_model_open(path, e->options, &e->model) == FR_OK, "%s", fr_last_error());
    layout(e, &measured);
    ck_assert_int_eq(fr_arena_open(&e->arena, measured.used, "test"), FR_OK);
    layout(e, &e->arena);
    ck_assert_int_eq(fr_arena_check(&e->arena, "test"), FR_OK);
    for (size_t t = 0; t < TIMELINES; t++) e->timelines[t] = &e->caches[t];
    ck_assert_int_eq(fr_pool_open(&e->model->plan, &e->pool), FR_OK);
    return e;
}

static void close_engine(engine *e) {
    fr_pool_close(e->pool);
    fr_arena_close(&e->arena);
    fr_model_close(e->model);
    fr_options_free(e->options);
    free(e);
}

/* Returns the logits of all ids of a timeline, computed in a session that runs alone. The caller frees them. */
static float *logits_alone(const engine *e, const int32_t *ids, size_t count) {
    fr_session *session;
    fr_rows rows = {0};
    rows.capacity = count * e->model->trunk.spec.vocab;
    rows.values = malloc(rows.capacity * sizeof *rows.values);
    ck_assert_msg(fr_session_open(e->model, NULL, e->options, &session) == FR_OK, "%s", fr_last_error());
    ck_assert_msg(fr_session_logits(session, ids, count, 0, fr_rows_collect, &rows) == FR_OK, "%s", fr_last_error());
    fr_session_close(session);
    return rows.values;
}

static void make_ids(const engine *e, int32_t *ids, size_t count) {
    for (size_t i = 0; i < count; i++) {
        ids[i] = (int32_t)below(e->model->trunk.spec.vocab);
        if (ids[i] == e->model->image_token) ids[i] = 0;
    }
}

static fr_row text_row(int32_t id, size_t timeline, size_t position, int32_t parent) {
    int32_t at = (int32_t)position;
    return (fr_row){
        .id = id, .timeline = (int32_t)timeline, .position = at, .parent = parent, .rope_position = {{at, at, at}}};
}

/* Runs the first `count` rows of e->rows and keeps the logits of all these rows, an array [count, vocab]. */
static void run(engine *e, size_t count) {
    size_t vocab = e->model->trunk.spec.vocab;
    fr_forward f = {.model = e->model,
                    .activations = e->activations,
                    .batch = {.rows = e->rows, .count = count, .timelines = e->timelines},
                    .hidden = e->hidden,
                    .logits = e->logits,
                    .best = e->best,
                    .best_stride = FR_STEP_MAX};
    fr_forward_run(e->pool, &f);
    for (; f.head_first < count; f.head_first += f.head_rows, f.logits += f.head_rows * vocab) {
        f.head_rows = fr_smaller(FR_STEP_MAX, count - f.head_first);
        fr_head_run(e->pool, &f);
    }
}

static void check_row(const engine *e, size_t row, const float *expected, const char *what) {
    size_t vocab = e->model->trunk.spec.vocab;
    ck_assert_msg(memcmp(e->logits + row * vocab, expected, vocab * sizeof *expected) == 0,
                  "%s: row %zu, at position %d, is not as alone", what, row, e->rows[row].position);
}

/* ------------------------------------------------------------------------------------- several timelines in a batch */

/* Prompts of several lengths are divided into random pieces. Each batch has pieces of several prompts, in random
 * order. */
START_TEST(neighbours_change_nothing) {
    static const size_t lengths[TIMELINES] = {230, 7, 64, 131};
    int32_t ids[TIMELINES][CONTEXT];
    float *alone[TIMELINES];
    engine *e = open_engine(subjects[_i].fixture, subjects[_i].threads);
    size_t vocab = e->model->trunk.spec.vocab, left = 0;
    for (size_t t = 0; t < TIMELINES; t++) {
        make_ids(e, ids[t], lengths[t]);
        alone[t] = logits_alone(e, ids[t], lengths[t]);
        left += lengths[t];
    }
    while (left > 0) {
        size_t count = 0, pieces[TIMELINES] = {0}, first = below(TIMELINES);
        for (size_t i = 0; i < TIMELINES; i++) {
            size_t t = (first + i) % TIMELINES;
            fr_kv *kv = &e->caches[t];
            pieces[t] = fr_smaller(below(12), fr_smaller(lengths[t] - kv->length, ROWS - count));
            ck_assert_int_eq(fr_kv_claim(kv, pieces[t]), FR_OK);
            for (size_t r = 0; r < pieces[t]; r++, count++)
                e->rows[count] = text_row(ids[t][kv->length + r], t, kv->length + r, r ? (int32_t)count - 1 : -1);
            fr_recurrent_certain(&kv->recurrent, kv->length + below(pieces[t] + 1));
        }
        if (count == 0) continue;
        run(e, count);
        for (size_t r = 0; r < count; r++)
            check_row(e, r, alone[e->rows[r].timeline] + (size_t)e->rows[r].position * vocab, subjects[_i].fixture);
        for (size_t t = 0; t < TIMELINES; t++) fr_kv_commit(&e->caches[t], e->caches[t].length + pieces[t]);
        left -= count;
    }
    for (size_t t = 0; t < TIMELINES; t++) free(alone[t]);
    close_engine(e);
}
END_TEST

FR_SUITE("batch") {
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 120);
    tcase_add_loop_test(all, neighbours_change_nothing, 0, sizeof subjects / sizeof *subjects);
    suite_add_tcase(suite, all);
}
