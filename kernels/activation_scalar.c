/* Defines exp, tanh and the activations that use them. The contracts are fr_exp_fn, fr_tanh_fn, fr_gelu_mul_fn,
 * fr_gelu_erf_fn, fr_silu_mul_fn, fr_clamped_swiglu_fn, fr_sigmoid_mul_fn and fr_softcap_fn in kernels.h. */
#include "kernels/scalar.h"

void FR_SCALAR(exp)(float *y, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] = scalar_exp(x[i]);
}

void FR_SCALAR(tanh)(float *y, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] = scalar_tanh(x[i]);
}

void FR_SCALAR(softcap)(float *x, size_t n, float cap) {
    for (size_t i = 0; i < n; i++) x[i] = scalar_tanh(x[i] / cap) * cap;
}

static inline float gelu(float x) {
    float inner = FR_GELU_SCALE * fmaf(FR_GELU_CUBIC * (x * x), x, x);
    return 0.5f * x * (1.0f + scalar_tanh(inner));
}

void FR_SCALAR(gelu_mul)(float *y, const float *gate, const float *up, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] = gelu(gate[i]) * up[i];
}

/* Returns the probability that a standard normal variable is below -w. */
static inline float tail(float w) {
    float t = 1.0f / fmaf(FR_TAIL_STEP, w, 1.0f), sum = FR_TAIL_T7;
    sum = fmaf(sum, t, FR_TAIL_T6);
    sum = fmaf(sum, t, FR_TAIL_T5);
    sum = fmaf(sum, t, FR_TAIL_T4);
    sum = fmaf(sum, t, FR_TAIL_T3);
    sum = fmaf(sum, t, FR_TAIL_T2);
    sum = fmaf(sum, t, FR_TAIL_T1);
    sum = fmaf(sum, t, FR_TAIL_T0);
    return scalar_exp(-0.5f * (w * w)) * t * sum;
}

void FR_SCALAR(gelu_erf)(float *y, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float w = fabsf(x[i]);
        y[i] = fmaf(-w, tail(w), x[i] < 0.0f ? 0.0f : x[i]);
    }
}

void FR_SCALAR(silu_mul)(float *y, const float *gate, const float *up, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] = gate[i] / (1.0f + scalar_exp(-gate[i])) * up[i];
}

void FR_SCALAR(clamped_swiglu)(float *y, const float *gate, const float *up, size_t n, float limit) {
    for (size_t i = 0; i < n; i++) {
        float g = gate[i] > limit ? limit : gate[i], u = up[i] > limit ? limit : up[i];
        if (u < -limit) u = -limit;
        y[i] = g / (1.0f + scalar_exp(-(FR_SWIGLU_ALPHA * g))) * (u + 1.0f);
    }
}

void FR_SCALAR(sigmoid_mul)(float *y, const float *x, const float *gate, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] = x[i] / (1.0f + scalar_exp(-gate[i]));
}
