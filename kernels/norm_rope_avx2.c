/* Computes RMS norm, layer norm and rotary positions. The contracts are fr_rmsnorm_fn, fr_layernorm_fn and fr_rope_fn
 * in kernels.h. */
#include "kernels/simd_avx2.h"

#include <math.h>

FR_INLINE __m256 scale(__m256 a, __m256 b, __m256 factor) {
    (void)b;
    return _mm256_mul_ps(a, factor);
}

FR_INLINE __m256 scale_weighted(__m256 a, __m256 b, __m256 factor) {
    return _mm256_mul_ps(_mm256_mul_ps(a, factor), b);
}

static float sum_of_squares(const float *x, size_t n) {
    __m256 p[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 values = _mm256_loadu_ps(x + i);
        p[i / 8 % 2] = _mm256_fmadd_ps(values, values, p[i / 8 % 2]);
    }
    if (i < n) {
        __m256 values = load_lanes(x + i, n - i), sum = _mm256_fmadd_ps(values, values, p[i / 8 % 2]);
        p[i / 8 % 2] = _mm256_blendv_ps(p[i / 8 % 2], sum, lane_mask((int)(n - i)));
    }
    return sum16(p[0], p[1]);
}

void fr_rmsnorm_avx2(float *y, const float *x, const float *weight, size_t n, float eps) {
    float r = 1.0f / sqrtf(sum_of_squares(x, n) / (float)n + eps);
    if (weight)
        map(scale_weighted, y, x, weight, n, r);
    else
        map(scale, y, x, NULL, n, r);
}

/* Returns the sum of n values in dot's order. Lanes past the end are 0. Adding 0 does not change a partial sum, because
 * each sum began with +0. */
static float sum_of_values(const float *x, size_t n) {
    __m256 p[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (size_t i = 0; i < n; i += 8) p[i / 8 % 2] = _mm256_add_ps(p[i / 8 % 2], load_lanes(x + i, n - i));
    return sum16(p[0], p[1]);
}

FR_INLINE __m256 less(__m256 a, __m256 b, __m256 mean) {
    (void)b;
    return _mm256_sub_ps(a, mean);
}

void fr_layernorm_avx2(float *y, const float *x, const float *weight, const float *bias, size_t n, float eps) {
    map(less, y, x, NULL, n, sum_of_values(x, n) / (float)n);
    __m256 r = _mm256_set1_ps(1.0f / sqrtf(sum_of_squares(y, n) / (float)n + eps));
    for (size_t i = 0; i < n; i += 8) {
        __m256 added = bias ? load_lanes(bias + i, n - i) : _mm256_setzero_ps();
        __m256 scaled = _mm256_mul_ps(load_lanes(y + i, n - i), r);
        store_lanes(y + i, n - i, _mm256_fmadd_ps(scaled, load_lanes(weight + i, n - i), added));
    }
}

void fr_rope_neox_avx2(float *x, const float *cosine, const float *sine, size_t n) {
    float *second = x + n / 2;
    for (size_t i = 0; i < n / 2; i += 8) {
        size_t left = n / 2 - i;
        __m256 a = load_lanes(x + i, left), b = load_lanes(second + i, left);
        __m256 c = load_lanes(cosine + i, left), s = load_lanes(sine + i, left);
        store_lanes(x + i, left, _mm256_fnmadd_ps(b, s, _mm256_mul_ps(a, c)));
        store_lanes(second + i, left, _mm256_fmadd_ps(a, s, _mm256_mul_ps(b, c)));
    }
}

/* Rotates four pairs (a, b) that are side by side. Let c and s be cosine and sine. Swapping the two values of each pair
 * gives (b, a). So one multiply-add computes both fma(b, -s, a c) and fma(a, s, b c). */
FR_INLINE __m256 rotate_pairs(__m256 x, __m256 cosine, __m256 sine) {
    __m256 minus_first = _mm256_setr_ps(-0.0f, 0, -0.0f, 0, -0.0f, 0, -0.0f, 0);
    __m256 swapped = _mm256_permute_ps(x, 0xb1);
    return _mm256_fmadd_ps(swapped, _mm256_xor_ps(sine, minus_first), _mm256_mul_ps(x, cosine));
}

void fr_rope_pairs_avx2(float *x, const float *cosine, const float *sine, size_t n) {
    __m256i low = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3), high = _mm256_add_epi32(low, _mm256_set1_epi32(4));
    for (size_t i = 0; i < n / 2; i += 8) {
        size_t pairs = n / 2 - i, behind = pairs > 4 ? 2 * pairs - 8 : 0;
        __m256 c = load_lanes(cosine + i, pairs), s = load_lanes(sine + i, pairs);
        __m256 first = load_lanes(x + 2 * i, 2 * pairs), second = load_lanes(x + 2 * i + 8, behind);
        first = rotate_pairs(first, _mm256_permutevar8x32_ps(c, low), _mm256_permutevar8x32_ps(s, low));
        second = rotate_pairs(second, _mm256_permutevar8x32_ps(c, high), _mm256_permutevar8x32_ps(s, high));
        store_lanes(x + 2 * i, 2 * pairs, first);
        store_lanes(x + 2 * i + 8, behind, second);
    }
}
