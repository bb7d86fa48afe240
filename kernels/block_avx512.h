/* Packed block-quantized weights times quantized rows on zmm registers: what the AVX-512 files share, with VNNI and
 * without. Contract fr_matmul_block_fn in kernels.h.
 *
 * A lane is an output, so that a row's integer sums, its scale and its chain stay in their lane. The zero point of
 * codes is not taken off them but off the sums, which begin with a correction: -offset times the sum of their
 * activations. Codes of a run of 32 columns are unpacked once, into 8 registers a tile, for all rows of a part.
 *
 * A call walks, from the outside in: parts of the rows; chunks of columns, whose activations are packed into a panel
 * first, those of one run side by side, with the corrections of their sums; tiles of 16 outputs or pairs of them;
 * blocks; runs; rows.
 * Between two chunks, chains wait in y. Weights are prefetched AHEAD bytes before use, of each tile of a pair half as
 * many: more pushes the activations out of the L1 cache. What pages begin with is prefetched PAGES_AHEAD bytes before
 * use, as that is all the start that the processor's prefetchers need (Zen 4: 1 and 3 KB do as well, 4 KB worse). What
 * Intel's fewest rows ask of L2 they ask FEW_AHEAD bytes before use, of each tile. (A step's time over that of reading,
 * one row, 2, 3, 4 and 6 KB: Q4_0 1.05, 0.99, 1.04, 1.09; Q4_K 1.05, 1.01, 1.07, 1.15.)
 *
 * Memory is fast where it is read in order. So a pair's tiles are not neighbours but half of the outputs apart, and
 * each half is read from its start to its end; and a chunk is as long as the panel's size allows. (Two cores of
 * Zen 5: neighbours gave 1, 2 or 4 rows 83 to 90% of a single tile's speed, halves 95 to 103%; chunks that fit the L1
 * cache with their activations gave 4 rows of 6144 columns 86%.)
 *
 * Up to 8 rows are multiplied together by a register of codes just after it was unpacked. One or two wait for memory
 * whatever is done, and take a tile at a time; a pair where the processor's prefetchers do most of the work, which look
 * further ahead in two streams (Zen 4, 2 rows of Q8_0: 5 to 25%), and two rows where hints ask for L2 (Q4_0 1.05 and
 * 1.00 times the time of reading, Q4_K 1.11 and 1.00). From 3 on they take a pair: each broadcast of
 * activations is a load and meets two registers of codes, where one alone may be bound by loads, and twice as many
 * chains of products hide each other's latency (4 rows from the caches of Zen 4: 1.03 to 1.09 times a single tile's
 * speed). Q6_K alone has more to unpack and to scale than registers to do it for two tiles.
 *
 * More rows wait for products. A part is up to 64 of them, which meet a run of a pair of tiles one after the other:
 * their chains are loaded and stored each time, which the ports have time for, where fewer rows in registers need the
 * codes unpacked and read again for each 8 (Q6_K: 59% of the dot peak, 52% so). Activations come from the L2 cache.
 */
#ifndef FR_KERNELS_BLOCK_AVX512_H
#define FR_KERNELS_BLOCK_AVX512_H

#include "kernels/prefetch_x86.h"
#include "kernels/simd_avx512.h"
#include "quant/block_types.h"
#include "quant/packed.h"

#include <string.h>

enum {
    RUN = 32,
    GROUPS = RUN / 4, /* registers of codes that hold a run of a tile */
    FEWEST = 2,       /* rows that mostly take a tile at a time */
    FEW = 8,          /* rows that are multiplied together */
    MANY = 64,
    PAIR = 2,
    PANEL = 4096, /* runs of rows in a chunk: 192 KB, on the stack */
    AHEAD = 8192, /* bytes, as the next three */
    FEW_AHEAD = 3072,
    PAGES_AHEAD = 2048,
    SKEW = 320
};

/* Holds what the runs of a block share. */
typedef struct block {
    __m512 d, m;
    __m512i values; /* of codes that are looked up, plus the offset */
    uint8_t scales[8 * FR_TILE_FEATURES], mins[8 * FR_TILE_FEATURES];
} block;

