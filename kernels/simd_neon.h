/* Holds the code that the _neon files share, for ARMv8.0: loads and stores shorter than a register, the dot product,
 * exp and tanh on 4 values.
 *
 * Four registers hold the 16 partial sums of scalar.h's dot: lane i of register c is p[4 c + i]. If a length is no
 * multiple of a step, the remainder is copied to a buffer of a whole step, in which the missing values are zeros.
 * Partial sums without a value in the remainder stay as they are, and outputs beyond the length are not written. */
#ifndef FR_KERNELS_SIMD_NEON_H
#define FR_KERNELS_SIMD_NEON_H

#include "kernels/compiler.h"
#include "kernels/kernels.h"
#include "kernels/math_constants.h"

#include <arm_neon.h>
#include <string.h>

/* Loads the first `count` values, at most 4; the other lanes are 0. */
FR_INLINE float32x4_t load_lanes(const float *x, size_t count) {
    if (count >= 4) return vld1q_f32(x);
    float values[4] = {0};
    memcpy(values, x, count * sizeof *x);
    return vld1q_f32(values);
}

FR_INLINE void store_lanes(float *y, float32x4_t lanes, size_t count) {
    if (count >= 4) {
        vst1q_f32(y, lanes);
        return;
    }
    float values[4];
    vst1q_f32(values, lanes);
    memcpy(y, values, count * sizeof *y);
}

/* Returns a mask of four lanes. Lane i is set if first + i is below count. */
FR_INLINE uint32x4_t lanes_below(size_t first, size_t count) {
    static const uint32_t index[4] = {0, 1, 2, 3};
    return vcltq_u32(vaddq_u32(vld1q_u32(index), vdupq_n_u32((uint32_t)first)), vdupq_n_u32((uint32_t)count));
}

/* Computes y[i] = f(a[i], b[i], factor) for a register of values. If b is NULL, its values are zeros. y may be a or
 * b. */
typedef float32x4_t map_fn(float32x4_t a, float32x4_t b, float32x4_t factor);

FR_INLINE void map_step(map_fn *f, float *y, const float *a, const float *b, float factor, size_t count) {
    float32x4_t second = b ? load_lanes(b, count) : vdupq_n_f32(0);
    store_lanes(y, f(load_lanes(a, count), second, vdupq_n_f32(factor)), count);
}

FR_INLINE void map(map_fn *f, float *y, const float *a, const float *b, size_t n, float factor) {
    size_t i = 0;
    for (; i + 4 <= n; i += 4) map_step(f, y + i, a + i, b ? b + i : NULL, factor, 4);
    if (i < n) map_step(f, y + i, a + i, b ? b + i : NULL, factor, n - i);
}

/* Adds 16 partial sums in the order of dot: p[i] += p[i + 8], then 4, 2 and 1. */
FR_INLINE float sum16(const float32x4_t p[4]) {
    float32x4_t four = vaddq_f32(vaddq_f32(p[0], p[2]), vaddq_f32(p[1], p[3]));
    return vpadds_f32(vadd_f32(vget_low_f32(four), vget_high_f32(four)));
}

/* Loads four weights as floats. */
typedef float32x4_t load_fn(const char *w);

FR_INLINE float32x4_t load_f32(const char *w) {
    return vreinterpretq_f32_u8(vld1q_u8((const uint8_t *)w));
}

enum { DOTS_MAX = 6 };

/* Holds the arguments of a product: y[r * y_stride + o] = dot(w_o, x_r) for r < rows, o < kept; w_o = w[o], x_r = x + r
 * * x_stride. Callers pass constants as rows and features, with rows x features <= 6, so that 24 registers hold the
 * sums. w has `features` pointers. If fewer weight rows are left, the first `kept` pointers are different and the
 * others repeat the last one. */
typedef struct dots_job {
    float *y;
    size_t y_stride;
    const float *x;
    size_t x_stride, rows;
    const char *const *w;
    size_t features, kept, cols;
} dots_job;

/* Multiplies 16 columns. Only the products of the first `count` columns are added to the sums. */
FR_INLINE void dots_step(load_fn *load, size_t width, float32x4_t (*p)[4], dots_job job, size_t count) {
    FR_UNROLLED_FOR (size_t c = 0; c < 4; c++) {
        float32x4_t weights[4];
        FR_UNROLLED_FOR (size_t o = 0; o < job.features; o++) weights[o] = load(job.w[o] + 4 * c * width);
        FR_UNROLLED_FOR (size_t r = 0; r < job.rows; r++) {
            float32x4_t values = vld1q_f32(job.x + r * job.x_stride + 4 * c);
            FR_UNROLLED_FOR (size_t o = 0; o < job.features; o++) {
                float32x4_t *sum = &p[r * job.features + o][c], added = vfmaq_f32(*sum, weights[o], values);
                *sum = count < 16 ? vbslq_f32(lanes_below(4 * c, count), added, *sum) : added;
            }
        }
    }
}

