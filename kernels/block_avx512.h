/* Multiplies packed block-quantized weights by quantized rows on zmm registers: the code that the AVX-512 files with
 * and without VNNI share. The contract is fr_matmul_block_fn in kernels.h.
 *
 * A lane is an output. A row's integer sums for that output, its scale, and the float sum to which runs are added in
 * order (the chain) all stay in that lane. The zero point is not subtracted from each code. Instead each sum begins
 * with a correction, which is -offset times the sum of the activations. The codes of a run of 32 columns are unpacked
 * once, into 8 registers per tile, for all rows that are multiplied together.
 *
 * A call has these loops, the outermost first: parts of the rows, of up to 64 rows each; chunks of columns; tiles of 16
 * outputs, or pairs of tiles; blocks; runs; rows. The activations of a chunk are first copied into a panel. In the
 * panel the rows' activations of one run are side by side, and corrections replace the sums of activations. Between two
 * chunks, chains are kept in y.
 *
 * Weights are prefetched AHEAD bytes before use. In a pair of tiles each tile is prefetched half of that distance
 * ahead, because more pushes the activations out of the L1 cache. With FR_PREFETCH_PAGES the beginning of a page is
 * prefetched PAGES_AHEAD bytes before use, early enough for the processor's prefetchers (on Zen 4, 1 and 3 KB are as
 * good as 2 KB, and 4 KB is worse). For one or two rows on Intel, weights are prefetched into L2, FEW_AHEAD bytes
 * before use in each tile. (Time of a step over the time of reading, one row, with distances of 2, 3, 4 and 6 KB: Q4_0
 * 1.05, 0.99, 1.04, 1.09; Q4_K 1.05, 1.01, 1.07, 1.15.)
 *
 * Memory is fastest when it is read in order. So the two tiles of a pair are not neighbours but half of the outputs
 * apart, and each half of the matrix is read from its start to its end. For the same reason a chunk is as long as the
 * panel's size allows. (Two cores of Zen 5, 1, 2 or 4 rows: neighbours reach 83 to 90% of a single tile's speed, halves
 * 95 to 103%; chunks short enough to fit the L1 cache with their activations reach 86% with 4 rows of 6144 columns.)
 *
 * Up to 8 rows are multiplied with a register of codes just after it was unpacked. One or two rows wait for memory in
 * any case, so they usually take one tile at a time. In two cases they take a pair of tiles. In the first case the
 * processor's own prefetchers do most of the work. With two streams they look further ahead (Zen 4, 2 rows of Q8_0: 5
 * to 25% faster). The second case is two rows with hints for L2 (time of a step over the time of reading, one tile and
 * a pair: Q4_0 1.05 and 1.00, Q4_K 1.11 and 1.00). 3 to 8 rows take a pair. Each broadcast of activations is a load. In
 * a pair it is used for two registers of codes, while with a single tile loads may be the limit. A pair also has twice
 * as many chains of products, which hide each other's latency (4 rows from the caches of Zen 4: 1.03 to 1.09 times a
 * single tile's speed). Types whose halves of a run have integer scales, Q6_K for example, take single tiles: unpacking
 * and scaling two of their tiles needs too many registers.
 *
 * With more than 8 rows, the products are the limit. A part then has up to 64 rows, which are multiplied one after the
 * other with the unpacked run of a pair of tiles. Each row's chains are loaded and stored every time, which costs
 * nothing because the load and store ports are idle. To keep chains in registers, only 8 rows could be multiplied at a
 * time, and the codes would be read and unpacked again for every 8 rows (Q6_K: 52% of the peak of dot products that
 * way, 59% this way). Activations come from the L2 cache. */
#ifndef FR_KERNELS_BLOCK_AVX512_H
#define FR_KERNELS_BLOCK_AVX512_H

#include "kernels/prefetch_x86.h"
#include "kernels/simd_avx512.h"
#include "quant/block_types.h"
#include "quant/grouped.h"
#include "quant/packed.h"

#include <string.h>

enum {
    RUN = 32,
    GROUPS = RUN / 4, /* registers that hold the codes of a run of one tile */
    FEWEST = 2,       /* with at most this many rows, usually one tile is computed at a time instead of a pair */
    FEW = 8,          /* most rows that are multiplied together */
    MANY = 64,
    PAIR = 2,
    PANEL = 4096, /* largest number of quantized blocks of 32 columns in a chunk, over all its rows: 192 KB, on the
                   * stack */
    AHEAD = 8192, /* bytes from the weights in use to those that are prefetched; FEW_AHEAD, PAGES_AHEAD and SKEW are
                   * distances in bytes too */
    FEW_AHEAD = 3072,
    PAGES_AHEAD = 2048,
    SKEW = 320
};

/* Holds the values of a block that are the same for all of its runs, with one output in each lane. */
typedef struct block {
    __m512 d, m;
    __m512i values; /* table in which codes are looked up; the offset is already added to its values */
    uint8_t scales[8 * FR_TILE_FEATURES], mins[8 * FR_TILE_FEATURES];
    const fr_grouped_tiles *tiles; /* the sizes of the tiles of grouped codes; not used for other types */
    __m512i zeros;                 /* the block's zero points, one in each lane; only for grouped codes */
} block;

/* Holds an unpacked run: register g of `codes` has columns 4g to 4g + 3. */
typedef struct run {
    __m512i codes[GROUPS];
    __m512 d, m;      /* products of the block's d and the run's scale, and of the block's m and the run's minimum */
    __m512 low, high; /* scales of the two halves of the run, if each half has its own */
    __m512 low_min, high_min;
} run;

typedef void open_fn(block *b, const uint8_t *bytes);
typedef void scale_fn(run *r, const block *b, const uint8_t *bytes, size_t index);
typedef __m512i code_fn(const block *b, const uint8_t *bytes, size_t index, size_t g);

/* Says how the integer sums of a run are added to a chain.
 *     HALVES      the halves of a run have integer scales of their own
 *     HALVES_MIN  the halves of a run have integer scales and minima of their own
 *     APART       the halves have float scales, and the sums of each half are added separately
 *     ZEROS       each feature has an offset of its own, its zero point. The format's `offset` is 1, so that the panel
 *                 holds the negative sums of activations, which are then multiplied by the zero points */
typedef enum joining { PLAIN, PLUS_MIN, MINUS_MIN, HALVES, HALVES_MIN, APART, ZEROS } joining;

typedef struct format {
    fr_dtype type;
    size_t bytes, runs; /* bytes: number of bytes of a block of one tile; runs: number of the block's runs. For grouped
                         * codes `bytes` is the number of bytes of a run, and `runs` is 0, because the number of runs
                         * depends on the matrix */
    unsigned bits;      /* bits of a code; if codes are looked up in a table, bits of the table's values */
    int offset;
    joining joining;
    open_fn *open;   /* unpacks the values that all runs of a block share */
    scale_fn *scale; /* gives the scales of run `index` of the block */
    code_fn *code;   /* gives register g of the codes of run `index` */
} format;

/* Initializes the sizes of a format with the constants of its type. */
#define FR_SIZES(word) FR_TILE_BYTES_##word, FR_RUNS_##word

/* Multiplies unsigned codes with the activations q and adds the products to `sum`, lane by lane. codes: `groups`
 * registers, each with four codes of `bits` bits for every lane. shared: true if a second tile is multiplied with the
 * same activations, so that keeping them in a register pays. */
typedef __m512i dot_fn(__m512i sum, const __m512i *codes, const int8_t *q, size_t groups, unsigned bits, bool shared);