/* A run, unpacked: register g has columns 4g .. 4g + 3. */
typedef struct run {
    __m512i codes[GROUPS];
    __m512 d, m;      /* of the run: its scale and minimum are in */
    __m512 low, high; /* scales of its halves, where these have their own */
    __m512 low_min, high_min;
} run;

typedef void open_fn(block *b, const uint8_t *bytes);
typedef void scale_fn(run *r, const block *b, const uint8_t *bytes, size_t index);
typedef __m512i code_fn(const block *b, const uint8_t *bytes, size_t index, size_t g);

/* HALVES: those of a run have scales of their own, and in HALVES_MIN minima; APART: as floats, each joins by itself. */
typedef enum joining { PLAIN, PLUS_MIN, MINUS_MIN, HALVES, HALVES_MIN, APART } joining;

typedef struct format {
    fr_dtype type;
    size_t bytes, runs; /* of a block of a tile */
    unsigned bits;      /* of a code, once looked up */
    int offset;
    joining joining;
    open_fn *open;   /* a block */
    scale_fn *scale; /* its run `index` */
    code_fn *code;   /* codes g of its run `index` */
} format;

/* The sizes of a format, for its initializer. */
#define FR_SIZES(word) FR_TILE_BYTES_##word, FR_RUNS_##word

/* Adds to each lane of `sum` the products of its codes, unsigned and of `bits` bits, four in each of `groups`
 * registers, with the activations q. shared: they are worth a register, as another tile's codes meet them too. */
typedef __m512i dot_fn(__m512i sum, const __m512i *codes, const int8_t *q, size_t groups, unsigned bits, bool shared);

/* Says how an instruction set multiplies, and how many groups of columns it adds up at a time by the bits of a code. */
typedef struct products {
    dot_fn *dot;
    uint8_t groups[9]; /* 7: codes up to 86 */
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

/* a | (b & mask), bytes. */
FR_INLINE __m512i or_bits(__m512i a, __m512i b, char mask) {
    return _mm512_ternarylogic_epi64(a, b, _mm512_set1_epi8(mask), 0xf8);
}

/* Four neighbouring activations in each lane. */
FR_INLINE __m512i spread(const int8_t *q) {
    int32_t four;
    memcpy(&four, q, sizeof four);
    return _mm512_set1_epi32(four);
}

/* Bits that are about to be masked, moved `up` within their bytes. */
FR_INLINE __m512i moved(__m512i bits, int up) {
    return up >= 0 ? _mm512_slli_epi16(bits, (unsigned)up) : _mm512_srli_epi16(bits, (unsigned)-up);
}

/* Group g of a run. */
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

/* A bit of each column, doubled. */
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

/* 2^(e - 128), as scalar has it: the table's values are doubled. */
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

/* E4M3 without a sign, moved to where a float16 has its exponent and fraction. */
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
    (void)b, (void)index;
    return ones(bytes + 32, g);
}

/* Q2_0's only run, or one of TQ2_0. */
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

/* Rows of four neighbouring scales each: low nibbles, and two high bits that `up` rotates to bits 4 and 5. */
FR_INLINE __m512i joined(__m512i nibbles, __m512i high, __m512i up) {
    return or_bits(nibbles, _mm512_rolv_epi32(high, up), 48);
}

/* A number for each row of 16 bytes. */
FR_INLINE __m512i by_row(int a, int b, int c, int d) {
    return _mm512_set_epi32(d, d, d, d, c, c, c, c, b, b, b, b, a, a, a, a);
}

/* The two numbers of 6 bits of all 8 runs at once, as scales and minima: four rows of 16 features in a register. */
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

/* Unpacks a block's scales: those of each run's first half are put among the scales, those of its second half among the
 * minima. */
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

/* Prefetches all scales at once: read along with the codes they'd be a second stream in the same pages, and the
 * processor's prefetchers follow neither well. (Zen 4, one row alone: 2 to 3% faster.) */
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

/* A row's scales in the low halves of its bytes, its minima in the high ones. */
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

/* IQ1's and IQ2's unit is 1/8. */
FR_INLINE void open_eighths(block *b, const uint8_t *bytes) {
    b->d = _mm512_mul_ps(halves(bytes), _mm512_set1_ps(fr_code_unit(FR_IQ2_S)));
}

