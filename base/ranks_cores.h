/* Divides the cores of a machine among its ranks if several of them may use the same ones.
 *
 * In: a machine, and the rank's number among the ranks that may use the same cores. Out: the cores of this rank. All
 * ranks get equally many whole cores, give or take one. If there are more ranks than cores, several ranks share a core.
 * Without this division, the scheduler may leave ranks that wait for each other on one core, and each rank would start
 * as many threads as there are cores. */
#ifndef FR_BASE_RANKS_CORES_H
#define FR_BASE_RANKS_CORES_H

#include "base/topology.h"

/* Sets taken[i] to true for each place (processing unit) of the machine that this rank gets. taken: [machine->count].
 * Pure. */
void fr_ranks_cores(const fr_machine *machine, size_t index, size_t ranks, bool *taken);

/* Restricts the process to its share of this machine's cores, so that its threads are planned there. If the system
 * refuses, the process may still use all cores. */
void fr_ranks_take_cores(size_t index, size_t ranks);

/* Each gives a key for comparing processes. fr_ranks_machine_key gives equal keys to processes on one machine. A
 * machine is identified by its name and its boot, because names may repeat. fr_ranks_cores_key gives equal keys if the
 * processes may also use the same CPUs. */
uint64_t fr_ranks_machine_key(const char *host);
uint64_t fr_ranks_cores_key(uint64_t machine);

#endif
