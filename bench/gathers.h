/* Times gathers, in which every rank gets rows from all ranks, for several sizes of the rows.
 *
 * In: a job of several ranks, which all make the same call. Out: a table with the time of a gather in which each rank
 * sends a number of bytes to every other rank. The shortest time is the latency. */
#ifndef FR_BENCH_GATHERS_H
#define FR_BENCH_GATHERS_H

#include "bench/facts.h"

typedef struct fr_bench_gathers_plan {
    size_t repetitions; /* at least 1 */
    double max_spread;  /* in per cent; a figure whose spread is larger is marked with ? */
    double delay_us;    /* microseconds by which each message is delayed artificially; the report states this delay */
} fr_bench_gathers_plan;

/* Measures the gathers. The call fails with FR_USAGE if there is only one rank, and with FR_NUMERIC if a rank got wrong
 * bytes. */
fr_status fr_bench_gathers(fr_bench_report *report, const fr_bench_gathers_plan *plan);

#endif
