/* Loops on registers alone that multiply and add as fast as an instruction set can, one file for each operation and
 * instruction set: dot_ (int8 into int32), fma_ (float32), bfdot_ (BF16 into float32).
 *
 * In: how many rounds. Out: how many multiply-adds that were. Each loop has as many independent sums as hide the
 * instruction's latency; its operands never change, so nothing is loaded. peaks_x86.c and peaks_aarch64.c list those
 * of their architecture, the Makefile compiles one. */
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
    fr_isa_level level;      /* it needs that, ... */
    const char *isa;         /* ... and this feature, mostly of its name; AMX has no level, as no kernel uses it */
    const char *instruction; /* that does it */
    bool kernels;            /* the engine's kernels of the level use it */
    fr_bench_loop *loop;
} fr_bench_peak;

/* The peaks of this architecture by operation, the weakest first. */
extern const fr_bench_peak fr_bench_peaks[];
extern const size_t fr_bench_peak_count;

/* Returns true if this machine runs it; asks the system for its registers where it must (AMX). */
bool fr_bench_peak_runs(const fr_bench_peak *peak);

/* A register whose value the optimizer may not know, so that it keeps every sum apart. A macro, for any vector type. */
#ifdef __x86_64__
#define FR_BENCH_OPAQUE(value) __asm__ volatile("" : "+v"(value))
#else
#define FR_BENCH_OPAQUE(value) __asm__ volatile("" : "+w"(value))
#endif

#endif
