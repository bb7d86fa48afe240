/* Multiplies packed weights by quantized rows without VNNI: products are added in 16 bits, and no sum overflows. The
 * contract is fr_matmul_block_fn in kernels.h; the walk is in block_avx2.h.
 *
 * vpmaddubsw multiplies unsigned bytes with signed bytes and adds two products into 16 bits, saturating. Activations
 * are in -127..127. So a sum of two products never saturates if weights are at most 129. n such sums added together fit
 * 16 bits if weights are at most 129 / n: 8 sums of codes up to 15 (30480), 4 of codes up to 31 (31496), 2 of codes up
 * to 63 (32004). For a signed 8-bit weight w, the activation gets the sign of w and is multiplied with |w|. */
#include "kernels/block_avx2.h"
#include "quant/block_types.h"

/* These offsets are added to the values of a table, so that no value is negative. A value of 0 then is the offset
 * itself. NVFP4 has MXFP4's table. */
enum { MXFP4_OFFSET = 12, IQ1_OFFSET = 9, IQ2_OFFSET = 43, IQ3_XXS_OFFSET = 31, IQ3_S_OFFSET = 15 };

/* Adds 16-bit sums to the 32-bit sums isum. Each 16-bit sum is first multiplied by the 16-bit number in its lane of
 * `factor`. */
FR_INLINE void widen(__m256i *isum, __m256i sums, __m256i factor) {
    *isum = settled(_mm256_add_epi32(*isum, _mm256_madd_epi16(sums, factor)));
}

FR_INLINE pair zeros(void) {
    return (pair){{_mm256_setzero_si256(), _mm256_setzero_si256()}};
}

/* Adds the products of a group's codes and activations to `sums`, in 16 bits. */
FR_INLINE void add_products(pair *sums, pair code, const fr_qblock *x, size_t group) {
    __m256i q = broadcast_group(x, group);
    FR_UNROLLED_FOR (size_t half = 0; half < 2; half++)
        sums->half[half] = settled(_mm256_add_epi16(sums->half[half], _mm256_maddubs_epi16(code.half[half], q)));
}

/* Multiplies stored codes of at most 15; the value of a code is code - offset. The products of a run are added in 16
 * bits. Then -offset times the sum of q is added. The sum of q fits the low 16 bits of its lane, so the factor for the
 * high 16 bits is 0. */
FR_INLINE void dot_small(chains *c, const run *w, size_t rows, unpack_fn *unpack, size_t apart, int offset,
                         join_fn *joins) {
    __m256i one = _mm256_set1_epi16(1);
    pair sums[SHARING], first, second;
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) sums[r] = zeros();
    FR_UNROLLED_FOR (size_t step = 0; step < STEPS; step++) {
        size_t group = group_of(step, apart);
        unpack_step(unpack, &first, &second, w, step);
        FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
            add_products(&sums[r], first, block_of(c, r), group);
            add_products(&sums[r], second, block_of(c, r), group + apart);
        }
    }
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
        pair isum = zeros();
        if (offset) {
            __m256i sum = _mm256_set1_epi32(block_of(c, r)->sum);
            isum.half[0] = isum.half[1] = _mm256_madd_epi16(sum, _mm256_set1_epi32(-offset & 0xffff));
        }
        widen(&isum.half[0], sums[r].half[0], one);
        widen(&isum.half[1], sums[r].half[1], one);
        joins(c, r, w, floats(isum));
    }
}

FR_INLINE void dot_q4_0(chains *c, const run *w, size_t rows) {
    dot_small(c, w, rows, unpack_4_bits, 4, 8, join);
}

FR_INLINE void dot_q4_k(chains *c, const run *w, size_t rows) {
    dot_small(c, w, rows, unpack_4_bits, 4, 0, join_with_minimum);
}

FR_INLINE void dot_q1_0(chains *c, const run *w, size_t rows) {
    dot_small(c, w, rows, unpack_1_bit, 1, 1, join);
}

FR_INLINE void dot_q2_0(chains *c, const run *w, size_t rows) {
    dot_small(c, w, rows, unpack_2_bits, 1, 1, join);
}

