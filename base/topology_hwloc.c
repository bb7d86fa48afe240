/* Reads the machine from hwloc: processing units, cores, NUMA nodes. hwloc is used if /sys lacks the facts.
 *
 * In: hwloc's topology (without the units that the cpuset forbids), the calling thread's affinity, the CPU quota. Out:
 * the usable units in hwloc's order, in which neighbours share caches. Nodes are numbered in order of appearance. */
#include "base/topology_hwloc.h"

#include <string.h>

#include "base/error.h"
#include "base/topology_sys.h"

/* Gives the number of the unit's core. A unit without a core object counts as a core of its own, with a negative
 * number. */
static int core_of(hwloc_topology_t topology, hwloc_obj_t unit) {
    hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, unit);
    return core ? (int)core->logical_index : -1 - (int)unit->logical_index;
}

/* Gives the unit's node, numbered without gaps. The system numbers memory without CPUs (such as a CXL expander) after
 * the nodes that have CPUs. So the first node in a unit's set is the one that the unit belongs to. */
static int node_of(hwloc_obj_t unit, int *seen, int *count) {
    int node = unit->nodeset ? hwloc_bitmap_first(unit->nodeset) : 0;
    for (int i = 0; i < *count; i++) {
        if (seen[i] == node) return i;
    }
    seen[*count] = node;
    return (*count)++;
}

fr_status fr_machine_from_hwloc(hwloc_topology_t topology, hwloc_const_cpuset_t usable, fr_machine *machine) {
    int seen[FR_THREADS_MAX];
    *machine = (fr_machine){0};
    hwloc_obj_t unit = NULL;
    while (machine->count < FR_THREADS_MAX && (unit = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, unit))) {
        if (unit->os_index >= FR_CPUS_MAX || !hwloc_bitmap_isset(usable, unit->os_index)) continue;
        machine->places[machine->count++] = (fr_cpu_place){
            .cpu = (int)unit->os_index,
            .core = core_of(topology, unit),
            .node = node_of(unit, seen, &machine->nodes),
        };
    }
    return machine->count ? FR_OK : fr_fail(FR_MACHINE, "hwloc shows no CPU that this process may use");
}

static fr_status read_loaded(hwloc_topology_t topology, fr_machine *machine) {
    hwloc_cpuset_t usable = hwloc_bitmap_alloc();
    if (!usable) return fr_fail_memory("a CPU set", sizeof(cpu_set_t));
    if (hwloc_get_cpubind(topology, usable, HWLOC_CPUBIND_THREAD)) hwloc_bitmap_fill(usable);
    fr_status status = fr_machine_from_hwloc(topology, usable, machine);
    hwloc_bitmap_free(usable);
    machine->quota = fr_cpu_quota("");
    return status;
}

static fr_status read_by_hwloc(fr_machine *machine) {
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology)) return fr_fail(FR_MACHINE, "hwloc can't start");
    fr_status status = hwloc_topology_load(topology) ? fr_fail(FR_MACHINE, "hwloc can't read this machine")
                                                     : read_loaded(topology, machine);
    hwloc_topology_destroy(topology);
    return status;
}

fr_status fr_machine_read(fr_machine *machine) {
    bool usable[FR_CPUS_MAX];
    FR_TRY(fr_usable_cpus(usable));
    if (!fr_machine_from_sys("", usable, machine)) return read_by_hwloc(machine);
    machine->quota = fr_cpu_quota("");
    return FR_OK;
}
