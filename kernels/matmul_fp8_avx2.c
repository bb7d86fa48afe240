/* Multiplies FP8 weights in scaled blocks by rows, with the 16 partial sums in two registers. The contract is
 * fr_matmul_fp8_fn in kernels.h.
 *
 * If a code's sign, exponent and fraction are moved into the upper half of a float32, this float is 2^-120 times the
 * code's value. Its product with 2^120 times the scale is the weight, rounded once. A denormal code becomes a denormal
 * factor. No precision is lost, but processors that are slow with denormals take longer; one or two of the 10,000
 * weights of a block are denormal. (Converting through float16 would avoid denormals. But on Zen 3 one row would take
 * 13.0 us instead of 9.4, with 64 outputs of 2048 columns in L2.)
 *
 * Up to 6 rows use weights directly as they are decoded, in tiles of 2 outputs x 1 row, or of 1 output x 2 to 4 rows.
 * Their columns are taken in chunks that fit the L1 cache, and sums are kept in memory between chunks. More rows use a
 * panel of decoded weights: GROUP outputs by CHUNK columns, in the L1 cache. BATCH rows are multiplied with a panel,
 * three at a time, while the codes of the next panel are prefetched. The order of additions is the same in every
 * case. */
#include "kernels/prefetch_x86.h"
#include "kernels/simd_avx2.h"
#include "quant/fp8.h"

enum {
    FEATURES = 2,
    ROWS = 4,
    DIRECT = 6,         /* largest number of rows that use weights directly as they are decoded */
    TOGETHER = 16,      /* outputs that are computed with a chunk of columns, one after the other, before the next chunk
                         * begins */
    GROUP = 8,          /* outputs in a panel */
    CHUNK = 512,        /* columns in a panel */
    BATCH = 48,         /* rows that are multiplied with a panel before the next panel is decoded */
    STREAMED = 1 << 20, /* a call with at least this many bytes of weights prefetches */
};

/* The 16 partial sums of each row and output, in two registers each. */
typedef __m256 sums[ROWS][FEATURES][2];

/* Returns o, or the index of the last output if o is past the end. Outputs past the end are computed as copies of the
 * last one and are not stored. */
FR_INLINE size_t output(const fr_matmul_fp8 *job, size_t o) {
    return o < job->features ? o : job->features - 1;
}

FR_INLINE const uint8_t *weight_row(const fr_matmul_fp8 *job, size_t o) {
    return job->w + output(job, o) * job->w_stride;
}

FR_INLINE const float *scale_row(const fr_matmul_fp8 *job, size_t o) {
    return job->scales + (job->first + output(job, o)) / FR_FP8_BLOCK * job->scale_stride;
}

/* Returns a block's scale times 2^120, because halves_of gives 2^-120 times the value of a code. */
FR_INLINE __m256 wide_scale(float scale) {
    return _mm256_set1_ps(scale * 0x1p120f);
}

/* Returns the upper halves of 16 floats that are 2^-120 times the values of 16 codes. In the low 128-bit lane, words 0
 * to 3 belong to columns 0 to 3, and words 4 to 7 to columns 8 to 11. The high lane has columns 4 to 7 and 12 to 15 in
 * the same way. The fields are shifted right by 4 by taking the upper half of a multiplication, because the port of
 * multiplications is less busy than that of shifts. The shift copies a code's sign into four bits too many, which are
 * masked off. */
FR_INLINE __m256i halves_of(const uint8_t *codes) {
    const __m256i places = _mm256_setr_epi8(-1, 0, -1, 1, -1, 2, -1, 3, -1, 8, -1, 9, -1, 10, -1, 11, /* a lane */
                                            -1, 4, -1, 5, -1, 6, -1, 7, -1, 12, -1, 13, -1, 14, -1, 15);
    __m256i both = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)codes));
    __m256i words = _mm256_mulhi_epi16(_mm256_shuffle_epi8(both, places), _mm256_set1_epi16(1 << 12));
    return _mm256_and_si256(words, _mm256_set1_epi16((short)0x87f0));
}

