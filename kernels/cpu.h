/* Instruction sets: their words, their order, and which of them this processor and operating system can run.
 *
 * In: CPUID and XGETBV, or the auxiliary vector. Out: levels, as bits. cpu_x86.c and cpu_aarch64.c each detect their
 * architecture's levels, the Makefile compiles one; isa.def has all of them, the same everywhere, so that a word of
 * another architecture is a known one that this machine lacks. */
#ifndef FR_KERNELS_CPU_H
#define FR_KERNELS_CPU_H

#include <stdbool.h>
#include <stddef.h>

/* Those of isa.def. scalar_fma is not a word: it is the second build of the scalar files, which
 * `scalar` takes where the processor has fused multiply-add. */
typedef enum fr_isa_level {
#define FR_ISA(level, word) FR_ISA_##level,
#include "kernels/isa.def"
#undef FR_ISA
    FR_ISA_WORDS,
    FR_ISA_SCALAR_FMA = FR_ISA_WORDS
} fr_isa_level;

/* The word of level `index`, NULL past the end; and the level of a word, FR_ISA_WORDS for any other. */
const char *fr_isa_word(size_t index);
fr_isa_level fr_isa_from_word(const char *word);

/* Levels this machine can run, 1 << level each; scalar always. A level is only there if all those are that it builds
 * on. */
unsigned fr_cpu_levels(void);

/* Levels that asking for `level` allows, 1 << level each: itself and those below it on its architecture. */
unsigned fr_isa_allows(fr_isa_level level);

#endif
