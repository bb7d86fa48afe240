/* Multiplies float weights by rows, with the 16 partial sums in one register. The contracts are fr_matmul_fn and
 * fr_gather_fn in kernels.h.
 *
 * A tile is 4 outputs x up to 6 rows. Each weight register is converted once and used for every row; each activation
 * register is used for 4 outputs. With 6 rows, a step of 16 columns is 24 multiply-adds on 10 loads. It uses 24
 * registers for sums, 4 for weights and 1 for a row.
 *
 * Decode and verify wait for weights that fit no cache. So each tile prefetches the weights of the next tile, in memory
 * order. That pays if the L1 cache holds the tile's weights, those of the next tile, and the rows. Wide matrices are
 * therefore taken in chunks of columns, and partial sums are kept in memory between chunks. With two rows, a tile of a
 * chunk has only 2 outputs, because so little arithmetic leaves time to spare. One row has a function of its own
 * (stream). With many rows, a chunk is computed for a group of outputs and all tiles of rows, one tile after the other,
 * before the next chunk begins. A tile's rows then stay in the L1 cache. The chunk's columns of all these rows and of
 * the group's weights stay in L2. The order of additions is the same in every case.
 *
 * The constants were measured on Zen 5 (48 KB of L1, 1 MB of L2, one core reads 41 GB/s). BF16 weights stream at 33 to
 * 38 GB/s for one row and at 30 to 31 GB/s for four rows. Without prefetching these are 23 and 18 GB/s. 64 rows run at
 * 190 of 255 GFLOP/s. Halving or doubling any constant costs about a tenth. */
#include "kernels/prefetch_x86.h"
#include "kernels/simd_avx512.h"

#include <string.h>

enum {
    FEATURES = 4,
    ROWS = 6,
    GROUP = 64,         /* outputs of a group */
    TILES = 8,          /* tiles of rows that are multiplied with a chunk before the next chunk begins */
    CHUNK = 2048,       /* largest number of columns of rows that are packed into a panel */
    WAY = 4096,         /* addresses that are this many bytes apart map to the same set of the L1 cache */
    AHEAD = 8192,       /* distance in bytes from the weights in use to those that are prefetched */
    STREAMED = 1 << 17, /* a call with at least this many bytes of weights prefetches */
    LARGE = 4 << 20     /* weights of at least this many bytes come from memory; smaller weights, such as a drafter's,
                         * may be in L3 */
};

/* Loads 16 weights as floats; only the lanes of the mask are read. */
typedef __m512 load_fn(const char *w, size_t i, __mmask16 mask);

FR_INLINE __m512 load_f32(const char *w, size_t i, __mmask16 mask) {
    return _mm512_maskz_loadu_ps(mask, w + 4 * i);
}

FR_INLINE __m512 load_f16(const char *w, size_t i, __mmask16 mask) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, w + 2 * i));
}

FR_INLINE __m512 load_bf16(const char *w, size_t i, __mmask16 mask) {
    __m256i half = _mm256_maskz_loadu_epi16(mask, w + 2 * i);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

/* Describes a weight type: the function that loads a weight, and the size of a weight in bytes. */
typedef struct weights {
    load_fn *load;
    size_t size;
} weights;

static const weights f32 = {load_f32, 4}, f16 = {load_f16, 2}, bf16 = {load_bf16, 2};

/* Describes a tile of up to ROWS rows from `row` on, and up to FEATURES outputs from `feature` on, over columns
 * from..to - 1. x and w point to these columns of the tile's rows and weight rows. `next` points to the weights of the
 * next tile, which are prefetched meanwhile. Outputs past the end repeat the last weight row and are not stored.
 * Between chunks, `waiting` keeps the 16 partial sums of each row and each output. Outputs are counted from `group`
 * there. */
typedef struct tile {
    size_t row, feature, from, to;
    const float *x;
    size_t x_stride;
    const char *w[FEATURES], *next[FEATURES];
    fr_prefetch_hint how;
    size_t group;
    float *waiting;
} tile;

typedef __m512 sums[ROWS][FEATURES];

/* Multiplies up to 16 columns, from i on. */
FR_INLINE void step(weights type, sums p, const tile *t, size_t rows, size_t features, size_t i, __mmask16 mask) {
    __m512 wide[FEATURES];
    FR_UNROLLED_FOR (size_t o = 0; o < features; o++) wide[o] = type.load(t->w[o], i, mask);
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
        __m512 values = load_lanes(t->x + r * t->x_stride + i, mask);
        FR_UNROLLED_FOR (size_t o = 0; o < features; o++)
            p[r][o] = _mm512_mask3_fmadd_ps(wide[o], values, p[r][o], mask);
    }
}

