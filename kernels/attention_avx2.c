/* Implements the steps of flash attention (attention.h) on registers of 8 floats. Up to three queries are computed
 * together, with 12 registers of sums. For these 12 sums, a step loads four registers of K and three of the queries, or
 * four registers of V and three weights. */
#include "kernels/attention_codes_avx2.h"
#include "kernels/simd_avx2.h"
#include "kernels/cached_codes_x86.h"

#include <math.h>

enum { TOGETHER = 3, COLUMNS = 4, STRIP = 8 * COLUMNS, WIDTH = 16 /* positions of transposed keys */ };

/* Loads the first `count` 16-bit values, at most 8; the other lanes are 0. */
FR_INLINE __m128i load_halves(const void *x, size_t count) {
    if (count >= 8) return _mm_loadu_si128(x);
    uint16_t values[8] = {0};
    memcpy(values, x, count * sizeof *values);
    return _mm_loadu_si128((const void *)values);
}

FR_INLINE __m256 f16_of(__m128i halves) {
    return _mm256_cvtph_ps(halves);
}

FR_INLINE __m256 bf16_of(__m128i halves) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}

/* Returns a block's scale d in all lanes. */
FR_INLINE __m256 scale_of(const uint8_t *block) {
    uint16_t half;
    memcpy(&half, block, sizeof half);
    return _mm256_set1_ps(_cvtsh_ss(half));
}

FR_INLINE void store_codes(float *y, __m128i codes, __m256 d) {
    __m256i low = _mm256_cvtepi8_epi32(codes), high = _mm256_cvtepi8_epi32(_mm_srli_si128(codes, 8));
    _mm256_storeu_ps(y, _mm256_mul_ps(_mm256_cvtepi32_ps(low), d));
    _mm256_storeu_ps(y + 8, _mm256_mul_ps(_mm256_cvtepi32_ps(high), d));
}

