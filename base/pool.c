/* Runs the team of pool.h.
 *
 * Every thread counts its own epochs in a word that all threads may read. The barrier is a dissemination barrier: in
 * its first step a thread advances its own count and waits until the counts of three neighbours are as high. In the
 * next step it does the same with three threads that are four times as far away, and each of those has already waited
 * for its own three neighbours. The steps go on until every thread has waited, directly or not, for all others.
 *
 *      thread t waits for    t-1  t-2  t-3        step 1: all of t-3  .. t  have arrived
 *                            t-4  t-8  t-12       step 2: all of t-15 .. t
 *                            t-16 t-32 t-48       step 3: all of t-63 .. t       (modulo the number of threads)
 *
 * A word has one writer and few readers, so no word is contended. All threads do the same at the same time. A barrier
 * of two to four threads takes the time of one cache-line transfer; a barrier that first gathers at one thread and
 * then releases the others takes two.
 *
 * A run is started and finished along a tree. Thread t calls those of threads 4t+1 to 4t+4 that take part, does its
 * share, and waits until the called threads are done; only then does it count as done itself. Threads that do not take
 * part are not disturbed. Between two runs a waiting thread reads only the word that wakes it, so thread 0 may then
 * change the number of threads, and copy its own count to the threads that join. */
#include "base/pool.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/team_size.h"
#include "base/error.h"
#include "base/fpenv.h"
#include "base/cpu_wait.h"
#include "base/epoch.h"
#include "base/thread_stack.h"

#define CACHE_LINE 64

/* Number of threads in a step of the barrier (a thread and the three that it waits for), and number of threads that
 * one thread calls. */
#define FAN ((size_t)4)

/* Nanoseconds between two runs that are watched. Not every run is watched, because watching costs each thread 5 us. */
#define WATCH_NANOSECONDS 10000000

typedef struct member {
    _Alignas(CACHE_LINE) fr_epoch epoch;  /* counts the barriers that the thread has reached in all its runs */
    _Alignas(CACHE_LINE) fr_epoch called; /* counts the runs to which the thread was called; the thread that calls
                                           * advances it */
    _Alignas(CACHE_LINE) fr_epoch done;   /* counts the runs that the thread has finished */
    int64_t in_line;                      /* nanoseconds that the thread and the threads that it called waited for a
                                           * core; -1 if unknown */
    _Alignas(CACHE_LINE) fr_team team;    /* on a cache line of its own, which no other thread polls */
    fr_waiter waiter;
    pthread_t thread;
} member;

struct fr_pool {
    fr_team_fn *fn; /* before thread 0 calls any thread to a run, it writes this member and the next ones down to
                     * `taking` */
    void *context;
    bool stop;
    bool watched;  /* whether the threads measure in this run how long they wait for a core */
    size_t taking; /* number of threads that take part */
    size_t count;
    size_t started; /* number of threads that were started, counting the caller; once the pool is open, it equals
                     * `count` */
    bool one_node;
    fr_team_size team_size;
    int64_t watch_at;          /* time after which the next run is watched */
    fr_pool_choose_fn *choose; /* for tests: chooses the number of threads; if NULL, team_size chooses */
    void *choose_context;
    member members[];
};

/* --------------------------------------------------------------------------------------------------------- the team */

static void barrier(fr_pool *pool, size_t index) {
    member *own = &pool->members[index];
    for (size_t near = 1; near < pool->taking; near *= FAN) {
        uint32_t wanted = fr_epoch_advance(&own->epoch);
        for (size_t far = near; far < FAN * near && far < pool->taking; far += near) {
            size_t other = index < far ? index + pool->taking - far : index - far;
            fr_epoch_await(&own->waiter, &pool->members[other].epoch, wanted);
        }
    }
}

void fr_team_sync(const fr_team *team) {
    if (team->pool) barrier(team->pool, team->index);
}

/* Does a thread's part of a run. The thread calls the threads below it in the tree, does its share, and waits for the
 * called threads. */
static void take_part(fr_pool *pool, member *own) {
    size_t first = FAN * own->team.index + 1, count = 0;
    uint32_t calls[FAN];
    for (; count < FAN && first + count < pool->taking; count++)
        calls[count] = fr_epoch_advance(&pool->members[first + count].called);
    int64_t before = pool->watched ? fr_cpu_wait_nanoseconds() : -1;
    pool->fn(pool->context, &own->team);
    for (size_t i = 0; i < count; i++) fr_epoch_await(&own->waiter, &pool->members[first + i].done, calls[i]);
    own->in_line = before < 0 ? -1 : fr_cpu_wait_nanoseconds() - before;
    for (size_t i = 0; i < count && own->in_line >= 0; i++) {
        int64_t of_child = pool->members[first + i].in_line;
        own->in_line = of_child < 0 ? -1 : own->in_line + of_child;
    }
}

