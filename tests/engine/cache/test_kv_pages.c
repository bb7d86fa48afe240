/* Tests the pages of keys and values, their table and their checkpoints. After any sequence of calls three things must
 * hold. First, every position of a timeline has the values that were last written to it. Second, the number of a page's
 * holders is the number of timelines that point to it. Third, no page is lost. The test keeps its own list of the
 * values that were written to each position. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "src/engine/session/kv_checkpoints.h"
#include "tests/support/suite.h"

enum { CONTEXT = 1500, BATCH = 20, WINDOW = 70, CHECKPOINTS = 3 };

/* The shapes of three layers, in three cases. In the first case a single machine has all heads of every layer. In the
 * second case a rank has some heads, but none of the first layer's. In the third case a rank has no heads. */
enum { LAYERS = 3, KEPT = 3 };
static const fr_kv_shape all_shapes[KEPT][LAYERS] = {
    {{1, 8, 0, 0, 0, 0}, {2, 4, WINDOW, 0, 0, 0}, {3, 16, WINDOW, 0, 0, 0}},
    {{0, 8, 0, 0, 1, 0}, {1, 4, WINDOW, 0, 1, 0}, {1, 16, WINDOW, 0, 0, 2}},
    {{0, 8, 0, 0, 0, 1}, {0, 4, WINDOW, 0, 1, 1}, {0, 16, WINDOW, 0, 3, 0}}};
static const fr_kv_shape *shapes = all_shapes[0];

typedef struct timeline {
    fr_arena arena;
    fr_kv kv;
    fr_kv_checkpoints checkpoints;
    uint32_t written[CONTEXT]; /* for each position, the number (stamp) of the last forward that wrote it */
    uint32_t stamp;
    size_t known; /* number of ids that were run before. If they are run again, the same values are written */
} timeline;

static void layout(timeline *t, fr_arena *arena) {
    fr_kv_layout(&t->kv, arena, shapes, LAYERS, (fr_kv_types){FR_F32, FR_F16},
                 (fr_kv_sizes){.context = CONTEXT, .batch = BATCH, .checkpoints = CHECKPOINTS, .timelines = 1});
    fr_kv_checkpoints_layout(&t->checkpoints, arena, &t->kv);
}

static timeline *open_timeline(void) {
    timeline *t = calloc(1, sizeof *t);
    fr_arena measured = {0};
    layout(t, &measured);
    ck_assert_int_eq(fr_arena_open(&t->arena, measured.used, "test"), FR_OK);
    layout(t, &t->arena);
    ck_assert_int_eq(fr_arena_check(&t->arena, "test"), FR_OK);
    ck_assert_uint_eq(t->checkpoints.capacity, CHECKPOINTS);
    return t;
}

static void close_timeline(timeline *t) {
    fr_arena_close(&t->arena);
    free(t);
}

static uint32_t state = 7;

static size_t below(size_t n) {
    state = state * 1664525u + 1013904223u;
    return (size_t)(((uint64_t)state * n) >> 32);
}

/* Writes the stamp into the first and the last bytes of each head's row at this position. By the stamp the row can be
 * recognized. */
static void write_rows(uint32_t stamp, const fr_kv_layer *layer, const fr_kv_rows *rows, size_t position) {
    for (size_t head = 0; head < layer->heads; head++) {
        uint8_t *row = fr_kv_slot(layer, rows, head, position);
        memcpy(row, &stamp, sizeof stamp);
        memcpy(row + rows->bytes - sizeof stamp, &stamp, sizeof stamp);
    }
}

static void check_rows(const timeline *t, const fr_kv_layer *layer, const fr_kv_rows *rows, size_t position) {
    for (size_t head = 0; head < layer->heads; head++) {
        const uint8_t *row = fr_kv_slot(layer, rows, head, position);
        ck_assert_mem_eq(row, &t->written[position], sizeof t->stamp);
        ck_assert_mem_eq(row + rows->bytes - sizeof t->stamp, &t->written[position], sizeof t->stamp);
    }
}

