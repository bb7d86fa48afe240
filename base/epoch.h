/* Counts epochs, which one thread advances and other threads wait for.
 *
 * In: a word that counts the epochs and that only one thread writes. Out: a thread that waits for an epoch goes on once
 * the word has reached it. The thread then sees everything that the writer wrote before it advanced the word. A waiting
 * thread spins first, about as long as a wait usually takes, then sleeps (sleep.h).
 *
 * The low bit of a word says that a thread sleeps on it; the other bits count. Bit and count change in one atomic
 * operation, so no wake-up is lost and none is sent needlessly. Counts wrap around. No thread waits for an epoch far
 * ahead, so the sign of a difference tells which of two counts is ahead. */
#ifndef FR_BASE_EPOCH_H
#define FR_BASE_EPOCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define FR_EPOCH_STEP 2u

typedef _Atomic uint32_t fr_epoch;

/* Describes a thread that waits, and how long its waits have taken. */
typedef struct fr_waiter {
    int cpu;               /* the CPU that the thread is pinned to; -1 if it is not pinned */
    bool oversubscribed;   /* there are more threads than CPUs, so the thread yields at once instead of spinning */
    int64_t crowded_until; /* time until which the thread sleeps instead of yielding, because a yield took long */
    int64_t crowded_for;   /* nanoseconds for which the thread avoids yields after a long yield. Each further long yield
                            * doubles the time, and a short yield sets it to 0 */
    int64_t usual;         /* average nanoseconds of a wait. Waits that are over at once, and waits far longer than any
                            * spin, are not counted */
} fr_waiter;

void fr_waiter_open(fr_waiter *waiter, int cpu, bool oversubscribed);

/* Advances the counter and returns the new epoch. Only one thread may advance a counter. */
uint32_t fr_epoch_advance(fr_epoch *epoch);

/* Each waits until the counter has reached the epoch `wanted`. fr_epoch_await is for waits within a run, while other
 * threads work; fr_epoch_await_run is for waits between two runs, while the caller does something else. */
void fr_epoch_await(fr_waiter *waiter, fr_epoch *epoch, uint32_t wanted);
void fr_epoch_await_run(fr_waiter *waiter, fr_epoch *epoch, uint32_t wanted);

/* Sets the counter `epoch` to the value of the counter `from`. No thread may be waiting for `epoch`. */
void fr_epoch_copy(fr_epoch *epoch, fr_epoch *from);

/* Reads the clock that waits are measured with. */
int64_t fr_epoch_nanoseconds(void);

#endif
