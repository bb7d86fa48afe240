/* Implements the counts of epoch.h. */
#include "base/epoch.h"

#include <sched.h>
#include <time.h>

#include "base/cores.h"
#include "base/pause.h"
#include "base/sleep.h"

#define SLEEPER 1u

/* Limits how long a waiting thread spins, in nanoseconds. SPIN_NANOSECONDS is long enough for threads that finish a
 * step at slightly different times, and for the work that a caller does between two runs. A sleeping thread runs again
 * 20 to 80 us after its wake-up (2-core virtual machine, EPYC Zen 5). Within a run a thread spins for SPIN_USUALS times
 * the usual wait, but at least for SPIN_LEAST and at most for SPIN_NANOSECONDS. If a wait takes far longer than usual,
 * the awaited thread has lost its core. It may even be queued for the core of the thread that waits. */
#define SPIN_NANOSECONDS 100000
#define SPIN_LEAST       20000
#define SPIN_USUALS      8
#define SPINS_PER_LOOK   64 /* spins between two readings of the clock */
/* Number of yields before a waiting thread sleeps. With fewer yields, threads sleep at nearly each barrier. With more
 * yields, speed does not increase (measured on 2 cores). */
#define YIELDS           4
#define YIELD_AFTER      10000 /* ns until an unpinned thread yields: the awaited thread may need its CPU */

/* Bounds for yields on a CPU that another program keeps busy, in nanoseconds. On such a CPU a yield lets that program
 * run for 3 ms. Since version 6.18, Linux also makes the thread that yields pay for that time afterwards, so a team
 * that yields at each barrier would nearly stop. After a yield of more than LONG_YIELD_NANOSECONDS, a waiting thread
 * therefore sleeps instead of yielding. It does so for CROWDED_FIRST. Each further long yield doubles the time, up to
 * CROWDED_MAX. */
#define LONG_YIELD_NANOSECONDS 500000
#define CROWDED_FIRST          20000000
#define CROWDED_MAX            250000000

void fr_waiter_open(fr_waiter *waiter, int cpu, bool oversubscribed) {
    *waiter = (fr_waiter){.cpu = cpu, .oversubscribed = oversubscribed, .usual = SPIN_NANOSECONDS};
}

int64_t fr_epoch_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

uint32_t fr_epoch_advance(fr_epoch *epoch) {
    uint32_t next = (atomic_load_explicit(epoch, memory_order_relaxed) & ~SLEEPER) + FR_EPOCH_STEP;
    uint32_t old = atomic_exchange_explicit(epoch, next, memory_order_acq_rel);
    if (old & SLEEPER) fr_sleep_wake(epoch);
    return next;
}

void fr_epoch_copy(fr_epoch *epoch, fr_epoch *from) {
    uint32_t value = atomic_load_explicit(from, memory_order_relaxed);
    atomic_store_explicit(epoch, value & ~SLEEPER, memory_order_relaxed);
}

/* Returns true if the counter has not reached the epoch. The bit that marks a sleeping thread is masked off, because it
 * is no part of the count. */
static bool behind(uint32_t value, uint32_t wanted) {
    return (int32_t)((value & ~SLEEPER) - wanted) < 0;
}

static bool reached(fr_epoch *epoch, uint32_t wanted) {
    return !behind(atomic_load_explicit(epoch, memory_order_acquire), wanted);
}

/* Gives the next duration for which yields are avoided. The first duration is short, because one long yield does not
 * prove that another program keeps the CPU busy. */
static int64_t longer(int64_t crowded_for) {
    if (crowded_for == 0) return CROWDED_FIRST;
    return 2 * crowded_for < CROWDED_MAX ? 2 * crowded_for : CROWDED_MAX;
}

/* Lets other threads run on this CPU. Does nothing and returns false if a yield has recently taken long. */
static bool yielded(fr_waiter *own) {
    int64_t before = fr_epoch_nanoseconds();
    if (before < own->crowded_until) return false;
    sched_yield();
    int64_t after = fr_epoch_nanoseconds();
    own->crowded_for = after - before > LONG_YIELD_NANOSECONDS ? longer(own->crowded_for) : 0;
    own->crowded_until = after + own->crowded_for;
    return true;
}

static bool reached_in_a_look(fr_epoch *epoch, uint32_t wanted) {
    for (int i = 0; i < SPINS_PER_LOOK; i++) {
        if (reached(epoch, wanted)) return true;
        fr_pause();
    }
    return false;
}

/* Returns true if another thread may have work for this CPU. If the calling thread is pinned, the other thread is one
 * of another session, pinned to the same CPU. If threads are not pinned, the other thread may be the awaited one. */
static bool should_yield(const fr_waiter *own, int64_t began, int64_t now) {
    if (own->cpu >= 0) return fr_core_is_shared(own->cpu);
    return now - began >= YIELD_AFTER || now < own->crowded_until;
}

static bool reached_spinning(fr_waiter *own, fr_epoch *epoch, uint32_t wanted, int64_t began, int64_t limit) {
    int64_t now = began;
    do {
        if (should_yield(own, began, now) && !yielded(own)) return false;
        if (reached_in_a_look(epoch, wanted)) return true;
        now = fr_epoch_nanoseconds();
    } while (now - began < limit);
    return false;
}

static bool reached_yielding(fr_waiter *own, fr_epoch *epoch, uint32_t wanted) {
    for (int i = 0; i < YIELDS; i++) {
        if (reached(epoch, wanted)) return true;
        if (!yielded(own)) return false;
    }
    return false;
}

static void sleep_until(fr_epoch *epoch, uint32_t wanted) {
    uint32_t value = atomic_load_explicit(epoch, memory_order_acquire);
    while (behind(value, wanted)) {
        if ((value & SLEEPER) || atomic_compare_exchange_strong_explicit(epoch, &value, value | SLEEPER,
                                                                         memory_order_acquire, memory_order_acquire)) {
            fr_sleep_while(epoch, value | SLEEPER);
            value = atomic_load_explicit(epoch, memory_order_acquire);
        }
    }
}

/* Updates the average time of a wait. Waits far longer than any spin are left out, because they say nothing about how
 * long to spin. */
static void learn(fr_waiter *own, int64_t took) {
    if (took < 2 * SPIN_NANOSECONDS) own->usual += (took - own->usual) / 16;
}

static int64_t spin_limit(const fr_waiter *own) {
    int64_t limit = SPIN_USUALS * own->usual;
    return limit < SPIN_LEAST ? SPIN_LEAST : limit < SPIN_NANOSECONDS ? limit : SPIN_NANOSECONDS;
}

void fr_epoch_await(fr_waiter *own, fr_epoch *epoch, uint32_t wanted) {
    if (own->oversubscribed) {
        if (!reached_yielding(own, epoch, wanted)) sleep_until(epoch, wanted);
        return;
    }
    if (reached_in_a_look(epoch, wanted)) return;
    int64_t began = fr_epoch_nanoseconds();
    if (!reached_spinning(own, epoch, wanted, began, spin_limit(own))) sleep_until(epoch, wanted);
    learn(own, fr_epoch_nanoseconds() - began);
}

void fr_epoch_await_run(fr_waiter *own, fr_epoch *epoch, uint32_t wanted) {
    bool arrived = own->oversubscribed
                       ? reached_yielding(own, epoch, wanted)
                       : reached_in_a_look(epoch, wanted) ||
                             reached_spinning(own, epoch, wanted, fr_epoch_nanoseconds(), SPIN_NANOSECONDS);
    if (!arrived) sleep_until(epoch, wanted);
}
