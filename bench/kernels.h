/* Measures every kernel of every instruction set that runs here against the machine's limits.
 *
 * In: which kernels, rows, threads, and how to repeat. Out: tables of a report (table.h): the limits, then products
 * with weights from memory and from the cache, attention, and kernels on rows and arrays. A kernel is timed only if it
 * gives the bits of the scalar definition on the timed operands; otherwise its row has no speed.
 *
 * All threads run the kernel at once: a product's features are divided among them, and other kernels have operands of
 * their own on each; figures are of all threads together. If weights or cached positions must come from memory, there
 * are more copies than the caches hold, and these are used in turn; the limits are measured again between the timings
 * (kernel_timing.h). */
#ifndef FR_BENCH_KERNELS_H
#define FR_BENCH_KERNELS_H

#include "bench/table.h"
#include "forerun.h"

typedef struct fr_bench_kernels_plan {
    const char *filter; /* an extended regular expression for names of functions; NULL: all */
    const char *isas;   /* words of instruction sets, separated by commas; NULL: all that run here */
    const int64_t *rows;
    size_t row_count;
    const int64_t *threads; /* numbers of threads, which are measured one after the other */
    size_t thread_count;    /* 0: all cores */
    bool pin, numa;
    size_t repetitions;
    double max_spread; /* the largest spread of a figure, in per cent */
    /* bytes of weights that are read, at least 4 MiB for each thread; 0: more than the caches hold */
    size_t weight_bytes;
    FILE *plot; /* for a picture of the last number of threads; NULL: none */
    /* Called before each timing; kernel NULL: the timing is done, and a row follows. */
    void (*progress)(void *context, const char *kernel, size_t done, size_t total);
    void *context;
} fr_bench_kernels_plan;

/* Runs the measurements. *wrong: the number of rows whose bits differ. */
fr_status fr_bench_kernels_run(const fr_bench_kernels_plan *plan, fr_bench_report *report, size_t *wrong);

#endif
