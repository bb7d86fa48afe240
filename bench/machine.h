/* Measures this machine's limits: reading memory and caches, multiplying, and waiting at barriers.
 *
 * In: the numbers of threads, the instruction sets and the number of repetitions. Out: a report's tables (table.h), in
 * which each figure is the median of the repetitions, with its spread. */
#ifndef FR_BENCH_MACHINE_H
#define FR_BENCH_MACHINE_H

#include "bench/facts.h"

typedef struct fr_bench_machine_options {
    /* numbers of threads to measure; if none is given: 1, 2, 4 .. and the number of all cores; tables call the largest
     * "all" */
    const int64_t *threads;
    size_t thread_count;
    const char *isas; /* names of instruction sets, separated by commas; NULL for all that this machine can run */
    bool pin, numa;
    size_t repetitions; /* at least 1 */
    double max_spread;  /* in per cent; a figure whose spread is larger is marked with ? */
} fr_bench_machine_options;

fr_status fr_bench_machine(fr_bench_report *report, const fr_bench_machine_options *options);

#endif
