/* Computes sums, products and quotients element by element. The contracts are fr_add_fn, fr_scale_fn, fr_div_fn,
 * fr_mul_fn and fr_axpy_fn in kernels.h. */
#include "kernels/simd_neon.h"

FR_INLINE float32x4_t add(float32x4_t a, float32x4_t b, float32x4_t factor) {
    (void)factor;
    return vaddq_f32(a, b);
}

FR_INLINE float32x4_t scale(float32x4_t a, float32x4_t b, float32x4_t factor) {
    (void)b;
    return vmulq_f32(a, factor);
}

FR_INLINE float32x4_t quotient(float32x4_t a, float32x4_t b, float32x4_t factor) {
    (void)b;
    return vdivq_f32(a, factor);
}

FR_INLINE float32x4_t mul(float32x4_t a, float32x4_t b, float32x4_t factor) {
    (void)factor;
    return vmulq_f32(a, b);
}

FR_INLINE float32x4_t axpy(float32x4_t a, float32x4_t b, float32x4_t factor) {
    return vfmaq_f32(a, b, factor);
}

void fr_add_neon(float *y, const float *x, size_t n) {
    map(add, y, y, x, n, 0);
}

void fr_scale_neon(float *y, size_t n, float factor) {
    map(scale, y, y, NULL, n, factor);
}

void fr_div_neon(float *y, size_t n, float divisor) {
    map(quotient, y, y, NULL, n, divisor);
}

void fr_mul_neon(float *y, const float *x, size_t n) {
    map(mul, y, y, x, n, 0);
}

void fr_axpy_neon(float *y, const float *x, size_t n, float factor) {
    map(axpy, y, y, x, n, factor);
}
