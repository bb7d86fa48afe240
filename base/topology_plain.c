/* The machine without hwloc: the affinity mask and the CPU quota.
 *
 * In: the calling thread's affinity. Out: a machine of one node, each CPU a core of its own. */
#include "base/topology.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/error.h"

fr_status fr_machine_read(fr_machine *machine) {
    cpu_set_t mask[FR_MAX_CPUS / CPU_SETSIZE];
    if (sched_getaffinity(0, sizeof mask, mask)) {
        return fr_fail(FR_MACHINE, "can't read which CPUs this process may use: %s", strerrordesc_np(errno));
    }
    *machine = (fr_machine){.nodes = 1, .quota = fr_cpu_quota("")};
    for (int cpu = 0; cpu < FR_MAX_CPUS && machine->count < FR_MAX_THREADS; cpu++) {
        if (CPU_ISSET_S(cpu, sizeof mask, mask)) {
            machine->places[machine->count++] = (fr_cpu_place){.cpu = cpu, .core = cpu};
        }
    }
    return FR_OK;
}
