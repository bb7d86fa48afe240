/* Checks one kernel on one case, and times it on all threads of a team at once.
 *
 * In: a case (kernel_cases.h), and the kernels that compute it. Out: the seconds of a call. Between the timings the
 * machine's bandwidth, its peak of multiply-adds and its clock are measured too. Each thread has its own operands. If
 * weights must come from memory, there are more copies of them than the caches hold, and the calls use these copies in
 * turn. */
#ifndef FR_BENCH_KERNEL_TIMING_H
#define FR_BENCH_KERNEL_TIMING_H

#include "bench/counters.h"
#include "bench/kernel_cases.h"
#include "bench/limits.h"

typedef struct fr_bench_bed fr_bench_bed;

/* Opens a bed, which holds the operands of kernels and times the kernels. stream_bytes: bytes of all threads' weights
 * or cached positions together; 0 means more than the caches hold. The pool must outlive the bed. */
fr_status fr_bench_bed_open(fr_pool *pool, size_t threads, size_t stream_bytes, size_t repetitions, fr_bench_bed **bed);
void fr_bench_bed_close(fr_bench_bed *bed);

/* Returns the bytes that the weights of one thread may take. This is the value of `room` for fr_bench_case_make. */
size_t fr_bench_bed_room(const fr_bench_bed *bed);

/* Gives 0 if the processor's counters can be read. Otherwise gives the errno that says why they can't. */
int fr_bench_bed_no_counters(const fr_bench_bed *bed);

/* Measures the bandwidth of memory in bytes per second, in the same way as it is measured between two timings. */
double fr_bench_bed_bandwidth(const fr_bench_bed *bed);

/* Makes the operands of a case, and the output that the definition gives for them. If refill is false, the weights of
 * the previous case are used again. That case must have had the same weights and differed only in its number of rows.
 * The case must outlive its timings. */
fr_status fr_bench_bed_load(fr_bench_bed *bed, const fr_bench_kernel *kernel, const fr_bench_case *c, bool cached,
                            bool refill);

typedef struct fr_bench_timing {
    bool same_bits;   /* the kernel's output has the definition's bits; a kernel with other bits is not timed */
    bool from_memory; /* the weights or cached positions are larger than the caches */
    size_t units;     /* number of units in a call; if the kernel is slow, fewer than the case has */
    /* Totals of one call on all threads together. */
    double bytes, macs, integer_macs, values;
    fr_bench_figure seconds;
    /* Medians of the machine's speed while the kernel was timed. If the operands are in caches, bandwidth is NaN. The
     * peak is the speed at which the call's multiply-adds of floats and of integers can follow each other. */
    double bandwidth, peak, clock;
    /* the least time that the machine's limits allow, divided by the measured time; NaN if no limit is known */
    fr_bench_figure of_limit;
    const char *limit;                /* "bandwidth" or "arithmetic"; NULL if no limit is known */
    double counts[FR_BENCH_COUNTERS]; /* events counted in one call of all threads */
} fr_bench_timing;

/* Describes a loop that reaches the peak of multiply-adds, and the number of rounds that one timing runs. If no peak is
 * known, `peak` is NULL. */
typedef struct fr_bench_roof {
    const fr_bench_peak *peak;
    size_t rounds;
} fr_bench_roof;

/* The peaks of an instruction set, for multiply-adds of floats and of integers of 8 bits. */
typedef struct fr_bench_roofs {
    fr_bench_roof floats, integers;
} fr_bench_roofs;

void fr_bench_bed_time(fr_bench_bed *bed, const fr_bench_kernel *kernel, const fr_bench_roofs *roofs,
                       fr_bench_timing *timing);

#endif
