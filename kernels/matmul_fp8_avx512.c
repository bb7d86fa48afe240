/* Multiplies FP8 weights in scaled blocks by rows, with the 16 partial sums in one register. The contract is
 * fr_matmul_fp8_fn in kernels.h.
 *
 * If a code's sign, exponent and fraction are moved to their positions in a float16, this float16 is 2^-8 times the
 * code's value, denormals included. It is converted to float32, and its product with 256 times the scale is the weight,
 * rounded once. (Moving the fields directly into a float32, which is then 2^-120 times the value, takes two
 * instructions fewer. But then denormal codes would become denormal factors, for which some processors take a hundred
 * cycles.)
 *
 * Up to 24 rows use weights directly as they are decoded, in tiles of up to 6 rows by 4 outputs or of up to 8 rows by 3
 * outputs. More rows use a panel of decoded weights: GROUP outputs by CHUNK columns, in the L1 cache. BATCH rows are
 * multiplied with a panel, six at a time, while the codes of the next panel are prefetched. The rows' sums are kept in
 * memory between chunks. The order of additions is the same in every case. */
#include "kernels/prefetch_x86.h"
#include "kernels/simd_avx512.h"
#include "quant/fp8.h"

#include <string.h>

enum {
    FEATURES = 4,
    FEW = 24,           /* largest number of rows that use weights directly as they are decoded */
    DIRECT = 8,         /* largest number of rows in a tile that uses weights directly */
    ROWS = 6,           /* rows that are multiplied with a panel together */
    GROUP = 8,          /* outputs in a panel */
    CHUNK = 512,        /* columns in a panel */
    BATCH = 48,         /* rows that are multiplied with a panel before the next panel is decoded */
    STREAMED = 1 << 17, /* a call with at least this many bytes of weights prefetches */
};

typedef __m512 sums[DIRECT][FEATURES];

/* Returns o, or the index of the last output if o is past the end. Outputs past the end are computed as copies of the
 * last one and are not stored. */
FR_INLINE size_t output(const fr_matmul_fp8 *job, size_t o) {
    return o < job->features ? o : job->features - 1;
}

FR_INLINE const uint8_t *weight_row(const fr_matmul_fp8 *job, size_t o) {
    return job->w + output(job, o) * job->w_stride;
}

FR_INLINE __m512 block_scale(const fr_matmul_fp8 *job, size_t o, size_t block) {
    const float *row = job->scales + (job->first + output(job, o)) / FR_FP8_BLOCK * job->scale_stride;
    return _mm512_set1_ps(row[block] * 256.0f);
}

/* Decodes the codes in the lanes of the mask to weights; the other lanes are 0. Extending a code's sign sets bit 15 and
 * also bit 14, so bit 14 is cleared. */
FR_INLINE __m512 decode(const uint8_t *codes, __m512 scale, __mmask16 mask) {
    __m256i wide = _mm256_cvtepi8_epi16(_mm_maskz_loadu_epi8(mask, codes));
    __m256i halves = _mm256_and_si256(_mm256_slli_epi16(wide, 7), _mm256_set1_epi16((short)0xbfff));
    return _mm512_mul_ps(_mm512_cvtph_ps(halves), scale);
}

/* Multiplies up to 16 columns; row r begins at x + r * x_stride. */
FR_INLINE void step(sums p, const __m512 *w, const float *x, size_t x_stride, size_t rows, size_t features,
                    __mmask16 mask) {
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
        __m512 values = load_lanes(x + r * x_stride, mask);
        FR_UNROLLED_FOR (size_t o = 0; o < features; o++) p[r][o] = _mm512_mask3_fmadd_ps(w[o], values, p[r][o], mask);
    }
}

/* --------------------------------------------------------------------------------------------------------- few rows */

