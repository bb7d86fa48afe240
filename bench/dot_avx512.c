/* Reaches the int8 peak of AVX-512 without VNNI (peaks.h). Three instructions do 64 multiply-adds. The first multiplies
 * and adds the products in pairs, the second adds these sums in pairs, and the third adds the result to the totals. */
#include <immintrin.h>

#include "bench/peaks.h"

enum { SUMS = 16 };

double fr_bench_dot_avx512(size_t rounds) {
    __m512i sum[SUMS], a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(5);
    FR_BENCH_OPAQUE(a);
    FR_BENCH_OPAQUE(b);
    __m512i ones = _mm512_set1_epi16(1);
    FR_BENCH_OPAQUE(ones);
#pragma GCC unroll 16
    for (int s = 0; s < SUMS; s++) {
        sum[s] = _mm512_setzero_si512();
        FR_BENCH_OPAQUE(sum[s]);
    }
    for (size_t r = 0; r < rounds; r++) {
#pragma GCC unroll 16
        for (int s = 0; s < SUMS; s++) {
            FR_BENCH_OPAQUE(a); /* stops the compiler from moving the product out of the loop */
            __m512i pairs = _mm512_maddubs_epi16(a, b);
            sum[s] = _mm512_add_epi32(sum[s], _mm512_madd_epi16(pairs, ones));
        }
    }
#pragma GCC unroll 16
    for (int s = 0; s < SUMS; s++) FR_BENCH_OPAQUE(sum[s]);
    return (double)rounds * SUMS * 64;
}
