/* Lets threads sleep until another thread changes a word.
 *
 * In: a word that several threads share. Out: a thread sleeps while the word has a given value, and is woken after the
 * word has changed. The Makefile's SLEEP= chooses which of two files is compiled: sleep_futex.c, which needs Linux, or
 * sleep_condition.c, which needs only POSIX. */
#ifndef FR_BASE_SLEEP_H
#define FR_BASE_SLEEP_H

#include <stdatomic.h>
#include <stdint.h>

/* Sleeps while the word has the value. May return earlier, so the caller looks at the word and calls again. */
void fr_sleep_while(_Atomic uint32_t *word, uint32_t value);

/* Wakes all threads that sleep on the word. Call it after the word has changed. */
void fr_sleep_wake(_Atomic uint32_t *word);

#endif
