/* Lists the instruction sets with their words and their order, and finds those that this processor and operating system
 * can run.
 *
 * In: CPUID and XGETBV, or the auxiliary vector. Out: instruction sets ("levels") as bits. cpu_x86.c and cpu_aarch64.c
 * each detect the levels of one architecture, and the Makefile compiles one of the two files. isa.def lists the levels
 * of all architectures. So a word of another architecture is known too, and the error line can say that this machine
 * lacks the level. */
#ifndef FR_KERNELS_CPU_H
#define FR_KERNELS_CPU_H

#include <stdbool.h>
#include <stddef.h>

/* Names the levels of isa.def. Users cannot ask for scalar_fma, which is the second build of the scalar files. If the
 * processor has fused multiply-add, the word `scalar` selects scalar_fma. */
typedef enum fr_isa_level {
#define FR_ISA(level, word) FR_ISA_##level,
#include "kernels/isa.def"
#undef FR_ISA
    FR_ISA_WORDS,
    FR_ISA_SCALAR_FMA = FR_ISA_WORDS
} fr_isa_level;

/* fr_isa_word returns the word of the level at `index`, or NULL past the last level. fr_isa_from_word returns the level
 * of a word, or FR_ISA_WORDS if the word is unknown. */
const char *fr_isa_word(size_t index);
fr_isa_level fr_isa_from_word(const char *word);

/* Returns the levels that this machine can run, as the sum of 1 << level. Scalar is always one of them. If a level is
 * included, so are all levels that it builds on. */
unsigned fr_cpu_levels(void);

/* Asks the system for the registers of a level that this machine can run, and returns false if the system refuses. Only
 * AMX needs this permission. Call this function before the level's kernels are called. */
bool fr_cpu_permits(fr_isa_level level);

/* Returns the levels that may be used if the user asks for `level`, as the sum of 1 << level. They are that level and
 * the levels below it on its architecture. */
unsigned fr_isa_allows(fr_isa_level level);

#endif
