/* Computes exp, tanh and the activations that use them. The contracts are fr_exp_fn, fr_tanh_fn, fr_gelu_mul_fn,
 * fr_silu_mul_fn, fr_clamped_swiglu_fn, fr_sigmoid_mul_fn and fr_softcap_fn in kernels.h. */
#include "kernels/simd_neon.h"

FR_INLINE float32x4_t exponential(float32x4_t a, float32x4_t b, float32x4_t factor) {
    (void)b, (void)factor;
    return exp4(a);
}

FR_INLINE float32x4_t hyperbolic(float32x4_t a, float32x4_t b, float32x4_t factor) {
    (void)b, (void)factor;
    return tanh4(a);
}

FR_INLINE float32x4_t softcap(float32x4_t a, float32x4_t b, float32x4_t factor) {
    (void)b;
    return vmulq_f32(tanh4(vdivq_f32(a, factor)), factor);
}

FR_INLINE float32x4_t gelu_mul(float32x4_t a, float32x4_t b, float32x4_t factor) {
    (void)factor;
    float32x4_t cubic = vmulq_f32(vdupq_n_f32(FR_GELU_CUBIC), vmulq_f32(a, a));
    float32x4_t inner = vmulq_f32(vdupq_n_f32(FR_GELU_SCALE), vfmaq_f32(a, cubic, a));
    float32x4_t half = vmulq_f32(vdupq_n_f32(0.5f), a);
    float32x4_t gelu = vmulq_f32(half, vaddq_f32(vdupq_n_f32(1.0f), tanh4(inner)));
    return vmulq_f32(gelu, b);
}

FR_INLINE float32x4_t silu_mul(float32x4_t a, float32x4_t b, float32x4_t factor) {
    (void)factor;
    return vmulq_f32(sigmoid4(a, a), b);
}

FR_INLINE float32x4_t clamped_swiglu(float32x4_t a, float32x4_t b, float32x4_t factor) {
    float32x4_t least = vnegq_f32(factor), gate = vbslq_f32(vcgtq_f32(a, factor), factor, a);
    float32x4_t up = vbslq_f32(vcgtq_f32(b, factor), factor, b); /* vminq_f32 is not used here, because it orders -0
                                                                  * before +0 */
    up = vbslq_f32(vcltq_f32(up, least), least, up);
    float32x4_t grown = vmulq_f32(vdupq_n_f32(FR_SWIGLU_ALPHA), gate);
    return vmulq_f32(sigmoid4(gate, grown), vaddq_f32(up, vdupq_n_f32(1.0f)));
}

FR_INLINE float32x4_t sigmoid_mul(float32x4_t a, float32x4_t b, float32x4_t factor) {
    (void)factor;
    return sigmoid4(a, b);
}

void fr_exp_neon(float *y, const float *x, size_t n) {
    map(exponential, y, x, NULL, n, 0);
}

void fr_tanh_neon(float *y, const float *x, size_t n) {
    map(hyperbolic, y, x, NULL, n, 0);
}

void fr_softcap_neon(float *x, size_t n, float cap) {
    map(softcap, x, x, NULL, n, cap);
}

void fr_gelu_mul_neon(float *y, const float *gate, const float *up, size_t n) {
    map(gelu_mul, y, gate, up, n, 0);
}

void fr_silu_mul_neon(float *y, const float *gate, const float *up, size_t n) {
    map(silu_mul, y, gate, up, n, 0);
}

void fr_clamped_swiglu_neon(float *y, const float *gate, const float *up, size_t n, float limit) {
    map(clamped_swiglu, y, gate, up, n, limit);
}

void fr_sigmoid_mul_neon(float *y, const float *x, const float *gate, size_t n) {
    map(sigmoid_mul, y, x, gate, n, 0);
}
