/* Tests attention whose work is divided among a team of threads. The bits must be the same however many threads share
 * the work, whether they divide queries or positions, and whether they work in one or several splits. The expected bits
 * are those of one thread, whose kernel joins partial results by itself. tests/kernels/check_kernels.c compares this
 * kernel with its definition. */
/* suite: quick threads neon */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/dispatch.h"
#include "quant/turbo.h"
#include "src/engine/layers/attend.h"
#include "tests/support/brief.h"
#include "tests/support/suite.h"

/* A layer of `kv_heads` heads of width `head_dim`, and a batch of rows. Row r sees the positions up to last + r. If
 * `span` is not 0, row r sees at most the last `span` of these positions. */
typedef struct batch {
    size_t kv_heads, head_dim, heads, rows;
    int64_t last;
    size_t span;
    fr_dtype type;
    size_t latent; /* each value is the first `latent` numbers of its key; if this is 0, values are stored separately */
} batch;

static const fr_kernels *kernels;
static uint32_t state = 1;

static void fill(float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525 + 1013904223;
        x[i] = (float)(int32_t)state / (float)(1u << 30);
    }
}

/* Fills the positions that at least one row sees. All other positions keep the bytes that make_layer has written, which
 * are NaN or huge numbers. */
static void fill_rows(const batch *b, const fr_kv_layer *layer, const fr_kv_rows *rows) {
    float *row = malloc(b->head_dim * sizeof *row);
    for (size_t head = 0; head < b->kv_heads; head++)
        for (size_t p = 0; p < (size_t)b->last + b->rows; p++) {
            if (b->span && p + b->span <= (size_t)b->last) continue;
            fill(row, b->head_dim);
            fr_kv_store(kernels, b->type, fr_kv_slot(layer, rows, head, p), row, b->head_dim);
        }
    free(row);
}

/* Makes a layer with pages at random places in memory. The layer has no pages for positions that no row sees. */
static fr_kv_layer make_layer(const batch *b) {
    size_t blocks = fr_kv_blocks((size_t)b->last + b->rows);
    size_t row = fr_dtype_row_bytes(b->type, b->head_dim);
    size_t half = b->kv_heads * FR_KV_PAGE * row;
    fr_kv_layer layer = {.k = {.at = 0, .type = b->type, .bytes = row},
                         .v = {.at = half, .type = b->type, .bytes = row},
                         .heads = b->kv_heads,
                         .head_dim = b->head_dim,
                         .value_dim = b->latent ? b->latent : b->head_dim,
                         .pages = calloc(blocks, sizeof(uint8_t *))};
    for (size_t i = 0; i < blocks; i++) {
        size_t block = i % 2 ? i / 2 : blocks - 1 - i / 2;
        if (b->span && (block + 1) * FR_KV_PAGE + b->span <= (size_t)b->last + 1) continue;
        layer.pages[block] = malloc(2 * half);
        memset(layer.pages[block], 0xff, 2 * half);
    }
    fill_rows(b, &layer, &layer.k);
    if (b->latent)
        layer.v = (fr_kv_rows){.at = 0, .type = b->type};
    else
        fill_rows(b, &layer, &layer.v);
    return layer;
}

static void free_layer(const batch *b, fr_kv_layer *layer) {
    for (size_t p = 0; p < (size_t)b->last + b->rows; p += FR_KV_PAGE) free(layer->pages[p / FR_KV_PAGE]);
    free(layer->pages);
}

static void run_share(void *context, const fr_team *team) {
    fr_attend_run(team, context);
}

static size_t head_dim_of(const fr_attend_rows *rows) {
    return rows->batch->timelines[0]->layers[0].head_dim;
}

/* Runs the batch on a team of `threads` threads. */
static void run(fr_attend_rows *rows, size_t threads, float *out) {
    fr_machine machine;
    fr_plan plan;
    fr_pool *pool;
    fr_arena measured = {0}, arena;
    fr_attend_workspace workspace;
    ck_assert_uint_eq(fr_machine_read(&machine), FR_OK);
    fr_plan_make(&machine, threads, false, false, &plan);
    ck_assert_uint_eq(fr_pool_open(&plan, &pool), FR_OK);
    fr_attend_layout(&workspace, &measured, head_dim_of(rows), threads);
    ck_assert_uint_eq(fr_arena_open(&arena, measured.used, "attention"), FR_OK);
    fr_attend_layout(&workspace, &arena, head_dim_of(rows), threads);
    rows->workspace = &workspace;
    rows->out = out;
    fr_pool_run(pool, run_share, rows);
    fr_pool_close(pool);
    fr_arena_close(&arena);
}

