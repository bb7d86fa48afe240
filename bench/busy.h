/* Measures the CPU time that other programs took. A spread does not show such programs if they run all the time.
 *
 * In: two moments. Out: the CPU time of all programs between them, as the system counts it, without this process's
 * own. Time that the host of a virtual machine takes away counts as that of others. */
#ifndef FR_BENCH_BUSY_H
#define FR_BENCH_BUSY_H

typedef struct fr_bench_busy {
    double all, own, clock; /* seconds */
} fr_bench_busy;

fr_bench_busy fr_bench_busy_now(void);

/* Gives the per cent of all CPUs that others took from a moment until now. NaN if the system doesn't count it, or if
 * less than 0.3 s have passed, because it counts in hundredths of a second. */
double fr_bench_busy_others(const fr_bench_busy *since);

#endif
