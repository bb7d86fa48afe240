/* Declares loops that multiply and add on registers alone, as fast as an instruction set can. Each loop has its own
 * file, whose name tells the operation: dot_ multiplies int8 into int32, fma_ multiplies float32, bfdot_ multiplies
 * BF16 into float32.
 *
 * In: a number of rounds. Out: the number of multiply-adds in these rounds. Each loop has enough independent sums to
 * hide the instruction's latency. Its operands never change, so it loads nothing. peaks_x86.c and peaks_aarch64.c list
 * the loops of their architecture; the Makefile compiles one of these files. */
#ifndef FR_BENCH_PEAKS_H
#define FR_BENCH_PEAKS_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/cpu.h"

typedef double fr_bench_loop(size_t rounds);

fr_bench_loop fr_bench_dot_avx2, fr_bench_dot_avxvnni, fr_bench_dot_avx512, fr_bench_dot_avx512vnni, fr_bench_dot_amx;
fr_bench_loop fr_bench_fma_avx2, fr_bench_fma_avx512, fr_bench_bfdot_avx512bf16, fr_bench_bfdot_amx;
fr_bench_loop fr_bench_dot_neon, fr_bench_dot_dotprod, fr_bench_dot_i8mm, fr_bench_fma_neon, fr_bench_bfdot_bf16;

typedef enum fr_bench_operation { FR_BENCH_INT8, FR_BENCH_FP32, FR_BENCH_BF16, FR_BENCH_OPERATIONS } fr_bench_operation;

typedef struct fr_bench_peak {
    fr_bench_operation operation;
    fr_isa_level level; /* the level of instruction sets that the machine must have */
    /* Name of the instruction set that has the instruction. It is usually the level's name. Instructions for BF16
     * belong to no level. So the `level` of a BF16 loop is a lower one, which every machine with the instruction
     * has. */
    const char *isa;
    const char *instruction; /* the instruction whose speed is measured */
    bool kernels;            /* whether the engine's kernels of this level use the instruction */
    fr_bench_loop *loop;
} fr_bench_peak;

/* The peaks of this architecture, grouped by operation, the slowest first. */
extern const fr_bench_peak fr_bench_peaks[];
extern const size_t fr_bench_peak_count;

/* Returns true if this machine can run the loop. For AMX it also asks the system for permission to use the tiles. */
bool fr_bench_peak_runs(const fr_bench_peak *peak);

/* Hides a register's value from the optimizer, so that every sum stays separate. This is a macro because it must work
 * for any vector type. */
#ifdef __x86_64__
#define FR_BENCH_OPAQUE(value) __asm__ volatile("" : "+v"(value))
#else
#define FR_BENCH_OPAQUE(value) __asm__ volatile("" : "+w"(value))
#endif

#endif
