/* Times reading memory in two ways. In the first way, a team of threads reads a block of memory, each thread its own
 * part; a small block is read several times. In the second way, one thread follows a chain of loads, in which each load
 * waits for the load before it.
 *
 * In: a pool, sizes. Out: bytes per second, seconds of a load. */
#ifndef FR_BENCH_MEMORY_H
#define FR_BENCH_MEMORY_H

#include "base/pool.h"
#include "bench/read.h"

typedef enum fr_bench_pages { FR_BENCH_SMALL, FR_BENCH_HUGE } fr_bench_pages;

/* Describes a block of memory. Each page was first touched by the thread that will read it, so that the page is in that
 * thread's NUMA node. */
typedef struct fr_bench_memory {
    const uint8_t *bytes;
    size_t size;
    size_t mapped; /* bytes that were mapped, in whole huge pages */
    bool huge;     /* the system has put most of the memory in huge pages */
    /* the loop that reads the memory; unless it is changed, the widest loop that this machine can run */
    const fr_bench_reader *reader;
} fr_bench_memory;

/* Takes memory. size is rounded down to whole pages. bytes is NULL if there was not enough memory. */
fr_bench_memory fr_bench_memory_take(fr_pool *pool, size_t size, fr_bench_pages pages);
void fr_bench_memory_close(fr_bench_memory *memory);

/* Each gives bytes per second. fr_bench_memory_read is for one reading by all threads. fr_bench_memory_reread is for
 * several readings in a row; if the memory fits into a cache, all but the first reading come from the cache. If the
 * pool has as many threads as the pool that took the memory, each thread reads the part that it touched. */
double fr_bench_memory_read(fr_pool *pool, const fr_bench_memory *memory);
double fr_bench_memory_reread(fr_pool *pool, const fr_bench_memory *memory, size_t passes);

/* fr_bench_memory_link links the cache lines into one ring in random order. fr_bench_memory_chase follows the ring for
 * `loads` loads from a line (initially memory->bytes), and returns the line at which to continue. Each load waits for
 * the load before it. */
void fr_bench_memory_link(const fr_bench_memory *memory);
const void *fr_bench_memory_chase(const void *from, size_t loads);

#endif
