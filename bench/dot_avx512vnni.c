/* Reaches the int8 peak of AVX-512 VNNI: 64 multiply-adds per instruction (peaks.h). */
#include <immintrin.h>

#include "bench/peaks.h"

enum { SUMS = 16 };

double fr_bench_dot_avx512vnni(size_t rounds) {
    __m512i sum[SUMS], a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(5);
    FR_BENCH_OPAQUE(a);
    FR_BENCH_OPAQUE(b);
#pragma GCC unroll 16
    for (int s = 0; s < SUMS; s++) {
        sum[s] = _mm512_setzero_si512();
        FR_BENCH_OPAQUE(sum[s]);
    }
    for (size_t r = 0; r < rounds; r++) {
#pragma GCC unroll 16
        for (int s = 0; s < SUMS; s++) sum[s] = _mm512_dpbusd_epi32(sum[s], a, b);
    }
#pragma GCC unroll 16
    for (int s = 0; s < SUMS; s++) FR_BENCH_OPAQUE(sum[s]);
    return (double)rounds * SUMS * 64;
}