/* Multiplies the columns of one block of scales, from `from` on. */
FR_INLINE void direct_block(const fr_matmul_fp8 *job, sums p, const float *x, size_t feature, size_t from, size_t rows,
                            size_t features) {
    const uint8_t *codes[FEATURES];
    __m512 scale[FEATURES], w[FEATURES];
    size_t i = from, end = from + FR_FP8_BLOCK < job->cols ? from + FR_FP8_BLOCK : job->cols;
    FR_UNROLLED_FOR (size_t o = 0; o < features; o++) {
        codes[o] = weight_row(job, feature + o);
        scale[o] = block_scale(job, feature + o, from / FR_FP8_BLOCK);
    }
    for (; i + 16 <= end; i += 16) {
        FR_UNROLLED_FOR (size_t o = 0; o < features; o++) w[o] = decode(codes[o] + i, scale[o], 0xffff);
        step(p, w, x + i, job->x_stride, rows, features, 0xffff);
    }
    if (i == end) return;
    FR_UNROLLED_FOR (size_t o = 0; o < features; o++) w[o] = decode(codes[o] + i, scale[o], lanes(end - i));
    step(p, w, x + i, job->x_stride, rows, features, lanes(end - i));
}

static fr_prefetch_hint hint(const fr_matmul_fp8 *job) {
    return job->features * job->w_stride >= STREAMED ? fr_prefetch_hint_here() : FR_PREFETCH_NONE;
}

/* Computes a tile. While a block of columns is computed, an equal number of bytes of the next outputs is prefetched,
 * in memory order. */
FR_INLINE void direct_tile(const fr_matmul_fp8 *job, fr_prefetch_hint how, size_t row, size_t feature, size_t rows,
                           size_t features) {
    sums p;
    const float *x = job->x + row * job->x_stride;
    const uint8_t *next = weight_row(job, feature + features);
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++)
        FR_UNROLLED_FOR (size_t o = 0; o < FEATURES; o++) p[r][o] = _mm512_setzero_ps();
    for (size_t i = 0; i < job->cols; i += FR_FP8_BLOCK, next += features * FR_FP8_BLOCK) {
        fr_prefetch(how, next, features * FR_FP8_BLOCK);
        direct_block(job, p, x, feature, i, rows, features);
    }
    __mmask8 stored = (__mmask8)(lanes(job->features - feature) & lanes(features));
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++)
        _mm_mask_storeu_ps(job->y + (row + r) * job->y_stride + feature, stored,
                           sum16_of_4(p[r][0], p[r][1], p[r][2], p[r][3]));
}

/* Computes all rows, divided evenly into as few tiles as possible. Tiles after the first one find the weights in the L1
 * cache. */
static void direct(const fr_matmul_fp8 *job) {
    size_t tiles = (job->rows + DIRECT - 1) / DIRECT, most = (job->rows + tiles - 1) / tiles;
    size_t features = most > 6 ? 3 : 4;
    fr_prefetch_hint first = hint(job);
    for (size_t feature = 0; feature < job->features; feature += features) {
        fr_prefetch_hint how = first;
        for (size_t row = 0, left = tiles, rows; left > 0; row += rows, left--, how = FR_PREFETCH_NONE) {
            rows = (job->rows - row + left - 1) / left;
            switch (rows) {
            case 1: direct_tile(job, how, row, feature, 1, 4); break;
            case 2: direct_tile(job, how, row, feature, 2, 4); break;
            case 3: direct_tile(job, how, row, feature, 3, 4); break;
            case 4: direct_tile(job, how, row, feature, 4, 4); break;
            case 5: direct_tile(job, how, row, feature, 5, 4); break;
            case 6:
                if (features == 4)
                    direct_tile(job, how, row, feature, 6, 4);
                else
                    direct_tile(job, how, row, feature, 6, 3);
                break;
            case 7: direct_tile(job, how, row, feature, 7, 3); break;
            default: direct_tile(job, how, row, feature, DIRECT, 3);
            }
        }
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
            __m512 scale = block_scale(job, group + o, (from + i) / FR_FP8_BLOCK);
            _mm512_storeu_ps(at->w[o] + i, decode(codes + i, scale, lanes(count - i)));
        }
    }
}

/* Describes the codes of the next panel: outputs from `group` on, columns from `from` on. These codes are prefetched
 * while the current panel is used. Each call of `pass` prefetches the codes of two outputs. The call prefetches one
 * cache line of each of the two after every 64 columns that it has multiplied, because many lines at once would keep
 * the rows waiting. */
