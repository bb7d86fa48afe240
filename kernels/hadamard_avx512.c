/* Computes Walsh-Hadamard transforms of blocks of a row. The contract is fr_hadamard_fn in kernels.h, which defines the
 * stages h = 1, 2, 4, ...
 *
 * If the two values of a pair are less than 16 values apart, the stage is computed within a register: each value is
 * added to its partner or subtracted from it. Later stages are computed two at a time, so that each load and store
 * serves two stages. */
#include "kernels/simd_avx512.h"

#include <math.h>

/* Computes the stage in which the two values of a pair are `h` lanes apart. Callers pass a constant as `h`. */
FR_INLINE __m512 stage(__m512 v, size_t h) {
    __m512 other = h == 1   ? _mm512_permute_ps(v, 0xb1)
                   : h == 2 ? _mm512_permute_ps(v, 0x4e)
                   : h == 4 ? _mm512_shuffle_f32x4(v, v, 0xb1)
                            : _mm512_shuffle_f32x4(v, v, 0x4e);
    __mmask16 second = h == 1 ? 0xaaaa : h == 2 ? 0xcccc : h == 4 ? 0xf0f0 : 0xff00;
    return _mm512_mask_sub_ps(_mm512_add_ps(v, other), second, other, v);
}

/* Computes the stages in which the two values of a pair are in one register. */
FR_INLINE void stages_inside(float *y, const float *x, const float *signs, size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        __m512 v = _mm512_loadu_ps(x + i);
        if (signs) v = _mm512_mul_ps(v, _mm512_loadu_ps(signs + i));
        v = stage(stage(stage(stage(v, 1), 2), 4), 8);
        _mm512_storeu_ps(y + i, v);
    }
}

/* Computes the stage in which the two values of a pair are h apart, and the stage after it. */
FR_INLINE void two_stages(float *y, size_t h, size_t n) {
    for (size_t from = 0; from < n; from += 4 * h)
        for (float *at = y + from; at < y + from + h; at += 16) {
            __m512 a = _mm512_loadu_ps(at), b = _mm512_loadu_ps(at + h);
            __m512 c = _mm512_loadu_ps(at + 2 * h), d = _mm512_loadu_ps(at + 3 * h);
            __m512 ab = _mm512_add_ps(a, b), less_ab = _mm512_sub_ps(a, b);
            __m512 cd = _mm512_add_ps(c, d), less_cd = _mm512_sub_ps(c, d);
            _mm512_storeu_ps(at, _mm512_add_ps(ab, cd));
            _mm512_storeu_ps(at + h, _mm512_add_ps(less_ab, less_cd));
            _mm512_storeu_ps(at + 2 * h, _mm512_sub_ps(ab, cd));
            _mm512_storeu_ps(at + 3 * h, _mm512_sub_ps(less_ab, less_cd));
        }
}

FR_INLINE void one_stage(float *y, size_t h, size_t n) {
    for (size_t from = 0; from < n; from += 2 * h)
        for (float *at = y + from; at < y + from + h; at += 16) {
            __m512 a = _mm512_loadu_ps(at), b = _mm512_loadu_ps(at + h);
            _mm512_storeu_ps(at, _mm512_add_ps(a, b));
            _mm512_storeu_ps(at + h, _mm512_sub_ps(a, b));
        }
}

void fr_hadamard_avx512(float *y, const float *x, const float *signs, size_t block, size_t n) {
    if (block < 16) {
        fr_hadamard_scalar(y, x, signs, block, n);
        return;
    }
    __m512 factor = _mm512_set1_ps((float)(1.0 / sqrt((double)block)));
    size_t h = 16;
    stages_inside(y, x, signs, n);
    for (; 4 * h <= block; h *= 4) two_stages(y, h, n);
    if (h < block) one_stage(y, h, n);
    for (size_t i = 0; i < n; i += 16) _mm512_storeu_ps(y + i, _mm512_mul_ps(_mm512_loadu_ps(y + i), factor));
}
