/* Decides which kind of hint for prefetching weights is fastest on this processor.
 *
 * In: CPUID, asked once. Out: an answer that changes speed, never a bit. May be called from any thread. */
#ifndef FR_KERNELS_PREFETCH_X86_H
#define FR_KERNELS_PREFETCH_X86_H

#include "kernels/compiler.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The cache into which weights are prefetched. FR_PREFETCH_PAGES prefetches only the beginning of each page, into L2.
 * The processor's own prefetchers follow a stream to the end of its page, but must detect it anew in the next page. */
typedef enum fr_prefetch_hint { FR_PREFETCH_NONE, FR_PREFETCH_L1, FR_PREFETCH_L2, FR_PREFETCH_PAGES } fr_prefetch_hint;

/* Returns FR_PREFETCH_L2 on AMD's family 0x19, which is Zen 3 and 4, else FR_PREFETCH_L1. (Measured on two cores of
 * Zen 4 whose memory reads 50 GB/s, with 4 rows of Q4_0: 21 GB/s with hints for L1, which occupy the buffers that
 * loads of activations need; 39 with hints for L2; 25 without hints. Zen 3 was not measured. On Zen 5 L1 is fine.) */
fr_prefetch_hint fr_prefetch_hint_here(void);

/* Returns true if one or two rows of packed weights run faster with hints for L2, although more rows do not. So few
 * rows are limited by memory alone. The function returns true for Intel's cores since Sapphire Rapids (Golden Cove).
 * These cores were the first with AVX-512 arithmetic on float16, and are recognized by it. A list of models would miss
 * future ones, and those that a virtual machine reports under another number.
 *
 * (Measured as the time of a whole step over the time of reading the weights, first with hints for L1, then with hints
 * for L2. Two such cores with AMX, which read 30 GB/s in a plain loop: one row of Q4_0 1.28 and 0.99, of Q4_K 1.34 and
 * 1.01; two rows 1.37 and 1.00, 1.45 and 1.00; from 4 rows on L2 gains nothing. Two cores of Emerald Rapids at 32
 * GB/s, here in GB/s, with hints for L1 and for L2 equally far ahead: one row of Q4_0 31.8 and 33.5, two 29.4 and
 * 32.2; one row of Q4_K 29.9 and 32.6; 8 rows of Q4_0, which the execution ports limit, 28.1 and 27.5; one row with
 * hints for pages 28.9.) */
bool fr_prefetch_few_to_l2(void);

/* Prefetches the cache lines at bytes, bytes + 64, ... below bytes + size; size is a constant. */
FR_INLINE void fr_prefetch(fr_prefetch_hint how, const void *bytes, size_t size) {
    enum { PAGE = 4096, BEGINNING = 512 };
    const char *from = bytes;
    if (how == FR_PREFETCH_L1)
        FR_UNROLLED_FOR (size_t byte = 0; byte < size; byte += 64) _mm_prefetch(from + byte, _MM_HINT_T0);
    else if (how == FR_PREFETCH_L2 || (how == FR_PREFETCH_PAGES && (uintptr_t)from % PAGE < BEGINNING))
        FR_UNROLLED_FOR (size_t byte = 0; byte < size; byte += 64) _mm_prefetch(from + byte, _MM_HINT_T1);
}

#endif