/* Multiplies codes of at most 63, one step at a time. The sums of a step are multiplied by the scale of its columns,
 * or by 1. The caller has set isum to the correction for the codes' offset. */
FR_INLINE void dot_steps(chains *c, const run *w, size_t rows, unpack_fn *unpack, size_t apart, pair *isum,
                         const pair *scale, join_fn *joins) {
    pair first, second;
    FR_UNROLLED_FOR (size_t step = 0; step < STEPS; step++) {
        size_t group = group_of(step, apart);
        unpack_step(unpack, &first, &second, w, step);
        FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
            pair sums = zeros();
            add_products(&sums, first, block_of(c, r), group);
            add_products(&sums, second, block_of(c, r), group + apart);
            widen(&isum[r].half[0], sums.half[0], scale[step / 2].half[0]);
            widen(&isum[r].half[1], sums.half[1], scale[step / 2].half[1]);
        }
    }
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) joins(c, r, w, floats(isum[r]));
}

/* Multiplies codes of at most 31; the value of a code is code - offset. */
FR_INLINE void dot_unsigned(chains *c, const run *w, size_t rows, unpack_fn *unpack, size_t apart, int offset,
                            join_fn *joins) {
    __m256i one = _mm256_set1_epi16(1);
    pair isum[SHARING], scale[2] = {{{one, one}}, {{one, one}}};
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
        __m256i sum = _mm256_set1_epi32(block_of(c, r)->sum);
        isum[r].half[0] = isum[r].half[1] = _mm256_madd_epi16(sum, _mm256_set1_epi32(-offset & 0xffff));
    }
    dot_steps(c, w, rows, unpack, apart, isum, scale, joins);
}

FR_INLINE void dot_q5_0(chains *c, const run *w, size_t rows) {
    dot_unsigned(c, w, rows, unpack_5_bits, 4, 16, join);
}

FR_INLINE void dot_q5_k(chains *c, const run *w, size_t rows) {
    dot_unsigned(c, w, rows, unpack_5_bits, 4, 0, join_with_minimum);
}

FR_INLINE void dot_mxfp4(chains *c, const run *w, size_t rows) {
    dot_unsigned(c, w, rows, unpack_4_bits, 4, MXFP4_OFFSET, join);
}

/* Multiplies the halves of a run one after the other. In the bytes of a line, the low 4 bits belong to the first half,
 * the high 4 bits to the second. */
FR_INLINE void dot_nvfp4(chains *c, const run *w, size_t rows) {
    __m256i one = _mm256_set1_epi16(1), offset = _mm256_set1_epi32(-MXFP4_OFFSET & 0xffff);
    pair sums[SHARING], value[2];
    FR_UNROLLED_FOR (size_t columns = 0; columns < 2; columns++) {
        FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) sums[r] = zeros();
        FR_UNROLLED_FOR (size_t step = 0; step < STEPS; step++) {
            unpack_step(unpack_4_bits, &value[0], &value[1], w, step);
            FR_UNROLLED_FOR (size_t r = 0; r < rows; r++)
                add_products(&sums[r], value[columns], block_of(c, r), step + STEPS * columns);
        }
        FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
            __m256i sum = _mm256_set1_epi32(sum_of_half(block_of(c, r), columns));
            pair isum;
            isum.half[0] = isum.half[1] = _mm256_madd_epi16(sum, offset);
            widen(&isum.half[0], sums[r].half[0], one);
            widen(&isum.half[1], sums[r].half[1], one);
            join_half(c, r, w, columns, floats(isum));
        }
    }
}

FR_INLINE void dot_iq1_s(chains *c, const run *w, size_t rows) {
    dot_unsigned(c, w, rows, unpack_3_bits, 1, IQ1_OFFSET, join);
}

FR_INLINE void dot_iq3_xxs(chains *c, const run *w, size_t rows) {
    dot_unsigned(c, w, rows, unpack_4_bits, 4, IQ3_XXS_OFFSET, join);
}