/* Says how an instruction set multiplies. */
typedef struct products {
    dot_fn *dot;
    uint8_t groups[9]; /* groups[bits] is the number of groups of 4 columns that one call of `dot` adds up, for codes of
                        * that many bits. groups[7] is for IQ2, whose values with the offset are at most 86 */
} products;

/* -------------------------------------------------------------------------------------------------------- unpacking */

FR_INLINE __m512i line(const uint8_t *bytes) {
    return _mm512_loadu_si512(bytes);
}

FR_INLINE __m512 halves(const uint8_t *bytes) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)bytes));
}

FR_INLINE __m512 floats_of_u8(const uint8_t *bytes) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)bytes)));
}

FR_INLINE __m512 floats_of_s8(const uint8_t *bytes) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)bytes)));
}

FR_INLINE __m512i low_nibbles(__m512i bytes) {
    return _mm512_and_si512(bytes, _mm512_set1_epi8(15));
}

FR_INLINE __m512i high_nibbles(__m512i bytes) {
    return _mm512_and_si512(_mm512_srli_epi16(bytes, 4), _mm512_set1_epi8(15));
}

/* Returns a | (b & mask) for each byte. */
FR_INLINE __m512i or_bits(__m512i a, __m512i b, char mask) {
    return _mm512_ternarylogic_epi64(a, b, _mm512_set1_epi8(mask), 0xf8);
}

/* Broadcasts four neighbouring activations to every lane. */
FR_INLINE __m512i spread(const int8_t *q) {
    int32_t four;
    memcpy(&four, q, sizeof four);
    return _mm512_set1_epi32(four);
}

/* Shifts bits to higher positions within their bytes, or to lower ones if `up` is negative. The caller masks off the
 * bits that come in from neighbouring bytes. */
FR_INLINE __m512i moved(__m512i bits, int up) {
    return up >= 0 ? _mm512_slli_epi16(bits, (unsigned)up) : _mm512_srli_epi16(bits, (unsigned)-up);
}

/* Returns the codes of group g of a run of 4-bit codes. */
FR_INLINE __m512i nibbles(const uint8_t *codes, size_t g) {
    return g < GROUPS / 2 ? low_nibbles(line(codes + 64 * g)) : high_nibbles(line(codes + 64 * (g - GROUPS / 2)));
}

FR_INLINE __m512i fives(const uint8_t *codes, size_t g) {
    return or_bits(nibbles(codes + 64, g), moved(line(codes), 4 - (int)g), 16);
}

FR_INLINE __m512i sixes(const uint8_t *codes, size_t g) {
    return or_bits(nibbles(codes, g), moved(line(codes + 256 + 64 * (g / 4)), 4 - 2 * (int)(g % 4)), 48);
}

FR_INLINE __m512i twos(const uint8_t *codes, size_t g) {
    return _mm512_and_si512(moved(line(codes + 64 * (g / 4)), -2 * (int)(g % 4)), _mm512_set1_epi8(3));
}

/* Returns the codes of group g of a run of 1-bit codes, multiplied by 2. */
FR_INLINE __m512i ones(const uint8_t *codes, size_t g) {
    return _mm512_and_si512(moved(line(codes), 1 - (int)g), _mm512_set1_epi8(2));
}

FR_INLINE __m512i threes(const uint8_t *codes, size_t g) {
    return or_bits(twos(codes + 64, g), moved(line(codes), 2 - (int)g), 4);
}

/* --------------------------------------------------------------------------------------------- blocks of 32 columns */

FR_INLINE void open_d(block *b, const uint8_t *bytes) {
    b->d = halves(bytes);
}

FR_INLINE void open_d_m(block *b, const uint8_t *bytes) {
    b->d = halves(bytes);
    b->m = halves(bytes + 32);
}

/* Sets d = 2^(e - 128), where e is a byte of the block for each lane. The exponent's bias is 127; because the table's
 * values are doubled, 128 is subtracted, as in the scalar kernel. */
FR_INLINE void open_exponent(block *b, const uint8_t *bytes) {
    __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)bytes));
    __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    __m512i tiny = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
    __mmask16 is_tiny = _mm512_cmplt_epu32_mask(e, _mm512_set1_epi32(2));
    b->d = _mm512_castsi512_ps(_mm512_mask_mov_epi32(normal, is_tiny, tiny));
}

FR_INLINE void open_nothing(block *b, const uint8_t *bytes) {
    (void)b, (void)bytes;
}

FR_INLINE void scale_d_m(run *r, const block *b, const uint8_t *bytes, size_t index) {
    (void)bytes, (void)index;
    r->d = b->d;
    r->m = b->m;
}

/* Reads 16 numbers of type E4M3 without a sign. Their exponent and fraction are moved to the positions that these have
 * in a float16. */
FR_INLINE __m512 floats_of_e4m3(const uint8_t *bytes) {
    __m256i wide = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)bytes));
    return _mm512_mul_ps(_mm512_cvtph_ps(_mm256_slli_epi16(wide, 7)), _mm512_set1_ps(fr_code_unit(FR_NVFP4)));
}

FR_INLINE void scale_nvfp4(run *r, const block *b, const uint8_t *bytes, size_t index) {
    (void)b, (void)index;
    r->low = floats_of_e4m3(bytes);
    r->high = floats_of_e4m3(bytes + FR_TILE_FEATURES);
}

FR_INLINE __m512i code_q8_0(const block *b, const uint8_t *bytes, size_t index, size_t g) {
    (void)b, (void)index;
    return line(bytes + 32 + 64 * g);
}

FR_INLINE __m512i code_q4_0(const block *b, const uint8_t *bytes, size_t index, size_t g) {
    (void)b, (void)index;
    return nibbles(bytes + 32, g);
}

FR_INLINE __m512i code_q4_1(const block *b, const uint8_t *bytes, size_t index, size_t g) {
    (void)b, (void)index;
    return nibbles(bytes + 64, g);
}

FR_INLINE __m512i code_q5_0(const block *b, const uint8_t *bytes, size_t index, size_t g) {
    (void)b, (void)index;
    return fives(bytes + 32, g);
}

FR_INLINE __m512i code_q5_1(const block *b, const uint8_t *bytes, size_t index, size_t g) {
    (void)b, (void)index;
    return fives(bytes + 64, g);
}

FR_INLINE __m512i code_q1_0(const block *b, const uint8_t *bytes, size_t index, size_t g) {
    (void)b;
    return ones(bytes + 32 + FR_RUN_BYTES_q1_0 * index, g);
}

/* Returns codes of Q2_0, PQ2_0 and TQ2_0. */
FR_INLINE __m512i code_q2_0(const block *b, const uint8_t *bytes, size_t index, size_t g) {
    (void)b;
    return twos(bytes + 32 + FR_RUN_BYTES_q2_0 * index, g);
}

FR_INLINE __m512i code_iq4_nl(const block *b, const uint8_t *bytes, size_t index, size_t g) {
    (void)index;
    return _mm512_shuffle_epi8(b->values, nibbles(bytes + 32, g));
}

FR_INLINE __m512i code_mxfp4(const block *b, const uint8_t *bytes, size_t index, size_t g) {
    (void)index;
    return _mm512_shuffle_epi8(b->values, nibbles(bytes + 16, g));
}

FR_INLINE __m512i code_nvfp4(const block *b, const uint8_t *bytes, size_t index, size_t g) {
    (void)index;
    return _mm512_shuffle_epi8(b->values, nibbles(bytes + FR_HEAD_BYTES_nvfp4, g));
}

/* -------------------------------------------------------------------------------------------- blocks of 256 columns */

