/* Lists the instruction sets with their words and their order, and finds those that this processor and operating
 * system can run.
 *
 * In: CPUID and XGETBV, or the auxiliary vector. Out: instruction sets ("levels") as bits. cpu_x86.c and cpu_aarch64.c
 * each detect the levels of one architecture, and the Makefile compiles one of the two. isa.def lists the levels of
 * all architectures. So the word of another architecture's level is known too, and the error can say that this machine
 * lacks it. */
#ifndef FR_KERNELS_CPU_H
#define FR_KERNELS_CPU_H

#include <stdbool.h>
#include <stddef.h>

/* The levels of isa.def. Users cannot ask for scalar_fma, which is the second build of the scalar files. The word
 * `scalar` selects it if the processor has fused multiply-add. */
typedef enum fr_isa_level {
#define FR_ISA(level, word) FR_ISA_##level,
#include "kernels/isa.def"
#undef FR_ISA
    FR_ISA_WORDS,
    FR_ISA_SCALAR_FMA = FR_ISA_WORDS
} fr_isa_level;

/* fr_isa_word returns the word of level `index`; NULL: there is no such level. fr_isa_from_word returns the level of a
 * word; FR_ISA_WORDS: the word is unknown. */
const char *fr_isa_word(size_t index);
fr_isa_level fr_isa_from_word(const char *word);

/* Returns the levels that this machine can run, as the sum of 1 << level. Scalar is always among them. If a level is
 * among them, so are all levels that it builds on. */
unsigned fr_cpu_levels(void);

/* Asks the system for the registers of a level that this machine can run, and returns false if it refuses. Only AMX
 * has to be asked for; call this before its kernels are called. */
bool fr_cpu_permits(fr_isa_level level);

/* Returns the levels that may be used if the user asks for `level`, as the sum of 1 << level: that level and those
 * below it on its architecture. */
unsigned fr_isa_allows(fr_isa_level level);

#endif
