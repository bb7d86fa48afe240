/* Defines the dot product by vpmaddubsw, and the macro that defines the kernel of a block type with it. block_avx512.h
 * has the walk. The kernels are divided into files matmul_block_GROUP_avx512.c, so that no file takes long to compile.
 *
 * vpmaddubsw adds two products into 16 bits and saturates. So only as many groups of columns are summed in 16 bits as
 * cannot overflow: 8 groups of codes of up to 4 bits (8 * 2 * 15 * 127 = 30480), 4 groups of 5 bits (31496), 2 groups
 * of 6 bits (32004), 1 group of values up to 86. An 8-bit code is split into two 4-bit codes, and the sums of the high
 * halves are multiplied by 16. At most 4 groups of split codes are summed at once, so that their registers can be kept
 * for all rows (Zen 4, weights in L2: 2 rows are 1.33 times and 8 rows 1.56 times as fast as with 8 groups). */
#ifndef FR_KERNELS_DOT_AVX512_H
#define FR_KERNELS_DOT_AVX512_H

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

/* Defines the kernel of a type: its walks, and a function that calls matmul_block with them. */
#define FR_MATMUL_BLOCK(id, name, ...)                           \
    FR_WALKS(name, &name, &by_bytes)                             \
    void fr_matmul_##name##_avx512(const fr_matmul_block *job) { \
        matmul_block(&name, name##_walks, job);                  \
    }

/* Defines the kernel of a format of grouped codes, such as grouped_4 or biased_4. */
#define FR_MATMUL_GROUPED(name)                                    \
    FR_WALKS(name, &name, &by_bytes)                               \
    void fr_matmul_##name##_avx512(const fr_matmul_grouped *job) { \
        matmul_grouped(&name, &name, name##_walks, job);           \
    }

#endif
