/* Holds the code that the kernels for packed weights share if a register has 8 features: unpacking, scales, the walk
 * over a matrix.
 *
 * In: packed tiles (quant/packed.h), quantized rows. Out: y, as fr_matmul_block_fn defines it. The file of each
 * instruction set gives every format a `dot` function, which adds a run of 32 columns to the chains. A chain is the
 * float sum of one output. All other code is here.
 *
 * A line of a tile is two registers: features 0..7 and 8..15, 4 columns each. Both registers are multiplied with the
 * same broadcast of activations, and up to 4 rows share the same unpacked weights. That takes 8 registers of integer
 * sums, 4 of codes, and two or three more to work with. If there are more rows, they are multiplied 4 at a time. Each
 * group of rows unpacks a chunk of 256 columns again, which is then in the L1 cache. Between two chunks, the chains are
 * kept in memory.
 *
 * AHEAD, the distance of prefetching, was measured on one core of Zen 5, whose memory gives 41 GB/s: the product of one
 * row reads weights at 38 to 42 GB/s if AHEAD is 8192, slightly slower if it is 16384, and at 35 to 39 GB/s if it is
 * 4096. Prefetching once per run instead of once per chunk gains 5 to 15 percent. */
#ifndef FR_KERNELS_BLOCK_AVX2_H
#define FR_KERNELS_BLOCK_AVX2_H

#include "kernels/prefetch_x86.h"
#include "kernels/simd_avx2.h"
#include "quant/block_types.h"
#include "quant/packed.h"

enum {
    RUN = 32,        /* columns whose products are summed as integers */
    CHUNK = 8,       /* most runs in a chunk, which is one block of several runs, or 8 blocks of 32 columns */
    HALF = 8,        /* features in a register */
    LINE = 64,       /* bytes of 4 columns of a tile */
    STEPS = 4,       /* steps that together unpack a run */
    ROWS = 8,        /* rows that are multiplied in one walk over the weights */
    SHARING = 4,     /* rows that share unpacked weights */
    AHEAD = 8192,    /* distance in bytes from the weights in use to those that are prefetched */
    GROUP = 1 << 17, /* bytes of weights that stay in the L2 cache for the next rows */
};

/* Makes the compiler keep a sum in a register at this point. Without this function, compilers rearrange the additions
 * of a whole run into a tree, and then have to keep most of the products in memory. */
FR_INLINE __m256i settled(__m256i sum) {
    __asm__("" : "+x"(sum));
    return sum;
}

/* Holds one register for each half of a tile's 16 features. */
typedef struct pair {
    __m256i half[2];
} pair;

typedef struct float_pair {
    __m256 half[2];
} float_pair;

FR_INLINE pair load_line(const uint8_t *codes, size_t line) {
    const __m256i *w = (const __m256i *)(const void *)(codes + LINE * line);
    return (pair){{_mm256_loadu_si256(w), _mm256_loadu_si256(w + 1)}};
}

/* Loads 8 bytes as 32-bit numbers. */
FR_INLINE __m256i load_bytes(const uint8_t *bytes) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)bytes));
}

FR_INLINE __m256 load_halves(const uint8_t *halves) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)halves));
}

/* -------------------------------------------------------------------------------------------- codes of 16 features
 *
 * A run has 8 groups of 4 columns. A step unpacks two of these groups, one unsigned byte for each column. If groups g
 * and g + 4 share bytes, a step unpacks groups `step` and `step` + 4. Otherwise it unpacks groups 2 step and 2 step +
 * 1. */

/* Returns the first group of a step; the step's second group is `apart` groups after it. */
FR_INLINE size_t group_of(size_t step, size_t apart) {
    return apart == 1 ? 2 * step : step;
}

typedef void unpack_fn(pair *first, pair *second, const uint8_t *codes, size_t step);

/* Takes from each byte the bits of `mask`, counted from bit `from` on, and moves them so that they begin at bit
 * `to`. */
FR_INLINE __m256i move_bits(__m256i bytes, size_t from, size_t to, int mask) {
    if (from > to) bytes = _mm256_srli_epi16(bytes, (int)(from - to));
    if (from < to) bytes = _mm256_slli_epi16(bytes, (int)(to - from));
    return _mm256_and_si256(bytes, _mm256_set1_epi8((char)(mask << to)));
}

