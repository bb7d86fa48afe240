/* The pool of pool.h.
 *
 * Every thread counts its own steps in a word that all may read. A barrier is a dissemination: in its first step a
 * thread moves its own count on and waits until three neighbours' counts are as far; in the next step the same with
 * three threads four times as far away, who speak for their neighbours; until everyone has heard of everyone.
 *
 *      thread t waits for    t-1  t-2  t-3        step 1: all of t-3  .. t  have arrived
 *                            t-4  t-8  t-12       step 2: all of t-15 .. t
 *                            t-16 t-32 t-48       step 3: all of t-63 .. t       (modulo the number of threads)
 *
 * A word has one writer and few readers, so none is contended, and all threads do the same at the same time: a barrier
 * of two to four threads takes the time of one cache-line transfer, where one that gathers and releases takes two. Fork
 * and join are barriers too: workers wait in one between two runs.
 *
 * The low bit of a word says that somebody sleeps on it (futex); the rest counts. Bit and count change in one atomic
 * operation, so no wake-up is lost and none is asked for in vain. Counts wrap around: threads are never more than one
 * barrier apart, so the sign of a difference tells who is ahead. */
#include "base/pool.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cores.h"
#include "base/error.h"
#include "base/fpenv.h"
#include "base/pause.h"

#define CACHE_LINE 64

/* Kernels take up to 250 KB of it; what the process and its libraries keep by thread is cut out of it too (0.8 MB of
 * ThreadSanitizer's). */
#define STACK_BYTES ((size_t)4 << 20)

#define FAN ((size_t)4) /* a thread and the three it waits for */
#define SLEEPER 1u
#define STEP 2u

/* How long a waiter stays awake. Long enough for the uneven end of a step and for what a caller does between two runs;
 * a sleeper is back 20 to 80 us after its wake-up (2-core virtual machine, EPYC Zen 5). */
#define SPIN_NANOSECONDS 100000
#define SPINS_PER_LOOK 64 /* at the clock */
#define YIELDS 4 /* fewer cost a sleep at most barriers, more gain nothing (3 and 8 threads on 2 cores) */

/* Beside another program that keeps the CPU busy a yield hands it a turn of 3 ms, and since 6.18 Linux makes who yields
 * make up for it: with one at each barrier a team stands still. After one that took long, waiters sleep for a while. */
#define LONG_YIELD_NANOSECONDS 500000
#define CROWDED_NANOSECONDS 250000000

typedef _Atomic uint32_t word;

typedef struct seat {
    _Alignas(CACHE_LINE) word steps;
    _Alignas(CACHE_LINE) fr_team team; /* off the line that others poll */
    int cpu;                           /* its place; -1: not pinned */
    int64_t crowded_until;             /* yields would take long until then; its own thread's */
    pthread_t thread;
} seat;

struct fr_pool {
    fr_team_fn *fn; /* this and the next two: thread 0 writes them before a run's first barrier */
    void *context;
    bool stop;
    bool oversubscribed;
    size_t count;
    size_t started; /* seats that are taken, the caller's included: `count` once the pool is open */
    seat seats[];
};

/* ------------------------------------------------------------------------------------------------------- one waiter */

static long futex(word *at, int operation, uint32_t value) {
    return syscall(SYS_futex, at, operation, value, NULL, NULL, 0);
}

/* Moves a thread's count on; returns the new one. */
static uint32_t advance(word *steps) {
    uint32_t next = (atomic_load_explicit(steps, memory_order_relaxed) & ~SLEEPER) + STEP;
    uint32_t old = atomic_exchange_explicit(steps, next, memory_order_acq_rel);
    if (old & SLEEPER) futex(steps, FUTEX_WAKE_PRIVATE, INT_MAX);
    return next;
}

/* The sleeper's bit does not matter here: it lies below a step. */
static bool behind(uint32_t value, uint32_t step) {
    return (int32_t)((value & ~SLEEPER) - step) < 0;
}

static bool reached(word *steps, uint32_t step) {
    return !behind(atomic_load_explicit(steps, memory_order_acquire), step);
}

static int64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Lets the other threads of this CPU run; false where that has just taken long. */
static bool yielded(seat *own) {
    int64_t before = nanoseconds();
    if (before < own->crowded_until) return false;
    sched_yield();
    int64_t after = nanoseconds();
    if (after - before > LONG_YIELD_NANOSECONDS) own->crowded_until = after + CROWDED_NANOSECONDS;
    return true;
}

/* Unpinned, the thread that is waited for may have been put on the waiter's own CPU; and on a shared one another
 * session has work to do. */
static bool reached_spinning(seat *own, word *steps, uint32_t step) {
    int64_t give_up = 0;
    do {
        for (int i = 0; i < SPINS_PER_LOOK; i++) {
            if (reached(steps, step)) return true;
            fr_pause();
        }
        if ((own->cpu < 0 || fr_core_is_shared(own->cpu)) && !yielded(own)) return false;
        if (!give_up) give_up = nanoseconds() + SPIN_NANOSECONDS;
    } while (nanoseconds() < give_up);
    return false;
}

static bool reached_yielding(seat *own, word *steps, uint32_t step) {
    for (int i = 0; i < YIELDS; i++) {
        if (reached(steps, step)) return true;
        if (!yielded(own)) return false;
    }
    return false;
}