/* Multiplies all columns of a tile. The columns are divided into as many parts as the tile has features. During part i
 * the i-th weight row of the next tile is prefetched. So the weight rows are prefetched one after the other, in memory
 * order. */
FR_INLINE void walk(weights type, sums p, const tile *t, size_t rows, size_t features) {
    size_t i = 0, cols = t->to - t->from, part = (cols / features + 31) / 32 * 32;
    for (size_t o = 0; o < features; o++) {
        size_t end = (o + 1) * part < cols ? (o + 1) * part : cols;
        const char *prefetched = t->next[o];
        for (; i + 32 <= end; i += 32) {
            fr_prefetch(t->how, prefetched, 32 * features * type.size);
            prefetched += 32 * features * type.size;
            step(type, p, t, rows, features, i, 0xffff);
            step(type, p, t, rows, features, i + 16, 0xffff);
        }
    }
    for (; i + 16 <= cols; i += 16) step(type, p, t, rows, features, i, 0xffff);
    if (i < cols) step(type, p, t, rows, features, i, lanes(cols - i));
}

FR_INLINE float *waiting_sum(const tile *t, size_t r, size_t o) {
    return t->waiting + 16 * ((t->feature - t->group + o) * ROWS + r);
}

/* Computes a tile of `rows` rows x `features` outputs. Callers pass constants as both numbers. */
FR_INLINE void compute_tile(weights type, const fr_matmul *job, const tile *t, size_t rows, size_t features) {
    sums p;
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++)
        FR_UNROLLED_FOR (size_t o = 0; o < features; o++)
            p[r][o] = t->from > 0 ? _mm512_loadu_ps(waiting_sum(t, r, o)) : _mm512_setzero_ps();
    walk(type, p, t, rows, features);
    float *y = job->y + t->row * job->y_stride + t->feature;
    __mmask8 stored = (__mmask8)(lanes(job->features - t->feature) & ((1 << features) - 1));
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
        if (t->to == job->cols) {
            __m128 sum = sum16_of_4(p[r][0], p[r][1], p[r][2 % features], p[r][3 % features]);
            _mm_mask_storeu_ps(y + r * job->y_stride, stored, sum);
            continue;
        }
        FR_UNROLLED_FOR (size_t o = 0; o < features; o++) _mm512_storeu_ps(waiting_sum(t, r, o), p[r][o]);
    }
}

FR_INLINE const char *weight_row(const fr_matmul *job, size_t o) {
    return (const char *)job->w + (o < job->features ? o : job->features - 1) * job->w_stride;
}

/* Computes the outputs of a group for one tile of rows and one chunk of columns. The last tile of a chunk prefetches
 * the first tile of the next chunk. The last tile of the last chunk prefetches the first tile of the next group. */
FR_INLINE void compute_group(weights type, const fr_matmul *job, tile *t, size_t rows, size_t features) {
    size_t end = t->group + GROUP < job->features ? t->group + GROUP : job->features;
    for (t->feature = t->group; t->feature < end; t->feature += features) {
        bool last_feature = t->feature + features >= end, last_chunk = t->to == job->cols;
        size_t next_feature = last_feature && !last_chunk ? t->group : t->feature + features;
        size_t next_from = !last_feature ? t->from : last_chunk ? 0 : t->to;
        for (size_t o = 0; o < features; o++) {
            t->w[o] = weight_row(job, t->feature + o) + t->from * type.size;
            t->next[o] = weight_row(job, next_feature + o) + next_from * type.size;
        }
        compute_tile(type, job, t, rows, features);
    }
}

FR_INLINE void compute_rows(weights type, const fr_matmul *job, tile *t, size_t rows) {
    switch (rows) {
    case 1: compute_group(type, job, t, 1, FEATURES); break;
    case 2:
        if (t->to - t->from < job->cols)
            compute_group(type, job, t, 2, 2);
        else
            compute_group(type, job, t, 2, FEATURES);
        break;
    case 3: compute_group(type, job, t, 3, FEATURES); break;
    case 4: compute_group(type, job, t, 4, FEATURES); break;
    case 5: compute_group(type, job, t, 5, FEATURES); break;
    default: compute_group(type, job, t, ROWS, FEATURES);
    }
}

