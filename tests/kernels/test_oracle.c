/* Compares the matrix products of every instruction set of this machine with OpenBLAS, over random shapes. For float
 * types the results may differ by as much as the order of summing can change them. For block types they may differ by
 * the error of rounding a row of activations to 8 bits.
 *
 * Only this test uses OpenBLAS. forerun itself neither needs it nor links it. */
/* suite: needs=openblas */
#include <cblas.h>
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/cpu.h"
#include "kernels/dispatch.h"
#include "quant/packed.h"
#include "tests/support/block_cases.h"
#include "tests/support/suite.h"

enum { CASES = 40, ROWS_MAX = 9, FEATURES_MAX = 70, COLS_MAX = 2304, BLOCK = 32 };

#define UNIT 0x1p-24 /* half a unit in the last place of 1 */

static struct {
    size_t rows, features, cols;
    /* w: the values that the stored weights have when decoded */
    float x[ROWS_MAX * COLS_MAX], w[FEATURES_MAX * COLS_MAX];
    double exact[ROWS_MAX * FEATURES_MAX]; /* products in double */
    float blas[ROWS_MAX * FEATURES_MAX], y[ROWS_MAX * FEATURES_MAX];
    uint8_t stored[FEATURES_MAX * COLS_MAX * sizeof(float)];
    uint8_t packed[(FEATURES_MAX + FR_TILE_FEATURES) * COLS_MAX * 2];
    fr_qblock blocks[ROWS_MAX * COLS_MAX / BLOCK];
} c;

static void multiply_by_blas(void) {
    static double x[ROWS_MAX * COLS_MAX], w[FEATURES_MAX * COLS_MAX];
    int m = (int)c.rows, n = (int)c.features, k = (int)c.cols;
    for (size_t i = 0; i < c.rows * c.cols; i++) x[i] = c.x[i];
    for (size_t i = 0; i < c.features * c.cols; i++) w[i] = c.w[i];
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1, c.x, k, c.w, k, 0, c.blas, n);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1, x, k, w, k, 0, c.exact, n);
}

/* Makes random rows, and random weights of a type. Decodes the weights and computes the products with OpenBLAS. */
static void make_case(fr_dtype type) {
    size_t block = fr_dtype_block(type), row_bytes;
    c.rows = 1 + fr_random_below(ROWS_MAX);
    c.features = 1 + fr_random_below(FEATURES_MAX);
    c.cols = block == 1 ? 1 + fr_random_below(COLS_MAX) : block * (1 + fr_random_below((uint32_t)(COLS_MAX / block)));
    row_bytes = fr_dtype_row_bytes(type, c.cols);
    for (size_t r = 0; r < c.rows; r++) fr_fill_row(c.x + r * c.cols, c.cols, FR_ROW_ORDINARY);
    for (size_t o = 0; o < c.features; o++) {
        uint8_t *row = c.stored + o * row_bytes;
        float *w = c.w + o * c.cols;
        if (block > 1) {
            fr_fill_weights(type, row, c.cols, FR_WEIGHTS_ORDINARY);
        } else {
            fr_fill_row(w, c.cols, FR_ROW_ORDINARY);
            for (size_t i = 0; i < c.cols; i++) {
                uint16_t half = type == FR_F16 ? fr_f16_from_f32(w[i]) : fr_bf16_from_f32(w[i]);
                if (type == FR_F32)
                    ((float *)row)[i] = w[i];
                else
                    ((uint16_t *)row)[i] = half;
            }
        }
        fr_dtype_decode(type, row, w, c.cols);
    }
    multiply_by_blas();
}

/* Returns the sum of |w| * |x| over the columns. If `bounds` is given, it has a bound for each block of columns, which
 * replaces |x|. */
