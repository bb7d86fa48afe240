/* Describes the data caches between a core and memory.
 *
 * In: the machine as hwloc sees it (caches_hwloc.c). Out: the data caches of the first core that this process may use,
 * nearest first. If the caches are unknown, the list is empty. Other cores may have different caches. A build without
 * hwloc, such as one that is cross-compiled for arm64, uses caches_plain.c, for which all caches are unknown. */
#ifndef FR_BENCH_CACHES_H
#define FR_BENCH_CACHES_H

#include <stddef.h>

typedef struct fr_bench_cache {
    unsigned level;
    size_t bytes, line; /* bytes: size of the cache; line: bytes of a cache line, 0 if unknown */
    size_t cores;       /* number of this process's cores that share the cache, at least 1 */
} fr_bench_cache;

#define FR_BENCH_CACHES 5

size_t fr_bench_caches(fr_bench_cache caches[FR_BENCH_CACHES]);

#endif
