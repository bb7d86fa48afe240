/* Holds the code that the block-quantized kernels of neon, dotprod and i8mm share, which is everything but the dot
 * product itself.
 *
 * In: packed tiles (quant/packed.h) and quantized rows. Out: products, as fr_matmul_block_fn defines them. A register
 * holds 4 features x 4 columns of codes, a quarter of a tile's line; a lane of sums is one output feature. The codes of
 * 8 features x 32 columns are unpacked into 16 registers, and every row is multiplied with these registers. The rows'
 * float sums (chains) are in the L1 cache meanwhile. So registers do not limit the number of rows: one loop computes 5
 * to 16 rows, and for the 1 to 4 rows of a verify step it is unrolled.
 *
 * Work is done in chunks of 8 runs of 32 columns. A chunk needs 22 KB however long the rows are, so it fits the L1
 * cache. For each chunk and group of tiles, up to 16 rows are laid out once for the dot product (`panel`), and a tile's
 * scales are converted to floats once for these rows (`scales`). Later rows find the group's weights in L2.
 *
 * No machine of this architecture was available for timing. The code was chosen by counting all instructions under an
 * emulator: the _neon, _dotprod and _i8mm files say how many instructions 16 features x 32 columns take (gcc 12, -O2).
 * If the chains of 8 rows stayed in registers, the source would be twice as long. The number of instructions would be
 * the same on i8mm, about a tenth lower on dotprod, and higher on neon, where the registers do not suffice. */
#ifndef FR_KERNELS_BLOCK_NEON_H
#define FR_KERNELS_BLOCK_NEON_H

#include "kernels/simd_neon.h"
#include "quant/block_types.h"
#include "quant/packed.h"

enum {
    RUN = 32,                    /* columns of a run */
    RUNS = 8,                    /* largest number of runs in a chunk */
    ROWS = 16,                   /* largest number of rows that are computed together */
    FEATURES = FR_TILE_FEATURES, /* outputs of a tile */
    LINE = 4 * FEATURES,         /* bytes of a line of a tile */
    PARTS = 2,                   /* registers of a line that are unpacked together */
    GROUP = 4                    /* tiles whose outputs are computed together */
};

/* Describes a type. Its members are constants that choose the instructions when a kernel is compiled. */
typedef struct format {
    fr_dtype type;
    int bits;                      /* bits of a code */
    int offset;                    /* value = code - offset, if there is no table */
    bool table;                    /* a code is an index into the type's table of values */
    bool mins, halves;             /* mins: each run has a minimum; halves: each half of a run has its own scale (and
                                    * its own minimum, if there are minima) */
    bool apart;                    /* each half of a run is added to the chain separately, with d as the factor of the
                                    * first half and m as that of the second */
    int most;                      /* the largest magnitude that is multiplied: of a code, or of a value of the table */
    size_t columns, block, header; /* columns: columns of a block; block: bytes of a tile's block; header: bytes of the
                                    * block before its first run */
} format;

/* Initializes the sizes of a format with the constants of its type. */
#define FR_SIZES(word) .columns = 32 * FR_RUNS_##word, .block = FR_TILE_BYTES_##word, .header = FR_HEAD_BYTES_##word