FR_INLINE void open_iq3_xxs(block *b, const uint8_t *bytes) {
    b->d = _mm512_mul_ps(halves(bytes), _mm512_set1_ps(fr_code_unit(FR_IQ3_XXS)));
}

/* 2 scale + 1 of the low (high) half of each byte. */
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

/* Serves IQ1_S too; IQ1_M has the next one. */
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
                    nvfp4 = {FR_NVFP4, FR_SIZES(nvfp4), 5, 12, APART, open_nothing, scale_nvfp4, code_nvfp4};

FR_INLINE bool halved(const format *f) {
    return f->joining == HALVES || f->joining == HALVES_MIN || f->joining == APART;
}

/* Returns up to how many rows most lines are left to the processor's prefetchers where hints would ask for L2. These
 * rows use up a line of codes in so few instructions that the core itself looks far enough ahead, and hints for every
 * line would only take buffers from it. (Zen 4, shares of the bandwidth that whole steps reach, with no hints and with
 * those for pages: one row of Q8_0 where memory reads 30 GB/s 97 and 99%, where it reads 46 81 and 93%; one of Q4_0 89
 * and 93%; 4 rows of Q8_0 85 with all hints and 89%. But one of Q4_K at 46 GB/s 80 with all and 73%.) */
FR_INLINE size_t rows_paged(const format *f) {
    return f->runs > 1 ? 0 : f->code == code_q8_0 ? 4 : 1;
}

/* ---------------------------------------------------------------------------------------- a run of one or two tiles */

/* Says where a run lies in each tile. Its unpacked codes are not part of the struct, because clang would keep all of a
 * struct in memory that is initialized only in part. */
typedef struct tiles_run {
    const block *blocks;
    const uint8_t *bytes[PAIR];
    size_t index;
    run *runs; /* [PAIR] */
} tiles_run;

typedef __m512i sums[FEW][PAIR];

/* Adds groups from..to - 1 of rows x to their sums. Codes are unpacked just before they are used first: a burst of
 * unpacking would take the ports from the products.
 *
 * A pair's tiles share a register of activations, but not where the core is to look far ahead, which it does by
 * instructions. (Zen 4, Q8_0, 1 to 4 rows: whole steps 1 to 3% faster without that register; Q4_0, Q4_K: no
 * difference.) */
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

/* With which a sum begins. Where a panel has sums for minima instead, codes have no offset. */
FR_INLINE __m512i correction(const format *f, int32_t from_panel) {
    return f->joining == HALVES_MIN ? _mm512_setzero_si512() : _mm512_set1_epi32(from_panel);
}

/* The integer sums of up to FEW rows, as floats. x: of a panel, with corrections for sums.
 *
 * Q6_K's are below 2 * 128 * 16 * 32 * 127 < 2^24, exact in floats too: two conversions, a product and an fma cost no
 * more ports than two vpmulld here, and half as many where vpmulld is two operations. */
FR_INLINE void sum_run(const format *f, const products *by, tiles_run *p, const fr_qblock *x, __m512 isum[][PAIR],
                       size_t rows, size_t tiles, bool unpack) {
    size_t end = halved(f) ? GROUPS / 2 : GROUPS;
    sums sum;
    FR_UNROLLED_FOR (size_t row = 0; row < rows; row++)
        sum[row][0] = sum[row][1] = correction(f, halved(f) ? x[row].half : x[row].sum);
    add_groups(f, by, p, x, sum, rows, tiles, 0, end, unpack);
    FR_UNROLLED_FOR (size_t row = 0; row < rows; row++)
        FR_UNROLLED_FOR (size_t t = 0; t < tiles; t++) {
            isum[row][t] = _mm512_cvtepi32_ps(sum[row][t]);
            sum[row][t] = correction(f, x[row].sum);
        }
    if (!halved(f)) return;
    add_groups(f, by, p, x, sum, rows, tiles, end, GROUPS, unpack);
    FR_UNROLLED_FOR (size_t row = 0; row < rows; row++)
        FR_UNROLLED_FOR (size_t t = 0; t < tiles; t++) {
            __m512 high = _mm512_mul_ps(p->runs[t].high, _mm512_cvtepi32_ps(sum[row][t]));
            isum[row][t] = _mm512_fmadd_ps(p->runs[t].low, isum[row][t], high);
        }
}

