/* Holds the code that the _avx512 files share: masks, the sum of 16 partial sums, exp and tanh on 16 values.
 *
 * A register holds the 16 partial sums of scalar.h's dot: lane i is p[i]. If a length is no multiple of 16, the last
 * step is masked; lanes without a value are neither read nor changed. */
#ifndef FR_KERNELS_SIMD_AVX512_H
#define FR_KERNELS_SIMD_AVX512_H

#include "kernels/compiler.h"
#include "kernels/kernels.h"
#include "kernels/math_constants.h"

#include <immintrin.h>

/* Returns the mask of the first `count` lanes, at most 16. */
FR_INLINE __mmask16 lanes(size_t count) {
    return (__mmask16)(count >= 16 ? 0xffff : (1u << count) - 1);
}

FR_INLINE __m512 load_lanes(const float *x, __mmask16 mask) {
    return _mm512_maskz_loadu_ps(mask, x);
}

/* Computes y[i] = f(a[i], b[i], factor) for a register of values. If b is NULL, its values are zeros. y may be a or
 * b. */
typedef __m512 map_fn(__m512 a, __m512 b, __m512 factor);

FR_INLINE void map_step(map_fn *f, float *y, const float *a, const float *b, float factor, __mmask16 mask) {
    __m512 second = b ? load_lanes(b, mask) : _mm512_setzero_ps();
    _mm512_mask_storeu_ps(y, mask, f(load_lanes(a, mask), second, _mm512_set1_ps(factor)));
}

FR_INLINE void map(map_fn *f, float *y, const float *a, const float *b, size_t n, float factor) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) map_step(f, y + i, a + i, b ? b + i : NULL, factor, 0xffff);
    if (i < n) map_step(f, y + i, a + i, b ? b + i : NULL, factor, lanes(n - i));
}

/* Adds 16 partial sums in the order of dot: p[i] += p[i + 8], which leaves 8 lanes, then 4, 2 and 1. */
FR_INLINE float sum16(__m512 p) {
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(p), _mm512_extractf32x8_ps(p, 1));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* Adds the 16 partial sums of each of four registers, in the order of sum16. The last step uses 128-bit registers, so
 * that a masked store of the result is a vmovups. For the low part of a zmm register gcc 12 would emit a masked
 * vextractf32x4, which faults on memory outside the mask. */
FR_INLINE __m128 sum16_of_4(__m512 a, __m512 b, __m512 c, __m512 d) {
    __m512 ac = _mm512_add_ps(_mm512_shuffle_f32x4(a, c, 0x44), _mm512_shuffle_f32x4(a, c, 0xee));
    __m512 bd = _mm512_add_ps(_mm512_shuffle_f32x4(b, d, 0x44), _mm512_shuffle_f32x4(b, d, 0xee));
    __m512 acbd = _mm512_add_ps(_mm512_shuffle_f32x4(ac, bd, 0x88), _mm512_shuffle_f32x4(ac, bd, 0xdd));
    __m256 four_ac = _mm512_castps512_ps256(acbd), four_bd = _mm512_extractf32x8_ps(acbd, 1);
    __m256 two = _mm256_add_ps(_mm256_shuffle_ps(four_ac, four_bd, 0x44), _mm256_shuffle_ps(four_ac, four_bd, 0xee));
    __m128 two_ab = _mm256_castps256_ps128(two), two_cd = _mm256_extractf128_ps(two, 1);
    return _mm_add_ps(_mm_shuffle_ps(two_ab, two_cd, 0x88), _mm_shuffle_ps(two_ab, two_cd, 0xdd));
}

/* Returns e^r - 1 for |r| <= ln(2) / 2. */
FR_INLINE __m512 expm1_reduced(__m512 r) {
    __m512 c = _mm512_set1_ps(FR_EXPM1_C7);
    c = _mm512_fmadd_ps(c, r, _mm512_set1_ps(FR_EXPM1_C6));
    c = _mm512_fmadd_ps(c, r, _mm512_set1_ps(FR_EXPM1_C5));
    c = _mm512_fmadd_ps(c, r, _mm512_set1_ps(FR_EXPM1_C4));
    c = _mm512_fmadd_ps(c, r, _mm512_set1_ps(FR_EXPM1_C3));
    c = _mm512_fmadd_ps(c, r, _mm512_set1_ps(FR_EXPM1_C2));
    return _mm512_fmadd_ps(_mm512_mul_ps(r, r), c, r);
}

/* Splits x = n ln 2 + r with an integer n, and returns r. */
FR_INLINE __m512 reduce(__m512 x, __m512 *n) {
    __m512 shift = _mm512_set1_ps(FR_ROUND_SHIFT);
    *n = _mm512_sub_ps(_mm512_fmadd_ps(x, _mm512_set1_ps(FR_LOG2E), shift), shift);
    __m512 r = _mm512_fmadd_ps(*n, _mm512_set1_ps(-FR_LN2_HIGH), x);
    return _mm512_fmadd_ps(*n, _mm512_set1_ps(-FR_LN2_LOW), r);
}

/* Returns e^x. scalef multiplies by 2^n with one rounding, so it gives the same bits as the two products of scalar_exp.
 * A NaN passes through: min and max return their second argument if an argument is NaN, so x is the second argument. */
FR_INLINE __m512 exp16(__m512 x) {
    __m512 n;
    x = _mm512_max_ps(_mm512_set1_ps(FR_EXP_MIN), _mm512_min_ps(_mm512_set1_ps(FR_EXP_MAX), x));
    __m512 r = reduce(x, &n);
    return _mm512_scalef_ps(_mm512_add_ps(_mm512_set1_ps(1.0f), expm1_reduced(r)), n);
}

FR_INLINE __m512 tanh16(__m512 x) {
    __m512 n, one = _mm512_set1_ps(1.0f), sign = _mm512_and_ps(x, _mm512_set1_ps(-0.0f));
    __m512 a = _mm512_min_ps(_mm512_set1_ps(FR_TANH_MAX), _mm512_xor_ps(x, sign));
    __m512 r = reduce(_mm512_add_ps(a, a), &n);
    __m512 power = _mm512_scalef_ps(one, n);
    __m512 e = _mm512_fmadd_ps(power, expm1_reduced(r), _mm512_sub_ps(power, one));
    return _mm512_or_ps(_mm512_div_ps(e, _mm512_add_ps(e, _mm512_set1_ps(2.0f))), sign);
}

/* Returns a / (1 + exp(-x)), which is silu if a is x. */
FR_INLINE __m512 sigmoid16(__m512 a, __m512 x) {
    __m512 decay = exp16(_mm512_xor_ps(x, _mm512_set1_ps(-0.0f)));
    return _mm512_div_ps(a, _mm512_add_ps(_mm512_set1_ps(1.0f), decay));
}

#endif
