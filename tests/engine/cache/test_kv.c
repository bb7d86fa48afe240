/* Tests the key/value cache:
 *   - how precisely each type stores a number, with every instruction set;
 *   - how much memory the cache takes;
 *   - which models it refuses;
 *   - how near the logits stay to those of a float32 cache. */
/* suite: quick */
#include "src/engine/cache/kv.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "forerun_lab.h"
#include "kernels/dispatch.h"
#include "src/engine/model/model.h"
#include "src/engine/session/state.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

#define DEMO    "tools/demo/target"
#define FIXTURE "tests/data/models/gemma4-e" /* a model whose heads have a width of 16 */
#define BLOCK   32

static const char *const types[FR_CACHED_TYPES] = {"f32", "f16", "bf16", "q8_0", "q4_0", "turbo4", "turbo3"};

/* Returns the function that stores a type. `index` counts the instruction sets of this machine. NULL: there are no more
 * instruction sets. */
static fr_kv_store_fn *store_of(fr_dtype type, size_t index) {
    for (size_t i = 0; fr_lab_word(FR_LAB_ISA, i); i++) {
        const fr_kernels *kernels;
        if (!fr_lab_isa_here(fr_lab_word(FR_LAB_ISA, i)) || index-- > 0) continue;
        require(fr_kernels_select(fr_lab_word(FR_LAB_ISA, i), &kernels));
        return kernels->kv_store[type];
    }
    return NULL;
}

static uint32_t state = 1;

/* Returns a random number from -1 to 1. */
static float random_value(void) {
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / 0x1p23f - 1;
}

/* ---------------------------------------------------------------------------------------------------------- numbers */

/* Checks the rounding between each two neighbouring positive numbers of a 16-bit type. The midpoint between them must
 * round to the even one. The float just below the midpoint must round to the lower number, and the float just above it
 * to the higher number. */
static void check_rounding(fr_dtype type, uint16_t past) {
    fr_kv_store_fn *store;
    for (size_t isa = 0; (store = store_of(type, isa)); isa++)
        for (uint16_t bits = 0; bits + 1 < past; bits++) {
            uint16_t pair[2] = {bits, (uint16_t)(bits + 1)}, got[8];
            float ends[2];
            fr_dtype_decode(type, pair, ends, 2);
            float middle = ends[0] + (ends[1] - ends[0]) / 2;
            float x[8] = {ends[0], nextafterf(middle, 0), middle, nextafterf(middle, INFINITY), ends[1], -middle};
            uint16_t even = bits + (bits & 1), sign = 0x8000;
            store(got, x, 6);
            uint16_t expected[6] = {bits, bits, even, pair[1], pair[1], (uint16_t)(sign | even)};
            for (size_t i = 0; i < 6; i++)
                if (got[i] != expected[i])
                    ck_abort_msg("%s: %a is stored as %04x, not %04x", types[type], (double)x[i], got[i], expected[i]);
        }
}

START_TEST(halves_round_to_nearest_even) {
    check_rounding(FR_F16, 0x7c00);
    check_rounding(FR_BF16, 0x7f80);
}
END_TEST

/* Checks that the error of each stored value is at most half a step. Q4_0 has a code for its largest value, but no code
 * for the negative of that value. So for values of the opposite sign the error may be a whole step. */
static void check_block(fr_dtype type, const float *x, const uint8_t *row) {
    float y[BLOCK], largest = 0;
    uint16_t half;
    memcpy(&half, row, sizeof half);
    double d = fabs((double)fr_f32_from_f16(half));
    fr_dtype_decode(type, row, y, BLOCK);
    for (size_t i = 0; i < BLOCK; i++) largest = fabsf(x[i]) > fabsf(largest) ? x[i] : largest;
    double exact = fabs((double)largest) / (type == FR_Q8_0 ? 127 : 8), rounding = 0x1p-11 * exact + 0x1p-25;
    ck_assert_msg(fabs(d - exact) <= rounding, "%s: the step is %g for a largest of %g", types[type], d,
                  (double)largest);
    for (size_t i = 0; i < BLOCK; i++) {
        bool opposite = type == FR_Q4_0 && (double)x[i] * (double)largest < 0;
        double bound = (opposite ? 1.001 : 0.501) * d + 128 * rounding;
        if (!(fabs((double)x[i] - (double)y[i]) <= bound))
            ck_abort_msg("%s: %g is stored as %g, the step is %g", types[type], (double)x[i], (double)y[i], d);
    }
}

