/* Defines RMS norm, layer norm and rotary positions. The contracts are fr_rmsnorm_fn, fr_layernorm_fn and fr_rope_fn
 * in kernels.h. */
#include "kernels/scalar.h"

void FR_SCALAR(rmsnorm)(float *y, const float *x, const float *weight, size_t n, float eps) {
    float r = 1.0f / sqrtf(dot(load_f32, x, x, n) / (float)n + eps);
    for (size_t i = 0; i < n; i++) y[i] = weight ? x[i] * r * weight[i] : x[i] * r;
}

void FR_SCALAR(layernorm)(float *y, const float *x, const float *weight, const float *bias, size_t n, float eps) {
    float p[16] = {0};
    for (size_t i = 0; i < n; i++) p[i % 16] += x[i];
    float mean = sum16(p) / (float)n;
    for (size_t i = 0; i < n; i++) y[i] = x[i] - mean;
    float r = 1.0f / sqrtf(dot(load_f32, y, y, n) / (float)n + eps);
    for (size_t i = 0; i < n; i++) y[i] = fmaf(y[i] * r, weight[i], bias ? bias[i] : 0.0f);
}

static inline void rotate(float *first, float *second, float cosine, float sine) {
    float a = *first, b = *second;
    *first = fmaf(-b, sine, a * cosine);
    *second = fmaf(a, sine, b * cosine);
}

void FR_SCALAR(rope_neox)(float *x, const float *cosine, const float *sine, size_t n) {
    for (size_t i = 0; i < n / 2; i++) rotate(&x[i], &x[i + n / 2], cosine[i], sine[i]);
}

void FR_SCALAR(rope_pairs)(float *x, const float *cosine, const float *sine, size_t n) {
    for (size_t i = 0; i < n / 2; i++) rotate(&x[2 * i], &x[2 * i + 1], cosine[i], sine[i]);
}
