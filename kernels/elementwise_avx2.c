/* Computes sums, products and quotients element by element. The contracts are fr_add_fn, fr_scale_fn, fr_div_fn,
 * fr_mul_fn and fr_axpy_fn in kernels.h. */
#include "kernels/simd_avx2.h"

FR_INLINE __m256 add(__m256 a, __m256 b, __m256 factor) {
    (void)factor;
    return _mm256_add_ps(a, b);
}

FR_INLINE __m256 scale(__m256 a, __m256 b, __m256 factor) {
    (void)b;
    return _mm256_mul_ps(a, factor);
}

FR_INLINE __m256 quotient(__m256 a, __m256 b, __m256 factor) {
    (void)b;
    return _mm256_div_ps(a, factor);
}

FR_INLINE __m256 mul(__m256 a, __m256 b, __m256 factor) {
    (void)factor;
    return _mm256_mul_ps(a, b);
}

FR_INLINE __m256 axpy(__m256 a, __m256 b, __m256 factor) {
    return _mm256_fmadd_ps(b, factor, a);
}

void fr_add_avx2(float *y, const float *x, size_t n) {
    map(add, y, y, x, n, 0);
}

void fr_scale_avx2(float *y, size_t n, float factor) {
    map(scale, y, y, NULL, n, factor);
}

void fr_div_avx2(float *y, size_t n, float divisor) {
    map(quotient, y, y, NULL, n, divisor);
}

void fr_mul_avx2(float *y, const float *x, size_t n) {
    map(mul, y, y, x, n, 0);
}

void fr_axpy_avx2(float *y, const float *x, size_t n, float factor) {
    map(axpy, y, y, x, n, factor);
}
