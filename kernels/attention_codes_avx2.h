/* Computes attention's scores of keys that are codes on registers of 8 floats: the code that avx2 and avxvnni share,
 * which is everything but the product of four codes.
 *
 * In: rows of keys, quantized queries (attention.h). Out: scores. A register has four codes of each of 8 positions, so
 * that the positions' sums are side by side and no sum is added up across lanes. */
#ifndef FR_KERNELS_ATTENTION_CODES_AVX2_H
#define FR_KERNELS_ATTENTION_CODES_AVX2_H

#include "kernels/attention.h"
#include "kernels/simd_avx2.h"

#include <string.h>

enum { CODES_TOGETHER = 3 /* queries whose sums are in registers together */ };

/* The steps of avx2. avxvnni replaces the step that multiplies codes. */
extern const fr_attn_steps fr_attn_steps_avx2;

/* Adds to each lane of `sums` the product of four codes of a key and four columns of a query. The codes are given as
 * magnitudes, and the columns have the codes' signs, because vpmaddubsw and vpdpbusd need one operand without signs. */
typedef __m256i multiply_codes_fn(__m256i sums, __m256i magnitudes, __m256i columns);

/* Exchanges rows and columns of 8 registers of 8 numbers of 32 bits. */
FR_INLINE void transpose_eights(__m256i r[8]) {
    __m256i t[8];
    FR_UNROLLED_FOR (size_t i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_epi32(r[i], r[i + 1]);
    }
    FR_UNROLLED_FOR (size_t i = 0; i < 8; i += 4)
        FR_UNROLLED_FOR (size_t j = 0; j < 2; j++) {
            r[i + 2 * j] = _mm256_unpacklo_epi64(t[i + j], t[i + j + 2]);
            r[i + 2 * j + 1] = _mm256_unpackhi_epi64(t[i + j], t[i + j + 2]);
        }
    FR_UNROLLED_FOR (size_t i = 0; i < 4; i++) {
        t[i] = _mm256_permute2x128_si256(r[i], r[i + 4], 0x20);
        t[i + 4] = _mm256_permute2x128_si256(r[i], r[i + 4], 0x31);
    }
    FR_UNROLLED_FOR (size_t i = 0; i < 8; i++) r[i] = t[i];
}

/* Computes the scores of `count` queries with half of the tile's positions, from lane `from` on. Callers pass a
 * constant as `count`. */
FR_INLINE void scores_of_half(multiply_codes_fn *multiply, fr_attn_state *states, size_t count,
                              const fr_attn_codes *tile, size_t from, int32_t first, size_t head_dim, float scale) {
    __m256 acc[CODES_TOGETHER];
    FR_UNROLLED_FOR (size_t j = 0; j < count; j++) acc[j] = _mm256_setzero_ps();
    for (size_t b = 0; b < head_dim / 32; b++) {
        __m256 d = _mm256_load_ps(tile[b].d + from);
        __m256i sums[CODES_TOGETHER];
        FR_UNROLLED_FOR (size_t j = 0; j < count; j++) sums[j] = _mm256_setzero_si256();
        FR_UNROLLED_FOR (size_t c = 0; c < 8; c++) {
            __m256i keys = _mm256_load_si256((const void *)tile[b].codes[c][from]), magnitudes = _mm256_abs_epi8(keys);
            FR_UNROLLED_FOR (size_t j = 0; j < count; j++) {
                int32_t columns;
                memcpy(&columns, states[j].codes[b].q + 4 * c, sizeof columns);
                sums[j] = multiply(sums[j], magnitudes, _mm256_sign_epi8(_mm256_set1_epi32(columns), keys));
            }
        }
        FR_UNROLLED_FOR (size_t j = 0; j < count; j++) {
            __m256 factor = _mm256_mul_ps(d, _mm256_set1_ps(states[j].codes[b].d));
            acc[j] = _mm256_fmadd_ps(factor, _mm256_cvtepi32_ps(sums[j]), acc[j]);
        }
    }
    FR_UNROLLED_FOR (size_t j = 0; j < count; j++)
        _mm256_storeu_ps(states[j].weights + first + from, _mm256_mul_ps(acc[j], _mm256_set1_ps(scale)));
}

FR_INLINE void scores_of_few(multiply_codes_fn *multiply, fr_attn_state *states, size_t count,
                             const fr_attn_codes *tile, int32_t first, size_t head_dim, float scale) {
    scores_of_half(multiply, states, count, tile, 0, first, head_dim, scale);
    scores_of_half(multiply, states, count, tile, 8, first, head_dim, scale);
}

/* Computes the scores of all queries, CODES_TOGETHER at a time. */
FR_INLINE void scores_of_codes_of(multiply_codes_fn *multiply, fr_attn_state *states, size_t count,
                                  const fr_attn_codes *tile, int32_t first, size_t head_dim, float scale,
                                  fr_attn_ahead ahead) {
    size_t lines = (size_t)(ahead.end - ahead.at) / 64 / (count / CODES_TOGETHER + 1) + 1;
    for (; count >= CODES_TOGETHER; states += CODES_TOGETHER, count -= CODES_TOGETHER) {
        fr_attn_ask(&ahead, lines);
        scores_of_few(multiply, states, CODES_TOGETHER, tile, first, head_dim, scale);
    }
    fr_attn_ask(&ahead, SIZE_MAX);
    switch (count) {
    case 1: scores_of_few(multiply, states, 1, tile, first, head_dim, scale); break;
    case 2: scores_of_few(multiply, states, 2, tile, first, head_dim, scale); break;
    }
}

#endif
