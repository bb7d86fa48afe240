/* Chooses CPUs for the threads of this process's sessions, so that sessions use different cores, and avoids cores of
 * other processes that are on record (process_registry.h).
 *
 * In: a machine and a plan for it. Out: the same plan, whose threads are moved to the CPUs with the fewest pinned
 * threads. A thread stays on its node, and free cores are taken before the second hardware threads of busy cores. The
 * plan stays unchanged if no other session or process has pinned threads. Each process counts the threads of all its
 * sessions together. If there are more sessions than cores, the cores are shared evenly, and a thread that waits lets
 * the other sessions' threads run. */
#ifndef FR_BASE_CORES_H
#define FR_BASE_CORES_H

#include "base/topology.h"

/* Chooses CPUs for the plan's threads and records the threads there. A plan that does not pin its threads is left
 * unchanged. */
void fr_cores_claim(const fr_machine *machine, fr_plan *plan);

/* Removes from the record the threads of a plan that was given to fr_cores_claim. */
void fr_cores_release(const fr_plan *plan);

/* Returns true if threads of several sessions are pinned to the CPU; costs one load. A thread that is not pinned passes
 * cpu -1, which gives false. */
bool fr_core_is_shared(int cpu);

#endif