/* Decodes blocks of `bytes` bytes. */
FR_INLINE void decode_blocks(codes_fn *codes, size_t bytes, float *y, const uint8_t *block, size_t n) {
    for (size_t i = 0; i < n; i += 32, block += bytes) {
        __m256 d = scale_of(block);
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

static void decode_turbo4(float *y, const void *x, size_t n) {
    decode_blocks(turbo4_codes, 18, y, x, n);
}

static void decode_turbo3(float *y, const void *x, size_t n) {
    decode_blocks(turbo3_codes, 14, y, x, n);
}

/* Adds up the 16 partial sums of each of four positions. In the given registers, partial sum i + 8 has already been
 * added to partial sum i. */
FR_INLINE __m128 sum8_of_4(const __m256 *eight) {
    __m128 four[4];
    for (int i = 0; i < 4; i++)
        four[i] = _mm_add_ps(_mm256_castps256_ps128(eight[i]), _mm256_extractf128_ps(eight[i], 1));
    __m128 two_01 = _mm_add_ps(_mm_movelh_ps(four[0], four[1]), _mm_movehl_ps(four[1], four[0]));
    __m128 two_23 = _mm_add_ps(_mm_movelh_ps(four[2], four[3]), _mm_movehl_ps(four[3], four[2]));
    return _mm_add_ps(_mm_shuffle_ps(two_01, two_23, 0x88), _mm_shuffle_ps(two_01, two_23, 0xdd));
}

/* Loads values of a row of the cache from index d on: `left` of them, at most 8; the other lanes are 0. */
typedef __m256 load_fn(const void *row, size_t d, size_t left);

FR_INLINE __m256 load_f32(const void *row, size_t d, size_t left) {
    return load_lanes((const float *)row + d, left);
}

FR_INLINE __m256 load_f16(const void *row, size_t d, size_t left) {
    return f16_of(load_halves((const uint16_t *)row + d, left));
}

FR_INLINE __m256 load_bf16(const void *row, size_t d, size_t left) {
    return bf16_of(load_halves((const uint16_t *)row + d, left));
}

/* Computes eight of the 16 partial sums of four positions for `count` queries. Callers pass a constant as `count`. The
 * eight sums are those over columns d to d + 7, d + 16 to d + 23, and so on. Twelve registers of sums and their
 * operands just fit the 16 registers. */
FR_INLINE void half_sums(load_fn *load, const fr_attn_state *states, size_t count, const void *const *rows, size_t d,
                         size_t head_dim, __m256 p[TOGETHER][FR_ATTN_SCORES], fr_attn_ahead *ahead) {
    FR_UNROLLED_FOR (size_t j = 0; j < count; j++)
        FR_UNROLLED_FOR (size_t i = 0; i < FR_ATTN_SCORES; i++) p[j][i] = _mm256_setzero_ps();
    for (; d + 8 <= head_dim; d += 16) {
        __m256 values[TOGETHER];
        fr_attn_ask(ahead, 1);
        FR_UNROLLED_FOR (size_t j = 0; j < count; j++) values[j] = _mm256_loadu_ps(states[j].q + d);
        FR_UNROLLED_FOR (size_t i = 0; i < FR_ATTN_SCORES; i++) {
            __m256 row = load(rows[i], d, 8);
            FR_UNROLLED_FOR (size_t j = 0; j < count; j++) p[j][i] = _mm256_fmadd_ps(row, values[j], p[j][i]);
        }
    }
    if (d >= head_dim) return;
    size_t left = head_dim - d;
    __m256 mask = lane_mask((int)left);
    for (size_t j = 0; j < count; j++)
        for (size_t i = 0; i < FR_ATTN_SCORES; i++) {
            __m256 added = _mm256_fmadd_ps(load(rows[i], d, left), load_lanes(states[j].q + d, left), p[j][i]);
            p[j][i] = _mm256_blendv_ps(p[j][i], added, mask);
        }
}

FR_INLINE void score(load_fn *load, fr_attn_state *states, size_t count, fr_attn_rows k, int32_t first, size_t head_dim,
                     float scale, fr_attn_ahead ahead) {
    __m256 low[TOGETHER][FR_ATTN_SCORES], high[TOGETHER][FR_ATTN_SCORES];
    const void *rows[FR_ATTN_SCORES];
    for (int32_t i = 0; i < FR_ATTN_SCORES; i++) rows[i] = fr_attn_seen_row(states, k, first, i);
    half_sums(load, states, count, rows, 0, head_dim, low, &ahead);
    half_sums(load, states, count, rows, 8, head_dim, high, &ahead);
    fr_attn_ask(&ahead, SIZE_MAX);
    for (size_t j = 0; j < count; j++) {
        for (size_t i = 0; i < FR_ATTN_SCORES; i++) low[j][i] = _mm256_add_ps(low[j][i], high[j][i]);
        _mm_storeu_ps(states[j].weights + first, _mm_mul_ps(sum8_of_4(low[j]), _mm_set1_ps(scale)));
    }
}

FR_INLINE void score_by_count(load_fn *load, fr_attn_state *states, size_t count, fr_attn_rows k, int32_t first,
                              size_t head_dim, float scale, fr_attn_ahead ahead) {
    switch (count) {
    case 1: score(load, states, 1, k, first, head_dim, scale, ahead); break;
    case 2: score(load, states, 2, k, first, head_dim, scale, ahead); break;
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

/* Exchanges the rows and columns of 8 registers of 8 values. */
FR_INLINE void transpose_floats(__m256 r[8]) {
    __m256 t[8];
    FR_UNROLLED_FOR (size_t i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    FR_UNROLLED_FOR (size_t i = 0; i < 8; i += 4)
        FR_UNROLLED_FOR (size_t j = 0; j < 2; j++) {
            r[i + 2 * j] = _mm256_shuffle_ps(t[i + j], t[i + j + 2], 0x44);
            r[i + 2 * j + 1] = _mm256_shuffle_ps(t[i + j], t[i + j + 2], 0xee);
        }
    FR_UNROLLED_FOR (size_t j = 0; j < 4; j++) {
        t[j] = _mm256_permute2f128_ps(r[j], r[j + 4], 0x20);
        t[j + 4] = _mm256_permute2f128_ps(r[j], r[j + 4], 0x31);
    }
    FR_UNROLLED_FOR (size_t j = 0; j < 8; j++) r[j] = t[j];
}

/* Transposes `columns` columns, at most 8, of 8 rows. */
FR_INLINE void transpose_columns(load_fn *load, float *tile, const void *const *rows, size_t d, size_t columns) {
    __m256 r[8];
    FR_UNROLLED_FOR (size_t i = 0; i < 8; i++) r[i] = load(rows[i], d, columns);
    transpose_floats(r);
    FR_UNROLLED_FOR (size_t i = 0; i < 8; i++)
        if (i < columns) _mm256_store_ps(tile + (d + i) * WIDTH, r[i]);
}

FR_INLINE void transpose_rows(load_fn *load, float *tile, const void *const *rows, size_t head_dim) {
    for (size_t i = 0; i < WIDTH; i += 8) {
        size_t d = 0;
        for (; d + 8 <= head_dim; d += 8) transpose_columns(load, tile + i, rows + i, d, 8);
        if (d < head_dim) transpose_columns(load, tile + i, rows + i, d, head_dim - d);
    }
}

static void transpose(float *tile, size_t width, fr_dtype type, const void *const *rows, size_t head_dim) {
    (void)width;
    switch ((unsigned)type) {
    case FR_F16: transpose_rows(load_f16, tile, rows, head_dim); break;
    case FR_BF16: transpose_rows(load_bf16, tile, rows, head_dim); break;
    default: transpose_rows(load_f32, tile, rows, head_dim);
    }
}

/* Computes the partial sum p[i] of dot for each of WIDTH positions and each of `count` queries. Callers pass a constant
 * as `count`. */
FR_INLINE void partial_sums(__m256 *p, const float *const *q, size_t count, const float *tile, size_t i,
                            size_t head_dim) {
    const float *keys = tile + i * WIDTH;
    FR_UNROLLED_FOR (size_t s = 0; s < 2 * count; s++) p[s] = _mm256_setzero_ps();
    for (size_t d = i; d < head_dim; d += 16, keys += 16 * WIDTH) {
        __m256 low = _mm256_load_ps(keys), high = _mm256_load_ps(keys + 8);
        FR_UNROLLED_FOR (size_t j = 0; j < count; j++) {
            __m256 value = _mm256_broadcast_ss(q[j] + d);
            p[2 * j] = _mm256_fmadd_ps(value, low, p[2 * j]);
            p[2 * j + 1] = _mm256_fmadd_ps(value, high, p[2 * j + 1]);
        }
    }
}

/* Adds the `count` registers of b to those of a. */
FR_INLINE void add_sums(__m256 *a, const __m256 *b, size_t count) {
    FR_UNROLLED_FOR (size_t s = 0; s < count; s++) a[s] = _mm256_add_ps(a[s], b[s]);
}

/* Computes the scores of `count` queries with WIDTH positions, each position in a lane. Callers pass a constant as
 * `count`. A score is the sum of dot's 16 partial sums p[0] to p[15]. The registers have room for only two of the 16
 * partial sums of all scores at a time. So for i from 0 to 7, p[i] + p[i + 8] is computed and stored. At the end the
 * eight stored sums of each score are added in the order of dot. */
FR_INLINE void score_columns(fr_attn_state *states, size_t count, const float *tile, int32_t first, size_t head_dim,
                             float scale, fr_attn_ahead *ahead, size_t lines) {
    __m256 eighths[8][2 * TOGETHER];
    const float *q[TOGETHER];
    FR_UNROLLED_FOR (size_t j = 0; j < count; j++) q[j] = states[j].q;
    for (size_t i = 0; i < 8; i++) {
        __m256 a[2 * TOGETHER], b[2 * TOGETHER];
        fr_attn_ask(ahead, lines);
        partial_sums(a, q, count, tile, i, head_dim);
        partial_sums(b, q, count, tile, i + 8, head_dim);
        FR_UNROLLED_FOR (size_t s = 0; s < 2 * count; s++) eighths[i][s] = _mm256_add_ps(a[s], b[s]);
    }
    for (size_t i = 0; i < 4; i++) add_sums(eighths[i], eighths[i + 4], 2 * count);
    for (size_t i = 0; i < 2; i++) add_sums(eighths[i], eighths[i + 2], 2 * count);
    add_sums(eighths[0], eighths[1], 2 * count);
    FR_UNROLLED_FOR (size_t s = 0; s < 2 * count; s++)
        _mm256_storeu_ps(states[s / 2].weights + first + 8 * (s % 2),
                         _mm256_mul_ps(eighths[0][s], _mm256_set1_ps(scale)));
}

static void scores_of_columns(fr_attn_state *states, size_t count, const float *tile, size_t width, int32_t first,
                              size_t head_dim, float scale, fr_attn_ahead ahead) {
    size_t steps = 8 * ((count + TOGETHER - 1) / TOGETHER), lines = (size_t)(ahead.end - ahead.at) / 64 / steps + 1;
    (void)width;
    for (; count >= TOGETHER; states += TOGETHER, count -= TOGETHER)
        score_columns(states, TOGETHER, tile, first, head_dim, scale, &ahead, lines);
    switch (count) {
    case 1: score_columns(states, 1, tile, first, head_dim, scale, &ahead, lines); break;
    case 2: score_columns(states, 2, tile, first, head_dim, scale, &ahead, lines); break;
    }
}

/* Merges m_b and l_b, the m and l of a block, into m and l. Sets the factors a and b, which join the block's o_b to
 * o. */
FR_INLINE void merge(fr_attn_state *state, float m_b, float l_b) {
    if (state->first) {
        state->m = m_b;
        state->l = l_b;
        return;
    }
    float higher = m_b > state->m ? m_b : state->m;
    __m256 both = _mm256_blend_ps(_mm256_set1_ps(m_b), _mm256_set1_ps(state->m), 1);
    __m128 factors = _mm256_castps256_ps128(exp8(_mm256_sub_ps(both, _mm256_set1_ps(higher))));
    state->a = _mm_cvtss_f32(factors);
    state->b = _mm_cvtss_f32(_mm_movehdup_ps(factors));
    state->l = fmaf(state->l, state->a, l_b * state->b);
    state->m = higher;
}

/* Returns a mask of the lanes whose position, i to i + 7, is visible. */
FR_INLINE __m256 seen_lanes(const fr_attn_state *state, int32_t i) {
    return _mm256_andnot_ps(lane_mask(state->from - i), lane_mask(state->to - i));
}

/* Turns a query's scores into weights. The maximum ignores a NaN score. The weight e of that score is NaN, so the
 * result is NaN too. */
FR_INLINE void weigh_one(fr_attn_state *state) {
    __m256 highest = _mm256_set1_ps(-INFINITY), p[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (int32_t i = 0; i < FR_ATTN_BLOCK; i += 8) {
        __m256 s = _mm256_loadu_ps(state->weights + i);
        highest = _mm256_blendv_ps(highest, _mm256_max_ps(s, highest), seen_lanes(state, i));
    }
    float lanes[8];
    _mm256_storeu_ps(lanes, highest);
    float m_b = lanes[0];
    for (int i = 1; i < 8; i++) m_b = lanes[i] > m_b ? lanes[i] : m_b;
    for (int32_t i = 0; i < FR_ATTN_BLOCK; i += 8) {
        __m256 *sum = &p[i / 8 % 2];
        __m256 e = exp8(_mm256_sub_ps(_mm256_loadu_ps(state->weights + i), _mm256_set1_ps(m_b)));
        *sum = _mm256_blendv_ps(*sum, _mm256_add_ps(*sum, e), seen_lanes(state, i));
        _mm256_storeu_ps(state->weights + i, e);
    }
    merge(state, m_b, sum16(p[0], p[1]));
}

static void add_columns(float *weights, const float *factors, const float *columns, const uint16_t *used,
                        size_t count) {
    __m256 s[FR_ATTN_BLOCK / 8];
    FR_UNROLLED_FOR (size_t r = 0; r < FR_ATTN_BLOCK / 8; r++) s[r] = _mm256_loadu_ps(weights + 8 * r);
    for (size_t k = 0; k < count; k++) {
        const float *column = columns + (size_t)FR_ATTN_BLOCK * used[k];
        __m256 factor = _mm256_set1_ps(factors[k]);
        FR_UNROLLED_FOR (size_t r = 0; r < FR_ATTN_BLOCK / 8; r++)
            s[r] = _mm256_fmadd_ps(factor, _mm256_load_ps(column + 8 * r), s[r]);
    }
    FR_UNROLLED_FOR (size_t r = 0; r < FR_ATTN_BLOCK / 8; r++) _mm256_storeu_ps(weights + 8 * r, s[r]);
}

static void weigh(fr_attn_state *states, size_t count) {
    for (size_t j = 0; j < count; j++) weigh_one(&states[j]);
}

/* Computes `width` registers of columns of o_b for `count` queries, and joins them to o. Callers pass constants as both
 * numbers. The registers begin at column c of v, which is column d of the outputs, and `left` columns of the output
 * remain. */
FR_INLINE void columns(load_fn *load, const fr_attn_state *states, size_t count, fr_attn_rows v, size_t c, size_t d,
                       size_t width, size_t left, fr_attn_ahead *ahead) {
    __m256 sum[TOGETHER][COLUMNS], e[TOGETHER];
    FR_UNROLLED_FOR (size_t j = 0; j < count; j++)
        FR_UNROLLED_FOR (size_t r = 0; r < width; r++) sum[j][r] = _mm256_setzero_ps();
    for (int32_t i = states->from; i < states->to; i++) {
        const void *row = (const uint8_t *)v.data + (size_t)i * v.stride;
        fr_attn_ask(ahead, 2);
        FR_UNROLLED_FOR (size_t j = 0; j < count; j++) e[j] = _mm256_set1_ps(states[j].weights[i]);
        FR_UNROLLED_FOR (size_t r = 0; r < width; r++) {
            __m256 values = load(row, c + 8 * r, left);
            FR_UNROLLED_FOR (size_t j = 0; j < count; j++) sum[j][r] = _mm256_fmadd_ps(e[j], values, sum[j][r]);
        }
    }
    FR_UNROLLED_FOR (size_t j = 0; j < count; j++) {
        __m256 a = _mm256_set1_ps(states[j].a), b = _mm256_set1_ps(states[j].b);
        FR_UNROLLED_FOR (size_t r = 0; r < width; r++) {
            float *o = states[j].out + d + 8 * r;
            if (!states->first) sum[j][r] = _mm256_fmadd_ps(load_lanes(o, left), a, _mm256_mul_ps(sum[j][r], b));
            store_lanes(o, left, sum[j][r]);
        }
    }
}

/* Calls `columns` with a constant as `count`. */
FR_INLINE void columns_by_count(load_fn *load, const fr_attn_state *states, size_t count, fr_attn_rows v, size_t c,
                                size_t d, size_t width, size_t lanes, fr_attn_ahead *ahead) {
    switch (count) {
    case 1: columns(load, states, 1, v, c, d, width, lanes, ahead); break;
    case 2: columns(load, states, 2, v, c, d, width, lanes, ahead); break;
    default: columns(load, states, TOGETHER, v, c, d, width, lanes, ahead);
    }
}

FR_INLINE void add_by_count(load_fn *load, const fr_attn_state *states, size_t count, fr_attn_rows v, size_t d,
                            size_t width, fr_attn_ahead *ahead) {
    if (width == STRIP)
        columns_by_count(load, states, count, v, 0, d, COLUMNS, 8, ahead);
    else
        for (size_t c = 0; c < width; c += 8) columns_by_count(load, states, count, v, c, d + c, 1, width - c, ahead);
}

static void add(const fr_attn_state *states, size_t count, fr_attn_rows v, size_t d, size_t width,
                fr_attn_ahead ahead) {
    switch (v.type) {
    case FR_F16: add_by_count(load_f16, states, count, v, d, width, &ahead); break;
    case FR_BF16: add_by_count(load_bf16, states, count, v, d, width, &ahead); break;
    default: add_by_count(load_f32, states, count, v, d, width, &ahead);
    }
    fr_attn_ask(&ahead, SIZE_MAX);
}

/* Transposes the rows of FR_ATTN_CODES positions, 8 positions at a time. `bytes`: bytes of a block. */
FR_INLINE void transpose_blocks(codes_fn *codes, size_t bytes, fr_attn_codes *tile, const void *const *rows,
                                size_t head_dim) {
    for (size_t at = 0; at < head_dim / 32 * bytes; at += bytes, tile++)
        for (size_t from = 0; from < FR_ATTN_CODES; from += 8) {
            uint16_t d[8];
            __m256i r[8];
            FR_UNROLLED_FOR (size_t i = 0; i < 8; i++) {
                const uint8_t *block = (const uint8_t *)rows[from + i] + at;
                memcpy(&d[i], block, sizeof *d);
                r[i] = codes(block);
            }
            transpose_eights(r);
            FR_UNROLLED_FOR (size_t i = 0; i < 8; i++) _mm256_store_si256((void *)tile->codes[i][from], r[i]);
            _mm256_store_ps(tile->d + from, _mm256_cvtph_ps(_mm_loadu_si128((const void *)d)));
        }
}

static void transpose_codes(fr_attn_codes *tile, fr_dtype type, const void *const *rows, size_t head_dim) {
    switch ((unsigned)type) {
    case FR_Q8_0: transpose_blocks(q8_0_codes, 34, tile, rows, head_dim); break;
    case FR_Q4_0: transpose_blocks(q4_0_codes, 18, tile, rows, head_dim); break;
    case FR_TURBO4: transpose_blocks(turbo4_codes, 18, tile, rows, head_dim); break;
    case FR_TURBO3: transpose_blocks(turbo3_codes, 14, tile, rows, head_dim); break;
    }
}

/* Multiplies four codes. vpmaddubsw adds two products. Such a sum is at most 2 * 128 * 127, which fits 16 bits. */
FR_INLINE __m256i multiply_codes(__m256i sums, __m256i magnitudes, __m256i columns) {
    __m256i pairs = _mm256_maddubs_epi16(magnitudes, columns);
    return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

static void scores_of_codes(fr_attn_state *states, size_t count, const fr_attn_codes *tile, int32_t first,
                            size_t head_dim, float scale, fr_attn_ahead ahead) {
    scores_of_codes_of(multiply_codes, states, count, tile, first, head_dim, scale, ahead);
}

const fr_attn_steps fr_attn_steps_avx2 = {
    .together = TOGETHER,
    .strip = STRIP,
    .decode =
        {[FR_Q8_0] = decode_q8_0, [FR_Q4_0] = decode_q4_0, [FR_TURBO4] = decode_turbo4, [FR_TURBO3] = decode_turbo3},
    .scores = scores,
    .columns_width = WIDTH,
    .columns_from = 8192,
    .transpose = transpose,
    .scores_of_columns = scores_of_columns,
    .quantize = fr_quantize_avx2,
    .transpose_codes = transpose_codes,
    .scores_of_codes = scores_of_codes,
    .add_columns = add_columns,
    .weigh = weigh,
    .add = add,
    .softcap = fr_softcap_avx2,
    .exp = fr_exp_avx2,
    .divide = fr_div_avx2,
};

void fr_attn_avx2(const fr_attn *attn) {
    fr_attend(attn, &fr_attn_steps_avx2);
}
