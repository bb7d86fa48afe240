/* Reads the machine without hwloc: from /sys, or from the affinity mask alone.
 *
 * In: the calling thread's affinity. Out: a machine. If /sys says nothing, the machine has one node, and each CPU
 * counts as a core. */
#include "base/topology.h"

#include "base/error.h"
#include "base/topology_sys.h"

fr_status fr_machine_read(fr_machine *machine) {
    bool usable[FR_CPUS_MAX];
    FR_TRY(fr_usable_cpus(usable));
    if (fr_machine_from_sys("", usable, machine)) {
        machine->quota = fr_cpu_quota("");
        return FR_OK;
    }
    *machine = (fr_machine){.nodes = 1, .quota = fr_cpu_quota("")};
    for (int cpu = 0; cpu < FR_CPUS_MAX && machine->count < FR_THREADS_MAX; cpu++) {
        if (usable[cpu]) {
            machine->places[machine->count++] = (fr_cpu_place){.cpu = cpu, .core = cpu};
        }
    }
    return FR_OK;
}
