/* Implements the steps of flash attention (attention.h) on registers of 16 floats. Up to six queries are computed
 * together, with 24 registers of sums. For these 24 sums, a step loads four registers of K and six of the queries, or
 * four registers of V and six weights. If there are seven or eight queries in all, as in decoding with as many heads to
 * a KV head, they take each step together, so that no value is converted twice. Converting float16 takes as long as
 * multiplying, so with many queries each value is converted once for all queries. */
#include "kernels/attention_codes_avx512.h"
#include "kernels/simd_avx512.h"

#include <math.h>
#include <string.h>

enum {
    TOGETHER = 6,
    FEW = 8,     /* with at most this many queries in all, all of them are computed together */
    COLUMNS = 4, /* registers of V's columns in one step */
    STRIP = 16 * COLUMNS,
    UNDECODED = 8, /* with at most this many queries, each query converts its float16 values itself */
    LINES = 2,     /* cache lines that are prefetched with each register of K and each position of V */
    SUMS = 8       /* registers in which scores are added up at a time */
};

FR_INLINE __m512 f16_of(__m256i halves) {
    return _mm512_cvtph_ps(halves);
}

FR_INLINE __m512 bf16_of(__m256i halves) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

/* Returns a block's scale d in all lanes. */
FR_INLINE __m512 scale_of(const uint8_t *block) {
    uint16_t half;
    memcpy(&half, block, sizeof half);
    return _mm512_set1_ps(_cvtsh_ss(half));
}

/* Returns the values of 16 codes of Q8_0 or Q4_0. */
FR_INLINE __m512 values_of(__m128i codes, __m512 d) {
    return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes)), d);
}

FR_INLINE void store_codes(float *y, __m128i codes, __m512 d) {
    _mm512_storeu_ps(y, values_of(codes, d));
}

/* Decodes blocks of `bytes` bytes. */
FR_INLINE void decode_blocks(codes_fn *codes, size_t bytes, float *y, const uint8_t *block, size_t n) {
    for (size_t i = 0; i < n; i += 32, block += bytes) {
        __m512 d = scale_of(block);
        __m256i values = codes(block);
        store_codes(y + i, _mm256_castsi256_si128(values), d);
        store_codes(y + i + 16, _mm256_extracti128_si256(values, 1), d);
    }
}

static void decode_q8_0(float *y, const void *x, size_t n) {
    decode_blocks(q8_0_codes, 34, y, x, n);
}

static void decode_q4_0(float *y, const void *x, size_t n) {
    decode_blocks(q4_0_codes, 18, y, x, n);
}

/* Looks codes up in a table of floats, which takes fewer operations than a lookup of bytes and their conversion. Only
 * the lowest four bits of a lane are its code. */
static void decode_turbo4(float *y, const void *x, size_t n) {
    const __m512 table = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_setr_epi8(FR_TURBO4_TABLE)));
    const uint8_t *block = x;
    for (size_t i = 0; i < n; i += 32, block += 18) {
        __m512 d = scale_of(block);
        __m512i codes = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(block + 2)));
        _mm512_storeu_ps(y + i, _mm512_mul_ps(_mm512_permutexvar_ps(codes, table), d));
        _mm512_storeu_ps(y + i + 16, _mm512_mul_ps(_mm512_permutexvar_ps(_mm512_srli_epi32(codes, 4), table), d));
    }
}

static void decode_turbo3(float *y, const void *x, size_t n) {
    decode_blocks(turbo3_codes, 14, y, x, n);
}

/* Loads values of a row of the cache from index d on, in the lanes of the mask; the other lanes are 0. */
typedef __m512 load_fn(const void *row, size_t d, __mmask16 mask);

FR_INLINE __m512 load_f32(const void *row, size_t d, __mmask16 mask) {
    return load_lanes((const float *)row + d, mask);
}

FR_INLINE __m512 load_f16(const void *row, size_t d, __mmask16 mask) {
    return f16_of(_mm256_maskz_loadu_epi16(mask, (const uint16_t *)row + d));
}

FR_INLINE __m512 load_bf16(const void *row, size_t d, __mmask16 mask) {
    return bf16_of(_mm256_maskz_loadu_epi16(mask, (const uint16_t *)row + d));
}

FR_INLINE void decode(load_fn *load, float *y, const void *x, size_t n) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) _mm512_storeu_ps(y + i, load(x, i, 0xffff));
    if (i < n) _mm512_mask_storeu_ps(y + i, lanes(n - i), load(x, i, lanes(n - i)));
}

