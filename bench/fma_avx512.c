/* Reaches the float32 peak of AVX-512: 16 multiply-adds per instruction (peaks.h). */
#include <immintrin.h>

#include "bench/peaks.h"

enum { SUMS = 16 };

double fr_bench_fma_avx512(size_t rounds) {
    __m512 sum[SUMS];
    __m512 a = _mm512_set1_ps(0x1p-10f), b = _mm512_set1_ps(0x1p-12f);
    FR_BENCH_OPAQUE(a);
    FR_BENCH_OPAQUE(b);
#pragma GCC unroll 16
    for (int s = 0; s < SUMS; s++) {
        sum[s] = _mm512_setzero_ps();
        FR_BENCH_OPAQUE(sum[s]);
    }
    for (size_t r = 0; r < rounds; r++) {
#pragma GCC unroll 16
        for (int s = 0; s < SUMS; s++) sum[s] = _mm512_fmadd_ps(a, b, sum[s]);
    }
#pragma GCC unroll 16
    for (int s = 0; s < SUMS; s++) FR_BENCH_OPAQUE(sum[s]);
    return (double)rounds * SUMS * 16;
}
