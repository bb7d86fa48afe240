/* Tests the LM head. The vocabulary is divided into pieces, and the team of threads shares each piece. Every logit must
 * be computed and capped once. The best id is the first id with the largest logit, even if equal logits are in
 * different pieces or come from different threads. A logit that is not finite invalidates only its own row.
 *
 * The expected logits are known without a matrix product, because each row of activations selects one column of the
 * matrix and doubles it. */
/* suite: quick threads neon */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/dispatch.h"
#include "src/engine/layers/head.h"
#include "tests/support/suite.h"

enum { HIDDEN = FR_STEP_MAX, VOCAB = 40001 }; /* the vocabulary is divided into five pieces */

static fr_machine machine;
static const fr_kernels *kernels;
static float matrix_values[VOCAB * HIDDEN], logits[FR_STEP_MAX * VOCAB], expected[VOCAB];
static fr_matrix matrix;
static fr_workspace workspace;
static float cap;

static void run_share(void *context, const fr_team *team) {
    fr_head head = {.matrix = &matrix, .workspace = &workspace, .stride = HIDDEN, .softcap = cap};
    fr_head_rows(team, &head, context);
}

/* Runs the head for `rows` rows. The activations are chosen so that the logits of row r are twice column r of the
 * matrix. */
static void run(size_t rows, size_t threads, int64_t *best) {
    fr_plan plan;
    fr_pool *pool;
    float hidden[FR_STEP_MAX * HIDDEN] = {0};
    for (size_t r = 0; r < rows; r++) hidden[r * HIDDEN + r] = 2.0f;
    workspace = (fr_workspace){.kernels = kernels};
    matrix = (fr_matrix){.data = (const uint8_t *)matrix_values,
                         .type = FR_F32,
                         .features = VOCAB,
                         .cols = HIDDEN,
                         .row_bytes = HIDDEN * sizeof(float)};
    fr_forward f = {.hidden = hidden, .head_rows = rows, .logits = logits, .best = best, .best_stride = FR_STEP_MAX};
    fr_plan_make(&machine, threads, false, false, &plan);
    ck_assert_uint_eq(fr_pool_open(&plan, &pool), FR_OK);
    fr_pool_run(pool, run_share, &f);
    fr_pool_close(pool);
}

static void fill(void) {
    uint32_t state = 7;
    for (size_t i = 0; i < VOCAB * HIDDEN; i++) {
        state = state * 1664525 + 1013904223;
        matrix_values[i] = (float)(int32_t)state / (float)(1u << 27);
    }
}

static float *value(size_t feature, size_t row) {
    return &matrix_values[feature * HIDDEN + row];
}

/* Returns the first id with the largest expected logit, or -1 if a logit is not finite. */
static int64_t first_largest(void) {
    int64_t best = 0;
    for (int64_t i = 0; i < VOCAB; i++) {
        if (!isfinite(expected[i])) return -1;
        if (expected[i] > expected[best]) best = i;
    }
    return best;
}

static void check(size_t rows, size_t threads) {
    int64_t *best = malloc(threads * FR_STEP_MAX * sizeof *best);
    memset(logits, 0xff, sizeof logits);
    run(rows, threads, best);
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < VOCAB; i++) expected[i] = 2.0f * *value(i, r);
        if (cap != 0.0f) kernels->softcap(expected, VOCAB, cap);
        size_t right = 0;
        while (right < VOCAB && logits[r * VOCAB + right] == expected[right]) right++;
        ck_assert_msg(right == VOCAB, "row %zu of %zu, %zu threads: feature %zu", r, rows, threads, right);
        ck_assert_int_eq(best[r], first_largest());
    }
    free(best);
}

static void check_all(void) {
    static const size_t rows[] = {1, 8, FR_STEP_MAX}, threads[] = {1, 2, 5};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) check(rows[r], threads[t]);
}

START_TEST(every_logit_is_made_once) {
    fill();
    cap = 0.0f;
    check_all();
    cap = 30.0f;
    check_all();
}
END_TEST

/* The largest logit occurs several times: at neighbouring ids, in different pieces, and at ids that different threads
 * compute. */
START_TEST(of_equals_the_first_is_best) {
    static const size_t places[] = {40000, 32768, 20016, 20015, 9000, 8191, 4096};
    cap = 0.0f;
    fill();
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        for (size_t r = 0; r < HIDDEN; r++) *value(places[i] - r, r) = 1000.0f;
        check_all();
    }
}
END_TEST

/* The matrix has a huge value in column 2. The activations of row 2 select and double this column, so one logit of row
 * 2 overflows. The other rows select other columns, so their logits stay finite. */
START_TEST(what_is_not_finite_spoils_its_row) {
    static const size_t places[] = {0, 8191, 8192, 25000, VOCAB - 1};
    cap = 0.0f;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        fill();
        *value(places[i], 2) = i % 2 ? 3e38f : -3e38f;
        check(8, 1);
        check(8, 3);
    }
}
END_TEST

FR_SUITE("head") {
    if (fr_kernels_select(NULL, &kernels) || fr_machine_read(&machine)) exit(EXIT_FAILURE);
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 240);
    tcase_add_test(all, every_logit_is_made_once);
    tcase_add_test(all, of_equals_the_first_is_best);
    tcase_add_test(all, what_is_not_finite_spoils_its_row);
    suite_add_tcase(suite, all);
}
