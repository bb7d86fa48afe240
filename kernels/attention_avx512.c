/* Implements the steps of flash attention (attention.h) on registers of 16 floats. Up to six queries go together: 24
 * sums in flight need four loads of K or V and six of q or e. Converting float16 takes as long as multiplying, so with
 * many queries it is done once for all. */
#include "kernels/attention.h"
#include "kernels/simd_avx512.h"

#include <math.h>
#include <string.h>

enum {
    TOGETHER = 6,
    COLUMNS = 4,
    STRIP = 16 * COLUMNS,
    UNDECODED = 8, /* up to this many queries, each one converts float16 again */
    LINES = 2      /* prefetched with each register of K and each position of V */
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

FR_INLINE void store_codes(float *y, __m128i codes, __m512 d) {
    _mm512_storeu_ps(y, _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes)), d));
}

static void decode_q8_0(float *y, const void *x, size_t n) {
    const uint8_t *block = x;
    for (size_t i = 0; i < n; i += 32, block += 34) {
        __m512 d = scale_of(block);
        store_codes(y + i, _mm_loadu_si128((const void *)(block + 2)), d);
        store_codes(y + i + 16, _mm_loadu_si128((const void *)(block + 18)), d);
    }
}

static void decode_q4_0(float *y, const void *x, size_t n) {
    const uint8_t *block = x;
    __m128i low = _mm_set1_epi8(15), middle = _mm_set1_epi8(8);
    for (size_t i = 0; i < n; i += 32, block += 18) {
        __m512 d = scale_of(block);
        __m128i codes = _mm_loadu_si128((const void *)(block + 2)), high = _mm_srli_epi16(codes, 4);
        store_codes(y + i, _mm_sub_epi8(_mm_and_si128(codes, low), middle), d);
        store_codes(y + i + 16, _mm_sub_epi8(_mm_and_si128(high, low), middle), d);
    }
}

/* Loads values of a row of the cache from index d on, only those of the mask. */
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

/* Multiplies one register of columns of K by that of `count` queries; count is a constant. */
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

/* Adds up the 16 partial sums of four queries at four positions: lanes 4 j to 4 j + 3 of the result are query j's. */
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

/* Full registers are loaded without a mask, because a masked load is one operation more. */
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

FR_INLINE void score_by_count(load_fn *load, fr_attn_state *states, size_t count, fr_attn_rows k, int32_t first,
                              size_t head_dim, float scale, fr_attn_ahead ahead) {
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

/* Merges a block's m_b and l_b into m and l, and sets the factors a and b for its o_b. */
FR_INLINE void merge(fr_attn_state *state, float m_b, float l_b) {
    if (state->first) {
        state->m = m_b;
        state->l = l_b;
        return;
    }
    float higher = m_b > state->m ? m_b : state->m;
    __m512 both = _mm512_mask_blend_ps(1, _mm512_set1_ps(m_b), _mm512_set1_ps(state->m));
    __m128 factors = _mm512_castps512_ps128(exp16(_mm512_sub_ps(both, _mm512_set1_ps(higher))));
    state->a = _mm_cvtss_f32(factors);
    state->b = _mm_cvtss_f32(_mm_movehdup_ps(factors));
    state->l = fmaf(state->l, state->a, l_b * state->b);
    state->m = higher;
}

/* A NaN score is ignored in the maximum, but its e is NaN, so the result is too. */
static void weigh(fr_attn_state *state) {
    uint64_t mask = (UINT64_MAX >> (FR_ATTN_BLOCK - state->to)) & (UINT64_MAX << state->from);
    __m512 highest = _mm512_set1_ps(-INFINITY), p = _mm512_setzero_ps();
    for (size_t i = 0; i < FR_ATTN_BLOCK; i += 16) {
        __m512 s = _mm512_loadu_ps(state->weights + i);
        highest = _mm512_mask_max_ps(highest, (__mmask16)(mask >> i), s, highest);
    }
    float m_b = _mm512_reduce_max_ps(highest);
    for (size_t i = 0; i < FR_ATTN_BLOCK; i += 16) {
        __m512 e = exp16(_mm512_sub_ps(_mm512_loadu_ps(state->weights + i), _mm512_set1_ps(m_b)));
        p = _mm512_mask_add_ps(p, (__mmask16)(mask >> i), p, e);
        _mm512_storeu_ps(state->weights + i, e);
    }
    merge(state, m_b, sum16(p));
}

/* Computes `width` registers of columns of o_b for `count` queries, and joins them to o; both numbers are constants.
 * The registers begin at column c of v, which is column d of the outputs. */
FR_INLINE void columns(load_fn *load, const fr_attn_state *states, size_t count, fr_attn_rows v, size_t c, size_t d,
                       size_t width, __mmask16 mask, fr_attn_ahead *ahead) {
    __m512 sum[TOGETHER][COLUMNS], values[COLUMNS];
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

FR_INLINE void add_by_count(load_fn *load, const fr_attn_state *states, size_t count, fr_attn_rows v, size_t d,
                            size_t width, fr_attn_ahead *ahead) {
    if (width < STRIP) {
        for (size_t j = 0; j < count; j++)
            for (size_t c = 0; c < width; c += 16)
                columns(load, states + j, 1, v, c, d + c, 1, lanes(width - c), ahead);
        return;
    }
    switch (count) {
    case 1: columns(load, states, 1, v, 0, d, COLUMNS, 0xffff, ahead); break;
    case 2: columns(load, states, 2, v, 0, d, COLUMNS, 0xffff, ahead); break;
    case 3: columns(load, states, 3, v, 0, d, COLUMNS, 0xffff, ahead); break;
    case 4: columns(load, states, 4, v, 0, d, COLUMNS, 0xffff, ahead); break;
    case 5: columns(load, states, 5, v, 0, d, COLUMNS, 0xffff, ahead); break;
    default: columns(load, states, TOGETHER, v, 0, d, COLUMNS, 0xffff, ahead);
    }
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

void fr_attn_avx512(const fr_attn *attn) {
    static const fr_attn_steps steps = {
        .together = TOGETHER,
        .strip = STRIP,
        .decode = {[FR_F16] = decode_f16, [FR_BF16] = decode_bf16, [FR_Q8_0] = decode_q8_0, [FR_Q4_0] = decode_q4_0},
        .undecoded = {[FR_F16] = UNDECODED, [FR_BF16] = UNDECODED},
        .scores = scores,
        .weigh = weigh,
        .add = add,
        .softcap = fr_softcap_avx512,
        .exp = fr_exp_avx512,
        .divide = fr_div_avx512,
    };
    fr_attend(attn, &steps);
}
