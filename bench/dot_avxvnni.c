/* Reaches the int8 peak of AVX-VNNI: 32 multiply-adds per instruction (peaks.h). */
#include <immintrin.h>

#include "bench/peaks.h"

enum { SUMS = 12 };

double fr_bench_dot_avxvnni(size_t rounds) {
    __m256i sum[SUMS], a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(5);
    FR_BENCH_OPAQUE(a);
    FR_BENCH_OPAQUE(b);
#pragma GCC unroll 12
    for (int s = 0; s < SUMS; s++) {
        sum[s] = _mm256_setzero_si256();
        FR_BENCH_OPAQUE(sum[s]);
    }
    for (size_t r = 0; r < rounds; r++) {
#pragma GCC unroll 12
        for (int s = 0; s < SUMS; s++) sum[s] = _mm256_dpbusd_avx_epi32(sum[s], a, b);
    }
#pragma GCC unroll 12
    for (int s = 0; s < SUMS; s++) FR_BENCH_OPAQUE(sum[s]);
    return (double)rounds * SUMS * 32;
}
