/* Computes gated DeltaNet's state over rows by the steps of deltanet_walk.h, with a strip in one register, and the
 * short convolution. The contracts are fr_deltanet_fn and fr_short_conv_fn in kernels.h. */
#include "kernels/simd_avx512.h"

typedef __m512 vector;
enum { LANES = 16 };

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

#include "kernels/deltanet_walk.h"

void fr_deltanet_avx512(const fr_deltanet *run) {
    run_strips(run);
}

FR_INLINE void convolve(float *y, const float *const *rows, const float *w, size_t w_stride, size_t conv_kernel,
                        size_t c, __mmask16 mask) {
    __m512 acc = _mm512_setzero_ps();
    for (size_t t = 0; t < conv_kernel; t++)
        if (rows[t]) acc = _mm512_fmadd_ps(load_lanes(w + t * w_stride + c, mask), load_lanes(rows[t] + c, mask), acc);
    _mm512_mask_storeu_ps(y + c, mask, sigmoid16(acc, acc));
}

void fr_short_conv_avx512(float *y, const float *const *rows, const float *w, size_t w_stride, size_t conv_kernel,
                          size_t n) {
    size_t c = 0;
    for (; c + 16 <= n; c += 16) convolve(y, rows, w, w_stride, conv_kernel, c, 0xffff);
    if (c < n) convolve(y, rows, w, w_stride, conv_kernel, c, lanes(n - c));
}
