/* The floating-point environment of the answer: round to nearest, denormals kept, exceptions masked.
 *
 * In: whatever control word the caller runs with (x86 MXCSR, AArch64 FPCR). Out: the default word while the library
 * works, the caller's afterwards. fpenv_x86.c and fpenv_aarch64.c; the Makefile compiles one. */
#ifndef FR_BASE_FPENV_H
#define FR_BASE_FPENV_H

#include <stdint.h>

/* Sets the default word, returns the one it replaced. */
uint64_t fr_fpenv_enter(void);

/* Puts a word back. Exception flags raised in between stay cleared of the library's own. */
void fr_fpenv_leave(uint64_t word);

#endif
