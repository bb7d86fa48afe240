/* A count of steps that one thread takes and others wait for.
 *
 * In: a word with one writer. Out: it moves on; whoever waits for a step goes on once it is taken, and sees what was
 * written before. Waiting spins first, about as long as it usually takes, then sleeps (futex).
 *
 * The low bit of a word says that somebody sleeps on it; the rest counts. Bit and count change in one atomic operation,
 * so no wake-up is lost and none is asked for in vain. Counts wrap around: nobody waits for a step far ahead, so the
 * sign of a difference tells who is. */
#ifndef FR_BASE_STEPS_H
#define FR_BASE_STEPS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define FR_STEP 2u

typedef _Atomic uint32_t fr_steps;

/* Where a thread waits, and what it knows of waiting there. */
typedef struct fr_waiter {
    int cpu;               /* its place; -1: not pinned */
    bool oversubscribed;   /* it lets others run at once */
    int64_t crowded_until; /* until then yields are taken to be long */
    int64_t crowded_for;   /* nanoseconds that a long yield counts for; 0: the last one was short */
    int64_t usual;         /* nanoseconds that a wait takes, if it is not over at once */
} fr_waiter;

void fr_waiter_open(fr_waiter *waiter, int cpu, bool oversubscribed);

/* Moves the count on by its own thread; returns the new one. */
uint32_t fr_steps_advance(fr_steps *steps);

/* Until the count has come that far: within a run, where others work meanwhile; or between two, where the caller does
 * something else. */
void fr_steps_await(fr_waiter *waiter, fr_steps *steps, uint32_t step);
void fr_steps_await_run(fr_waiter *waiter, fr_steps *steps, uint32_t step);

/* Sets a count that nobody looks at to another one. */
void fr_steps_copy(fr_steps *steps, fr_steps *from);

/* Of the clock that waits are measured by. */
int64_t fr_steps_nanoseconds(void);

#endif
