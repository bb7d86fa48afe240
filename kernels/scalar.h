/* Holds the code that the _scalar files share. It defines every rounding that the other instruction sets must
 * reproduce.
 *
 * In and out: single values. On x86 each _scalar file is compiled twice: once without flags, so that fmaf is libm's,
 * and once with -mfma -DFR_SCALAR_FMA, so that fmaf is one instruction. FR_SCALAR gives the functions of the two builds
 * different names. */
#ifndef FR_KERNELS_SCALAR_H
#define FR_KERNELS_SCALAR_H

#include "kernels/compiler.h"
#include "kernels/kernels.h"
#include "kernels/math_constants.h"

#include <math.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "one answer needs every rounding as it is written: no -ffast-math"
#endif

#ifdef FR_SCALAR_FMA
#define FR_SCALAR(stem) fr_##stem##_scalar_fma
#else
#define FR_SCALAR(stem) fr_##stem##_scalar
#endif

static inline uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Returns value i of a row of weights; the row may begin at any address. */
typedef float load_fn(const void *row, size_t i);

static inline float load_f32(const void *row, size_t i) {
    float value;
    memcpy(&value, (const char *)row + i * sizeof value, sizeof value);
    return value;
}

static inline float load_bf16(const void *row, size_t i) {
    uint16_t half;
    memcpy(&half, (const char *)row + i * sizeof half, sizeof half);
    return float_of((uint32_t)half << 16);
}

/* Returns float16 value i of a row. The exponent and fraction are moved to their positions in a float32, which leaves
 * the exponent 112 too small. The product that corrects this is exact, denormals included. */
static inline float load_f16(const void *row, size_t i) {
    uint16_t half;
    memcpy(&half, (const char *)row + i * sizeof half, sizeof half);
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    float magnitude = float_of((uint32_t)(half & 0x7fff) << 13) * 0x1p112f;
    uint32_t special = (half & 0x7c00) == 0x7c00 ? 0x7f800000u : 0;
    return float_of(bits_of(magnitude) | special | sign);
}

/* Adds 16 partial sums in the order of dot: p[i] += p[i + 8], then 4, 2 and 1. p is overwritten. */
static inline float sum16(float *p) {
    for (size_t half = 8; half; half /= 2)
        for (size_t i = 0; i < half; i++) p[i] += p[i + half];
    return p[0];
}

/* Returns the dot product that kernels.h defines. It takes 16 columns at a time, so that a compiler can vectorize the
 * loop if fmaf is an instruction. */
FR_INLINE float dot(load_fn *load, const void *w, const float *x, size_t n) {
    float p[16] = {0};
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (size_t j = 0; j < 16; j++) p[j] = fmaf(load(w, i + j), x[i + j], p[j]);
    for (; i < n; i++) p[i % 16] = fmaf(load(w, i), x[i], p[i % 16]);
    return sum16(p);
}

/* Returns e^r - 1 for |r| <= ln(2) / 2. */
static inline float expm1_reduced(float r) {
    float c = FR_EXPM1_C7;
    c = fmaf(c, r, FR_EXPM1_C6);
    c = fmaf(c, r, FR_EXPM1_C5);
    c = fmaf(c, r, FR_EXPM1_C4);
    c = fmaf(c, r, FR_EXPM1_C3);
    c = fmaf(c, r, FR_EXPM1_C2);
    return fmaf(r * r, c, r);
}

/* Splits x = n ln 2 + r with an integer n, and returns r. *shifted gets the bits of FR_ROUND_SHIFT plus n. */
static inline float reduce(float x, uint32_t *shifted) {
    float t = fmaf(x, FR_LOG2E, FR_ROUND_SHIFT);
    float n = t - FR_ROUND_SHIFT;
    *shifted = bits_of(t);
    return fmaf(n, -FR_LN2_LOW, fmaf(n, -FR_LN2_HIGH, x));
}

/* Returns 2^(n - 128) for 2 <= n < 256. */
static inline float power_of_two(uint32_t n) {
    return float_of((n - 1) << 23);
}

/* Returns e^x, which is 2^n times a number near 1. 2^n is multiplied as two powers, one after the other. The first
 * product is exact, so the result is rounded once, denormals included. The comparisons are written so that a NaN passes
 * through. */
static inline float scalar_exp(float x) {
    x = x > FR_EXP_MAX ? FR_EXP_MAX : x;
    x = x < FR_EXP_MIN ? FR_EXP_MIN : x;
    uint32_t shifted;
    float r = reduce(x, &shifted);
    float y = 1.0f + expm1_reduced(r);
    uint32_t n = shifted - FR_ROUND_SHIFT_BITS + 256;
    return y * power_of_two(n / 2) * power_of_two(n - n / 2);
}

/* Returns tanh(x): e / (e + 2) with the sign of x, where e is exp(2 |x|) - 1. e is computed without first computing
 * exp(2 |x|), so that it stays accurate near 0. */
static inline float scalar_tanh(float x) {
    float a = fabsf(x);
    a = a > FR_TANH_MAX ? FR_TANH_MAX : a;
    uint32_t shifted;
    float r = reduce(a + a, &shifted);
    float power = power_of_two(shifted - FR_ROUND_SHIFT_BITS + 128);
    float e = fmaf(power, expm1_reduced(r), power - 1.0f);
    return float_of(bits_of(e / (e + 2.0f)) | (bits_of(x) & 0x80000000u));
}

#endif
