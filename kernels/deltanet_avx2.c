/* Computes gated DeltaNet's state over rows by the steps of deltanet_walk.h, with a strip in two registers, and the
 * short convolution. The contracts are fr_deltanet_fn and fr_short_conv_fn in kernels.h. */
#include "kernels/simd_avx2.h"

typedef __m256 vector;
enum { LANES = 8 };

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

#include "kernels/deltanet_walk.h"

void fr_deltanet_avx2(const fr_deltanet *run) {
    run_strips(run);
}

/* Convolves `count` channels from c on, at most 8. */
FR_INLINE void convolve(float *y, const float *const *rows, const float *w, size_t w_stride, size_t conv_kernel,
                        size_t c, size_t count) {
    __m256 acc = _mm256_setzero_ps();
    for (size_t t = 0; t < conv_kernel; t++)
        if (rows[t])
            acc = _mm256_fmadd_ps(load_lanes(w + t * w_stride + c, count), load_lanes(rows[t] + c, count), acc);
    store_lanes(y + c, count, sigmoid8(acc, acc));
}

void fr_short_conv_avx2(float *y, const float *const *rows, const float *w, size_t w_stride, size_t conv_kernel,
                        size_t n) {
    size_t c = 0;
    for (; c + 8 <= n; c += 8) convolve(y, rows, w, w_stride, conv_kernel, c, 8);
    if (c < n) convolve(y, rows, w, w_stride, conv_kernel, c, n - c);
}
