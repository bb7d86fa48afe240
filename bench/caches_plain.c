/* Reports that no caches are known. It is for builds without hwloc (caches.h). */
#include "bench/caches.h"

size_t fr_bench_caches(fr_bench_cache caches[FR_BENCH_CACHES]) {
    (void)caches;
    return 0;
}