/* Limits of a batch with rows of several timelines. A timeline is the cached text of one session. Each timeline has its
 * own layer, and all of these layers have the same number of heads. */
enum { TIMELINES_MAX = 4, ROWS_MAX = 16, HEADS_MAX = 128 };

typedef struct side_by_side {
    fr_kv_layer layers[TIMELINES_MAX];
    fr_kv caches[TIMELINES_MAX];
    fr_kv *timelines[TIMELINES_MAX];
    fr_row rows[ROWS_MAX];
    fr_batch batch;
    float *q, sinks[HEADS_MAX];
    fr_attend_rows attend;
} side_by_side;

static void open_side_by_side(side_by_side *s, const batch *batches, size_t count) {
    *s = (side_by_side){.batch = {.rows = s->rows, .timelines = s->timelines}};
    for (size_t t = 0; t < count; t++) {
        s->layers[t] = make_layer(&batches[t]);
        s->caches[t].layers = &s->layers[t];
        s->timelines[t] = &s->caches[t];
        for (size_t r = 0; r < batches[t].rows; r++)
            s->rows[s->batch.count++] =
                (fr_row){.timeline = (int32_t)t, .position = (int32_t)(batches[t].last + (int64_t)r)};
    }
    size_t width = batches->heads * batches->head_dim;
    s->q = malloc(s->batch.count * width * sizeof *s->q);
    fill(s->q, s->batch.count * width);
    s->attend = (fr_attend_rows){.kernels = kernels,
                                 .batch = &s->batch,
                                 .q = s->q,
                                 .q_step = batches->head_dim,
                                 .stride = width,
                                 .heads = batches->heads,
                                 .kv_heads = batches->kv_heads,
                                 .span = batches->span,
                                 .scale = 0.125f};
    fill(s->sinks, batches->heads);
}

static void close_side_by_side(side_by_side *s, const batch *batches, size_t count) {
    for (size_t t = 0; t < count; t++) free_layer(&batches[t], &s->layers[t]);
    free(s->q);
}

/* Runs `count` rows from row `first` on by themselves, on one thread. */
static void run_alone(const side_by_side *s, size_t first, size_t count, float *out) {
    fr_batch part = {.rows = s->rows + first, .count = count, .timelines = s->timelines};
    fr_attend_rows rows = s->attend;
    rows.batch = &part;
    rows.q += first * rows.stride;
    run(&rows, 1, out);
}

/* Runs all timelines in one batch, on teams of several sizes. Compares each timeline's rows with the result of running
 * only these rows. */
static void check_teams(side_by_side *s, const batch *batches, size_t count) {
    static const size_t teams[] = {3, 8, 1, 2, 5, 13}; /* an emulator runs only the first two */
    size_t size = s->batch.count * s->attend.stride, some = fr_test_emulated() ? 2 : sizeof teams / sizeof *teams;
    float *alone = malloc(size * sizeof *alone), *shared = malloc(size * sizeof *shared);
    size_t written = batches->heads * s->layers[0].value_dim; /* number of values in a row's output */
    memset(alone, 0xff, size * sizeof *alone);
    for (size_t t = 0, first = 0; t < count; first += batches[t++].rows)
        run_alone(s, first, batches[t].rows, alone + first * s->attend.stride);
    for (size_t i = 0; i < size; i++) ck_assert(isfinite(alone[i]) == (i % s->attend.stride < written));
    for (size_t t = 0; t < some; t++) {
        const batch *b = &batches[0];
        memset(shared, 0xff, size * sizeof *shared);
        run(&s->attend, teams[t], shared);
        ck_assert_msg(memcmp(shared, alone, size * sizeof *shared) == 0,
                      "%zu threads, %zu timelines: %zu rows, %zu heads of %zu on %zu, to position %lld, span %zu%s",
                      teams[t], count, b->rows, b->heads, b->head_dim, b->kv_heads, (long long)b->last, b->span,
                      s->attend.sinks ? ", a cap and sinks" : "");
    }
    free(alone);
    free(shared);
}

/* Compares the rows of all timelines twice: first as they are, then with a cap on the scores and a sink for each
 * head. */
static void check_batches(const batch *batches, size_t count) {
    side_by_side s;
    open_side_by_side(&s, batches, count);
    check_teams(&s, batches, count);
    s.attend.softcap = 0.5f;
    s.attend.sinks = s.sinks;
    check_teams(&s, batches, count);
    close_side_by_side(&s, batches, count);
}

static void check_batch(const batch *b) {
    check_batches(b, 1);
}

