/* Tests encoding to block types. The error must not be larger than llama-quantize's error with the same weights. Every
 * input must give valid blocks.
 *
 * tests/data/blocks/encode.json has the squared errors of llama.cpp's quantizers with the weights in encode.bf16, with
 * and without an importance matrix (tests/references/encode.py). test_block_types.c tests decoding. */
/* suite: hostile */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "quant/encode.h"
#include "tests/support/suite.h"

enum { COLS = 256, BYTES_MAX = COLS * 4 };

static const fr_dtype block_types[] = {FR_Q8_0, FR_Q4_0, FR_Q4_1, FR_Q5_0,   FR_Q5_1, FR_IQ4_NL, FR_MXFP4,
                                       FR_Q4_K, FR_Q5_K, FR_Q6_K, FR_IQ4_XS, FR_Q2_K, FR_Q3_K};
enum { TYPES = sizeof block_types / sizeof *block_types };

/* Returns the squared error of an encoded row, in double precision. If importances are given, the error of each column
 * is multiplied by the column's importance. */
static double weighed_error(fr_dtype type, const float *row, const float *importance) {
    uint8_t bytes[BYTES_MAX];
    float decoded[COLS];
    double sum = 0;
    fr_dtype_encode_weighted(type, row, importance, bytes, COLS);
    fr_dtype_decode(type, bytes, decoded, COLS);
    for (size_t i = 0; i < COLS; i++) {
        double miss = (double)decoded[i] - row[i];
        sum += (importance ? (double)importance[i] : 1) * miss * miss;
    }
    return sum;
}

static double squared_error(fr_dtype type, const float *row) {
    return weighed_error(type, row, NULL);
}

static float noise(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)(*state >> 40) * 0x1p-23f - 1;
}

/* --------------------------------------------------------------------------------------------------------- accuracy */

/* Returns the largest allowed error as a multiple of llama-quantize's error. forerun's search gives slightly smaller
 * errors than this. */
static double bound(fr_dtype type, bool weighed) {
    switch (type) {
    case FR_Q4_K: return 0.97;
    case FR_MXFP4: return 1; /* forerun tries two exponents, llama-quantize only one */
    case FR_Q4_1:
    case FR_Q5_1: return weighed ? 0.95 : 0.85;
    case FR_Q2_K: return weighed ? 0.98 : 0.85;
    case FR_TQ1_0:
    case FR_TQ2_0: return 0.6; /* llama-quantize takes the largest magnitude as the scale */
    case FR_Q3_K: return weighed ? 0.99 : 0.96;
    default: return 0.96;
    }
}

/* Checks the types in `errors`, which has llama-quantize's error for each type. With importances, `errors` lacks the
 * types for which llama-quantize ignores importances. */
static void check_kind(const char *kind, const json_t *errors, const float *importance, const uint8_t *bits,
                       size_t rows) {
    const char *name;
    json_t *error;
    json_object_foreach ((json_t *)(uintptr_t)errors, name, error) {
        fr_dtype type = fr_dtype_from_name(name);
        double ours = 0, theirs = json_number_value(error);
        ck_assert(theirs > 0);
        for (size_t row = 0; row < rows; row++) {
            float values[COLS];
            fr_dtype_decode(FR_BF16, bits + row * COLS * 2, values, COLS);
            ours += weighed_error(type, values, importance);
        }
        if (ours > bound(type, importance) * theirs)
            ck_abort_msg("%s, %s%s: %g, llama-quantize %g", kind, name, importance ? " by importance" : "", ours,
                         theirs);
    }
}

static json_t *recorded(float *importance) {
    json_t *root = json_load_file("tests/data/blocks/encode.json", 0, NULL);
    ck_assert_ptr_nonnull(root);
    const json_t *values = json_object_get(root, "importance");
    ck_assert_uint_eq(json_array_size(values), COLS);
    for (size_t i = 0; i < COLS; i++) importance[i] = (float)json_number_value(json_array_get(values, i));
    return root;
}

