/* Measures decoding while other programs run, and compares the default number of threads with every fixed number.
 *
 * In: a model, and fixed numbers of threads. Out: a table for each load of the machine. The loads are none, one busy
 * loop, one busy loop on each CPU, and another forerun with the same model. A table has the tokens per second of the
 * default and of each fixed number of threads, pinned and not pinned. It also has the default's speed as a share of the
 * best fixed number's speed. */
#ifndef FR_BENCH_BESIDE_BUSY_H
#define FR_BENCH_BESIDE_BUSY_H

#include "bench/facts.h"

typedef struct fr_bench_beside_busy_plan {
    const char *model;
    const int64_t *threads; /* numbers of threads; if none is given: 1, 2, 4 .. and the number of all cores */
    size_t thread_count;
    size_t repetitions; /* number of repetitions, at least 1; every repetition measures every setting once */
    double seconds;     /* counted seconds of each measurement, which come after a warm-up */
    double max_spread;  /* in per cent; a figure whose spread is larger is marked with ? */
    /* options of the model; threads and pinning are set by the bench */
    fr_options *options;
    /* called before each measurement; after the last one, called with `what` NULL */
    void (*doing)(void *context, const char *what);
    void *context;
} fr_bench_beside_busy_plan;

fr_status fr_bench_beside_busy(fr_bench_report *report, const fr_bench_beside_busy_plan *plan);

#endif
