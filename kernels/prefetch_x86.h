/* Hints that prefetch weights before they are used: which kind serves this processor.
 *
 * In: CPUID, asked once. Out: an answer that changes speed, never a bit. From any thread. */
#ifndef FR_KERNELS_PREFETCH_X86_H
#define FR_KERNELS_PREFETCH_X86_H

#include "kernels/compiler.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Into which cache weights are prefetched. FR_PREFETCH_PAGES: into L2, but only what a page begins with; the rest of it
 * is left to the processor's own prefetchers, which follow a stream to the end of its page and have to find it anew. */
typedef enum fr_prefetch_hint { FR_PREFETCH_NONE, FR_PREFETCH_L1, FR_PREFETCH_L2, FR_PREFETCH_PAGES } fr_prefetch_hint;

/* L2 on AMD's family 0x19, which is Zen 3 and 4; else L1. (Two cores of Zen 4 whose memory reads 50 GB/s: 4 rows of
 * Q4_0 read 21 GB/s with hints for L1, which wait in the same buffers as the loads of activations, 39 with hints for
 * L2, 25 without any. Zen 3 was not at hand; Zen 5 is served by L1.) */
fr_prefetch_hint fr_prefetch_hint_here(void);

/* Returns true if one or two rows of packed weights, which wait for memory alone, run faster with hints for L2 while
 * more rows do not. That holds for Intel's cores since Sapphire Rapids (Golden Cove), Intel's first with AVX-512
 * arithmetic on halves, by which they are recognized. A list of models would leave out the next ones, and those that a
 * virtual machine numbers otherwise. (Two such cores with AMX, which a plain loop reads at 30 GB/s, whole steps over
 * reading with hints for L1, and as it is now: one row of Q4_0 1.28 and 0.99, of Q4_K 1.34 and 1.01; two rows 1.37 and
 * 1.00, 1.45 and 1.00; from 4 rows on L2 gains nothing. Two of Emerald Rapids, 32 GB/s, with L2 as far ahead as L1: one
 * row of Q4_0 31.8 and 33.5 GB/s, two 29.4 and 32.2; one of Q4_K 29.9 and 32.6; but 8 of Q4_0, which the ports bound,
 * 28.1 and 27.5, and one with hints for pages 28.9.) */
bool fr_prefetch_few_to_l2(void);

/* Prefetches the lines that begin at bytes, bytes + 64, ...; size: a constant. */
FR_INLINE void fr_prefetch(fr_prefetch_hint how, const void *bytes, size_t size) {
    enum { PAGE = 4096, BEGINNING = 512 };
    const char *from = bytes;
    if (how == FR_PREFETCH_L1)
        FR_UNROLLED_FOR (size_t byte = 0; byte < size; byte += 64) _mm_prefetch(from + byte, _MM_HINT_T0);
    else if (how == FR_PREFETCH_L2 || (how == FR_PREFETCH_PAGES && (uintptr_t)from % PAGE < BEGINNING))
        FR_UNROLLED_FOR (size_t byte = 0; byte < size; byte += 64) _mm_prefetch(from + byte, _MM_HINT_T1);
}

#endif