FR_INLINE void dot_iq3_s(chains *c, const run *w, size_t rows) {
    dot_unsigned(c, w, rows, unpack_4_bits, 4, IQ3_S_OFFSET, join);
}

/* Widens 8 bytes of a row to 16-bit numbers, and writes each number twice. If the bytes are unsigned, one shuffle both
 * widens and repeats them. */
FR_INLINE __m256i scale_twice(const uint8_t *row, size_t half, bool is_signed) {
    static const int8_t places[2][32] = {{0, -1, 0, -1, 1, -1, 1, -1, 2, -1, 2, -1, 3, -1, 3, -1,
                                          4, -1, 4, -1, 5, -1, 5, -1, 6, -1, 6, -1, 7, -1, 7, -1},
                                         {8,  -1, 8,  -1, 9,  -1, 9,  -1, 10, -1, 10, -1, 11, -1, 11, -1,
                                          12, -1, 12, -1, 13, -1, 13, -1, 14, -1, 14, -1, 15, -1, 15, -1}};
    if (is_signed) return scale_pairs(row + HALF * half, row + HALF * half);
    __m256i bytes = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)row));
    return _mm256_shuffle_epi8(bytes, _mm256_loadu_si256((const __m256i *)(const void *)places[half]));
}

/* Loads the scales of the two halves of a run as 16-bit factors. */
FR_INLINE void load_scales(pair scale[2], const run *w, bool is_signed) {
    FR_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
        scale[0].half[half] = scale_twice(w->scales, half, is_signed);
        scale[1].half[half] = scale_twice(w->scales + FR_TILE_FEATURES, half, is_signed);
    }
}

/* Sets the sums to the correction for the codes' offset. For each half of the run, the correction is -offset times the
 * half's scale times the half's sum of activations. */
FR_INLINE void start_halves(pair *isum, const chains *c, const pair scale[2], size_t rows, int offset) {
    pair of_sums;
    FR_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
        __m256i both = _mm256_blend_epi16(scale[0].half[half], scale[1].half[half], 0xaa);
        of_sums.half[half] = _mm256_mullo_epi16(both, _mm256_set1_epi16((short)-offset));
    }
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
        __m256i sums = sums_of_halves(block_of(c, r));
        isum[r].half[0] = _mm256_madd_epi16(sums, of_sums.half[0]);
        isum[r].half[1] = _mm256_madd_epi16(sums, of_sums.half[1]);
    }
}

FR_INLINE void dot_q6_k(chains *c, const run *w, size_t rows) {
    pair scale[2], isum[SHARING];
    load_scales(scale, w, true);
    start_halves(isum, c, scale, rows, 32);
    dot_steps(c, w, rows, unpack_6_bits, 1, isum, scale, join);
}

/* Multiplies codes of at most 31 if each half of a run has its own scale. The products of a half are added in 16 bits.
 * The caller has set isum to the correction for the codes' offset. */
FR_INLINE void dot_halves(chains *c, const run *w, size_t rows, unpack_fn *unpack, pair *isum, const pair scale[2],
                          join_fn *joins) {
    pair sums[SHARING], first, second;
    FR_UNROLLED_FOR (size_t step = 0; step < STEPS; step++) {
        unpack_step(unpack, &first, &second, w, step);
        FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
            if (step % 2 == 0) sums[r] = zeros();
            add_products(&sums[r], first, block_of(c, r), 2 * step);
            add_products(&sums[r], second, block_of(c, r), 2 * step + 1);
            if (step % 2 == 0) continue;
            widen(&isum[r].half[0], sums[r].half[0], scale[step / 2].half[0]);
            widen(&isum[r].half[1], sums[r].half[1], scale[step / 2].half[1]);
        }
    }
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) joins(c, r, w, floats(isum[r]));
}

FR_INLINE void dot_q2_k(chains *c, const run *w, size_t rows) {
    pair scale[2], isum[SHARING];
    load_scales(scale, w, false);
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) isum[r] = zeros();
    dot_halves(c, w, rows, unpack_2_bits, isum, scale, join_with_minima);
}