static const format q8_0 = {FR_Q8_0, FR_BITS_q8_0, .offset = 128, .most = 128, FR_SIZES(q8_0)};
static const format q4_0 = {FR_Q4_0, FR_BITS_q4_0, .offset = 8, .most = 15, FR_SIZES(q4_0)};
static const format q4_1 = {FR_Q4_1, FR_BITS_q4_1, .mins = true, .most = 15, FR_SIZES(q4_1)};
static const format q5_0 = {FR_Q5_0, FR_BITS_q5_0, .offset = 16, .most = 31, FR_SIZES(q5_0)};
static const format q5_1 = {FR_Q5_1, FR_BITS_q5_1, .mins = true, .most = 31, FR_SIZES(q5_1)};
static const format iq4_nl = {FR_IQ4_NL, FR_BITS_iq4_nl, .table = true, .most = 127, FR_SIZES(iq4_nl)};
static const format mxfp4 = {FR_MXFP4, FR_BITS_mxfp4, .table = true, .most = 12, FR_SIZES(mxfp4)};
static const format q1_0 = {FR_Q1_0, FR_BITS_q1_0, .offset = 1, .most = 2, FR_SIZES(q1_0)};
static const format q2_0 = {FR_Q2_0, FR_BITS_q2_0, .offset = 1, .most = 3, FR_SIZES(q2_0)};
static const format q4_k = {FR_Q4_K, FR_BITS_q4_k, .mins = true, .most = 15, FR_SIZES(q4_k)};
static const format q5_k = {FR_Q5_K, FR_BITS_q5_k, .mins = true, .most = 31, FR_SIZES(q5_k)};
static const format q6_k = {FR_Q6_K, FR_BITS_q6_k, 32, .halves = true, .most = 63, FR_SIZES(q6_k)};
static const format iq4_xs = {FR_IQ4_XS, FR_BITS_iq4_xs, .table = true, .most = 127, FR_SIZES(iq4_xs)};
static const format q2_k = {FR_Q2_K, FR_BITS_q2_k, .mins = true, .halves = true, .most = 3, FR_SIZES(q2_k)};
static const format q3_k = {FR_Q3_K, FR_BITS_q3_k, .offset = 4, .halves = true, .most = 7, FR_SIZES(q3_k)};
static const format iq2_xxs = {FR_IQ2_XXS, FR_BITS_iq2_xxs, .table = true, .most = 43, FR_SIZES(iq2_xxs)};
static const format iq2_xs = {FR_IQ2_XS, FR_BITS_iq2_xs, .table = true, .halves = true, .most = 43, FR_SIZES(iq2_xs)};
static const format iq3_xxs = {FR_IQ3_XXS, FR_BITS_iq3_xxs, .table = true, .most = 31, FR_SIZES(iq3_xxs)};
static const format iq3_s = {FR_IQ3_S, FR_BITS_iq3_s, .table = true, .most = 15, FR_SIZES(iq3_s)};
static const format iq1_s = {FR_IQ1_S, FR_BITS_iq1_s, .table = true, .most = 9, FR_SIZES(iq1_s)};
static const format iq1_m = {FR_IQ1_M, FR_BITS_iq1_m, .table = true, .halves = true, .most = 9, FR_SIZES(iq1_m)};
static const format tq2_0 = {FR_TQ2_0, FR_BITS_tq2_0, .offset = 1, .most = 3, FR_SIZES(tq2_0)};
static const format pq2_0 = {FR_PQ2_0, FR_BITS_pq2_0, .offset = 1, .most = 3, FR_SIZES(pq2_0)};
static const format nvfp4 = {FR_NVFP4, FR_BITS_nvfp4, .table = true, .apart = true, .most = 12, FR_SIZES(nvfp4)};

/* Holds the factors by which the sums of a chunk are multiplied, for each run and feature. */
typedef struct scales {
    float d[RUNS][FEATURES], m[RUNS][FEATURES];
    int32_t halves[RUNS][2][FEATURES], minima[RUNS][2][FEATURES];
} scales;

/* Holds the rows of a chunk, by run and row. q has the activations of each half of a run, 4 columns in a lane. If rows
 * are taken in pairs, rows 2p and 2p + 1 share four registers. Each register then has 8 columns of the first row and
 * the same 8 columns of the second row. An integer sum begins with its correction for the zero point: -offset times the
 * sum of q over the run, or over each half. If the halves have minima, codes have no offset, and `correction` holds the
 * sums of q themselves. */
typedef struct panel {
    int32_t q[RUNS][ROWS][2][4], correction[RUNS][2][ROWS];
    float d[RUNS][ROWS], dsum[RUNS][ROWS];
} panel;

typedef struct chunk {
    panel panel;
    scales scales; /* the factors of the current tile */
} chunk;

/* Holds the codes of a run, or their values from a table. One register has one group of 4 columns for one quarter of
 * the tile's features, and PARTS quarters are unpacked. If rows are taken in pairs, the registers of two neighbouring
 * groups are rearranged. The first of the two registers then has 8 columns of features 0 and 1 of the quarter, and the
 * second has 8 columns of features 2 and 3. */
typedef uint8x16_t run_values[PARTS][RUN / 4];

/* Holds the integer sums of one row, or of two rows that are taken as a pair. */
typedef int32x4_t row_sums[2][PARTS];

/* Says how an instruction set multiplies. */
typedef struct level {
    bool pairs;     /* if there are two rows or more, they are multiplied in pairs */
    bool all_bytes; /* the instruction set can multiply codes up to 255; if it cannot, 8-bit codes become signed values
                     * without an offset */
} level;

