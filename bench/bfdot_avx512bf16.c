/* Reaches the peak of AVX-512 BF16 (peaks.h). Each instruction adds two products to each of 16 sums, which is 32
 * multiply-adds. */
#include <immintrin.h>

#include "bench/peaks.h"

enum { SUMS = 16 };

double fr_bench_bfdot_avx512bf16(size_t rounds) {
    __m512 sum[SUMS];
    __m512bh a = (__m512bh)_mm512_set1_epi16(0x3a80), b = (__m512bh)_mm512_set1_epi16(0x3980); /* 2^-10, 2^-12 */
    FR_BENCH_OPAQUE(a);
    FR_BENCH_OPAQUE(b);
#pragma GCC unroll 16
    for (int s = 0; s < SUMS; s++) {
        sum[s] = _mm512_setzero_ps();
        FR_BENCH_OPAQUE(sum[s]);
    }
    for (size_t r = 0; r < rounds; r++) {
#pragma GCC unroll 16
        for (int s = 0; s < SUMS; s++) sum[s] = _mm512_dpbf16_ps(sum[s], a, b);
    }
#pragma GCC unroll 16
    for (int s = 0; s < SUMS; s++) FR_BENCH_OPAQUE(sum[s]);
    return (double)rounds * SUMS * 32;
}
