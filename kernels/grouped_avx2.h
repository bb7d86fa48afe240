/* Walks over tiles of grouped codes in registers of 8 features, for AVX2 with and without VNNI. The contract is
 * fr_matmul_grouped_fn in kernels.h.
 *
 * In: tiles (quant/grouped.h), quantized rows. Out: y. block_avx2.h has the registers, the unpacking of codes, and the
 * code that adds sums to chains. For each number of bits, the file of an instruction set defines a function that
 * multiplies a run of 32 columns. The scales of a block, and its zero points or biases, are unpacked once for all of
 * its runs. As in block_avx2.h, up to 4 rows share unpacked codes, in chunks of 8 runs. Further rows find a chunk in
 * the L1 cache. */
#ifndef FR_KERNELS_GROUPED_AVX2_H
#define FR_KERNELS_GROUPED_AVX2_H

#include "kernels/block_avx2.h"
#include "quant/grouped.h"

/* Describes a run, with the negated zero points of its features. A row's sum of activations is multiplied by these zero
 * points. Each zero point is a 16-bit number with 16 zero bits above it. */
typedef struct grouped_run {
    run of;
    pair zeros;
} grouped_run;

/* Adds the products of a run to the chains of `rows` rows. Callers pass a constant as `rows`. */
typedef void grouped_dot_fn(chains *c, const grouped_run *w, size_t rows);

/* Describes the kernel for one number of bits, with biases or without. centre: a number that `dot` subtracts from each
 * code before the multiplication. */
typedef struct grouped_format {
    unsigned bits;
    bool biased;
    int centre;
    grouped_dot_fn *dot;
} grouped_format;

FR_INLINE __m256 load_floats(unsigned type, const uint8_t *floats, size_t half) {
    if (type == FR_F16) return load_halves(floats + 16 * half);
    if (type == FR_F32) return _mm256_loadu_ps((const float *)(const void *)(floats + 32 * half));
    __m128i bits = _mm_loadu_si128((const __m128i *)(const void *)(floats + 16 * half));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

/* Loads the zero points of 8 features. zeros: the first byte after the scales. */
FR_INLINE __m256i load_zeros(const fr_grouping *form, const uint8_t *zeros, size_t half) {
    if (form->offset == FR_OFFSET_CENTRE) return _mm256_set1_epi32(1 << (form->bits - 1));
    if (form->bits > 4) return load_bytes(zeros + HALF * half);
    return _mm256_and_si256(_mm256_srli_epi32(load_bytes(zeros), (int)(4 * half)), _mm256_set1_epi32(15));
}

/* Unpacks a block's scales, and its zero points or biases, for all of its runs. */
FR_INLINE void open_block(grouped_format f, grouped_run *w, const fr_grouping *form, const uint8_t *block) {
    const uint8_t *second = block + FR_TILE_FEATURES * (form->scale_type == FR_F32 ? 4 : 2);
    FR_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
        __m256i centre = _mm256_set1_epi32(f.centre);
        w->of.d.half[half] = load_floats(form->scale_type, block, half);
        if (f.biased) w->of.m.half[half] = load_floats(form->scale_type, second, half);
        if (!f.biased) centre = _mm256_sub_epi32(centre, load_zeros(form, second, half));
        w->zeros.half[half] = _mm256_and_si256(centre, _mm256_set1_epi32(0xffff));
    }
}

/* Returns the contribution of the zero points to a row's integer sums: each negated zero point times the sum of
 * activations. */
FR_INLINE pair zeros_part(const grouped_run *w, const fr_qblock *x) {
    __m256i sum = _mm256_set1_epi32(x->sum);
    return (pair){{_mm256_madd_epi16(sum, w->zeros.half[0]), _mm256_madd_epi16(sum, w->zeros.half[1])}};
}

FR_INLINE void join_grouped(grouped_format f, chains *c, size_t row, const grouped_run *w, pair isum) {
    if (f.biased)
        join_with_minimum(c, row, &w->of, floats(isum));
    else
        join(c, row, &w->of, floats(isum));
}

/* Adds runs first .. first + count - 1 of a tile at w to the chains of rows that share unpacked codes. Callers pass a
 * constant as `rows`. */
