/* Implements sleep.h with futexes. The futex call of Linux compares the word and sleeps in one step. */
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sleep.h"

static void futex(_Atomic uint32_t *word, int operation, uint32_t value) {
    syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

void fr_sleep_while(_Atomic uint32_t *word, uint32_t value) {
    futex(word, FUTEX_WAIT_PRIVATE, value);
}

void fr_sleep_wake(_Atomic uint32_t *word) {
    futex(word, FUTEX_WAKE_PRIVATE, INT_MAX);
}
