/* Reads the caches by hwloc (caches.h). */
#include <hwloc.h>

#include "bench/caches.h"

static size_t cores_below(hwloc_topology_t topology, hwloc_obj_t cache, hwloc_const_cpuset_t usable) {
    size_t cores = 0;
    hwloc_obj_t core = NULL;
    while ((core = hwloc_get_next_obj_inside_cpuset_by_type(topology, cache->cpuset, HWLOC_OBJ_CORE, core)))
        cores += hwloc_bitmap_intersects(core->cpuset, usable) != 0;
    return cores ? cores : 1;
}

static size_t read_loaded(hwloc_topology_t topology, hwloc_const_cpuset_t usable, fr_bench_cache *caches) {
    size_t count = 0;
    hwloc_obj_t at = hwloc_get_pu_obj_by_os_index(topology, (unsigned)hwloc_bitmap_first(usable));
    for (; at && count < FR_BENCH_CACHES; at = at->parent) {
        if (!hwloc_obj_type_is_dcache(at->type) || !at->attr->cache.size) continue;
        caches[count++] = (fr_bench_cache){
            .level = at->attr->cache.depth,
            .bytes = at->attr->cache.size,
            .line = at->attr->cache.linesize,
            .cores = cores_below(topology, at, usable),
        };
    }
    return count;
}

size_t fr_bench_caches(fr_bench_cache caches[FR_BENCH_CACHES]) {
    hwloc_topology_t topology;
    size_t count = 0;
    hwloc_cpuset_t usable = hwloc_bitmap_alloc();
    if (!usable || hwloc_topology_init(&topology)) {
        hwloc_bitmap_free(usable);
        return 0;
    }
    if (hwloc_topology_load(topology) == 0) {
        if (hwloc_get_cpubind(topology, usable, HWLOC_CPUBIND_THREAD))
            hwloc_bitmap_copy(usable, hwloc_topology_get_allowed_cpuset(topology));
        count = read_loaded(topology, usable, caches);
    }
    hwloc_topology_destroy(topology);
    hwloc_bitmap_free(usable);
    return count;
}
