/* Defines the dot product by vpdpbusd, and the macro that defines the kernel of a block type with it. block_avx512.h
 * has the walk. The kernels are divided into files matmul_block_GROUP_avx512vnni.c, so that no file takes long to
 * compile. */
#ifndef FR_KERNELS_DOT_AVX512VNNI_H
#define FR_KERNELS_DOT_AVX512VNNI_H

#include "kernels/block_avx512.h"
#include "quant/block_types.h"

/* Multiplies four activations with the four codes of every lane. If the activations are used only once, the instruction
 * itself reads and broadcasts them, which halves the number of instructions. This form needs inline assembly, because
 * the compiler uses it only for products of floats. (Zen 4, Q6_K from memory: 8 rows are 1.09 to 1.12 times as
 * fast.) */
FR_INLINE __m512i add_products(__m512i sum, __m512i codes, const int8_t *q, bool shared) {
    const int8_t(*four)[4] = (const int8_t(*)[4])q;
    if (shared) return _mm512_dpbusd_epi32(sum, codes, spread(q));
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(codes), "m"(*four));
    return sum;
}

FR_INLINE __m512i dot(__m512i sum, const __m512i *codes, const int8_t *q, size_t groups, unsigned bits, bool shared) {
    (void)bits;
    FR_UNROLLED_FOR (size_t g = 0; g < groups; g++) sum = add_products(sum, codes[g], q + 4 * g, shared);
    return sum;
}

static const products vnni = {dot, {[2] = 1, [3] = 1, [4] = 1, [5] = 1, [6] = 1, [7] = 1, [8] = 1}};

/* Defines the kernel of a type: its walks, and a function that calls matmul_block with them. */
#define FR_MATMUL_BLOCK(id, name, ...)                               \
    FR_WALKS(name, &name, &vnni)                                     \
    void fr_matmul_##name##_avx512vnni(const fr_matmul_block *job) { \
        matmul_block(&name, name##_walks, job);                      \
    }

/* Defines the kernel of a format of grouped codes, such as grouped_4 or biased_4. many: the address of the format that
 * is used with more than FEW rows. */
#define FR_MATMUL_GROUPED(name, many)                                  \
    FR_WALKS(name, many, &vnni)                                        \
    void fr_matmul_##name##_avx512vnni(const fr_matmul_grouped *job) { \
        matmul_grouped(&name, many, name##_walks, job);                \
    }

#endif
