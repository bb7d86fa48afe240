/* Finds the largest value. The contract is fr_argmax_fn in kernels.h. Top-k has no kernel here, so the scalar kernel is
 * used. */
#include "kernels/simd_avx2.h"

/* Sets all bits of the lanes that are NaN or infinite. */
FR_INLINE __m256i not_finite(__m256 x) {
    __m256i exponent = _mm256_set1_epi32(0x7f800000);
    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_castps_si256(x), exponent), exponent);
}

/* Returns the index of the first of n values that equals `maximum`. At least one value must equal it. */
static int64_t first_equal(const float *x, size_t n, float maximum) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 equal = _mm256_cmp_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(maximum), _CMP_EQ_OQ);
        int found = _mm256_movemask_ps(equal);
        if (found) return (int64_t)(i + (size_t)__builtin_ctz((unsigned)found));
    }
    while (x[i] != maximum) i++;
    return (int64_t)i;
}

/* Finds the largest value in two passes. The first pass finds the maximum, and any value that is not finite. The second
 * pass finds the first index of the maximum. The last 8 values are always loaded as a whole register, even if some of
 * them were in an earlier register too. */
int64_t fr_argmax_avx2(const float *x, size_t n) {
    if (n < 8) return fr_argmax_scalar_fma(x, n);
    __m256 best = _mm256_loadu_ps(x + n - 8);
    __m256i bad = not_finite(best);
    for (size_t i = 0; i + 8 <= n; i += 8) {
        __m256 values = _mm256_loadu_ps(x + i);
        bad = _mm256_or_si256(bad, not_finite(values));
        best = _mm256_max_ps(values, best);
    }
    if (!_mm256_testz_si256(bad, bad)) return -1;
    float values[8], maximum;
    _mm256_storeu_ps(values, best);
    maximum = values[0];
    for (int i = 1; i < 8; i++) maximum = values[i] > maximum ? values[i] : maximum;
    return first_equal(x, n, maximum);
}
