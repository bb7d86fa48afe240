/* Which CPUs the sessions of this process are pinned to, so that each takes cores that the others leave; of other
 * processes' as far as they are on record (core_record.h).
 *
 * In: a machine and a plan for it. Out: the same plan on the CPUs of the same nodes that fewest threads are pinned to,
 * whole cores before siblings; as it was where nobody else is pinned. One account a process, for all threads. Where
 * sessions are more than cores, their shares are even, and those who wait there let the others run. */
#ifndef FR_BASE_CORES_H
#define FR_BASE_CORES_H

#include "base/topology.h"

/* Chooses the plan's CPUs and enters them. A plan that does not pin stays as it is. */
void fr_cores_claim(const fr_machine *machine, fr_plan *plan);

/* Takes a claimed plan's CPUs from the account. */
void fr_cores_release(const fr_plan *plan);

/* Whether several threads of sessions are pinned to it; costs a load. cpu -1: no. */
bool fr_core_is_shared(int cpu);

#endif