FR_INLINE void unpack_4_bits(pair *first, pair *second, const uint8_t *codes, size_t step) {
    pair line = load_line(codes, step);
    FR_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
        first->half[half] = move_bits(line.half[half], 0, 0, 15);
        second->half[half] = move_bits(line.half[half], 4, 0, 15);
    }
}

FR_INLINE void unpack_5_bits(pair *first, pair *second, const uint8_t *codes, size_t step) {
    pair fifths = load_line(codes, 0);
    unpack_4_bits(first, second, codes + LINE, step);
    FR_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
        first->half[half] = _mm256_or_si256(first->half[half], move_bits(fifths.half[half], step, 4, 1));
        second->half[half] = _mm256_or_si256(second->half[half], move_bits(fifths.half[half], 4 + step, 4, 1));
    }
}

/* Unpacks groups 2 * step and 2 * step + 1 of a run. The two groups have the same scale. */
FR_INLINE void unpack_6_bits(pair *first, pair *second, const uint8_t *codes, size_t step) {
    size_t columns = step / 2, j = step % 2 * 2;
    pair one = load_line(codes, j), two = load_line(codes, j + 1), high = load_line(codes, 4 + columns);
    FR_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
        first->half[half] =
            _mm256_or_si256(move_bits(one.half[half], 4 * columns, 0, 15), move_bits(high.half[half], 2 * j, 4, 3));
        second->half[half] =
            _mm256_or_si256(move_bits(two.half[half], 4 * columns, 0, 15), move_bits(high.half[half], 2 * j + 2, 4, 3));
    }
}

/* Unpacks two bits per column. Each half of a run has one line. In the bytes of that line, bits 2j and 2j + 1 belong to
 * group j of the half. */
FR_INLINE void unpack_2_bits(pair *first, pair *second, const uint8_t *codes, size_t step) {
    size_t j = step % 2 * 2;
    pair line = load_line(codes, step / 2);
    FR_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
        first->half[half] = move_bits(line.half[half], 2 * j, 0, 3);
        second->half[half] = move_bits(line.half[half], 2 * j + 2, 0, 3);
    }
}

/* Unpacks one bit per column to the values 0 and 2: bit g of each byte of the line belongs to group g. */
FR_INLINE void unpack_1_bit(pair *first, pair *second, const uint8_t *codes, size_t step) {
    pair line = load_line(codes, 0);
    FR_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
        first->half[half] = move_bits(line.half[half], 2 * step, 1, 1);
        second->half[half] = move_bits(line.half[half], 2 * step + 1, 1, 1);
    }
}

/* Moves bit `bit` of each 4-bit value to bit 2. */
FR_INLINE __m256i third_of(__m256i halves, size_t bit) {
    static const uint8_t fours[4][16] = {{0, 4, 0, 4, 0, 4, 0, 4, 0, 4, 0, 4, 0, 4, 0, 4},
                                         {0, 0, 4, 4, 0, 0, 4, 4, 0, 0, 4, 4, 0, 0, 4, 4},
                                         {0, 0, 0, 0, 4, 4, 4, 4, 0, 0, 0, 0, 4, 4, 4, 4},
                                         {0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 4, 4, 4, 4, 4, 4}};
    __m128i table = _mm_loadu_si128((const __m128i *)(const void *)fours[bit]);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), halves);
}

/* Unpacks three bits per column. The third bits are looked up in a table, because shifts would wait for each other on
 * processors with one shift unit. */
FR_INLINE void unpack_3_bits(pair *first, pair *second, const uint8_t *codes, size_t step) {
    pair thirds = load_line(codes, 0);
    unpack_2_bits(first, second, codes + LINE, step);
    FR_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
        __m256i four = move_bits(thirds.half[half], step / 2 * 4, 0, 15);
        first->half[half] = _mm256_or_si256(first->half[half], third_of(four, step % 2 * 2));
        second->half[half] = _mm256_or_si256(second->half[half], third_of(four, step % 2 * 2 + 1));
    }
}

FR_INLINE void unpack_8_bits(pair *first, pair *second, const uint8_t *codes, size_t step) {
    *first = load_line(codes, 2 * step);
    *second = load_line(codes, 2 * step + 1);
}

/* ------------------------------------------------------------------------------------------ scales of 16 features */