/* Multiplies one half of a run, number `half`, with q. Adds the products to the sums of one row or of a pair of rows.
 * The file of each instruction set defines this function. For a pair, sums[0] has features 0 and 1 of each quarter of
 * the tile's features, and sums[1] has features 2 and 3. In both, the lanes alternate between the two rows. Callers
 * pass constants as `half` and `pair`. */
FR_INLINE void multiply(format f, row_sums sums, run_values values, size_t half, const int32_t (*q)[4], bool pair);

/* ----------------------------------------------------------------------------------------------------------- scales */

FR_INLINE void load_d(float *d, const uint8_t *w) {
    FR_UNROLLED_FOR (size_t i = 0; i < FEATURES; i += 4)
        vst1q_f32(d + i, vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(w + 2 * i))));
}

/* Returns 2^(e - 128). If e >= 2, the exponent field of the float is e - 1. Otherwise the result is a denormal. */
FR_INLINE float32x4_t powers(uint32x4_t e) {
    uint32x4_t normal = vshlq_n_u32(vqsubq_u32(e, vdupq_n_u32(1)), 23);
    uint32x4_t small = vshlq_u32(vdupq_n_u32(0x00200000), vreinterpretq_s32_u32(vminq_u32(e, vdupq_n_u32(2))));
    return vreinterpretq_f32_u32(vmaxq_u32(normal, small));
}

FR_INLINE void load_exponents(float *d, const uint8_t *w) {
    FR_UNROLLED_FOR (size_t i = 0; i < FEATURES; i += 8) {
        uint16x8_t e = vmovl_u8(vld1_u8(w + i));
        vst1q_f32(d + i, powers(vmovl_u16(vget_low_u16(e))));
        vst1q_f32(d + i + 4, powers(vmovl_high_u16(e)));
    }
}

/* Loads numbers of type E4M3 without a sign. Their exponent and fraction are moved to the positions that these have in
 * a float16. */
FR_INLINE void load_e4m3(float *d, const uint8_t *w) {
    FR_UNROLLED_FOR (size_t i = 0; i < FEATURES; i += 8) {
        uint16x8_t bits = vshll_n_u8(vld1_u8(w + i), 7);
        float32x4_t low = vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(bits)));
        float32x4_t high = vcvt_f32_f16(vreinterpret_f16_u16(vget_high_u16(bits)));
        vst1q_f32(d + i, vmulq_n_f32(low, fr_code_unit(FR_NVFP4)));
        vst1q_f32(d + i + 4, vmulq_n_f32(high, fr_code_unit(FR_NVFP4)));
    }
}

FR_INLINE void widen(int32x4_t *values, int8x16_t bytes) {
    int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_high_s8(bytes);
    values[0] = vmovl_s16(vget_low_s16(low));
    values[1] = vmovl_high_s16(low);
    values[2] = vmovl_s16(vget_low_s16(high));
    values[3] = vmovl_high_s16(high);
}

FR_INLINE void store_integers(int32_t *integers, int8x16_t bytes) {
    int32x4_t values[4];
    widen(values, bytes);
    FR_UNROLLED_FOR (size_t i = 0; i < 4; i++) vst1q_s32(integers + 4 * i, values[i]);
}

/* Sets scaled[i] = factor[i] * bytes[i] for each feature i. */
FR_INLINE void scale_bytes(float *scaled, const float *factor, int8x16_t bytes) {
    int32x4_t values[4];
    widen(values, bytes);
    FR_UNROLLED_FOR (size_t i = 0; i < 4; i++)
        vst1q_f32(scaled + 4 * i, vmulq_f32(vld1q_f32(factor + 4 * i), vcvtq_f32_s32(values[i])));
}

/* Shifts `high` left, or right if `left` is negative. Then takes the bits of the mask from the shifted `high`, and the
 * other bits from `low`. */
FR_INLINE uint8x16_t joined(uint8x16_t low, uint8x16_t high, int left, uint8_t mask) {
    return vbslq_u8(vdupq_n_u8(mask), vshlq_u8(high, vdupq_n_s8((int8_t)left)), low);
}

FR_INLINE uint8x16_t low_nibbles(uint8x16_t bytes) {
    return vandq_u8(bytes, vdupq_n_u8(15));
}

FR_INLINE uint8x16_t high_nibbles(uint8x16_t bytes) {
    return vshrq_n_u8(bytes, 4);
}

