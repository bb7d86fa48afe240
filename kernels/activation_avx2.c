/* Computes exp, tanh and the activations that use them. The contracts are fr_exp_fn, fr_tanh_fn, fr_gelu_mul_fn,
 * fr_gelu_erf_fn, fr_silu_mul_fn, fr_clamped_swiglu_fn, fr_sigmoid_mul_fn and fr_softcap_fn in kernels.h. */
#include "kernels/simd_avx2.h"

FR_INLINE __m256 exponential(__m256 a, __m256 b, __m256 factor) {
    (void)b, (void)factor;
    return exp8(a);
}

FR_INLINE __m256 hyperbolic(__m256 a, __m256 b, __m256 factor) {
    (void)b, (void)factor;
    return tanh8(a);
}

FR_INLINE __m256 softcap(__m256 a, __m256 b, __m256 factor) {
    (void)b;
    return _mm256_mul_ps(tanh8(_mm256_div_ps(a, factor)), factor);
}

FR_INLINE __m256 gelu_mul(__m256 a, __m256 b, __m256 factor) {
    (void)factor;
    __m256 cubic = _mm256_mul_ps(_mm256_set1_ps(FR_GELU_CUBIC), _mm256_mul_ps(a, a));
    __m256 inner = _mm256_mul_ps(_mm256_set1_ps(FR_GELU_SCALE), _mm256_fmadd_ps(cubic, a, a));
    __m256 half = _mm256_mul_ps(_mm256_set1_ps(0.5f), a);
    __m256 gelu = _mm256_mul_ps(half, _mm256_add_ps(_mm256_set1_ps(1.0f), tanh8(inner)));
    return _mm256_mul_ps(gelu, b);
}

/* Computes x times the normal distribution function at x. max returns its second argument if an argument is NaN or both
 * are zeros, so -0 stays -0. */
FR_INLINE __m256 gelu_erf(__m256 a, __m256 b, __m256 factor) {
    (void)b, (void)factor;
    __m256 one = _mm256_set1_ps(1.0f), zero = _mm256_setzero_ps(), w = _mm256_max_ps(a, _mm256_sub_ps(zero, a));
    __m256 t = _mm256_div_ps(one, _mm256_fmadd_ps(_mm256_set1_ps(FR_TAIL_STEP), w, one));
    __m256 sum = _mm256_set1_ps(FR_TAIL_T7);
    sum = _mm256_fmadd_ps(sum, t, _mm256_set1_ps(FR_TAIL_T6));
    sum = _mm256_fmadd_ps(sum, t, _mm256_set1_ps(FR_TAIL_T5));
    sum = _mm256_fmadd_ps(sum, t, _mm256_set1_ps(FR_TAIL_T4));
    sum = _mm256_fmadd_ps(sum, t, _mm256_set1_ps(FR_TAIL_T3));
    sum = _mm256_fmadd_ps(sum, t, _mm256_set1_ps(FR_TAIL_T2));
    sum = _mm256_fmadd_ps(sum, t, _mm256_set1_ps(FR_TAIL_T1));
    sum = _mm256_fmadd_ps(sum, t, _mm256_set1_ps(FR_TAIL_T0));
    __m256 power = exp8(_mm256_mul_ps(_mm256_set1_ps(-0.5f), _mm256_mul_ps(w, w)));
    __m256 tail = _mm256_mul_ps(_mm256_mul_ps(power, t), sum);
    return _mm256_fnmadd_ps(w, tail, _mm256_max_ps(zero, a));
}

FR_INLINE __m256 silu_mul(__m256 a, __m256 b, __m256 factor) {
    (void)factor;
    return _mm256_mul_ps(sigmoid8(a, a), b);
}

/* Computes the clamped SwiGLU of kernels.h. A NaN passes through, because min and max return their second argument if
 * an argument is NaN. */
FR_INLINE __m256 clamped_swiglu(__m256 a, __m256 b, __m256 factor) {
    __m256 one = _mm256_set1_ps(1.0f), least = _mm256_sub_ps(_mm256_setzero_ps(), factor);
    __m256 gate = _mm256_min_ps(factor, a), up = _mm256_max_ps(least, _mm256_min_ps(factor, b));
    __m256 grown = _mm256_mul_ps(_mm256_set1_ps(FR_SWIGLU_ALPHA), gate);
    return _mm256_mul_ps(sigmoid8(gate, grown), _mm256_add_ps(up, one));
}

FR_INLINE __m256 sigmoid_mul(__m256 a, __m256 b, __m256 factor) {
    (void)factor;
    return sigmoid8(a, b);
}

void fr_exp_avx2(float *y, const float *x, size_t n) {
    map(exponential, y, x, NULL, n, 0);
}

void fr_tanh_avx2(float *y, const float *x, size_t n) {
    map(hyperbolic, y, x, NULL, n, 0);
}

void fr_softcap_avx2(float *x, size_t n, float cap) {
    map(softcap, x, x, NULL, n, cap);
}

void fr_gelu_mul_avx2(float *y, const float *gate, const float *up, size_t n) {
    map(gelu_mul, y, gate, up, n, 0);
}

void fr_gelu_erf_avx2(float *y, const float *x, size_t n) {
    map(gelu_erf, y, x, NULL, n, 0);
}

void fr_silu_mul_avx2(float *y, const float *gate, const float *up, size_t n) {
    map(silu_mul, y, gate, up, n, 0);
}

void fr_clamped_swiglu_avx2(float *y, const float *gate, const float *up, size_t n, float limit) {
    map(clamped_swiglu, y, gate, up, n, limit);
}

void fr_sigmoid_mul_avx2(float *y, const float *x, const float *gate, size_t n) {
    map(sigmoid_mul, y, x, gate, n, 0);
}