/* Joins the low 4 bits of numbers with their two high bits. Each lane of `high` is rotated by `up`, which brings the
 * two high bits to bits 4 and 5 of their bytes. A lane has the numbers of four neighbouring features. */
FR_INLINE __m512i joined(__m512i nibbles, __m512i high, __m512i up) {
    return or_bits(nibbles, _mm512_rolv_epi32(high, up), 48);
}

/* Makes a register of four rows of 16 bytes. In each row, every 32-bit lane has the same number. */
FR_INLINE __m512i by_row(int a, int b, int c, int d) {
    return _mm512_set_epi32(d, d, d, d, c, c, c, c, b, b, b, b, a, a, a, a);
}

/* Unpacks the two 6-bit numbers of each of the 8 runs: the first ones to `scales`, the second ones to `mins`. A
 * register holds four rows of 16 features. */
FR_INLINE void open_six_bits(block *b, const uint8_t *rows) {
    __m512i high = line(rows + 128);
    FR_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
        __m512i low = line(rows + 64 * half);
        __m512i bits = half ? _mm512_shuffle_i64x2(high, high, 0xfa) : _mm512_shuffle_i64x2(high, high, 0x50);
        _mm512_storeu_si512(b->scales + 64 * half, joined(low_nibbles(low), bits, by_row(4, 0, 4, 0)));
        _mm512_storeu_si512(b->mins + 64 * half, joined(high_nibbles(low), bits, by_row(2, 30, 2, 30)));
    }
}

FR_INLINE void open_k(block *b, const uint8_t *bytes) {
    open_d_m(b, bytes);
    open_six_bits(b, bytes + 64);
}

/* Unpacks a block's scales: `scales` gets those of the first half of each run, `mins` those of the second half. */
FR_INLINE void open_q3_k(block *b, const uint8_t *bytes) {
    open_d(b, bytes);
    open_six_bits(b, bytes + 32);
}

FR_INLINE void open_iq4_xs(block *b, const uint8_t *bytes) {
    b->d = halves(bytes);
    __m512i low = line(bytes + 32);
    FR_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
        __m512i rows = half ? _mm512_shuffle_i64x2(low, low, 0xfa) : _mm512_shuffle_i64x2(low, low, 0x50);
        __m512i high = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(bytes + 96 + 16 * half)));
        __m512i nibbles = low_nibbles(_mm512_srlv_epi32(rows, by_row(0, 4, 0, 4)));
        _mm512_storeu_si512(b->scales + 64 * half, joined(nibbles, high, by_row(4, 2, 0, 30)));
    }
}

/* Prefetches all scales of a block at once. Otherwise reading scales along with codes would be a second stream in the
 * same pages, and the processor's prefetchers follow two such streams badly. (Zen 4, a single row: 2 to 3% faster.) */
FR_INLINE void open_q6_k(block *b, const uint8_t *bytes) {
    b->d = halves(bytes);
    fr_prefetch(FR_PREFETCH_L1, bytes + 64, 256);
}

FR_INLINE void scale_k(run *r, const block *b, const uint8_t *bytes, size_t index) {
    (void)bytes;
    r->d = _mm512_mul_ps(b->d, floats_of_u8(b->scales + FR_TILE_FEATURES * index));
    r->m = _mm512_mul_ps(b->m, floats_of_u8(b->mins + FR_TILE_FEATURES * index));
}

FR_INLINE void scale_q6_k(run *r, const block *b, const uint8_t *bytes, size_t index) {
    const uint8_t *scales = bytes + 32 + 2 * FR_TILE_FEATURES * index;
    r->d = b->d;
    r->low = floats_of_s8(scales);
    r->high = floats_of_s8(scales + FR_TILE_FEATURES);
}

FR_INLINE void scale_q3_k(run *r, const block *b, const uint8_t *bytes, size_t index) {
    __m512 zero = _mm512_set1_ps(32.0f);
    (void)bytes;
    r->d = b->d;
    r->low = _mm512_sub_ps(floats_of_u8(b->scales + FR_TILE_FEATURES * index), zero);
    r->high = _mm512_sub_ps(floats_of_u8(b->mins + FR_TILE_FEATURES * index), zero);
}

/* Unpacks a row of bytes whose low 4 bits are scales and whose high 4 bits are minima. */
FR_INLINE void scale_and_minimum(__m512 *scale, __m512 *minimum, const uint8_t *row) {
    __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)row));
    *scale = _mm512_cvtepi32_ps(_mm512_and_si512(bytes, _mm512_set1_epi32(15)));
    *minimum = _mm512_cvtepi32_ps(_mm512_srli_epi32(bytes, 4));
}

FR_INLINE void scale_q2_k(run *r, const block *b, const uint8_t *bytes, size_t index) {
    const uint8_t *rows = bytes + 64 + 2 * FR_TILE_FEATURES * index;
    r->d = b->d;
    r->m = b->m;
    scale_and_minimum(&r->low, &r->low_min, rows);
    scale_and_minimum(&r->high, &r->high_min, rows + FR_TILE_FEATURES);
}

FR_INLINE void scale_iq4_xs(run *r, const block *b, const uint8_t *bytes, size_t index) {
    (void)bytes;
    __m512 scale = _mm512_sub_ps(floats_of_u8(b->scales + FR_TILE_FEATURES * index), _mm512_set1_ps(32.0f));
    r->d = _mm512_mul_ps(b->d, scale);
}

FR_INLINE __m512i code_q4_k(const block *b, const uint8_t *bytes, size_t index, size_t g) {
    (void)b;
    return nibbles(bytes + FR_HEAD_BYTES_q4_k + FR_RUN_BYTES_q4_k * index, g);
}

FR_INLINE __m512i code_q5_k(const block *b, const uint8_t *bytes, size_t index, size_t g) {
    (void)b;
    return fives(bytes + FR_HEAD_BYTES_q5_k + FR_RUN_BYTES_q5_k * index, g);
}

FR_INLINE __m512i code_q6_k(const block *b, const uint8_t *bytes, size_t index, size_t g) {
    (void)b;
    return sixes(bytes + FR_HEAD_BYTES_q6_k + FR_RUN_BYTES_q6_k * index, g);
}

FR_INLINE __m512i code_iq4_xs(const block *b, const uint8_t *bytes, size_t index, size_t g) {
    return _mm512_shuffle_epi8(b->values, nibbles(bytes + FR_HEAD_BYTES_iq4_xs + FR_RUN_BYTES_iq4_xs * index, g));
}

FR_INLINE __m512i code_q2_k(const block *b, const uint8_t *bytes, size_t index, size_t g) {
    (void)b;
    return twos(bytes + FR_HEAD_BYTES_q2_k + FR_RUN_BYTES_q2_k * index, g);
}

FR_INLINE __m512i code_q3_k(const block *b, const uint8_t *bytes, size_t index, size_t g) {
    (void)b;
    return threes(bytes + FR_HEAD_BYTES_q3_k + FR_RUN_BYTES_q3_k * index, g);
}

/* Multiplies d by the unit of IQ1's and IQ2's scales, 1/8. */
FR_INLINE void open_eighths(block *b, const uint8_t *bytes) {
    b->d = _mm512_mul_ps(halves(bytes), _mm512_set1_ps(fr_code_unit(FR_IQ2_S)));
}

FR_INLINE void open_iq3_xxs(block *b, const uint8_t *bytes) {
    b->d = _mm512_mul_ps(halves(bytes), _mm512_set1_ps(fr_code_unit(FR_IQ3_XXS)));
}