START_TEST(accuracy) {
    float importance[COLS];
    json_t *root = recorded(importance), *errors;
    size_t rows = (size_t)json_integer_value(json_object_get(root, "rows")), size = rows * COLS * 2;
    uint8_t *bits = malloc(size);
    FILE *file = fopen("tests/data/blocks/encode.bf16", "rb");
    ck_assert_ptr_nonnull(file);
    const char *kind;
    json_object_foreach (json_object_get(root, "squared_errors"), kind, errors) {
        ck_assert_uint_eq(fread(bits, 1, size, file), size);
        ck_assert_uint_eq(json_object_size(errors), TYPES + 2);
        check_kind(kind, errors, NULL, bits, rows);
        check_kind(kind, json_object_get(json_object_get(root, "weighed_errors"), kind), importance, bits, rows);
    }
    fclose(file);
    free(bits);
    json_decref(root);
}
END_TEST

/* If all weights of a block are -1, 0 or 1 times the same float16, decoding must give exactly these weights. This holds
 * for every ternary or binary type. */
START_TEST(ternary_weights_come_back) {
    static const fr_dtype types[] = {FR_Q1_0, FR_Q2_0, FR_PQ2_0, FR_TQ1_0, FR_PTQ1_0, FR_TQ2_0};
    uint64_t state = 5;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t trial = 0; trial < 50; trial++) {
            float row[COLS], got[COLS], d = 0;
            uint8_t bytes[BYTES_MAX];
            for (size_t i = 0; i < COLS; i++) {
                if (i % fr_dtype_block(types[t]) == 0)
                    d = fr_f32_from_f16(fr_f16_from_f32(0.01f + fabsf(noise(&state))));
                float code = noise(&state);
                bool zero = types[t] != FR_Q1_0 && fabsf(code) < (trial % 5 == 0 ? 0.95f : 0.33f);
                row[i] = zero ? 0 : code > 0 ? d : -d;
            }
            fr_dtype_encode(types[t], row, bytes, COLS);
            fr_dtype_decode(types[t], bytes, got, COLS);
            for (size_t i = 0; i < COLS; i++) ck_assert_float_eq(got[i], row[i]);
        }
}
END_TEST

/* If all columns are equally important, only the sizes of the values decide how much an error counts. If no column is
 * important, the result must be the same as without importances. For any importances, the error must not be larger than
 * that of a row of zeros. */
START_TEST(importances) {
    static const float sizes[] = {0, 1, 1e-38f, 1e-45f, 3e38f};
    uint64_t state = 17;
    float row[COLS], importance[COLS] = {0};
    uint8_t bytes[BYTES_MAX], alike[BYTES_MAX];
    for (size_t i = 0; i < COLS; i++) row[i] = noise(&state);
    for (size_t t = 0; t < TYPES; t++) {
        size_t size = fr_dtype_row_bytes(block_types[t], COLS);
        memset(importance, 0, sizeof importance);
        fr_dtype_encode(block_types[t], row, alike, COLS);
        fr_dtype_encode_weighted(block_types[t], row, importance, bytes, COLS);
        ck_assert_mem_eq(bytes, alike, size);
        for (size_t i = 0; i < COLS; i++) importance[i] = sizes[i % 5 ? 1 + i / 5 % 4 : 0];
        fr_dtype_encode_weighted(block_types[t], row, importance, bytes, COLS);
        bool weighed = block_types[t] != FR_Q8_0 && block_types[t] != FR_MXFP4;
        ck_assert_int_eq(memcmp(bytes, alike, size) != 0, weighed);
        double error = weighed_error(block_types[t], row, importance), zeros = 0;
        for (size_t i = 0; i < COLS; i++) zeros += (double)importance[i] * row[i] * row[i];
        if (!(error <= 0.1 * zeros)) ck_abort_msg("%s: %g of %g", fr_dtype_name(block_types[t]), error, zeros);
    }
}
END_TEST

/* -------------------------------------------------------------------------------------------------------- soundness */