/* Holds the scales of the 8 runs of a block of 256 columns, for 16 features. */
typedef struct head {
    float d[FR_TILE_FEATURES], m[FR_TILE_FEATURES]; /* m: -dmin */
    __m256i values;                                 /* table in which codes are looked up */
    /* Each run has one row of scales. If the halves of a run have scales of their own, each half has a row. */
    uint8_t scale[2 * CHUNK][FR_TILE_FEATURES], minimum[2 * CHUNK][FR_TILE_FEATURES];
} head;

/* Describes a run: where its codes are, and its factors for each feature. d is multiplied by the integer sum, and m by
 * the sum of the row's activations. For NVFP4, d and m are the factors of the run's two halves. */
typedef struct run {
    const uint8_t *codes, *scales, *minima; /* scales, minima: a row of the run's scales and a row of its minima; if the
                                             * halves of a run have their own, there are two rows of each */
    float_pair d, m;
    bool looked_up; /* codes are indices into `values` */
    __m256i values;
} run;

typedef void head_fn(head *h, const uint8_t *block);
typedef void scales_fn(run *w, const head *h, const uint8_t *block, size_t index, size_t half);

FR_INLINE void head_none(head *h, const uint8_t *block) {
    (void)h, (void)block;
}

FR_INLINE void scales_d(run *w, const head *h, const uint8_t *block, size_t index, size_t half) {
    (void)h, (void)index;
    w->d.half[half] = load_halves(block + 16 * half);
}

FR_INLINE void scales_d_m(run *w, const head *h, const uint8_t *block, size_t index, size_t half) {
    scales_d(w, h, block, index, half);
    w->m.half[half] = load_halves(block + 2 * FR_TILE_FEATURES + 16 * half);
}

/* Sets d = 2^(e - 128), where e is a byte of the block for each feature. If e < 2, d is a denormal. */
FR_INLINE void scales_exponent(run *w, const head *h, const uint8_t *block, size_t index, size_t half) {
    (void)h, (void)index;
    __m256i one = _mm256_set1_epi32(1), e = load_bytes(block + HALF * half);
    __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, one), 23);
    __m256i small = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
    w->d.half[half] = _mm256_castsi256_ps(_mm256_blendv_epi8(small, normal, _mm256_cmpgt_epi32(e, one)));
}

/* Loads 8 scales, which are E4M3 without a sign. Their exponent and fraction are moved to the positions that these have
 * in a float16. */
FR_INLINE __m256 load_e4m3(const uint8_t *bytes) {
    __m128i wide = _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)(const void *)bytes));
    return _mm256_mul_ps(_mm256_cvtph_ps(_mm_slli_epi16(wide, 7)), _mm256_set1_ps(fr_code_unit(FR_NVFP4)));
}

FR_INLINE void scales_nvfp4(run *w, const head *h, const uint8_t *block, size_t index, size_t half) {
    (void)h, (void)index;
    w->d.half[half] = load_e4m3(block + HALF * half);
    w->m.half[half] = load_e4m3(block + FR_TILE_FEATURES + HALF * half);
}

FR_INLINE void head_d(head *h, const uint8_t *block) {
    _mm256_storeu_ps(h->d, load_halves(block));
    _mm256_storeu_ps(h->d + HALF, load_halves(block + 16));
}

FR_INLINE void head_d_m(head *h, const uint8_t *block) {
    __m256 minus = _mm256_set1_ps(-0.0f);
    head_d(h, block);
    _mm256_storeu_ps(h->m, _mm256_xor_ps(load_halves(block + 32), minus));
    _mm256_storeu_ps(h->m + HALF, _mm256_xor_ps(load_halves(block + 48), minus));
}

/* Stores two rows of 16 bytes. */
FR_INLINE void store_rows(uint8_t (*rows)[FR_TILE_FEATURES], __m256i bytes) {
    _mm256_storeu_si256((__m256i *)(void *)rows, bytes);
}

/* Unpacks the two 6-bit numbers of two runs: those of run 2p into the lower half of a register, those of run 2p + 1
 * into the upper half. Both runs share one row of high bits. In each byte of that row, the low 4 bits belong to run
 * 2p. */
