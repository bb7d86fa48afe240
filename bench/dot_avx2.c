/* Reaches AVX2's peak for int8 (peaks.h). Three instructions do 32 multiply-adds. The first multiplies and adds the
 * products in pairs, the second adds these sums in pairs, and the third adds the result to the totals. */
#include <immintrin.h>

#include "bench/peaks.h"

enum { SUMS = 10 };

double fr_bench_dot_avx2(size_t rounds) {
    __m256i sum[SUMS], a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(5);
    FR_BENCH_OPAQUE(a);
    FR_BENCH_OPAQUE(b);
    __m256i ones = _mm256_set1_epi16(1);
    FR_BENCH_OPAQUE(ones);
#pragma GCC unroll 10
    for (int s = 0; s < SUMS; s++) {
        sum[s] = _mm256_setzero_si256();
        FR_BENCH_OPAQUE(sum[s]);
    }
    for (size_t r = 0; r < rounds; r++) {
#pragma GCC unroll 10
        for (int s = 0; s < SUMS; s++) {
            FR_BENCH_OPAQUE(a); /* stops the compiler from moving the product out of the loop */
            __m256i pairs = _mm256_maddubs_epi16(a, b);
            sum[s] = _mm256_add_epi32(sum[s], _mm256_madd_epi16(pairs, ones));
        }
    }
#pragma GCC unroll 10
    for (int s = 0; s < SUMS; s++) FR_BENCH_OPAQUE(sum[s]);
    return (double)rounds * SUMS * 32;
}
