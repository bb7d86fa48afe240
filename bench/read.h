/* Reads memory as fast as an instruction set can: loops, one file for each (read_ISA.c).
 *
 * In: page-aligned bytes, a multiple of 4096, and a number of times. Out: the exclusive or of all their words, so that
 * no load can be left out. Each loop has enough independent sums, in registers, to keep its loads coming. peaks_x86.c
 * and peaks_aarch64.c list the loops of their architecture. */
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

/* Gives the widest loop that this machine can run and that `words`, a list of instruction sets separated by commas,
 * allows; NULL allows all. */
const fr_bench_reader *fr_bench_widest_reader(const char *words);

/* Returns true if a list of words separated by commas has the word. list NULL: it has every word. */
bool fr_bench_listed(const char *list, const char *word);

/* Separates two passes. Otherwise the compiler could see that the second exclusive or undoes the first, and leave both
 * out. */
static inline void fr_bench_read_again(void) {
    __asm__ volatile("" : : : "memory");
}

#endif