typedef struct coming {
    fr_prefetch_hint how;
    size_t group, from, output;
} coming;

FR_INLINE void prefetch_line(const fr_matmul_fp8 *job, const coming *next, size_t at) {
    FR_UNROLLED_FOR (size_t o = 0; o < 2; o++)
        fr_prefetch(next->how, weight_row(job, next->group + next->output + o) + next->from + at, 64);
}

/* Multiplies rows of a batch, from `row` on, with FEATURES outputs of the group, from `o` on, over a chunk of
 * columns. */
FR_INLINE void pass(const fr_matmul_fp8 *job, panel *at, const coming *next, const float *x, size_t row, size_t o,
                    size_t from, size_t count, size_t rows) {
    sums p;
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++)
        FR_UNROLLED_FOR (size_t f = 0; f < FEATURES; f++)
            p[r][f] = from ? _mm512_loadu_ps(at->sums[row + r][o + f]) : _mm512_setzero_ps();
    for (size_t i = 0; i < count; i += 16) {
        __m512 w[FEATURES];
        if (i % 64 == 0 && next->output < GROUP) prefetch_line(job, next, i);
        FR_UNROLLED_FOR (size_t f = 0; f < FEATURES; f++) w[f] = _mm512_loadu_ps(at->w[o + f] + i);
        if (count - i >= 16)
            step(p, w, x + i, job->x_stride, rows, FEATURES, 0xffff);
        else
            step(p, w, x + i, job->x_stride, rows, FEATURES, lanes(count - i));
    }
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++)
        FR_UNROLLED_FOR (size_t f = 0; f < FEATURES; f++) _mm512_storeu_ps(at->sums[row + r][o + f], p[r][f]);
}

/* Multiplies all rows of a batch with the panel. The rows are divided evenly into as few tiles as possible. */
FR_INLINE void pass_rows(const fr_matmul_fp8 *job, panel *at, coming next, size_t batch, size_t rows, size_t from,
                         size_t count) {
    size_t tiles = (rows + ROWS - 1) / ROWS;
    for (size_t row = 0, taken; row < rows; row += taken, tiles--) {
        const float *x = job->x + (batch + row) * job->x_stride + from;
        taken = (rows - row + tiles - 1) / tiles;
        for (size_t o = 0; o < GROUP; o += FEATURES, next.output += 2) switch (taken) {
            case 1: pass(job, at, &next, x, row, o, from, count, 1); break;
            case 2: pass(job, at, &next, x, row, o, from, count, 2); break;
            case 3: pass(job, at, &next, x, row, o, from, count, 3); break;
            case 4: pass(job, at, &next, x, row, o, from, count, 4); break;
            case 5: pass(job, at, &next, x, row, o, from, count, 5); break;
            default: pass(job, at, &next, x, row, o, from, count, ROWS);
            }
    }
}

static void by_panels(const fr_matmul_fp8 *job) {
    panel at;
    fr_prefetch_hint how = hint(job);
    memset(at.w, 0, sizeof at.w); /* outputs past the end are computed too, so their weights must be numbers */
    for (size_t group = 0; group < job->features; group += GROUP)
        for (size_t batch = 0, rows; batch < job->rows; batch += rows) {
            rows = job->rows - batch < BATCH ? job->rows - batch : BATCH;
            for (size_t from = 0, count; from < job->cols; from += count) {
                count = job->cols - from < CHUNK ? job->cols - from : CHUNK;
                bool last = from + count == job->cols;
                coming next = {how, last ? group + GROUP : group, last ? 0 : from + count, 0};
                fill(job, &at, group, from, count);
                pass_rows(job, &at, next, batch, rows, from, count);
            }
            for (size_t r = 0; r < rows; r++)
                for (size_t o = 0; o < GROUP && group + o < job->features; o++)
                    job->y[(batch + r) * job->y_stride + group + o] = sum16(_mm512_loadu_ps(at.sums[r][o]));
        }
}

void fr_matmul_fp8_avx512(const fr_matmul_fp8 *of) {
    const fr_matmul_fp8 job = *of;
    if (job.rows == 0) return;
    if (job.rows <= FEW)
        direct(&job);
    else
        by_panels(&job);
}
