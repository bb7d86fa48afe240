/* Implements sleep.h with condition variables, for systems without futexes.
 *
 * There are fewer condition variables than words, so several words share one; the address of a word chooses its
 * condition variable. A thread compares the word while it holds the lock, and a thread that wakes others takes the same
 * lock. So no wake-up can come between a thread's look at the word and its sleep. If a condition variable is signalled
 * for one word, threads that sleep on another word of the same variable return early. */
#include <pthread.h>

#include "base/sleep.h"

enum { BEDS = 8 };

typedef struct bed {
    pthread_mutex_t lock;
    pthread_cond_t woken;
} bed;

#define MADE \
    { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER }

static bed beds[BEDS] = {MADE, MADE, MADE, MADE, MADE, MADE, MADE, MADE};

/* Chooses a word's lock and condition variable by the word's cache line (its address / 64). Words that many threads
 * read are on cache lines of their own, so they rarely share a lock. */
static bed *bed_of(_Atomic uint32_t *word) {
    return &beds[(uintptr_t)word / 64 % BEDS];
}

void fr_sleep_while(_Atomic uint32_t *word, uint32_t value) {
    bed *own = bed_of(word);
    pthread_mutex_lock(&own->lock);
    if (atomic_load_explicit(word, memory_order_acquire) == value) pthread_cond_wait(&own->woken, &own->lock);
    pthread_mutex_unlock(&own->lock);
}

void fr_sleep_wake(_Atomic uint32_t *word) {
    bed *own = bed_of(word);
    pthread_mutex_lock(&own->lock);
    pthread_cond_broadcast(&own->woken);
    pthread_mutex_unlock(&own->lock);
}
