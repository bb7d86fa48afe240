/* Measures decoding beside other programs: compares the default number of threads with every fixed one.
 *
 * In: a model, and fixed numbers of threads. Out: a table for each load (none, one busy loop, one on each CPU, another
 * forerun with the same model), with tokens per second of the default and of each fixed number, pinned and not, and
 * the default's share of the best fixed one. */
#ifndef FR_BENCH_BESIDE_BUSY_H
#define FR_BENCH_BESIDE_BUSY_H

#include "bench/facts.h"

typedef struct fr_bench_beside_busy_plan {
    const char *model;
    const int64_t *threads; /* none: 1, 2, 4 .. and all cores */
    size_t thread_count;
    size_t repetitions;                             /* at least 1; all settings take turns in each */
    double seconds;                                 /* of a turn that are counted */
    double max_spread;                              /* per cent: a figure that spread more is left out */
    fr_options *options;                            /* the model's; threads and pinning are set here */
    void (*doing)(void *context, const char *what); /* NULL as `what`: nothing any more */
    void *context;
} fr_bench_beside_busy_plan;

fr_status fr_bench_beside_busy(fr_bench_report *report, const fr_bench_beside_busy_plan *plan);

#endif
