/* Computes Walsh-Hadamard transforms of blocks of a row. The contract is fr_hadamard_fn in kernels.h, which defines the
 * stages h = 1, 2, 4, ...
 *
 * If the two values of a pair are less than 8 values apart, the stage is computed within a register: each value is
 * added to its partner or subtracted from it. Later stages are computed two at a time, so that each load and store
 * serves two stages. */
#include "kernels/simd_avx2.h"

#include <math.h>

/* Computes the stage in which the two values of a pair are `h` lanes apart. Callers pass a constant as `h`. */
FR_INLINE __m256 stage(__m256 v, size_t h) {
    __m256 other = h == 1   ? _mm256_permute_ps(v, 0xb1)
                   : h == 2 ? _mm256_permute_ps(v, 0x4e)
                            : _mm256_permute2f128_ps(v, v, 0x01);
    __m256 sum = _mm256_add_ps(v, other), difference = _mm256_sub_ps(other, v);
    return h == 1   ? _mm256_blend_ps(sum, difference, 0xaa)
           : h == 2 ? _mm256_blend_ps(sum, difference, 0xcc)
                    : _mm256_blend_ps(sum, difference, 0xf0);
}

/* Computes the stages in which the two values of a pair are in one register. */
FR_INLINE void stages_inside(float *y, const float *x, const float *signs, size_t n) {
    for (size_t i = 0; i < n; i += 8) {
        __m256 v = _mm256_loadu_ps(x + i);
        if (signs) v = _mm256_mul_ps(v, _mm256_loadu_ps(signs + i));
        v = stage(stage(stage(v, 1), 2), 4);
        _mm256_storeu_ps(y + i, v);
    }
}

/* Computes two stages: the one in which the two values of a pair are h apart, and the one after it, in which they are 2
 * h apart. */
FR_INLINE void two_stages(float *y, size_t h, size_t n) {
    for (size_t from = 0; from < n; from += 4 * h)
        for (float *at = y + from; at < y + from + h; at += 8) {
            __m256 a = _mm256_loadu_ps(at), b = _mm256_loadu_ps(at + h);
            __m256 c = _mm256_loadu_ps(at + 2 * h), d = _mm256_loadu_ps(at + 3 * h);
            __m256 ab = _mm256_add_ps(a, b), less_ab = _mm256_sub_ps(a, b);
            __m256 cd = _mm256_add_ps(c, d), less_cd = _mm256_sub_ps(c, d);
            _mm256_storeu_ps(at, _mm256_add_ps(ab, cd));
            _mm256_storeu_ps(at + h, _mm256_add_ps(less_ab, less_cd));
            _mm256_storeu_ps(at + 2 * h, _mm256_sub_ps(ab, cd));
            _mm256_storeu_ps(at + 3 * h, _mm256_sub_ps(less_ab, less_cd));
        }
}

FR_INLINE void one_stage(float *y, size_t h, size_t n) {
    for (size_t from = 0; from < n; from += 2 * h)
        for (float *at = y + from; at < y + from + h; at += 8) {
            __m256 a = _mm256_loadu_ps(at), b = _mm256_loadu_ps(at + h);
            _mm256_storeu_ps(at, _mm256_add_ps(a, b));
            _mm256_storeu_ps(at + h, _mm256_sub_ps(a, b));
        }
}

void fr_hadamard_avx2(float *y, const float *x, const float *signs, size_t block, size_t n) {
    if (block < 8) {
        fr_hadamard_scalar(y, x, signs, block, n);
        return;
    }
    __m256 factor = _mm256_set1_ps((float)(1.0 / sqrt((double)block)));
    size_t h = 8;
    stages_inside(y, x, signs, n);
    for (; 4 * h <= block; h *= 4) two_stages(y, h, n);
    if (h < block) one_stage(y, h, n);
    for (size_t i = 0; i < n; i += 8) _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_loadu_ps(y + i), factor));
}