/* Runs a forward of `rows` rows. The first `accepted` of these rows are kept. */
static void forward(timeline *t, size_t rows, size_t accepted) {
    fr_kv *kv = &t->kv;
    ck_assert_msg(fr_kv_claim(kv, rows) == FR_OK, "%s", fr_last_error());
    for (size_t p = kv->length; p < kv->length + rows; p++) {
        uint32_t stamp = p < t->known ? t->written[p] : ++t->stamp;
        for (size_t l = 0; l < kv->count; l++) {
            write_rows(stamp, &kv->layers[l], &kv->layers[l].k, p);
            write_rows(stamp, &kv->layers[l], &kv->layers[l].v, p);
        }
        if (p < kv->length + accepted) t->written[p] = stamp;
    }
    fr_kv_commit(kv, kv->length + accepted);
    if (t->known < kv->length) t->known = kv->length;
}

static void check_contents(const timeline *t) {
    const fr_kv *kv = &t->kv;
    for (size_t l = 0; l < kv->count; l++) {
        const fr_kv_layer *layer = &kv->layers[l];
        for (size_t p = layer->kind == FR_KV_SLIDING ? kv->from : 0; p < kv->length; p++) {
            check_rows(t, layer, &layer->k, p);
            check_rows(t, layer, &layer->v, p);
        }
    }
    ck_assert(fr_kv_holds_lookback(kv, kv->length));
}

static void count_table(const fr_kv *kv, fr_kv_kind kind, uint8_t *const *table, uint32_t *holders) {
    for (size_t block = 0; block < kv->blocks; block++)
        if (table[block]) holders[(size_t)(table[block] - kv->pages[kind].data) / kv->pages[kind].bytes]++;
}

static void check_holders(const timeline *t) {
    for (fr_kv_kind kind = 0; kind < FR_KV_KINDS; kind++) {
        const fr_kv_pages *pages = &t->kv.pages[kind];
        uint32_t holders[1000] = {0};
        size_t free_pages = 0;
        count_table(&t->kv, kind, t->kv.table[kind], holders);
        for (size_t i = 0; kind == FR_KV_SLIDING && i < t->checkpoints.count; i++)
            count_table(&t->kv, kind, t->checkpoints.at[i].pages, holders);
        for (size_t i = 0; i < pages->count; i++) {
            ck_assert_uint_eq(pages->holders[i], holders[i]);
            free_pages += holders[i] == 0;
        }
        ck_assert_uint_eq(pages->free_count, free_pages);
    }
}

/* Chooses at random one of the things that a session does to its cache, and does it. These are a prompt in chunks,
 * rounds of drafts, and a truncation. */
static void act(timeline *t) {
    fr_kv *kv = &t->kv;
    size_t left = CONTEXT - kv->length, what = below(20);
    if (what == 0 || left < BATCH) {
        size_t length = below(10) ? t->known - below(t->known / 2 + 1) : 0;
        fr_kv_checkpoints_truncate(&t->checkpoints, kv, length);
        fr_kv_checkpoints_rewind(&t->checkpoints, kv, length ? fr_smaller(kv->length, length - 1) : 0);
        ck_assert_uint_le(kv->length, length);
        t->known = length;
        return;
    }
    size_t rows = 1 + below(what < 8 ? BATCH : 4);
    size_t accepted = what < 8 || kv->length < t->known ? rows : 1 + below(rows);
    forward(t, rows, accepted);
    fr_kv_checkpoints_note(&t->checkpoints, kv, below(6) == 0);
}

START_TEST(what_is_held_is_what_was_written) {
    shapes = all_shapes[_i];
    timeline *t = open_timeline();
    size_t went_back = 0;
    for (size_t i = 0; i < 5000; i++) {
        size_t length = t->kv.length;
        act(t);
        went_back += t->kv.length > 0 && t->kv.length < length;
        if (i % 7 == 0) check_contents(t);
        check_holders(t);
    }
    ck_assert_uint_gt(went_back, 50);
    fr_kv_checkpoints_truncate(&t->checkpoints, &t->kv, 0);
    fr_kv_reset(&t->kv);
    for (fr_kv_kind kind = 0; kind < FR_KV_KINDS; kind++)
        ck_assert_uint_eq(t->kv.pages[kind].free_count, t->kv.pages[kind].count);
    close_timeline(t);
}
END_TEST

/* If a timeline continues after a checkpoint, it must copy exactly one page, once. This is the page that contains the
 * end of the timeline. */
