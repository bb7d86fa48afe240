/* What this machine can do at most, measured now: the limits that every other figure is divided by.
 *
 * In: a plan of threads. Out: bytes read and int8 multiply-adds done per second. Machines are shared and drift, so
 * measure right before what is compared. */
#ifndef FR_BENCH_LIMITS_H
#define FR_BENCH_LIMITS_H

#include "src/pool.h"

/* Bytes per second that the pool's threads read from memory together: the best of `repeats` passes over `bytes` of
 * fresh memory, small and huge pages both tried. 0: no memory. */
double fr_bench_read_bandwidth(fr_pool *pool, size_t bytes, int repeats);

/* int8 multiply-adds per second that the pool's threads do together, on registers alone, with the dot product of an
 * instruction-set word: the best of several runs. 0 for a word without one (scalar). This machine must have it. */
double fr_bench_dot_peak(fr_pool *pool, const char *isa);

/* The middle of n values, which are sorted in place. */
double fr_bench_median(double *values, size_t n);

#endif