/* Returns 2 s + 1, where s is the low 4 bits of each byte, or the high 4 bits if `high` is 1. */
FR_INLINE __m512 odd_scales(const uint8_t *row, size_t high) {
    __m128i both = _mm_loadu_si128((const __m128i *)row);
    __m128i scale = _mm_and_si128(_mm_srl_epi16(both, _mm_cvtsi32_si128((int)(4 * high))), _mm_set1_epi8(15));
    scale = _mm_add_epi8(_mm_add_epi8(scale, scale), _mm_set1_epi8(1));
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(scale));
}

FR_INLINE void scale_iq(run *r, const block *b, const uint8_t *bytes, size_t index) {
    r->d = _mm512_mul_ps(b->d, odd_scales(bytes + 32 + index / 2 * FR_TILE_FEATURES, index % 2));
}

FR_INLINE void scale_iq_halves(run *r, const block *b, const uint8_t *bytes, size_t index) {
    const uint8_t *row = bytes + 32 + index * FR_TILE_FEATURES;
    r->d = b->d;
    r->low = odd_scales(row, 0);
    r->high = odd_scales(row, 1);
}

/* Returns the codes of IQ2_XXS and of IQ1_S, which have the same layout. code_iq2_xs returns those of IQ2_XS and
 * IQ1_M. */
FR_INLINE __m512i code_iq2_xxs(const block *b, const uint8_t *bytes, size_t index, size_t g) {
    return _mm512_shuffle_epi8(b->values, threes(bytes + FR_HEAD_BYTES_iq2_xxs + FR_RUN_BYTES_iq2_xxs * index, g));
}

FR_INLINE __m512i code_iq2_xs(const block *b, const uint8_t *bytes, size_t index, size_t g) {
    return _mm512_shuffle_epi8(b->values, threes(bytes + FR_HEAD_BYTES_iq2_xs + FR_RUN_BYTES_iq2_xs * index, g));
}

FR_INLINE __m512i code_iq3(const block *b, const uint8_t *bytes, size_t index, size_t g) {
    return _mm512_shuffle_epi8(b->values, nibbles(bytes + FR_HEAD_BYTES_iq3_s + FR_RUN_BYTES_iq3_s * index, g));
}

static const format q8_0 = {FR_Q8_0, FR_SIZES(q8_0), 8, 128, PLAIN, open_d, scale_d_m, code_q8_0},
                    q4_0 = {FR_Q4_0, FR_SIZES(q4_0), 4, 8, PLAIN, open_d, scale_d_m, code_q4_0},
                    q4_1 = {FR_Q4_1, FR_SIZES(q4_1), 4, 0, PLUS_MIN, open_d_m, scale_d_m, code_q4_1},
                    q5_0 = {FR_Q5_0, FR_SIZES(q5_0), 5, 16, PLAIN, open_d, scale_d_m, code_q5_0},
                    q5_1 = {FR_Q5_1, FR_SIZES(q5_1), 5, 0, PLUS_MIN, open_d_m, scale_d_m, code_q5_1},
                    iq4_nl = {FR_IQ4_NL, FR_SIZES(iq4_nl), 8, 128, PLAIN, open_d, scale_d_m, code_iq4_nl},
                    mxfp4 = {FR_MXFP4, FR_SIZES(mxfp4), 5, 12, PLAIN, open_exponent, scale_d_m, code_mxfp4},
                    q1_0 = {FR_Q1_0, FR_SIZES(q1_0), 2, 1, PLAIN, open_d, scale_d_m, code_q1_0},
                    q2_0 = {FR_Q2_0, FR_SIZES(q2_0), 2, 1, PLAIN, open_d, scale_d_m, code_q2_0},
                    q4_k = {FR_Q4_K, FR_SIZES(q4_k), 4, 0, MINUS_MIN, open_k, scale_k, code_q4_k},
                    q5_k = {FR_Q5_K, FR_SIZES(q5_k), 5, 0, MINUS_MIN, open_k, scale_k, code_q5_k},
                    q6_k = {FR_Q6_K, FR_SIZES(q6_k), 6, 32, HALVES, open_q6_k, scale_q6_k, code_q6_k},
                    iq4_xs = {FR_IQ4_XS, FR_SIZES(iq4_xs), 8, 128, PLAIN, open_iq4_xs, scale_iq4_xs, code_iq4_xs},
                    q2_k = {FR_Q2_K, FR_SIZES(q2_k), 2, 0, HALVES_MIN, open_d_m, scale_q2_k, code_q2_k},
                    q3_k = {FR_Q3_K, FR_SIZES(q3_k), 3, 4, HALVES, open_q3_k, scale_q3_k, code_q3_k},
                    iq2_xxs = {FR_IQ2_XXS, FR_SIZES(iq2_xxs), 7, 43, PLAIN, open_eighths, scale_iq, code_iq2_xxs},
                    iq2_xs = {FR_IQ2_XS, FR_SIZES(iq2_xs), 7, 43, HALVES, open_eighths, scale_iq_halves, code_iq2_xs},
                    iq3_xxs = {FR_IQ3_XXS, FR_SIZES(iq3_xxs), 6, 31, PLAIN, open_iq3_xxs, scale_iq, code_iq3},
                    iq3_s = {FR_IQ3_S, FR_SIZES(iq3_s), 5, 15, PLAIN, open_d, scale_iq, code_iq3},
                    iq1_s = {FR_IQ1_S, FR_SIZES(iq1_s), 5, 9, PLAIN, open_eighths, scale_iq, code_iq2_xxs},
                    iq1_m = {FR_IQ1_M, FR_SIZES(iq1_m), 5, 9, HALVES, open_eighths, scale_iq_halves, code_iq2_xs},
                    tq2_0 = {FR_TQ2_0, FR_SIZES(tq2_0), 2, 1, PLAIN, open_d, scale_d_m, code_q2_0},
                    pq2_0 = {FR_PQ2_0, FR_SIZES(pq2_0), 2, 1, PLAIN, open_d, scale_d_m, code_q2_0},
                    nvfp4 = {FR_NVFP4, FR_SIZES(nvfp4), 5, 12, APART, open_nothing, scale_nvfp4, code_nvfp4};

/* ---------------------------------------------------------------------------------------------------- grouped codes */

FR_INLINE bool grouped(const format *f) {
    return f->runs == 0;
}

/* Loads 16 scales or biases of type F16, BF16 or F32 as floats. */
FR_INLINE __m512 floats_of_type(unsigned type, const uint8_t *bytes) {
    if (type == FR_F16) return halves(bytes);
    if (type == FR_F32) return _mm512_loadu_ps(bytes);
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)bytes));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

FR_INLINE void open_biased(block *b, const uint8_t *bytes) {
    unsigned type = b->tiles->form.scale_type;
    b->d = floats_of_type(type, bytes);
    b->m = floats_of_type(type, bytes + b->tiles->head_bytes / 2);
}

FR_INLINE void open_zeros(block *b, const uint8_t *bytes) {
    const fr_grouping *form = &b->tiles->form;
    const uint8_t *zeros = bytes + FR_TILE_FEATURES * (form->scale_type == FR_F32 ? 4 : 2);
    b->d = floats_of_type(form->scale_type, bytes);
    if (form->offset == FR_OFFSET_CENTRE) {
        b->zeros = _mm512_set1_epi32(1 << (form->bits - 1));
    } else if (form->bits > 4) {
        b->zeros = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)zeros));
    } else {
        __m128i both = _mm_loadl_epi64((const __m128i *)zeros);
        both = _mm_unpacklo_epi64(both, _mm_srli_epi16(both, 4));
        b->zeros = _mm512_cvtepu8_epi32(_mm_and_si128(both, _mm_set1_epi8(15)));
    }
}