static void *work(void *argument) {
    member *own = argument;
    fr_pool *pool = own->team.pool;
    bool stop = false;
    fr_fpenv_enter();
    for (uint32_t call = FR_EPOCH_STEP; !stop; call += FR_EPOCH_STEP) {
        fr_epoch_await_run(&own->waiter, &own->called, call);
        stop = pool->stop;
        take_part(pool, own);
        fr_epoch_advance(&own->done);
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------------------------- the caller */

typedef struct cpu_mask {
    cpu_set_t sets[FR_CPUS_MAX / CPU_SETSIZE];
} cpu_mask;

static cpu_mask only(int cpu) {
    cpu_mask mask;
    memset(&mask, 0, sizeof mask);
    CPU_SET_S((size_t)cpu, sizeof mask, mask.sets);
    return mask;
}

/* Pins the calling thread to `cpu`. Returns true if the thread was pinned, so that its old affinity must be restored
 * later. If the system refuses, the only effect is less speed. */
static bool pin_caller(int cpu, cpu_mask *before) {
    if (cpu < 0 || cpu == sched_getcpu() || sched_getaffinity(0, sizeof *before, before->sets)) return false;
    cpu_mask here = only(cpu);
    return sched_setaffinity(0, sizeof here, here.sets) == 0;
}

/* Changes the number of threads that take part. Call this only between two runs: waiting threads then read nothing but
 * the word that wakes them. */
static void set_taking(fr_pool *pool, size_t taking) {
    if (taking == pool->taking) return;
    for (size_t i = pool->taking; i < taking; i++) fr_epoch_copy(&pool->members[i].epoch, &pool->members[0].epoch);
    for (size_t i = 0; i < taking; i++) pool->members[i].team.count = taking;
    pool->taking = taking;
}

static void run(fr_pool *pool, size_t taking, bool watched, fr_team_fn *fn, void *context) {
    cpu_mask before;
    uint64_t environment = fr_fpenv_enter();
    bool pinned = pin_caller(pool->members[0].waiter.cpu, &before);
    set_taking(pool, taking);
    pool->fn = fn;
    pool->context = context;
    pool->watched = watched;
    take_part(pool, &pool->members[0]);
    if (pinned) sched_setaffinity(0, sizeof before, before.sets);
    fr_fpenv_leave(environment);
}

void fr_pool_run(fr_pool *pool, fr_team_fn *fn, void *context) {
    run(pool, pool->count, false, fn, context);
}

/* Runs fn on as many threads as team_size decides, and tells team_size how long that took. */
static void run_team_size(fr_pool *pool, uint64_t kind, fr_team_fn *fn, void *context) {
    int64_t begin = fr_epoch_nanoseconds();
    bool watched = begin >= pool->watch_at;
    if (watched) pool->watch_at = begin + WATCH_NANOSECONDS;
    run(pool, fr_team_size_choose(&pool->team_size, begin), watched, fn, context);
    int64_t end = fr_epoch_nanoseconds();
    fr_team_size_learn(&pool->team_size, kind, end, end - begin, pool->members[0].in_line);
}

void fr_pool_run_some(fr_pool *pool, const void *work, size_t rows, fr_team_fn *fn, void *context) {
    if (pool->count == 1 || !pool->one_node)
        fr_pool_run(pool, fn, context);
    else if (pool->choose)
        run(pool, pool->choose(pool->choose_context), false, fn, context);
    else
        run_team_size(pool, (uintptr_t)work + rows, fn, context);
}

void fr_pool_choose(fr_pool *pool, fr_pool_choose_fn *choose, void *context) {
    pool->choose = choose;
    pool->choose_context = context;
}

/* ---------------------------------------------------------------------------------------------- opening and closing */

static fr_status start_thread(fr_pool *pool) {
    member *free_member = &pool->members[pool->started];
    int cpu = free_member->waiter.cpu;
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error) return fr_fail_memory("a thread's attributes", sizeof attributes);
    pthread_attr_setstacksize(&attributes, FR_THREAD_STACK_BYTES);
    error = pthread_create(&free_member->thread, &attributes, work, free_member);
    pthread_attr_destroy(&attributes);
    errno = error; /* for the %m of the lines below */
    if (error) return fr_fail(FR_MEMORY, "can't start thread %zu of %zu: %m", pool->started + 1, pool->count);
    pool->started++;
    if (cpu < 0) return FR_OK;
    cpu_mask mask = only(cpu);
    errno = pthread_setaffinity_np(free_member->thread, sizeof mask, mask.sets);
    if (errno == 0) return FR_OK;
    return fr_fail(FR_MACHINE, "can't run thread %zu of %zu on CPU %d: %m", pool->started, pool->count, cpu);
}

fr_status fr_pool_open(const fr_plan *plan, fr_pool **result) {
    size_t bytes = sizeof(fr_pool) + plan->threads * sizeof(member);
    fr_pool *pool = aligned_alloc(CACHE_LINE, bytes);
    *result = NULL;
    if (!pool) return fr_fail_memory("the thread pool", bytes);
    memset(pool, 0, bytes);
    pool->count = pool->taking = plan->threads;
    pool->one_node = plan->node[0] == plan->node[plan->threads - 1];
    fr_team_size_open(&pool->team_size, pool->count);
    for (size_t i = 0; i < pool->count; i++) {
        pool->members[i].team = (fr_team){.pool = pool->count > 1 ? pool : NULL, .index = i, .count = pool->count};
        fr_waiter_open(&pool->members[i].waiter, plan->cpu[i], plan->oversubscribed);
    }
    for (pool->started = 1; pool->started < pool->count;) {
        fr_status status = start_thread(pool);
        if (status == FR_OK) continue;
        fr_pool_close(pool);
        return status;
    }
    *result = pool;
    return FR_OK;
}

static void nothing(void *context, const fr_team *team) {
    (void)context;
    (void)team;
}

/* Closes a pool. It also works for a pool whose opening has failed after only some threads were started. */
void fr_pool_close(fr_pool *pool) {
    if (!pool) return;
    set_taking(pool, pool->started);
    pool->fn = nothing;
    pool->stop = true;
    pool->watched = false;
    take_part(pool, &pool->members[0]);
    for (size_t i = 1; i < pool->started; i++) pthread_join(pool->members[i].thread, NULL);
    free(pool);
}
