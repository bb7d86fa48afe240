/* Shared prefixes: whatever timelines share, lose and find again, what they find is what was written for the same ids,
 * and all that a row looks back to. Each position's rows hold a digest of all ids up to there, so that a page of
 * another text, or of other words before the same ones, is noticed. Pools are so small that pages are given up all
 * the time. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/sizes.h"
#include "src/decoder/kv_prefixes.h"

enum { CONTEXT = 1024, BATCH = 64, WINDOW = 100, TIMELINES = 4, STEPS = 20000, WORDS = 2 };

static uint32_t state = 1;

static size_t below(size_t n) {
    state = state * 1664525u + 1013904223u;
    return (size_t)(((uint64_t)state * n) >> 32);
}

/* -------------------------------------------------------------------------------------------------------- timelines */

typedef struct timeline {
    fr_kv kv, drafter; /* drafter: of no use, but for some worlds */
    fr_kv_path path;
    int32_t ids[CONTEXT];
    size_t length;
} timeline;

typedef struct world {
    fr_arena arena;
    fr_kv kv, drafter;
    fr_kv_prefixes prefixes;
    timeline timelines[TIMELINES];
    bool drafts;
    size_t found, refused;
} world;

static const fr_kv_shape shapes[] = {{1, 2, 0}, {1, 2, WINDOW}}, drafter_shape = {1, 2, 0};
static const fr_kv_types types = {FR_F32, FR_F32};

static void layout(world *w, fr_arena *arena) {
    const fr_kv_sizes sizes = {.context = CONTEXT, .batch = BATCH, .timelines = 2, .checkpoints = 2};
    const fr_kv_sizes drafts = {.context = CONTEXT, .batch = CONTEXT, .timelines = 2, .pages = 48};
    fr_kv_layout(&w->kv, arena, shapes, 2, types, sizes);
    fr_kv_layout(&w->drafter, arena, &drafter_shape, 1, types, drafts);
    fr_kv_prefixes_layout(&w->prefixes, arena, &w->kv, w->drafts ? &w->drafter : NULL);
    for (timeline *t = w->timelines; t < w->timelines + TIMELINES; t++) {
        fr_kv_layout_fork(&t->kv, arena, &w->kv);
        fr_kv_layout_fork(&t->drafter, arena, &w->drafter);
        fr_kv_path_layout(&t->path, arena, &w->kv);
    }
}

static world *open_world(bool drafts) {
    world *w = calloc(1, sizeof *w);
    fr_arena measured = {0};
    w->drafts = drafts;
    layout(w, &measured);
    ck_assert_int_eq(fr_arena_open(&w->arena, measured.used, "test"), FR_OK);
    layout(w, &w->arena);
    ck_assert_int_eq(fr_arena_check(&w->arena, "test"), FR_OK);
    fr_kv_prefixes_serve(&w->prefixes);
    return w;
}

/* ----------------------------------------------------------------------------------------------------------- stamps */

static float stamp(const int32_t *ids, size_t position) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i <= position; i++) hash = (hash ^ (uint32_t)ids[i]) * 16777619u;
    return (float)(hash >> 8);
}

static float *row(const fr_kv *kv, size_t layer, size_t position) {
    return fr_kv_slot(&kv->layers[layer], &kv->layers[layer].k, 0, position);
}

/* A drafter's pair depends on the id behind it. */
static void write_rows(world *w, timeline *t, size_t count) {
    float *stamps = malloc((t->kv.length + count) * sizeof *stamps);
    for (size_t p = t->kv.length; p < t->kv.length + count; p++) {
        stamps[p] = stamp(t->ids, p);
        row(&t->kv, 0, p)[0] = row(&t->kv, 1, p)[0] = stamps[p];
    }
    fr_kv_commit(&t->kv, t->kv.length + count);
    size_t first = t->drafter.length, end = t->kv.length - 1;
    if (w->drafts && end > first) {
        ck_assert_int_eq(fr_kv_claim(&t->drafter, end - first), FR_OK);
        for (size_t p = first; p < end; p++) row(&t->drafter, 0, p)[0] = stamp(t->ids, p + 1);
        fr_kv_commit(&t->drafter, end);
    }
    free(stamps);
}

