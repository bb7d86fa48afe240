/* Decides which kind of hint for prefetching weights is fastest on this processor.
 *
 * In: CPUID, which is read once. Out: an answer that changes the speed of kernels, but never their results. May be
 * called from any thread. */
#ifndef FR_KERNELS_PREFETCH_X86_H
#define FR_KERNELS_PREFETCH_X86_H

#include "kernels/compiler.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Names the cache into which weights are prefetched. FR_PREFETCH_PAGES prefetches only the beginning of each page, into
 * L2. The processor's own prefetchers follow a stream to the end of its page, but must detect it anew in the next
 * page. */
typedef enum fr_prefetch_hint { FR_PREFETCH_NONE, FR_PREFETCH_L1, FR_PREFETCH_L2, FR_PREFETCH_PAGES } fr_prefetch_hint;

/* Returns FR_PREFETCH_L2 on AMD's family 0x19, which is Zen 3 and 4, and FR_PREFETCH_L1 on other processors. (Measured
 * on two cores of Zen 4 whose memory reads 50 GB/s, with 4 rows of Q4_0: 21 GB/s with hints for L1, which occupy the
 * buffers that loads of activations need; 39 GB/s with hints for L2; 25 GB/s without hints. Zen 3 was not measured. On
 * Zen 5 hints for L1 are as good.) */
fr_prefetch_hint fr_prefetch_hint_here(void);

/* Returns true if one or two rows of packed weights run faster with hints for L2, although more rows do not. Memory
 * alone limits one or two rows. The function returns true for Intel's cores since Sapphire Rapids (Golden Cove). These
 * cores were the first with AVX-512 arithmetic on float16, and are recognized by it. A list of models would miss future
 * models, and those that a virtual machine reports under another number.
 *
 * Time of a whole step over the time of reading the weights, on two such cores with AMX, which read 30 GB/s in a plain
 * loop (from 4 rows on, hints for L2 gain nothing):
 *
 *     1 row of Q4_0      1.28 with hints for L1, 0.99 with hints for L2
 *     1 row of Q4_K      1.34 and 1.01
 *     2 rows of Q4_0     1.37 and 1.00
 *     2 rows of Q4_K     1.45 and 1.00
 *
 * GB/s on two cores of Emerald Rapids, which read 32 GB/s, with the same prefetch distance for L1 and L2:
 *
 *     1 row of Q4_0      31.8 with hints for L1, 33.5 with hints for L2; 28.9 with hints for pages
 *     2 rows of Q4_0     29.4 and 32.2
 *     1 row of Q4_K      29.9 and 32.6
 *     8 rows of Q4_0     28.1 and 27.5, because the execution ports are the limit */
bool fr_prefetch_few_to_l2(void);

/* Prefetches the cache lines at bytes, bytes + 64, ... below bytes + size. Callers pass a constant as `size`. */
FR_INLINE void fr_prefetch(fr_prefetch_hint how, const void *bytes, size_t size) {
    enum { PAGE = 4096, BEGINNING = 512 };
    const char *from = bytes;
    if (how == FR_PREFETCH_L1)
        FR_UNROLLED_FOR (size_t byte = 0; byte < size; byte += 64) _mm_prefetch(from + byte, _MM_HINT_T0);
    else if (how == FR_PREFETCH_L2 || (how == FR_PREFETCH_PAGES && (uintptr_t)from % PAGE < BEGINNING))
        FR_UNROLLED_FOR (size_t byte = 0; byte < size; byte += 64) _mm_prefetch(from + byte, _MM_HINT_T1);
}

#endif