/* Computes the products of a job. Callers pass a constant as `width`, which is the bytes of a weight. */
FR_INLINE void dots(load_fn *load, size_t width, dots_job job) {
    float32x4_t p[DOTS_MAX][4] = {{{0}}};
    const char *at[4];
    size_t left = job.cols % 16, whole = job.cols - left;
    dots_job step = job;
    step.w = at;
    for (size_t i = 0; i < whole; i += 16) {
        FR_UNROLLED_FOR (size_t o = 0; o < job.features; o++) at[o] = job.w[o] + i * width;
        step.x = job.x + i;
        dots_step(load, width, p, step, 16);
    }
    if (left) {
        char w_end[4][16 * sizeof(float)] = {{0}};
        float x_end[4][16] = {{0}};
        for (size_t o = 0; o < job.features; o++) at[o] = memcpy(w_end[o], job.w[o] + whole * width, left * width);
        for (size_t r = 0; r < job.rows; r++) memcpy(x_end[r], job.x + r * job.x_stride + whole, left * sizeof *job.x);
        step.x = x_end[0];
        step.x_stride = 16;
        dots_step(load, width, p, step, left);
    }
    FR_UNROLLED_FOR (size_t r = 0; r < job.rows; r++) {
        FR_UNROLLED_FOR (size_t o = 0; o < job.features; o++) {
            if (o < job.kept) job.y[r * job.y_stride + o] = sum16(p[r * job.features + o]);
        }
    }
}

/* Returns e^r - 1 for |r| <= ln(2) / 2. */
FR_INLINE float32x4_t expm1_reduced(float32x4_t r) {
    float32x4_t c = vdupq_n_f32(FR_EXPM1_C7);
    c = vfmaq_f32(vdupq_n_f32(FR_EXPM1_C6), c, r);
    c = vfmaq_f32(vdupq_n_f32(FR_EXPM1_C5), c, r);
    c = vfmaq_f32(vdupq_n_f32(FR_EXPM1_C4), c, r);
    c = vfmaq_f32(vdupq_n_f32(FR_EXPM1_C3), c, r);
    c = vfmaq_f32(vdupq_n_f32(FR_EXPM1_C2), c, r);
    return vfmaq_f32(r, vmulq_f32(r, r), c);
}

/* Splits x = n ln 2 + r with an integer n, and returns r. *n gets n plus `bias`. */
FR_INLINE float32x4_t reduce(float32x4_t x, uint32_t bias, uint32x4_t *n) {
    float32x4_t shift = vdupq_n_f32(FR_ROUND_SHIFT);
    float32x4_t t = vfmaq_f32(shift, x, vdupq_n_f32(FR_LOG2E)), whole = vsubq_f32(t, shift);
    *n = vsubq_u32(vreinterpretq_u32_f32(t), vdupq_n_u32(FR_ROUND_SHIFT_BITS - bias));
    float32x4_t r = vfmsq_f32(x, whole, vdupq_n_f32(FR_LN2_HIGH));
    return vfmsq_f32(r, whole, vdupq_n_f32(FR_LN2_LOW));
}

/* Returns 2^(n - 128) for 2 <= n < 256. */
FR_INLINE float32x4_t power_of_two(uint32x4_t n) {
    return vreinterpretq_f32_u32(vshlq_n_u32(vsubq_u32(n, vdupq_n_u32(1)), 23));
}

/* Returns e^x. A NaN passes through, because vminq and vmaxq return NaN if an argument is NaN. */
FR_INLINE float32x4_t exp4(float32x4_t x) {
    uint32x4_t n;
    x = vmaxq_f32(vminq_f32(x, vdupq_n_f32(FR_EXP_MAX)), vdupq_n_f32(FR_EXP_MIN));
    float32x4_t r = reduce(x, 256, &n);
    float32x4_t y = vaddq_f32(vdupq_n_f32(1.0f), expm1_reduced(r));
    uint32x4_t half = vshrq_n_u32(n, 1);
    return vmulq_f32(vmulq_f32(y, power_of_two(half)), power_of_two(vsubq_u32(n, half)));
}

FR_INLINE float32x4_t tanh4(float32x4_t x) {
    uint32x4_t n, sign = vandq_u32(vreinterpretq_u32_f32(x), vdupq_n_u32(0x80000000u));
    float32x4_t a = vminq_f32(vabsq_f32(x), vdupq_n_f32(FR_TANH_MAX));
    float32x4_t r = reduce(vaddq_f32(a, a), 128, &n);
    float32x4_t power = power_of_two(n);
    float32x4_t e = vfmaq_f32(vsubq_f32(power, vdupq_n_f32(1.0f)), power, expm1_reduced(r));
    float32x4_t magnitude = vdivq_f32(e, vaddq_f32(e, vdupq_n_f32(2.0f)));
    return vreinterpretq_f32_u32(vorrq_u32(vreinterpretq_u32_f32(magnitude), sign));
}

/* Returns a / (1 + exp(-x)), which is silu if a is x. */
FR_INLINE float32x4_t sigmoid4(float32x4_t a, float32x4_t x) {
    return vdivq_f32(a, vaddq_f32(vdupq_n_f32(1.0f), exp4(vnegq_f32(x))));
}

#endif