FR_INLINE void six_bits(__m256i *first, __m256i *second, const uint8_t *rows, size_t p) {
    const uint8_t *low_rows = rows + 32 * p, *high_rows = rows + CHUNK * FR_TILE_FEATURES + 16 * p;
    __m256i nibble = _mm256_set1_epi8(15), two = _mm256_set1_epi8(0x30);
    __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)low_rows);
    __m256i high = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)high_rows));
    high = _mm256_blend_epi32(high, _mm256_srli_epi16(high, 4), 0xf0);
    __m256i first_two = _mm256_and_si256(_mm256_slli_epi16(high, 4), two);
    __m256i second_two = _mm256_and_si256(_mm256_slli_epi16(high, 2), two);
    *first = _mm256_or_si256(first_two, _mm256_and_si256(low, nibble));
    *second = _mm256_or_si256(second_two, _mm256_and_si256(_mm256_srli_epi16(low, 4), nibble));
}

FR_INLINE void head_k(head *h, const uint8_t *block) {
    head_d_m(h, block);
    FR_UNROLLED_FOR (size_t p = 0; p < CHUNK / 2; p++) {
        __m256i scale, minimum;
        six_bits(&scale, &minimum, block + 4 * FR_TILE_FEATURES, p);
        store_rows(h->scale + 2 * p, scale);
        store_rows(h->minimum + 2 * p, minimum);
    }
}

/* Unpacks the scales of Q3_K, one for each half of a run, as signed bytes. */
FR_INLINE void head_q3(head *h, const uint8_t *block) {
    head_d(h, block);
    FR_UNROLLED_FOR (size_t p = 0; p < CHUNK / 2; p++) {
        __m256i first, second, zero = _mm256_set1_epi8(32);
        six_bits(&first, &second, block + 2 * FR_TILE_FEATURES, p);
        first = _mm256_sub_epi8(first, zero);
        second = _mm256_sub_epi8(second, zero);
        store_rows(h->scale + 4 * p, _mm256_permute2x128_si256(first, second, 0x20));
        store_rows(h->scale + 4 * p + 2, _mm256_permute2x128_si256(first, second, 0x31));
    }
}

FR_INLINE void head_q2(head *h, const uint8_t *block) {
    head_d_m(h, block);
    FR_UNROLLED_FOR (size_t i = 0; i < CHUNK; i++) {
        __m256i rows = load_line(block + 4 * FR_TILE_FEATURES + 32 * i, 0).half[0];
        store_rows(h->scale + 2 * i, move_bits(rows, 0, 0, 15));
        store_rows(h->minimum + 2 * i, move_bits(rows, 4, 0, 15));
    }
}

FR_INLINE void scales_k(run *w, const head *h, const uint8_t *block, size_t index, size_t half) {
    (void)block;
    __m256 scale = _mm256_cvtepi32_ps(load_bytes(h->scale[index] + HALF * half));
    __m256 minimum = _mm256_cvtepi32_ps(load_bytes(h->minimum[index] + HALF * half));
    w->d.half[half] = _mm256_mul_ps(_mm256_loadu_ps(h->d + HALF * half), scale);
    w->m.half[half] = _mm256_mul_ps(_mm256_loadu_ps(h->m + HALF * half), minimum);
}

FR_INLINE void scales_q6(run *w, const head *h, const uint8_t *block, size_t index, size_t half) {
    w->d.half[half] = _mm256_loadu_ps(h->d + HALF * half);
    w->scales = block + (2 + 2 * index) * FR_TILE_FEATURES;
}

FR_INLINE void scales_head(run *w, const head *h, const uint8_t *block, size_t index, size_t half) {
    (void)block, (void)index;
    w->d.half[half] = _mm256_loadu_ps(h->d + HALF * half);
}

FR_INLINE void scales_halves(run *w, const head *h, const uint8_t *block, size_t index, size_t half) {
    (void)block;
    w->d.half[half] = _mm256_loadu_ps(h->d + HALF * half);
    w->scales = h->scale[2 * index];
}

FR_INLINE void scales_q2(run *w, const head *h, const uint8_t *block, size_t index, size_t half) {
    scales_halves(w, h, block, index, half);
    w->m.half[half] = _mm256_loadu_ps(h->m + HALF * half);
    w->minima = h->minimum[2 * index];
}

FR_INLINE void scales_xs(run *w, const head *h, const uint8_t *block, size_t index, size_t half) {
    const uint8_t *rows = block + 2 * FR_TILE_FEATURES + HALF * half;
    __m256i low = _mm256_srli_epi32(load_bytes(rows + index / 2 * FR_TILE_FEATURES), (int)(index % 2 * 4));
    __m256i high = _mm256_srli_epi32(load_bytes(rows + (4 + index / 4) * FR_TILE_FEATURES), (int)(index % 4 * 2));
    low = _mm256_and_si256(low, _mm256_set1_epi32(15));
    high = _mm256_slli_epi32(_mm256_and_si256(high, _mm256_set1_epi32(3)), 4);
    __m256i scale = _mm256_sub_epi32(_mm256_or_si256(low, high), _mm256_set1_epi32(32));
    w->d.half[half] = _mm256_mul_ps(_mm256_loadu_ps(h->d + HALF * half), _mm256_cvtepi32_ps(scale));
}

