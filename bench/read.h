/* Declares loops that read memory as fast as an instruction set can, each in its own file read_ISA.c.
 *
 * In: page-aligned bytes, whose number is a multiple of 4096, and a number of times to read them. Out: the exclusive or
 * of all their words, so that the compiler can't omit a load. Each loop keeps several independent results in registers,
 * so that its loads don't wait for one another. peaks_x86.c and peaks_aarch64.c list the loops of their
 * architecture. */
#ifndef FR_BENCH_READ_H
#define FR_BENCH_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu.h"

typedef uint64_t fr_bench_read_loop(const uint8_t *bytes, size_t size, size_t passes);

fr_bench_read_loop fr_bench_read_scalar, fr_bench_read_avx2, fr_bench_read_avx512, fr_bench_read_neon;

typedef struct fr_bench_reader {
    fr_isa_level level;
    fr_bench_read_loop *loop;
} fr_bench_reader;

/* The loops of this architecture, the narrowest first. */
extern const fr_bench_reader fr_bench_readers[];
extern const size_t fr_bench_reader_count;

/* Gives the widest loop that this machine can run and that `words` allows. words: a list of instruction sets, separated
 * by commas; NULL allows all of them. */
const fr_bench_reader *fr_bench_widest_reader(const char *words);

/* Returns true if a list contains the word. The words of a list are separated by commas. A NULL list contains every
 * word. */
bool fr_bench_listed(const char *list, const char *word);

/* Keeps the compiler from combining two passes. It could otherwise see that reading the same bytes twice cancels in the
 * exclusive or, and omit both passes. */
static inline void fr_bench_read_again(void) {
    __asm__ volatile("" : : : "memory");
}

#endif