/* Returns 8 of the codes of halves_of as weights; h selects the first 8 or the second 8. */
FR_INLINE __m256 decode(__m256i halves, size_t h, __m256 scale) {
    __m256i zero = _mm256_setzero_si256();
    __m256i bits = h ? _mm256_unpackhi_epi16(zero, halves) : _mm256_unpacklo_epi16(zero, halves);
    return _mm256_mul_ps(_mm256_castsi256_ps(bits), scale);
}

FR_INLINE __m256 kept(__m256 old, __m256 sum, size_t h, size_t count) {
    return count == 16 ? sum : _mm256_blendv_ps(old, sum, lane_mask((int)count - 8 * (int)h));
}

/* Multiplies 16 columns of decoded weights. Only the first `count` columns are used. Row r begins at x + r * x_stride.
 * Both halves of the columns are multiplied with a row before the next row. If each half had a loop of its own,
 * compilers would keep a pointer for each half and run out of registers. */
FR_INLINE void step(sums p, __m256 (*w)[2], const float *x, size_t x_stride, size_t rows, size_t features,
                    size_t count) {
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
        const float *row = x + r * x_stride;
        FR_UNROLLED_FOR (size_t h = 0; h < 2; h++) {
            __m256 values = _mm256_loadu_ps(row + 8 * h);
            FR_UNROLLED_FOR (size_t o = 0; o < features; o++)
                p[r][o][h] = kept(p[r][o][h], _mm256_fmadd_ps(w[o][h], values, p[r][o][h]), h, count);
        }
    }
}

static fr_prefetch_hint hint(const fr_matmul_fp8 *job) {
    return job->features * job->w_stride >= STREAMED ? fr_prefetch_hint_here() : FR_PREFETCH_NONE;
}

/* --------------------------------------------------------------------------------------------------------- few rows */

/* Multiplies 16 columns from i on. */
FR_INLINE void direct_step(sums p, const uint8_t *const *codes, const __m256 *scale, size_t i, const float *x,
                           size_t x_stride, size_t rows, size_t features, size_t count) {
    __m256 w[FEATURES][2];
    FR_UNROLLED_FOR (size_t o = 0; o < features; o++) {
        __m256i halves = halves_of(codes[o] + i);
        w[o][0] = decode(halves, 0, scale[o]);
        w[o][1] = decode(halves, 1, scale[o]);
    }
    step(p, w, x, x_stride, rows, features, count);
}

/* Describes columns from..to - 1 of a tile. Before these columns are multiplied, `waiting` holds the sums over earlier
 * columns. Afterwards `waiting` holds the sums up to column `to`; at the end of the row the sums become outputs
 * instead. While a block of columns is computed, an equal number of bytes of the next tile is prefetched. */
typedef struct tile {
    size_t row, feature, from, to;
    float (*waiting)[16]; /* [features][rows] the rows of an output are side by side */
    fr_prefetch_hint how;
} tile;

/* Multiplies the tile's whole steps of 16 columns; returns the first column after them. */
FR_INLINE size_t whole_steps(const fr_matmul_fp8 *job, const tile *t, sums p, const uint8_t *const *codes,
                             const float *const *scales, size_t rows, size_t features) {
    const float *x = job->x + t->row * job->x_stride;
    const uint8_t *next = weight_row(job, t->feature + features) + t->from;
    size_t i = t->from, whole = t->from + (t->to - t->from) / 16 * 16;
    for (; i < whole; next += features * FR_FP8_BLOCK) {
        __m256 scale[FEATURES];
        size_t end = whole - i < FR_FP8_BLOCK ? whole : i + FR_FP8_BLOCK;
        FR_UNROLLED_FOR (size_t o = 0; o < features; o++) scale[o] = wide_scale(scales[o][i / FR_FP8_BLOCK]);
        fr_prefetch(t->how, next, features * FR_FP8_BLOCK);
        for (; i < end; i += 16) direct_step(p, codes, scale, i, x + i, job->x_stride, rows, features, 16);
    }
    return i;
}

FR_INLINE void last_step(const fr_matmul_fp8 *job, const tile *t, sums p, const uint8_t *const *codes,
                         const float *const *scales, size_t i, size_t rows, size_t features) {
    const float *x = job->x + t->row * job->x_stride + i;
    const uint8_t *copies[FEATURES];
    __m256 scale[FEATURES];
    float values[ROWS][16] = {0};
    uint8_t last[FEATURES][16] = {0};
    for (size_t r = 0; r < rows; r++) memcpy(values[r], x + r * job->x_stride, (t->to - i) * sizeof *x);
    for (size_t o = 0; o < features; o++) {
        copies[o] = memcpy(last[o], codes[o] + i, t->to - i);
        scale[o] = wide_scale(scales[o][i / FR_FP8_BLOCK]);
    }
    direct_step(p, copies, scale, 0, values[0], 16, rows, features, t->to - i);
}

