/* Tests the operations of gated DeltaNet and Mamba-2. The recurrences, the gates and the convolution are compared with
 * references in double precision, which use libm. They are also compared with values of transformers 5.17 (qwen3_5's
 * torch_recurrent_gated_delta_rule, and silu of conv1d). The kernels are those of this machine's best instruction set.
 * check_kernels shows that all other instruction sets give the same bits. */
/* suite: neon */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/deltanet_gates.h"
#include "kernels/dispatch.h"
#include "tests/support/suite.h"

enum { DIM_MAX = 128, ROWS = 512 };

static const fr_kernels *kernels;

static void select_kernels(void) {
    ck_assert_int_eq(fr_kernels_select(NULL, &kernels), FR_OK);
}

/* Stores the larger of two errors in *worst. NaN is larger than any number. */
static void keep_worst(double *worst, double error) {
    if (!(error <= *worst)) *worst = error;
}

/* Returns a random number from -1 to 1 (SplitMix64). */
static float random_value(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (float)(int32_t)((z ^ z >> 31) >> 32) * 0x1p-31f;
}

static void fill(float *x, size_t n, uint64_t *state) {
    for (size_t i = 0; i < n; i++) x[i] = random_value(state);
}

/* ---------------------------------------------------------------------------------------------- one head of a layer */

/* The rows of one head as the projections and the convolution output them, and the inputs of the head's gates. */
typedef struct head_case {
    size_t key_dim, value_dim, rows;
    float query[ROWS][DIM_MAX], key[ROWS][DIM_MAX], value[ROWS][DIM_MAX], out[ROWS][DIM_MAX];
    float a[ROWS], b[ROWS], a_log, bias;
    /* true for Kimi Delta Attention: each value of a key has its own decay, computed from `fades` and `biases` */
    bool by_key;
    float lower_bound, fades[ROWS][DIM_MAX], decays[ROWS][DIM_MAX], biases[DIM_MAX];
} head_case;

/* Does what a layer does for one head. It computes the norms (by rmsnorm and scale), then the gates, and then the state
 * in runs of `step` rows. The last row of each run is run twice. The first time it represents a draft that is
 * rejected. */
static void run_head(head_case *c, size_t step) {
    static float state[DIM_MAX * DIM_MAX], scratch[FR_DELTANET_TOGETHER * FR_DELTANET_STRIP * DIM_MAX];
    static fr_deltanet_row rows[ROWS];
    size_t n = c->key_dim;
    float slope, decay, beta;
    memset(state, 0, sizeof state);
    fr_deltanet_slope(&slope, &c->a_log, 1);
    for (size_t r = 0; r < c->rows; r++) {
        kernels->rmsnorm(c->query[r], c->query[r], NULL, n, 1e-6f / (float)n);
        kernels->scale(c->query[r], n, (float)(1 / (double)n));
        kernels->rmsnorm(c->key[r], c->key[r], NULL, n, 1e-6f / (float)n);
        kernels->scale(c->key[r], n, (float)(1 / sqrt((double)n)));
        fr_deltanet_decay(&decay, &c->a[r], &c->bias, &slope, 1);
        fr_deltanet_beta(&beta, &c->b[r], 1);
        rows[r] = (fr_deltanet_row){c->key[r], c->query[r], c->value[r], c->out[r], decay, beta, NULL};
        if (!c->by_key) continue;
        memcpy(c->decays[r], c->fades[r], n * sizeof *c->decays[r]);
        fr_kda_decays(c->decays[r], c->biases, slope, c->lower_bound, n);
        rows[r].decay = NAN;
        rows[r].decays = c->decays[r];
    }
    fr_deltanet run = {.state = state, .key_dim = n, .value_dim = c->value_dim, .scratch = scratch};
    for (size_t r = 0; r < c->rows; r += run.keeps) {
        run.rows = rows + r;
        run.count = c->rows - r < step ? c->rows - r : step;
        run.keeps = run.count > 1 ? run.count - 1 : 1;
        kernels->deltanet(&run);
    }
}

