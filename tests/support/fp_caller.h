/* Gives a thread an unfriendly floating-point environment, as a caller of the library may have it: results that are
 * denormal become zero, denormal inputs are read as zero, and numbers are rounded down.
 *
 * In: nothing. Out: the control word before the change. With it a suite can check that the library restores the
 * word. */
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
