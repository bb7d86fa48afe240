/* Measures every kernel of every instruction set that this machine can run, and compares it with the machine's limits.
 *
 * In: the wanted kernels, rows and threads, and the number of repetitions. Out: tables of a report (table.h): the
 * limits, then products with weights from memory and from the cache, attention, and kernels on rows and arrays. A
 * kernel is timed only if it gives the bits of the scalar definition on the timed operands; otherwise its line in the
 * table has no speed.
 *
 * All threads run the kernel at once. The features of a product are divided among the threads. For any other kernel
 * each thread has its own operands. Figures are totals of all threads. If weights or cached positions must come from
 * memory, there are more copies of them than the caches hold, and the calls use the copies in turn. The limits are
 * measured again between the timings (kernel_timing.h). */
#ifndef FR_BENCH_KERNELS_H
#define FR_BENCH_KERNELS_H

#include "bench/table.h"
#include "forerun.h"

typedef struct fr_bench_kernels_plan {
    const char *filter; /* an extended regular expression that names of kernels must match; NULL for all kernels */
    const char *isas;   /* names of instruction sets, separated by commas; NULL for all that this machine can run */
    const int64_t *rows;
    size_t row_count;
    const int64_t *threads; /* numbers of threads, which are measured one after the other */
    size_t thread_count;    /* 0: all cores */
    bool pin, numa;
    size_t repetitions;
    double max_spread; /* in per cent; a figure whose spread is larger is marked with ? */
    /* bytes of all weights that a product reads, at least 4 MiB for each thread; 0 means more than the caches hold */
    size_t weight_bytes;
    FILE *plot; /* file for a roofline picture of the last number of threads; NULL if no picture is wanted */
    /* Called with the kernel's name before each timing, and with NULL after it, before a line of the table is
     * printed. */
    void (*progress)(void *context, const char *kernel, size_t done, size_t total);
    void *context;
} fr_bench_kernels_plan;

/* Runs the measurements. *wrong: the number of kernels that gave wrong bits. */
fr_status fr_bench_kernels_run(const fr_bench_kernels_plan *plan, fr_bench_report *report, size_t *wrong);

#endif
