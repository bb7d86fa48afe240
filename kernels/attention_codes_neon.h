/* Computes attention's scores of keys that are codes on registers of 4 floats: the code that neon and dotprod share,
 * which is everything but the product of four codes.
 *
 * In: rows of keys, quantized queries (attention.h). Out: scores. A register has four codes of each of 4 positions, so
 * that the positions' sums are side by side and no sum is added up across lanes. */
#ifndef FR_KERNELS_ATTENTION_CODES_NEON_H
#define FR_KERNELS_ATTENTION_CODES_NEON_H

#include "kernels/attention.h"
#include "kernels/simd_neon.h"

enum { CODES_PARTS = FR_ATTN_CODES / 4 /* registers of positions */ };

/* The steps of neon. dotprod replaces the step that multiplies codes. */
extern const fr_attn_steps fr_attn_steps_neon;

/* Adds to each lane of `sums` the product of the lane's four codes in `keys` and the lane's four codes in `columns`. */
typedef int32x4_t multiply_codes_fn(int32x4_t sums, int8x16_t keys, int8x16_t columns);

/* Computes the scores of `count` queries. Callers pass a constant as `count`. */
FR_INLINE void scores_of_few(multiply_codes_fn *multiply, fr_attn_state *states, size_t count,
                             const fr_attn_codes *tile, int32_t first, size_t head_dim, float scale) {
    float32x4_t acc[2][CODES_PARTS] = {{{0}}};
    for (size_t b = 0; b < head_dim / 32; b++) {
        int32x4_t sums[2][CODES_PARTS] = {{{0}}};
        FR_UNROLLED_FOR (size_t c = 0; c < 8; c++)
            FR_UNROLLED_FOR (size_t j = 0; j < count; j++) {
                const void *four = states[j].codes[b].q + 4 * c;
                int8x16_t columns = vreinterpretq_s8_s32(vld1q_dup_s32(four));
                FR_UNROLLED_FOR (size_t i = 0; i < CODES_PARTS; i++)
                    sums[j][i] = multiply(sums[j][i], vld1q_s8(tile[b].codes[c][4 * i]), columns);
            }
        FR_UNROLLED_FOR (size_t j = 0; j < count; j++)
            FR_UNROLLED_FOR (size_t i = 0; i < CODES_PARTS; i++) {
                float32x4_t factor = vmulq_n_f32(vld1q_f32(tile[b].d + 4 * i), states[j].codes[b].d);
                acc[j][i] = vfmaq_f32(acc[j][i], factor, vcvtq_f32_s32(sums[j][i]));
            }
    }
    FR_UNROLLED_FOR (size_t j = 0; j < count; j++)
        FR_UNROLLED_FOR (size_t i = 0; i < CODES_PARTS; i++)
            vst1q_f32(states[j].weights + first + 4 * i, vmulq_n_f32(acc[j][i], scale));
}

/* Computes the scores of all queries, two at a time. */
FR_INLINE void scores_of_codes_of(multiply_codes_fn *multiply, fr_attn_state *states, size_t count,
                                  const fr_attn_codes *tile, int32_t first, size_t head_dim, float scale,
                                  fr_attn_ahead ahead) {
    fr_attn_ask(&ahead, SIZE_MAX);
    for (; count >= 2; states += 2, count -= 2) scores_of_few(multiply, states, 2, tile, first, head_dim, scale);
    if (count > 0) scores_of_few(multiply, states, 1, tile, first, head_dim, scale);
}

#endif