/* Integers below 2^24, exact in floats: the halves' sums of activations, times their minima. */
FR_INLINE __m512 minima(const run *r, const fr_qblock *x) {
    __m512 first = _mm512_cvtepi32_ps(_mm512_set1_epi32(x->half));
    __m512 second = _mm512_cvtepi32_ps(_mm512_set1_epi32(x->sum));
    return _mm512_fmadd_ps(r->low_min, first, _mm512_mul_ps(r->high_min, second));
}

/* Adds a run whose halves have scales of their own, so that each half joins the chains by itself. */
FR_INLINE void add_apart(const format *f, const products *by, tiles_run *p, const fr_qblock *x, __m512 acc[][PAIR],
                         size_t rows, size_t tiles, bool unpack) {
    FR_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
        size_t from = half * GROUPS / 2;
        sums sum;
        FR_UNROLLED_FOR (size_t row = 0; row < rows; row++)
            sum[row][0] = sum[row][1] = correction(f, half ? x[row].sum : x[row].half);
        add_groups(f, by, p, x, sum, rows, tiles, from, from + GROUPS / 2, unpack);
        FR_UNROLLED_FOR (size_t row = 0; row < rows; row++)
            FR_UNROLLED_FOR (size_t t = 0; t < tiles; t++) {
                const run *r = &p->runs[t];
                __m512 d = _mm512_mul_ps(half ? r->high : r->low, _mm512_set1_ps(x[row].d));
                acc[row][t] = _mm512_fmadd_ps(d, _mm512_cvtepi32_ps(sum[row][t]), acc[row][t]);
            }
    }
}

/* A run of up to FEW rows joins their chains. */
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

/* Holds the arguments of fr_matmul_block_fn, with columns counted in blocks. */
typedef struct product {
    float *y;
    size_t y_stride;
    const fr_qblock *x;
    size_t x_stride, rows;
    const uint8_t *w;
    size_t blocks, features;
} product;

/* Columns and rows that are multiplied at a time, with all tiles. */
typedef struct chunk {
    size_t from, to; /* blocks */
    size_t row, rows;
    fr_prefetch_hint how;
    bool few_to_l2; /* these rows are so few that L2 serves them, though more are not */
    __m512i values;
    fr_qblock panel[PANEL]; /* of a run: the rows, then the next run's */
} chunk;

FR_INLINE void choose_hint(const format *f, chunk *c) {
    fr_prefetch_hint here = fr_prefetch_hint_here();
    bool paged = here == FR_PREFETCH_L2 && c->rows <= rows_paged(f);
    c->few_to_l2 = c->rows <= FEWEST && fr_prefetch_few_to_l2();
    c->how = c->few_to_l2 ? FR_PREFETCH_L2 : paged ? FR_PREFETCH_PAGES : here;
}

/* A chunk of one tile or of a pair. */
typedef struct place {
    const uint8_t *bytes, *end; /* of its blocks; of a pair the first tile's */
    const uint8_t *next;        /* what is read after them */
    size_t apart;               /* bytes from a tile to its partner */
    size_t partner;             /* the same; 0: a tile without one is its own, whose results are dropped */
    float *y[PAIR];
    size_t y_stride;
    __mmask16 stored[PAIR];
    fr_prefetch_hint how;
    size_t ahead; /* bytes */
} place;

/* Returns the number of steps that take `tiles` tiles each. The two tiles of a pair are this many apart, so that both
 * are read in the order of memory from one pair to the next. */
FR_INLINE size_t steps(const product *job, size_t tiles) {
    return (job->features + tiles * FR_TILE_FEATURES - 1) / (tiles * FR_TILE_FEATURES);
}

