/* A cache of type turbo4 or turbo3 stores keys minus their means, multiplied by scales. The test's model has keys with
 * large biases, and its pairs of values differ much in size (tests/references/mean_keys.py). Its logits must still stay
 * nearly the same: turbo4 changes them by 0.046 of their size, and turbo3 by 0.09. Without scales, turbo4 would change
 * them by 0.59. The positions are in several blocks, and the forward passes have different numbers of rows. */
/* suite: quick hostile */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "forerun.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

enum { IDS = 200, VOCAB = 256 };

/* Runs the ids with a cache whose keys have this type. Returns the logits of all positions. The caller frees them. */
static float *run(const char *type, int chunk) {
    fr_options *options = fr_options_new();
    fr_model *model;
    fr_session *session;
    fr_rows rows = {.values = malloc(IDS * VOCAB * sizeof(float)), .capacity = IDS * VOCAB};
    int32_t ids[IDS];
    ck_assert_ptr_nonnull(rows.values);
    for (size_t i = 0; i < IDS; i++) ids[i] = (int32_t)(i * i * 7 % VOCAB);
    require(fr_options_set_text(options, FR_OPT_KV_K, type));
    require(fr_options_set_text(options, FR_OPT_KV_V, "f32"));
    require(fr_options_set(options, FR_OPT_CHUNK, chunk));
    require(fr_model_open("tests/data/mean-keys", options, &model));
    require(fr_session_open(model, NULL, options, &session));
    require(fr_session_logits(session, ids, IDS, 0, fr_rows_collect, &rows));
    ck_assert_uint_eq(rows.count, IDS * VOCAB);
    fr_session_close(session);
    fr_model_close(model);
    fr_options_free(options);
    return rows.values;
}

/* Returns the root mean square of the difference of two runs' logits, divided by the root mean square of the second
 * run's logits. */
static double difference(const float *got, const float *expected) {
    double off = 0, square = 0;
    for (size_t i = 0; i < IDS * VOCAB; i++) {
        off += ((double)got[i] - (double)expected[i]) * ((double)got[i] - (double)expected[i]);
        square += (double)expected[i] * (double)expected[i];
    }
    return sqrt(off / square);
}

START_TEST(large_means_and_uneven_pairs_cost_nothing) {
    static const struct {
        const char *type;
        double most;
    } types[] = {{"turbo4", 0.07}, {"turbo3", 0.14}};
    float *exact = run("f32", 512);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        float *whole = run(types[t].type, 512), *single = run(types[t].type, 1);
        double off = difference(whole, exact);
        ck_assert_msg(off < types[t].most, "%s changes logits by %g of their size", types[t].type, off);
        ck_assert_mem_eq(whole, single, IDS * VOCAB * sizeof *whole);
        free(whole);
        free(single);
    }
    free(exact);
}
END_TEST

FR_SUITE("mean_keys") {
    TCase *cases = tcase_create("means");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, large_means_and_uneven_pairs_cost_nothing);
    suite_add_tcase(suite, cases);
}