START_TEST(any_team_gives_the_same_bits) {
    static const batch batches[] = {
        {1, 64, 1, 1, 0, 0, FR_F32, 0},         {1, 64, 1, 1, 63, 0, FR_F16, 0},
        {1, 64, 4, 1, 64, 0, FR_F16, 0},        {1, 256, 8, 1, 700, 0, FR_F16, 0},
        {1, 80, 7, 3, 1000, 0, FR_BF16, 0},     {2, 64, 4, 1, 900, 0, FR_Q8_0, 0},
        {3, 32, 9, 2, 333, 0, FR_Q4_0, 0},      {1, 64, 4, 5, 1500, 512, FR_F16, 0},
        {1, 64, 8, 1, 1000, 100, FR_F16, 0},    {2, 64, 6, 4, 200, 3, FR_F32, 0},
        {1, 512, 8, 2, 511, 512, FR_F16, 0},    {4, 64, 4, 1, 4000, 0, FR_F16, 0},
        {2, 64, 6, 4, 1500, 600, FR_BF16, 0},   {1, 64, 7, 1, 1000, 0, FR_TURBO4, 0},
        {1, 128, 5, 1, 900, 600, FR_TURBO3, 0}, {3, 96, 9, 2, 333, 0, FR_TURBO4, 0},
        {2, 256, 4, 4, 200, 0, FR_TURBO3, 0},
    };
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) check_batch(&batches[i]);
}
END_TEST

/* Latent attention has one KV head, and its values are the first part of its keys. Some cases have few heads per row;
 * others have more than the kernel processes at once. In some cases the number of values is not a multiple of any
 * vector width. */
START_TEST(latent_values_are_read_from_their_keys) {
    static const batch batches[] = {{1, 576, 128, 4, 300, 0, FR_F16, 512}, {1, 576, 8, 1, 700, 0, FR_BF16, 512},
                                    {1, 576, 3, 2, 500, 0, FR_Q8_0, 512},  {1, 96, 20, 5, 130, 0, FR_Q4_0, 32},
                                    {1, 46, 5, 1, 1000, 0, FR_F32, 36},    {1, 50, 2, 1, 4500, 0, FR_F16, 1}};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) check_batch(&batches[i]);
    check_batches((const batch[]){{1, 80, 20, 2, 70, 0, FR_F16, 64}, {1, 80, 20, 3, 5, 0, FR_F16, 64}}, 2);
}
END_TEST

/* There is room for a limited number of partial results. These contexts have more blocks than that, so attention runs
 * over them in several splits. */
START_TEST(long_contexts_are_joined_split_by_split) {
    if (!fr_test_emulated()) check_batch(&(batch){1, 32, 16, 1, 20000, 0, FR_F16, 0});
    if (!fr_test_emulated()) check_batch(&(batch){1, 32, 24, 1, 30040, 22001, FR_F16, 0});
    check_batch(&(batch){3, 64, 3, 1, 9000, 0, FR_BF16, 0});
}
END_TEST

/* A row's result must not depend on the other rows of the batch. These may belong to the same timeline or to other
 * timelines, which may be short or long. */
START_TEST(timelines_side_by_side_are_as_each_alone) {
    static const batch halves[] = {{2, 64, 6, 1, 700, 0, FR_F16, 0},
                                   {2, 64, 6, 4, 3, 0, FR_F16, 0},
                                   {2, 64, 6, 1, 64, 0, FR_F16, 0},
                                   {2, 64, 6, 3, 300, 0, FR_F16, 0}};
    static const batch windows[] = {
        {1, 32, 4, 2, 500, 100, FR_Q8_0, 0}, {1, 32, 4, 1, 0, 100, FR_Q8_0, 0}, {1, 32, 4, 5, 127, 100, FR_Q8_0, 0}};
    static const batch same[] = {{1, 64, 1, 1, 200, 0, FR_F32, 0}, {1, 64, 1, 1, 200, 0, FR_F32, 0}};
    check_batches(halves, 4);
    check_batches(windows, 3);
    check_batches(same, 2);
}
END_TEST

FR_SUITE("attend") {
    if (fr_kernels_select(NULL, &kernels)) exit(EXIT_FAILURE);
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 120);
    tcase_add_test(all, any_team_gives_the_same_bits);
    tcase_add_test(all, latent_values_are_read_from_their_keys);
    tcase_add_test(all, long_contexts_are_joined_split_by_split);
    tcase_add_test(all, timelines_side_by_side_are_as_each_alone);
    suite_add_tcase(suite, all);
}
