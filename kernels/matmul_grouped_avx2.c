/* Multiplies tiles of grouped codes by quantized rows, with vpmaddubsw. The contract is fr_matmul_grouped_fn in
 * kernels.h. grouped_avx2.h has the walk, and matmul_block_avx2.c says how many products fit 16 bits.
 *
 * 128 is subtracted from codes of 8 bits, so that they are multiplied as signed numbers. 128 is subtracted from their
 * zero points too, so that code - zero stays the same. */
#include "kernels/grouped_avx2.h"

/* Adds pairs of 16-bit sums to 32-bit sums. */
FR_INLINE void widen(pair *isum, pair sums) {
    __m256i one = _mm256_set1_epi16(1);
    isum->half[0] = settled(_mm256_add_epi32(isum->half[0], _mm256_madd_epi16(sums.half[0], one)));
    isum->half[1] = settled(_mm256_add_epi32(isum->half[1], _mm256_madd_epi16(sums.half[1], one)));
}

/* Adds the products of a group's codes and activations to `sums`, in 16 bits. */
FR_INLINE void add_products(pair *sums, pair code, const fr_qblock *x, size_t group) {
    __m256i q = broadcast_group(x, group);
    FR_UNROLLED_FOR (size_t half = 0; half < 2; half++)
        sums->half[half] = settled(_mm256_add_epi16(sums->half[half], _mm256_maddubs_epi16(code.half[half], q)));
}

/* Adds the products of one group's signed codes and activations to isum. */
FR_INLINE void add_signed(pair *isum, pair code, const fr_qblock *x, size_t group) {
    __m256i q = broadcast_group(x, group), sign = _mm256_set1_epi8(-128);
    pair sums;
    FR_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
        __m256i value = _mm256_xor_si256(code.half[half], sign);
        sums.half[half] = _mm256_maddubs_epi16(_mm256_abs_epi8(value), _mm256_sign_epi8(q, value));
    }
    widen(isum, sums);
}

/* Multiplies a run. For codes of up to 4 bits, the products of the whole run are added in 16 bits. For codes of 5 or 6
 * bits, only the products of one step are added in 16 bits. */
FR_INLINE void dot(grouped_format f, chains *c, const grouped_run *w, size_t rows, unpack_fn *unpack, size_t apart) {
    pair isum[SHARING], sums[SHARING], first, second, zeros = {{_mm256_setzero_si256(), _mm256_setzero_si256()}};
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
        isum[r] = zeros_part(w, block_of(c, r));
        sums[r] = zeros;
    }
    FR_UNROLLED_FOR (size_t step = 0; step < STEPS; step++) {
        size_t group = group_of(step, apart);
        unpack(&first, &second, w->of.codes, step);
        FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
            if (f.bits == 8) {
                add_signed(&isum[r], first, block_of(c, r), group);
                add_signed(&isum[r], second, block_of(c, r), group + apart);
                continue;
            }
            add_products(&sums[r], first, block_of(c, r), group);
            add_products(&sums[r], second, block_of(c, r), group + apart);
            if (f.bits <= 4 && step + 1 < STEPS) continue;
            widen(&isum[r], sums[r]);
            sums[r] = zeros;
        }
    }
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) join_grouped(f, c, r, w, isum[r]);
}

/* Defines a kernel for codes of `width` bits. apart: the distance between the two groups of columns that a step
 * unpacks. */
#define FR_KERNELS_OF(width, apart, is_biased, name)                                                          \
    FR_INLINE void dot_##name##_##width(chains *c, const grouped_run *w, size_t rows) {                       \
        dot((grouped_format){.bits = width, .biased = is_biased}, c, w, rows, unpack_##width##_bits, apart);  \
    }                                                                                                         \
    void fr_matmul_##name##_##width##_avx2(const fr_matmul_grouped *job) {                                    \
        matmul_grouped((grouped_format){width, is_biased, width == 8 ? 128 : 0, dot_##name##_##width}, *job); \
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
