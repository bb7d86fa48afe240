/* Multiplies FP8 weights in scaled blocks by rows, with the 16 partial sums in 4 registers. The contract is
 * fr_matmul_fp8_fn in kernels.h.
 *
 * If a code's sign, exponent and fraction are moved to their positions in a float16, this float16 is 2^-8 times the
 * code's value, denormals included. It is converted to float32 and multiplied by 256 times the scale. The product is
 * the weight, rounded once.
 *
 * Up to 4 rows use weights directly as they are decoded, in tiles of 2 outputs x up to 3 rows, or of 1 output x 4 rows.
 * Such a tile takes at most 24 registers of sums. More rows use a panel of decoded weights: GROUP outputs by CHUNK
 * columns, in the L1 cache. BATCH rows are multiplied with a panel, three at a time; their sums are kept in memory
 * between chunks. The order of additions is the same in every case. */
#include "kernels/simd_neon.h"
#include "quant/fp8.h"

enum {
    FEATURES = 2,
    ROWS = 4,
    GROUP = 8,   /* outputs in a panel */
    CHUNK = 512, /* columns in a panel */
    BATCH = 48,  /* rows that are multiplied with a panel before the next panel is decoded */
};

/* The 16 partial sums of each row and output, in four registers each. */
typedef float32x4_t sums[ROWS][FEATURES][4];

/* Returns o, or the index of the last output if o is past the end. Outputs past the end are computed as copies of the
 * last one and are not stored. */
FR_INLINE size_t output(const fr_matmul_fp8 *job, size_t o) {
    return o < job->features ? o : job->features - 1;
}

FR_INLINE const uint8_t *weight_row(const fr_matmul_fp8 *job, size_t o) {
    return job->w + output(job, o) * job->w_stride;
}

FR_INLINE float32x4_t block_scale(const fr_matmul_fp8 *job, size_t o, size_t block) {
    const float *row = job->scales + (job->first + output(job, o)) / FR_FP8_BLOCK * job->scale_stride;
    return vdupq_n_f32(row[block] * 256.0f);
}

/* Returns 2^-8 times the values of 8 codes, as float16. Extending a code's sign sets bit 15 and also bit 14, so bit 14
 * is cleared. */
FR_INLINE float16x8_t halves_of(int8x8_t codes) {
    uint16x8_t wide = vreinterpretq_u16_s16(vshll_n_s8(codes, 7));
    return vreinterpretq_f16_u16(vbicq_u16(wide, vdupq_n_u16(0x4000)));
}

FR_INLINE void decode(const uint8_t *codes, float32x4_t scale, float32x4_t *w) {
    int8x16_t bytes = vreinterpretq_s8_u8(vld1q_u8(codes));
    float16x8_t low = halves_of(vget_low_s8(bytes)), high = halves_of(vget_high_s8(bytes));
    w[0] = vmulq_f32(vcvt_f32_f16(vget_low_f16(low)), scale);
    w[1] = vmulq_f32(vcvt_f32_f16(vget_high_f16(low)), scale);
    w[2] = vmulq_f32(vcvt_f32_f16(vget_low_f16(high)), scale);
    w[3] = vmulq_f32(vcvt_f32_f16(vget_high_f16(high)), scale);
}

/* Multiplies 16 columns. Only the first `count` columns are used. Row r begins at x + r * x_stride. */
FR_INLINE void step(sums p, float32x4_t (*w)[4], const float *x, size_t x_stride, size_t rows, size_t features,
                    size_t count) {
    FR_UNROLLED_FOR (size_t c = 0; c < 4; c++) {
        FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
            float32x4_t values = vld1q_f32(x + r * x_stride + 4 * c);
            FR_UNROLLED_FOR (size_t o = 0; o < features; o++) {
                float32x4_t sum = vfmaq_f32(p[r][o][c], w[o][c], values);
                p[r][o][c] = count < 16 ? vbslq_f32(lanes_below(4 * c, count), sum, p[r][o][c]) : sum;
            }
        }
    }
}

/* --------------------------------------------------------------------------------------------------------- few rows */

/* Multiplies the columns of one block of scales, from `from` on. */
FR_INLINE void direct_block(const fr_matmul_fp8 *job, sums p, size_t feature, size_t from, size_t rows,
                            size_t features) {
    const float *x = job->x;
    const uint8_t *codes[FEATURES];
    float32x4_t scale[FEATURES], w[FEATURES][4];
    size_t i = from, end = from + FR_FP8_BLOCK < job->cols ? from + FR_FP8_BLOCK : job->cols;
    FR_UNROLLED_FOR (size_t o = 0; o < features; o++) {
        codes[o] = weight_row(job, feature + o);
        scale[o] = block_scale(job, feature + o, from / FR_FP8_BLOCK);
    }
    for (; i + 16 <= end; i += 16) {
        FR_UNROLLED_FOR (size_t o = 0; o < features; o++) decode(codes[o] + i, scale[o], w[o]);
        step(p, w, x + i, job->x_stride, rows, features, 16);
    }
    if (i == end) return;
    float values[ROWS][16] = {{0}};
    uint8_t last[16] = {0};
    for (size_t r = 0; r < rows; r++) memcpy(values[r], x + r * job->x_stride + i, (end - i) * sizeof *x);
    for (size_t o = 0; o < features; o++) decode(memcpy(last, codes[o] + i, end - i), scale[o], w[o]);
    step(p, w, values[0], 16, rows, features, end - i);
}

