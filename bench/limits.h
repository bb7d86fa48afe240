/* Measures this machine's limits. All other figures are compared with them.
 *
 * In: a plan of threads. Out: bytes read and multiply-adds done per second. The speed of a shared machine changes, so
 * measure the limits right before the figures that are compared with them. */
#ifndef FR_BENCH_LIMITS_H
#define FR_BENCH_LIMITS_H

#include "bench/memory.h"
#include "bench/peaks.h"
#include "bench/sample.h"

/* Gives the bytes per second at which the pool's threads read memory together. The result is the best of `repeats`
 * passes over `bytes` bytes of new memory, in small or in huge pages. It is 0 if there was not enough memory. */
double fr_bench_read_bandwidth(fr_pool *pool, size_t bytes, int repeats);

/* Takes memory that can be read between other measurements (fr_bench_memory_read). The memory is in small or in huge
 * pages, whichever are read faster. If there is not enough memory, the result's `bytes` is NULL. */
fr_bench_memory fr_bench_memory_open(fr_pool *pool, size_t size);

/* Gives the loop that reaches the peak of the operation with which an instruction set's kernels multiply. Returns NULL
 * if the instruction set has no such loop (scalar), or if this machine can't run the loop. */
const fr_bench_peak *fr_bench_peak_of(fr_bench_operation operation, const char *isa);

/* Each gives the multiply-adds per second that the pool's threads reach together on registers alone, the best of
 * several runs. fr_bench_dot_peak measures the int8 dot product that the instruction set's kernels use, and
 * fr_bench_fma_peak the float32 product. The result is 0 if the instruction set has no such loop (scalar), or if this
 * machine can't run the loop. */
double fr_bench_dot_peak(fr_pool *pool, const char *isa);
double fr_bench_fma_peak(fr_pool *pool, const char *isa);

/* Gives the multiply-adds per second of a single run of the loop of `peak`. The machine must be able to run the loop
 * (fr_bench_peak_runs). */
double fr_bench_multiply(fr_pool *pool, const fr_bench_peak *peak, size_t rounds);

/* Gives the current clock of the calling thread's core in cycles per second. It is measured by timing additions that
 * depend on each other. */
double fr_bench_clock_rate(void);

#endif
