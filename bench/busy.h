/* Measures the CPU time that other programs take during a measurement. The spread of the figures does not show programs
 * that run all the time.
 *
 * In: two moments. Out: the CPU time of all programs between them, as the system counts it, minus this process's own
 * CPU time. On a virtual machine, time that the host takes away counts as time of other programs. */
#ifndef FR_BENCH_BUSY_H
#define FR_BENCH_BUSY_H

typedef struct fr_bench_busy {
    double all, own, clock; /* seconds: CPU time of all programs, CPU time of this process, and time of a monotonic
                             * clock */
} fr_bench_busy;

fr_bench_busy fr_bench_busy_now(void);

/* Gives the percentage of all CPUs that other programs took from a moment until now. The system counts in hundredths of
 * a second, so the result is NaN after less than 0.3 s. It is also NaN if the system does not count. */
double fr_bench_busy_others(const fr_bench_busy *since);

#endif