/* Unpacks the two 6-bit numbers of run `run`. */
FR_INLINE void six_bits(uint8x16_t *first, uint8x16_t *second, const uint8_t *rows, size_t run) {
    uint8x16_t low = vld1q_u8(rows + run * FEATURES), high = vld1q_u8(rows + (RUNS + run / 2) * FEATURES);
    int odd = run % 2 * 4;
    *first = joined(low_nibbles(low), high, 4 - odd, 0x30);
    *second = joined(high_nibbles(low), high, 2 - odd, 0x30);
}

/* Loads minima and negates them, because they are subtracted. */
FR_INLINE void load_negative(float *negative, const uint8_t *w) {
    load_d(negative, w);
    FR_UNROLLED_FOR (size_t i = 0; i < FEATURES; i += 4) vst1q_f32(negative + i, vnegq_f32(vld1q_f32(negative + i)));
}

/* Loads the scales and minima of a block of Q4_K or Q5_K. */
FR_INLINE void load_k_scales(scales *s, const uint8_t *w) {
    float d[FEATURES], negative[FEATURES];
    load_d(d, w);
    load_negative(negative, w + 2 * FEATURES);
    FR_UNROLLED_FOR (size_t run = 0; run < RUNS; run++) {
        uint8x16_t scale, min;
        six_bits(&scale, &min, w + 4 * FEATURES, run);
        scale_bytes(s->d[run], d, vreinterpretq_s8_u8(scale));
        scale_bytes(s->m[run], negative, vreinterpretq_s8_u8(min));
    }
}

FR_INLINE void load_xs_scales(scales *s, const uint8_t *w) {
    float d[FEATURES];
    load_d(d, w);
    const uint8_t *lows = w + 2 * FEATURES, *highs = lows + RUNS / 2 * FEATURES;
    FR_UNROLLED_FOR (size_t run = 0; run < RUNS; run++) {
        uint8x16_t pair = vld1q_u8(lows + run / 2 * FEATURES), high = vld1q_u8(highs + run / 4 * FEATURES);
        uint8x16_t low = run % 2 ? high_nibbles(pair) : low_nibbles(pair);
        uint8x16_t scale = joined(low, high, 4 - (int)run % 4 * 2, 0x30);
        scale_bytes(s->d[run], d, vsubq_s8(vreinterpretq_s8_u8(scale), vdupq_n_s8(32)));
    }
}

/* Returns 2 s + 1 for each scale s. */
FR_INLINE int8x16_t odd(uint8x16_t scale) {
    return vreinterpretq_s8_u8(vaddq_u8(vaddq_u8(scale, scale), vdupq_n_u8(1)));
}

FR_INLINE void load_units(float *d, const uint8_t *w, float unit) {
    load_d(d, w);
    FR_UNROLLED_FOR (size_t i = 0; i < FEATURES; i += 4) vst1q_f32(d + i, vmulq_n_f32(vld1q_f32(d + i), unit));
}

FR_INLINE void load_iq_scales(scales *s, const uint8_t *w, float unit) {
    float d[FEATURES];
    load_units(d, w, unit);
    FR_UNROLLED_FOR (size_t run = 0; run < RUNS; run++) {
        uint8x16_t both = vld1q_u8(w + (2 + run / 2) * FEATURES);
        scale_bytes(s->d[run], d, odd(run % 2 ? high_nibbles(both) : low_nibbles(both)));
    }
}

FR_INLINE void load_iq_halves(scales *s, const uint8_t *w, float unit) {
    load_units(s->d[0], w, unit);
    for (size_t run = 0; run < RUNS; run++) {
        uint8x16_t both = vld1q_u8(w + (2 + run) * FEATURES);
        store_integers(s->halves[run][0], odd(low_nibbles(both)));
        store_integers(s->halves[run][1], odd(high_nibbles(both)));
        if (run > 0) memcpy(s->d[run], s->d[0], sizeof s->d[0]);
    }
}

FR_INLINE void load_q6_scales(scales *s, const uint8_t *w) {
    load_d(s->d[0], w);
    for (size_t half = 0; half < 2 * RUNS; half++) {
        int8x16_t bytes = vreinterpretq_s8_u8(vld1q_u8(w + (2 + half) * FEATURES));
        store_integers(s->halves[half / 2][half % 2], bytes);
    }
    for (size_t run = 1; run < RUNS; run++) memcpy(s->d[run], s->d[0], sizeof s->d[0]);
}