/* Opens a block of codes of up to 6 bits. The format's code function then adds 2^bits - 1 - zero to each code, where
 * zero is the feature's zero point. So all features have the same offset, 2^bits - 1. */
FR_INLINE void open_raised(block *b, const uint8_t *bytes) {
    open_zeros(b, bytes);
    __m512i raise = _mm512_sub_epi32(_mm512_set1_epi32((1 << b->tiles->form.bits) - 1), b->zeros);
    b->zeros = _mm512_mullo_epi32(raise, _mm512_set1_epi32(0x01010101));
}

/* Returns the codes of group g of run `index`. `bytes` points to the first byte after the block's head. */
FR_INLINE __m512i code_2_bits(const block *b, const uint8_t *bytes, size_t index, size_t g) {
    (void)b;
    return twos(bytes + 2 * 64 * index, g);
}

FR_INLINE __m512i code_3_bits(const block *b, const uint8_t *bytes, size_t index, size_t g) {
    (void)b;
    return threes(bytes + 3 * 64 * index, g);
}

FR_INLINE __m512i code_4_bits(const block *b, const uint8_t *bytes, size_t index, size_t g) {
    (void)b;
    return nibbles(bytes + 4 * 64 * index, g);
}

FR_INLINE __m512i code_5_bits(const block *b, const uint8_t *bytes, size_t index, size_t g) {
    (void)b;
    return fives(bytes + 5 * 64 * index, g);
}

FR_INLINE __m512i code_6_bits(const block *b, const uint8_t *bytes, size_t index, size_t g) {
    (void)b;
    return sixes(bytes + 6 * 64 * index, g);
}

FR_INLINE __m512i code_8_bits(const block *b, const uint8_t *bytes, size_t index, size_t g) {
    (void)b;
    return line(bytes + 8 * 64 * index + 64 * g);
}

#define FR_RAISED_CODES(width, ...)                                                                         \
    FR_INLINE __m512i raised_##width##_bits(const block *b, const uint8_t *bytes, size_t index, size_t g) { \
        return _mm512_add_epi8(code_##width##_bits(b, bytes, index, g), b->zeros);                          \
    }
FR_GROUPED_CODES(FR_RAISED_CODES)
#undef FR_RAISED_CODES

/* Defines three formats for codes of `width` bits: one with zero points, one with zero points and raised codes (see
 * open_raised), and one with biases. */
#define FR_GROUPED_FORMATS(width, ...)                                    \
    static const format grouped_##width = {.bytes = 64 * width,           \
                                           .bits = width,                 \
                                           .offset = 1,                   \
                                           .joining = ZEROS,              \
                                           .open = open_zeros,            \
                                           .scale = scale_d_m,            \
                                           .code = code_##width##_bits},  \
                        raised_##width = {.bytes = 64 * width,            \
                                          .bits = width + 1,              \
                                          .offset = (1 << width) - 1,     \
                                          .joining = PLAIN,               \
                                          .open = open_raised,            \
                                          .scale = scale_d_m,             \
                                          .code = raised_##width##_bits}, \
                        biased_##width = {.bytes = 64 * width,            \
                                          .bits = width,                  \
                                          .joining = PLUS_MIN,            \
                                          .open = open_biased,            \
                                          .scale = scale_d_m,             \
                                          .code = code_##width##_bits};
FR_GROUPED_CODES(FR_GROUPED_FORMATS)
#undef FR_GROUPED_FORMATS

FR_INLINE bool halved(const format *f) {
    return f->joining == HALVES || f->joining == HALVES_MIN || f->joining == APART;
}

/* Returns the largest number of rows for which only the beginning of a page is prefetched (FR_PREFETCH_PAGES). Such
 * hints are only for a processor whose hints go to L2. Most lines of the weights are then left to the processor's own
 * prefetchers. Few rows need few instructions for a line of codes, so the core looks far enough ahead by itself. Hints
 * for every line would only occupy buffers that the core needs.
 *
 * Share of the memory's bandwidth that a whole step reaches on Zen 4:
 *
 *     1 row, Q8_0, 30 GB/s     without hints 97%, with hints for pages 99%
 *     1 row, Q8_0, 46 GB/s     without hints 81%, with hints for pages 93%
 *     1 row, Q4_0              without hints 89%, with hints for pages 93%
 *     4 rows, Q8_0             with all hints 85%, with hints for pages 89%
 *     1 row, Q4_K, 46 GB/s     with all hints 80%, with hints for pages 73% */
FR_INLINE size_t rows_paged(const format *f) {
    return f->runs > 1 ? 0 : f->code == code_q8_0 || f->code == code_8_bits ? 4 : 1;
}

/* ---------------------------------------------------------------------------------------- a run of one or two tiles */

/* Says where a run is in each tile. `runs` is a pointer, because clang keeps a whole struct in memory if it is
 * initialized only in part. */
typedef struct tiles_run {
    const block *blocks;
    const uint8_t *bytes[PAIR];
    size_t index;
    run *runs; /* [PAIR] */
} tiles_run;

typedef __m512i sums[FEW][PAIR];

/* Multiplies groups from..to - 1 of the rows x and adds the products to the sums. Codes are unpacked just before their
 * first use, because unpacking them all at once would keep the products waiting for the execution ports.
 *
 * The tiles of a pair usually share a register of activations. With few rows each tile loads the activations from
 * memory instead, because then the core itself has to look far ahead. The core sees a limited number of instructions,
 * and a product takes fewer instructions if it loads its activations from memory. (Zen 4, Q8_0, 1 to 4 rows: whole
 * steps are 1 to 3% faster without the shared register; Q4_0, Q4_K: no difference.) */
FR_INLINE void add_groups(const format *f, const products *by, tiles_run *p, const fr_qblock *x, sums sum, size_t rows,
                          size_t tiles, size_t from, size_t to, bool unpack) {
    size_t step = by->groups[f->bits] < to - from ? by->groups[f->bits] : to - from;
    bool shared = tiles > 1 && (rows > rows_paged(f) || !unpack);
    FR_UNROLLED_FOR (size_t first = from; first < to; first += step) {
        if (unpack)
            FR_UNROLLED_FOR (size_t g = first; g < first + step; g++)
                FR_UNROLLED_FOR (size_t t = 0; t < tiles; t++)
                    p->runs[t].codes[g] = f->code(&p->blocks[t], p->bytes[t], p->index, g);
        FR_UNROLLED_FOR (size_t row = 0; row < rows; row++)
            FR_UNROLLED_FOR (size_t t = 0; t < tiles; t++)
                sum[row][t] =
                    by->dot(sum[row][t], p->runs[t].codes + first, x[row].q + 4 * first, step, f->bits, shared);
    }
}

/* Returns the value with which a sum begins. With HALVES_MIN the value is 0: codes have no offset, and the panel holds
 * the sums for the minima. With ZEROS the panel holds the negative sum of activations, which fits 16 bits, and each
 * lane multiplies that sum by the zero point of its feature. vpmaddwd also multiplies the 16 bits above that sum, by
 * 0. */
FR_INLINE __m512i correction(const format *f, const block *b, int32_t from_panel) {
    if (f->joining == ZEROS) return _mm512_madd_epi16(b->zeros, _mm512_set1_epi32(from_panel));
    return f->joining == HALVES_MIN ? _mm512_setzero_si512() : _mm512_set1_epi32(from_panel);
}

/* Computes the integer sums of a run for up to FEW rows, and returns them as floats. x is in the panel, in which
 * corrections replace the sums of activations.
 *
 * The scaled sums of Q6_K are below 2 * 128 * 16 * 32 * 127 < 2^24, so floats hold them exactly too. Scaling the sums
 * as floats takes two conversions, a product and an fma. Scaling them as integers would take as many instructions: two
 * vpmulld, an addition and a conversion. But on some processors a vpmulld is two operations, so scaling as floats is
 * faster there. */