FR_INLINE place place_of(const format *f, const product *job, const chunk *c, size_t tile, size_t tiles) {
    size_t tile_bytes = job->blocks * f->bytes, half = steps(job, PAIR), left = job->features - tile * FR_TILE_FEATURES;
    place at = {.apart = half * tile_bytes, .y_stride = job->y_stride, .how = c->how};
    at.ahead = c->how == FR_PREFETCH_PAGES ? PAGES_AHEAD : c->few_to_l2 ? FEW_AHEAD : AHEAD / tiles;
    at.y[0] = job->y + c->row * job->y_stride + tile * FR_TILE_FEATURES;
    at.y[1] = at.y[0] + half * FR_TILE_FEATURES;
    at.bytes = job->w + tile * tile_bytes + c->from * f->bytes;
    at.end = at.bytes + (c->to - c->from) * f->bytes;
    if (tile + 1 < steps(job, tiles))
        at.next = at.bytes + tile_bytes;
    else
        at.next = c->to < job->blocks ? job->w + c->to * f->bytes : at.bytes;
    at.partner = left > half * FR_TILE_FEATURES ? at.apart : 0;
    at.stored[0] = lanes(left);
    at.stored[1] = at.partner ? lanes(left - half * FR_TILE_FEATURES) : 0;
    return at;
}

/* Prefetches a run's worth ahead of bytes, of each tile. Into L2 the second one SKEW bytes further: two streams that
 * are in step within their pages get in each other's way there (4 rows of a pair: 82% of the bandwidth, 93% so). */
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

/* Up to FEW rows with tile `tile`, or with it and its partner. */
FR_INLINE void compute_few(const format *f, const products *by, const product *job, const chunk *c, size_t tile,
                           size_t rows, size_t tiles) {
    place at = place_of(f, job, c, tile, tiles);
    size_t step = f->bytes / f->runs;
    const fr_qblock *x = c->panel;
    block blocks[PAIR] = {{.values = c->values}, {.values = c->values}};
    __m512 acc[FEW][PAIR];
    FR_UNROLLED_FOR (size_t row = 0; row < rows; row++) load_chains(acc[row], &at, c->from > 0, row, tiles);
    for (; at.bytes < at.end; at.bytes += f->bytes) {
        FR_UNROLLED_FOR (size_t t = 0; t < tiles; t++) f->open(&blocks[t], at.bytes + t * at.partner);
        for (size_t i = 0; i < f->runs; i++, x += rows) {
            run runs[PAIR];
            tiles_run p = {blocks, {at.bytes, at.bytes + at.partner}, i, runs};
            prefetch(&at, at.bytes + i * step, step, tiles);
            FR_UNROLLED_FOR (size_t t = 0; t < tiles; t++) f->scale(&runs[t], &blocks[t], p.bytes[t], i);
            add_run(f, by, &p, x, acc, rows, tiles, true);
        }
    }
    FR_UNROLLED_FOR (size_t row = 0; row < rows; row++) store_chains(&at, acc[row], row, tiles);
}

/* Up to MANY rows with tile `tile` and its partner, one row at a time; two where a minimum makes a row's work so long
 * that the core does not see enough of the next one, unless five bits take the registers for that. */
