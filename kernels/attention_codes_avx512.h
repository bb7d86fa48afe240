/* Computes attention's scores of keys that are codes on registers of 16 floats: the code that avx512 and avx512vnni
 * share, which is everything but the product of four codes.
 *
 * In: rows of keys, quantized queries (attention.h). Out: scores. A register has four codes of each of 16 positions, so
 * that the positions' sums are side by side and no sum is added up across lanes. */
#ifndef FR_KERNELS_ATTENTION_CODES_AVX512_H
#define FR_KERNELS_ATTENTION_CODES_AVX512_H

#include "kernels/attention.h"
#include "kernels/cached_codes_x86.h"
#include "kernels/simd_avx512.h"

#include <string.h>

enum { CODES_TOGETHER = 8 /* queries whose sums are in registers together */ };

/* The steps of avx512. avx512vnni replaces the steps that read codes. */
extern const fr_attn_steps fr_attn_steps_avx512;

/* Adds to each lane of `sums` the product of the lane's four codes in `keys`, in the form in which the tile stores
 * them, and the lane's four codes in `columns`. */
typedef __m512i multiply_codes_fn(__m512i sums, __m512i keys, __m512i columns);

/* Exchanges rows and columns of the 8 x 8 numbers of 32 bits in each half of 8 registers. */
FR_INLINE void transpose_eights(__m512i r[8]) {
    __m512i t[8];
    FR_UNROLLED_FOR (size_t i = 0; i < 8; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    FR_UNROLLED_FOR (size_t i = 0; i < 8; i += 4)
        FR_UNROLLED_FOR (size_t j = 0; j < 2; j++) {
            r[i + 2 * j] = _mm512_unpacklo_epi64(t[i + j], t[i + j + 2]);
            r[i + 2 * j + 1] = _mm512_unpackhi_epi64(t[i + j], t[i + j + 2]);
        }
    __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13), high = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
    FR_UNROLLED_FOR (size_t i = 0; i < 4; i++) {
        t[i] = _mm512_permutex2var_epi64(r[i], low, r[i + 4]);
        t[i + 4] = _mm512_permutex2var_epi64(r[i], high, r[i + 4]);
    }
    FR_UNROLLED_FOR (size_t i = 0; i < 8; i++) r[i] = t[i];
}

/* Transposes the rows of FR_ATTN_CODES positions. `bytes`: bytes of a block; `flip`: the bits that are flipped in each
 * code. */
FR_INLINE void transpose_blocks(codes_fn *codes, size_t bytes, fr_attn_codes *tile, const void *const *rows,
                                size_t head_dim, __m512i flip) {
    for (size_t at = 0; at < head_dim / 32 * bytes; at += bytes, tile++) {
        uint16_t d[FR_ATTN_CODES];
        __m512i r[8];
        FR_UNROLLED_FOR (size_t i = 0; i < FR_ATTN_CODES; i++) memcpy(&d[i], (const uint8_t *)rows[i] + at, sizeof *d);
        FR_UNROLLED_FOR (size_t i = 0; i < 8; i++) {
            __m256i first = codes((const uint8_t *)rows[i] + at), second = codes((const uint8_t *)rows[i + 8] + at);
            r[i] = _mm512_xor_si512(_mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1), flip);
        }
        transpose_eights(r);
        FR_UNROLLED_FOR (size_t i = 0; i < 8; i++) _mm512_store_si512(tile->codes[i], r[i]);
        _mm512_store_ps(tile->d, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)d)));
    }
}

FR_INLINE void transpose_codes_of(fr_attn_codes *tile, fr_dtype type, const void *const *rows, size_t head_dim,
                                  __m512i flip) {
    switch ((unsigned)type) {
    case FR_Q8_0: transpose_blocks(q8_0_codes, 34, tile, rows, head_dim, flip); break;
    case FR_Q4_0: transpose_blocks(q4_0_codes, 18, tile, rows, head_dim, flip); break;
    case FR_TURBO4: transpose_blocks(turbo4_codes, 18, tile, rows, head_dim, flip); break;
    case FR_TURBO3: transpose_blocks(turbo3_codes, 14, tile, rows, head_dim, flip); break;
    }
}

/* Computes the scores of `count` queries. Callers pass a constant as `count`. `bias` is the number that was added to
 * each code of the tile. */
FR_INLINE void scores_of_few(multiply_codes_fn *multiply, int32_t bias, fr_attn_state *states, size_t count,
                             const fr_attn_codes *tile, int32_t first, size_t head_dim, float scale) {
    __m512 acc[CODES_TOGETHER];
    FR_UNROLLED_FOR (size_t j = 0; j < count; j++) acc[j] = _mm512_setzero_ps();
    for (size_t b = 0; b < head_dim / 32; b++) {
        __m512 d = _mm512_load_ps(tile[b].d);
        __m512i sums[CODES_TOGETHER];
        FR_UNROLLED_FOR (size_t j = 0; j < count; j++) sums[j] = _mm512_set1_epi32(-bias * states[j].codes[b].sum);
        FR_UNROLLED_FOR (size_t c = 0; c < 8; c++) {
            __m512i keys = _mm512_load_si512(tile[b].codes[c]);
            FR_UNROLLED_FOR (size_t j = 0; j < count; j++) {
                int32_t columns;
                memcpy(&columns, states[j].codes[b].q + 4 * c, sizeof columns);
                sums[j] = multiply(sums[j], keys, _mm512_set1_epi32(columns));
            }
        }
        FR_UNROLLED_FOR (size_t j = 0; j < count; j++) {
            __m512 factor = _mm512_mul_ps(d, _mm512_set1_ps(states[j].codes[b].d));
            acc[j] = _mm512_fmadd_ps(factor, _mm512_cvtepi32_ps(sums[j]), acc[j]);
        }
    }
    FR_UNROLLED_FOR (size_t j = 0; j < count; j++)
        _mm512_storeu_ps(states[j].weights + first, _mm512_mul_ps(acc[j], _mm512_set1_ps(scale)));
}

/* Computes the scores of all queries, CODES_TOGETHER at a time. */
FR_INLINE void scores_of_codes_of(multiply_codes_fn *multiply, int32_t bias, fr_attn_state *states, size_t count,
                                  const fr_attn_codes *tile, int32_t first, size_t head_dim, float scale,
                                  fr_attn_ahead ahead) {
    size_t lines = (size_t)(ahead.end - ahead.at) / 64 / (count / CODES_TOGETHER + 1) + 1;
    for (; count >= CODES_TOGETHER; states += CODES_TOGETHER, count -= CODES_TOGETHER) {
        fr_attn_ask(&ahead, lines);
        scores_of_few(multiply, bias, states, CODES_TOGETHER, tile, first, head_dim, scale);
    }
    fr_attn_ask(&ahead, SIZE_MAX);
    switch (count) {
    case 1: scores_of_few(multiply, bias, states, 1, tile, first, head_dim, scale); break;
    case 2: scores_of_few(multiply, bias, states, 2, tile, first, head_dim, scale); break;
    case 3: scores_of_few(multiply, bias, states, 3, tile, first, head_dim, scale); break;
    case 4: scores_of_few(multiply, bias, states, 4, tile, first, head_dim, scale); break;
    case 5: scores_of_few(multiply, bias, states, 5, tile, first, head_dim, scale); break;
    case 6: scores_of_few(multiply, bias, states, 6, tile, first, head_dim, scale); break;
    case 7: scores_of_few(multiply, bias, states, 7, tile, first, head_dim, scale); break;
    }
}

#endif
