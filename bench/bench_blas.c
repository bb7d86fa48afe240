/* Our float32 product beside OpenBLAS's, in one run: the yardstick for prompts with float weights.
 *
 * In: nothing. Out: one line of markdown. The shape is a feed-forward matrix of Gemma 4 E2B with a prompt of 512 rows.
 * OpenBLAS may add in any order and blocks for the caches; ours keeps the one answer. */
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/limits.h"
#include "bench/measure.h"

enum { ROWS = 512, COLS = 1536, OUTS = 6144 };

typedef struct product {
    const fr_kernels *kernels;
    float *x, *w, *y;
} product;

static void multiply(void *context, const fr_team *team) {
    product *p = context;
    size_t begin, end;
    fr_partition(OUTS, FR_OUT_UNIT, team->index, team->count, &begin, &end);
    p->kernels->matmul[FR_F32](p->y + begin, OUTS, p->x, COLS, ROWS, p->w + begin * COLS, COLS * sizeof(float), COLS,
                               end - begin);
}

static void multiply_by_blas(product *p, float *y) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, ROWS, OUTS, COLS, 1, p->x, COLS, p->w, COLS, 0, y, OUTS);
}

static float *floats(size_t count) {
    float *x = malloc(count * sizeof *x);
    if (!x) abort();
    for (size_t i = 0; i < count; i++) x[i] = (float)(i * 2654435761u % 2048) / 1024 - 1;
    return x;
}

int main(void) {
    fr_machine machine;
    fr_plan plan;
    fr_pool *pool;
    product p = {.x = floats((size_t)ROWS * COLS), .w = floats((size_t)OUTS * COLS), .y = floats((size_t)ROWS * OUTS)};
    float *y = floats((size_t)ROWS * OUTS), apart = 0;
    double ours[FR_BENCH_PAIRS], theirs[FR_BENCH_PAIRS], ratios[FR_BENCH_PAIRS], work = 2.0 * ROWS * COLS * OUTS;
    fr_bench_require(fr_machine_read(&machine));
    fr_plan_make(&machine, 0, true, true, &plan);
    fr_bench_require(fr_pool_open(&plan, &pool));
    fr_bench_require(fr_kernels_select(NULL, &p.kernels));
    openblas_set_num_threads((int)plan.threads);
    for (int pair = -1; pair < FR_BENCH_PAIRS; pair++) {
        double start = fr_clock();
        fr_pool_run(pool, multiply, &p);
        double between = fr_clock();
        multiply_by_blas(&p, y);
        double end = fr_clock();
        if (pair < 0) continue;
        ours[pair] = work / (between - start);
        theirs[pair] = work / (end - between);
        ratios[pair] = ours[pair] / theirs[pair];
    }
    for (size_t i = 0; i < (size_t)ROWS * OUTS; i++) apart = fmaxf(apart, fabsf(p.y[i] - y[i]));
    printf("# Float32 products, %d x %d x %d, %s, %zu threads\n\n"
           "forerun %.0f GFLOP/s, OpenBLAS %.0f GFLOP/s: %.2f of it. Largest difference %.1g.\n",
           ROWS, COLS, OUTS, p.kernels->isa, plan.threads, fr_bench_median(ours, FR_BENCH_PAIRS) / 1e9,
           fr_bench_median(theirs, FR_BENCH_PAIRS) / 1e9, fr_bench_median(ratios, FR_BENCH_PAIRS), (double)apart);
    fr_pool_close(pool);
    free(p.x);
    free(p.w);
    free(p.y);
    free(y);
    return 0;
}