FR_INLINE void direct_tile(const fr_matmul_fp8 *job, const tile *t, size_t rows, size_t features) {
    sums p;
    const uint8_t *codes[FEATURES];
    const float *scales[FEATURES];
    FR_UNROLLED_FOR (size_t o = 0; o < features; o++) {
        codes[o] = weight_row(job, t->feature + o);
        scales[o] = scale_row(job, t->feature + o);
        FR_UNROLLED_FOR (size_t r = 0; r < rows; r++)
            FR_UNROLLED_FOR (size_t h = 0; h < 2; h++)
                p[r][o][h] = t->from ? _mm256_loadu_ps(t->waiting[o * DIRECT + r] + 8 * h) : _mm256_setzero_ps();
    }
    size_t i = whole_steps(job, t, p, codes, scales, rows, features);
    if (i < t->to) last_step(job, t, p, codes, scales, i, rows, features);
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++)
        FR_UNROLLED_FOR (size_t o = 0; o < features; o++) {
            float *y = job->y + (t->row + r) * job->y_stride + t->feature + o, *waiting = t->waiting[o * DIRECT + r];
            FR_UNROLLED_FOR (size_t h = 0; h < 2; h++) _mm256_storeu_ps(waiting + 8 * h, p[r][o][h]);
            if (t->to == job->cols && t->feature + o < job->features) *y = sum16(p[r][o][0], p[r][o][1]);
        }
}

/* Computes all rows, divided evenly into as few tiles as possible. A chunk of each weight row stays in the L1 cache for
 * all tiles. */
FR_INLINE void direct_rows(const fr_matmul_fp8 *job, tile *t, float (*waiting)[16]) {
    size_t tiles = (job->rows + ROWS - 1) / ROWS;
    fr_prefetch_hint how = t->how;
    for (t->row = 0; tiles > 0; tiles--, t->how = FR_PREFETCH_NONE) {
        size_t rows = (job->rows - t->row + tiles - 1) / tiles;
        t->waiting = waiting + t->row;
        if (rows == 2)
            direct_tile(job, t, 2, 1);
        else if (rows == 3)
            direct_tile(job, t, 3, 1);
        else
            direct_tile(job, t, 4, 1);
        t->row += rows;
    }
    t->how = how;
}

/* Returns the number of columns in a chunk. It is chosen so that a chunk of the rows fits the L1 cache. A single row
 * takes all columns in one chunk, which reads the weights in memory order. */
static size_t chunk_length(const fr_matmul_fp8 *job) {
    size_t chunk = job->rows > ROWS ? 512 : 1024;
    return job->rows == 1 || job->cols <= chunk * 3 / 2 ? job->cols : chunk;
}

static void direct(const fr_matmul_fp8 *job) {
    size_t chunk = chunk_length(job), step = job->rows == 1 ? 2 : 1;
    float waiting[TOGETHER * DIRECT][16];
    tile t = {.how = hint(job), .waiting = waiting};
    for (size_t group = 0; group < job->features; group += TOGETHER)
        for (t.from = 0; t.from < job->cols; t.from = t.to) {
            t.to = t.from + chunk < job->cols ? t.from + chunk : job->cols;
            for (size_t o = 0; o < TOGETHER && group + o < job->features; o += step) {
                t.feature = group + o;
                if (job->rows == 1)
                    direct_tile(job, &t, 1, 2);
                else
                    direct_rows(job, &t, waiting + o * DIRECT);
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
            uint8_t last[16] = {0};
            __m256 scale = wide_scale(scale_row(job, group + o)[(from + i) / FR_FP8_BLOCK]);
            __m256i halves = halves_of(i + 16 <= count ? codes + i : memcpy(last, codes + i, count - i));
            _mm256_storeu_ps(at->w[o] + i, decode(halves, 0, scale));
            _mm256_storeu_ps(at->w[o] + i + 8, decode(halves, 1, scale));
        }
    }
}