/* Returns the number of columns in a chunk. If the L1 cache holds all columns of these rows and of the weights of two
 * tiles, there is one chunk with all columns. Otherwise all chunks have the same length, a multiple of 32 for which the
 * cache has room. */
static size_t chunk_length(size_t cols, size_t rows) {
    size_t whole = rows <= 2 ? 2048 : 1536, part = rows <= 2 ? 2048 : 1024;
    if (cols <= whole) return cols;
    size_t chunks = (cols + part - 1) / part;
    return ((cols + chunks - 1) / chunks + 31) / 32 * 32;
}

/* Multiplies one row with `side` outputs from `feature` on. p[0] gets 16 partial sums for each output. Weights are
 * prefetched in memory order. The first prefetched byte is AHEAD bytes after the beginning of the last output's row. */
FR_INLINE void stream_features(weights type, const fr_matmul *job, size_t feature, sums p, size_t side) {
    tile t = {.x = job->x};
    FR_UNROLLED_FOR (size_t o = 0; o < side; o++) {
        t.w[o] = weight_row(job, feature + o);
        p[0][o] = _mm512_setzero_ps();
    }
    size_t i = 0;
    fr_prefetch_hint how = fr_prefetch_hint_here();
    const char *prefetched = t.w[0] + (side - 1) * job->w_stride + AHEAD;
    for (; i + 32 <= job->cols; i += 32, prefetched += 32 * side * type.size) {
        fr_prefetch(how, prefetched, 32 * side * type.size);
        step(type, p, &t, 1, side, i, 0xffff);
        step(type, p, &t, 1, side, i + 16, 0xffff);
    }
    for (; i < job->cols; i += 16) step(type, p, &t, 1, side, i, lanes(job->cols - i < 16 ? job->cols - i : 16));
}

/* Multiplies one row. Weights are prefetched AHEAD bytes before use.
 *
 * If weights come from memory, outputs are computed one after the other (side = 1), so that weights are also read in
 * memory order. Then one chain of sums at a time is enough, because the processor begins the chain of the next output
 * before this output's chain ends. One chain reads 62 GB/s, and four chains side by side read 54 GB/s (two cores of Zen
 * 5, which read 75 GB/s). If weights come from L3, one chain is too slow: it reads 38 to 60 GB/s per core (less for
 * longer chains), while four chains read 60 to 75 GB/s. The sums of four outputs are added in one tree. */
FR_INLINE void stream(weights type, const fr_matmul *job, size_t side) {
    for (size_t feature = 0; feature < job->features; feature += FEATURES) {
        __m512 p[FEATURES];
        FR_UNROLLED_FOR (size_t o = 0; o < FEATURES; o += side) {
            sums part;
            stream_features(type, job, feature + o, part, side);
            FR_UNROLLED_FOR (size_t k = 0; k < side; k++) p[o + k] = part[0][k];
        }
        __mmask8 stored = (__mmask8)lanes(job->features - feature < FEATURES ? job->features - feature : FEATURES);
        _mm_mask_storeu_ps(job->y + feature, stored, sum16_of_4(p[0], p[1], p[2], p[3]));
    }
}

static size_t row_tiles(const fr_matmul *job) {
    return (job->rows + ROWS - 1) / ROWS;
}

/* Returns true if the same column of all rows maps to one set of the L1 cache. The rows would then replace each other,
 * because a set has fewer ways than a tile has rows. */
static bool rows_meet(const fr_matmul *job) {
    return job->rows > 1 && job->x_stride * sizeof(float) % WAY == 0;
}

/* Sets the addresses at which a tile's rows begin. Usually the rows are used in place. Rows that would share a set of
 * the cache are copied to a panel. (GFLOP/s on two cores of Zen 4, float32. 512 rows of 6144 columns: 84 to 104 in
 * place, 154 copied; 6 rows of 4096 columns: 75 in place, 106 copied. With groups of 32 outputs, rows are copied twice
 * as often, and the two cases reach only 125 and 83.) */