FR_INLINE void sum_run(const format *f, const products *by, tiles_run *p, const fr_qblock *x, __m512 isum[][PAIR],
                       size_t rows, size_t tiles, bool unpack) {
    size_t end = halved(f) ? GROUPS / 2 : GROUPS;
    sums sum;
    FR_UNROLLED_FOR (size_t row = 0; row < rows; row++)
        FR_UNROLLED_FOR (size_t t = 0; t < tiles; t++)
            sum[row][t] = correction(f, &p->blocks[t], halved(f) ? x[row].half : x[row].sum);
    add_groups(f, by, p, x, sum, rows, tiles, 0, end, unpack);
    FR_UNROLLED_FOR (size_t row = 0; row < rows; row++)
        FR_UNROLLED_FOR (size_t t = 0; t < tiles; t++) {
            isum[row][t] = _mm512_cvtepi32_ps(sum[row][t]);
            sum[row][t] = correction(f, &p->blocks[t], x[row].sum);
        }
    if (!halved(f)) return;
    add_groups(f, by, p, x, sum, rows, tiles, end, GROUPS, unpack);
    FR_UNROLLED_FOR (size_t row = 0; row < rows; row++)
        FR_UNROLLED_FOR (size_t t = 0; t < tiles; t++) {
            __m512 high = _mm512_mul_ps(p->runs[t].high, _mm512_cvtepi32_ps(sum[row][t]));
            isum[row][t] = _mm512_fmadd_ps(p->runs[t].low, isum[row][t], high);
        }
}

/* Returns the contribution of a run's minima: each half's minimum times the half's sum of activations, added up. The
 * result is an integer below 2^24, which floats hold exactly. */
FR_INLINE __m512 minima(const run *r, const fr_qblock *x) {
    __m512 first = _mm512_cvtepi32_ps(_mm512_set1_epi32(x->half));
    __m512 second = _mm512_cvtepi32_ps(_mm512_set1_epi32(x->sum));
    return _mm512_fmadd_ps(r->low_min, first, _mm512_mul_ps(r->high_min, second));
}

/* Adds the products of a run whose halves have float scales. The sums of each half are added to the chains
 * separately. */
FR_INLINE void add_apart(const format *f, const products *by, tiles_run *p, const fr_qblock *x, __m512 acc[][PAIR],
                         size_t rows, size_t tiles, bool unpack) {
    FR_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
        size_t from = half * GROUPS / 2;
        sums sum;
        FR_UNROLLED_FOR (size_t row = 0; row < rows; row++)
            sum[row][0] = sum[row][1] = correction(f, p->blocks, half ? x[row].sum : x[row].half);
        add_groups(f, by, p, x, sum, rows, tiles, from, from + GROUPS / 2, unpack);
        FR_UNROLLED_FOR (size_t row = 0; row < rows; row++)
            FR_UNROLLED_FOR (size_t t = 0; t < tiles; t++) {
                const run *r = &p->runs[t];
                __m512 d = _mm512_mul_ps(half ? r->high : r->low, _mm512_set1_ps(x[row].d));
                acc[row][t] = _mm512_fmadd_ps(d, _mm512_cvtepi32_ps(sum[row][t]), acc[row][t]);
            }
    }
}

/* Adds the products of a run to the chains of up to FEW rows. */
FR_INLINE void add_run(const format *f, const products *by, tiles_run *p, const fr_qblock *x, __m512 acc[][PAIR],
                       size_t rows, size_t tiles, bool unpack) {
    __m512 isum[FEW][PAIR];
    if (f->joining == APART) {
        add_apart(f, by, p, x, acc, rows, tiles, unpack);
        return;
    }
    sum_run(f, by, p, x, isum, rows, tiles, unpack);
    FR_UNROLLED_FOR (size_t row = 0; row < rows; row++) {
        __m512 d = _mm512_set1_ps(x[row].d), dsum = _mm512_set1_ps(x[row].dsum);
        FR_UNROLLED_FOR (size_t t = 0; t < tiles; t++) {
            const run *r = &p->runs[t];
            acc[row][t] = _mm512_fmadd_ps(_mm512_mul_ps(r->d, d), isum[row][t], acc[row][t]);
            if (f->joining == PLUS_MIN) acc[row][t] = _mm512_fmadd_ps(r->m, dsum, acc[row][t]);
            if (f->joining == MINUS_MIN) acc[row][t] = _mm512_fnmadd_ps(r->m, dsum, acc[row][t]);
            if (f->joining == HALVES_MIN)
                acc[row][t] = _mm512_fnmadd_ps(_mm512_mul_ps(r->m, d), minima(r, &x[row]), acc[row][t]);
        }
    }
}

/* Holds the arguments of fr_matmul_block_fn or fr_matmul_grouped_fn. Columns are counted in blocks. */
typedef struct product {
    float *y;
    size_t y_stride;
    const fr_qblock *x;
    size_t x_stride, rows;
    const uint8_t *w;
    size_t blocks, features;
    const fr_grouped_tiles *tiles; /* for grouped codes, the sizes of the tiles; NULL for other types */
} product;

/* Returns the number of runs in a block of a tile. With grouped codes the last block of a row may have fewer runs. */
FR_INLINE size_t block_runs(const format *f, const product *job) {
    return grouped(f) ? job->tiles->block_runs : f->runs;
}

FR_INLINE size_t block_bytes(const format *f, const product *job) {
    return grouped(f) ? job->tiles->block_bytes : f->bytes;
}

/* Returns the bytes of a block of grouped codes before its runs. For other types the result is 0, because the code
 * functions of these types skip those bytes themselves. */
FR_INLINE size_t head_bytes(const format *f, const product *job) {
    return grouped(f) ? job->tiles->head_bytes : 0;
}

FR_INLINE size_t bytes_of_tile(const format *f, const product *job) {
    return grouped(f) ? job->tiles->tile_bytes : job->blocks * f->bytes;
}

/* Holds a chunk of columns of a part of the rows. All tiles are multiplied with one chunk before the next chunk
 * begins. */
typedef struct chunk {
    size_t from, to; /* the chunk's columns, counted in blocks */
    size_t row, rows;
    fr_prefetch_hint how;
    bool few_to_l2; /* set if hints for L2 are faster because there are so few rows, although this processor's usual
                     * hints are for L1 */
    __m512i values;
    fr_qblock panel[PANEL]; /* the quantized blocks of all rows, run by run: those of one run are side by side */
} chunk;

FR_INLINE void choose_hint(const format *f, chunk *c) {
    fr_prefetch_hint here = fr_prefetch_hint_here();
    bool paged = here == FR_PREFETCH_L2 && c->rows <= rows_paged(f);
    c->few_to_l2 = c->rows <= FEWEST && fr_prefetch_few_to_l2();
    c->how = c->few_to_l2 ? FR_PREFETCH_L2 : paged ? FR_PREFETCH_PAGES : here;
}

/* Says where the columns of a chunk are in a tile, or in a pair of tiles. */
typedef struct place {
    const uint8_t *bytes, *end; /* the beginning and the end of the chunk's bytes in the tile; if a pair is computed, in
                                 * the first tile */
    const uint8_t *next;        /* the weights that are read after `end`; they are prefetched */
    size_t apart;               /* bytes from a tile to the second tile of its pair */
    size_t partner;             /* bytes from the tile to the second tile that is computed: `apart`, or 0 if there is no
                                 * second tile. With 0 the first tile is computed twice, and the second result is not
                                 * stored */
    float *y[PAIR];
    size_t y_stride;
    __mmask16 stored[PAIR];
    fr_prefetch_hint how;
    size_t ahead; /* distance in bytes from the weights in use to those that are prefetched */
} place;

