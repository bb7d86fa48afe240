/* Gives the caches between a core and memory.
 *
 * In: hwloc's view of the machine (caches_hwloc.c), or nothing (caches_plain.c: the arm64 build of another machine).
 * Out: the data caches of the first core that this process may use, nearest first; none if they are unknown. If cores
 * differ, the caches of other cores are not given. */
#ifndef FR_BENCH_CACHES_H
#define FR_BENCH_CACHES_H

#include <stddef.h>

typedef struct fr_bench_cache {
    unsigned level;
    size_t bytes, line; /* line 0: not known */
    size_t cores;       /* number of this process's cores that share the cache, at least 1 */
} fr_bench_cache;

#define FR_BENCH_CACHES 5

size_t fr_bench_caches(fr_bench_cache caches[FR_BENCH_CACHES]);

#endif