/* Multiplies 16 columns of two decoded outputs. The first half of the columns comes before the second half, because 12
 * registers of sums leave few registers for weights. */
FR_INLINE void panel_step(sums p, const float *w, const float *x, size_t x_stride, size_t rows, size_t count) {
    FR_UNROLLED_FOR (size_t h = 0; h < 2; h++) {
        __m256 first = _mm256_loadu_ps(w + 8 * h), second = _mm256_loadu_ps(w + CHUNK + 8 * h);
        FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
            __m256 values = _mm256_loadu_ps(x + r * x_stride + 8 * h);
            p[r][0][h] = kept(p[r][0][h], _mm256_fmadd_ps(first, values, p[r][0][h]), h, count);
            p[r][1][h] = kept(p[r][1][h], _mm256_fmadd_ps(second, values, p[r][1][h]), h, count);
        }
    }
}

/* Describes the codes of the next panel: outputs from `group` on, columns from `from` on. These codes are prefetched
 * while the current panel is used. Each call of `pass` prefetches the codes of one output. The call prefetches one
 * cache line after every 64 columns that it has multiplied, because many lines at once would keep the rows waiting. */
typedef struct coming {
    fr_prefetch_hint how;
    size_t group, from, output;
} coming;

FR_INLINE void prefetch_line(const fr_matmul_fp8 *job, const coming *next, size_t at) {
    fr_prefetch(next->how, weight_row(job, next->group + next->output) + next->from + at, 64);
}

/* Multiplies rows of a batch, from `row` on, with outputs o and o + 1 of the group, over a chunk of columns. */
FR_INLINE void pass(const fr_matmul_fp8 *job, panel *at, const coming *next, const float *x, size_t row, size_t o,
                    size_t from, size_t count, size_t rows) {
    sums p;
    size_t i = 0;
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++)
        FR_UNROLLED_FOR (size_t f = 0; f < 2; f++)
            FR_UNROLLED_FOR (size_t h = 0; h < 2; h++)
                p[r][f][h] = from ? _mm256_loadu_ps(at->sums[row + r][o + f] + 8 * h) : _mm256_setzero_ps();
    for (; i + 16 <= count; i += 16) {
        if (i % 64 == 0 && next->output < GROUP) prefetch_line(job, next, i);
        panel_step(p, at->w[o] + i, x + i, job->x_stride, rows, 16);
    }
    if (i < count) {
        float values[ROWS][16] = {0};
        for (size_t r = 0; r < rows; r++) memcpy(values[r], x + i + r * job->x_stride, (count - i) * sizeof *x);
        panel_step(p, at->w[o] + i, values[0], 16, rows, count - i);
    }
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++)
        FR_UNROLLED_FOR (size_t f = 0; f < 2; f++)
            FR_UNROLLED_FOR (size_t h = 0; h < 2; h++) _mm256_storeu_ps(at->sums[row + r][o + f] + 8 * h, p[r][f][h]);
}

/* Multiplies all rows of a batch with the panel, three at a time. */
FR_INLINE void pass_rows(const fr_matmul_fp8 *job, panel *at, coming next, size_t batch, size_t rows, size_t from,
                         size_t count) {
    size_t tiles = (rows + 2) / 3;
    for (size_t row = 0, taken; row < rows; row += taken, tiles--) {
        const float *x = job->x + (batch + row) * job->x_stride + from;
        taken = (rows - row + tiles - 1) / tiles;
        for (size_t o = 0; o < GROUP; o += 2, next.output++) {
            if (taken == 1)
                pass(job, at, &next, x, row, o, from, count, 1);
            else if (taken == 2)
                pass(job, at, &next, x, row, o, from, count, 2);
            else
                pass(job, at, &next, x, row, o, from, count, 3);
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
                    job->y[(batch + r) * job->y_stride + group + o] =
                        sum16(_mm256_loadu_ps(at.sums[r][o]), _mm256_loadu_ps(at.sums[r][o] + 8));
        }
}

void fr_matmul_fp8_avx2(const fr_matmul_fp8 *of) {
    const fr_matmul_fp8 job = *of;
    if (job.rows > DIRECT)
        by_panels(&job);
    else if (job.rows > 0)
        direct(&job);
}
