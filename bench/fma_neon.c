/* Reaches the float32 peak of NEON: 4 multiply-adds per instruction (peaks.h). */
#include <arm_neon.h>

#include "bench/peaks.h"

enum { SUMS = 16 };

double fr_bench_fma_neon(size_t rounds) {
    float32x4_t sum[SUMS];
    float32x4_t a = vdupq_n_f32(0x1p-10f), b = vdupq_n_f32(0x1p-12f);
    FR_BENCH_OPAQUE(a);
    FR_BENCH_OPAQUE(b);
#pragma GCC unroll 16
    for (int s = 0; s < SUMS; s++) {
        sum[s] = vdupq_n_f32(0);
        FR_BENCH_OPAQUE(sum[s]);
    }
    for (size_t r = 0; r < rounds; r++) {
#pragma GCC unroll 16
        for (int s = 0; s < SUMS; s++) sum[s] = vfmaq_f32(sum[s], a, b);
    }
#pragma GCC unroll 16
    for (int s = 0; s < SUMS; s++) FR_BENCH_OPAQUE(sum[s]);
    return (double)rounds * SUMS * 4;
}
