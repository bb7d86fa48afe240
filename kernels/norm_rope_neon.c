/* Computes RMS norm, layer norm and rotary positions. The contracts are fr_rmsnorm_fn, fr_layernorm_fn and fr_rope_fn
 * in kernels.h. */
#include "kernels/simd_neon.h"

#include <math.h>

FR_INLINE float32x4_t scale(float32x4_t a, float32x4_t b, float32x4_t factor) {
    (void)b;
    return vmulq_f32(a, factor);
}

FR_INLINE float32x4_t scale_weighted(float32x4_t a, float32x4_t b, float32x4_t factor) {
    return vmulq_f32(vmulq_f32(a, factor), b);
}

static float sum_of_squares(const float *x, size_t n) {
    const char *const itself[] = {(const char *)x};
    float squares;
    dots(load_f32, sizeof(float), (dots_job){&squares, 0, x, 0, 1, itself, 1, 1, n});
    return squares;
}

void fr_rmsnorm_neon(float *y, const float *x, const float *weight, size_t n, float eps) {
    float r = 1.0f / sqrtf(sum_of_squares(x, n) / (float)n + eps);
    if (weight)
        map(scale_weighted, y, x, weight, n, r);
    else
        map(scale, y, x, NULL, n, r);
}

/* Returns the sum of n values in dot's order. Lanes past the end are 0. Adding 0 does not change a partial sum, because
 * each sum began with +0. */
static float sum_of_values(const float *x, size_t n) {
    float32x4_t p[4] = {{0}};
    for (size_t i = 0; i < n; i += 4) p[i / 4 % 4] = vaddq_f32(p[i / 4 % 4], load_lanes(x + i, n - i));
    return sum16(p);
}

FR_INLINE float32x4_t less(float32x4_t a, float32x4_t b, float32x4_t mean) {
    (void)b;
    return vsubq_f32(a, mean);
}

void fr_layernorm_neon(float *y, const float *x, const float *weight, const float *bias, size_t n, float eps) {
    map(less, y, x, NULL, n, sum_of_values(x, n) / (float)n);
    float32x4_t r = vdupq_n_f32(1.0f / sqrtf(sum_of_squares(y, n) / (float)n + eps));
    for (size_t i = 0; i < n; i += 4) {
        float32x4_t added = bias ? load_lanes(bias + i, n - i) : vdupq_n_f32(0);
        float32x4_t scaled = vmulq_f32(load_lanes(y + i, n - i), r);
        store_lanes(y + i, vfmaq_f32(added, scaled, load_lanes(weight + i, n - i)), n - i);
    }
}

/* Sets a to (a cosine - b sine), and b to (b cosine + a sine). */
FR_INLINE void rotate(float32x4_t *a, float32x4_t *b, float32x4_t cosine, float32x4_t sine) {
    float32x4_t first = vfmsq_f32(vmulq_f32(*a, cosine), *b, sine);
    *b = vfmaq_f32(vmulq_f32(*b, cosine), *a, sine);
    *a = first;
}

void fr_rope_neox_neon(float *x, const float *cosine, const float *sine, size_t n) {
    float *second = x + n / 2;
    for (size_t i = 0; i < n / 2; i += 4) {
        size_t count = n / 2 - i;
        float32x4_t a = load_lanes(x + i, count), b = load_lanes(second + i, count);
        rotate(&a, &b, load_lanes(cosine + i, count), load_lanes(sine + i, count));
        store_lanes(x + i, a, count);
        store_lanes(second + i, b, count);
    }
}

/* Rotates four pairs at a time, which are in two registers. The even lanes are gathered into a, and the odd lanes into
 * b. After the rotation a and b are interleaved again. */
void fr_rope_pairs_neon(float *x, const float *cosine, const float *sine, size_t n) {
    for (size_t i = 0; i < n / 2; i += 4) {
        size_t count = n / 2 - i, low = 2 * count, high = count > 2 ? 2 * count - 4 : 0;
        float *upper = x + 2 * i + (high ? 4 : 0);
        float32x4_t first = load_lanes(x + 2 * i, low), second = load_lanes(upper, high);
        float32x4_t a = vuzp1q_f32(first, second), b = vuzp2q_f32(first, second);
        rotate(&a, &b, load_lanes(cosine + i, count), load_lanes(sine + i, count));
        store_lanes(x + 2 * i, vzip1q_f32(a, b), low);
        store_lanes(upper, vzip2q_f32(a, b), high);
    }
}
