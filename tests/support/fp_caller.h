/* A caller with an unfriendly floating-point environment: flush to zero, denormals as zero, rounding down.
 *
 * In: nothing. Out: the control word as it was, so that a suite can see that the library gave it back. */
#ifndef FR_TESTS_FP_CALLER_H
#define FR_TESTS_FP_CALLER_H

#include <stdint.h>

/* The thread's control word (MXCSR, FPCR), exception flags left out. */
uint64_t fr_fp_word(void);

/* Sets the unfriendly word. */
void fr_fp_unfriendly(void);

/* Sets a word. */
void fr_fp_set(uint64_t word);

#endif