FR_INLINE void compute_many(const format *f, const products *by, const product *job, const chunk *c, size_t tile) {
    place at = place_of(f, job, c, tile, PAIR);
    bool minimum = f->joining == PLUS_MIN || f->joining == MINUS_MIN;
    size_t step = f->bytes / f->runs, together = minimum && f->bits == 4 ? 2 : 1;
    const fr_qblock *x = c->panel;
    block blocks[PAIR] = {{.values = c->values}, {.values = c->values}};
    __m512 acc[MANY][PAIR];
    for (size_t row = 0; row < c->rows; row++) load_chains(acc[row], &at, c->from > 0, row, PAIR);
    for (; at.bytes < at.end; at.bytes += f->bytes) {
        FR_UNROLLED_FOR (size_t t = 0; t < PAIR; t++) f->open(&blocks[t], at.bytes + t * at.partner);
        for (size_t i = 0; i < f->runs; i++, x += c->rows) {
            run runs[PAIR];
            tiles_run p = {blocks, {at.bytes, at.bytes + at.partner}, i, runs};
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

/* A row's block with the zero-point corrections of its integer sums in place of the sums of its activations: of the
 * second half in `sum`, of the first in `half`, where a run has two. Where these have minima, the sums stay. */
FR_INLINE void pack_block(const format *f, fr_qblock *to, const fr_qblock *x) {
    __m128i tail = _mm_loadu_si128((const __m128i *)&x->d);
    if (halved(f)) tail = _mm_mask_sub_epi32(tail, 4, tail, _mm_shuffle_epi32(tail, 0xff));
    if (f->joining != HALVES_MIN) tail = _mm_mask_mullo_epi32(tail, 12, tail, _mm_set1_epi32(-f->offset));
    _mm256_storeu_si256((__m256i *)to->q, _mm256_loadu_si256((const __m256i *)x->q));
    _mm_storeu_si128((__m128i *)&to->d, tail);
}

/* A few rows at a time: 64 that lie a power of two apart would meet in the same lines of the L1 cache. */
FR_INLINE void pack_panel(const format *f, const product *job, chunk *c) {
    size_t from = c->from * f->runs, runs = c->to * f->runs - from;
    for (size_t first = 0, last; first < c->rows; first = last) {
        last = first + FEW < c->rows ? first + FEW : c->rows;
        for (size_t i = 0; i < runs; i++)
            for (size_t r = first; r < last; r++)
                pack_block(f, &c->panel[i * c->rows + r], &job->x[(c->row + r) * job->x_stride + from + i]);
    }
}

/* rows: as the chunk has them, a constant. */
FR_INLINE void compute_tiles(const format *f, const products *by, const product *job, const chunk *c, size_t rows,
                             size_t tiles) {
    for (size_t tile = 0; tile < steps(job, tiles); tile++) compute_few(f, by, job, c, tile, rows, tiles);
}

/* One row or two. What is known when this is compiled is asked first. */
FR_INLINE void compute_fewest(const format *f, const products *by, const product *job, const chunk *c, size_t rows) {
    bool paged = rows <= rows_paged(f) && c->how == FR_PREFETCH_PAGES;
    bool two_streams = rows == FEWEST && !halved(f) && c->few_to_l2;
    if (paged || two_streams)
        compute_tiles(f, by, job, c, rows, PAIR);
    else
        compute_tiles(f, by, job, c, rows, 1);
}

FR_INLINE void compute_chunk(const format *f, const products *by, const product *job, const chunk *c) {
    size_t tiles = halved(f) ? 1 : PAIR; /* of 3 rows or more */
    switch (c->rows) {
    case 1: compute_fewest(f, by, job, c, 1); break;
    case 2: compute_fewest(f, by, job, c, 2); break;
    case 3: compute_tiles(f, by, job, c, 3, tiles); break;
    case 4: compute_tiles(f, by, job, c, 4, tiles); break;
    case 5: compute_tiles(f, by, job, c, 5, tiles); break;
    case 6: compute_tiles(f, by, job, c, 6, tiles); break;
    case 7: compute_tiles(f, by, job, c, 7, tiles); break;
    case FEW: compute_tiles(f, by, job, c, FEW, tiles); break;
    default:
        for (size_t tile = 0; tile < steps(job, PAIR); tile++) compute_many(f, by, job, c, tile);
    }
}

/* The columns of some rows, in chunks of equal length. */
FR_INLINE void compute_part(const format *f, const products *by, const product *job, chunk *c) {
    size_t most = PANEL / (c->rows > FEW ? MANY : c->rows) / f->runs;
    size_t chunks = (job->blocks + most - 1) / most, length = (job->blocks + chunks - 1) / chunks;
    for (c->from = 0; c->from < job->blocks; c->from = c->to) {
        c->to = c->from + length < job->blocks ? c->from + length : job->blocks;
        pack_panel(f, job, c);
        compute_chunk(f, by, job, c);
    }
}

FR_INLINE void matmul_block(const format *f, const products *by, const fr_matmul_block *of) {
    product job = {of->y, of->y_stride, of->x, of->x_stride, of->rows, of->w, of->cols / (f->runs * RUN), of->features};
    chunk c;
    const int8_t *values = fr_code_values(f->type);
    if (job.features == 0) return;
    if (values)
        c.values = _mm512_add_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)values)),
                                   _mm512_set1_epi8((char)f->offset));
    else
        c.values = _mm512_setzero_si512();
    for (c.row = 0; c.row < job.rows; c.row += c.rows) {
        size_t left = job.rows - c.row, parts = (left + MANY - 1) / MANY;
        c.rows = (left + parts - 1) / parts;
        choose_hint(f, &c);
        compute_part(f, by, &job, &c);
    }
}

#endif