/* All that a row at the frontier looks back to, and every full layer's row. */
static void check_rows(const world *w, const timeline *t) {
    const fr_kv *kv = &t->kv;
    for (size_t p = 0; p < kv->length; p++) ck_assert(row(kv, 0, p)[0] == stamp(t->ids, p));
    ck_assert(fr_kv_holds_lookback(kv, kv->length));
    size_t from = kv->length > WINDOW ? kv->length - WINDOW : 0;
    for (size_t p = from; p < kv->length; p++) ck_assert(row(kv, 1, p)[0] == stamp(t->ids, p));
    for (size_t p = 0; w->drafts && p < t->drafter.length; p++)
        ck_assert(row(&t->drafter, 0, p)[0] == stamp(t->ids, p + 1));
}

/* ------------------------------------------------------------------------------------------------------------ steps */

static void cut(world *w, timeline *t, size_t length) {
    if (!fr_kv_holds_lookback(&t->kv, length)) length = 0;
    fr_kv_rewind(&t->kv, length);
    if (t->drafter.length > length) fr_kv_rewind(&t->drafter, length);
    fr_kv_path_cut(&w->prefixes, &t->path, length);
}

/* Another text: blocks of few different words, the same again behind others. */
static void begin(world *w, timeline *t) {
    cut(w, t, 0);
    t->length = 1 + below(CONTEXT - 80);
    for (size_t block = 0; block * FR_KV_PAGE < CONTEXT; block++) {
        int32_t word = (int32_t)below(WORDS);
        for (size_t i = 0; i < FR_KV_PAGE; i++) t->ids[block * FR_KV_PAGE + i] = word * 100 + (int32_t)i;
    }
    size_t other = below(t->length);
    if (below(2)) t->ids[other] = 7;
    size_t found = fr_kv_prefixes_find(&w->prefixes, t->ids, t->length, w->drafts);
    ck_assert_uint_lt(found, t->length);
    if (!found) return;
    fr_kv_prefixes_take(&w->prefixes, &t->path, &t->kv, w->drafts ? &t->drafter : NULL, t->ids, found);
    ck_assert_uint_eq(t->kv.length, found);
    w->found++;
}

static void go_on(world *w, timeline *t) {
    size_t count = fr_smaller(1 + below(BATCH), t->length - t->kv.length);
    if (count == 0) return;
    if (fr_kv_claim(&t->kv, count) != FR_OK) {
        w->refused++;
        cut(w, t, 0);
        t->length = 0;
        return;
    }
    write_rows(w, t, count);
    fr_kv_prefixes_add(&w->prefixes, &t->path, &t->kv, w->drafts ? &t->drafter : NULL, t->ids,
                       t->kv.length == t->length);
}

/* What is held is held by tables and nodes, as often as its count says. */
static void check_use(const world *w) {
    size_t used = 0;
    for (fr_kv_kind kind = 0; kind < FR_KV_KINDS; kind++) {
        const fr_kv_pages *pool = &w->kv.pages[kind];
        bool *held = calloc(pool->count, sizeof *held);
        for (const timeline *t = w->timelines; t < w->timelines + TIMELINES; t++)
            for (size_t block = 0; block < t->kv.blocks; block++) {
                const uint8_t *page = t->kv.table[kind][block];
                if (page) held[(size_t)(page - pool->data) / pool->bytes] = true;
            }
        for (size_t i = 0; i < pool->count; i++) {
            ck_assert(!held[i] || pool->holders[i] > 0);
            used += held[i] * pool->bytes;
        }
        free(held);
    }
    fr_kv_use use = fr_kv_prefixes_use(&w->prefixes, &w->kv);
    ck_assert_uint_eq(use.used, used);
}

START_TEST(any_order_finds_what_was_written) {
    world *w = open_world(_i % 2);
    state = (uint32_t)_i + 1;
    for (size_t step = 0; step < STEPS; step++) {
        timeline *t = &w->timelines[below(TIMELINES)];
        size_t what = below(40);
        if (t->length == 0 || what == 0) begin(w, t);
        else if (what == 1) cut(w, t, below(t->kv.length + 1));
        else go_on(w, t);
        if (step % 16 == 0 || what < 2) {
            check_rows(w, t);
            check_use(w);
        }
    }
    ck_assert_uint_gt(w->found, 100);
    ck_assert_uint_gt(w->refused, 10);
    for (size_t i = 0; i < TIMELINES; i++) cut(w, &w->timelines[i], 0);
    fr_kv_use use = fr_kv_prefixes_use(&w->prefixes, &w->kv);
    ck_assert_uint_eq(use.used, 0);
    ck_assert_uint_eq(use.shared, 0);
    ck_assert_uint_gt(use.cached, 0);
    fr_arena_close(&w->arena);
    free(w);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("kv_prefixes");
    TCase *cases = tcase_create("kv_prefixes");
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, any_order_finds_what_was_written, 0, 6);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