FR_INLINE void head_units(head *h, const uint8_t *block, fr_dtype type) {
    __m256 unit = _mm256_set1_ps(fr_code_unit(type));
    _mm256_storeu_ps(h->d, _mm256_mul_ps(load_halves(block), unit));
    _mm256_storeu_ps(h->d + HALF, _mm256_mul_ps(load_halves(block + 16), unit));
}

/* Multiplies d by the unit of IQ1's and IQ2's scales, 1/8. */
FR_INLINE void head_eighths(head *h, const uint8_t *block) {
    head_units(h, block, FR_IQ2_S);
}

/* Unpacks the factors of the halves of runs as bytes. A factor is 2 s + 1, where s is the scale in the file. */
FR_INLINE void head_eighths_halves(head *h, const uint8_t *block) {
    __m256i one = _mm256_set1_epi8(1);
    head_eighths(h, block);
    FR_UNROLLED_FOR (size_t p = 0; p < CHUNK / 2; p++) {
        __m256i rows = load_line(block + 2 * FR_TILE_FEATURES + 32 * p, 0).half[0];
        __m256i first = move_bits(rows, 0, 1, 15), second = move_bits(rows, 4, 1, 15);
        first = _mm256_or_si256(first, one);
        second = _mm256_or_si256(second, one);
        store_rows(h->scale + 4 * p, _mm256_permute2x128_si256(first, second, 0x20));
        store_rows(h->scale + 4 * p + 2, _mm256_permute2x128_si256(first, second, 0x31));
    }
}

FR_INLINE void head_iq3_xxs(head *h, const uint8_t *block) {
    head_units(h, block, FR_IQ3_XXS);
}

/* Sets d for a run. The run's factor is 2 s + 1, where s is the scale in the file. */
FR_INLINE void scales_iq(run *w, const head *h, const uint8_t *block, size_t index, size_t half) {
    const uint8_t *row = block + (2 + index / 2) * FR_TILE_FEATURES + HALF * half;
    __m256i scale = _mm256_and_si256(_mm256_srli_epi32(load_bytes(row), (int)(index % 2 * 4)), _mm256_set1_epi32(15));
    scale = _mm256_add_epi32(_mm256_add_epi32(scale, scale), _mm256_set1_epi32(1));
    w->d.half[half] = _mm256_mul_ps(_mm256_loadu_ps(h->d + HALF * half), _mm256_cvtepi32_ps(scale));
}

/* ----------------------------------------------------------------------------------------------------- the product */

/* Holds the chains of the rows that share unpacked weights, and each row's quantized block of the current run. A chain
 * is the float sum of an output, to which the runs are added in order. */
typedef struct chains {
    const fr_qblock *x;
    size_t stride;
    float_pair acc[SHARING];
} chains;

FR_INLINE const fr_qblock *block_of(const chains *c, size_t row) {
    return c->x + row * c->stride;
}

FR_INLINE __m256i broadcast_group(const fr_qblock *x, size_t group) {
    int32_t four;
    memcpy(&four, x->q + 4 * group, sizeof four);
    return _mm256_set1_epi32(four);
}

FR_INLINE float_pair floats(pair sums) {
    return (float_pair){{_mm256_cvtepi32_ps(sums.half[0]), _mm256_cvtepi32_ps(sums.half[1])}};
}

/* Unpacks a step's codes, and looks up their values if the type has a table. */
FR_INLINE void unpack_step(unpack_fn *unpack, pair *first, pair *second, const run *w, size_t step) {
    unpack(first, second, w->codes, step);
    if (!w->looked_up) return;
    FR_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
        first->half[half] = _mm256_shuffle_epi8(w->values, first->half[half]);
        second->half[half] = _mm256_shuffle_epi8(w->values, second->half[half]);
    }
}

/* Adds the integer sums of a run to the chains of a row, multiplied by the run's factors. */
typedef void join_fn(chains *c, size_t row, const run *w, float_pair isum);