/* Returns how many steps compute all outputs, with `tiles` tiles in a step. The two tiles of a pair are as many tiles
 * apart as there are steps, so that a walk from pair to pair reads both halves of the matrix in memory order. */
FR_INLINE size_t steps(const product *job, size_t tiles) {
    return (job->features + tiles * FR_TILE_FEATURES - 1) / (tiles * FR_TILE_FEATURES);
}

FR_INLINE place place_of(const format *f, const product *job, const chunk *c, size_t tile, size_t tiles) {
    size_t tile_bytes = bytes_of_tile(f, job), half = steps(job, PAIR), left = job->features - tile * FR_TILE_FEATURES;
    place at = {.apart = half * tile_bytes, .y_stride = job->y_stride, .how = c->how};
    at.ahead = c->how == FR_PREFETCH_PAGES ? PAGES_AHEAD : c->few_to_l2 ? FEW_AHEAD : AHEAD / tiles;
    at.y[0] = job->y + c->row * job->y_stride + tile * FR_TILE_FEATURES;
    at.y[1] = at.y[0] + half * FR_TILE_FEATURES;
    at.bytes = job->w + tile * tile_bytes + c->from * block_bytes(f, job);
    if (grouped(f) && c->to == job->blocks)
        at.end = job->w + (tile + 1) * tile_bytes;
    else
        at.end = at.bytes + (c->to - c->from) * block_bytes(f, job);
    if (tile + 1 < steps(job, tiles))
        at.next = at.bytes + tile_bytes;
    else
        at.next = c->to < job->blocks ? job->w + c->to * block_bytes(f, job) : at.bytes;
    at.partner = left > half * FR_TILE_FEATURES ? at.apart : 0;
    at.stored[0] = lanes(left);
    at.stored[1] = at.partner ? lanes(left - half * FR_TILE_FEATURES) : 0;
    return at;
}

/* Prefetches one run's bytes of each tile, `ahead` bytes before their use. In L2, two streams at the same offset within
 * their pages slow each other down. So with hints for L2 the second tile is prefetched SKEW bytes further ahead than
 * the first (4 rows of a pair: 82% of the bandwidth without SKEW, 93% with SKEW). */
FR_INLINE void prefetch(const place *at, const uint8_t *bytes, size_t step, size_t tiles) {
    const uint8_t *ahead = bytes + at->ahead;
    if (ahead >= at->end) ahead = at->next + (ahead - at->end);
    size_t apart = at->how == FR_PREFETCH_L1 ? at->apart : at->apart + SKEW;
    FR_UNROLLED_FOR (size_t t = 0; t < tiles; t++) fr_prefetch(at->how, ahead + t * apart, step);
}

FR_INLINE void load_chains(__m512 acc[PAIR], const place *at, bool started, size_t row, size_t tiles) {
    FR_UNROLLED_FOR (size_t t = 0; t < tiles; t++)
        acc[t] = _mm512_maskz_loadu_ps(started ? at->stored[t] : 0, at->y[t] + row * at->y_stride);
}

FR_INLINE void store_chains(const place *at, const __m512 acc[PAIR], size_t row, size_t tiles) {
    FR_UNROLLED_FOR (size_t t = 0; t < tiles; t++)
        _mm512_mask_storeu_ps(at->y[t] + row * at->y_stride, at->stored[t], acc[t]);
}

/* Opens the current block of each tile, and returns the number of runs in that block. */
FR_INLINE size_t open_blocks(const format *f, const product *job, const place *at, block *blocks, size_t tiles) {
    FR_UNROLLED_FOR (size_t t = 0; t < tiles; t++) f->open(&blocks[t], at->bytes + t * at->partner);
    if (!grouped(f)) return f->runs;
    size_t left = ((size_t)(at->end - at->bytes) - head_bytes(f, job)) / f->bytes, runs = block_runs(f, job);
    if (left < runs) runs = left;
    prefetch(at, at->bytes + runs * f->bytes, 64, tiles);
    return runs;
}

/* Returns the number of bytes that are prefetched for one run: its codes, and its share of the block's other bytes. */
FR_INLINE size_t run_step(const format *f) {
    return grouped(f) ? f->bytes : f->bytes / f->runs;
}

/* Computes up to FEW rows of a chunk with tile `tile` or, if `tiles` is PAIR, with that tile and its partner. */
FR_INLINE void compute_few(const format *f, const products *by, const product *job, const chunk *c, size_t tile,
                           size_t rows, size_t tiles) {
    place at = place_of(f, job, c, tile, tiles);
    size_t step = run_step(f), head = head_bytes(f, job);
    const fr_qblock *x = c->panel;
    block blocks[PAIR] = {{.values = c->values, .tiles = job->tiles}, {.values = c->values, .tiles = job->tiles}};
    __m512 acc[FEW][PAIR];
    FR_UNROLLED_FOR (size_t row = 0; row < rows; row++) load_chains(acc[row], &at, c->from > 0, row, tiles);
    for (; at.bytes < at.end; at.bytes += block_bytes(f, job)) {
        size_t count = open_blocks(f, job, &at, blocks, tiles);
        for (size_t i = 0; i < count; i++, x += rows) {
            run runs[PAIR];
            tiles_run p = {blocks, {at.bytes + head, at.bytes + head + at.partner}, i, runs};
            prefetch(&at, at.bytes + i * step, step, tiles);
            FR_UNROLLED_FOR (size_t t = 0; t < tiles; t++) f->scale(&runs[t], &blocks[t], p.bytes[t], i);
            add_run(f, by, &p, x, acc, rows, tiles, true);
        }
    }
    FR_UNROLLED_FOR (size_t row = 0; row < rows; row++) store_chains(&at, acc[row], row, tiles);
}

/* Computes up to MANY rows of a chunk with tile `tile` and its partner. Rows are taken one at a time. Types of 4 bits
 * with a minimum take two rows at a time: one row of such a type needs so many instructions that the core would not
 * look far enough ahead. Types of 5 bits have too few free registers for two rows. */
FR_INLINE void compute_many(const format *f, const products *by, const product *job, const chunk *c, size_t tile) {
    place at = place_of(f, job, c, tile, PAIR);
    bool minimum = f->joining == PLUS_MIN || f->joining == MINUS_MIN;
    size_t step = run_step(f), head = head_bytes(f, job), together = minimum && f->bits == 4 ? 2 : 1;
    const fr_qblock *x = c->panel;
    block blocks[PAIR] = {{.values = c->values, .tiles = job->tiles}, {.values = c->values, .tiles = job->tiles}};
    __m512 acc[MANY][PAIR];
    for (size_t row = 0; row < c->rows; row++) load_chains(acc[row], &at, c->from > 0, row, PAIR);
    for (; at.bytes < at.end; at.bytes += block_bytes(f, job)) {
        size_t count = open_blocks(f, job, &at, blocks, PAIR);
        for (size_t i = 0; i < count; i++, x += c->rows) {
            run runs[PAIR];
            tiles_run p = {blocks, {at.bytes + head, at.bytes + head + at.partner}, i, runs};
            size_t row = 0;
            prefetch(&at, at.bytes + i * step, step, PAIR);
            FR_UNROLLED_FOR (size_t t = 0; t < PAIR; t++) {
                f->scale(&runs[t], &blocks[t], p.bytes[t], i);
                FR_UNROLLED_FOR (size_t g = 0; g < GROUPS; g++)
                    runs[t].codes[g] = f->code(&blocks[t], p.bytes[t], i, g);
            }
            for (; row + together <= c->rows; row += together)
                add_run(f, by, &p, x + row, acc + row, together, PAIR, false);
            if (row < c->rows) add_run(f, by, &p, x + row, acc + row, 1, PAIR, false);
        }
    }
    for (size_t row = 0; row < c->rows; row++) store_chains(&at, acc[row], row, PAIR);
}