FR_INLINE void direct(const fr_matmul_fp8 *job, size_t rows, size_t features) {
    for (size_t feature = 0; feature < job->features; feature += features) {
        sums p;
        FR_UNROLLED_FOR (size_t r = 0; r < rows; r++)
            FR_UNROLLED_FOR (size_t o = 0; o < features; o++)
                FR_UNROLLED_FOR (size_t c = 0; c < 4; c++) p[r][o][c] = vdupq_n_f32(0);
        for (size_t i = 0; i < job->cols; i += FR_FP8_BLOCK) direct_block(job, p, feature, i, rows, features);
        FR_UNROLLED_FOR (size_t r = 0; r < rows; r++)
            FR_UNROLLED_FOR (size_t o = 0; o < features; o++)
                if (feature + o < job->features) job->y[r * job->y_stride + feature + o] = sum16(p[r][o]);
    }
}

/* -------------------------------------------------------------------------------------------------------- many rows */

/* Holds the decoded weights of a chunk of columns, for a group of outputs. */
typedef struct panel {
    float w[GROUP][CHUNK];
    float sums[BATCH][GROUP][16]; /* partial sums of a batch's rows, kept between chunks */
} panel;

/* Decodes `count` columns from `from` on into the panel. If the last step has fewer than 16 columns, the missing
 * columns are zeros. */
FR_INLINE void fill(const fr_matmul_fp8 *job, panel *at, size_t group, size_t from, size_t count) {
    for (size_t o = 0; o < GROUP && group + o < job->features; o++) {
        const uint8_t *codes = weight_row(job, group + o) + from;
        for (size_t i = 0; i < count; i += 16) {
            float32x4_t w[4], scale = block_scale(job, group + o, (from + i) / FR_FP8_BLOCK);
            uint8_t last[16] = {0};
            const uint8_t *sixteen = i + 16 <= count ? codes + i : memcpy(last, codes + i, count - i);
            decode(sixteen, scale, w);
            FR_UNROLLED_FOR (size_t c = 0; c < 4; c++) vst1q_f32(at->w[o] + i + 4 * c, w[c]);
        }
    }
}

/* Multiplies rows of a batch, from `row` on, with FEATURES outputs of the group, from `o` on, over a chunk of
 * columns. */
FR_INLINE void pass(const fr_matmul_fp8 *job, panel *at, const float *x, size_t row, size_t o, size_t from,
                    size_t count, size_t rows) {
    sums p;
    float32x4_t w[FEATURES][4];
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++)
        FR_UNROLLED_FOR (size_t f = 0; f < FEATURES; f++)
            FR_UNROLLED_FOR (size_t c = 0; c < 4; c++)
                p[r][f][c] = from ? vld1q_f32(at->sums[row + r][o + f] + 4 * c) : vdupq_n_f32(0);
    for (size_t i = 0; i < count; i += 16) {
        size_t used = count - i < 16 ? count - i : 16;
        float values[ROWS][16];
        FR_UNROLLED_FOR (size_t f = 0; f < FEATURES; f++)
            FR_UNROLLED_FOR (size_t c = 0; c < 4; c++) w[f][c] = vld1q_f32(at->w[o + f] + i + 4 * c);
        if (used == 16) {
            step(p, w, x + i, job->x_stride, rows, FEATURES, 16);
            continue;
        }
        for (size_t r = 0; r < rows; r++) memcpy(values[r], x + r * job->x_stride + i, used * sizeof *x);
        step(p, w, values[0], 16, rows, FEATURES, used);
    }
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++)
        FR_UNROLLED_FOR (size_t f = 0; f < FEATURES; f++)
            FR_UNROLLED_FOR (size_t c = 0; c < 4; c++) vst1q_f32(at->sums[row + r][o + f] + 4 * c, p[r][f][c]);
}

/* Multiplies all rows of a batch with the panel, three at a time. */
FR_INLINE void pass_rows(const fr_matmul_fp8 *job, panel *at, size_t batch, size_t rows, size_t from, size_t count) {
    size_t tiles = (rows + 2) / 3;
    for (size_t row = 0, taken; row < rows; row += taken, tiles--) {
        const float *x = job->x + (batch + row) * job->x_stride + from;
        taken = (rows - row + tiles - 1) / tiles;
        for (size_t o = 0; o < GROUP; o += FEATURES) {
            if (taken == 1)
                pass(job, at, x, row, o, from, count, 1);
            else if (taken == 2)
                pass(job, at, x, row, o, from, count, 2);
            else
                pass(job, at, x, row, o, from, count, 3);
        }
    }
}

static void by_panels(const fr_matmul_fp8 *job) {
    panel at;
    memset(at.w, 0, sizeof at.w); /* outputs past the end are computed too, so their weights must be numbers */
    for (size_t group = 0; group < job->features; group += GROUP)
        for (size_t batch = 0, rows; batch < job->rows; batch += rows) {
            rows = job->rows - batch < BATCH ? job->rows - batch : BATCH;
            for (size_t from = 0, count; from < job->cols; from += count) {
                count = job->cols - from < CHUNK ? job->cols - from : CHUNK;
                fill(job, &at, group, from, count);
                pass_rows(job, &at, batch, rows, from, count);
            }
            for (size_t r = 0; r < rows; r++)
                for (size_t o = 0; o < GROUP && group + o < job->features; o++) {
                    const float *p = at.sums[r][o];
                    const float32x4_t quarters[4] = {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8),
                                                     vld1q_f32(p + 12)};
                    job->y[(batch + r) * job->y_stride + group + o] = sum16(quarters);
                }
        }
}

void fr_matmul_fp8_neon(const fr_matmul_fp8 *of) {
    const fr_matmul_fp8 job = *of;
    switch (job.rows) {
    case 0: break;
    case 1: direct(&job, 1, 2); break;
    case 2: direct(&job, 2, 2); break;
    case 3: direct(&job, 3, 2); break;
    case ROWS: direct(&job, ROWS, 1); break;
    default: by_panels(&job);
    }
}
