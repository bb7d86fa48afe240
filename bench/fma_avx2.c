/* Reaches the float32 peak of AVX2 with FMA: 8 multiply-adds per instruction (peaks.h). */
#include <immintrin.h>

#include "bench/peaks.h"

enum { SUMS = 12 };

double fr_bench_fma_avx2(size_t rounds) {
    __m256 sum[SUMS];
    __m256 a = _mm256_set1_ps(0x1p-10f), b = _mm256_set1_ps(0x1p-12f);
    FR_BENCH_OPAQUE(a);
    FR_BENCH_OPAQUE(b);
#pragma GCC unroll 12
    for (int s = 0; s < SUMS; s++) {
        sum[s] = _mm256_setzero_ps();
        FR_BENCH_OPAQUE(sum[s]);
    }
    for (size_t r = 0; r < rounds; r++) {
#pragma GCC unroll 12
        for (int s = 0; s < SUMS; s++) sum[s] = _mm256_fmadd_ps(a, b, sum[s]);
    }
#pragma GCC unroll 12
    for (int s = 0; s < SUMS; s++) FR_BENCH_OPAQUE(sum[s]);
    return (double)rounds * SUMS * 8;
}
