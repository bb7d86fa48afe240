/* Computes the states of gated DeltaNet and Mamba-2 over rows by deltanet_walk.h and mamba_walk.h, with a strip in two
 * registers, and the short convolution. The contracts are fr_deltanet_fn, fr_mamba_fn and fr_short_conv_fn in
 * kernels.h. */
#include "kernels/simd_avx2.h"

typedef __m256 vector;
enum { LANES = 8, MAMBA_ROWS = 2 };

FR_INLINE vector load(const float *x) {
    return _mm256_loadu_ps(x);
}

FR_INLINE void store(float *y, vector values) {
    _mm256_storeu_ps(y, values);
}

FR_INLINE vector spread(float value) {
    return _mm256_set1_ps(value);
}

FR_INLINE vector difference(vector a, vector b) {
    return _mm256_sub_ps(a, b);
}

FR_INLINE vector product(vector a, vector b) {
    return _mm256_mul_ps(a, b);
}

FR_INLINE vector multiply_add(vector a, vector b, vector c) {
    return _mm256_fmadd_ps(a, b, c);
}

#include "kernels/mamba_walk.h"

void fr_deltanet_avx2(const fr_deltanet *run) {
    run_strips(run);
}

void fr_mamba_avx2(const fr_deltanet *run, float skip) {
    run_mamba(run, skip);
}

/* Convolves `count` channels from c on, at most 8. */
FR_INLINE void convolve(float *y, const float *const *rows, const float *w, size_t w_stride, size_t conv_kernel,
                        const float *bias, size_t c, size_t count) {
    __m256 acc = bias ? load_lanes(bias + c, count) : _mm256_setzero_ps();
    for (size_t t = 0; t < conv_kernel; t++)
        if (rows[t])
            acc = _mm256_fmadd_ps(load_lanes(w + t * w_stride + c, count), load_lanes(rows[t] + c, count), acc);
    store_lanes(y + c, count, sigmoid8(acc, acc));
}

void fr_short_conv_avx2(float *y, const float *const *rows, const float *w, size_t w_stride, size_t conv_kernel,
                        const float *bias, size_t n) {
    size_t c = 0;
    for (; c + 8 <= n; c += 8) convolve(y, rows, w, w_stride, conv_kernel, bias, c, 8);
    if (c < n) convolve(y, rows, w, w_stride, conv_kernel, bias, c, n - c);
}
