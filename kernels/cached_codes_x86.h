/* Reads the codes of cached keys and values, which are blocks of 32 (quant/block_types.h, quant/turbo.h). The codes of
 * turbo4 and turbo3 are looked up with byte shuffles.
 *
 * In: a block. Out: signed bytes in the order of the block's values. Each value is the block's scale times its byte. */
#ifndef FR_KERNELS_CACHED_CODES_X86_H
#define FR_KERNELS_CACHED_CODES_X86_H

#include "kernels/compiler.h"
#include "quant/turbo.h"

#include <immintrin.h>
#include <string.h>

/* Returns the 32 codes of a block. */
typedef __m256i codes_fn(const uint8_t *block);

FR_INLINE __m256i q8_0_codes(const uint8_t *block) {
    return _mm256_loadu_si256((const void *)(block + 2));
}

/* Returns the codes of four bits as bytes. Byte i of the block has the code of value i in its low half, and the code of
 * value i + 16 in its high half. */
FR_INLINE __m256i four_bits(const uint8_t *block) {
    __m128i bytes = _mm_loadu_si128((const void *)(block + 2));
    __m256i codes = _mm256_inserti128_si256(_mm256_castsi128_si256(bytes), _mm_srli_epi16(bytes, 4), 1);
    return _mm256_and_si256(codes, _mm256_set1_epi8(15));
}

FR_INLINE __m256i q4_0_codes(const uint8_t *block) {
    return _mm256_sub_epi8(four_bits(block), _mm256_set1_epi8(8));
}

FR_INLINE __m256i turbo4_codes(const uint8_t *block) {
    const __m256i table = _mm256_broadcastsi128_si256(_mm_setr_epi8(FR_TURBO4_TABLE));
    return _mm256_shuffle_epi8(table, four_bits(block));
}

FR_INLINE __m256i turbo3_codes(const uint8_t *block) {
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

#endif
