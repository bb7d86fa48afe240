/* Implements the dot product of block_neon.h with the by-lane form of sdot.
 *
 * Codes below 128 are multiplied as they are stored, and sums begin with the zero-point correction. The table has the
 * number of instructions for 16 features x 32 columns, of which 32 per row are sdot (block_neon.h says how they were
 * counted):
 *
 *     rows      1     2     4     8    16
 *     Q8_0    143   200   355   671  1241
 *     Q4_0    139   202   382   673  1248
 *     Q4_K    181   249   414   772  1409
 *     Q6_K    266   356   541   904  1599 */
#ifndef FR_KERNELS_DOT_DOTPROD_H
#define FR_KERNELS_DOT_DOTPROD_H

#include "kernels/block_neon.h"

FR_INLINE void multiply(format f, row_sums sums, run_values values, size_t half, const int32_t (*q)[4], bool pair) {
    (void)f, (void)pair;
    int8x16_t columns = vreinterpretq_s8_s32(vld1q_s32(q[half]));
    FR_UNROLLED_FOR (size_t i = 0; i < PARTS; i++) {
        const uint8x16_t *v = values[i] + 4 * half;
        sums[0][i] = vdotq_laneq_s32(sums[0][i], vreinterpretq_s8_u8(v[0]), columns, 0);
        sums[0][i] = vdotq_laneq_s32(sums[0][i], vreinterpretq_s8_u8(v[1]), columns, 1);
        sums[0][i] = vdotq_laneq_s32(sums[0][i], vreinterpretq_s8_u8(v[2]), columns, 2);
        sums[0][i] = vdotq_laneq_s32(sums[0][i], vreinterpretq_s8_u8(v[3]), columns, 3);
    }
}

static const level dotprod = {.pairs = false, .all_bytes = false};

#endif
