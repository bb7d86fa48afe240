/* Times forerun's float32 products and OpenBLAS's in one run, to judge how fast products with float weights are.
 *
 * In: optionally "-o json", and the path of a shared library that is used instead of the system's OpenBLAS; its
 * functions' names may begin with scipy_. Out: a table. The matrices are those of Gemma 4 E2B's feed-forward network,
 * with a prompt of 512 rows and with fewer rows. OpenBLAS has an advantage: it may add in any order, so it can block
 * for the caches. forerun's products must always give the same bits. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "bench/facts.h"
#include "bench/limits.h"
#include "bench/measure.h"
#include "kernels/dispatch.h"

enum { ROWS = 512, MATRIX = 1536 * 6144, WIDEST = 6144 };
#define SAMPLE_SECONDS 0.05

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 }; /* CBLAS's numbers */

typedef void sgemm_fn(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                      const float *b, int ldb, float beta, float *c, int ldc);

typedef struct blas {
    sgemm_fn *sgemm;
    void (*set_threads)(int);
    char *(*config)(void);
    char *(*core)(void);
} blas;

static void *find(void *library, const char *name) {
    char prefixed[64];
    snprintf(prefixed, sizeof prefixed, "scipy_%s", name);
    void *found = dlsym(library, name);
    return found ? found : dlsym(library, prefixed);
}

static blas open_blas(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "bench_blas: %s\n", dlerror());
        exit(1);
    }
    blas b = {.sgemm = (sgemm_fn *)find(library, "cblas_sgemm"),
              .set_threads = (void (*)(int))find(library, "openblas_set_num_threads"),
              .config = (char *(*)(void))find(library, "openblas_get_config"),
              .core = (char *(*)(void))find(library, "openblas_get_corename")};
    if (b.sgemm && b.set_threads && b.config && b.core) return b;
    fprintf(stderr, "bench_blas: %s is not OpenBLAS\n", path);
    exit(1);
}

typedef struct product {
    const fr_kernels *kernels;
    fr_pool *pool;
    blas blas;
    size_t rows, cols, features;
    float *x, *w, *y, *z; /* y: forerun's result; z: OpenBLAS's */
} product;

static void multiply(void *context, const fr_team *team) {
    product *p = context;
    size_t begin, end;
    fr_partition(p->features, FR_FEATURE_UNIT, team->index, team->count, &begin, &end);
    p->kernels->matmul[FR_F32](&(fr_matmul){p->y + begin, p->features, p->x, p->cols, p->rows, p->w + begin * p->cols,
                                            p->cols * sizeof(float), p->cols, end - begin});
}

static double used_seconds(void) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

/* Waits until the threads of OpenBLAS sleep. They keep spinning for a while after their work, which would slow the next
 * product. */
static void wait_for_sleep(void) {
    double before;
    do {
        before = used_seconds();
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    } while (used_seconds() - before > 0.001);
}

static void multiply_by_us(product *p) {
    fr_pool_run(p->pool, multiply, p);
}

static void multiply_by_blas(product *p) {
    int m = (int)p->rows, n = (int)p->features, k = (int)p->cols;
    p->blas.sgemm(ROW_MAJOR, NO_TRANS, TRANS, m, n, k, 1, p->x, k, p->w, k, 0, p->z, n);
}

/* Gives the mean seconds of a product over several calls, after one call that is not timed. */
static double time_products(product *p, void (*product_fn)(product *)) {
    size_t count = 0;
    wait_for_sleep();
    product_fn(p);
    double start = fr_clock(), seconds;
    do {
        product_fn(p);
        count++;
        seconds = fr_clock() - start;
    } while (seconds < SAMPLE_SECONDS);
    return seconds / (double)count;
}

static double largest_difference(const product *p) {
    double apart = 0;
    for (size_t i = 0; i < p->rows * p->features; i++) apart = fmax(apart, fabs((double)p->y[i] - (double)p->z[i]));
    return apart;
}

