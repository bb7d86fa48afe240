/* Chooses CPUs for the threads of this process's sessions, so that sessions use different cores, and avoids cores of
 * other processes that are on record (process_registry.h).
 *
 * In: a machine and a plan for it. Out: the same plan on the CPUs of the same nodes to which the fewest threads are
 * pinned, whole cores before siblings; unchanged if no other session or process has pinned threads. There is one
 * account per process, for all of its threads. If there are more sessions than cores, the cores are shared evenly, and
 * a thread that waits lets the other sessions' threads run. */
#ifndef FR_BASE_CORES_H
#define FR_BASE_CORES_H

#include "base/topology.h"

/* Chooses the plan's CPUs and adds them to the account. A plan that does not pin stays as it is. */
void fr_cores_claim(const fr_machine *machine, fr_plan *plan);

/* Takes a claimed plan's CPUs from the account. */
void fr_cores_release(const fr_plan *plan);

/* Returns true if threads of several sessions are pinned to the CPU; costs one load. cpu -1 (not pinned): false. */
bool fr_core_is_shared(int cpu);

#endif