FR_INLINE void add_grouped_runs(grouped_format f, const fr_grouped_tiles *tiles, float_pair *acc, const uint8_t *w,
                                const fr_qblock *x, size_t x_stride, size_t first, size_t count, size_t rows,
                                fr_prefetch_hint how) {
    size_t step = (size_t)LINE * f.bits, place = first % tiles->block_runs;
    const uint8_t *block = w + first / tiles->block_runs * tiles->block_bytes;
    grouped_run own = {0};
    chains c = {.x = x, .stride = x_stride};
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) c.acc[r] = acc[r];
    open_block(f, &own, &tiles->form, block);
    for (size_t i = 0; i < count; i++, c.x++) {
        own.of.codes = block + tiles->head_bytes + place * step;
        fr_prefetch(how, own.of.codes + AHEAD, step);
        f.dot(&c, &own, rows);
        if (++place < tiles->block_runs || i + 1 == count) continue;
        place = 0;
        block += tiles->block_bytes;
        fr_prefetch(how, block + AHEAD, LINE);
        open_block(f, &own, &tiles->form, block);
    }
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) acc[r] = c.acc[r];
}

/* Adds a chunk to the chains of up to 8 rows. If there are more than 4 rows, they are divided into two parts of equal
 * size. */
FR_INLINE void add_grouped_rows(grouped_format f, const fr_grouped_tiles *tiles, float_pair *acc, const uint8_t *w,
                                const fr_qblock *x, size_t x_stride, size_t first, size_t count, size_t rows,
                                fr_prefetch_hint how) {
    for (size_t sharing; rows > 0; rows -= sharing, acc += sharing, x += sharing * x_stride) {
        sharing = rows > SHARING ? (rows + 1) / 2 : rows;
        switch (sharing) {
        case 1: add_grouped_runs(f, tiles, acc, w, x, x_stride, first, count, 1, how); break;
        case 2: add_grouped_runs(f, tiles, acc, w, x, x_stride, first, count, 2, how); break;
        case 3: add_grouped_runs(f, tiles, acc, w, x, x_stride, first, count, 3, how); break;
        default: add_grouped_runs(f, tiles, acc, w, x, x_stride, first, count, SHARING, how);
        }
        how = FR_PREFETCH_NONE;
    }
}

/* Computes the outputs of one tile for up to 8 rows. */
FR_INLINE void compute_grouped_tile(grouped_format f, const fr_matmul_grouped *job, const fr_grouped_tiles *tiles,
                                    size_t row, size_t feature, size_t rows, fr_prefetch_hint how) {
    const uint8_t *w = job->w + feature / FR_TILE_FEATURES * tiles->tile_bytes;
    const fr_qblock *x = job->x + row * job->x_stride;
    size_t features = job->features - feature;
    float_pair acc[ROWS] = {0};
    for (size_t first = 0, count; first < tiles->runs; first += count) {
        count = tiles->runs - first < CHUNK ? tiles->runs - first : CHUNK;
        add_grouped_rows(f, tiles, acc, w, x + first, job->x_stride, first, count, rows, how);
    }
    for (size_t r = 0; r < rows; r++) {
        float *y = job->y + (row + r) * job->y_stride + feature;
        store_lanes(y, features, acc[r].half[0]);
        if (features > HALF) store_lanes(y + HALF, features - HALF, acc[r].half[1]);
    }
}

/* Computes the outputs of one group of tiles for all rows, then those of the next group. The weights are prefetched
 * only for the first rows. After that the group's weights are in the L2 cache. */
FR_INLINE void matmul_grouped(grouped_format f, fr_matmul_grouped job) {
    fr_grouped_tiles tiles = *job.tiles;
    fr_prefetch_hint how = fr_prefetch_hint_here();
    size_t group = (GROUP / tiles.tile_bytes + 1) * FR_TILE_FEATURES;
    for (size_t from = 0; from < job.features; from += group) {
        size_t to = from + group < job.features ? from + group : job.features, parts = (job.rows + ROWS - 1) / ROWS;
        for (size_t row = 0, rows; row < job.rows; row += rows, parts--) {
            rows = (job.rows - row + parts - 1) / parts;
            for (size_t feature = from; feature < to; feature += FR_TILE_FEATURES)
                compute_grouped_tile(f, &job, &tiles, row, feature, rows, row == 0 ? how : FR_PREFETCH_NONE);
        }
    }
}

#endif
