/* Finds the largest value. The contract is fr_argmax_fn in kernels.h. Top-k has no kernel here, so the scalar kernel is
 * used. */
#include "kernels/simd_avx512.h"

enum { NOT_FINITE = 0x99 }; /* flags of vfpclassps: quiet NaN, signalling NaN, and the two infinities */

/* Finds the largest value in two passes. The first pass finds the maximum, and any value that is not finite. The
 * second pass finds the first index of the maximum. */
int64_t fr_argmax_avx512(const float *x, size_t n) {
    __m512 best = _mm512_set1_ps(x[0]);
    __mmask16 bad = 0;
    for (size_t i = 0; i < n; i += 16) {
        __m512 values = _mm512_mask_loadu_ps(best, lanes(n - i), x + i);
        bad |= _mm512_fpclass_ps_mask(values, NOT_FINITE);
        best = _mm512_max_ps(values, best);
    }
    if (bad) return -1;
    __m512 maximum = _mm512_set1_ps(_mm512_reduce_max_ps(best));
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 mask = lanes(n - i);
        __mmask16 found = _mm512_mask_cmp_ps_mask(mask, load_lanes(x + i, mask), maximum, _CMP_EQ_OQ);
        if (found) return (int64_t)(i + (size_t)__builtin_ctz(found));
    }
    return -1;
}
