/* Attention partitioned over a team: the same bits however many threads share it, by queries or by positions, in one
 * split or several. One thread, which joins blocks in the kernel (tests/check_kernels.c has its definition), is the
 * reference. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/decoder/attend.h"

/* A layer of `kv_heads` heads of `head_dim`, and a batch of rows that sees it: row r up to position last + r, and
 * `span` positions at most (0: all). */
typedef struct batch {
    size_t kv_heads, head_dim, heads, rows;
    int64_t last;
    size_t span;
    fr_dtype type;
} batch;

static const fr_kernels *kernels;
static uint32_t state = 1;

static void fill(float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525 + 1013904223;
        x[i] = (float)(int32_t)state / (float)(1u << 30);
    }
}

/* What no row may see holds bytes that are no numbers, or huge ones. */
static fr_kv_rows make_rows(const batch *b, size_t slots) {
    fr_kv_rows rows = {.type = b->type, .bytes = fr_dtype_row_bytes(b->type, b->head_dim)};
    float *row = malloc(b->head_dim * sizeof *row);
    rows.data = malloc(b->kv_heads * slots * rows.bytes);
    memset(rows.data, 0xff, b->kv_heads * slots * rows.bytes);
    for (size_t head = 0; head < b->kv_heads; head++)
        for (size_t p = 0; p < (size_t)b->last + b->rows; p++) {
            if (b->span && p + b->span <= (size_t)b->last) continue;
            fill(row, b->head_dim);
            kernels->kv_store[b->type](rows.data + (head * slots + p) * rows.bytes, row, b->head_dim);
        }
    free(row);
    return rows;
}

static void run_share(void *context, const fr_team *team) {
    fr_attend_run(team, context);
}

/* What a team of `threads` makes of it. */
static void run(fr_attend_rows *rows, size_t threads, float *out) {
    fr_machine machine;
    fr_plan plan;
    fr_pool *pool;
    fr_arena measured = {0}, arena;
    fr_attend_workspace workspace;
    ck_assert_uint_eq(fr_machine_read(&machine), FR_OK);
    fr_plan_make(&machine, threads, false, false, &plan);
    ck_assert_uint_eq(fr_pool_open(&plan, &pool), FR_OK);
    fr_attend_layout(&workspace, &measured, rows->cache->head_dim, threads);
    ck_assert_uint_eq(fr_arena_open(&arena, measured.used, "attention"), FR_OK);
    fr_attend_layout(&workspace, &arena, rows->cache->head_dim, threads);
    rows->workspace = &workspace;
    rows->out = out;
    fr_pool_run(pool, run_share, rows);
    fr_pool_close(pool);
    fr_arena_close(&arena);
}

static void check_batch(const batch *b) {
    static const size_t teams[] = {2, 3, 5, 8, 13};
    size_t slots = ((size_t)b->last + b->rows + 63) / 64 * 64, width = b->heads * b->head_dim;
    fr_kv_layer layer = {.k = make_rows(b, slots),
                         .v = make_rows(b, slots),
                         .heads = b->kv_heads,
                         .head_dim = b->head_dim,
                         .slots = slots};
    float *q = malloc(b->rows * width * sizeof *q), *alone = malloc(b->rows * width * sizeof *alone);
    float *shared = malloc(b->rows * width * sizeof *shared);
    fr_attend_rows rows = {.kernels = kernels,
                           .cache = &layer,
                           .q = q,
                           .rows = b->rows,
                           .stride = width,
                           .heads = b->heads,
                           .last = b->last,
                           .span = b->span,
                           .scale = 0.125f};
    fill(q, b->rows * width);
    run(&rows, 1, alone);
    for (size_t i = 0; i < b->rows * width; i++) ck_assert(isfinite(alone[i]));
    for (size_t t = 0; t < sizeof teams / sizeof *teams; t++) {
        memset(shared, 0xff, b->rows * width * sizeof *shared);
        run(&rows, teams[t], shared);
        ck_assert_msg(memcmp(shared, alone, b->rows * width * sizeof *shared) == 0,
                      "%zu threads: %zu rows, %zu heads of %zu on %zu, to position %lld, span %zu", teams[t], b->rows,
                      b->heads, b->head_dim, b->kv_heads, (long long)b->last, b->span);
    }
    free(q);
    free(alone);
    free(shared);
    free(layer.k.data);
    free(layer.v.data);
}

START_TEST(any_team_gives_the_same_bits) {
    static const batch batches[] = {
        {1, 64, 1, 1, 0, 0, FR_F32},      {1, 64, 1, 1, 63, 0, FR_F16},     {1, 64, 4, 1, 64, 0, FR_F16},
        {1, 256, 8, 1, 700, 0, FR_F16},   {1, 80, 7, 3, 1000, 0, FR_BF16},  {2, 64, 4, 1, 900, 0, FR_Q8_0},
        {3, 32, 9, 2, 333, 0, FR_Q4_0},   {1, 64, 4, 5, 1500, 512, FR_F16}, {1, 64, 8, 1, 1000, 100, FR_F16},
        {2, 64, 6, 4, 200, 3, FR_F32},    {1, 512, 8, 2, 511, 512, FR_F16}, {4, 64, 4, 1, 4000, 0, FR_F16},
        {2, 64, 6, 4, 1500, 600, FR_BF16},
    };
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) check_batch(&batches[i]);
}
END_TEST

/* More blocks than there is room for at a time. */
START_TEST(long_contexts_are_joined_split_by_split) {
    check_batch(&(batch){1, 32, 16, 1, 20000, 0, FR_F16});
    check_batch(&(batch){1, 32, 24, 1, 30040, 22001, FR_F16});
    check_batch(&(batch){3, 64, 3, 1, 9000, 0, FR_BF16});
}
END_TEST

int main(void) {
    if (fr_kernels_select(NULL, &kernels)) return 1;
    Suite *suite = suite_create("attend");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 120);
    tcase_add_test(all, any_team_gives_the_same_bits);
    tcase_add_test(all, long_contexts_are_joined_split_by_split);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
