/* Reaches plain NEON's peak for int8 (peaks.h). Two instructions do 8 multiply-adds: the first makes 16-bit products,
 * and the second adds these in pairs to the sums. */
#include <arm_neon.h>

#include "bench/peaks.h"

enum { SUMS = 12 };

double fr_bench_dot_neon(size_t rounds) {
    int32x4_t sum[SUMS];
    int8x8_t a = vdup_n_s8(3), b = vdup_n_s8(5);
    FR_BENCH_OPAQUE(a);
    FR_BENCH_OPAQUE(b);
#pragma GCC unroll 12
    for (int s = 0; s < SUMS; s++) {
        sum[s] = vdupq_n_s32(0);
        FR_BENCH_OPAQUE(sum[s]);
    }
    for (size_t r = 0; r < rounds; r++) {
#pragma GCC unroll 12
        for (int s = 0; s < SUMS; s++) {
            FR_BENCH_OPAQUE(a); /* stops the compiler from moving the product out of the loop */
            int16x8_t products = vmull_s8(a, b);
            sum[s] = vpadalq_s16(sum[s], products);
        }
    }
#pragma GCC unroll 12
    for (int s = 0; s < SUMS; s++) FR_BENCH_OPAQUE(sum[s]);
    return (double)rounds * SUMS * 8;
}
