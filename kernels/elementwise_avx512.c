/* Computes sums, products and quotients element by element. The contracts are fr_add_fn, fr_scale_fn, fr_div_fn,
 * fr_mul_fn and fr_axpy_fn in kernels.h. */
#include "kernels/simd_avx512.h"

FR_INLINE __m512 add(__m512 a, __m512 b, __m512 factor) {
    (void)factor;
    return _mm512_add_ps(a, b);
}

FR_INLINE __m512 scale(__m512 a, __m512 b, __m512 factor) {
    (void)b;
    return _mm512_mul_ps(a, factor);
}

FR_INLINE __m512 quotient(__m512 a, __m512 b, __m512 factor) {
    (void)b;
    return _mm512_div_ps(a, factor);
}

FR_INLINE __m512 mul(__m512 a, __m512 b, __m512 factor) {
    (void)factor;
    return _mm512_mul_ps(a, b);
}

FR_INLINE __m512 axpy(__m512 a, __m512 b, __m512 factor) {
    return _mm512_fmadd_ps(b, factor, a);
}

void fr_add_avx512(float *y, const float *x, size_t n) {
    map(add, y, y, x, n, 0);
}

void fr_scale_avx512(float *y, size_t n, float factor) {
    map(scale, y, y, NULL, n, factor);
}

void fr_div_avx512(float *y, size_t n, float divisor) {
    map(quotient, y, y, NULL, n, divisor);
}

void fr_mul_avx512(float *y, const float *x, size_t n) {
    map(mul, y, y, x, n, 0);
}

void fr_axpy_avx512(float *y, const float *x, size_t n, float factor) {
    map(axpy, y, y, x, n, factor);
}
