/* Sets the floating-point environment of a caller to an unfriendly one: flush to zero, denormals as zero, rounding
 * down.
 *
 * In: nothing. Out: the control word before the change, so that a suite can check that the library restores it. */
#ifndef FR_TESTS_FP_CALLER_H
#define FR_TESTS_FP_CALLER_H

#include <stdint.h>

/* Returns the thread's control word (MXCSR or FPCR) without the exception flags. */
uint64_t fr_fp_word(void);

/* Sets a control word with the unfriendly settings. */
void fr_fp_unfriendly(void);

/* Sets the thread's control word. */
void fr_fp_set(uint64_t word);

#endif
