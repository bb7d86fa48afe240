/* Tests means that are subtracted from keys. The mean must be rotated by the position, as keys are; a reference in
 * double precision checks this. For each position, attention adds a score for the mean. This score must be the dot
 * product of the query and the mean that was subtracted from the position's key. After the mean is subtracted, the key
 * is multiplied by scales. */
/* suite: quick neon */
#include <check.h>
#include <math.h>
#include <string.h>

#include "kernels/key_means.h"
#include "tests/support/suite.h"

enum { N = 96, BLOCKS = 5 };

static uint32_t state = 1;

static float random_value(void) {
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / 0x1p23F - 1;
}

static double frequency(size_t i, size_t dims) {
    return pow(10000, -2.0 * (double)i / (double)dims);
}

static void fill_angles(float *row, double position, size_t dims, size_t width) {
    float cosine[N], sine[N];
    for (size_t i = 0; i < dims / 2; i++) {
        cosine[i] = (float)cos(position * frequency(i, dims));
        sine[i] = (float)sin(position * frequency(i, dims));
    }
    fr_key_means_fill(row, cosine, sine, dims, width);
}

/* Computes the mean of a position in double precision: the mean rotated by the position's angles. */
static void expect(const fr_key_means *means, size_t position, double *mean) {
    size_t dims = means->dims;
    for (size_t i = 0; i < N; i++) mean[i] = (double)(position ? means->mean : means->first)[i];
    for (size_t i = 0; i < dims / 2 && position; i++) {
        size_t a = means->neox ? i : 2 * i, b = means->neox ? i + dims / 2 : 2 * i + 1;
        double angle = (double)position * frequency(i, dims), x = mean[a], y = mean[b];
        mean[a] = x * cos(angle) - y * sin(angle);
        mean[b] = x * sin(angle) + y * cos(angle);
    }
}

static void check_means(size_t dims, bool neox) {
    static float starts[BLOCKS * N], turns[FR_KEY_MEANS_BLOCK * N];
    float first[N], mean[N], query[N], start[N], u[N], got[N], key[N], scale[N], scaled[N];
    double expected[N];
    const fr_key_means means = {N, dims, neox, first, mean, starts, turns, NULL, scale, NULL};
    for (size_t i = 0; i < N; i++) {
        first[i] = random_value();
        mean[i] = random_value();
        query[i] = random_value();
        key[i] = random_value();
        scale[i] = 2 + random_value();
    }
    for (size_t block = 0; block < BLOCKS; block++)
        fill_angles(starts + block * dims, (double)(block * FR_KEY_MEANS_BLOCK), dims, dims);
    for (size_t i = 0; i < FR_KEY_MEANS_BLOCK; i++) fill_angles(turns + i * N, (double)i, dims, N);
    for (size_t p = 0; p < BLOCKS * FR_KEY_MEANS_BLOCK; p++) {
        double whole = 0, score = 0;
        fr_key_means_at(&means, p, got);
        expect(&means, p, expected);
        fr_key_means_start(&means, p / FR_KEY_MEANS_BLOCK, start);
        fr_key_means_query(&means, start, query, u);
        memcpy(scaled, key, sizeof key);
        fr_key_means_remove(&means, p, scaled);
        for (size_t i = 0; i < N; i++) {
            ck_assert_msg(fabs((double)got[i] - expected[i]) < 1e-6, "position %zu, value %zu: %g, not %g", p, i,
                          (double)got[i], expected[i]);
            double left = ((double)key[i] - expected[i]) * (double)scale[i];
            ck_assert_msg(fabs((double)scaled[i] - left) < 5e-6, "position %zu, value %zu: %g is stored, not %g", p, i,
                          (double)scaled[i], left);
            whole += (double)query[i] * expected[i];
            score += (double)u[i] * (double)turns[p % FR_KEY_MEANS_BLOCK * N + i];
        }
        if (p > 0) ck_assert_msg(fabs(score - whole) < 1e-5, "position %zu: a score of %g, not %g", p, score, whole);
    }
}

START_TEST(means_turn_with_the_position) {
    static const size_t dims[] = {0, 2, 32, 64, N};
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
        for (int neox = 0; neox < 2; neox++) check_means(dims[d], neox);
}
END_TEST

FR_SUITE("key_means") {
    TCase *cases = tcase_create("means");
    tcase_add_test(cases, means_turn_with_the_position);
    suite_add_tcase(suite, cases);
}
