/* Quantizes rows of activations to int8 in blocks of 32. The contract is fr_quantize_fn in kernels.h. */
#include "kernels/simd_neon.h"

enum { BLOCK = 32, REGISTERS = BLOCK / 4 };

FR_INLINE float largest_magnitude(const float32x4_t *x) {
    uint32x4_t most = vdupq_n_u32(0);
    FR_UNROLLED_FOR (size_t i = 0; i < REGISTERS; i++) most = vmaxq_u32(most, vreinterpretq_u32_f32(vabsq_f32(x[i])));
    uint32_t bits = vmaxvq_u32(most);
    float m;
    memcpy(&m, &bits, sizeof m);
    return m;
}

/* Rounds 16 values to nearest even. |x * r| exceeds 127 by no more than a rounding error, so no product needs
 * clamping. */
FR_INLINE int8x16_t round16(const float32x4_t *x, float r) {
    int16x8_t half[2];
    FR_UNROLLED_FOR (size_t i = 0; i < 2; i++) {
        int32x4_t a = vcvtnq_s32_f32(vmulq_n_f32(x[2 * i], r)), b = vcvtnq_s32_f32(vmulq_n_f32(x[2 * i + 1], r));
        half[i] = vcombine_s16(vmovn_s32(a), vmovn_s32(b));
    }
    return vcombine_s8(vmovn_s16(half[0]), vmovn_s16(half[1]));
}

FR_INLINE void quantize_block(fr_qblock *block, const float *values) {
    float32x4_t x[REGISTERS];
    FR_UNROLLED_FOR (size_t i = 0; i < REGISTERS; i++) x[i] = vld1q_f32(values + 4 * i);
    float m = largest_magnitude(x), r = 127.0f / m, d = m / 127.0f;
    *block = (fr_qblock){.d = 0.0f};
    if (m < 0x1p-100f) return;
    if (!(m < __builtin_inff())) {
        block->d = block->dsum = __builtin_nanf("");
        return;
    }
    int8x16_t low = round16(x, r), high = round16(x + REGISTERS / 2, r);
    vst1q_s8(block->q, low);
    vst1q_s8(block->q + BLOCK / 2, high);
    block->d = d;
    block->half = vaddlvq_s8(low);
    block->sum = block->half + vaddlvq_s8(high);
    block->dsum = d * (float)block->sum;
}

/* Quantizes a row. If the last block is not complete, the missing values are zeros, which change no maximum and no
 * sum. */
void fr_quantize_neon(fr_qblock *q, const float *x, size_t cols) {
    for (; cols >= BLOCK; cols -= BLOCK, x += BLOCK) quantize_block(q++, x);
    if (cols) {
        float last[BLOCK] = {0};
        memcpy(last, x, cols * sizeof *x);
        quantize_block(q, last);
    }
}
