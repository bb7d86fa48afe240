/* Times reading memory: by a team of threads, each of which reads its own part as often as timing needs it; and by one
 * thread, where each load waits for the one before.
 *
 * In: a pool, sizes. Out: bytes per second, seconds of a load. */
#ifndef FR_BENCH_MEMORY_H
#define FR_BENCH_MEMORY_H

#include "base/pool.h"
#include "bench/read.h"

typedef enum fr_bench_pages { FR_BENCH_SMALL, FR_BENCH_HUGE } fr_bench_pages;

/* Memory each page of which is first touched by the thread that will read it. */
typedef struct fr_bench_memory {
    const uint8_t *bytes;
    size_t size;
    size_t mapped;                 /* bytes that the system was asked for, in whole huge pages */
    bool huge;                     /* the system has put most of it in huge pages */
    const fr_bench_reader *reader; /* the loop that reads it; at first the widest loop that this machine has */
} fr_bench_memory;

/* Takes memory; size is rounded down to whole pages. bytes NULL: there was no memory. */
fr_bench_memory fr_bench_memory_take(fr_pool *pool, size_t size, fr_bench_pages pages);
void fr_bench_memory_close(fr_bench_memory *memory);

/* The first gives the bytes per second of one reading by all threads, the second those of several readings in a row,
 * of which all but the first come from a cache if the memory fits into one. Threads read the parts that they touched,
 * if the pool has as many threads as then. */
double fr_bench_memory_read(fr_pool *pool, const fr_bench_memory *memory);
double fr_bench_memory_reread(fr_pool *pool, const fr_bench_memory *memory, size_t passes);

/* The first function links the cache lines to one ring in random order. The second follows it from a line (the first
 * is memory->bytes), each load waiting for the one before, and returns the line from which to continue. */
void fr_bench_memory_link(const fr_bench_memory *memory);
const void *fr_bench_memory_chase(const void *from, size_t loads);

#endif
