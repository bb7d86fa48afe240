/* Runs one function on a team of threads, step by step.
 *
 * In: a plan and a function. Out: the function has run once on each thread of the team, always in the default
 * floating-point environment. Inside it, fr_team_sync is the barrier between dependent steps. Thread 0 is the caller.
 * With one thread there is no pool: fr_pool_run calls the function, and fr_team_sync does nothing.
 *
 * A thread that waits spins about as long as a wait usually takes, then sleeps (futex). If threads of other sessions
 * are pinned to the same core (cores.h), the waiting thread lets them run meanwhile; with an oversubscribed plan it
 * yields at once instead of spinning.
 *
 * While other programs run, a run may use fewer threads than the pool has (team_size.h): the first ones take part, the
 * rest sleep. The number of threads is fixed when a run begins, so each run divides its work by the count of its own
 * team. */
#ifndef FR_BASE_POOL_H
#define FR_BASE_POOL_H

#include "base/topology.h"

typedef struct fr_pool fr_pool;

/* Tells a thread its position in the team. */
typedef struct fr_team {
    fr_pool *pool; /* NULL: the thread is alone */
    size_t index;  /* 0 .. count - 1 */
    size_t count;
    struct fr_ranks *ranks; /* the processes that share this work (ranks.h), set by the code that splits the work; NULL
                             * if one process does all of it */
} fr_team;

typedef void fr_team_fn(void *context, const fr_team *team);

/* Starts the other threads, pinned as the plan says. The plan is copied. */
fr_status fr_pool_open(const fr_plan *plan, fr_pool **pool);
void fr_pool_close(fr_pool *pool);

/* Runs fn(context, team) on every thread and returns when all are done. One caller at a time. Allocates nothing. If
 * the plan pins threads, the caller is pinned to thread 0's CPU during the run and gets its old affinity back
 * afterwards. A caller that already runs on this CPU is not pinned: the system calls would cost a short run a tenth of
 * its time, and the scheduler has no reason to move the caller while the team is on the other CPUs. */
void fr_pool_run(fr_pool *pool, fr_team_fn *fn, void *context);

/* Runs fn on as many threads of the team as are fastest at the moment. `work` identifies the kind of work and `rows`
 * its amount, so that only times of equal work are compared. If threads are on several NUMA nodes, all of them take
 * part, because the rows of a node belong to the node's own threads. */
void fr_pool_run_some(fr_pool *pool, const void *work, size_t rows, fr_team_fn *fn, void *context);

/* Sets a function that gives the number of threads, 1 to the plan's threads. Its result replaces measurements. It is
 * for tests. */
typedef size_t fr_pool_choose_fn(void *context);
void fr_pool_choose(fr_pool *pool, fr_pool_choose_fn *choose, void *context);

/* Waits until all threads of the team have arrived. After that each thread sees everything that the others wrote before
 * they arrived. */
void fr_team_sync(const fr_team *team);

#endif
