/* Times how long ranks take to gather rows on all of them, by size.
 *
 * In: a job of several ranks, which all ask alike. Out: a table: how long a gather takes of so many bytes from each
 * rank, sent to each other one; the least of them is the latency. */
#ifndef FR_BENCH_GATHERS_H
#define FR_BENCH_GATHERS_H

#include "bench/facts.h"

typedef struct fr_bench_gathers_plan {
    size_t repetitions; /* at least 1 */
    double max_spread;  /* per cent: a figure that spread more is left out */
    double delay_us;    /* with which messages leave: told */
} fr_bench_gathers_plan;

/* Measures the gathers. FR_USAGE for a process alone; FR_NUMERIC if a row arrives with wrong bytes. */
fr_status fr_bench_gathers(fr_bench_report *report, const fr_bench_gathers_plan *plan);

#endif
