/* Computes Walsh-Hadamard transforms of blocks of a row. The contract is fr_hadamard_fn in kernels.h, which defines the
 * stages h = 1, 2, 4, ...
 *
 * The first two stages are computed within a register: each value is added to its partner or subtracted from it. Later
 * stages are computed two at a time, so that each load and store serves two stages. */
#include "kernels/simd_neon.h"

#include <math.h>

/* Computes the stage in which the two values of a pair are neighbours, then the stage in which they are two lanes
 * apart. */
FR_INLINE float32x4_t stages_of(float32x4_t v) {
    float32x4_t other = vrev64q_f32(v);
    v = vtrn1q_f32(vaddq_f32(v, other), vsubq_f32(v, other));
    other = vextq_f32(v, v, 2);
    return vcombine_f32(vget_low_f32(vaddq_f32(v, other)), vget_low_f32(vsubq_f32(v, other)));
}

/* Computes the stages in which the two values of a pair are in one register. */
FR_INLINE void stages_inside(float *y, const float *x, const float *signs, size_t n) {
    for (size_t i = 0; i < n; i += 4) {
        float32x4_t v = vld1q_f32(x + i);
        if (signs) v = vmulq_f32(v, vld1q_f32(signs + i));
        vst1q_f32(y + i, stages_of(v));
    }
}

/* Computes the stage in which the two values of a pair are h apart, and the stage after it. */
FR_INLINE void two_stages(float *y, size_t h, size_t n) {
    for (size_t from = 0; from < n; from += 4 * h)
        for (float *at = y + from; at < y + from + h; at += 4) {
            float32x4_t a = vld1q_f32(at), b = vld1q_f32(at + h);
            float32x4_t c = vld1q_f32(at + 2 * h), d = vld1q_f32(at + 3 * h);
            float32x4_t ab = vaddq_f32(a, b), less_ab = vsubq_f32(a, b);
            float32x4_t cd = vaddq_f32(c, d), less_cd = vsubq_f32(c, d);
            vst1q_f32(at, vaddq_f32(ab, cd));
            vst1q_f32(at + h, vaddq_f32(less_ab, less_cd));
            vst1q_f32(at + 2 * h, vsubq_f32(ab, cd));
            vst1q_f32(at + 3 * h, vsubq_f32(less_ab, less_cd));
        }
}

FR_INLINE void one_stage(float *y, size_t h, size_t n) {
    for (size_t from = 0; from < n; from += 2 * h)
        for (float *at = y + from; at < y + from + h; at += 4) {
            float32x4_t a = vld1q_f32(at), b = vld1q_f32(at + h);
            vst1q_f32(at, vaddq_f32(a, b));
            vst1q_f32(at + h, vsubq_f32(a, b));
        }
}

void fr_hadamard_neon(float *y, const float *x, const float *signs, size_t block, size_t n) {
    if (block < 4) {
        fr_hadamard_scalar(y, x, signs, block, n);
        return;
    }
    float factor = (float)(1.0 / sqrt((double)block));
    size_t h = 4;
    stages_inside(y, x, signs, n);
    for (; 4 * h <= block; h *= 4) two_stages(y, h, n);
    if (h < block) one_stage(y, h, n);
    for (size_t i = 0; i < n; i += 4) vst1q_f32(y + i, vmulq_n_f32(vld1q_f32(y + i), factor));
}