FR_INLINE void join(chains *c, size_t row, const run *w, float_pair isum) {
    __m256 xd = _mm256_set1_ps(block_of(c, row)->d);
    FR_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
        __m256 *acc = &c->acc[row].half[half], d = _mm256_mul_ps(w->d.half[half], xd);
        *acc = _mm256_fmadd_ps(d, isum.half[half], *acc);
    }
}

/* Adds the integer sums of one half of an NVFP4 run to the chains of a row, multiplied by the scale of that half. */
FR_INLINE void join_half(chains *c, size_t row, const run *w, size_t columns, float_pair isum) {
    run of_half = *w;
    if (columns) of_half.d = w->m;
    join(c, row, &of_half, isum);
}

FR_INLINE int32_t sum_of_half(const fr_qblock *x, size_t columns) {
    return columns ? x->sum - x->half : x->half;
}

FR_INLINE void join_with_minimum(chains *c, size_t row, const run *w, float_pair isum) {
    __m256 dsum = _mm256_set1_ps(block_of(c, row)->dsum);
    join(c, row, w, isum);
    FR_UNROLLED_FOR (size_t half = 0; half < 2; half++)
        c->acc[row].half[half] = _mm256_fmadd_ps(w->m.half[half], dsum, c->acc[row].half[half]);
}

/* Interleaves 8 signed bytes of one row with 8 signed bytes of another row, and widens them to 16-bit numbers. */
FR_INLINE __m256i scale_pairs(const uint8_t *first, const uint8_t *second) {
    __m128i low = _mm_loadl_epi64((const __m128i *)(const void *)first);
    __m128i high = _mm_loadl_epi64((const __m128i *)(const void *)second);
    return _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(low, high));
}

/* Returns the sums of activations over the two halves of a run, as two 16-bit numbers in every lane. */
FR_INLINE __m256i sums_of_halves(const fr_qblock *x) {
    uint32_t first = (uint16_t)x->half, second = (uint32_t)(x->sum - x->half);
    return _mm256_set1_epi32((int32_t)(first | second << 16));
}

/* Adds the sums of a run whose halves have minima of their own to the chains of a row. */
FR_INLINE void join_with_minima(chains *c, size_t row, const run *w, float_pair isum) {
    __m256 xd = _mm256_set1_ps(block_of(c, row)->d);
    __m256i sums = sums_of_halves(block_of(c, row));
    join(c, row, w, isum);
    FR_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
        const uint8_t *first = w->minima + HALF * half, *second = first + FR_TILE_FEATURES;
        __m256 msum = _mm256_cvtepi32_ps(_mm256_madd_epi16(sums, scale_pairs(first, second)));
        __m256 *acc = &c->acc[row].half[half];
        *acc = _mm256_fmadd_ps(_mm256_mul_ps(w->m.half[half], xd), msum, *acc);
    }
}

/* Adds the products of a run to the chains of `rows` rows. Callers pass a constant as `rows`. */
typedef void dot_fn(chains *c, const run *w, size_t rows);

/* Describes a type for the walk over a matrix: the number of runs in a block, the bytes of the head (the part of a
 * block before its runs), the bytes of a run, and the type's functions. */
typedef struct format {
    size_t runs, head_bytes, run_bytes;
    head_fn *head;
    scales_fn *scales;
    dot_fn *dot;
    fr_dtype table; /* the type whose table the codes index; 0 if codes are no indices */
    int offset;     /* number that is added to each value of the table */
} format;

/* Initializes the sizes of a format with the constants of its type. */
#define FR_SIZES(word) FR_RUNS_##word, FR_HEAD_BYTES_##word, FR_RUN_BYTES_##word

/* Adds `count` runs, up to 256 columns, to the chains of rows that share unpacked weights. Callers pass a constant as
 * `rows`. */
FR_INLINE void add_chunk(format f, float_pair *acc, const head *h, const uint8_t *block, const fr_qblock *x,
                         size_t x_stride, size_t count, size_t rows, fr_prefetch_hint how) {
    size_t stride = f.run_bytes + (f.runs == 1 ? f.head_bytes : 0);
    size_t bytes = f.run_bytes + f.head_bytes / f.runs;
    const char *ahead = (const char *)block + AHEAD;
    chains c = {.x = x, .stride = x_stride};
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) c.acc[r] = acc[r];
    for (size_t i = 0; i < count; i++, c.x++, ahead += bytes) {
        fr_prefetch(how, ahead, bytes);
        run w = {.codes = block + f.head_bytes + i * stride, .looked_up = f.table != 0, .values = h->values};
        f.scales(&w, h, f.runs == 1 ? block + i * stride : block, i, 0);
        f.scales(&w, h, f.runs == 1 ? block + i * stride : block, i, 1);
        f.dot(&c, &w, rows);
    }
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) acc[r] = c.acc[r];
}

