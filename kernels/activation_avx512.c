/* Computes exp, tanh and the activations that use them. The contracts are fr_exp_fn, fr_tanh_fn, fr_gelu_mul_fn,
 * fr_gelu_erf_fn, fr_silu_mul_fn, fr_clamped_swiglu_fn, fr_sigmoid_mul_fn and fr_softcap_fn in kernels.h. */
#include "kernels/simd_avx512.h"

FR_INLINE __m512 exponential(__m512 a, __m512 b, __m512 factor) {
    (void)b, (void)factor;
    return exp16(a);
}

FR_INLINE __m512 hyperbolic(__m512 a, __m512 b, __m512 factor) {
    (void)b, (void)factor;
    return tanh16(a);
}

FR_INLINE __m512 softcap(__m512 a, __m512 b, __m512 factor) {
    (void)b;
    return _mm512_mul_ps(tanh16(_mm512_div_ps(a, factor)), factor);
}

FR_INLINE __m512 gelu_mul(__m512 a, __m512 b, __m512 factor) {
    (void)factor;
    __m512 cubic = _mm512_mul_ps(_mm512_set1_ps(FR_GELU_CUBIC), _mm512_mul_ps(a, a));
    __m512 inner = _mm512_mul_ps(_mm512_set1_ps(FR_GELU_SCALE), _mm512_fmadd_ps(cubic, a, a));
    __m512 half = _mm512_mul_ps(_mm512_set1_ps(0.5f), a);
    __m512 gelu = _mm512_mul_ps(half, _mm512_add_ps(_mm512_set1_ps(1.0f), tanh16(inner)));
    return _mm512_mul_ps(gelu, b);
}

/* Computes x times the normal distribution function at x. max returns its second argument if an argument is NaN or both
 * are zeros, so -0 stays -0. */
FR_INLINE __m512 gelu_erf(__m512 a, __m512 b, __m512 factor) {
    (void)b, (void)factor;
    __m512 one = _mm512_set1_ps(1.0f), zero = _mm512_setzero_ps(), w = _mm512_max_ps(a, _mm512_sub_ps(zero, a));
    __m512 t = _mm512_div_ps(one, _mm512_fmadd_ps(_mm512_set1_ps(FR_TAIL_STEP), w, one));
    __m512 sum = _mm512_set1_ps(FR_TAIL_T7);
    sum = _mm512_fmadd_ps(sum, t, _mm512_set1_ps(FR_TAIL_T6));
    sum = _mm512_fmadd_ps(sum, t, _mm512_set1_ps(FR_TAIL_T5));
    sum = _mm512_fmadd_ps(sum, t, _mm512_set1_ps(FR_TAIL_T4));
    sum = _mm512_fmadd_ps(sum, t, _mm512_set1_ps(FR_TAIL_T3));
    sum = _mm512_fmadd_ps(sum, t, _mm512_set1_ps(FR_TAIL_T2));
    sum = _mm512_fmadd_ps(sum, t, _mm512_set1_ps(FR_TAIL_T1));
    sum = _mm512_fmadd_ps(sum, t, _mm512_set1_ps(FR_TAIL_T0));
    __m512 power = exp16(_mm512_mul_ps(_mm512_set1_ps(-0.5f), _mm512_mul_ps(w, w)));
    __m512 tail = _mm512_mul_ps(_mm512_mul_ps(power, t), sum);
    return _mm512_fnmadd_ps(w, tail, _mm512_max_ps(zero, a));
}

FR_INLINE __m512 silu_mul(__m512 a, __m512 b, __m512 factor) {
    (void)factor;
    return _mm512_mul_ps(sigmoid16(a, a), b);
}

/* Computes the clamped SwiGLU of kernels.h. A NaN passes through, because min and max return their second argument if
 * an argument is NaN. */
FR_INLINE __m512 clamped_swiglu(__m512 a, __m512 b, __m512 factor) {
    __m512 one = _mm512_set1_ps(1.0f), least = _mm512_sub_ps(_mm512_setzero_ps(), factor);
    __m512 gate = _mm512_min_ps(factor, a), up = _mm512_max_ps(least, _mm512_min_ps(factor, b));
    __m512 grown = _mm512_mul_ps(_mm512_set1_ps(FR_SWIGLU_ALPHA), gate);
    return _mm512_mul_ps(sigmoid16(gate, grown), _mm512_add_ps(up, one));
}

FR_INLINE __m512 sigmoid_mul(__m512 a, __m512 b, __m512 factor) {
    (void)factor;
    return sigmoid16(a, b);
}

void fr_exp_avx512(float *y, const float *x, size_t n) {
    map(exponential, y, x, NULL, n, 0);
}

void fr_tanh_avx512(float *y, const float *x, size_t n) {
    map(hyperbolic, y, x, NULL, n, 0);
}

void fr_softcap_avx512(float *x, size_t n, float cap) {
    map(softcap, x, x, NULL, n, cap);
}

void fr_gelu_mul_avx512(float *y, const float *gate, const float *up, size_t n) {
    map(gelu_mul, y, gate, up, n, 0);
}

void fr_gelu_erf_avx512(float *y, const float *x, size_t n) {
    map(gelu_erf, y, x, NULL, n, 0);
}

void fr_silu_mul_avx512(float *y, const float *gate, const float *up, size_t n) {
    map(silu_mul, y, gate, up, n, 0);
}

void fr_clamped_swiglu_avx512(float *y, const float *gate, const float *up, size_t n, float limit) {
    map(clamped_swiglu, y, gate, up, n, limit);
}

void fr_sigmoid_mul_avx512(float *y, const float *x, const float *gate, size_t n) {
    map(sigmoid_mul, y, x, gate, n, 0);
}
