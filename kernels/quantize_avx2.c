/* Quantizes rows of activations to int8 in blocks of 32, with 8 values in a register. The contract is fr_quantize_fn
 * in kernels.h. */
#include "kernels/simd_avx2.h"

#include <math.h>

enum { BLOCK = 32, REGISTERS = BLOCK / 8 };

/* Returns the largest magnitude of a block, compared by bit pattern. */
FR_INLINE float largest(const __m256 *x) {
    __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    __m256i most = _mm256_setzero_si256();
    FR_UNROLLED_FOR (size_t i = 0; i < REGISTERS; i++)
        most = _mm256_max_epi32(most, _mm256_castps_si256(_mm256_and_ps(x[i], magnitude)));
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
    __m128i two = _mm_max_epi32(four, _mm_unpackhi_epi64(four, four));
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_max_epi32(two, _mm_shuffle_epi32(two, 1))));
}

FR_INLINE int32_t sum_of(__m256i values) {
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(values), _mm256_extracti128_si256(values, 1));
    __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 1)));
}

/* Quantizes a block. |x r| is at most 127 plus half a unit in the last place, so the rounded integers are in
 * -127..127. */
FR_INLINE void quantize_block(fr_qblock *block, const __m256 *x) {
    float m = largest(x);
    if (!(m < INFINITY)) {
        *block = (fr_qblock){.d = NAN, .dsum = NAN};
        return;
    }
    if (m < 0x1p-100f) {
        *block = (fr_qblock){.d = 0.0f};
        return;
    }
    __m256 r = _mm256_set1_ps(127.0f / m);
    __m256i q[REGISTERS];
    FR_UNROLLED_FOR (size_t i = 0; i < REGISTERS; i++) q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(x[i], r));
    __m256i half = _mm256_add_epi32(q[0], q[1]), sum = _mm256_add_epi32(half, _mm256_add_epi32(q[2], q[3]));
    /* Packing works within halves of 128 bits, so groups of four bytes come out in the order 0 2 4 6 1 3 5 7. */
    __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
    bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256((__m256i *)(void *)block->q, bytes);
    block->d = m / 127.0f;
    block->sum = sum_of(sum);
    block->half = sum_of(half);
    block->dsum = block->d * (float)block->sum;
}

void fr_quantize_avx2(fr_qblock *q, const float *x, size_t cols) {
    for (size_t from = 0; from < cols; from += BLOCK, q++) {
        __m256 values[REGISTERS];
        FR_UNROLLED_FOR (size_t i = 0; i < REGISTERS; i++) {
            size_t at = from + 8 * i;
            values[i] = at < cols ? load_lanes(x + at, cols - at) : _mm256_setzero_ps();
        }
        quantize_block(q, values);
    }
}
