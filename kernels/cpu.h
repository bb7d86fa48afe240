/* Instruction sets: their words, their order, and which of them this processor and operating system can run.
 *
 * In: CPUID and XGETBV, or the auxiliary vector. Out: levels, as bits. cpu_x86.c and cpu_aarch64.c each detect their
 * architecture's levels, the Makefile compiles one; the words are in dispatch.c, the same everywhere, so that a word of
 * another architecture is a known one that this machine lacks. */
#ifndef FR_KERNELS_CPU_H
#define FR_KERNELS_CPU_H

#include <stdbool.h>
#include <stddef.h>

/* Weakest first within an architecture. scalar_fma is not a word: it is the second build of the scalar files, which
 * `scalar` takes where the processor has fused multiply-add. */
typedef enum fr_isa_level {
    FR_ISA_SCALAR,
    FR_ISA_AVX2,
    FR_ISA_AVXVNNI,
    FR_ISA_AVX512,
    FR_ISA_AVX512VNNI,
    FR_ISA_AMX,
    FR_ISA_NEON,
    FR_ISA_DOTPROD,
    FR_ISA_I8MM,
    FR_ISA_WORDS,
    FR_ISA_SCALAR_FMA = FR_ISA_WORDS
} fr_isa_level;

/* The word of level `index`: scalar avx2 avxvnni avx512 avx512vnni amx neon dotprod i8mm; NULL past the end. */
const char *fr_isa_word(size_t index);

/* Levels this machine can run, 1 << level each; scalar always. A level is only there if all those are that it builds
 * on. */
unsigned fr_cpu_levels(void);

/* Levels that asking for `level` allows, 1 << level each: itself and those below it on its architecture. */
unsigned fr_isa_allows(fr_isa_level level);

#endif