static void put_rates(fr_bench_report *report, product *p) {
    double ours[FR_BENCH_PAIRS], theirs[FR_BENCH_PAIRS], ratios[FR_BENCH_PAIRS];
    double work = 2e-9 * (double)p->rows * (double)p->cols * (double)p->features;
    for (int pair = -1; pair < FR_BENCH_PAIRS; pair++) {
        double a = work / time_products(p, multiply_by_us), b = work / time_products(p, multiply_by_blas);
        if (pair < 0) continue;
        ours[pair] = a;
        theirs[pair] = b;
        ratios[pair] = a / b;
    }
    fr_bench_number(report, (double)p->rows);
    fr_bench_number(report, (double)p->cols);
    fr_bench_number(report, (double)p->features);
    fr_bench_numbers(report, ours, FR_BENCH_PAIRS);
    fr_bench_numbers(report, theirs, FR_BENCH_PAIRS);
    fr_bench_number(report, fr_bench_median(ours, FR_BENCH_PAIRS));
    fr_bench_number(report, fr_bench_median(theirs, FR_BENCH_PAIRS));
    fr_bench_number(report, fr_bench_median(ratios, FR_BENCH_PAIRS));
    fr_bench_number(report, largest_difference(p));
}

static void put_table(fr_bench_report *report, product *p) {
    static const fr_bench_column columns[] = {{"rows", "rows", 0},
                                              {"cols", "columns", 0},
                                              {"features", "features", 0},
                                              {"samples_gflops", NULL, 0},
                                              {"samples_gflops_blas", NULL, 0},
                                              {"gflops", "forerun, GFLOP/s", 0},
                                              {"gflops_blas", "OpenBLAS, GFLOP/s", 0},
                                              {"ratio", "ratio", 2},
                                              {"difference", "largest difference", 5}};
    static const size_t shapes[][3] = {
        {512, 1536, 6144}, {512, 6144, 1536}, {64, 1536, 6144}, {8, 1536, 6144}, {1, 1536, 6144}};
    fr_bench_table(report, "blas", "Float32 products", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        p->rows = shapes[i][0];
        p->cols = shapes[i][1];
        p->features = shapes[i][2];
        put_rates(report, p);
    }
}

static float *floats(size_t count) {
    float *x = malloc(count * sizeof *x);
    if (!x) abort();
    for (size_t i = 0; i < count; i++) x[i] = (float)(i * 2654435761u % 2048) / 1024 - 1;
    return x;
}

int main(int argc, char **argv) {
    bool json = argc > 2 && strcmp(argv[1], "-o") == 0 && strcmp(argv[2], "json") == 0;
    const char *library = argc > 1 + 2 * json ? argv[1 + 2 * json] : "libopenblas.so.0";
    product p = {.blas = open_blas(library),
                 .x = floats((size_t)ROWS * WIDEST),
                 .w = floats(MATRIX),
                 .y = floats((size_t)ROWS * WIDEST),
                 .z = floats((size_t)ROWS * WIDEST)};
    fr_machine machine;
    fr_plan plan;
    fr_bench_require(fr_machine_read(&machine));
    fr_plan_make(&machine, 0, true, true, &plan);
    fr_bench_require(fr_pool_open(&plan, &p.pool));
    fr_bench_require(fr_kernels_select(NULL, &p.kernels));
    p.blas.set_threads((int)plan.threads);
    fr_bench_report *report = fr_bench_report_open(stdout, json ? FR_BENCH_JSON : FR_BENCH_MD);
    if (!report) abort();
    fr_bench_require(fr_bench_machine_facts(report, p.kernels->isa, plan.threads));
    fr_bench_fact_text(report, "openblas", "OpenBLAS", p.blas.config());
    fr_bench_fact_text(report, "openblas_core", "its kernels", p.blas.core());
    put_table(report, &p);
    fr_bench_report_close(report);
    fr_pool_close(p.pool);
    free(p.x);
    free(p.w);
    free(p.y);
    free(p.z);
    return 0;
}
