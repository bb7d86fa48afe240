/* Sets the floating-point environment of all computations: round to nearest, denormals kept, exceptions masked.
 *
 * In: the caller's control word (x86 MXCSR, AArch64 FPCR), whatever it is. Out: the default word while the library
 * works, the caller's afterwards. The Makefile compiles fpenv_x86.c or fpenv_aarch64.c. */
#ifndef FR_BASE_FPENV_H
#define FR_BASE_FPENV_H

#include <stdint.h>

/* Sets the default control word and returns the word that it replaces. */
uint64_t fr_fpenv_enter(void);

/* Restores the caller's word, including its exception flags. Flags that the library's computations raised are
 * dropped. */
void fr_fpenv_leave(uint64_t word);

#endif
