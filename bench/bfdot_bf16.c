/* Reaches the peak of Armv8.6's BF16 matrix product (peaks.h). Each instruction multiplies a 2x4 by a 4x2 matrix,
 * which is 16 multiply-adds. */
#include <arm_neon.h>

#include "bench/peaks.h"

enum { SUMS = 16 };

double fr_bench_bfdot_bf16(size_t rounds) {
    float32x4_t sum[SUMS];
    bfloat16x8_t a = vreinterpretq_bf16_u16(vdupq_n_u16(0x3a80)), b = vreinterpretq_bf16_u16(vdupq_n_u16(0x3980));
    FR_BENCH_OPAQUE(a);
    FR_BENCH_OPAQUE(b);
#pragma GCC unroll 16
    for (int s = 0; s < SUMS; s++) {
        sum[s] = vdupq_n_f32(0);
        FR_BENCH_OPAQUE(sum[s]);
    }
    for (size_t r = 0; r < rounds; r++) {
#pragma GCC unroll 16
        for (int s = 0; s < SUMS; s++) sum[s] = vbfmmlaq_f32(sum[s], a, b);
    }
#pragma GCC unroll 16
    for (int s = 0; s < SUMS; s++) FR_BENCH_OPAQUE(sum[s]);
    return (double)rounds * SUMS * 16;
}
