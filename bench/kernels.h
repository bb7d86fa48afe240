/* Measures every kernel of every instruction set that runs here against the machine's limits.
 *
 * In: which kernels, rows, threads, and how to repeat. Out: tables of a report (table.h): the limits, then products
 * with weights from memory and from the cache, attention, and what works on rows and arrays. A kernel is timed when its
 * bits are those of the scalar definition on the timed operands; one that differs has a row without speed.
 *
 * All threads run the kernel at once: a product's features are partitioned, other kernels have operands of their own
 * on each; the figures are of all of them together. Weights and cached positions that shall come from memory are as
 * many copies as no cache holds, taken in turn; the limits are measured again between the timings (kernel_timing.h). */
#ifndef FR_BENCH_KERNELS_H
#define FR_BENCH_KERNELS_H

#include "bench/table.h"
#include "forerun.h"

typedef struct fr_bench_kernels_plan {
    const char *filter; /* an extended regular expression for the function's name; NULL: all */
    const char *isas;   /* words between commas; NULL: all that run here */
    const int64_t *rows;
    size_t row_count;
    const int64_t *threads; /* numbers of threads, one after the other */
    size_t thread_count;    /* 0: all cores */
    bool pin, numa;
    size_t repetitions;
    double max_spread;   /* per cent */
    size_t weight_bytes; /* to walk through, at least 4 MiB a thread; 0: more than the caches hold */
    FILE *plot;          /* a picture of the last number of threads; NULL: none */
    /* Called before each timing; kernel NULL: it is done, and a row follows. */
    void (*progress)(void *context, const char *kernel, size_t done, size_t total);
    void *context;
} fr_bench_kernels_plan;

/* Runs the measurements. *wrong: the number of rows whose bits differ. */
fr_status fr_bench_kernels_run(const fr_bench_kernels_plan *plan, fr_bench_report *report, size_t *wrong);

#endif
