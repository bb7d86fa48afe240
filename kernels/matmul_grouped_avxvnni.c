/* Multiplies tiles of grouped codes by quantized rows, with vpdpbusd. The contract is fr_matmul_grouped_fn in
 * kernels.h; grouped_avx2.h has the walk. */
#include "kernels/grouped_avx2.h"

FR_INLINE void add_products(pair *isum, pair code, const fr_qblock *x, size_t group) {
    __m256i q = broadcast_group(x, group);
    isum->half[0] = _mm256_dpbusd_avx_epi32(isum->half[0], code.half[0], q);
    isum->half[1] = _mm256_dpbusd_avx_epi32(isum->half[1], code.half[1], q);
}

FR_INLINE void dot(grouped_format f, chains *c, const grouped_run *w, size_t rows, unpack_fn *unpack, size_t apart) {
    pair isum[SHARING], first, second;
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) isum[r] = zeros_part(w, block_of(c, r));
    FR_UNROLLED_FOR (size_t step = 0; step < STEPS; step++) {
        size_t group = group_of(step, apart);
        unpack(&first, &second, w->of.codes, step);
        FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
            add_products(&isum[r], first, block_of(c, r), group);
            add_products(&isum[r], second, block_of(c, r), group + apart);
        }
    }
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) join_grouped(f, c, r, w, isum[r]);
}

/* Defines a kernel for codes of `width` bits. apart: the distance between the two groups of columns that a step
 * unpacks. */
#define FR_KERNELS_OF(width, apart, is_biased, name)                                                         \
    FR_INLINE void dot_##name##_##width(chains *c, const grouped_run *w, size_t rows) {                      \
        dot((grouped_format){.bits = width, .biased = is_biased}, c, w, rows, unpack_##width##_bits, apart); \
    }                                                                                                        \
    void fr_matmul_##name##_##width##_avxvnni(const fr_matmul_grouped *job) {                                \
        matmul_grouped((grouped_format){width, is_biased, 0, dot_##name##_##width}, *job);                   \
    }

FR_KERNELS_OF(2, 1, false, grouped)
FR_KERNELS_OF(3, 1, false, grouped)
FR_KERNELS_OF(4, 4, false, grouped)
FR_KERNELS_OF(5, 4, false, grouped)
FR_KERNELS_OF(6, 1, false, grouped)
FR_KERNELS_OF(8, 1, false, grouped)
FR_KERNELS_OF(2, 1, true, biased)
FR_KERNELS_OF(3, 1, true, biased)
FR_KERNELS_OF(4, 4, true, biased)
FR_KERNELS_OF(5, 4, true, biased)
FR_KERNELS_OF(6, 1, true, biased)
FR_KERNELS_OF(8, 1, true, biased)
