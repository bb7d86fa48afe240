/* Multiplies float weights by rows, with the 16 partial sums in two registers. The contracts are fr_matmul_fn and
 * fr_gather_fn in kernels.h.
 *
 * A tile is 4 outputs x 1 row, or 2 outputs x 2 or 3 rows. So at least 8 sums are in flight, as the latency of a
 * multiply-add requires. At most 15 of the 16 registers are in use: 12 for sums, 2 for weights and 1 for a row. If the
 * weights fit no cache, each tile prefetches the weights of the next tile, in memory order. Outputs are computed in
 * groups. A group is computed for all tiles of rows, one after the other, before the next group. So the rows of a tile
 * stay in the L1 cache, and the group's weights in L2. */
#include "kernels/prefetch_x86.h"
#include "kernels/simd_avx2.h"

enum {
    FEATURES = 4,
    ROWS = 3,
    GROUP = 32,         /* outputs of a group */
    STREAMED = 1 << 20, /* a call with at least this many bytes of weights prefetches */
};

/* Loads 8 weights as floats, from the i-th on. */
typedef __m256 load_fn(const char *w, size_t i);

FR_INLINE __m256 load_f32(const char *w, size_t i) {
    return _mm256_loadu_ps((const float *)(const void *)(w + 4 * i));
}

FR_INLINE __m256 load_f16(const char *w, size_t i) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(w + 2 * i)));
}

FR_INLINE __m256 load_bf16(const char *w, size_t i) {
    __m128i half = _mm_loadu_si128((const __m128i *)(const void *)(w + 2 * i));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

/* Describes a weight type: the function that loads a weight, and the size of a weight in bytes. */
typedef struct weights {
    load_fn *load;
    size_t size;
} weights;

static const weights f32 = {load_f32, 4}, f16 = {load_f16, 2}, bf16 = {load_bf16, 2};

/* Describes a tile from `row` and `feature` on: its weight rows, and those of the next tile, which are prefetched.
 * Outputs past the end repeat the last weight row and are not stored. */
typedef struct tile {
    size_t row, feature;
    const char *w[FEATURES], *next[FEATURES];
    fr_prefetch_hint how;
} tile;

/* Holds the operands of a tile: `rows` rows by `features` outputs. Callers pass constants as both numbers. */
typedef struct operands {
    const float *x;
    size_t x_stride, rows, features;
} operands;

/* The 16 partial sums of each row and output, in two registers each. */
typedef __m256 sums[ROWS][FEATURES][2];

/* Multiplies 16 columns from i on. Only the products of the first `count` columns are added. */
FR_INLINE void step(load_fn *load, sums p, const char *const *w, operands of, size_t i, size_t count) {
    FR_UNROLLED_FOR (size_t h = 0; h < 2; h++) {
        __m256 mask = lane_mask((int)count - 8 * (int)h), wide[FEATURES];
        FR_UNROLLED_FOR (size_t o = 0; o < of.features; o++) wide[o] = load(w[o], i + 8 * h);
        FR_UNROLLED_FOR (size_t r = 0; r < of.rows; r++) {
            __m256 values = _mm256_loadu_ps(of.x + r * of.x_stride + i + 8 * h);
            FR_UNROLLED_FOR (size_t o = 0; o < of.features; o++) {
                __m256 sum = _mm256_fmadd_ps(wide[o], values, p[r][o][h]);
                p[r][o][h] = count == 16 ? sum : _mm256_blendv_ps(p[r][o][h], sum, mask);
            }
        }
    }
}

/* Multiplies the last `count` columns, from i on. They are first copied to buffers of 16 columns, because 16 columns
 * are always read. */
FR_INLINE void last_step(weights type, sums p, const tile *t, operands of, size_t i, size_t count) {
    float values[ROWS][16] = {0};
    char copies[FEATURES][64] = {0};
    const char *w[FEATURES];
    for (size_t r = 0; r < of.rows; r++) memcpy(values[r], of.x + r * of.x_stride + i, count * sizeof *of.x);
    for (size_t o = 0; o < of.features; o++) w[o] = memcpy(copies[o], t->w[o] + i * type.size, count * type.size);
    step(type.load, p, w, (operands){values[0], 16, of.rows, of.features}, 0, count);
}

/* Multiplies all columns of a tile. The columns are divided into as many parts as the tile has features. During part i
 * the i-th weight row of the next tile is prefetched. So the weight rows are prefetched one after the other, in memory
 * order. */
FR_INLINE void walk(weights type, sums p, const tile *t, operands of, size_t cols) {
    size_t i = 0, part = (cols / of.features + 15) / 16 * 16;
    for (size_t o = 0; o < of.features; o++) {
        size_t end = (o + 1) * part < cols ? (o + 1) * part : cols;
        const char *prefetched = t->next[o];
        for (; i + 16 <= end; i += 16) {
            fr_prefetch(t->how, prefetched, 16 * of.features * type.size);
            prefetched += 16 * of.features * type.size;
            step(type.load, p, t->w, of, i, 16);
        }
    }
    if (i < cols) last_step(type, p, t, of, i, cols - i);
}

/* Computes a tile of `rows` rows x `features` outputs. Callers pass constants as both numbers. */
FR_INLINE void compute_tile(weights type, const fr_matmul *job, const tile *t, size_t rows, size_t features) {
    sums p;
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++)
        FR_UNROLLED_FOR (size_t o = 0; o < features; o++) p[r][o][0] = p[r][o][1] = _mm256_setzero_ps();
    walk(type, p, t, (operands){job->x + t->row * job->x_stride, job->x_stride, rows, features}, job->cols);
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++)
        FR_UNROLLED_FOR (size_t o = 0; o < features; o++) {
            float sum = sum16(p[r][o][0], p[r][o][1]);
            if (t->feature + o < job->features) job->y[(t->row + r) * job->y_stride + t->feature + o] = sum;
        }
}

