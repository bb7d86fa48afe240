/* Multiplies packed weights by quantized rows with vpdpbusd, which multiplies unsigned bytes with signed bytes and adds
 * four products into 32 bits, exactly. The contract is fr_matmul_block_fn in kernels.h; the walk is in block_avx2.h.
 *
 * Codes are multiplied unsigned, as they are stored. Each sum begins with a correction for the zero point. If a type
 * has a table, 128 is added to the table's values. */
#include "kernels/block_avx2.h"
#include "quant/block_types.h"

enum { TABLE_OFFSET = 128 };

/* Returns the correction for the zero point: -offset times each sum of activations. A sum fits the low 16 bits of its
 * lane. vpmaddwd also multiplies the high 16 bits, by 0. */
FR_INLINE pair correction_of(__m256i sum, int offset) {
    __m256i correction = _mm256_madd_epi16(sum, _mm256_set1_epi32(-offset & 0xffff));
    return (pair){{correction, correction}};
}

FR_INLINE void add_products(pair *isum, pair code, const fr_qblock *x, size_t group) {
    __m256i q = broadcast_group(x, group);
    isum->half[0] = _mm256_dpbusd_avx_epi32(isum->half[0], code.half[0], q);
    isum->half[1] = _mm256_dpbusd_avx_epi32(isum->half[1], code.half[1], q);
}

/* Adds the products of steps from..to - 1 of a run. */
FR_INLINE void add_steps(pair *isum, const chains *c, const run *w, size_t rows, unpack_fn *unpack, size_t apart,
                         size_t from, size_t to) {
    pair first, second;
    FR_UNROLLED_FOR (size_t step = from; step < to; step++) {
        size_t group = group_of(step, apart);
        unpack_step(unpack, &first, &second, w, step);
        FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
            add_products(&isum[r], first, block_of(c, r), group);
            add_products(&isum[r], second, block_of(c, r), group + apart);
        }
    }
}

FR_INLINE void dot(chains *c, const run *w, size_t rows, unpack_fn *unpack, size_t apart, int offset, join_fn *joins) {
    pair isum[SHARING];
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++)
        isum[r] = correction_of(_mm256_set1_epi32(block_of(c, r)->sum), offset);
    add_steps(isum, c, w, rows, unpack, apart, 0, STEPS);
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) joins(c, r, w, floats(isum[r]));
}

FR_INLINE void dot_q8_0(chains *c, const run *w, size_t rows) {
    dot(c, w, rows, unpack_8_bits, 1, 128, join);
}

FR_INLINE void dot_q4_0(chains *c, const run *w, size_t rows) {
    dot(c, w, rows, unpack_4_bits, 4, 8, join);
}

FR_INLINE void dot_q4_k(chains *c, const run *w, size_t rows) {
    dot(c, w, rows, unpack_4_bits, 4, 0, join_with_minimum);
}

FR_INLINE void dot_q5_0(chains *c, const run *w, size_t rows) {
    dot(c, w, rows, unpack_5_bits, 4, 16, join);
}

FR_INLINE void dot_q5_k(chains *c, const run *w, size_t rows) {
    dot(c, w, rows, unpack_5_bits, 4, 0, join_with_minimum);
}

FR_INLINE void dot_mxfp4(chains *c, const run *w, size_t rows) {
    dot(c, w, rows, unpack_4_bits, 4, TABLE_OFFSET, join);
}

FR_INLINE void dot_iq4(chains *c, const run *w, size_t rows) {
    dot(c, w, rows, unpack_4_bits, 4, TABLE_OFFSET, join);
}

FR_INLINE void dot_q1_0(chains *c, const run *w, size_t rows) {
    dot(c, w, rows, unpack_1_bit, 1, 1, join);
}

FR_INLINE void dot_q2_0(chains *c, const run *w, size_t rows) {
    dot(c, w, rows, unpack_2_bits, 1, 1, join);
}

FR_INLINE void dot_iq1_s(chains *c, const run *w, size_t rows) {
    dot(c, w, rows, unpack_3_bits, 1, TABLE_OFFSET, join);
}

FR_INLINE void dot_iq3_xxs(chains *c, const run *w, size_t rows) {
    dot(c, w, rows, unpack_4_bits, 4, TABLE_OFFSET, join);
}

FR_INLINE void dot_iq3_s(chains *c, const run *w, size_t rows) {
    dot(c, w, rows, unpack_4_bits, 4, TABLE_OFFSET, join);
}

FR_INLINE void dot_iq2_xxs(chains *c, const run *w, size_t rows) {
    dot(c, w, rows, unpack_3_bits, 1, TABLE_OFFSET, join);
}

FR_INLINE __m256 load_scales(const uint8_t *scales) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)scales)));
}

/* Multiplies a run whose halves have scales of their own. The scaled sums are integers below 2^24, which floats hold
 * exactly. */
FR_INLINE void dot_halves(chains *c, const run *w, size_t rows, unpack_fn *unpack, int offset, join_fn *joins) {
    float_pair scaled[SHARING];
    pair isum[SHARING];
    FR_UNROLLED_FOR (size_t columns = 0; columns < 2; columns++) {
        const uint8_t *scales = w->scales + FR_TILE_FEATURES * columns;
        FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
            __m256i sum = _mm256_set1_epi32(block_of(c, r)->sum), half = _mm256_set1_epi32(block_of(c, r)->half);
            isum[r] = correction_of(columns ? _mm256_sub_epi32(sum, half) : half, offset);
        }
        add_steps(isum, c, w, rows, unpack, 1, 2 * columns, 2 * columns + 2);
        FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
            float_pair sums = floats(isum[r]);
            FR_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
                __m256 factor = load_scales(scales + HALF * half);
                scaled[r].half[half] = columns ? _mm256_fmadd_ps(factor, sums.half[half], scaled[r].half[half])
                                               : _mm256_mul_ps(factor, sums.half[half]);
            }
        }
    }
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) joins(c, r, w, scaled[r]);
}