/* Adds a chunk to the chains of up to 8 rows. If there are more than 4 rows, they are divided into two parts of equal
 * size. */
FR_INLINE void add_rows(format f, float_pair *acc, head *h, const uint8_t *block, const fr_qblock *x, size_t x_stride,
                        size_t count, size_t rows, fr_prefetch_hint how) {
    f.head(h, block);
    for (size_t sharing; rows > 0; rows -= sharing, acc += sharing, x += sharing * x_stride) {
        sharing = rows > SHARING ? (rows + 1) / 2 : rows;
        switch (sharing) {
        case 1: add_chunk(f, acc, h, block, x, x_stride, count, 1, how); break;
        case 2: add_chunk(f, acc, h, block, x, x_stride, count, 2, how); break;
        case 3: add_chunk(f, acc, h, block, x, x_stride, count, 3, how); break;
        default: add_chunk(f, acc, h, block, x, x_stride, count, SHARING, how);
        }
        how = FR_PREFETCH_NONE;
    }
}

/* Returns the number of runs in a chunk. A chunk is one block of several runs, or several blocks of one run each. */
FR_INLINE size_t runs_of_chunk(format f) {
    return f.runs == 1 ? CHUNK : f.runs;
}

/* Computes the outputs of one tile for up to 8 rows. */
FR_INLINE void compute_tile(format f, const fr_matmul_block *job, __m256i values, size_t row, size_t feature,
                            size_t rows, fr_prefetch_hint how) {
    size_t block_bytes = f.head_bytes + f.runs * f.run_bytes, most = runs_of_chunk(f);
    size_t left = job->cols / RUN, features = job->features - feature;
    const uint8_t *w = job->w + feature / FR_TILE_FEATURES * (left / f.runs * block_bytes);
    const fr_qblock *x = job->x + row * job->x_stride;
    float_pair acc[ROWS] = {0};
    head h;
    h.values = values;
    for (size_t count; left > 0; left -= count, w += count / f.runs * block_bytes, x += count) {
        count = left > most ? most : left;
        add_rows(f, acc, &h, w, x, job->x_stride, count, rows, row == 0 ? how : FR_PREFETCH_NONE);
    }
    for (size_t r = 0; r < rows; r++) {
        float *y = job->y + (row + r) * job->y_stride + feature;
        store_lanes(y, features, acc[r].half[0]);
        if (features > HALF) store_lanes(y + HALF, features - HALF, acc[r].half[1]);
    }
}

/* Returns the table that the type's codes index, with f.offset added to each value. Both halves of the register hold
 * the table. If codes are no indices, returns zeros. */
FR_INLINE __m256i values_of(format f) {
    if (f.table == 0) return _mm256_setzero_si256();
    __m128i values = _mm_loadu_si128((const __m128i *)(const void *)fr_code_values(f.table));
    return _mm256_broadcastsi128_si256(_mm_add_epi8(values, _mm_set1_epi8((char)f.offset)));
}

/* Computes the outputs of one group of tiles for all rows, then those of the next group. The weights are prefetched
 * only for the first rows. After that the group's weights are in the L2 cache. */
FR_INLINE void matmul(format f, fr_matmul_block job) {
    __m256i values = values_of(f);
    fr_prefetch_hint how = fr_prefetch_hint_here();
    size_t tile_bytes = job.cols / RUN / f.runs * (f.head_bytes + f.runs * f.run_bytes);
    size_t group = (GROUP / tile_bytes + 1) * FR_TILE_FEATURES;
    for (size_t from = 0; from < job.features; from += group) {
        size_t to = from + group < job.features ? from + group : job.features, tiles = (job.rows + ROWS - 1) / ROWS;
        for (size_t row = 0, rows; row < job.rows; row += rows, tiles--) {
            rows = (job.rows - row + tiles - 1) / tiles;
            for (size_t feature = from; feature < to; feature += FR_TILE_FEATURES)
                compute_tile(f, &job, values, row, feature, rows, how);
        }
    }
}

#endif
