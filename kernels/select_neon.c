/* Finds the largest value. The contract is fr_argmax_fn in kernels.h. Top-k has no kernel here, so the scalar kernel is
 * used. */
#include "kernels/simd_neon.h"

enum { INFINITE = 0x7f800000 }; /* a magnitude is infinite or NaN if its bits are at least this number */

/* Finds the largest value in two passes. The first pass finds the maximum, and any value that is not finite. The
 * second pass finds the first index of the maximum. Lanes past the end repeat x[0]. */
int64_t fr_argmax_neon(const float *x, size_t n) {
    float32x4_t best = vdupq_n_f32(x[0]);
    uint32x4_t magnitude = vdupq_n_u32(0);
    for (size_t i = 0; i < n; i += 4) {
        float32x4_t values = load_lanes(x + i, n - i);
        if (n - i < 4) values = vbslq_f32(lanes_below(i, n), values, vdupq_n_f32(x[0]));
        magnitude = vmaxq_u32(magnitude, vreinterpretq_u32_f32(vabsq_f32(values)));
        best = vmaxq_f32(values, best);
    }
    if (vmaxvq_u32(magnitude) >= INFINITE) return -1;
    float32x4_t maximum = vdupq_n_f32(vmaxvq_f32(best));
    size_t i = 0;
    while (i + 4 <= n && vmaxvq_u32(vceqq_f32(vld1q_f32(x + i), maximum)) == 0) i += 4;
    while (x[i] != vgetq_lane_f32(maximum, 0)) i++;
    return (int64_t)i;
}
