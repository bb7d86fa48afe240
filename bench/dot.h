/* Loops that do nothing but int8 dot products on registers, one file (dot_*.c) for each instruction set with its own.
 *
 * In: how many rounds. Out: how many multiply-adds that were. Each loop has as many independent sums as hide the
 * instruction's latency; its operands never change, so nothing is loaded. */
#ifndef FR_BENCH_DOT_H
#define FR_BENCH_DOT_H

#include <stddef.h>

typedef double fr_dot_fn(size_t rounds);

fr_dot_fn fr_dot_avx2, fr_dot_avxvnni, fr_dot_avx512, fr_dot_avx512vnni; /* on x86-64 */
fr_dot_fn fr_dot_neon, fr_dot_dotprod, fr_dot_i8mm;                      /* on AArch64 */

/* A register whose value the optimizer may not know, so that it keeps every sum apart. A macro, for any vector type. */
#ifdef __x86_64__
#define FR_OPAQUE(value) __asm__ volatile("" : "+v"(value))
#else
#define FR_OPAQUE(value) __asm__ volatile("" : "+w"(value))
#endif

#endif
