/* Computes the states of gated DeltaNet and Mamba-2 over rows by deltanet_walk.h and mamba_walk.h, with a strip in one
 * register, and the short convolution. The contracts are fr_deltanet_fn, fr_mamba_fn and fr_short_conv_fn in
 * kernels.h. */
#include "kernels/simd_avx512.h"

typedef __m512 vector;
enum { LANES = 16, MAMBA_ROWS = 4 };

FR_INLINE vector load(const float *x) {
    return _mm512_loadu_ps(x);
}

FR_INLINE void store(float *y, vector values) {
    _mm512_storeu_ps(y, values);
}

FR_INLINE vector spread(float value) {
    return _mm512_set1_ps(value);
}

FR_INLINE vector difference(vector a, vector b) {
    return _mm512_sub_ps(a, b);
}

FR_INLINE vector product(vector a, vector b) {
    return _mm512_mul_ps(a, b);
}

FR_INLINE vector multiply_add(vector a, vector b, vector c) {
    return _mm512_fmadd_ps(a, b, c);
}

#include "kernels/mamba_walk.h"

void fr_deltanet_avx512(const fr_deltanet *run) {
    run_strips(run);
}

void fr_mamba_avx512(const fr_deltanet *run, float skip) {
    run_mamba(run, skip);
}

FR_INLINE void convolve(float *y, const float *const *rows, const float *w, size_t w_stride, size_t conv_kernel,
                        const float *bias, size_t c, __mmask16 mask) {
    __m512 acc = bias ? load_lanes(bias + c, mask) : _mm512_setzero_ps();
    for (size_t t = 0; t < conv_kernel; t++)
        if (rows[t]) acc = _mm512_fmadd_ps(load_lanes(w + t * w_stride + c, mask), load_lanes(rows[t] + c, mask), acc);
    _mm512_mask_storeu_ps(y + c, mask, sigmoid16(acc, acc));
}

void fr_short_conv_avx512(float *y, const float *const *rows, const float *w, size_t w_stride, size_t conv_kernel,
                          const float *bias, size_t n) {
    size_t c = 0;
    for (; c + 16 <= n; c += 16) convolve(y, rows, w, w_stride, conv_kernel, bias, c, 0xffff);
    if (c < n) convolve(y, rows, w, w_stride, conv_kernel, bias, c, lanes(n - c));
}