/* Computes the head by its definition in double precision. Writes the results to exact[row][column]. */
static void define_head(const head_case *c, double (*exact)[DIM_MAX]) {
    static double state[DIM_MAX][DIM_MAX];
    memset(state, 0, sizeof state);
    for (size_t r = 0; r < c->rows; r++) {
        double keys = 1e-6, queries = 1e-6, x = (double)c->a[r] + (double)c->bias;
        for (size_t k = 0; k < c->key_dim; k++) {
            keys += (double)c->key[r][k] * c->key[r][k];
            queries += (double)c->query[r][k] * c->query[r][k];
        }
        double decay = exp(-exp(c->a_log) * log1p(exp(x))), beta = 1 / (1 + exp(-c->b[r]));
        for (size_t v = 0; v < c->value_dim; v++) {
            double seen = 0, out = 0;
            for (size_t k = 0; k < c->key_dim; k++) {
                double fade = (double)c->fades[r][k] + (double)c->biases[k], rate = exp(c->a_log);
                double bounded = exp(c->lower_bound / (1 + exp(-rate * fade)));
                if (c->by_key) decay = c->lower_bound < 0 ? bounded : exp(-rate * log1p(exp(fade)));
                state[v][k] *= decay;
                seen += state[v][k] * c->key[r][k] / sqrt(keys);
            }
            for (size_t k = 0; k < c->key_dim; k++) {
                state[v][k] += c->key[r][k] / sqrt(keys) * (c->value[r][v] - seen) * beta;
                out += state[v][k] * c->query[r][k] / sqrt(queries) / sqrt((double)c->key_dim);
            }
            exact[r][v] = out;
        }
    }
}

static const struct head_shape {
    size_t key_dim, value_dim, rows, step;
    float a_log, bias; /* together they decide how fast the state fades: slowly in some shapes, at once in others */
    bool by_key;
    float lower_bound;
} head_shapes[] = {{128, 128, ROWS, 64, -4, -3, false, 0}, {128, 128, ROWS, 2, -1, 1, false, 0},
                   {96, 128, ROWS, 7, 2.7f, 2, false, 0},  {37, 21, ROWS, 1, -2, 0, false, 0},
                   {1, 1, 100, 3, -3, 0, false, 0},        {3, 16, 100, 5, -6, -8, false, 0},
                   {128, 128, ROWS, 64, -3, -3, true, 0},  {37, 21, ROWS, 2, -1, 1, true, 0},
                   {64, 64, ROWS, 7, 1, -3, true, -5},     {5, 33, 100, 3, -2, 0, true, -0.5f}};

/* Compares a head with its definition. Errors are relative to the largest result of all rows. Although errors in the
 * state are carried from row to row, they must be as small as rounding errors. */
START_TEST(a_head_over_many_rows) {
    static head_case c;
    static double exact[ROWS][DIM_MAX];
    const struct head_shape *shape = &head_shapes[_i];
    uint64_t random = (uint64_t)_i;
    double scale = 0, worst = 0;
    c.key_dim = shape->key_dim, c.value_dim = shape->value_dim, c.rows = shape->rows;
    c.a_log = shape->a_log, c.bias = shape->bias;
    c.by_key = shape->by_key, c.lower_bound = shape->lower_bound;
    fill(c.query[0], ROWS * DIM_MAX, &random);
    fill(c.fades[0], ROWS * DIM_MAX, &random);
    fill(c.biases, DIM_MAX, &random);
    for (size_t k = 0; k < DIM_MAX; k++) c.biases[k] += shape->bias;
    fill(c.key[0], ROWS * DIM_MAX, &random);
    fill(c.value[0], ROWS * DIM_MAX, &random);
    fill(c.a, ROWS, &random);
    fill(c.b, ROWS, &random);
    define_head(&c, exact);
    run_head(&c, shape->step);
    for (size_t r = 0; r < c.rows; r++)
        for (size_t v = 0; v < c.value_dim; v++) scale = fmax(scale, fabs(exact[r][v]));
    for (size_t r = 0; r < c.rows; r++)
        for (size_t v = 0; v < c.value_dim; v++) keep_worst(&worst, fabs((double)c.out[r][v] - exact[r][v]) / scale);
    ck_assert_msg(worst <= 1e-6, "shape %d: %g", _i, worst);
    ck_assert_double_gt(scale, 0.01);
}
END_TEST

/* Fills x with numbers that a float32 holds exactly. The script that made the references uses the same numbers. */
static void fill_published(float *x, size_t n, size_t start) {
    for (size_t i = 0; i < n; i++) x[i] = (float)((int)((start + i) * 29 + 7) % 61 - 30) / 16;
}