/* ----------------------------------------------------------------------------------------------------- a whole call */

/* Copies a row's block into the panel. The corrections of the integer sums replace the sums of activations. If the
 * halves of a run are summed separately, `half` gets the first half's correction and `sum` the second half's. If the
 * halves have minima, `half` and `sum` get the sums of activations of the two halves instead. */
FR_INLINE void pack_block(const format *f, fr_qblock *to, const fr_qblock *x) {
    __m128i tail = _mm_loadu_si128((const __m128i *)&x->d);
    if (halved(f)) tail = _mm_mask_sub_epi32(tail, 4, tail, _mm_shuffle_epi32(tail, 0xff));
    if (f->joining != HALVES_MIN) tail = _mm_mask_mullo_epi32(tail, 12, tail, _mm_set1_epi32(-f->offset));
    _mm256_storeu_si256((__m256i *)to->q, _mm256_loadu_si256((const __m256i *)x->q));
    _mm_storeu_si128((__m128i *)&to->d, tail);
}

/* Fills the panel a few rows at a time. If their stride is a power of two, 64 rows at once would compete for the same
 * sets of the L1 cache. */
FR_INLINE void pack_panel(const format *f, const product *job, chunk *c) {
    size_t from = c->from * block_runs(f, job), runs = c->to * block_runs(f, job) - from;
    if (grouped(f) && c->to == job->blocks) runs = job->tiles->runs - from;
    for (size_t first = 0, last; first < c->rows; first = last) {
        last = first + FEW < c->rows ? first + FEW : c->rows;
        for (size_t i = 0; i < runs; i++)
            for (size_t r = first; r < last; r++)
                pack_block(f, &c->panel[i * c->rows + r], &job->x[(c->row + r) * job->x_stride + from + i]);
    }
}

/* Computes all tiles of a chunk. Callers pass c->rows as the constant `rows`. */
FR_INLINE void compute_tiles(const format *f, const products *by, const product *job, const chunk *c, size_t rows,
                             size_t tiles) {
    for (size_t tile = 0; tile < steps(job, tiles); tile++) compute_few(f, by, job, c, tile, rows, tiles);
}

/* Computes one row or two rows. Each condition begins with a constant, so that the compiler can omit calls that never
 * happen. */
FR_INLINE void compute_fewest(const format *f, const products *by, const product *job, const chunk *c, size_t rows) {
    bool paged = rows <= rows_paged(f) && c->how == FR_PREFETCH_PAGES;
    bool two_streams = rows == FEWEST && !halved(f) && c->few_to_l2;
    if (paged || two_streams)
        compute_tiles(f, by, job, c, rows, PAIR);
    else
        compute_tiles(f, by, job, c, rows, 1);
}

/* Computes all tiles of a chunk. Callers pass c->rows as the constant `rows`, or 0 if there are more than FEW rows. */
FR_INLINE void compute_chunk(const format *f, const products *by, const product *job, const chunk *c, size_t rows) {
    if (rows == 0)
        for (size_t tile = 0; tile < steps(job, PAIR); tile++) compute_many(f, by, job, c, tile);
    else if (rows <= FEWEST)
        compute_fewest(f, by, job, c, rows);
    else
        compute_tiles(f, by, job, c, rows, halved(f) ? 1 : PAIR);
}

/* Computes all tiles of a chunk. Each function of this type is for one number of rows. */
typedef void walk_fn(const product *job, const chunk *c);

#define FR_WALK(name, f, by, rows)                                       \
    static void name##_walk_##rows(const product *job, const chunk *c) { \
        compute_chunk(f, by, job, c, rows);                              \
    }

/* Defines name_walks. Entry 0 is for more than FEW rows, with the format `many`; entry n is for n rows, with the format
 * `name`. Every walk is a separate function, which is called once for each chunk. If all walks of a format were one
 * function, compiling them would take twice as long. */
#define FR_WALKS(name, many, by)                                                                \
    FR_WALK(name, many, by, 0)                                                                  \
    FR_WALK(name, &name, by, 1)                                                                 \
    FR_WALK(name, &name, by, 2)                                                                 \
    FR_WALK(name, &name, by, 3)                                                                 \
    FR_WALK(name, &name, by, 4)                                                                 \
    FR_WALK(name, &name, by, 5)                                                                 \
    FR_WALK(name, &name, by, 6)                                                                 \
    FR_WALK(name, &name, by, 7)                                                                 \
    FR_WALK(name, &name, by, 8)                                                                 \
    static walk_fn *const name##_walks[FEW + 1] = {name##_walk_0, name##_walk_1, name##_walk_2, \
                                                   name##_walk_3, name##_walk_4, name##_walk_5, \
                                                   name##_walk_6, name##_walk_7, name##_walk_8};

/* Computes one part of the rows. The columns of these rows are divided into chunks of equal length. */
FR_INLINE void compute_part(const format *f, walk_fn *const *walks, const product *job, chunk *c) {
    size_t most = PANEL / (c->rows > FEW ? MANY : c->rows) / block_runs(f, job);
    size_t chunks = (job->blocks + most - 1) / most, length = (job->blocks + chunks - 1) / chunks;
    for (c->from = 0; c->from < job->blocks; c->from = c->to) {
        c->to = c->from + length < job->blocks ? c->from + length : job->blocks;
        pack_panel(f, job, c);
        walks[c->rows > FEW ? 0 : c->rows](job, c);
    }
}

/* Computes a whole call. f: the format of the walks that this call uses. */
FR_INLINE void multiply(const format *f, walk_fn *const *walks, const product *job) {
    chunk c;
    const int8_t *values = grouped(f) ? NULL : fr_code_values(f->type);
    if (job->features == 0) return;
    if (values)
        c.values = _mm512_add_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)values)),
                                   _mm512_set1_epi8((char)f->offset));
    else
        c.values = _mm512_setzero_si512();
    for (c.row = 0; c.row < job->rows; c.row += c.rows) {
        size_t left = job->rows - c.row, parts = (left + MANY - 1) / MANY;
        c.rows = (left + parts - 1) / parts;
        choose_hint(f, &c);
        compute_part(f, walks, job, &c);
    }
}

FR_INLINE void matmul_block(const format *f, walk_fn *const *walks, const fr_matmul_block *of) {
    product job = {of->y,        of->y_stride, of->x, of->x_stride, of->rows, of->w, of->cols / (f->runs * RUN),
                   of->features, NULL};
    multiply(f, walks, &job);
}

/* Computes a call with grouped codes. many: the format for more than FEW rows. If a call has more than FEW rows, each
 * of its parts does too, so all panels of a call are packed for the same format. */
FR_INLINE void matmul_grouped(const format *f, const format *many, walk_fn *const *walks, const fr_matmul_grouped *of) {
    fr_grouped_tiles tiles = *of->tiles;
    product job = {of->y, of->y_stride, of->x, of->x_stride, of->rows, of->w, tiles.blocks, of->features, &tiles};
    if (many != f && of->rows > FEW)
        multiply(many, walks, &job);
    else
        multiply(f, walks, &job);
}

#endif
