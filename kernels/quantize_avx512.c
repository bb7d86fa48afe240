/* Rows of activations to int8 in blocks of 32. Contract fr_quantize_fn in kernels.h.
 *
 * A block is two registers. Its largest magnitude ends up in every lane, its two divisions are lanes of one, and its
 * sums come from vpsadbw over the bytes plus 128. Blocks don't depend on each other: their long chains overlap. */
#include "kernels/simd_avx512.h"

enum { BLOCK = 32, HALF = BLOCK / 2 };

/* In every lane the largest |x| of both registers, by bit pattern. */
FR_INLINE __m512i largest(__m512 a, __m512 b) {
    __m512i all = _mm512_set1_epi32(0x7fffffff);
    __m512i m = _mm512_max_epu32(_mm512_and_si512(_mm512_castps_si512(a), all),
                                 _mm512_and_si512(_mm512_castps_si512(b), all));
    m = _mm512_max_epu32(m, _mm512_shuffle_i64x2(m, m, 0x4e));
    m = _mm512_max_epu32(m, _mm512_shuffle_i64x2(m, m, 0xb1));
    m = _mm512_max_epu32(m, _mm512_shuffle_epi32(m, 0x4e));
    return _mm512_max_epu32(m, _mm512_shuffle_epi32(m, 0xb1));
}

/* clamp(rint(x * r), -127, 127) of 16 values as bytes. */
FR_INLINE __m128i rounded(__m512 x, __m512 r) {
    __m512i q = _mm512_cvtps_epi32(_mm512_mul_ps(x, r)), most = _mm512_set1_epi32(127);
    q = _mm512_max_epi32(_mm512_min_epi32(q, most), _mm512_sub_epi32(_mm512_setzero_si512(), most));
    return _mm512_cvtepi32_epi8(q);
}

FR_INLINE void quantize_block(fr_qblock *block, __m512 a, __m512 b) {
    __m512i bits = largest(a, b);
    uint32_t highest = (uint32_t)_mm_cvtsi128_si32(_mm512_castsi512_si128(bits));
    if (highest - 0x0d800000u >= 0x7f800000u - 0x0d800000u) { /* below 2^-100, or not finite */
        *block = (fr_qblock){.d = 0.0f};
        if (highest >= 0x7f800000u) block->d = block->dsum = __builtin_nanf("");
        return;
    }
    __m128 m = _mm_castsi128_ps(_mm512_castsi512_si128(bits)), most = _mm_set1_ps(127.0f);
    __m128 d_r = _mm_div_ps(_mm_unpacklo_ps(m, most), _mm_unpacklo_ps(most, m));
    __m512 r = _mm512_broadcastss_ps(_mm_movehdup_ps(d_r));
    __m256i q = _mm256_set_m128i(rounded(b, r), rounded(a, r));
    __m256i four = _mm256_sad_epu8(_mm256_xor_si256(q, _mm256_set1_epi8(-128)), _mm256_setzero_si256());
    __m256i two = _mm256_add_epi32(four, _mm256_shuffle_epi32(four, 0x4e));
    int32_t low = _mm_cvtsi128_si32(_mm256_castsi256_si128(two)) - HALF * 128;
    int32_t high = _mm_cvtsi128_si32(_mm256_extracti128_si256(two, 1)) - HALF * 128;
    _mm256_storeu_si256((__m256i *)block->q, q);
    block->d = _mm_cvtss_f32(d_r);
    block->dsum = block->d * (float)(low + high);
    block->sum = low + high;
    block->half = low;
}

void fr_quantize_avx512(fr_qblock *q, const float *x, size_t cols) {
    size_t i = 0;
    for (; i + BLOCK <= cols; i += BLOCK) quantize_block(q++, _mm512_loadu_ps(x + i), _mm512_loadu_ps(x + i + HALF));
    if (i < cols) {
        size_t left = cols - i;
        __m512 b = left > HALF ? load_lanes(x + i + HALF, lanes(left - HALF)) : _mm512_setzero_ps();
        quantize_block(q, load_lanes(x + i, lanes(left)), b);
    }
}