FR_INLINE void dot_q3_k(chains *c, const run *w, size_t rows) {
    pair scale[2], isum[SHARING];
    load_scales(scale, w, true);
    start_halves(isum, c, scale, rows, 4);
    dot_halves(c, w, rows, unpack_3_bits, isum, scale, join);
}

FR_INLINE void dot_iq1_m(chains *c, const run *w, size_t rows) {
    pair scale[2], isum[SHARING];
    load_scales(scale, w, false);
    start_halves(isum, c, scale, rows, IQ1_OFFSET);
    dot_halves(c, w, rows, unpack_3_bits, isum, scale, join);
}

/* Multiplies IQ2's values + 43, which are at most 86. Two sums of two products would not fit 16 bits, so each sum is
 * widened to 32 bits before it is added. The widening multiplies the sum by the scale of its half of the run, or by 1.
 * The caller has set isum to the correction for the offset. */
FR_INLINE void dot_iq2(chains *c, const run *w, size_t rows, const pair *scale, pair *isum) {
    pair value[2];
    FR_UNROLLED_FOR (size_t step = 0; step < STEPS; step++) {
        unpack_step(unpack_3_bits, &value[0], &value[1], w, step);
        FR_UNROLLED_FOR (size_t r = 0; r < rows; r++)
            FR_UNROLLED_FOR (size_t i = 0; i < 2; i++) {
                __m256i q = broadcast_group(block_of(c, r), 2 * step + i);
                FR_UNROLLED_FOR (size_t half = 0; half < 2; half++)
                    widen(&isum[r].half[half], _mm256_maddubs_epi16(value[i].half[half], q),
                          scale[step / 2].half[half]);
            }
    }
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) join(c, r, w, floats(isum[r]));
}

FR_INLINE void dot_iq2_xxs(chains *c, const run *w, size_t rows) {
    __m256i one = _mm256_set1_epi16(1), offset = _mm256_set1_epi16(-IQ2_OFFSET);
    pair isum[SHARING], scale[2] = {{{one, one}}, {{one, one}}};
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++)
        isum[r].half[0] = isum[r].half[1] = _mm256_madd_epi16(sums_of_halves(block_of(c, r)), offset);
    dot_iq2(c, w, rows, scale, isum);
}

FR_INLINE void dot_iq2_xs(chains *c, const run *w, size_t rows) {
    pair isum[SHARING], scale[2];
    load_scales(scale, w, false);
    start_halves(isum, c, scale, rows, IQ2_OFFSET);
    dot_iq2(c, w, rows, scale, isum);
}

/* Adds the products of one group to isum; its values are signed, in -128..127. */
FR_INLINE void add_signed(pair *isum, pair value, const chains *c, size_t group, size_t rows) {
    __m256i one = _mm256_set1_epi16(1);
    pair magnitude = {{_mm256_abs_epi8(value.half[0]), _mm256_abs_epi8(value.half[1])}};
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
        __m256i q = broadcast_group(block_of(c, r), group);
        FR_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
            __m256i signed_q = _mm256_sign_epi8(q, value.half[half]);
            widen(&isum[r].half[half], _mm256_maddubs_epi16(magnitude.half[half], signed_q), one);
        }
    }
}

FR_INLINE void dot_signed(chains *c, const run *w, size_t rows, unpack_fn *unpack, size_t apart) {
    pair isum[SHARING], first, second;
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) isum[r] = zeros();
    FR_UNROLLED_FOR (size_t step = 0; step < STEPS; step++) {
        size_t group = group_of(step, apart);
        unpack_step(unpack, &first, &second, w, step);
        add_signed(isum, first, c, group, rows);
        add_signed(isum, second, c, group + apart, rows);
    }
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) join(c, r, w, floats(isum[r]));
}

FR_INLINE void unpack_q8_0(pair *first, pair *second, const uint8_t *codes, size_t step) {
    __m256i sign = _mm256_set1_epi8(-128);
    unpack_8_bits(first, second, codes, step);
    FR_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
        first->half[half] = _mm256_xor_si256(first->half[half], sign);
        second->half[half] = _mm256_xor_si256(second->half[half], sign);
    }
}