/* Multiplies the halves of a run one after the other. In the bytes of a line, the low 4 bits belong to the first half,
 * the high 4 bits to the second. */
FR_INLINE void dot_nvfp4(chains *c, const run *w, size_t rows) {
    pair isum[SHARING], value[2];
    FR_UNROLLED_FOR (size_t columns = 0; columns < 2; columns++) {
        FR_UNROLLED_FOR (size_t r = 0; r < rows; r++)
            isum[r] = correction_of(_mm256_set1_epi32(sum_of_half(block_of(c, r), columns)), TABLE_OFFSET);
        FR_UNROLLED_FOR (size_t step = 0; step < STEPS; step++) {
            unpack_step(unpack_4_bits, &value[0], &value[1], w, step);
            FR_UNROLLED_FOR (size_t r = 0; r < rows; r++)
                add_products(&isum[r], value[columns], block_of(c, r), step + STEPS * columns);
        }
        FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) join_half(c, r, w, columns, floats(isum[r]));
    }
}

FR_INLINE void dot_q6_k(chains *c, const run *w, size_t rows) {
    dot_halves(c, w, rows, unpack_6_bits, 32, join);
}

FR_INLINE void dot_q2_k(chains *c, const run *w, size_t rows) {
    dot_halves(c, w, rows, unpack_2_bits, 0, join_with_minima);
}

FR_INLINE void dot_q3_k(chains *c, const run *w, size_t rows) {
    dot_halves(c, w, rows, unpack_3_bits, 4, join);
}

FR_INLINE void dot_iq1_m(chains *c, const run *w, size_t rows) {
    dot_halves(c, w, rows, unpack_3_bits, TABLE_OFFSET, join);
}

FR_INLINE void dot_iq2_xs(chains *c, const run *w, size_t rows) {
    dot_halves(c, w, rows, unpack_3_bits, TABLE_OFFSET, join);
}

static const format q8_0 = {FR_SIZES(q8_0), head_none, scales_d, dot_q8_0, 0, 0};
static const format q4_0 = {FR_SIZES(q4_0), head_none, scales_d, dot_q4_0, 0, 0};
static const format q4_1 = {FR_SIZES(q4_1), head_none, scales_d_m, dot_q4_k, 0, 0};
static const format q5_0 = {FR_SIZES(q5_0), head_none, scales_d, dot_q5_0, 0, 0};
static const format q5_1 = {FR_SIZES(q5_1), head_none, scales_d_m, dot_q5_k, 0, 0};
static const format iq4_nl = {FR_SIZES(iq4_nl), head_none, scales_d, dot_iq4, FR_IQ4_NL, TABLE_OFFSET};
static const format mxfp4 = {FR_SIZES(mxfp4), head_none, scales_exponent, dot_mxfp4, FR_MXFP4, TABLE_OFFSET};
static const format q1_0 = {FR_SIZES(q1_0), head_d, scales_head, dot_q1_0, 0, 0};
static const format q2_0 = {FR_SIZES(q2_0), head_d, scales_head, dot_q2_0, 0, 0};
static const format q4_k = {FR_SIZES(q4_k), head_k, scales_k, dot_q4_k, 0, 0};
static const format q5_k = {FR_SIZES(q5_k), head_k, scales_k, dot_q5_k, 0, 0};
static const format q6_k = {FR_SIZES(q6_k), head_d, scales_q6, dot_q6_k, 0, 0};
static const format iq4_xs = {FR_SIZES(iq4_xs), head_d, scales_xs, dot_iq4, FR_IQ4_XS, TABLE_OFFSET};
static const format q2_k = {FR_SIZES(q2_k), head_q2, scales_q2, dot_q2_k, 0, 0};
static const format q3_k = {FR_SIZES(q3_k), head_q3, scales_halves, dot_q3_k, 0, 0};
static const format iq2_xxs = {FR_SIZES(iq2_xxs), head_eighths, scales_iq, dot_iq2_xxs, FR_IQ2_XXS, TABLE_OFFSET};
static const format iq2_xs = {FR_SIZES(iq2_xs), head_eighths_halves, scales_halves,
                              dot_iq2_xs,       FR_IQ2_XS,           TABLE_OFFSET};
static const format iq3_xxs = {FR_SIZES(iq3_xxs), head_iq3_xxs, scales_iq, dot_iq3_xxs, FR_IQ3_XXS, TABLE_OFFSET};
static const format iq3_s = {FR_SIZES(iq3_s), head_d, scales_iq, dot_iq3_s, FR_IQ3_S, TABLE_OFFSET};
static const format iq1_s = {FR_SIZES(iq1_s), head_eighths, scales_iq, dot_iq1_s, FR_IQ1_S, TABLE_OFFSET};
static const format iq1_m = {FR_SIZES(iq1_m), head_eighths_halves, scales_halves, dot_iq1_m, FR_IQ1_M, TABLE_OFFSET};
static const format tq2_0 = {FR_SIZES(tq2_0), head_d, scales_head, dot_q2_0, 0, 0};
static const format pq2_0 = {FR_SIZES(pq2_0), head_d, scales_head, dot_q2_0, 0, 0};
static const format nvfp4 = {FR_SIZES(nvfp4), head_none, scales_nvfp4, dot_nvfp4, FR_NVFP4, TABLE_OFFSET};

#define FR_MATMUL_BLOCK(id, type, ...)                            \
    void fr_matmul_##type##_avxvnni(const fr_matmul_block *job) { \
        matmul(type, *job);                                       \
    }

FR_TILE_TYPES(FR_MATMUL_BLOCK)