static void decode_f16(float *y, const void *x, size_t n) {
    decode(load_f16, y, x, n);
}

static void decode_bf16(float *y, const void *x, size_t n) {
    decode(load_bf16, y, x, n);
}

/* Multiplies one register of columns of K by the same columns of `count` queries. Callers pass a constant as
 * `count`. */
FR_INLINE void score_step(load_fn *load, __m512 p[][FR_ATTN_SCORES], const fr_attn_state *states, size_t count,
                          const void *const *rows, size_t d, __mmask16 mask) {
    __m512 values[FR_ATTN_SCORES];
    FR_UNROLLED_FOR (size_t i = 0; i < FR_ATTN_SCORES; i++) values[i] = load(rows[i], d, mask);
    FR_UNROLLED_FOR (size_t j = 0; j < count; j++) {
        __m512 q = load_lanes(states[j].q + d, mask);
        FR_UNROLLED_FOR (size_t i = 0; i < FR_ATTN_SCORES; i++)
            p[j][i] = _mm512_mask3_fmadd_ps(q, values[i], p[j][i], mask);
    }
}

/* Adds up the 16 partial sums of four queries at four positions. Lanes 4 j to 4 j + 3 of the result belong to query
 * j. */
FR_INLINE __m512 sum16_of_16(__m512 p[][FR_ATTN_SCORES]) {
    __m512 four[FR_ATTN_SCORES], two[2];
    FR_UNROLLED_FOR (size_t i = 0; i < FR_ATTN_SCORES; i++) {
        __m512 eight_01 =
            _mm512_add_ps(_mm512_shuffle_f32x4(p[0][i], p[1][i], 0x44), _mm512_shuffle_f32x4(p[0][i], p[1][i], 0xee));
        __m512 eight_23 =
            _mm512_add_ps(_mm512_shuffle_f32x4(p[2][i], p[3][i], 0x44), _mm512_shuffle_f32x4(p[2][i], p[3][i], 0xee));
        four[i] = _mm512_add_ps(_mm512_shuffle_f32x4(eight_01, eight_23, 0x88),
                                _mm512_shuffle_f32x4(eight_01, eight_23, 0xdd));
    }
    FR_UNROLLED_FOR (size_t i = 0; i < 2; i++)
        two[i] = _mm512_add_ps(_mm512_shuffle_ps(four[2 * i], four[2 * i + 1], 0x44),
                               _mm512_shuffle_ps(four[2 * i], four[2 * i + 1], 0xee));
    return _mm512_add_ps(_mm512_shuffle_ps(two[0], two[1], 0x88), _mm512_shuffle_ps(two[0], two[1], 0xdd));
}

/* Computes the scores of `count` queries at four positions. Full registers are loaded without a mask, because a masked
 * load is one operation more. */
FR_INLINE void score(load_fn *load, fr_attn_state *states, size_t count, fr_attn_rows k, int32_t first, size_t head_dim,
                     float scale, fr_attn_ahead ahead) {
    __m512 p[TOGETHER][FR_ATTN_SCORES];
    const void *rows[FR_ATTN_SCORES];
    size_t d = 0;
    for (int32_t i = 0; i < FR_ATTN_SCORES; i++) rows[i] = fr_attn_seen_row(states, k, first, i);
    FR_UNROLLED_FOR (size_t j = 0; j < count; j++)
        FR_UNROLLED_FOR (size_t i = 0; i < FR_ATTN_SCORES; i++) p[j][i] = _mm512_setzero_ps();
    for (; d + 16 <= head_dim; d += 16) {
        fr_attn_ask(&ahead, LINES);
        score_step(load, p, states, count, rows, d, 0xffff);
    }
    fr_attn_ask(&ahead, SIZE_MAX);
    if (d < head_dim) score_step(load, p, states, count, rows, d, lanes(head_dim - d));
    if (count >= 4) {
        __m512 s = _mm512_mul_ps(sum16_of_16(p), _mm512_set1_ps(scale));
        _mm_storeu_ps(states[0].weights + first, _mm512_castps512_ps128(s));
        _mm_storeu_ps(states[1].weights + first, _mm512_extractf32x4_ps(s, 1));
        _mm_storeu_ps(states[2].weights + first, _mm512_extractf32x4_ps(s, 2));
        _mm_storeu_ps(states[3].weights + first, _mm512_extractf32x4_ps(s, 3));
    }
    FR_UNROLLED_FOR (size_t j = count >= 4 ? 4 : 0; j < count; j++) {
        __m128 s = _mm_mul_ps(sum16_of_4(p[j][0], p[j][1], p[j][2], p[j][3]), _mm_set1_ps(scale));
        _mm_storeu_ps(states[j].weights + first, s);
    }
}