static double magnitude(size_t r, size_t o, const fr_qblock *bounds) {
    double sum = 0;
    for (size_t i = 0; i < c.cols; i++)
        sum += fabs((double)c.w[o * c.cols + i]) *
               (bounds ? (double)bounds[i / BLOCK].d : fabs((double)c.x[r * c.cols + i]));
    return sum;
}

static void check_output(const char *isa, fr_dtype type, size_t r, size_t o, double bound) {
    double y = c.y[r * c.features + o], exact = c.exact[r * c.features + o];
    ck_assert_msg(fabs(y - exact) <= bound,
                  "%s %s, %zu rows, %zu features, %zu columns, row %zu, feature %zu: %.9g, OpenBLAS %.9g", isa,
                  fr_dtype_name(type), c.rows, c.features, c.cols, r, o, y, exact);
}

/* A sum with n roundings has an error of at most n units of the sum of magnitudes. forerun's kernels round cols / 16
 * times in each of 16 partial sums, and again when they add the partial sums in a tree. OpenBLAS's float32 product may
 * round at every column. Its product in double precision is practically exact. */
static void check_float(const fr_kernels *kernels, fr_dtype type) {
    make_case(type);
    kernels->matmul[type](&(fr_matmul){c.y, c.features, c.x, c.cols, c.rows, c.stored, fr_dtype_row_bytes(type, c.cols),
                                       c.cols, c.features});
    for (size_t r = 0; r < c.rows; r++)
        for (size_t o = 0; o < c.features; o++) {
            double units = UNIT * magnitude(r, o, NULL) * 1.001;
            check_output(kernels->isa, type, r, o, units * (double)((c.cols + 15) / 16 + 4));
            double apart = fabs((double)c.y[r * c.features + o] - (double)c.blas[r * c.features + o]);
            ck_assert_double_le(apart, units * (double)((c.cols + 15) / 16 + 4 + c.cols));
        }
}

/* Each value of a row is quantized, so its error is at most half of d, the step of its block. The roundings of the sums
 * are a thousandth of this error. */
static void check_blocks(const fr_kernels *kernels, fr_dtype type) {
    make_case(type);
    size_t row_bytes = fr_dtype_row_bytes(type, c.cols), blocks = c.cols / BLOCK;
    for (size_t o = 0; o < c.features; o += FR_TILE_FEATURES)
        fr_pack_tile(type, c.packed + fr_packed_bytes(type, o, c.cols), c.stored + o * row_bytes, row_bytes,
                     c.features - o < FR_TILE_FEATURES ? c.features - o : FR_TILE_FEATURES, c.cols);
    for (size_t r = 0; r < c.rows; r++) kernels->quantize(c.blocks + r * blocks, c.x + r * c.cols, c.cols);
    kernels->matmul_block[type](
        &(fr_matmul_block){c.y, c.features, c.blocks, blocks, c.rows, c.packed, c.cols, c.features});
    for (size_t r = 0; r < c.rows; r++)
        for (size_t o = 0; o < c.features; o++)
            check_output(kernels->isa, type, r, o,
                         0.501 * magnitude(r, o, c.blocks + r * blocks) + 1e-5 * magnitude(r, o, NULL));
}

START_TEST(products_are_openblas_products) {
    const fr_kernels *kernels;
    fr_dtype type = (fr_dtype)_i;
    openblas_set_num_threads(1);
    for (size_t word = 0; fr_isa_word(word); word++) {
        if (fr_kernels_select(fr_isa_word(word), &kernels) != FR_OK) continue;
        fr_random_start((uint64_t)type + 1);
        for (int i = 0; i < CASES; i++) {
            if (type < FR_FLOAT_TYPES)
                check_float(kernels, type);
            else
                check_blocks(kernels, type);
        }
    }
}
END_TEST

FR_SUITE("oracle") {
    TCase *cases = tcase_create("oracle");
    tcase_set_timeout(cases, 300);
    tcase_add_loop_test(cases, products_are_openblas_products, 0, FR_KERNEL_TYPES);
    suite_add_tcase(suite, cases);
}