START_TEST(codes_are_within_half_a_step) {
    fr_kv_store_fn *store;
    for (fr_dtype type = FR_Q8_0; type <= FR_Q4_0; type++)
        for (size_t isa = 0; (store = store_of(type, isa)); isa++)
            for (int exponent = -30; exponent < 18; exponent++)
                for (int repeat = 0; repeat < 50; repeat++) {
                    float x[2 * BLOCK];
                    uint8_t rows[2 * 34];
                    for (size_t i = 0; i < 2 * BLOCK; i++) x[i] = ldexpf(random_value(), exponent);
                    store(rows, x, 2 * BLOCK);
                    check_block(type, x, rows);
                    check_block(type, x + BLOCK, rows + fr_dtype_row_bytes(type, BLOCK));
                }
}
END_TEST

/* If a value is outside a type's range, it must not be stored as a finite number. */
START_TEST(what_does_not_fit_is_not_finite) {
    static const float bad[] = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f};
    fr_kv_store_fn *store;
    for (fr_dtype type = FR_F16; type < FR_KV_TYPES; type++)
        for (size_t isa = 0; (store = store_of(type, isa)); isa++)
            for (size_t b = 0; b < (type == FR_BF16 ? 3 : 5); b++) { /* bfloat16 can hold 1e30 and -1e30, so they are
                                                                      * left out for it */
                float x[BLOCK], y[BLOCK];
                uint8_t row[2 * BLOCK];
                for (size_t i = 0; i < BLOCK; i++) x[i] = i == 17 ? bad[b] : 1;
                store(row, x, BLOCK);
                fr_dtype_decode(type, row, y, BLOCK);
                ck_assert_msg(!isfinite(y[17]), "%s: %g is stored as %g", types[type], (double)bad[b], (double)y[17]);
            }
}
END_TEST