/* Loads d and stores it as the scale of all runs. */
FR_INLINE void load_one_d(scales *s, const uint8_t *w) {
    load_d(s->d[0], w);
    for (size_t run = 1; run < RUNS; run++) memcpy(s->d[run], s->d[0], sizeof s->d[0]);
}

FR_INLINE void load_q3_scales(scales *s, const uint8_t *w) {
    int8x16_t zero = vdupq_n_s8(32);
    load_d(s->d[0], w);
    FR_UNROLLED_FOR (size_t run = 0; run < RUNS; run++) {
        uint8x16_t first, second;
        six_bits(&first, &second, w + 2 * FEATURES, run);
        store_integers(s->halves[run][0], vsubq_s8(vreinterpretq_s8_u8(first), zero));
        store_integers(s->halves[run][1], vsubq_s8(vreinterpretq_s8_u8(second), zero));
    }
    for (size_t run = 1; run < RUNS; run++) memcpy(s->d[run], s->d[0], sizeof s->d[0]);
}

FR_INLINE void load_q2_scales(scales *s, const uint8_t *w) {
    load_d(s->d[0], w);
    load_negative(s->m[0], w + 2 * FEATURES);
    for (size_t half = 0; half < 2 * RUNS; half++) {
        uint8x16_t row = vld1q_u8(w + (4 + half) * FEATURES);
        store_integers(s->halves[half / 2][half % 2], vreinterpretq_s8_u8(low_nibbles(row)));
        store_integers(s->minima[half / 2][half % 2], vreinterpretq_s8_u8(high_nibbles(row)));
    }
    for (size_t run = 1; run < RUNS; run++) {
        memcpy(s->d[run], s->d[0], sizeof s->d[0]);
        memcpy(s->m[run], s->m[0], sizeof s->m[0]);
    }
}

