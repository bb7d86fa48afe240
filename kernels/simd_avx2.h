/* Holds the code that the _avx2 files share: loads and stores of fewer than 8 values, the sum of 16 partial sums, exp
 * and tanh on 8 values.
 *
 * Two registers hold the 16 partial sums of scalar.h's dot: low has p[0..7], high has p[8..15]. When fewer than 8
 * values are left, they are copied through a buffer, because a masked load may touch the memory after them. */
#ifndef FR_KERNELS_SIMD_AVX2_H
#define FR_KERNELS_SIMD_AVX2_H

#include "kernels/compiler.h"
#include "kernels/kernels.h"
#include "kernels/math_constants.h"

#include <immintrin.h>
#include <string.h>

/* Loads the first `count` values, at most 8; the other lanes are 0. */
FR_INLINE __m256 load_lanes(const float *x, size_t count) {
    if (count >= 8) return _mm256_loadu_ps(x);
    float values[8] = {0};
    memcpy(values, x, count * sizeof *x);
    return _mm256_loadu_ps(values);
}

FR_INLINE void store_lanes(float *y, size_t count, __m256 values) {
    if (count >= 8) {
        _mm256_storeu_ps(y, values);
        return;
    }
    float buffer[8];
    _mm256_storeu_ps(buffer, values);
    memcpy(y, buffer, count * sizeof *y);
}

/* Sets all bits in the first `count` lanes; count may be negative or above 8. */
FR_INLINE __m256 lane_mask(int count) {
    __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(count), index));
}

/* Computes y[i] = f(a[i], b[i], factor) for a register of values. If b is NULL, its values are zeros. y may be a or
 * b. */
typedef __m256 map_fn(__m256 a, __m256 b, __m256 factor);

FR_INLINE void map(map_fn *f, float *y, const float *a, const float *b, size_t n, float factor) {
    for (size_t i = 0; i < n; i += 8) {
        __m256 second = b ? load_lanes(b + i, n - i) : _mm256_setzero_ps();
        store_lanes(y + i, n - i, f(load_lanes(a + i, n - i), second, _mm256_set1_ps(factor)));
    }
}

/* Adds 16 partial sums in the order of dot: p[i] += p[i + 8], then 4, 2 and 1. */
FR_INLINE float sum16(__m256 low, __m256 high) {
    __m256 eight = _mm256_add_ps(low, high);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* Returns e^r - 1 for |r| <= ln(2) / 2. */
FR_INLINE __m256 expm1_reduced(__m256 r) {
    __m256 c = _mm256_set1_ps(FR_EXPM1_C7);
    c = _mm256_fmadd_ps(c, r, _mm256_set1_ps(FR_EXPM1_C6));
    c = _mm256_fmadd_ps(c, r, _mm256_set1_ps(FR_EXPM1_C5));
    c = _mm256_fmadd_ps(c, r, _mm256_set1_ps(FR_EXPM1_C4));
    c = _mm256_fmadd_ps(c, r, _mm256_set1_ps(FR_EXPM1_C3));
    c = _mm256_fmadd_ps(c, r, _mm256_set1_ps(FR_EXPM1_C2));
    return _mm256_fmadd_ps(_mm256_mul_ps(r, r), c, r);
}

/* Splits x = n ln 2 + r with an integer n, and returns r. *n gets n plus `bias`. */
FR_INLINE __m256 reduce(__m256 x, int bias, __m256i *n) {
    __m256 shift = _mm256_set1_ps(FR_ROUND_SHIFT);
    __m256 t = _mm256_fmadd_ps(x, _mm256_set1_ps(FR_LOG2E), shift), whole = _mm256_sub_ps(t, shift);
    *n = _mm256_sub_epi32(_mm256_castps_si256(t), _mm256_set1_epi32((int)FR_ROUND_SHIFT_BITS - bias));
    __m256 r = _mm256_fmadd_ps(whole, _mm256_set1_ps(-FR_LN2_HIGH), x);
    return _mm256_fmadd_ps(whole, _mm256_set1_ps(-FR_LN2_LOW), r);
}

/* Returns 2^(n - 128) for 2 <= n < 256. */
FR_INLINE __m256 power_of_two(__m256i n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_sub_epi32(n, _mm256_set1_epi32(1)), 23));
}

/* Returns e^x. A NaN passes through: min and max return their second argument if an argument is NaN, so x is the second
 * argument. */
FR_INLINE __m256 exp8(__m256 x) {
    __m256i n;
    x = _mm256_max_ps(_mm256_set1_ps(FR_EXP_MIN), _mm256_min_ps(_mm256_set1_ps(FR_EXP_MAX), x));
    __m256 r = reduce(x, 256, &n);
    __m256 y = _mm256_add_ps(_mm256_set1_ps(1.0f), expm1_reduced(r));
    __m256i half = _mm256_srli_epi32(n, 1);
    return _mm256_mul_ps(_mm256_mul_ps(y, power_of_two(half)), power_of_two(_mm256_sub_epi32(n, half)));
}

FR_INLINE __m256 tanh8(__m256 x) {
    __m256 one = _mm256_set1_ps(1.0f), sign = _mm256_and_ps(x, _mm256_set1_ps(-0.0f));
    __m256 a = _mm256_min_ps(_mm256_set1_ps(FR_TANH_MAX), _mm256_xor_ps(x, sign));
    __m256i n;
    __m256 r = reduce(_mm256_add_ps(a, a), 128, &n);
    __m256 power = power_of_two(n);
    __m256 e = _mm256_fmadd_ps(power, expm1_reduced(r), _mm256_sub_ps(power, one));
    return _mm256_or_ps(_mm256_div_ps(e, _mm256_add_ps(e, _mm256_set1_ps(2.0f))), sign);
}

/* Returns a / (1 + exp(-x)), which is silu if a is x. */
FR_INLINE __m256 sigmoid8(__m256 a, __m256 x) {
    __m256 decay = exp8(_mm256_xor_ps(x, _mm256_set1_ps(-0.0f)));
    return _mm256_div_ps(a, _mm256_add_ps(_mm256_set1_ps(1.0f), decay));
}

#endif
