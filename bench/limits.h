/* This machine's limits, by which all other figures are divided.
 *
 * In: a plan of threads. Out: bytes read and int8 multiply-adds done per second. Machines are shared and their speed
 * changes, so measure the limits right before the figures that are compared with them. */
#ifndef FR_BENCH_LIMITS_H
#define FR_BENCH_LIMITS_H

#include "bench/memory.h"
#include "bench/peaks.h"
#include "bench/sample.h"

/* Gives the bytes per second that the pool's threads read from memory together: the best of `repeats` passes over
 * `bytes` of new memory, in small and in huge pages. 0: no memory. */
double fr_bench_read_bandwidth(fr_pool *pool, size_t bytes, int repeats);

/* Opens memory that is read between other measurements (fr_bench_memory_read), in small or huge pages, whichever is
 * read faster. bytes NULL: there is no memory. */
fr_bench_memory fr_bench_memory_open(fr_pool *pool, size_t size);

/* Gives the loop that reaches the peak of the operation by which an instruction set's kernels multiply; NULL for a
 * word without such a loop (scalar), or one that this machine lacks. */
const fr_bench_peak *fr_bench_peak_of(fr_bench_operation operation, const char *isa);

/* Give the multiply-adds per second that the pool's threads do together on registers alone, with the int8 dot product
 * (the first) or the float32 product (the second) that an instruction set's kernels use. It is the best of several
 * runs; 0 for a word without a loop (scalar), or one that this machine lacks. */
double fr_bench_dot_peak(fr_pool *pool, const char *isa);
double fr_bench_fma_peak(fr_pool *pool, const char *isa);

/* Does the same with one run of a loop. This machine must be able to run it (fr_bench_peak_runs). */
double fr_bench_multiply(fr_pool *pool, const fr_bench_peak *peak, size_t rounds);

/* Gives the current cycles per second of the calling thread's core, by additions that wait for each other. */
double fr_bench_clock_rate(void);

#endif
