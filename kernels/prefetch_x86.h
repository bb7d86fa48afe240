/* Hints that fetch weights before they are used: which kind serves this processor.
 *
 * In: CPUID, asked once. Out: an answer that changes speed, never a bit. From any thread. */
#ifndef FR_KERNELS_PREFETCH_X86_H
#define FR_KERNELS_PREFETCH_X86_H

#include <stdbool.h>

/* Whether weights should be fetched into the L2 cache, and left to the processor's own prefetchers where they are used
 * up as fast as they come; else into the L1 cache, always. True on AMD's family 0x19, Zen 4. (Two cores of Zen 4 whose
 * memory reads 50 GB/s: 4 rows of Q4_0 read 21 GB/s with hints for L1, which wait in the same buffers as the loads of
 * activations, 39 with hints for L2, 25 without; one row of Q8_0 37, 34 and 46. Zen 5 is served by L1.) */
bool fr_prefetch_into_l2(void);

#endif