FR_INLINE void load_scales(format f, scales *s, const uint8_t *w, size_t runs) {
    switch (f.type) {
    case FR_Q4_K:
    case FR_Q5_K: load_k_scales(s, w); return;
    case FR_Q6_K: load_q6_scales(s, w); return;
    case FR_IQ4_XS: load_xs_scales(s, w); return;
    case FR_Q2_K: load_q2_scales(s, w); return;
    case FR_Q3_K: load_q3_scales(s, w); return;
    case FR_IQ1_S:
    case FR_IQ2_XXS:
    case FR_IQ3_XXS:
    case FR_IQ3_S: load_iq_scales(s, w, fr_code_unit(f.type)); return;
    case FR_IQ1_M:
    case FR_IQ2_XS: load_iq_halves(s, w, fr_code_unit(f.type)); return;
    case FR_Q1_0:
    case FR_Q2_0:
    case FR_PQ2_0:
    case FR_TQ2_0: load_one_d(s, w); return;
    default:
        for (size_t run = 0; run < runs; run++, w += f.block) {
            if (f.type == FR_MXFP4)
                load_exponents(s->d[run], w);
            else if (f.apart)
                load_e4m3(s->d[run], w);
            else
                load_d(s->d[run], w);
            if (f.apart) load_e4m3(s->m[run], w + FEATURES);
            if (f.mins) load_d(s->m[run], w + 2 * FEATURES);
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------- rows */

/* Interleaves the registers of two rows, so that each register has columns of both rows. */
FR_INLINE void mix(int32_t (*q)[4]) {
    int64x2_t a[2], b[2];
    FR_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
        a[half] = vreinterpretq_s64_s32(vld1q_s32(q[half]));
        b[half] = vreinterpretq_s64_s32(vld1q_s32(q[2 + half]));
    }
    FR_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
        vst1q_s32(q[2 * half], vreinterpretq_s32_s64(vzip1q_s64(a[half], b[half])));
        vst1q_s32(q[2 * half + 1], vreinterpretq_s32_s64(vzip2q_s64(a[half], b[half])));
    }
}

FR_INLINE void pack_panel(format f, panel *p, const fr_qblock *x, size_t x_stride, size_t rows, size_t runs,
                          bool pairs) {
    for (size_t run = 0; run < runs; run++) {
        for (size_t r = 0; r < rows; r++) {
            const fr_qblock *block = x + r * x_stride + run;
            p->d[run][r] = block->d;
            if (f.mins) p->dsum[run][r] = block->dsum;
            int factor = f.halves && f.mins ? 1 : -f.offset;
            if (factor) p->correction[run][0][r] = factor * (f.halves ? block->half : block->sum);
            if (f.halves) p->correction[run][1][r] = factor * (block->sum - block->half);
            memcpy(p->q[run][r], block->q, RUN);
        }
        for (size_t r = 0; pairs && r < rows; r += 2) mix(p->q[run][r]);
    }
}

/* ------------------------------------------------------------------------------------------------------------ a run */

/* Unpacks the codes of `group`, a group of 4 columns, for a quarter of the features. w points to that quarter in the
 * run's first line. */
FR_INLINE uint8x16_t unpack(format f, const uint8_t *w, size_t group, int8x16_t table) {
    if (f.bits == 8) {
        uint8x16_t codes = vld1q_u8(w + group * LINE);
        return f.offset ? codes : veorq_u8(codes, vdupq_n_u8(128));
    }
    size_t half = group / 4, line = group % 4;
    if (f.bits == 1) return vandq_u8(vshlq_u8(vld1q_u8(w), vdupq_n_s8((int8_t)(1 - (int)group))), vdupq_n_u8(2));
    if (f.bits < 4) {
        uint8x16_t four = vld1q_u8(w + ((f.bits == 3) + half) * LINE);
        uint8x16_t two = vandq_u8(vshlq_u8(four, vdupq_n_s8((int8_t)(-2 * (int)line))), vdupq_n_u8(3));
        uint8x16_t code = f.bits == 3 ? joined(two, vld1q_u8(w), 2 - (int)group, 4) : two;
        return f.table ? vreinterpretq_u8_s8(vqtbl1q_s8(table, code)) : code;
    }
    uint8x16_t pair = vld1q_u8(w + (f.bits == 5) * LINE + line * LINE);
    uint8x16_t code = half ? high_nibbles(pair) : low_nibbles(pair);
    if (f.bits == 5) return joined(code, vld1q_u8(w), 4 - (int)group, 0x10);
    if (f.bits == 6) return joined(code, vld1q_u8(w + (4 + half) * LINE), 4 - 2 * (int)line, 0x30);
    return f.table ? vreinterpretq_u8_s8(vqtbl1q_s8(table, code)) : code;
}

FR_INLINE void unpack_run(format f, run_values values, const uint8_t *w, int8x16_t table, bool pair) {
    FR_UNROLLED_FOR (size_t i = 0; i < PARTS; i++) {
        FR_UNROLLED_FOR (size_t g = 0; g < RUN / 4; g++) values[i][g] = unpack(f, w + 16 * i, g, table);
        if (!pair) continue;
        FR_UNROLLED_FOR (size_t g = 0; g < RUN / 4; g += 2) {
            uint32x4_t a = vreinterpretq_u32_u8(values[i][g]), b = vreinterpretq_u32_u8(values[i][g + 1]);
            values[i][g] = vreinterpretq_u8_u32(vzip1q_u32(a, b));
            values[i][g + 1] = vreinterpretq_u8_u32(vzip2q_u32(a, b));
        }
    }
}

FR_INLINE void start_sums(format f, row_sums sums, const int32_t *correction, bool pair) {
    int32x4_t from = vdupq_n_s32(0);
    if (f.offset) from = pair ? vcombine_s32(vld1_s32(correction), vld1_s32(correction)) : vld1q_dup_s32(correction);
    FR_UNROLLED_FOR (size_t i = 0; i < PARTS; i++) sums[0][i] = sums[1][i] = from;
}

/* Rearranges the sums of a pair of rows, so that each register has the sums of one row only. */
FR_INLINE void part_sums(row_sums sums) {
    FR_UNROLLED_FOR (size_t i = 0; i < PARTS; i++) {
        int32x4_t low = sums[0][i], high = sums[1][i];
        sums[0][i] = vuzp1q_s32(low, high);
        sums[1][i] = vuzp2q_s32(low, high);
    }
}

/* Computes the sums of run `run` for row r, or for rows r and r + 1. `feature` is the first feature's index in the
 * tile. */
FR_INLINE void sum_run(format f, row_sums sums, run_values values, const chunk *c, size_t run, size_t r, size_t feature,
                       bool pair) {
    const panel *p = &c->panel;
    row_sums second;
    start_sums(f, sums, p->correction[run][0] + r, pair);
    multiply(f, sums, values, 0, p->q[run][r], pair);
    if (f.halves) start_sums(f, second, p->correction[run][1] + r, pair);
    multiply(f, f.halves ? second : sums, values, 1, p->q[run][r], pair);
    if (pair) part_sums(sums);
    if (!f.halves) return;
    if (pair) part_sums(second);
    FR_UNROLLED_FOR (size_t i = 0; i < PARTS; i++) {
        int32x4_t a = vld1q_s32(c->scales.halves[run][0] + feature + 4 * i);
        int32x4_t b = vld1q_s32(c->scales.halves[run][1] + feature + 4 * i);
        sums[0][i] = vmlaq_s32(vmulq_s32(sums[0][i], a), second[0][i], b);
        if (pair) sums[1][i] = vmlaq_s32(vmulq_s32(sums[1][i], a), second[1][i], b);
    }
}

/* Adds the sums of a run to the chains of a row, multiplied by the run's factors. */
FR_INLINE void join(format f, float *chain, const int32x4_t *sums, const float32x4_t *d, const float32x4_t *m, float xd,
                    float dsum) {
    FR_UNROLLED_FOR (size_t i = 0; i < PARTS; i++) {
        float32x4_t acc = vld1q_f32(chain + 4 * i);
        acc = vfmaq_f32(acc, vmulq_n_f32(d[i], xd), vcvtq_f32_s32(sums[i]));
        if (f.mins && !f.halves) acc = vfmaq_n_f32(acc, m[i], dsum);
        vst1q_f32(chain + 4 * i, acc);
    }
}

/* Adds the contribution of the minima of a run's halves to the chains of row r. */
FR_INLINE void join_minima(float *chain, const float32x4_t *m, const chunk *c, size_t run, size_t r, size_t feature) {
    const panel *p = &c->panel;
    FR_UNROLLED_FOR (size_t i = 0; i < PARTS; i++) {
        int32x4_t first = vld1q_s32(c->scales.minima[run][0] + feature + 4 * i);
        int32x4_t second = vld1q_s32(c->scales.minima[run][1] + feature + 4 * i);
        int32x4_t sums = vmulq_n_s32(first, p->correction[run][0][r]);
        sums = vmlaq_n_s32(sums, second, p->correction[run][1][r]);
        float32x4_t acc = vld1q_f32(chain + 4 * i);
        vst1q_f32(chain + 4 * i, vfmaq_f32(acc, vmulq_n_f32(m[i], p->d[run][r]), vcvtq_f32_s32(sums)));
    }
}

/* Adds a run whose halves have float scales. The sums of the first half are added to the chains before those of the
 * second half. */
FR_INLINE void add_apart(format f, float (*chains)[FEATURES], run_values values, const float32x4_t *d,
                         const float32x4_t *m, const chunk *c, size_t run, size_t r, size_t feature, bool pair) {
    const panel *p = &c->panel;
    FR_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
        row_sums sums;
        start_sums(f, sums, NULL, pair);
        multiply(f, sums, values, half, p->q[run][r], pair);
        if (pair) part_sums(sums);
        join(f, chains[r] + feature, sums[0], half ? m : d, m, p->d[run][r], 0);
        if (pair) join(f, chains[r + 1] + feature, sums[1], half ? m : d, m, p->d[run][r + 1], 0);
    }
}

