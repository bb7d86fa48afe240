/* CPU time that other programs took, which a spread does not show where they run all the time.
 *
 * In: two moments. Out: the CPU time of all programs between them, as the system counts it, without this process's own;
 * what a virtual machine's host takes away counts as others'. */
#ifndef FR_BENCH_BUSY_H
#define FR_BENCH_BUSY_H

typedef struct fr_bench_busy {
    double all, own, clock; /* seconds */
} fr_bench_busy;

fr_bench_busy fr_bench_busy_now(void);

/* Per cent of all CPUs, between a moment and now. NaN where the system doesn't say, or in less than 0.3 s: it counts in
 * hundredths of a second. */
double fr_bench_busy_others(const fr_bench_busy *since);

#endif
