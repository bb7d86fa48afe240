/* Packed block-quantized weights times quantized rows by vpmaddubsw. Contract fr_matmul_block_fn in kernels.h; how:
 * block_avx512.h.
 *
 * vpmaddubsw adds two products to 16 bits and saturates, so no more groups are summed there than provably fit: 8 of
 * up to 4 bits: 8 * 2 * 15 * 127 = 30480; 4 of 5 bits: 31496; 2 of 6 bits: 32004; 1 of up to 86. Codes of 8 bits are
 * taken as two of 4: the high ones' sums count 16 times. No more than 4 groups of them are summed at once, so that what
 * a register of codes is split into serves all rows from registers (Zen 4, from L2: 2 rows 1.33, 8 rows 1.56 times as
 * fast as with 8). */
#include "kernels/block_avx512.h"
#include "quant/block_types.h"

FR_INLINE __m512i dot(__m512i sum, const __m512i *codes, const int8_t *q, size_t groups, unsigned bits, bool shared) {
    (void)shared;
    __m512i low = _mm512_setzero_si512(), high = low;
    FR_UNROLLED_FOR (size_t g = 0; g < groups; g++) {
        __m512i x = spread(q + 4 * g);
        low = _mm512_add_epi16(low, _mm512_maddubs_epi16(bits == 8 ? low_nibbles(codes[g]) : codes[g], x));
        if (bits == 8) high = _mm512_add_epi16(high, _mm512_maddubs_epi16(high_nibbles(codes[g]), x));
    }
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(low, _mm512_set1_epi16(1)));
    return bits == 8 ? _mm512_add_epi32(sum, _mm512_madd_epi16(high, _mm512_set1_epi16(16))) : sum;
}

static const products by_bytes = {dot, {[2] = 8, [3] = 8, [4] = 8, [5] = 4, [6] = 2, [7] = 1, [8] = 4}};

/* One kernel a type: a function of the contract that hands its format on. */
#define FR_MATMUL_BLOCK(id, name, ...)                           \
    void fr_matmul_##name##_avx512(const fr_matmul_block *job) { \
        matmul_block(&name, &by_bytes, job);                     \
    }

FR_TILE_TYPES(FR_MATMUL_BLOCK)