static void sleep_until(word *steps, uint32_t step) {
    uint32_t value = atomic_load_explicit(steps, memory_order_acquire);
    while (behind(value, step)) {
        if ((value & SLEEPER) ||
            atomic_compare_exchange_strong_explicit(steps, &value, value | SLEEPER, memory_order_acquire,
                                                    memory_order_acquire)) {
            futex(steps, FUTEX_WAIT_PRIVATE, value | SLEEPER);
            value = atomic_load_explicit(steps, memory_order_acquire);
        }
    }
}

static void wait_until(seat *own, word *steps, uint32_t step) {
    bool arrived = own->team.pool->oversubscribed ? reached_yielding(own, steps, step)
                                                  : reached_spinning(own, steps, step);
    if (!arrived) sleep_until(steps, step);
}

/* --------------------------------------------------------------------------------------------------------- the team */

static void barrier(fr_pool *pool, size_t index) {
    for (size_t near = 1; near < pool->count; near *= FAN) {
        uint32_t step = advance(&pool->seats[index].steps);
        for (size_t far = near; far < FAN * near && far < pool->count; far += near) {
            size_t other = index < far ? index + pool->count - far : index - far;
            wait_until(&pool->seats[index], &pool->seats[other].steps, step);
        }
    }
}

void fr_team_sync(const fr_team *team) {
    if (team->pool) barrier(team->pool, team->index);
}

static void *work(void *argument) {
    const fr_team *team = argument;
    fr_pool *pool = team->pool;
    fr_fpenv_enter();
    for (barrier(pool, team->index); !pool->stop; barrier(pool, team->index)) {
        pool->fn(pool->context, team);
        barrier(pool, team->index);
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------------------------- the caller */

typedef struct cpu_mask {
    cpu_set_t sets[FR_MAX_CPUS / CPU_SETSIZE];
} cpu_mask;

static cpu_mask only(int cpu) {
    cpu_mask mask;
    memset(&mask, 0, sizeof mask);
    CPU_SET_S((size_t)cpu, sizeof mask, mask.sets);
    return mask;
}

/* Pins the calling thread to `cpu`; false when there is nothing to undo. A system that refuses costs speed only. */
static bool pin_caller(int cpu, cpu_mask *before) {
    if (cpu < 0 || cpu == sched_getcpu() || sched_getaffinity(0, sizeof *before, before->sets)) return false;
    cpu_mask here = only(cpu);
    return sched_setaffinity(0, sizeof here, here.sets) == 0;
}

void fr_pool_run(fr_pool *pool, fr_team_fn *fn, void *context) {
    cpu_mask before;
    uint64_t environment = fr_fpenv_enter();
    bool pinned = pin_caller(pool->seats[0].cpu, &before);
    pool->fn = fn;
    pool->context = context;
    barrier(pool, 0);
    fn(context, &pool->seats[0].team);
    barrier(pool, 0);
    if (pinned) sched_setaffinity(0, sizeof before, before.sets);
    fr_fpenv_leave(environment);
}

/* ---------------------------------------------------------------------------------------------- opening and closing */

static fr_status start_thread(fr_pool *pool) {
    seat *free_seat = &pool->seats[pool->started];
    int cpu = free_seat->cpu;
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error) return fr_fail_memory("a thread's attributes", sizeof attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (cpu >= 0) {
        cpu_mask mask = only(cpu);
        error = pthread_attr_setaffinity_np(&attributes, sizeof mask, mask.sets);
    }
    if (!error) error = pthread_create(&free_seat->thread, &attributes, work, &free_seat->team);
    pthread_attr_destroy(&attributes);
    if (error == EAGAIN || error == ENOMEM) {
        return fr_fail(FR_MEMORY, "can't start thread %zu of %zu: %s", pool->started + 1, pool->count,
                       strerrordesc_np(error));
    }
    if (error) {
        return fr_fail(FR_MACHINE, "can't run thread %zu of %zu on CPU %d: %s", pool->started + 1, pool->count, cpu,
                       strerrordesc_np(error));
    }
    pool->started++;
    return FR_OK;
}

fr_status fr_pool_open(const fr_plan *plan, fr_pool **result) {
    size_t bytes = sizeof(fr_pool) + plan->threads * sizeof(seat);
    fr_pool *pool = aligned_alloc(CACHE_LINE, bytes);
    *result = NULL;
    if (!pool) return fr_fail_memory("the thread pool", bytes);
    memset(pool, 0, bytes);
    pool->oversubscribed = plan->oversubscribed;
    pool->count = plan->threads;
    for (size_t i = 0; i < pool->count; i++) {
        pool->seats[i].team = (fr_team){.pool = pool->count > 1 ? pool : NULL, .index = i, .count = pool->count};
        pool->seats[i].cpu = plan->cpu[i];
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

/* A pool whose opening failed is closed here too: its workers wait in their first barrier for threads that were never
 * started, so the caller takes the steps of those. */
void fr_pool_close(fr_pool *pool) {
    if (!pool) return;
    pool->stop = true;
    for (size_t i = pool->started; i < pool->count; i++) {
        for (size_t near = 1; near < pool->count; near *= FAN) advance(&pool->seats[i].steps);
    }
    barrier(pool, 0);
    for (size_t i = 1; i < pool->started; i++) pthread_join(pool->seats[i].thread, NULL);
    free(pool);
}
