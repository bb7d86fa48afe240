/* Computes RMS norm, layer norm and rotary positions. The contracts are fr_rmsnorm_fn, fr_layernorm_fn and fr_rope_fn
 * in kernels.h. */
#include "kernels/simd_avx512.h"

#include <math.h>

FR_INLINE __m512 scale(__m512 a, __m512 b, __m512 factor) {
    (void)b;
    return _mm512_mul_ps(a, factor);
}

FR_INLINE __m512 scale_weighted(__m512 a, __m512 b, __m512 factor) {
    return _mm512_mul_ps(_mm512_mul_ps(a, factor), b);
}

static float sum_of_squares(const float *x, size_t n) {
    __m512 p = _mm512_setzero_ps();
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 mask = lanes(n - i);
        __m512 values = load_lanes(x + i, mask);
        p = _mm512_mask3_fmadd_ps(values, values, p, mask);
    }
    return sum16(p);
}

void fr_rmsnorm_avx512(float *y, const float *x, const float *weight, size_t n, float eps) {
    float r = 1.0f / sqrtf(sum_of_squares(x, n) / (float)n + eps);
    if (weight)
        map(scale_weighted, y, x, weight, n, r);
    else
        map(scale, y, x, NULL, n, r);
}

/* Returns the sum of n values in dot's order. Lanes past the end are 0. Adding 0 does not change a partial sum, because
 * each sum began with +0. */
static float sum_of_values(const float *x, size_t n) {
    __m512 p = _mm512_setzero_ps();
    for (size_t i = 0; i < n; i += 16) p = _mm512_add_ps(p, load_lanes(x + i, lanes(n - i)));
    return sum16(p);
}

FR_INLINE __m512 less(__m512 a, __m512 b, __m512 mean) {
    (void)b;
    return _mm512_sub_ps(a, mean);
}

void fr_layernorm_avx512(float *y, const float *x, const float *weight, const float *bias, size_t n, float eps) {
    map(less, y, x, NULL, n, sum_of_values(x, n) / (float)n);
    __m512 r = _mm512_set1_ps(1.0f / sqrtf(sum_of_squares(y, n) / (float)n + eps));
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 mask = lanes(n - i);
        __m512 added = bias ? load_lanes(bias + i, mask) : _mm512_setzero_ps();
        __m512 scaled = _mm512_mul_ps(load_lanes(y + i, mask), r);
        _mm512_mask_storeu_ps(y + i, mask, _mm512_fmadd_ps(scaled, load_lanes(weight + i, mask), added));
    }
}

/* Sets a to (a cosine - b sine), and b to (b cosine + a sine). */
FR_INLINE void rotate(__m512 *a, __m512 *b, __m512 cosine, __m512 sine) {
    __m512 first = _mm512_fnmadd_ps(*b, sine, _mm512_mul_ps(*a, cosine));
    *b = _mm512_fmadd_ps(*a, sine, _mm512_mul_ps(*b, cosine));
    *a = first;
}

void fr_rope_neox_avx512(float *x, const float *cosine, const float *sine, size_t n) {
    float *second = x + n / 2;
    for (size_t i = 0; i < n / 2; i += 16) {
        __mmask16 mask = lanes(n / 2 - i);
        __m512 a = load_lanes(x + i, mask), b = load_lanes(second + i, mask);
        rotate(&a, &b, load_lanes(cosine + i, mask), load_lanes(sine + i, mask));
        _mm512_mask_storeu_ps(x + i, mask, a);
        _mm512_mask_storeu_ps(second + i, mask, b);
    }
}

/* Rotates 16 pairs at a time, which are in two registers. The even lanes are gathered into a, and the odd lanes into b.
 * After the rotation a and b are interleaved again. */
void fr_rope_pairs_avx512(float *x, const float *cosine, const float *sine, size_t n) {
    __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    __m512i lower = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    __m512i upper = _mm512_add_epi32(lower, _mm512_set1_epi32(8));
    for (size_t i = 0; i < n / 2; i += 16) {
        size_t pairs = n / 2 - i;
        __mmask16 mask = lanes(pairs), low = lanes(2 * pairs), high = pairs > 8 ? lanes(2 * pairs - 16) : 0;
        __m512 first = load_lanes(x + 2 * i, low), second = load_lanes(x + 2 * i + 16, high);
        __m512 a = _mm512_permutex2var_ps(first, even, second), b = _mm512_permutex2var_ps(first, odd, second);
        rotate(&a, &b, load_lanes(cosine + i, mask), load_lanes(sine + i, mask));
        _mm512_mask_storeu_ps(x + 2 * i, low, _mm512_permutex2var_ps(a, lower, b));
        _mm512_mask_storeu_ps(x + 2 * i + 16, high, _mm512_permutex2var_ps(a, upper, b));
    }
}
