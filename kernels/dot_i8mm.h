/* Implements the dot product of block_neon.h. A single row uses the by-lane form of sdot or usdot. A pair of rows uses
 * smmla or usmmla, which multiply 2 features x 8 columns by 8 columns x 2 rows.
 *
 * If the number of rows is odd, the last row is paired with arbitrary values of the panel, and the result for those
 * values is dropped. The table has the number of instructions for 16 features x 32 columns, of which 32 per row or pair
 * of rows multiply (block_neon.h says how they were counted):
 *
 *     rows      1     2     4     8    16
 *     Q8_0    130   187   310   569  1029
 *     Q4_0    139   209   331   599  1067
 *     Q4_K    182   258   398   685  1201
 *     Q6_K    266   351   575   874  1495 */
#ifndef FR_KERNELS_DOT_I8MM_H
#define FR_KERNELS_DOT_I8MM_H

#include "kernels/block_neon.h"

/* Multiplies 2 features with 2 rows. Values of a table are signed; codes are unsigned. */
FR_INLINE int32x4_t two_by_two(format f, int32x4_t sum, uint8x16_t values, int8x16_t columns) {
    return f.table ? vmmlaq_s32(sum, vreinterpretq_s8_u8(values), columns) : vusmmlaq_s32(sum, values, columns);
}

FR_INLINE void multiply_pair(format f, row_sums sums, run_values values, size_t half, const int32_t (*q)[4]) {
    FR_UNROLLED_FOR (size_t g = 4 * half; g < 4 * half + 4; g += 2) {
        int8x16_t columns = vreinterpretq_s8_s32(vld1q_s32(q[g / 2]));
        FR_UNROLLED_FOR (size_t i = 0; i < PARTS; i++) {
            sums[0][i] = two_by_two(f, sums[0][i], values[i][g], columns);
            sums[1][i] = two_by_two(f, sums[1][i], values[i][g + 1], columns);
        }
    }
}

FR_INLINE int32x4_t dot16(format f, int32x4_t sum, const uint8x16_t *v, int8x16_t columns) {
    if (f.table) {
        sum = vdotq_laneq_s32(sum, vreinterpretq_s8_u8(v[0]), columns, 0);
        sum = vdotq_laneq_s32(sum, vreinterpretq_s8_u8(v[1]), columns, 1);
        sum = vdotq_laneq_s32(sum, vreinterpretq_s8_u8(v[2]), columns, 2);
        return vdotq_laneq_s32(sum, vreinterpretq_s8_u8(v[3]), columns, 3);
    }
    sum = vusdotq_laneq_s32(sum, v[0], columns, 0);
    sum = vusdotq_laneq_s32(sum, v[1], columns, 1);
    sum = vusdotq_laneq_s32(sum, v[2], columns, 2);
    return vusdotq_laneq_s32(sum, v[3], columns, 3);
}

FR_INLINE void multiply(format f, row_sums sums, run_values values, size_t half, const int32_t (*q)[4], bool pair) {
    if (pair) {
        multiply_pair(f, sums, values, half, q);
        return;
    }
    int8x16_t columns = vreinterpretq_s8_s32(vld1q_s32(q[half]));
    FR_UNROLLED_FOR (size_t i = 0; i < PARTS; i++) sums[0][i] = dot16(f, sums[0][i], values[i] + 4 * half, columns);
}

static const level i8mm = {.pairs = true, .all_bytes = true};

#endif
