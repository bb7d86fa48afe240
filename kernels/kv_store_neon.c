/* Stores rows of keys and values in the types of the cache. The contract is fr_kv_store_fn in kernels.h. */
#include "kernels/simd_neon.h"

#include <math.h>

enum { BLOCK = 32, INFINITE = 0x7f800000 };

/* Stores the first `count` 16-bit values, at most 4. */
FR_INLINE void store_halves(void *y, size_t count, uint16x4_t halves) {
    uint16_t values[4];
    vst1_u16(values, halves);
    memcpy(y, values, (count < 4 ? count : 4) * sizeof *values);
}

void fr_kv_store_f16_neon(void *slot, const float *x, size_t n) {
    for (size_t i = 0; i < n; i += 4) {
        uint16x4_t halves = vreinterpret_u16_f16(vcvt_f16_f32(load_lanes(x + i, n - i)));
        store_halves((char *)slot + 2 * i, n - i, halves);
    }
}

void fr_kv_store_bf16_neon(void *slot, const float *x, size_t n) {
    for (size_t i = 0; i < n; i += 4) {
        float32x4_t values = load_lanes(x + i, n - i);
        uint32x4_t bits = vreinterpretq_u32_f32(values), number = vceqq_f32(values, values);
        uint32x4_t upper = vshrq_n_u32(bits, 16);
        uint32x4_t even = vaddq_u32(vandq_u32(upper, vdupq_n_u32(1)), vdupq_n_u32(0x7fff));
        uint32x4_t rounded = vshrq_n_u32(vaddq_u32(bits, even), 16), quiet = vorrq_u32(upper, vdupq_n_u32(0x40));
        store_halves((char *)slot + 2 * i, n - i, vmovn_u32(vbslq_u32(number, rounded, quiet)));
    }
}

FR_INLINE uint32x4_t load_bits(const float *x) {
    return vreinterpretq_u32_f32(vld1q_f32(x));
}

/* Returns the bits of the largest magnitude in a block. *positive becomes true if a positive value has this
 * magnitude. */
FR_INLINE uint32_t largest_magnitude(const float *x, bool *positive) {
    uint32x4_t all = vdupq_n_u32(0), same = all;
    for (size_t i = 0; i < BLOCK; i += 4) all = vmaxq_u32(all, vandq_u32(load_bits(x + i), vdupq_n_u32(0x7fffffff)));
    uint32_t largest = vmaxvq_u32(all);
    for (size_t i = 0; i < BLOCK; i += 4) same = vorrq_u32(same, vceqq_u32(load_bits(x + i), vdupq_n_u32(largest)));
    *positive = vmaxvq_u32(same) != 0;
    return largest;
}

FR_INLINE float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Writes d as float16. Returns the reciprocal of the rounded d, or 0 if the rounded d is 0. */
FR_INLINE float store_scale(uint8_t *block, float d) {
    float16x4_t half = vcvt_f16_f32(vdupq_n_f32(d));
    store_halves(block, 1, vreinterpret_u16_f16(half));
    float stored = vgetq_lane_f32(vcvt_f32_f16(half), 0);
    return fabsf(stored) > 0 ? 1 / stored : 0;
}

/* Returns rint(x * r) of 16 values, saturated to bytes. */
FR_INLINE int8x16_t codes_of(const float *x, float r) {
    int16x4_t whole[4];
    FR_UNROLLED_FOR (size_t i = 0; i < 4; i++) {
        whole[i] = vqmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 4 * i), r)));
    }
    return vcombine_s8(vqmovn_s16(vcombine_s16(whole[0], whole[1])), vqmovn_s16(vcombine_s16(whole[2], whole[3])));
}

static const float zeros[BLOCK];

void fr_kv_store_q8_0_neon(void *slot, const float *x, size_t n) {
    uint8_t *block = slot;
    for (size_t at = 0; at < n; at += BLOCK, block += 2 + BLOCK) {
        bool positive;
        uint32_t m = largest_magnitude(x + at, &positive);
        const float *values = m < INFINITE ? x + at : zeros;
        float r = store_scale(block, m < INFINITE ? float_of(m) / 127 : NAN);
        for (size_t i = 0; i < BLOCK; i += 16) {
            int8x16_t codes = vmaxq_s8(codes_of(values + i, r), vdupq_n_s8(-127));
            vst1q_u8(block + 2 + i, vreinterpretq_u8_s8(codes));
        }
    }
}

/* Returns 16 codes of 4 bits. 8 was added to each code, so that no code is negative. */
FR_INLINE uint8x16_t nibbles_of(const float *x, float r) {
    int8x16_t codes = vminq_s8(vmaxq_s8(codes_of(x, r), vdupq_n_s8(-8)), vdupq_n_s8(7));
    return vreinterpretq_u8_s8(vaddq_s8(codes, vdupq_n_s8(8)));
}

void fr_kv_store_q4_0_neon(void *slot, const float *x, size_t n) {
    uint8_t *block = slot;
    for (size_t at = 0; at < n; at += BLOCK, block += 2 + BLOCK / 2) {
        bool positive;
        uint32_t m = largest_magnitude(x + at, &positive);
        const float *values = m < INFINITE ? x + at : zeros;
        float largest = positive ? float_of(m) : -float_of(m);
        float r = store_scale(block, m < INFINITE ? largest / -8 : NAN);
        uint8x16_t low = nibbles_of(values, r), high = nibbles_of(values + BLOCK / 2, r);
        vst1q_u8(block + 2, vorrq_u8(low, vshlq_n_u8(high, 4)));
    }
}