/* Computes the outputs of a group for one tile of rows. */
FR_INLINE void compute_group(weights type, const fr_matmul *job, tile t, size_t rows, size_t features) {
    size_t end = t.feature + GROUP;
    for (; t.feature < end && t.feature < job->features; t.feature += features) {
        for (size_t o = 0; o < features; o++) {
            size_t here = t.feature + o, there = here + features, last = job->features - 1;
            t.w[o] = (const char *)job->w + (here < last ? here : last) * job->w_stride;
            t.next[o] = (const char *)job->w + (there < last ? there : last) * job->w_stride;
        }
        compute_tile(type, job, &t, rows, features);
    }
}

/* Computes all outputs. The rows are divided evenly into as few tiles as possible, so that a tile has a single row only
 * if the call has a single row. The first tile of rows prefetches the weights of a group; the other tiles find them in
 * the L2 cache. */
FR_INLINE void matmul(weights type, fr_matmul job) {
    bool streamed = job.features * job.w_stride >= STREAMED;
    for (size_t group = 0; group < job.features; group += GROUP) {
        size_t tiles = (job.rows + ROWS - 1) / ROWS;
        for (size_t row = 0, rows; row < job.rows; row += rows, tiles--) {
            rows = (job.rows - row + tiles - 1) / tiles;
            tile t = {.row = row, .feature = group};
            t.how = streamed && row == 0 ? fr_prefetch_hint_here() : FR_PREFETCH_NONE;
            if (rows == 1)
                compute_group(type, &job, t, 1, 4);
            else if (rows == 2)
                compute_group(type, &job, t, 2, 2);
            else
                compute_group(type, &job, t, 3, 2);
        }
    }
}

/* Multiplies one row with weight rows that are not neighbours. Each tile prefetches the weight rows of the next
 * tile. */
FR_INLINE void gather(weights type, fr_gather of) {
    fr_matmul job = {.y = of.y, .x = of.x, .rows = 1, .cols = of.cols, .features = of.count};
    tile t = {.row = 0, .how = fr_prefetch_hint_here()};
    for (t.feature = 0; t.feature < of.count; t.feature += FEATURES) {
        for (size_t o = 0; o < FEATURES; o++) {
            size_t here = t.feature + o < of.count ? t.feature + o : of.count - 1;
            size_t there = here + FEATURES < of.count ? here + FEATURES : here;
            t.w[o] = (const char *)of.w + (size_t)of.ids[here] * of.w_stride;
            t.next[o] = (const char *)of.w + (size_t)of.ids[there] * of.w_stride;
        }
        compute_tile(type, &job, &t, 1, FEATURES);
    }
}

void fr_matmul_f32_avx2(const fr_matmul *job) {
    matmul(f32, *job);
}

void fr_matmul_f16_avx2(const fr_matmul *job) {
    matmul(f16, *job);
}

void fr_matmul_bf16_avx2(const fr_matmul *job) {
    matmul(bf16, *job);
}

void fr_gather_f32_avx2(const fr_gather *job) {
    gather(f32, *job);
}

void fr_gather_f16_avx2(const fr_gather *job) {
    gather(f16, *job);
}

void fr_gather_bf16_avx2(const fr_gather *job) {
    gather(bf16, *job);
}
