/* Tests exp, tanh, gelu and the rotary tables. They are compared with libm in double precision, and with values that
 * transformers 5.17 computed with torch. The kernels are those of this machine's best instruction set. check_kernels
 * shows that all other instruction sets give the same bits. */
/* suite: quick neon */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/dispatch.h"
#include "kernels/rope_table.h"
#include "tests/support/suite.h"

enum { BATCH = 4096 };

/* The distance between two float32 bit patterns that are tested. It is larger where the tests usually run in an
 * emulator, which is slow. */
#ifdef __x86_64__
enum { STEP = 97 };
#else
enum { STEP = 1999 };
#endif

static const fr_kernels *kernels;

static void select_kernels(void) {
    ck_assert_int_eq(fr_kernels_select(NULL, &kernels), FR_OK);
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Returns the error of a value in units of the last place that the exact value has as a float32. */
static double error_in_ulps(float got, double exact) {
    if ((double)got == exact || (float)exact == got) return fabs((double)got - exact) > 0 ? 0.5 : 0;
    int exponent = ilogb(exact) < -126 ? -126 : ilogb(exact);
    return fabs((double)got - exact) / ldexp(1, exponent - 23);
}

/* Stores the larger of two errors in *worst. NaN is larger than any number. The test asserts only the largest error,
 * because ck_assert writes to a file in each of its millions of calls. */
static void keep_worst(double *worst, double error) {
    if (!(error <= *worst)) *worst = error;
}

/* Returns the worst error of a function over every STEP-th bit pattern of both signs, except for NaNs. */
static double worst_error(fr_exp_fn *function, double (*exact)(double)) {
    float x[BATCH], y[BATCH];
    double worst = 0;
    for (uint64_t next = 0; next <= UINT32_MAX;) {
        size_t n = 0;
        for (; n < BATCH && next <= UINT32_MAX; next += STEP)
            if (!isnan(float_of((uint32_t)next))) x[n++] = float_of((uint32_t)next);
        function(y, x, n);
        for (size_t i = 0; i < n; i++) keep_worst(&worst, error_in_ulps(y[i], exact(x[i])));
    }
    return worst;
}

START_TEST(exp_everywhere) {
    ck_assert_double_le(worst_error(kernels->exp, exp), 1.1);
}
END_TEST

START_TEST(tanh_everywhere) {
    ck_assert_double_le(worst_error(kernels->tanh, tanh), 2.6);
}
END_TEST

START_TEST(exact_values) {
    float x[] = {0.0f, -0.0f, -INFINITY, INFINITY, 88.7228317f, 88.72284f, -103.97207f, -103.972084f, 0x1p-149f, NAN};
    float y[10];
    kernels->exp(y, x, 10);
    ck_assert(y[0] == 1 && y[1] == 1 && y[2] == 0 && isinf(y[3]) && y[3] > 0);
    ck_assert(isfinite(y[4]) && isinf(y[5]));  /* just below and just above the largest float */
    ck_assert(y[6] == 0x1p-149f && y[7] == 0); /* just above and just below half the smallest denormal */
    ck_assert(y[8] == 1 && isnan(y[9]));
    kernels->tanh(y, x, 10);
    ck_assert(y[0] == 0 && !signbit(y[0]) && y[1] == 0 && signbit(y[1]) && y[2] == -1 && y[3] == 1);
    ck_assert(y[4] == 1 && y[7] == -1 && y[8] == 0x1p-149f && isnan(y[9]));
}
END_TEST

START_TEST(gelu_silu_and_softcap) {
    float x[BATCH], one[BATCH], y[BATCH];
    double worst = 0;
    for (size_t i = 0; i < BATCH; i++) {
        x[i] = ((float)i - BATCH / 2) / 128;
        one[i] = 1;
    }
    kernels->gelu_mul(y, x, one, BATCH);
    for (size_t i = 0; i < BATCH; i++) {
        double v = x[i], inner = sqrt(2 / M_PI) * (v + 0.044715 * v * v * v);
        keep_worst(&worst, fabs((double)y[i] - 0.5 * v * (1 + tanh(inner))) / (1 + fabs(v)));
    }
    ck_assert_double_le(worst, 4e-7);
    worst = 0;
    kernels->gelu_erf(y, x, BATCH);
    for (size_t i = 0; i < BATCH; i++) {
        double v = x[i], expected = 0.5 * v * erfc(-v * sqrt(0.5));
        keep_worst(&worst, fabs((double)y[i] - expected) / (6e-7 * (1 + v * v) * fabs(expected) + 1e-37));
    }
    ck_assert_double_le(worst, 1);
    worst = 0;
    kernels->silu_mul(y, x, one, BATCH);
    for (size_t i = 0; i < BATCH; i++) keep_worst(&worst, error_in_ulps(y[i], (double)x[i] / (1 + exp(-(double)x[i]))));
    ck_assert_double_le(worst, 3);
    worst = 0;
    memcpy(y, x, sizeof y);
    kernels->softcap(y, BATCH, 30);
    for (size_t i = 0; i < BATCH; i++) keep_worst(&worst, error_in_ulps(y[i], 30 * tanh((double)x[i] / 30)));
    ck_assert_double_le(worst, 5);
}
END_TEST

START_TEST(layer_norm) {
    float x[BATCH], weight[BATCH], bias[BATCH], y[BATCH];
    double sum = 0, squares = 0;
    for (size_t i = 0; i < BATCH; i++) {
        x[i] = 5 + (float)(i * 7919 % 1000) / 100;
        weight[i] = (float)(i % 5) - 2;
        bias[i] = (float)(i % 3);
        sum += x[i];
    }
    for (size_t i = 0; i < BATCH; i++) squares += (x[i] - sum / BATCH) * (x[i] - sum / BATCH);
    kernels->layernorm(y, x, weight, bias, BATCH, 1e-5f);
    for (size_t i = 0; i < BATCH; i++) {
        double expected = (x[i] - sum / BATCH) / sqrt(squares / BATCH + 1e-5) * weight[i] + bias[i];
        ck_assert_double_le(fabs((double)y[i] - expected), 2e-6);
    }
}
END_TEST

/* ------------------------------------------------------------------------------------------------- rotary tables */

/* Frequencies of rotary positions, computed by transformers 5.17 (ROPE_INIT_FUNCTIONS with torch 2, in float32). */
static const struct {
    fr_rope_kind kind;
    double theta;
    size_t head_dim;
    double partial, factor;
    float inverse[7]; /* the frequencies at indices 1 2 5 17 31 63 127 */
} published[] = {
    {FR_ROPE_DEFAULT,
     10000,
     256,
     1,
     1,
     {0x1.dc73fp-1f, 0x1.bb5faep-1f, 0x1.654a0cp-1f, 0x1.2d55d4p-2f, 0x1.b828ccp-4f, 0x1.6020a4p-7f, 0x1.c2b922p-14f}},
    {FR_ROPE_PROPORTIONAL,
     1000000,
     512,
     0.25,
     1,
     {0x1.e519fp-1f, 0x1.cb9da6p-1f, 0x1.86ea46p-1f, 0x1.99218ep-2f, 0x1.8062cap-3f, 0x1.116b1p-5f, 0}},
    {FR_ROPE_PROPORTIONAL,
     1000000,
     128,
     0.5,
     8,
     {0x1.9c975ap-4f, 0x1.4c7bcp-4f, 0x1.5bf9fep-5f, 0x1.a1835p-9f, 0x1.454deep-13f, 0, NAN}},
};

START_TEST(published_frequencies) {
    static const size_t indices[] = {1, 2, 5, 17, 31, 63, 127};
    float inverse[256];
    fr_rope_frequencies(published[_i].kind, published[_i].theta, published[_i].head_dim, published[_i].partial,
                        published[_i].factor, inverse);
    ck_assert(inverse[0] * (float)published[_i].factor == 1);
    for (size_t i = 0; i < 7 && !isnan(published[_i].inverse[i]); i++)
        ck_assert_msg(error_in_ulps(inverse[indices[i]], published[_i].inverse[i]) <= 1, "index %zu: %a, not %a",
                      indices[i], (double)inverse[indices[i]], (double)published[_i].inverse[i]);
}
END_TEST

/* The settings are those of Llama 3.2: theta 500000, heads of width 64, factors 32, 1 and 4, and 8192 positions. */
START_TEST(published_scaling) {
    static const float published_llama[] = {
        0x1.000000p+0f,  0x1.53c38cp-1f,  0x1.c2ef78p-2f,  0x1.2b3dc6p-2f,  0x1.8d2760p-3f,  0x1.078d40p-3f,
        0x1.5dc95ap-4f,  0x1.d03ccep-5f,  0x1.341190p-5f,  0x1.98de92p-6f,  0x1.0f5386p-6f,  0x1.681adap-7f,
        0x1.ddee9ep-8f,  0x1.3d2804p-8f,  0x1.a4ee40p-9f,  0x1.524f36p-10f, 0x1.c26c40p-12f, 0x1.9731eep-14f,
        0x1.46831ap-16f, 0x1.b15902p-17f, 0x1.1f91f0p-17f, 0x1.7da9e8p-18f, 0x1.fa8b86p-19f, 0x1.5024d6p-19f,
        0x1.be2188p-20f, 0x1.280d96p-20f, 0x1.88ec20p-21f, 0x1.04be68p-21f, 0x1.5a0f4ep-22f, 0x1.cb4a9ap-23f,
        0x1.30c94ep-23f, 0x1.948360p-24f};
    float inverse[32];
    fr_rope_frequencies(FR_ROPE_LLAMA3, 500000, 64, 1, 32, inverse);
    fr_rope_scale(inverse, 32, 32, 1, 4, 8192);
    for (size_t i = 0; i < 32; i++)
        ck_assert_msg(error_in_ulps(inverse[i], published_llama[i]) <= 2, "index %zu: %a, not %a", i,
                      (double)inverse[i], (double)published_llama[i]);
}
END_TEST

/* Settings of YaRN, which has a ramp between pairs that rotate fast and pairs that rotate slowly. The settings are
 * those of DeepSeek-V3, few pairs that are all on the ramp, a ramp of a single pair, and those of gpt-oss, whose ramp
 * bounds are not truncated. */
static const struct {
    size_t pairs;
    double theta, factor, fast, slow, trained;
    float inverse[32];
    bool untruncated;
} published_yarn[] = {
    {32,
     10000,
     40,
     32,
     1,
     4096,
     {0x1.000000p+0f,  0x1.7ff222p-1f,  0x1.1feb34p-1f,  0x1.afd136p-2f,  0x1.43d136p-2f,  0x1.e5a846p-3f,
      0x1.6c310ep-3f,  0x1.111aeep-3f,  0x1.99999ap-4f,  0x1.33281ap-4f,  0x1.ccab84p-5f,  0x1.3f8b74p-5f,
      0x1.b86436p-6f,  0x1.2d1b86p-6f,  0x1.97e506p-7f,  0x1.111aeep-7f,  0x1.6872b2p-8f,  0x1.d2e0ccp-9f,
      0x1.26d42cp-9f,  0x1.67459ap-10f, 0x1.9e7c6ep-11f, 0x1.b32624p-12f, 0x1.74eea6p-13f, 0x1.17a8e2p-15f,
      0x1.a36e2ep-16f, 0x1.3a8746p-16f, 0x1.d7b9e0p-17f, 0x1.61bea2p-17f, 0x1.094566p-17f, 0x1.8dd9bap-18f,
      0x1.2a5884p-18f, 0x1.bf749ep-19f},
     false},
    {5, 5000, 3, 7, 2, 100, {0x1p+0f, 0x1.f122aap-4f, 0x1.6a06d8p-7f, 0x1.07a31ap-9f, 0x1.7ff988p-12f}, false},
    {8,
     10000,
     4,
     2,
     1.9,
     64,
     {0x1p+0f, 0x1.43d136p-2f, 0x1.99999ap-6f, 0x1.030dc6p-7f, 0x1.47ae14p-9f, 0x1.9e7c7p-11f, 0x1.0624dep-12f,
      0x1.4b96cp-14f},
     false},
    {32,
     150000,
     32,
     32,
     1,
     4096,
     {0x1.000000p+0f,  0x1.60ca6ap-1f,  0x1.e62d44p-2f,  0x1.4eff54p-2f,  0x1.cda7f4p-3f,  0x1.3e19fap-3f,
      0x1.b65f3ep-4f,  0x1.2e0ec8p-4f,  0x1.a04328p-5f,  0x1.03bbaap-5f,  0x1.3cc8dep-6f,  0x1.7bd928p-7f,
      0x1.bd5080p-8f,  0x1.f9fc28p-9f,  0x1.127006p-9f,  0x1.13eef0p-10f, 0x1.dea878p-12f, 0x1.0f3372p-13f,
      0x1.415b8cp-15f, 0x1.badbf8p-16f, 0x1.312650p-16f, 0x1.a485f4p-17f, 0x1.21c258p-17f, 0x1.8f5056p-18f,
      0x1.132518p-18f, 0x1.7b2c8ep-19f, 0x1.05448ap-19f, 0x1.680cd0p-20f, 0x1.f02e50p-21f, 0x1.55e400p-21f,
      0x1.d727d6p-22f, 0x1.44a5a6p-22f},
     true},
};

START_TEST(published_yarn_scaling) {
    float inverse[32];
    size_t pairs = published_yarn[_i].pairs;
    double theta = published_yarn[_i].theta;
    fr_rope_frequencies(FR_ROPE_YARN, theta, 2 * pairs, 1, 1, inverse);
    fr_rope_yarn(inverse, pairs, theta, published_yarn[_i].factor, published_yarn[_i].fast, published_yarn[_i].slow,
                 published_yarn[_i].trained, !published_yarn[_i].untruncated);
    for (size_t i = 0; i < pairs; i++)
        ck_assert_msg(error_in_ulps(inverse[i], published_yarn[_i].inverse[i]) <= 2, "index %zu: %a, not %a", i,
                      (double)inverse[i], (double)published_yarn[_i].inverse[i]);
}
END_TEST

/* The expected values are transformers' attention_factor. The first is for mscale 1, mscale_all_dim 0.5 and factor 3.
 * The second is for factor 4 alone. */
START_TEST(published_yarn_magnitudes) {
    double factor = fr_rope_yarn_magnitude(3, 1) / fr_rope_yarn_magnitude(3, 0.5);
    ck_assert_double_eq_tol(factor, 0x1.0d547ba360690p+0, 1e-14);
    ck_assert_double_eq_tol(fr_rope_yarn_magnitude(4, 1), 0x1.237d37fe5d298p+0, 1e-14);
    ck_assert(fr_rope_yarn_magnitude(1, 1) == 1 && fr_rope_yarn_magnitude(0.5, 1) == 1);
}
END_TEST

START_TEST(frequencies) {
    static const double thetas[] = {10000, 500000, 1000000, 1e7, 10001.3};
    for (size_t t = 0; t < 5; t++)
        for (size_t head_dim = 2; head_dim <= 512; head_dim += 2) {
            float inverse[256];
            double worst = 0;
            fr_rope_frequencies(FR_ROPE_DEFAULT, thetas[t], head_dim, 0.1, 9, inverse);
            for (size_t i = 0; i < head_dim / 2; i++) {
                float power = (float)pow((float)thetas[t], (float)(2 * i) / (float)head_dim);
                keep_worst(&worst, error_in_ulps(inverse[i], 1.0f / power));
            }
            ck_assert_double_le(worst, 1);
        }
}
END_TEST

/* A share of 0.3 of a head of width 10 is 3 values, or 1.5 pairs. So one pair is rotated. With a share above 1 the
 * whole head is rotated. */
START_TEST(which_pairs_turn) {
    float inverse[5];
    fr_rope_frequencies(FR_ROPE_PROPORTIONAL, 100, 10, 0.3, 2, inverse);
    ck_assert(inverse[0] == 0.5f);
    for (size_t i = 1; i < 5; i++) ck_assert(inverse[i] == 0);
    fr_rope_frequencies(FR_ROPE_PROPORTIONAL, 100, 10, 1.5, 1, inverse);
    for (size_t i = 0; i < 5; i++) ck_assert(inverse[i] > 0);
}
END_TEST

static void check_angles(const float *inverse, size_t n, int64_t position) {
    float cosine[256], sine[256];
    double worst = 0;
    fr_rope_angles(inverse, n, position, cosine, sine);
    for (size_t i = 0; i < n; i++) {
        float angle = (float)position * inverse[i];
        keep_worst(&worst, error_in_ulps(cosine[i], cos(angle)));
        keep_worst(&worst, error_in_ulps(sine[i], sin(angle)));
    }
    ck_assert_double_le(worst, 0.501);
}

START_TEST(angles) {
    float inverse[256];
    fr_rope_frequencies(FR_ROPE_DEFAULT, 10000, 512, 1, 1, inverse);
    for (int64_t position = 0; position <= 4096; position++) check_angles(inverse, 256, position);
    for (int64_t position = 4097; position <= 1 << 20; position += 1019) check_angles(inverse, 256, position);
    check_angles(inverse, 256, 1 << 20);
    check_angles(inverse, 256, 1 << 27);
    check_angles(inverse, 256, -12345);
}
END_TEST

/* Sums of integers are exact, and for blocks of 4^k values the transform's factor is exact too. So each result must be
 * exactly that of the Hadamard matrix. The matrix has -1 to the power of n in row r and column c, where n is the number
 * of bits that are set in both r and c. */
START_TEST(hadamard_of_integers) {
    enum { N = 4096 };
    static float x[N], signs[N], y[N];
    for (size_t i = 0; i < N; i++) {
        x[i] = (float)((int)(i * 2654435761u >> 20 & 255) - 128);
        signs[i] = i * 40503u >> 7 & 1 ? 1.0f : -1.0f;
    }
    for (size_t block = 1; block <= 1024; block *= 4) {
        kernels->hadamard(y, x, signs, block, N);
        for (size_t r = 0; r < N; r++) {
            float sum = 0, root = sqrtf((float)block);
            for (size_t c = 0; c < block; c++) {
                size_t at = r / block * block + c;
                sum += __builtin_popcountll(r % block & c) % 2 ? -x[at] * signs[at] : x[at] * signs[at];
            }
            ck_assert_float_eq(y[r], sum / root);
        }
    }
}
END_TEST

START_TEST(standing_pairs) {
    float inverse[2] = {0, 0}, cosine[2], sine[2];
    fr_rope_angles(inverse, 2, 1 << 20, cosine, sine);
    for (size_t i = 0; i < 2; i++) ck_assert(cosine[i] == 1 && sine[i] == 0);
}
END_TEST

FR_SUITE("math") {
    TCase *functions = tcase_create("functions"), *tables = tcase_create("rotary tables");
    tcase_add_unchecked_fixture(functions, select_kernels, NULL);
    tcase_set_timeout(functions, 600);
    tcase_add_test(functions, exp_everywhere);
    tcase_add_test(functions, tanh_everywhere);
    tcase_add_test(functions, exact_values);
    tcase_add_test(functions, gelu_silu_and_softcap);
    tcase_add_test(functions, layer_norm);
    tcase_add_test(functions, hadamard_of_integers);
    tcase_set_timeout(tables, 600);
    tcase_add_loop_test(tables, published_frequencies, 0, sizeof published / sizeof published[0]);
    tcase_add_test(tables, published_scaling);
    tcase_add_loop_test(tables, published_yarn_scaling, 0, sizeof published_yarn / sizeof published_yarn[0]);
    tcase_add_test(tables, published_yarn_magnitudes);
    tcase_add_test(tables, frequencies);
    tcase_add_test(tables, which_pairs_turn);
    tcase_add_test(tables, angles);
    tcase_add_test(tables, standing_pairs);
    suite_add_tcase(suite, functions);
    suite_add_tcase(suite, tables);
}