/* Calls `score` with a constant as `count`. The sums of seven or eight queries do not fit the registers, so four
 * queries are computed first and then the others. */
FR_INLINE void score_by_count(load_fn *load, fr_attn_state *states, size_t count, fr_attn_rows k, int32_t first,
                              size_t head_dim, float scale, fr_attn_ahead ahead) {
    if (count > TOGETHER) {
        score(load, states, 4, k, first, head_dim, scale, ahead);
        states += 4, count -= 4, ahead = (fr_attn_ahead){0};
    }
    switch (count) {
    case 1: score(load, states, 1, k, first, head_dim, scale, ahead); break;
    case 2: score(load, states, 2, k, first, head_dim, scale, ahead); break;
    case 3: score(load, states, 3, k, first, head_dim, scale, ahead); break;
    case 4: score(load, states, 4, k, first, head_dim, scale, ahead); break;
    case 5: score(load, states, 5, k, first, head_dim, scale, ahead); break;
    default: score(load, states, TOGETHER, k, first, head_dim, scale, ahead);
    }
}

static void scores(fr_attn_state *states, size_t count, fr_attn_rows k, int32_t first, size_t head_dim, float scale,
                   fr_attn_ahead ahead) {
    switch (k.type) {
    case FR_F16: score_by_count(load_f16, states, count, k, first, head_dim, scale, ahead); break;
    case FR_BF16: score_by_count(load_bf16, states, count, k, first, head_dim, scale, ahead); break;
    default: score_by_count(load_f32, states, count, k, first, head_dim, scale, ahead);
    }
}

FR_INLINE __m512 load_q8_0(const void *row, size_t d, __mmask16 mask) {
    const uint8_t *block = (const uint8_t *)row + d / 32 * 34;
    (void)mask;
    return values_of(_mm_loadu_si128((const void *)(block + 2 + d % 32)), scale_of(block));
}

