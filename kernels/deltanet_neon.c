/* Computes the states of gated DeltaNet and Mamba-2 over rows by deltanet_walk.h and mamba_walk.h, with a strip in four
 * registers, and the short convolution. The contracts are fr_deltanet_fn, fr_mamba_fn and fr_short_conv_fn in
 * kernels.h. */
#include "kernels/simd_neon.h"

typedef float32x4_t vector;
enum { LANES = 4, MAMBA_ROWS = 2 };

FR_INLINE vector load(const float *x) {
    return vld1q_f32(x);
}

FR_INLINE void store(float *y, vector values) {
    vst1q_f32(y, values);
}

FR_INLINE vector spread(float value) {
    return vdupq_n_f32(value);
}

FR_INLINE vector difference(vector a, vector b) {
    return vsubq_f32(a, b);
}

FR_INLINE vector product(vector a, vector b) {
    return vmulq_f32(a, b);
}

FR_INLINE vector multiply_add(vector a, vector b, vector c) {
    return vfmaq_f32(c, a, b);
}

#include "kernels/mamba_walk.h"

void fr_deltanet_neon(const fr_deltanet *run) {
    run_strips(run);
}

void fr_mamba_neon(const fr_deltanet *run, float skip) {
    run_mamba(run, skip);
}

/* Convolves `count` channels from c on, at most 4. */
FR_INLINE void convolve(float *y, const float *const *rows, const float *w, size_t w_stride, size_t conv_kernel,
                        const float *bias, size_t c, size_t count) {
    float32x4_t acc = bias ? load_lanes(bias + c, count) : vdupq_n_f32(0);
    for (size_t t = 0; t < conv_kernel; t++)
        if (rows[t]) acc = vfmaq_f32(acc, load_lanes(w + t * w_stride + c, count), load_lanes(rows[t] + c, count));
    store_lanes(y + c, sigmoid4(acc, acc), count);
}

void fr_short_conv_neon(float *y, const float *const *rows, const float *w, size_t w_stride, size_t conv_kernel,
                        const float *bias, size_t n) {
    size_t c = 0;
    for (; c + 4 <= n; c += 4) convolve(y, rows, w, w_stride, conv_kernel, bias, c, 4);
    if (c < n) convolve(y, rows, w, w_stride, conv_kernel, bias, c, n - c);
}
