/* Reads memory as fast as an instruction set can: loops, one file for each (read_ISA.c).
 *
 * In: bytes, page-aligned, a multiple of 4096 of them, and how often. Out: the exclusive or of all their words, so that
 * no load can be left out. Each loop has as many independent sums as keep its loads coming, in registers. peaks_x86.c
 * and peaks_aarch64.c list those of their architecture. */
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

/* Gives the widest loop that this machine runs and that `words`, a comma list of instruction-set words, allows; NULL
 * allows all. */
const fr_bench_reader *fr_bench_widest_reader(const char *words);

/* Returns true if a comma list has the word; NULL stands for a list of all words. */
bool fr_bench_listed(const char *list, const char *word);

/* Separates two passes. Otherwise the compiler could see that the second exclusive or undoes the first, and do
 * neither. */
static inline void fr_bench_read_again(void) {
    __asm__ volatile("" : : : "memory");
}

#endif
