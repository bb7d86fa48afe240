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

static void fill_starts(float *row, double position, size_t dims) {
    float cosine[N], sine[N];
    for (size_t i = 0; i < dims / 2; i++) {
        cosine[i] = (float)cos(position * frequency(i, dims));
        sine[i] = (float)sin(position * frequency(i, dims));
    }
    fr_key_means_fill(row, cosine, sine, dims);
}

static void fill_columns(float *columns, size_t dims) {
    float cosine[N], sine[N];
    for (size_t r = 0; r < FR_KEY_MEANS_BLOCK; r++) {
        for (size_t i = 0; i < dims / 2; i++) {
            cosine[i] = (float)cos((double)r * frequency(i, dims));
            sine[i] = (float)sin((double)r * frequency(i, dims));
        }
        fr_key_means_fill_columns(columns, r, cosine, sine, dims);
    }
}

/* Returns true if a pair is one of the fast ones of the test, which are the first pairs and one pair far behind. */
static bool is_fast(size_t pair, size_t dims) {
    return pair < 3 || (pair == 20 && dims == N);
}

/* Computes in double the position's mean. A fast pair of `mean` is turned by the angles of the position. The line of
 * any other pair is turned by the angles of the block's first position. */
static void expect(const fr_key_means *means, size_t position, double *mean) {
    size_t dims = means->dims, r = position % FR_KEY_MEANS_BLOCK;
    for (size_t i = 0; i < N; i++) {
        double line = (double)means->level[i] + ((double)r - 31.5) * (double)means->slope[i];
        mean[i] = position ? line : (double)means->first[i];
    }
    for (size_t i = 0; i < dims / 2 && position; i++) {
        size_t a = means->neox ? i : 2 * i, b = means->neox ? i + dims / 2 : 2 * i + 1;
        double angle = (double)(is_fast(i, dims) ? position : position - r) * frequency(i, dims);
        double x = is_fast(i, dims) ? (double)means->mean[a] : mean[a];
        double y = is_fast(i, dims) ? (double)means->mean[b] : mean[b];
        mean[a] = x * cos(angle) - y * sin(angle);
        mean[b] = x * sin(angle) + y * cos(angle);
    }
}

static double dot_of(const float *a, const float *b) {
    double sum = 0;
    for (size_t i = 0; i < N; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

/* Gives the score of a position's mean as the kernels compute it: from the block's factors and the columns. */
static double score_of(const fr_key_means *means, const float *query, size_t position) {
    static const double scale = .25;
    float factors[FR_KEY_MEANS_USED];
    fr_key_means_block at;
    double score = 0;
    fr_key_means_enter(means, position / FR_KEY_MEANS_BLOCK, &at);
    if (position == 0) return dot_of(query, at.rows[2]);
    fr_key_means_factors(means, &at, query, (float)(scale * dot_of(query, at.rows[0])),
                         (float)(scale * dot_of(query, at.rows[1])), (float)scale, factors);
    for (size_t k = 0; k < means->used_count; k++)
        score += (double)factors[k] *
                 (double)means->columns[means->used[k] * FR_KEY_MEANS_BLOCK + position % FR_KEY_MEANS_BLOCK];
    return score / scale;
}

static void check_means(size_t dims, bool neox) {
    static float starts[BLOCKS * N], columns[(2 + N) * FR_KEY_MEANS_BLOCK];
    float first[N], mean[N], level[N], slope[N], query[N], got[N], key[N], scale[N], scaled[N];
    uint16_t used[FR_KEY_MEANS_USED];
    double expected[N];
    fr_key_means means = {.head_dim = N,
                          .dims = dims,
                          .neox = neox,
                          .first = first,
                          .mean = mean,
                          .level = level,
                          .slope = slope,
                          .starts = starts,
                          .columns = columns,
                          .used = used,
                          .key_scale = scale};
    for (size_t i = 0; i < N; i++) {
        first[i] = random_value();
        mean[i] = random_value();
        level[i] = random_value();
        slope[i] = random_value() / 32;
        query[i] = random_value();
        key[i] = random_value();
        scale[i] = 2 + random_value();
    }
    fr_key_means_begin(&means);
    for (size_t i = 0; i < dims / 2; i++) {
        size_t a, b;
        if (!is_fast(i, dims)) continue;
        fr_key_means_add_fast(&means, i);
        fr_key_means_pair(&means, i, &a, &b);
        level[a] = level[b] = slope[a] = slope[b] = 0;
    }
    for (size_t block = 0; block < BLOCKS; block++)
        fill_starts(starts + block * dims, (double)(block * FR_KEY_MEANS_BLOCK), dims);
    fill_columns(columns, dims);
    for (size_t p = 0; p < BLOCKS * FR_KEY_MEANS_BLOCK; p++) {
        double whole = 0, score = score_of(&means, query, p);
        fr_key_means_at(&means, p, got);
        expect(&means, p, expected);
        memcpy(scaled, key, sizeof key);
        fr_key_means_remove(&means, p, scaled);
        for (size_t i = 0; i < N; i++) {
            ck_assert_msg(fabs((double)got[i] - expected[i]) < 1e-6, "position %zu, value %zu: %g, not %g", p, i,
                          (double)got[i], expected[i]);
            double left = ((double)key[i] - expected[i]) * (double)scale[i];
            ck_assert_msg(fabs((double)scaled[i] - left) < 5e-6, "position %zu, value %zu: %g is stored, not %g", p, i,
                          (double)scaled[i], left);
            whole += (double)query[i] * expected[i];
        }
        ck_assert_msg(fabs(score - whole) < 2e-5, "position %zu: a score of %g, not %g", p, score, whole);
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
