/* Looks up the codes of turbo4 and turbo3 (quant/turbo.h) with byte shuffles.
 *
 * In: a block. Out: table entries as signed bytes, in the order of their values. */
#ifndef FR_KERNELS_TURBO_X86_H
#define FR_KERNELS_TURBO_X86_H

#include "kernels/compiler.h"
#include "quant/turbo.h"

#include <immintrin.h>

/* Returns the entries of the table for all values of a block. */
FR_INLINE __m256i turbo4_entries(const uint8_t *block) {
    const __m256i table = _mm256_broadcastsi128_si256(_mm_setr_epi8(FR_TURBO4_TABLE));
    __m128i bytes = _mm_loadu_si128((const void *)(block + 2));
    __m256i codes = _mm256_inserti128_si256(_mm256_castsi128_si256(bytes), _mm_srli_epi16(bytes, 4), 1);
    return _mm256_shuffle_epi8(table, _mm256_and_si256(codes, _mm256_set1_epi8(15)));
}

FR_INLINE __m256i turbo3_entries(const uint8_t *block) {
    const __m256i table = _mm256_broadcastsi128_si256(_mm_setr_epi8(FR_TURBO3_TABLE, FR_TURBO3_TABLE));
    const __m256i bits = _mm256_set1_epi64x((long long)0x8040201008040201);
    const __m256i spread = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    int64_t lows;
    int32_t highs;
    memcpy(&lows, block + 2, sizeof lows);
    memcpy(&highs, block + 10, sizeof highs);
    __m256i low = _mm256_srlv_epi64(_mm256_set1_epi64x(lows), _mm256_setr_epi64x(0, 2, 4, 6));
    __m256i high = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(highs), spread), bits);
    high = _mm256_and_si256(_mm256_cmpeq_epi8(high, bits), _mm256_set1_epi8(4));
    return _mm256_shuffle_epi8(table, _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi8(3)), high));
}

/* Returns the entries of the table for values `half` * 16 to `half` * 16 + 15 of a block of turbo4. */
FR_INLINE __m128i turbo4_half(const uint8_t *block, size_t half) {
    const __m128i table = _mm_setr_epi8(FR_TURBO4_TABLE);
    __m128i bytes = _mm_loadu_si128((const void *)(block + 2));
    if (half) bytes = _mm_srli_epi16(bytes, 4);
    return _mm_shuffle_epi8(table, _mm_and_si128(bytes, _mm_set1_epi8(15)));
}

/* Returns the entries of the table for values `half` * 16 to `half` * 16 + 15 of a block of turbo3. */
FR_INLINE __m128i turbo3_half(const uint8_t *block, size_t half) {
    const __m128i table = _mm_setr_epi8(FR_TURBO3_TABLE, FR_TURBO3_TABLE);
    const __m128i spread = _mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    const __m128i bits = _mm_setr_epi8(1, 2, 4, 8, 16, 32, 64, -128, 1, 2, 4, 8, 16, 32, 64, -128);
    uint16_t highs;
    memcpy(&highs, block + 10 + 2 * half, sizeof highs);
    __m128i bytes = _mm_loadl_epi64((const void *)(block + 2));
    if (half) bytes = _mm_srli_epi16(bytes, 4);
    __m128i low = _mm_and_si128(_mm_unpacklo_epi64(bytes, _mm_srli_epi16(bytes, 2)), _mm_set1_epi8(3));
    __m128i high = _mm_and_si128(_mm_shuffle_epi8(_mm_cvtsi32_si128(highs), spread), bits);
    high = _mm_and_si128(_mm_cmpeq_epi8(high, bits), _mm_set1_epi8(4));
    return _mm_shuffle_epi8(table, _mm_or_si128(low, high));
}

#endif