/* Adds the products of run `run` to the chains of row r, or of rows r and r + 1. */
FR_INLINE void add_run(format f, float (*chains)[FEATURES], run_values values, const float32x4_t *d,
                       const float32x4_t *m, const chunk *c, size_t run, size_t r, size_t feature, bool pair) {
    const panel *p = &c->panel;
    row_sums sums;
    if (f.apart) {
        add_apart(f, chains, values, d, m, c, run, r, feature, pair);
        return;
    }
    sum_run(f, sums, values, c, run, r, feature, pair);
    join(f, chains[r] + feature, sums[0], d, m, p->d[run][r], p->dsum[run][r]);
    if (pair) join(f, chains[r + 1] + feature, sums[1], d, m, p->d[run][r + 1], p->dsum[run][r + 1]);
    if (!f.halves || !f.mins) return;
    join_minima(chains[r] + feature, m, c, run, r, feature);
    if (pair) join_minima(chains[r + 1] + feature, m, c, run, r + 1, feature);
}

/* ----------------------------------------------------------------------------------------------------- a whole call */

/* Adds the products of a chunk to the chains of all rows, for 4 * PARTS features of a tile, from `feature` on. w points
 * to the chunk's first block. */
FR_INLINE void walk(format f, float (*chains)[FEATURES], const chunk *c, const uint8_t *w, size_t feature, size_t runs,
                    size_t rows, bool few, bool pairs) {
    size_t together = pairs ? 2 : 1;
    size_t stride = f.columns == RUN ? f.block : (f.block - f.header) / (f.columns / RUN);
    int8x16_t table = f.table ? vld1q_s8(fr_code_values(f.type)) : vdupq_n_s8(0);
    w += f.header + 4 * feature;
    for (size_t run = 0; run < runs; run++, w += stride) {
        run_values values;
        float32x4_t d[PARTS], m[PARTS];
        unpack_run(f, values, w, table, pairs);
        FR_UNROLLED_FOR (size_t i = 0; i < PARTS; i++) {
            d[i] = vld1q_f32(c->scales.d[run] + feature + 4 * i);
            m[i] = f.mins || f.apart ? vld1q_f32(c->scales.m[run] + feature + 4 * i) : d[i];
        }
        if (few) {
            FR_UNROLLED_FOR (size_t r = 0; r < rows; r += together)
                add_run(f, chains, values, d, m, c, run, r, feature, pairs);
        } else {
            for (size_t r = 0; r < rows; r += together) add_run(f, chains, values, d, m, c, run, r, feature, pairs);
        }
    }
}