FR_INLINE void dot_q8_0(chains *c, const run *w, size_t rows) {
    dot_signed(c, w, rows, unpack_q8_0, 1);
}

FR_INLINE void dot_iq4(chains *c, const run *w, size_t rows) {
    dot_signed(c, w, rows, unpack_4_bits, 4);
}

static const format q8_0 = {FR_SIZES(q8_0), head_none, scales_d, dot_q8_0, 0, 0};
static const format q4_0 = {FR_SIZES(q4_0), head_none, scales_d, dot_q4_0, 0, 0};
static const format q4_1 = {FR_SIZES(q4_1), head_none, scales_d_m, dot_q4_k, 0, 0};
static const format q5_0 = {FR_SIZES(q5_0), head_none, scales_d, dot_q5_0, 0, 0};
static const format q5_1 = {FR_SIZES(q5_1), head_none, scales_d_m, dot_q5_k, 0, 0};
static const format iq4_nl = {FR_SIZES(iq4_nl), head_none, scales_d, dot_iq4, FR_IQ4_NL, 0};
static const format mxfp4 = {FR_SIZES(mxfp4), head_none, scales_exponent, dot_mxfp4, FR_MXFP4, MXFP4_OFFSET};
static const format q1_0 = {FR_SIZES(q1_0), head_d, scales_head, dot_q1_0, 0, 0};
static const format q2_0 = {FR_SIZES(q2_0), head_d, scales_head, dot_q2_0, 0, 0};
static const format q4_k = {FR_SIZES(q4_k), head_k, scales_k, dot_q4_k, 0, 0};
static const format q5_k = {FR_SIZES(q5_k), head_k, scales_k, dot_q5_k, 0, 0};
static const format q6_k = {FR_SIZES(q6_k), head_d, scales_q6, dot_q6_k, 0, 0};
static const format iq4_xs = {FR_SIZES(iq4_xs), head_d, scales_xs, dot_iq4, FR_IQ4_XS, 0};
static const format q2_k = {FR_SIZES(q2_k), head_q2, scales_q2, dot_q2_k, 0, 0};
static const format q3_k = {FR_SIZES(q3_k), head_q3, scales_halves, dot_q3_k, 0, 0};
static const format iq2_xxs = {FR_SIZES(iq2_xxs), head_eighths, scales_iq, dot_iq2_xxs, FR_IQ2_XXS, IQ2_OFFSET};
static const format iq2_xs = {FR_SIZES(iq2_xs), head_eighths_halves, scales_halves, dot_iq2_xs, FR_IQ2_XS, IQ2_OFFSET};
static const format iq3_xxs = {FR_SIZES(iq3_xxs), head_iq3_xxs, scales_iq, dot_iq3_xxs, FR_IQ3_XXS, IQ3_XXS_OFFSET};
static const format iq3_s = {FR_SIZES(iq3_s), head_d, scales_iq, dot_iq3_s, FR_IQ3_S, IQ3_S_OFFSET};
static const format iq1_s = {FR_SIZES(iq1_s), head_eighths, scales_iq, dot_iq1_s, FR_IQ1_S, IQ1_OFFSET};
static const format iq1_m = {FR_SIZES(iq1_m), head_eighths_halves, scales_halves, dot_iq1_m, FR_IQ1_M, IQ1_OFFSET};
static const format tq2_0 = {FR_SIZES(tq2_0), head_d, scales_head, dot_q2_0, 0, 0};
static const format pq2_0 = {FR_SIZES(pq2_0), head_d, scales_head, dot_q2_0, 0, 0};
static const format nvfp4 = {FR_SIZES(nvfp4), head_none, scales_nvfp4, dot_nvfp4, FR_NVFP4, MXFP4_OFFSET};

#define FR_MATMUL_BLOCK(id, type, ...)                         \
    void fr_matmul_##type##_avx2(const fr_matmul_block *job) { \
        matmul(type, *job);                                    \
    }

FR_TILE_TYPES(FR_MATMUL_BLOCK)