START_TEST(what_transformers_computes) {
    static const float expected[4][5] = {
        {5.00160083e-02f, -3.05653382e-02f, 5.83520085e-02f, -2.22293362e-02f, 6.66880086e-02f},
        {-6.00639768e-02f, 1.59552962e-01f, -5.04076816e-02f, 1.69209257e-01f, -4.07514013e-02f},
        {-2.02825427e-01f, 1.18347824e-01f, -1.76702678e-01f, 1.44470572e-01f, -1.50579959e-01f},
        {-1.38231553e-03f, -1.07181281e-01f, 5.14761582e-02f, -5.43228090e-02f, 1.04334600e-01f}};
    static head_case c = {.key_dim = 6, .value_dim = 5, .rows = 4, .a_log = 0.75f, .bias = -1.25f};
    for (size_t r = 0; r < 4; r++) {
        fill_published(c.query[r], 6, r * 6);
        fill_published(c.key[r], 6, 100 + r * 6);
        fill_published(c.value[r], 5, 200 + r * 5);
    }
    fill_published(c.a, 4, 300);
    fill_published(c.b, 4, 400);
    run_head(&c, 2);
    for (size_t r = 0; r < 4; r++)
        for (size_t v = 0; v < 5; v++)
            ck_assert_msg(fabsf(c.out[r][v] - expected[r][v]) <= 1e-7f, "row %zu, column %zu: %g, not %g", r, v,
                          (double)c.out[r][v], (double)expected[r][v]);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------- Mamba-2 */

/* Runs a head of Mamba-2 over many rows, in runs of `step` rows. The last row of each run is run twice; the first time
 * it represents a draft that is rejected. The results are compared with the recurrence in double precision. Errors are
 * relative to the largest result. */
START_TEST(a_head_of_mamba_over_many_rows) {
    static float state[DIM_MAX * DIM_MAX], scratch[FR_DELTANET_TOGETHER * FR_DELTANET_STRIP * DIM_MAX];
    static head_case c;
    static fr_deltanet_row rows[ROWS];
    static double exact[DIM_MAX][DIM_MAX];
    const struct head_shape *shape = &head_shapes[_i];
    uint64_t random = 77 + (uint64_t)_i;
    double scale = 0, worst = 0;
    const float skip = 0.7f;
    float slope;
    fill(c.query[0], ROWS * DIM_MAX, &random);
    fill(c.key[0], ROWS * DIM_MAX, &random);
    fill(c.value[0], ROWS * DIM_MAX, &random);
    fill(c.b, ROWS, &random);
    fr_deltanet_slope(&slope, &shape->a_log, 1);
    for (size_t r = 0; r < shape->rows; r++) {
        float decay, step = c.b[r];
        fr_mamba_gates(&decay, &step, &shape->bias, &slope, 0.001f, INFINITY, 1);
        rows[r] = (fr_deltanet_row){c.key[r], c.query[r], c.value[r], c.out[r], decay, step, NULL};
    }
    fr_deltanet run = {.state = state, .key_dim = shape->key_dim, .value_dim = shape->value_dim, .scratch = scratch};
    memset(state, 0, sizeof state);
    for (size_t r = 0; r < shape->rows; r += run.keeps) {
        run.rows = rows + r;
        run.count = shape->rows - r < shape->step ? shape->rows - r : shape->step;
        run.keeps = run.count > 1 ? run.count - 1 : 1;
        kernels->mamba(&run, skip);
    }
    memset(exact, 0, sizeof exact);
    for (size_t r = 0; r < shape->rows; r++) {
        double step = fmax(log1p(exp((double)c.b[r] + (double)shape->bias)), 0.001), decay = exp(step * (double)slope);
        for (size_t v = 0; v < shape->value_dim; v++) {
            double out = (double)skip * (double)c.value[r][v];
            for (size_t k = 0; k < shape->key_dim; k++) {
                exact[v][k] = exact[v][k] * decay + step * (double)c.value[r][v] * (double)c.key[r][k];
                out += exact[v][k] * (double)c.query[r][k];
            }
            scale = fmax(scale, fabs(out));
            keep_worst(&worst, fabs((double)c.out[r][v] - out));
        }
    }
    ck_assert_msg(worst <= 2e-6 * scale, "shape %d: %g of %g", _i, worst, scale);
    ck_assert_double_gt(scale, 0.01);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------ gates */

/* Returns the error in units of the last place that the exact value has as a float32. */
static double error_in_ulps(float got, double exact) {
    int exponent = fabs(exact) < 0x1p-126 ? -126 : ilogb(exact);
    return fabs((double)got - exact) / ldexp(1, exponent - 23);
}

/* Computes the decay in double precision, with torch's definition of softplus: above 20, softplus(x) is x. */
static double exact_decay(double x, double slope) {
    return exp(slope * (x > 20 ? x : log1p(exp(x))));
}

START_TEST(gates_everywhere) {
    static const float slopes[] = {-16, -2.5f, -1, -0.01f, -1e-6f};
    double worst = 0;
    for (float x = -120; x < 120; x += 0.0078125f)
        for (size_t i = 0; i < sizeof slopes / sizeof *slopes; i++) {
            float decay, beta, bias = 0.3f;
            fr_deltanet_decay(&decay, &x, &bias, &slopes[i], 1);
            fr_deltanet_beta(&beta, &x, 1);
            keep_worst(&worst, error_in_ulps(decay, exact_decay((double)x + (double)bias, slopes[i])));
            keep_worst(&worst, error_in_ulps(beta, 1 / (1 + exp(-(double)x))));
        }
    ck_assert_double_le(worst, 0.501);
    worst = 0;
    for (float x = -20; x < 20; x += 0.0078125f) {
        float slope;
        fr_deltanet_slope(&slope, &x, 1);
        keep_worst(&worst, error_in_ulps(slope, -exp(x)));
    }
    ck_assert_double_le(worst, 0.501);
}
END_TEST

/* The step and the decay must each be the float32 that is nearest to the exact value, except in rare cases that are
 * nearly halfway between two floats. The exact decay is computed from the rounded step. */
START_TEST(gates_of_mamba) {
    static const float slopes[] = {-16, -2.5f, -0.01f};
    double worst = 0;
    for (float x = -120; x < 120; x += 0.0078125f)
        for (size_t i = 0; i < sizeof slopes / sizeof *slopes; i++) {
            float decay, step = x, bias = 0.3f;
            double sum = (double)x + (double)bias, most = 90;
            fr_mamba_gates(&decay, &step, &bias, &slopes[i], 0.001f, (float)most, 1);
            keep_worst(&worst, error_in_ulps(step, fmin(fmax(sum > 20 ? sum : log1p(exp(sum)), 0.001f), most)));
            keep_worst(&worst, error_in_ulps(decay, exp((double)slopes[i] * (double)step)));
        }
    ck_assert_double_le(worst, 0.501);
}
END_TEST

START_TEST(gates_of_anything) {
    const float x[] = {INFINITY, -INFINITY, 3e38f, -3e38f, NAN, 0}, bias[6] = {0};
    const float slope[] = {-1, -1, -1, -1, -1, -INFINITY};
    float decay[6], beta[6];
    fr_deltanet_decay(decay, x, bias, slope, 6);
    fr_deltanet_beta(beta, x, 6);
    ck_assert(decay[0] == 0 && decay[1] == 1 && decay[2] == 0 && decay[3] == 1 && isnan(decay[4]) && decay[5] == 0);
    ck_assert(beta[0] == 1 && beta[1] == 0 && beta[2] == 1 && beta[3] == 0 && isnan(beta[4]) && beta[5] == 0.5f);
}
END_TEST

/* ----------------------------------------------------------------------------- the convolution and attention's gate */

START_TEST(published_convolution) {
    static const float expected[4][5] = {
        {0, -2.77777284e-01f, -8.97200331e-02f, -2.72628099e-01f, -1.37384936e-01f},
        {-2.55572945e-01f, 6.98634267e-01f, -2.74414688e-01f, 4.16421294e-01f, -2.70554274e-01f},
        {2.62752533e+00f, -2.38050833e-01f, 2.75557423e+00f, -2.56765127e-01f, 3.11181664e+00f},
        {-2.26342902e-01f, -1.60434276e-01f, -2.18380019e-01f, -1.65982932e-01f, -2.37338558e-01f}};
    float x[4][5], w[4][5], y[5];
    fill_published(x[0], 20, 500);
    fill_published(w[0], 20, 600);
    for (size_t r = 0; r < 4; r++) {
        const float *rows[4];
        for (size_t t = 0; t < 4; t++) rows[t] = r + t < 3 ? NULL : x[r + t - 3];
        kernels->short_conv(y, rows, w[0], 5, 4, NULL, 5);
        for (size_t c = 0; c < 5; c++)
            ck_assert_msg(fabsf(y[c] - expected[r][c]) <= 4e-7f, "row %zu, channel %zu: %g, not %g", r, c, (double)y[c],
                          (double)expected[r][c]);
    }
}
END_TEST

START_TEST(sigmoid_mul_everywhere) {
    double worst = 0;
    for (float gate = -80; gate < 80; gate += 0.0078125f) {
        float x = 1.7f, y;
        kernels->sigmoid_mul(&y, &x, &gate, 1);
        keep_worst(&worst, error_in_ulps(y, (double)x / (1 + exp(-(double)gate))));
    }
    ck_assert_double_le(worst, 2);
}
END_TEST

FR_SUITE("deltanet") {
    TCase *tests = tcase_create("deltanet");
    tcase_add_unchecked_fixture(tests, select_kernels, NULL);
    tcase_set_timeout(tests, 600);
    tcase_add_loop_test(tests, a_head_over_many_rows, 0, sizeof head_shapes / sizeof *head_shapes);
    tcase_add_loop_test(tests, a_head_of_mamba_over_many_rows, 0, sizeof head_shapes / sizeof *head_shapes);
    tcase_add_test(tests, gates_of_mamba);
    tcase_add_test(tests, what_transformers_computes);
    tcase_add_test(tests, gates_everywhere);
    tcase_add_test(tests, gates_of_anything);
    tcase_add_test(tests, published_convolution);
    tcase_add_test(tests, sigmoid_mul_everywhere);
    suite_add_tcase(suite, tests);
}
