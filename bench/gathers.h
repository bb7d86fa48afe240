/* Times how long ranks take to gather rows on all of them, by size.
 *
 * In: a job of several ranks, which all make the same call. Out: a table with the time of a gather in which each rank
 * sends a number of bytes to every other rank. The shortest time is the latency. */
#ifndef FR_BENCH_GATHERS_H
#define FR_BENCH_GATHERS_H

#include "bench/facts.h"

typedef struct fr_bench_gathers_plan {
    size_t repetitions; /* at least 1 */
    double max_spread;  /* per cent: a figure with a larger spread is left out */
    double delay_us;    /* the delay with which messages are sent, for the report */
} fr_bench_gathers_plan;

/* Measures the gathers. FR_USAGE: the process is alone; FR_NUMERIC: a row arrived with wrong bytes. */
fr_status fr_bench_gathers(fr_bench_report *report, const fr_bench_gathers_plan *plan);

#endif