/* A type must keep the values that it can represent. So if blocks are decoded and encoded again, the error must be zero
 * or very small. */
START_TEST(round_trips) {
    uint64_t state = 5;
    for (size_t t = 0; t < TYPES; t++) {
        for (int repeat = 0; repeat < 20; repeat++) {
            float row[COLS], held[COLS];
            uint8_t bytes[BYTES_MAX];
            double squares = 0;
            for (size_t i = 0; i < COLS; i++) row[i] = noise(&state);
            fr_dtype_encode(block_types[t], row, bytes, COLS);
            fr_dtype_decode(block_types[t], bytes, held, COLS);
            for (size_t i = 0; i < COLS; i++) squares += (double)held[i] * held[i];
            double error = squared_error(block_types[t], held), most = block_types[t] >= FR_Q4_K ? 2e-4 : 1e-6;
            /* Q2_K has two scales of 4 bits, so a block that is encoded again is seldom the same. */
            if (block_types[t] == FR_Q2_K) most = 1e-3;
            if (error > most * squares) ck_abort_msg("%s: %g of %g", fr_dtype_name(block_types[t]), error, squares);
        }
    }
}
END_TEST

START_TEST(zeros_and_constants) {
    static const float constants[] = {0, -0.0f, 1, -1, 0.3f, -1e-2f, 65504, -65504};
    for (size_t t = 0; t < TYPES; t++) {
        for (size_t c = 0; c < sizeof constants / sizeof *constants; c++) {
            float row[COLS];
            for (size_t i = 0; i < COLS; i++) row[i] = constants[c];
            double size = (double)constants[c] * constants[c] * COLS, error = squared_error(block_types[t], row);
            double most = block_types[t] == FR_MXFP4 ? 0.04 : 1e-6; /* near 5, MXFP4 has only the values 4 and 6 */
            if (block_types[t] == FR_IQ4_XS) most = 1e-5;           /* near 0.01 the scale d is a float16 denormal */
            if (error > most * size)
                ck_abort_msg("%s: constant %g has error %g", fr_dtype_name(block_types[t]), (double)constants[c],
                             error);
        }
    }
}
END_TEST

/* The values of a row have about the same size. The size goes through all powers of two. The error must not be larger
 * than if all values were stored as zeros, apart from the rounding of sums. */
START_TEST(every_size) {
    uint64_t state = 7;
    for (size_t t = 0; t < TYPES; t++) {
        for (int exponent = -149; exponent <= 15; exponent++) {
            float row[COLS];
            double squares = 0;
            for (size_t i = 0; i < COLS; i++) {
                row[i] = ldexpf(noise(&state), exponent);
                squares += (double)row[i] * row[i];
            }
            double error = squared_error(block_types[t], row);
            double most = block_types[t] == FR_Q2_K                                 ? 0.06
                          : block_types[t] == FR_MXFP4 || block_types[t] == FR_Q3_K ? 0.02
                                                                                    : 0.01;
            if (!(error <= squares * 1.001) || (exponent > -8 && error > squares * most))
                ck_abort_msg("%s: 2^%d: %g of %g", fr_dtype_name(block_types[t]), exponent, error, squares);
        }
    }
}
END_TEST

/* In these rows, one value is far from the others, some values are zero, or all values have the same sign. The result
 * must be finite. Its error must not be larger than that of a row of zeros. */
START_TEST(odd_shapes) {
    uint64_t state = 11;
    for (size_t t = 0; t < TYPES; t++) {
        for (int shape = 0; shape < 60; shape++) {
            float row[COLS];
            double squares = 0;
            for (size_t i = 0; i < COLS; i++) {
                float value = noise(&state);
                row[i] = shape % 4 == 0 ? fabsf(value) : shape % 4 == 1 ? -fabsf(value) : value;
                if (shape % 3 == 0 && i % 7) row[i] = 0;
                if (shape % 5 == 0 && i == (size_t)shape) row[i] *= 1000;
                squares += (double)row[i] * row[i];
            }
            double error = squared_error(block_types[t], row);
            if (!(error <= squares)) ck_abort_msg("%s, shape %d: %g", fr_dtype_name(block_types[t]), shape, error);
        }
    }
}
END_TEST

