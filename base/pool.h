/* A team of threads that runs one function together, step by step.
 *
 * In: a plan and a function. Out: the function has run once on each thread of the team, all in the default
 * floating-point environment. Inside it fr_team_sync is the barrier between dependent steps. Thread 0 is the caller.
 * With one thread there is no pool: fr_pool_run calls the function, fr_team_sync does nothing.
 *
 * Waiting spins about as long as it usually takes, then sleeps (futex); where other sessions' threads are pinned too
 * (cores.h) it lets them run in between; an oversubscribed plan yields at once instead of spinning.
 *
 * Beside other programs a run may have fewer threads than there are (crew.h): the first so many, the others sleep. Who
 * takes part is settled when a run begins, so each run is one team, whose partitions are by its own count. */
#ifndef FR_BASE_POOL_H
#define FR_BASE_POOL_H

#include "base/topology.h"

typedef struct fr_pool fr_pool;

/* A thread's seat in the team. */
typedef struct fr_team {
    fr_pool *pool;  /* NULL when alone */
    size_t index;   /* 0 .. count - 1 */
    size_t count;
    struct fr_ranks *ranks; /* NULL; or other processes' teams do the same with it (ranks.h): who splits work says so */
} fr_team;

typedef void fr_team_fn(void *context, const fr_team *team);

/* Starts the other threads, pinned as the plan says. The plan is copied. */
fr_status fr_pool_open(const fr_plan *plan, fr_pool **pool);
void fr_pool_close(fr_pool *pool);

/* Runs fn(context, seat) on every thread and returns when all are done. One caller at a time. Allocates nothing. If
 * the plan pins, the caller is pinned to thread 0's place while it runs, and as it was after; a caller that is there
 * already is left alone: the system calls would cost a short run a tenth of its time, and with its team on the other
 * CPUs nothing drives it away. */
void fr_pool_run(fr_pool *pool, fr_team_fn *fn, void *context);

/* The same on as many threads of the team as pay now. work and rows: what is done, and how much of it, so that times
 * are compared with those of the same work. Where threads are on several NUMA nodes all take part: a node's rows are
 * its own threads'. */
void fr_pool_run_some(fr_pool *pool, const void *work, size_t rows, fr_team_fn *fn, void *context);

/* Who says how many that is, 1 to the plan's threads, instead of what is measured: a test. */
typedef size_t fr_pool_choose_fn(void *context);
void fr_pool_choose(fr_pool *pool, fr_pool_choose_fn *choose, void *context);

/* All threads of the team arrive, then all go on; writes before are seen after. */
void fr_team_sync(const fr_team *team);

#endif
