/* Reaches the peak of Armv8.2's int8 dot product: 16 multiply-adds per instruction (peaks.h). */
#include <arm_neon.h>

#include "bench/peaks.h"

enum { SUMS = 16 };

double fr_bench_dot_dotprod(size_t rounds) {
    int32x4_t sum[SUMS];
    int8x16_t a = vdupq_n_s8(3), b = vdupq_n_s8(5);
    FR_BENCH_OPAQUE(a);
    FR_BENCH_OPAQUE(b);
#pragma GCC unroll 16
    for (int s = 0; s < SUMS; s++) {
        sum[s] = vdupq_n_s32(0);
        FR_BENCH_OPAQUE(sum[s]);
    }
    for (size_t r = 0; r < rounds; r++) {
#pragma GCC unroll 16
        for (int s = 0; s < SUMS; s++) sum[s] = vdotq_s32(sum[s], a, b);
    }
#pragma GCC unroll 16
    for (int s = 0; s < SUMS; s++) FR_BENCH_OPAQUE(sum[s]);
    return (double)rounds * SUMS * 16;
}