FR_INLINE void place_rows(const fr_matmul *job, tile *t, size_t rows, float panel[ROWS][CHUNK + 16]) {
    t->x = job->x + t->row * job->x_stride + t->from;
    t->x_stride = job->x_stride;
    if (!panel) return;
    for (size_t r = 0; r < rows; r++) memcpy(panel[r], t->x + r * t->x_stride, (t->to - t->from) * sizeof *t->x);
    t->x = panel[0];
    t->x_stride = CHUNK + 16;
}

/* Computes the outputs of a group over a chunk of columns for up to TILES tiles of rows, from tile `first` on. Rows are
 * divided evenly into as few tiles as possible. The first tile prefetches the chunk's weights; the other tiles find
 * them in L2. */
FR_INLINE void compute_chunk(weights type, const fr_matmul *job, tile *t, size_t first, fr_prefetch_hint how,
                             bool packed, float waiting[TILES][GROUP * ROWS * 16]) {
    size_t tiles = row_tiles(job), last = first + TILES < tiles ? first + TILES : tiles;
    float panel[ROWS][CHUNK + 16];
    for (size_t i = first; i < last; i++) {
        size_t end = job->rows * (i + 1) / tiles;
        t->row = job->rows * i / tiles;
        t->how = i == 0 ? how : FR_PREFETCH_NONE;
        t->waiting = waiting[i - first];
        place_rows(job, t, end - t->row, packed ? panel : NULL);
        compute_rows(type, job, t, end - t->row);
    }
}

FR_INLINE void matmul(weights type, fr_matmul job) {
    size_t bytes = job.features * job.w_stride;
    bool streamed = bytes >= STREAMED;
    if (streamed && job.rows == 1) {
        if (bytes >= LARGE)
            stream(type, &job, 1);
        else
            stream(type, &job, FEATURES);
        return;
    }
    fr_prefetch_hint how = streamed ? fr_prefetch_hint_here() : FR_PREFETCH_NONE;
    size_t chunk = streamed ? chunk_length(job.cols, job.rows) : job.cols;
    bool packed = rows_meet(&job) && chunk <= CHUNK;
    float waiting[TILES][GROUP * ROWS * 16];
    tile t;
    for (t.group = 0; t.group < job.features; t.group += GROUP)
        for (size_t first = 0; first < row_tiles(&job); first += TILES)
            for (t.from = 0; t.from < job.cols; t.from = t.to) {
                t.to = t.from + chunk < job.cols ? t.from + chunk : job.cols;
                compute_chunk(type, &job, &t, first, how, packed, waiting);
            }
}

/* Multiplies one row with weight rows that are not neighbours and are prefetched AHEAD bytes before they are used. Each
 * weight row comes from a different place in memory, so memory's latency is the limit. */
FR_INLINE void gather(weights type, fr_gather of) {
    fr_matmul job = {.y = of.y, .x = of.x, .rows = 1, .cols = of.cols, .features = of.count};
    tile t = {.to = of.cols, .x = of.x, .how = fr_prefetch_hint_here()};
    size_t ahead = FEATURES + AHEAD / (of.cols * type.size);
    for (t.feature = 0; t.feature < of.count; t.feature += FEATURES) {
        for (size_t o = 0; o < FEATURES; o++) {
            size_t here = t.feature + o < of.count ? t.feature + o : of.count - 1;
            size_t there = here + ahead < of.count ? here + ahead : here;
            t.w[o] = (const char *)of.w + (size_t)of.ids[here] * of.w_stride;
            t.next[o] = (const char *)of.w + (size_t)of.ids[there] * of.w_stride;
        }
        compute_tile(type, &job, &t, 1, FEATURES);
    }
}

void fr_matmul_f32_avx512(const fr_matmul *job) {
    matmul(f32, *job);
}

void fr_matmul_f16_avx512(const fr_matmul *job) {
    matmul(f16, *job);
}

void fr_matmul_bf16_avx512(const fr_matmul *job) {
    matmul(bf16, *job);
}

void fr_gather_f32_avx512(const fr_gather *job) {
    gather(f32, *job);
}

void fr_gather_f16_avx512(const fr_gather *job) {
    gather(f16, *job);
}

void fr_gather_bf16_avx512(const fr_gather *job) {
    gather(bf16, *job);
}
