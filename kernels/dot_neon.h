/* Implements the dot product of block_neon.h on ARMv8.0, with products of 16 bits.
 *
 * The table has the number of instructions for 16 features x 32 columns, of which 64 per row multiply (block_neon.h
 * says how they were counted):
 *
 *     rows      1     2     4     8    16
 *     Q8_0    267   452   974  1962  3783
 *     Q4_0    231   383   801  1597  3056
 *     Q4_K    259   408   873  1740  3293
 *     Q6_K    371   544  1102  2085  3888 */
#ifndef FR_KERNELS_DOT_NEON_H
#define FR_KERNELS_DOT_NEON_H

#include "kernels/block_neon.h"

/* Multiplies half `half` of a run with q, as block_neon.h declares it. The products of several groups are added in
 * lanes of 16 bits, and then pairs of these lanes are added, in 16 bits too. A product is at most f.most * 127 in
 * magnitude, so each group adds at most 254 * f.most to the sum of a pair (32512 for f.most = 128). `room` is the
 * number of groups whose sum fits 16 bits. */
FR_INLINE void multiply(format f, row_sums sums, run_values values, size_t half, const int32_t (*q)[4], bool pair) {
    (void)pair;
    size_t room = 32767 / (254 * (size_t)f.most), span = room < 2 ? 1 : room < 4 ? 2 : 4;
    FR_UNROLLED_FOR (size_t from = 0; from + span <= 4; from += span) {
        int16x8_t low[PARTS], high[PARTS];
        FR_UNROLLED_FOR (size_t g = from; g < from + span; g++) {
            int8x16_t columns = vreinterpretq_s8_s32(vld1q_dup_s32(q[half] + g));
            FR_UNROLLED_FOR (size_t i = 0; i < PARTS; i++) {
                int8x16_t v = vreinterpretq_s8_u8(values[i][4 * half + g]);
                int8x8_t v0 = vget_low_s8(v), q0 = vget_low_s8(columns);
                low[i] = g == from ? vmull_s8(v0, q0) : vmlal_s8(low[i], v0, q0);
                high[i] = g == from ? vmull_high_s8(v, columns) : vmlal_high_s8(high[i], v, columns);
            }
        }
        FR_UNROLLED_FOR (size_t i = 0; i < PARTS; i++) {
            sums[0][i] = vpadalq_s16(sums[0][i], vpaddq_s16(low[i], high[i]));
        }
    }
}

static const level neon = {.pairs = false, .all_bytes = false};

#endif