/* Encoding is not defined for values that are not finite, so the results have no meaning. But sanitizers must find no
 * error. */
START_TEST(not_finite) {
    static const float values[] = {NAN, INFINITY, -INFINITY, 3.4e38f, -3.4e38f, 1e20f};
    for (size_t t = 0; t < TYPES; t++) {
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            float row[COLS] = {0};
            uint8_t bytes[BYTES_MAX];
            for (size_t i = (v + t) % 3; i < COLS; i += 1 + v * 20) row[i] = values[v];
            fr_dtype_encode(block_types[t], row, bytes, COLS);
        }
    }
}
END_TEST

/* An encoded block must depend only on its own values, at any address. */
START_TEST(alone_and_unaligned) {
    uint64_t state = 13;
    float row[4 * COLS];
    for (size_t i = 0; i < 4 * COLS; i++) row[i] = noise(&state);
    for (size_t t = 0; t < TYPES; t++) {
        size_t block = fr_dtype_block(block_types[t]), size = fr_dtype_row_bytes(block_types[t], block);
        uint8_t whole[4 * BYTES_MAX], alone[BYTES_MAX + 1];
        fr_dtype_encode(block_types[t], row, whole, 4 * COLS);
        for (size_t i = 0; i < 4 * COLS / block; i++) {
            fr_dtype_encode(block_types[t], row + i * block, alone + 1, block);
            ck_assert_mem_eq(alone + 1, whole + i * size, size);
        }
    }
}
END_TEST

START_TEST(float_types) {
    static const float values[] = {0, 1, -2.5f, 65504, 70000, -1e30f, 0x1p-24f, 1e-40f, 3.4e38f};
    enum { COUNT = sizeof values / sizeof *values };
    float back[COUNT];
    uint8_t bytes[4 * COUNT + 1];
    fr_dtype_encode(FR_F32, values, bytes + 1, COUNT);
    fr_dtype_decode(FR_F32, bytes + 1, back, COUNT);
    ck_assert_mem_eq(back, values, sizeof values);
    fr_dtype_encode(FR_F16, values, bytes + 1, COUNT);
    fr_dtype_decode(FR_F16, bytes + 1, back, COUNT);
    ck_assert(back[1] == 1 && back[2] == -2.5f && back[3] == 65504 && back[6] == 0x1p-24f);
    ck_assert(back[4] == fr_encode_limit(FR_F16) && back[5] == -65504);
    fr_dtype_encode(FR_BF16, values, bytes + 1, COUNT);
    fr_dtype_decode(FR_BF16, bytes + 1, back, COUNT);
    ck_assert(back[1] == 1 && isfinite(back[8]) && back[8] <= fr_encode_limit(FR_BF16));
    static const char *const others[] = {"iq1_s", "i32", "nvfp4", "q4_k_m", "q4", ""};
    for (size_t i = 0; fr_written_word(i); i++)
        ck_assert_int_eq(strcasecmp(fr_dtype_name(fr_written_from_word(fr_written_word(i))), fr_written_word(i)), 0);
    ck_assert_int_eq(fr_written_from_word("Q6_K"), FR_Q6_K);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_int_eq(fr_written_from_word(others[i]), FR_DTYPE_COUNT);
}
END_TEST

FR_SUITE("encode") {
    TCase *tests = tcase_create("encode");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, ternary_weights_come_back);
    tcase_add_test(tests, accuracy);
    tcase_add_test(tests, importances);
    tcase_add_test(tests, round_trips);
    tcase_add_test(tests, zeros_and_constants);
    tcase_add_test(tests, every_size);
    tcase_add_test(tests, odd_shapes);
    tcase_add_test(tests, not_finite);
    tcase_add_test(tests, alone_and_unaligned);
    tcase_add_test(tests, float_types);
    suite_add_tcase(suite, tests);
}
