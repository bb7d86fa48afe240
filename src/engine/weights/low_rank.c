/* Adds the low-rank products of adapters: see low_rank.h. */
#include "src/engine/weights/low_rank.h"

#include "base/sizes.h"

enum {
    ROWS = 8,        /* rows that share one reading of a and b */
    FEATURES = 256,  /* features whose products are made at a time */
    LOW = ROWS * 512 /* floats of room for a(x) of ROWS rows */
};

/* Adds the product of one adapter to rows. All of the rows use the adapter. */
static void add(const fr_kernels *kernels, const fr_low_rank *p, double scale, size_t cols, size_t begin, size_t end,
                const fr_matrix_rows *rows) {
    float low[LOW + FR_LOW_RANK_MAX], products[ROWS * FEATURES];
    float factor = (float)(scale * p->scale);
    size_t together = fr_smaller(ROWS, fr_larger(1, LOW / p->rank));
    for (size_t r = 0; r < rows->count; r += together) {
        size_t count = fr_smaller(together, rows->count - r);
        kernels->matmul[FR_F32](&(fr_matmul){low, p->rank, rows->x + r * rows->x_stride, rows->x_stride, count, p->a,
                                             cols * sizeof *p->a, cols, p->rank});
        for (size_t o = begin; o < end; o += FEATURES) {
            size_t features = fr_smaller(FEATURES, end - o);
            kernels->matmul[FR_F32](&(fr_matmul){products, FEATURES, low, p->rank, count, p->b + o * p->rank,
                                                 p->rank * sizeof *p->b, p->rank, features});
            for (size_t i = 0; i < count; i++) {
                float *y = rows->y + (r + i) * rows->y_stride + o;
                for (size_t f = 0; f < features; f++) y[f] += factor * products[i * FEATURES + f];
            }
        }
    }
}

void fr_low_rank_add(const fr_workspace *workspace, const fr_matrix *matrix, size_t begin, size_t end,
                     const fr_matrix_rows *rows) {
    const fr_adapter_set *const *sets = workspace->adapters;
    for (size_t r = 0, same; r < rows->count; r += same) {
        const fr_adapter_set *set = sets[r];
        for (same = 1; r + same < rows->count && sets[r + same] == set;) same++;
        fr_matrix_rows of_set = *rows;
        of_set.y += r * rows->y_stride;
        of_set.x += r * rows->x_stride;
        of_set.count = same;
        for (size_t i = 0; set && i < set->count; i++) {
            const fr_low_rank *product = &set->uses[i].products[matrix->adapted];
            if (product->a) add(workspace->kernels, product, set->uses[i].scale, matrix->cols, begin, end, &of_set);
        }
    }
}
