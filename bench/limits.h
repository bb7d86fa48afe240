/* What this machine can do at most, measured now: the limits that every other figure is divided by.
 *
 * In: a plan of threads. Out: bytes read and int8 multiply-adds done per second. Machines are shared and drift, so
 * measure right before what is compared. */
#ifndef FR_BENCH_LIMITS_H
#define FR_BENCH_LIMITS_H

#include "bench/sample.h"
#include "src/pool.h"

/* Bytes per second that the pool's threads read from memory together: the best of `repeats` passes over `bytes` of
 * fresh memory, small and huge pages both tried. 0: no memory. */
double fr_bench_read_bandwidth(fr_pool *pool, size_t bytes, int repeats);

/* Memory to be read between other measurements, in the kind of pages, small or huge, that was read faster. */
typedef struct fr_bench_memory {
    const uint8_t *bytes;
    size_t size;
} fr_bench_memory;

/* bytes NULL: no memory. */
fr_bench_memory fr_bench_memory_open(fr_pool *pool, size_t size);
void fr_bench_memory_close(fr_bench_memory *memory);

/* Bytes per second of one reading by all threads. */
double fr_bench_memory_read(fr_pool *pool, const fr_bench_memory *memory);

/* int8 multiply-adds per second that the pool's threads do together, on registers alone, with the dot product of an
 * instruction-set word: the best of several runs. 0 for a word without one (scalar). This machine must have it. */
double fr_bench_dot_peak(fr_pool *pool, const char *isa);

#endif