START_TEST(a_checkpoint_copies_one_page) {
    shapes = all_shapes[_i];
    timeline *t = open_timeline();
    fr_kv *kv = &t->kv;
    const fr_kv_pages *sliding = &kv->pages[FR_KV_SLIDING];
    while (kv->length < kv->keeps + 30) forward(t, 10, 10);
    size_t before = sliding->free_count, block = kv->length / FR_KV_PAGE;
    const uint8_t *frontier = kv->table[FR_KV_SLIDING][block], *full = kv->table[FR_KV_FULL][block];
    ck_assert_uint_ne(kv->length % FR_KV_PAGE, 0);
    fr_kv_checkpoints_note(&t->checkpoints, kv, true);
    ck_assert_uint_eq(t->checkpoints.count, 1);
    ck_assert_uint_eq(sliding->free_count, before);
    for (int i = 0; i < 3; i++) forward(t, 1, 1);
    ck_assert_uint_eq(sliding->free_count, before - 1);
    ck_assert_ptr_ne(kv->table[FR_KV_SLIDING][block], frontier);
    ck_assert_ptr_eq(t->checkpoints.at[0].pages[block], frontier);
    ck_assert_ptr_eq(kv->table[FR_KV_FULL][block], full);
    ck_assert_ptr_eq(kv->table[FR_KV_SLIDING][block - 1], t->checkpoints.at[0].pages[block - 1]);
    check_contents(t);
    check_holders(t);
    close_timeline(t);
}
END_TEST

/* If no page is free for a claim, the claim must fail, and the accepted rows must stay unchanged. */
START_TEST(a_full_pool_is_told) {
    shapes = all_shapes[_i];
    timeline *t = open_timeline();
    fr_kv *kv = &t->kv;
    fr_kv_pages *pages = &kv->pages[FR_KV_FULL];
    forward(t, BATCH, BATCH);
    while (kv->length % FR_KV_PAGE) forward(t, 1, 1);
    while (fr_kv_pages_take(pages)) continue;
    ck_assert_int_eq(fr_kv_claim(kv, 1), FR_MEMORY);
    ck_assert_str_eq(fr_last_error(), "no page for keys and values at position 64 is left: all 24 are held");
    check_contents(t);
    uint8_t *last = pages->data + (pages->count - 1) * pages->bytes;
    fr_kv_pages_drop(pages, &last, 0, 1);
    forward(t, 1, 1);
    check_contents(t);
    close_timeline(t);
}
END_TEST

/* Ranks have different heads of a model. Every rank must nevertheless have the same number of pages, and compute the
 * same least number of pages. */
START_TEST(heads_that_are_kept_elsewhere_count) {
    fr_kv kv, whole;
    fr_arena measured = {0}, measured_whole = {0};
    fr_kv_sizes sizes = {.context = CONTEXT, .batch = BATCH, .timelines = 2};
    const fr_kv_types types = {FR_F32, FR_F16};
    fr_kv_layout(&whole, &measured_whole, all_shapes[0], LAYERS, types, sizes);
    sizes.bytes = whole.fewest_bytes + whole.fewest_bytes / 4;
    fr_kv_layout(&whole, &measured_whole, all_shapes[0], LAYERS, types, sizes);
    fr_kv_layout(&kv, &measured, all_shapes[_i], LAYERS, types, sizes);
    ck_assert_uint_eq(kv.fewest_bytes, whole.fewest_bytes);
    for (fr_kv_kind kind = 0; kind < FR_KV_KINDS; kind++) {
        ck_assert_uint_gt(kv.page_count[kind], 3);
        ck_assert_uint_eq(kv.page_count[kind], whole.page_count[kind]);
        ck_assert_uint_eq(kv.whole_bytes[kind], whole.page_bytes[kind]);
    }
    ck_assert_uint_eq(fr_kv_pool_bytes(&kv) + fr_kv_foreign_bytes(&kv), fr_kv_pool_bytes(&whole));
    ck_assert_int_eq(fr_kv_foreign_bytes(&kv) > 0, _i > 0);
    ck_assert_uint_le(fr_kv_pool_bytes(&whole), sizes.bytes);
}
END_TEST

FR_SUITE("kv_pages") {
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 120);
    tcase_add_loop_test(all, what_is_held_is_what_was_written, 0, KEPT);
    tcase_add_loop_test(all, a_checkpoint_copies_one_page, 0, KEPT);
    tcase_add_loop_test(all, a_full_pool_is_told, 0, KEPT);
    tcase_add_loop_test(all, heads_that_are_kept_elsewhere_count, 0, KEPT);
    suite_add_tcase(suite, all);
}