START_TEST(nothing_is_stored_as_nothing) {
    fr_kv_store_fn *store;
    for (fr_dtype type = FR_F16; type < FR_KV_TYPES; type++)
        for (size_t isa = 0; (store = store_of(type, isa)); isa++) {
            float x[BLOCK] = {0}, y[BLOCK];
            uint8_t row[2 * BLOCK];
            x[3] = type == FR_BF16 ? 1e-42f : 1e-30f;
            store(row, x, BLOCK);
            fr_dtype_decode(type, row, y, BLOCK);
            for (size_t i = 0; i < BLOCK; i++) ck_assert_msg(y[i] == 0, "%s: %g", types[type], (double)y[i]);
        }
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- sessions */

static fr_session *open_session(const fr_model *model, const char *k, const char *v) {
    fr_options *options = fr_options_new();
    fr_session *session;
    require(fr_options_set_text(options, FR_OPT_KV_K, k));
    require(fr_options_set_text(options, FR_OPT_KV_V, v));
    require(fr_session_open(model, NULL, options, &session));
    fr_options_free(options);
    return session;
}

static double kv_bytes(const fr_model *model, const char *k, const char *v) {
    fr_session *session = open_session(model, k, v);
    double bytes = fr_session_stat(session, FR_STAT_TARGET_KV_BYTES);
    fr_session_close(session);
    return bytes;
}

START_TEST(bytes_follow_the_types) {
    static const double bits[FR_CACHED_TYPES] = {32, 16, 16, 8.5, 4.5, 4.5, 3.5};
    fr_model *model;
    require(fr_model_open(DEMO, NULL, &model));
    double whole = kv_bytes(model, "f32", "f32");
    for (size_t k = 0; k < FR_CACHED_TYPES; k++)
        for (size_t v = 0; v < FR_CACHED_TYPES; v++) {
            double share = kv_bytes(model, types[k], types[v]) / whole, expected = (bits[k] + bits[v]) / 64;
            ck_assert_msg(fabs(share - expected) < 0.001, "%s, %s: %g of a float32 cache", types[k], types[v], share);
        }
    fr_model_close(model);
}
END_TEST

START_TEST(heads_must_be_whole_blocks) {
    static const char *const refused[][2] = {{"q8_0", "f16"}, {"f32", "q4_0"}};
    static const char *const lines[] = {"keys of type q8_0 need heads that are multiples of 32 wide",
                                        "values of type q4_0 need heads that are multiples of 32 wide"};
    fr_model *model;
    require(fr_model_open(FIXTURE, NULL, &model));
    for (size_t i = 0; i < 2; i++) {
        fr_options *options = fr_options_new();
        fr_session *session;
        require(fr_options_set_text(options, FR_OPT_KV_K, refused[i][0]));
        require(fr_options_set_text(options, FR_OPT_KV_V, refused[i][1]));
        ck_assert_int_eq(fr_session_open(model, NULL, options, &session), FR_INPUT);
        ck_assert_msg(strstr(fr_last_error(), lines[i]), "%s", fr_last_error());
        fr_options_free(options);
    }
    fr_model_close(model);
}
END_TEST

START_TEST(unknown_words_are_refused) {
    fr_options *options = fr_options_new();
    ck_assert_int_eq(fr_options_set_text(options, FR_OPT_KV_K, "q9_9"), FR_USAGE);
    ck_assert_str_eq(fr_last_error(), "cache-type-k q9_9 is not known (f32 f16 bf16 q8_0 q4_0 turbo4 turbo3)");
    ck_assert_int_eq(fr_options_set_text(options, FR_OPT_KV_V, ""), FR_USAGE);
    ck_assert_int_eq(fr_options_set(options, FR_OPT_KV_V, 1), FR_USAGE);
    fr_options_free(options);
}
END_TEST

/* Returns the default cache types of a model that has a single matrix. type: the type of the matrix's values. access:
 * how the matrix is accessed. */
static fr_kv_types usual(fr_dtype type, fr_access access) {
    fr_tensor tensor = {.type = type, .dims = 2};
    fr_bound bound = {.tensor = &tensor, .access = access};
    fr_model model = {.weights = {.bound = &bound, .count = 1}};
    fr_options options = fr_options_resolve(NULL);
    return fr_model_kv_types(&model, &options);
}

START_TEST(quantized_weights_have_a_half_cache) {
    ck_assert_int_eq(usual(FR_BF16, FR_STREAMED).k, FR_F32);
    ck_assert_int_eq(usual(FR_Q4_0, FR_STREAMED).k, FR_F16);
    ck_assert_int_eq(usual(FR_Q2_K, FR_STREAMED).v, FR_F16);
    ck_assert_int_eq(usual(FR_Q4_0, FR_LOOKED_UP).v, FR_F32);
}
END_TEST

/* ----------------------------------------------------------------------------------------------------------- logits */

typedef struct row_sink {
    float *values;
    size_t count;
} row_sink;

static fr_status take_rows(void *context, const float *logits, size_t rows, size_t vocab) {
    row_sink *sink = context;
    sink->values = realloc(sink->values, (sink->count + rows * vocab) * sizeof *logits);
    memcpy(sink->values + sink->count, logits, rows * vocab * sizeof *logits);
    sink->count += rows * vocab;
    return FR_OK;
}

static row_sink logits_with(const fr_model *model, const char *k, const char *v) {
    enum { COUNT = 100 };
    int32_t ids[COUNT];
    row_sink sink = {0};
    fr_session *session = open_session(model, k, v);
    for (size_t i = 0; i < COUNT; i++) ids[i] = (int32_t)((i * i * 31 + 7 * i + 2) % model->trunk.spec.vocab);
    require(fr_session_logits(session, ids, COUNT, 0, take_rows, &sink));
    fr_session_close(session);
    return sink;
}

/* Returns the root mean square of the difference of a and b, divided by the standard deviation of b. */
static double distance(const row_sink *a, const row_sink *b) {
    double difference = 0, mean = 0, spread = 0, count = (double)b->count;
    ck_assert_uint_eq(a->count, b->count);
    for (size_t i = 0; i < b->count; i++) {
        difference += pow((double)a->values[i] - (double)b->values[i], 2);
        mean += (double)b->values[i] / count;
    }
    for (size_t i = 0; i < b->count; i++) spread += pow((double)b->values[i] - mean, 2);
    return sqrt(difference / spread);
}

/* The bounds are as large as rounding errors may be. If a scale were wrong or slots were mixed up, the difference would
 * be far larger. */
START_TEST(logits_stay_near_a_float_cache) {
    static const double bounds[FR_CACHED_TYPES] = {0, 1e-3, 1e-2, 2e-2, 0.3, 0.2, 0.3};
    fr_model *model;
    require(fr_model_open(DEMO, NULL, &model));
    row_sink exact = logits_with(model, "f32", "f32");
    for (size_t type = FR_F16; type < FR_CACHED_TYPES; type++)
        for (int part = 0; part < 3; part++) {
            row_sink got = logits_with(model, part == 1 ? "f32" : types[type], part == 2 ? "f32" : types[type]);
            double far = distance(&got, &exact);
            ck_assert_msg(far > 0 && far < bounds[type], "%s: %g", types[type], far);
            free(got.values);
        }
    free(exact.values);
    fr_model_close(model);
}
END_TEST

FR_SUITE("kv") {
    TCase *numbers = tcase_create("numbers"), *sessions = tcase_create("sessions");
    tcase_set_timeout(numbers, 60);
    tcase_add_test(numbers, halves_round_to_nearest_even);
    tcase_add_test(numbers, codes_are_within_half_a_step);
    tcase_add_test(numbers, what_does_not_fit_is_not_finite);
    tcase_add_test(numbers, nothing_is_stored_as_nothing);
    tcase_set_timeout(sessions, 60);
    tcase_add_test(sessions, bytes_follow_the_types);
    tcase_add_test(sessions, heads_must_be_whole_blocks);
    tcase_add_test(sessions, unknown_words_are_refused);
    tcase_add_test(sessions, quantized_weights_have_a_half_cache);
    tcase_add_test(sessions, logits_stay_near_a_float_cache);
    suite_add_tcase(suite, numbers);
    suite_add_tcase(suite, sessions);
}
