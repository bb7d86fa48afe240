/* Which cores a rank takes, where ranks of one machine may all use the same ones.
 *
 * In: a machine, or this one as the process may use it; which of how many such ranks this is. Out: its part of the
 * cores: as many whole ones as the others have, give or take one; one that it shares where there are more ranks than
 * cores. Ranks that wait for each other on one core are left there by the scheduler, and each would have as many
 * threads as there are cores. */
#ifndef FR_BASE_RANKS_CORES_H
#define FR_BASE_RANKS_CORES_H

#include "base/topology.h"

/* taken: [machine->count], of places. Pure. */
void fr_ranks_cores(const fr_machine *machine, size_t index, size_t ranks, bool *taken);

/* Binds the process to them: its threads are planned there from then on. Where that fails it may use all, as before. */
void fr_ranks_take_cores(size_t index, size_t ranks);

/* Equal where processes are of one machine, whose names may be those of others: host, and when it was started. And
 * where, besides, they may use the same CPUs. */
uint64_t fr_ranks_machine_key(const char *host);
uint64_t fr_ranks_cores_key(uint64_t machine);

#endif