/* Exchanges the rows and columns of 16 registers of 16 values. */
FR_INLINE void transpose_floats(__m512 r[16]) {
    __m512 t[16];
    FR_UNROLLED_FOR (size_t i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    FR_UNROLLED_FOR (size_t i = 0; i < 16; i += 4)
        FR_UNROLLED_FOR (size_t j = 0; j < 2; j++) {
            r[i + 2 * j] = _mm512_shuffle_ps(t[i + j], t[i + j + 2], 0x44);
            r[i + 2 * j + 1] = _mm512_shuffle_ps(t[i + j], t[i + j + 2], 0xee);
        }
    FR_UNROLLED_FOR (size_t i = 0; i < 16; i += 8)
        FR_UNROLLED_FOR (size_t j = i; j < i + 4; j++) {
            t[j] = _mm512_shuffle_f32x4(r[j], r[j + 4], 0x88);
            t[j + 4] = _mm512_shuffle_f32x4(r[j], r[j + 4], 0xdd);
        }
    FR_UNROLLED_FOR (size_t j = 0; j < 8; j++) {
        r[j] = _mm512_shuffle_f32x4(t[j], t[j + 8], 0x88);
        r[j + 8] = _mm512_shuffle_f32x4(t[j], t[j + 8], 0xdd);
    }
}

/* Exchanges rows and columns of 16 registers of 32 float16 or BF16 values. Afterwards register 2 i has columns i and i
 * + 8 of all 16 rows, and register 2 i + 1 has columns i + 16 and i + 24. */
FR_INLINE void transpose_halves(__m512i r[16]) {
    __m512i t[16];
    __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    FR_UNROLLED_FOR (size_t i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi16(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi16(r[i], r[i + 1]);
    }
    FR_UNROLLED_FOR (size_t i = 0; i < 16; i += 4)
        FR_UNROLLED_FOR (size_t j = 0; j < 2; j++) {
            r[i + 2 * j] = _mm512_unpacklo_epi32(t[i + j], t[i + j + 2]);
            r[i + 2 * j + 1] = _mm512_unpackhi_epi32(t[i + j], t[i + j + 2]);
        }
    FR_UNROLLED_FOR (size_t i = 0; i < 16; i += 8)
        FR_UNROLLED_FOR (size_t j = 0; j < 4; j++) {
            t[i + 2 * j] = _mm512_unpacklo_epi64(r[i + j], r[i + j + 4]);
            t[i + 2 * j + 1] = _mm512_unpackhi_epi64(r[i + j], r[i + j + 4]);
        }
    FR_UNROLLED_FOR (size_t j = 0; j < 8; j++) {
        r[2 * j] = _mm512_permutex2var_epi64(t[j], low, t[j + 8]);
        r[2 * j + 1] = _mm512_permutex2var_epi64(t[j], high, t[j + 8]);
    }
}

/* Transposes `columns` columns, at most 16, of 16 rows. */
FR_INLINE void transpose_columns(load_fn *load, float *tile, size_t width, const void *const *rows, size_t d,
                                 size_t columns) {
    __m512 r[16];
    FR_UNROLLED_FOR (size_t i = 0; i < 16; i++) r[i] = load(rows[i], d, lanes(columns));
    transpose_floats(r);
    FR_UNROLLED_FOR (size_t i = 0; i < 16; i++)
        if (i < columns) _mm512_store_ps(tile + (d + i) * width, r[i]);
}

typedef __m512 convert_fn(__m256i halves);

/* Transposes 32 columns of 16 rows of 16-bit values. The values are transposed before they are converted, because a
 * register holds twice as many of these values as floats. */
FR_INLINE void transpose_32_columns(convert_fn *convert, float *tile, size_t width, const void *const *rows, size_t d) {
    __m512i r[16];
    FR_UNROLLED_FOR (size_t i = 0; i < 16; i++) r[i] = _mm512_loadu_si512((const uint16_t *)rows[i] + d);
    transpose_halves(r);
    FR_UNROLLED_FOR (size_t i = 0; i < 16; i++) {
        float *column = tile + (d + i / 2 + i % 2 * 16) * width;
        _mm512_store_ps(column, convert(_mm512_castsi512_si256(r[i])));
        _mm512_store_ps(column + 8 * width, convert(_mm512_extracti64x4_epi64(r[i], 1)));
    }
}

/* Transposes `width` rows. convert: converts 16-bit values to floats; NULL if the values have another size. */
FR_INLINE void transpose_rows(load_fn *load, convert_fn *convert, float *tile, size_t width, const void *const *rows,
                              size_t head_dim) {
    for (size_t i = 0; i < width; i += 16) {
        size_t d = 0;
        if (convert)
            for (; d + 32 <= head_dim; d += 32) transpose_32_columns(convert, tile + i, width, rows + i, d);
        for (; d + 16 <= head_dim; d += 16) transpose_columns(load, tile + i, width, rows + i, d, 16);
        if (d < head_dim) transpose_columns(load, tile + i, width, rows + i, d, head_dim - d);
    }
}

static void transpose(float *tile, size_t width, fr_dtype type, const void *const *rows, size_t head_dim) {
    switch ((unsigned)type) {
    case FR_F16: transpose_rows(load_f16, f16_of, tile, width, rows, head_dim); break;
    case FR_BF16: transpose_rows(load_bf16, bf16_of, tile, width, rows, head_dim); break;
    default: transpose_rows(load_f32, NULL, tile, width, rows, head_dim);
    }
}

/* Computes the partial sum p[i] of dot for each of `width` positions and each of `count` queries. Callers pass
 * constants as `count` and `width`. */
FR_INLINE void partial_sums(__m512 *p, const float *const *q, size_t count, const float *tile, size_t width, size_t i,
                            size_t head_dim) {
    size_t registers = width / 16;
    const float *keys = tile + i * width;
    FR_UNROLLED_FOR (size_t s = 0; s < count * registers; s++) p[s] = _mm512_setzero_ps();
    for (size_t d = i; d < head_dim; d += 16, keys += 16 * width)
        FR_UNROLLED_FOR (size_t j = 0; j < count; j++) {
            __m512 value = _mm512_set1_ps(q[j][d]);
            FR_UNROLLED_FOR (size_t c = 0; c < registers; c++)
                p[j * registers + c] = _mm512_fmadd_ps(value, _mm512_load_ps(keys + 16 * c), p[j * registers + c]);
        }
}

/* Adds `count` registers of b to those of a. */
FR_INLINE void add_sums(__m512 *a, const __m512 *b, size_t count) {
    FR_UNROLLED_FOR (size_t s = 0; s < count; s++) a[s] = _mm512_add_ps(a[s], b[s]);
}

/* Computes the scores of `count` queries with `width` positions, each position in a lane. Callers pass constants as
 * `count` and `width`. A score is the sum of dot's 16 partial sums p[0] to p[15]. The registers have room for only
 * three of the 16 partial sums of all scores at a time. So for i from 0 to 3, p[i] + p[i + 8] + p[i + 4] + p[i + 12] is
 * computed in the order of dot, and stored. At the end the four stored sums of each score are added. */
FR_INLINE void score_columns(fr_attn_state *states, size_t count, const float *tile, size_t width, int32_t first,
                             size_t head_dim, float scale, fr_attn_ahead *ahead, size_t lines) {
    size_t registers = width / 16, sums = count * registers;
    __m512 quarters[4][SUMS];
    const float *q[SUMS];
    FR_UNROLLED_FOR (size_t j = 0; j < count; j++) q[j] = states[j].q;
    for (size_t i = 0; i < 4; i++) {
        __m512 a[SUMS], b[SUMS], c[SUMS];
        fr_attn_ask(ahead, lines);
        partial_sums(a, q, count, tile, width, i, head_dim);
        partial_sums(b, q, count, tile, width, i + 8, head_dim);
        add_sums(a, b, sums);
        partial_sums(b, q, count, tile, width, i + 4, head_dim);
        partial_sums(c, q, count, tile, width, i + 12, head_dim);
        add_sums(b, c, sums);
        add_sums(a, b, sums);
        FR_UNROLLED_FOR (size_t s = 0; s < sums; s++) quarters[i][s] = a[s];
    }
    add_sums(quarters[0], quarters[2], sums);
    add_sums(quarters[1], quarters[3], sums);
    add_sums(quarters[0], quarters[1], sums);
    FR_UNROLLED_FOR (size_t s = 0; s < sums; s++)
        _mm512_storeu_ps(states[s / registers].weights + first + 16 * (s % registers),
                         _mm512_mul_ps(quarters[0][s], _mm512_set1_ps(scale)));
}

/* Computes the scores of all queries with `width` positions, for SUMS * 16 / width queries at a time. Callers pass a
 * constant as `width`. */
FR_INLINE void score_tile(fr_attn_state *states, size_t count, const float *tile, size_t width, int32_t first,
                          size_t head_dim, float scale, fr_attn_ahead ahead) {
    size_t most = SUMS * 16 / width;
    size_t steps = 4 * ((count + most - 1) / most), lines = (size_t)(ahead.end - ahead.at) / 64 / steps + 1;
    for (; count >= most; states += most, count -= most)
        score_columns(states, most, tile, width, first, head_dim, scale, &ahead, lines);
    if (count >= 4) {
        score_columns(states, 4, tile, width, first, head_dim, scale, &ahead, lines);
        states += 4, count -= 4;
    }
    switch (count) {
    case 1: score_columns(states, 1, tile, width, first, head_dim, scale, &ahead, lines); break;
    case 2: score_columns(states, 2, tile, width, first, head_dim, scale, &ahead, lines); break;
    case 3: score_columns(states, 3, tile, width, first, head_dim, scale, &ahead, lines); break;
    }
}

static void scores_of_columns(fr_attn_state *states, size_t count, const float *tile, size_t width, int32_t first,
                              size_t head_dim, float scale, fr_attn_ahead ahead) {
    if (width == 32)
        score_tile(states, count, tile, 32, first, head_dim, scale, ahead);
    else
        score_tile(states, count, tile, 16, first, head_dim, scale, ahead);
}

/* Multiplies keys' codes by columns of a query. One of vpmaddubsw's operands is unsigned, so the magnitudes of the
 * codes are multiplied by the columns with the codes' signs. Sums of two products are at most 2 * 128 * 127, which fits
 * 16 bits. */
FR_INLINE __m512i multiply_codes(__m512i sums, __m512i keys, __m512i columns) {
    __m512i signed_columns = _mm512_mask_sub_epi8(columns, _mm512_movepi8_mask(keys), _mm512_setzero_si512(), columns);
    __m512i pairs = _mm512_maddubs_epi16(_mm512_abs_epi8(keys), signed_columns);
    return _mm512_add_epi32(sums, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}

static void transpose_codes(fr_attn_codes *tile, fr_dtype type, const void *const *rows, size_t head_dim) {
    transpose_codes_of(tile, type, rows, head_dim, _mm512_setzero_si512());
}

static void scores_of_codes(fr_attn_state *states, size_t count, const fr_attn_codes *tile, int32_t first,
                            size_t head_dim, float scale, fr_attn_ahead ahead) {
    scores_of_codes_of(multiply_codes, 0, states, count, tile, first, head_dim, scale, ahead);
}

/* Returns the largest lane of each of four registers. */
FR_INLINE __m128 max16_of_4(const __m512 *x) {
    __m512 two[2], one;
    FR_UNROLLED_FOR (size_t i = 0; i < 2; i++)
        two[i] = _mm512_max_ps(_mm512_unpacklo_ps(x[i], x[i + 2]), _mm512_unpackhi_ps(x[i], x[i + 2]));
    one = _mm512_max_ps(_mm512_unpacklo_ps(two[0], two[1]), _mm512_unpackhi_ps(two[0], two[1]));
    __m256 half = _mm256_max_ps(_mm512_castps512_ps256(one), _mm512_extractf32x8_ps(one, 1));
    return _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

/* Exchanges the rows and columns of 4 x 4 numbers in each half of four registers. */
FR_INLINE void transpose_fours(__m256 r[4]) {
    __m256 low[2], high[2];
    FR_UNROLLED_FOR (size_t i = 0; i < 2; i++) {
        low[i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        high[i] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    r[0] = _mm256_shuffle_ps(low[0], low[1], 0x44);
    r[1] = _mm256_shuffle_ps(low[0], low[1], 0xee);
    r[2] = _mm256_shuffle_ps(high[0], high[1], 0x44);
    r[3] = _mm256_shuffle_ps(high[0], high[1], 0xee);
}

/* Merges m_b and l_b, the m and l of a block, into m and l. The operands hold eight queries, one in each lane. Sets the
 * factors a and b, which join the block's o_b to o. Only the first `count` queries exist. */
FR_INLINE void merge(fr_attn_state *states, size_t count, __m256 m_b, __m256 l_b) {
    __m256 kept[4]; /* m, l, a and b of queries j and j + 4; after the transposition, kept[0] is m, kept[1] is l, and so
                     * on, of all eight */
    __mmask8 first = 0;
    FR_UNROLLED_FOR (size_t j = 0; j < FR_ATTN_WEIGHED; j++) first |= (__mmask8)(states[j < count ? j : 0].first << j);
    FR_UNROLLED_FOR (size_t j = 0; j < 4; j++)
        kept[j] = _mm256_loadu2_m128(&states[j + 4 < count ? j + 4 : 0].m, &states[j < count ? j : 0].m);
    transpose_fours(kept);
    __m256 m = kept[0], higher = _mm256_max_ps(m_b, m);
    __m512 less = _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_sub_ps(m, higher)), _mm256_sub_ps(m_b, higher), 1);
    __m512 factors = exp16(less);
    __m256 a = _mm512_castps512_ps256(factors), b = _mm512_extractf32x8_ps(factors, 1);
    kept[0] = _mm256_mask_blend_ps(first, higher, m_b);
    kept[1] = _mm256_mask_blend_ps(first, _mm256_fmadd_ps(kept[1], a, _mm256_mul_ps(l_b, b)), l_b);
    kept[2] = a;
    kept[3] = b;
    transpose_fours(kept);
    FR_UNROLLED_FOR (size_t j = 0; j < count && j < 4; j++)
        _mm_storeu_ps(&states[j].m, _mm256_castps256_ps128(kept[j]));
    FR_UNROLLED_FOR (size_t j = 4; j < count; j++) _mm_storeu_ps(&states[j].m, _mm256_extractf128_ps(kept[j - 4], 1));
}

static void add_columns(float *weights, const float *factors, const float *columns, const uint16_t *used,
                        size_t count) {
    __m512 s[FR_ATTN_BLOCK / 16];
    FR_UNROLLED_FOR (size_t r = 0; r < FR_ATTN_BLOCK / 16; r++) s[r] = _mm512_loadu_ps(weights + 16 * r);
    for (size_t k = 0; k < count; k++) {
        const float *column = columns + (size_t)FR_ATTN_BLOCK * used[k];
        __m512 factor = _mm512_set1_ps(factors[k]);
        FR_UNROLLED_FOR (size_t r = 0; r < FR_ATTN_BLOCK / 16; r++)
            s[r] = _mm512_fmadd_ps(factor, _mm512_load_ps(column + 16 * r), s[r]);
    }
    FR_UNROLLED_FOR (size_t r = 0; r < FR_ATTN_BLOCK / 16; r++) _mm512_storeu_ps(weights + 16 * r, s[r]);
}

FR_INLINE uint64_t seen_by(const fr_attn_state *state) {
    return (UINT64_MAX >> (FR_ATTN_BLOCK - state->to)) & (UINT64_MAX << state->from);
}

/* Turns the scores of up to eight queries into weights. Callers pass a constant as `count`. The queries are computed
 * together because within one query each operation waits for the one before it. The maximum ignores a NaN score. The
 * weight e of that score is NaN, so the result is NaN too. */
FR_INLINE void weigh_together(fr_attn_state *states, size_t count) {
    __m512 highest[FR_ATTN_WEIGHED], p[FR_ATTN_WEIGHED];
    float maxima[FR_ATTN_WEIGHED];
    FR_UNROLLED_FOR (size_t j = 0; j < FR_ATTN_WEIGHED; j++) {
        highest[j] = _mm512_set1_ps(-INFINITY);
        p[j] = _mm512_setzero_ps();
    }
    for (size_t i = 0; i < FR_ATTN_BLOCK; i += 16)
        FR_UNROLLED_FOR (size_t j = 0; j < count; j++)
            highest[j] = _mm512_mask_max_ps(highest[j], (__mmask16)(seen_by(&states[j]) >> i),
                                            _mm512_loadu_ps(states[j].weights + i), highest[j]);
    __m256 m_b = _mm256_set_m128(count > 4 ? max16_of_4(highest + 4) : _mm_setzero_ps(), max16_of_4(highest));
    _mm256_storeu_ps(maxima, m_b);
    for (size_t i = 0; i < FR_ATTN_BLOCK; i += 16)
        FR_UNROLLED_FOR (size_t j = 0; j < count; j++) {
            __m512 e = exp16(_mm512_sub_ps(_mm512_loadu_ps(states[j].weights + i), _mm512_set1_ps(maxima[j])));
            p[j] = _mm512_mask_add_ps(p[j], (__mmask16)(seen_by(&states[j]) >> i), p[j], e);
            _mm512_storeu_ps(states[j].weights + i, e);
        }
    __m128 rest = count > 4 ? sum16_of_4(p[4], p[5], p[6], p[7]) : _mm_setzero_ps();
    merge(states, count, m_b, _mm256_set_m128(rest, sum16_of_4(p[0], p[1], p[2], p[3])));
}

static void weigh(fr_attn_state *states, size_t count) {
    switch (count) {
    case 1: weigh_together(states, 1); break;
    case 2: weigh_together(states, 2); break;
    case 3: weigh_together(states, 3); break;
    case 4: weigh_together(states, 4); break;
    case 5: weigh_together(states, 5); break;
    case 6: weigh_together(states, 6); break;
    case 7: weigh_together(states, 7); break;
    default: weigh_together(states, FR_ATTN_WEIGHED);
    }
}

/* Computes `width` registers of columns of o_b for `count` queries, and joins them to o. Callers pass constants as both
 * numbers. The registers begin at column c of v, which is column d of the outputs. */
FR_INLINE void columns(load_fn *load, const fr_attn_state *states, size_t count, fr_attn_rows v, size_t c, size_t d,
                       size_t width, __mmask16 mask, fr_attn_ahead *ahead) {
    __m512 sum[FEW][COLUMNS], values[COLUMNS];
    FR_UNROLLED_FOR (size_t j = 0; j < count; j++)
        FR_UNROLLED_FOR (size_t r = 0; r < width; r++) sum[j][r] = _mm512_setzero_ps();
    for (int32_t i = states->from; i < states->to; i++) {
        const void *row = (const uint8_t *)v.data + (size_t)i * v.stride;
        fr_attn_ask(ahead, LINES);
        FR_UNROLLED_FOR (size_t r = 0; r < width; r++) values[r] = load(row, c + 16 * r, mask);
        FR_UNROLLED_FOR (size_t j = 0; j < count; j++) {
            __m512 e = _mm512_set1_ps(states[j].weights[i]);
            FR_UNROLLED_FOR (size_t r = 0; r < width; r++) sum[j][r] = _mm512_fmadd_ps(e, values[r], sum[j][r]);
        }
    }
    FR_UNROLLED_FOR (size_t j = 0; j < count; j++) {
        __m512 a = _mm512_set1_ps(states[j].a), b = _mm512_set1_ps(states[j].b);
        FR_UNROLLED_FOR (size_t r = 0; r < width; r++) {
            float *o = states[j].out + d + 16 * r;
            if (!states->first) sum[j][r] = _mm512_fmadd_ps(load_lanes(o, mask), a, _mm512_mul_ps(sum[j][r], b));
            _mm512_mask_storeu_ps(o, mask, sum[j][r]);
        }
    }
}

/* Calls `columns` with a constant as `count`; `width` already is a constant. */
FR_INLINE void columns_by_count(load_fn *load, const fr_attn_state *states, size_t count, fr_attn_rows v, size_t c,
                                size_t d, size_t width, __mmask16 mask, fr_attn_ahead *ahead) {
    switch (count) {
    case 1: columns(load, states, 1, v, c, d, width, mask, ahead); break;
    case 2: columns(load, states, 2, v, c, d, width, mask, ahead); break;
    case 3: columns(load, states, 3, v, c, d, width, mask, ahead); break;
    case 4: columns(load, states, 4, v, c, d, width, mask, ahead); break;
    case 5: columns(load, states, 5, v, c, d, width, mask, ahead); break;
    case 6: columns(load, states, 6, v, c, d, width, mask, ahead); break;
    case 7: columns(load, states, 7, v, c, d, width, mask, ahead); break;
    default: columns(load, states, FEW, v, c, d, width, mask, ahead);
    }
}

FR_INLINE void add_by_count(load_fn *load, const fr_attn_state *states, size_t count, fr_attn_rows v, size_t d,
                            size_t width, fr_attn_ahead *ahead) {
    if (width == STRIP && count <= TOGETHER)
        columns_by_count(load, states, count, v, 0, d, COLUMNS, 0xffff, ahead);
    else if (width == STRIP)
        for (size_t c = 0; c < width; c += STRIP / 2)
            columns_by_count(load, states, count, v, c, d + c, COLUMNS / 2, 0xffff, ahead);
    else
        for (size_t c = 0; c < width; c += 16)
            columns_by_count(load, states, count, v, c, d + c, 1, lanes(width - c), ahead);
}

static void add(const fr_attn_state *states, size_t count, fr_attn_rows v, size_t d, size_t width,
                fr_attn_ahead ahead) {
    switch (v.type) {
    case FR_F16: add_by_count(load_f16, states, count, v, d, width, &ahead); break;
    case FR_BF16: add_by_count(load_bf16, states, count, v, d, width, &ahead); break;
    case FR_Q8_0: add_by_count(load_q8_0, states, count, v, d, width, &ahead); break;
    default: add_by_count(load_f32, states, count, v, d, width, &ahead);
    }
    fr_attn_ask(&ahead, SIZE_MAX);
}

const fr_attn_steps fr_attn_steps_avx512 = {
    .together = TOGETHER,
    .few = FEW,
    .strip = STRIP,
    .decode = {[FR_F16] = decode_f16,
               [FR_BF16] = decode_bf16,
               [FR_Q8_0] = decode_q8_0,
               [FR_Q4_0] = decode_q4_0,
               [FR_TURBO4] = decode_turbo4,
               [FR_TURBO3] = decode_turbo3},
    .undecoded = {[FR_F16] = UNDECODED, [FR_BF16] = UNDECODED, [FR_Q8_0] = TOGETHER},
    .scores = scores,
    .columns_width = 32,
    .columns_from = 2048,
    .transpose = transpose,
    .scores_of_columns = scores_of_columns,
    .quantize = fr_quantize_avx512,
    .transpose_codes = transpose_codes,
    .scores_of_codes = scores_of_codes,
    .add_columns = add_columns,
    .weigh = weigh,
    .add = add,
    .softcap = fr_softcap_avx512,
    .exp = fr_exp_avx512,
    .divide = fr_div_avx512,
};

void fr_attn_avx512(const fr_attn *attn) {
    fr_attend(attn, &fr_attn_steps_avx512);
}