/* Computes `rows` rows from `row` on with a group of tiles from tile `first` on. few: the caller passes a constant as
 * `rows`. If rows are taken in pairs and their number is odd, the last pair has an extra row, whose result is not
 * stored. */
FR_INLINE void compute(format f, const fr_matmul_block *job, chunk *c, size_t first, size_t row, size_t rows, bool few,
                       bool pairs) {
    size_t left = (job->features + FEATURES - 1) / FEATURES - first, tiles = left < GROUP ? left : GROUP;
    size_t most = f.columns == RUN ? RUNS : f.columns / RUN; /* runs of a chunk */
    size_t tile = f.block * (job->cols / f.columns);
    float chains[GROUP][ROWS][FEATURES];
    memset(chains, 0, tiles * sizeof chains[0]);
    for (size_t run = 0; run < job->cols / RUN; run += most) {
        size_t runs = job->cols / RUN - run < most ? job->cols / RUN - run : most;
        pack_panel(f, &c->panel, job->x + row * job->x_stride + run, job->x_stride, rows, runs, pairs);
        for (size_t t = 0; t < tiles; t++) {
            const uint8_t *w = job->w + (first + t) * tile + run * RUN / f.columns * f.block;
            load_scales(f, &c->scales, w, runs);
            for (size_t feature = 0; feature < FEATURES; feature += 4 * PARTS)
                walk(f, chains[t], c, w, feature, runs, rows, few, pairs);
        }
    }
    for (size_t t = 0; t < tiles; t++) {
        size_t feature = (first + t) * FEATURES, rest = job->features - feature;
        size_t kept = rest < FEATURES ? rest : FEATURES;
        for (size_t r = 0; r < rows; r++)
            memcpy(job->y + (row + r) * job->y_stride + feature, chains[t][r], kept * sizeof(float));
    }
}

/* Multiplies all rows with one group of tiles, then with the next group. For each group, the rows are divided evenly
 * into as few passes as possible, of up to ROWS rows each. */
FR_INLINE void matmul(level l, format f, fr_matmul_block job) {
    chunk c = {0};
    if (f.bits == 8 && !l.all_bytes) f.offset = 0;
    for (size_t first = 0; first * FEATURES < job.features; first += GROUP) {
        size_t tiles = (job.rows + ROWS - 1) / ROWS;
        for (size_t row = 0, rows; row < job.rows; row += rows, tiles--) {
            rows = (job.rows - row + tiles - 1) / tiles;
            switch (rows) {
            case 1: compute(f, &job, &c, first, row, 1, true, false); break;
            case 2: compute(f, &job, &c, first, row, 2, true, l.pairs); break;
            case 3: compute(f, &job, &c, first, row, 3, true, l.pairs); break;
            case 4: compute(f, &job, &c, first, row, 4, true, l.pairs); break;
            default: compute(f, &job, &c, first, row, rows, false, l.pairs);
            }
        }
    }
}

/* Defines the kernel of each type. */
#define FR_BLOCK_KERNEL(id, type, bits, runs, head, level)        \
    void fr_matmul_##type##_##level(const fr_matmul_block *job) { \
        matmul(level, type, *job);                                \
    }
#define FR_BLOCK_KERNELS(level) FR_TILE_TYPES(FR_BLOCK_KERNEL, level)

#endif
