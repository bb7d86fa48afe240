/* Flash attention of one KV head. Contract fr_attn_fn in kernels.h.
 *
 * Blocks are the outer loop, so that K and V come from memory once for all queries. Within a block, eight positions of
 * K stay in the L1 cache while every query takes its eight scores; then each query's weights are made; then 128 columns
 * of V (32 KB) stay there while every query adds them up, in registers over the 64 positions. */
#include "kernels/simd_avx512.h"

#include <math.h>

enum { BLOCK = 64, SCORES = 8, COLUMNS = 8 };

/* What a query carries from block to block; its o is its `out`. */
typedef struct progress {
    float m, l;
    float a, b;           /* how this block is merged: o = fma(o, a, o_b * b) */
    float weights[BLOCK]; /* scores, then e, of this block */
} progress;

/* The positions of a block that a query sees, counted from the block's first; empty if from > last. */
typedef struct span {
    int64_t from, last;
} span;

FR_INLINE span visible(const fr_attn_query *query, int64_t block) {
    span seen = {query->first > block ? query->first - block : 0, query->last - block};
    if (seen.last > BLOCK - 1) seen.last = BLOCK - 1;
    return seen;
}

/* s = dot(q, k) * scale of eight positions. One that is not seen takes its place's nearest seen neighbour: its score is
 * never used, and memory that nobody may see is not read. */
static void scores(const fr_attn *attn, const float *q, const float *k, int64_t first, span seen, float *s) {
    __m512 p[SCORES];
    const float *rows[SCORES];
    for (int64_t i = 0; i < SCORES; i++) {
        int64_t at = first + i < seen.from ? seen.from : first + i > seen.last ? seen.last : first + i;
        rows[i] = k + (size_t)at * attn->stride;
        p[i] = _mm512_setzero_ps();
    }
    for (size_t d = 0; d < attn->head_dim; d += 16) {
        __mmask16 mask = lanes(attn->head_dim - d);
        __m512 values = load_lanes(q + d, mask);
#pragma GCC unroll 8
        for (int i = 0; i < SCORES; i++)
            p[i] = _mm512_mask3_fmadd_ps(load_lanes(rows[i] + d, mask), values, p[i], mask);
    }
    __m128 scale = _mm_set1_ps(attn->scale);
    _mm_storeu_ps(s + first, _mm_mul_ps(sum16_of_4(p[0], p[1], p[2], p[3]), scale));
    _mm_storeu_ps(s + first + 4, _mm_mul_ps(sum16_of_4(p[4], p[5], p[6], p[7]), scale));
}

/* m_b, e and l_b from the scores. A NaN score is no maximum, but its e is NaN. */
static void weigh(progress *state, span seen, float *m, float *l) {
    uint64_t mask = (UINT64_MAX >> (BLOCK - 1 - seen.last)) & (UINT64_MAX << seen.from);
    __m512 highest = _mm512_set1_ps(-INFINITY), p = _mm512_setzero_ps();
    for (size_t i = 0; i < BLOCK; i += 16) {
        __m512 s = _mm512_loadu_ps(state->weights + i);
        highest = _mm512_mask_max_ps(highest, (__mmask16)(mask >> i), s, highest);
    }
    *m = _mm512_reduce_max_ps(highest);
    for (size_t i = 0; i < BLOCK; i += 16) {
        __m512 e = exp16(_mm512_sub_ps(_mm512_loadu_ps(state->weights + i), _mm512_set1_ps(*m)));
        p = _mm512_mask_add_ps(p, (__mmask16)(mask >> i), p, e);
        _mm512_storeu_ps(state->weights + i, e);
    }
    *l = sum16(p);
}

/* Takes a block's m_b and l_b into m and l, and prepares a and b for its o_b. */
static void merge(progress *state, bool first_block, float m_b, float l_b) {
    if (first_block) {
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

/* o_b of `count` registers of columns, a constant, and its merging into o. */
FR_INLINE void columns(const progress *state, bool first_block, span seen, const float *v, size_t stride, float *o,
                       size_t count, __mmask16 mask) {
    __m512 sum[COLUMNS];
#pragma GCC unroll 8
    for (size_t c = 0; c < count; c++) sum[c] = _mm512_setzero_ps();
    for (int64_t i = seen.from; i <= seen.last; i++) {
        __m512 e = _mm512_set1_ps(state->weights[i]);
        const float *row = v + (size_t)i * stride;
#pragma GCC unroll 8
        for (size_t c = 0; c < count; c++) sum[c] = _mm512_fmadd_ps(e, load_lanes(row + 16 * c, mask), sum[c]);
    }
    __m512 a = _mm512_set1_ps(state->a), b = _mm512_set1_ps(state->b);
#pragma GCC unroll 8
    for (size_t c = 0; c < count; c++) {
        if (!first_block) sum[c] = _mm512_fmadd_ps(load_lanes(o + 16 * c, mask), a, _mm512_mul_ps(sum[c], b));
        _mm512_mask_storeu_ps(o + 16 * c, mask, sum[c]);
    }
}

/* Columns d.. of one query; gives how many it took: 128, 64, 16 or the last few. */
static size_t add_values(const progress *state, bool first_block, span seen, const float *v, const fr_attn *attn,
                         float *o, size_t d) {
    size_t left = attn->head_dim - d;
    if (left >= 16 * COLUMNS) {
        columns(state, first_block, seen, v + d, attn->stride, o + d, COLUMNS, 0xffff);
        return 16 * COLUMNS;
    }
    if (left >= 64) {
        columns(state, first_block, seen, v + d, attn->stride, o + d, 4, 0xffff);
        return 64;
    }
    columns(state, first_block, seen, v + d, attn->stride, o + d, 1, lanes(left));
    return 16;
}

static void take_block(const fr_attn *attn, progress *states, int64_t block) {
    size_t offset = (size_t)block % attn->slots * attn->stride;
    const float *k = attn->k + offset, *v = attn->v + offset;
    for (int64_t i = 0; i < BLOCK; i += SCORES)
        for (size_t j = 0; j < attn->count; j++) {
            span seen = visible(&attn->queries[j], block);
            if (i + SCORES > seen.from && i <= seen.last)
                scores(attn, attn->queries[j].q, k, i, seen, states[j].weights);
        }
    for (size_t j = 0; j < attn->count; j++) {
        span seen = visible(&attn->queries[j], block);
        if (seen.from > seen.last) continue;
        float m_b, l_b;
        weigh(&states[j], seen, &m_b, &l_b);
        merge(&states[j], attn->queries[j].first >= block, m_b, l_b);
    }
    for (size_t d = 0, taken; d < attn->head_dim; d += taken) {
        taken = 16;
        for (size_t j = 0; j < attn->count; j++) {
            const fr_attn_query *query = &attn->queries[j];
            span seen = visible(query, block);
            if (seen.from > seen.last) continue;
            taken = add_values(&states[j], query->first >= block, seen, v, attn, query->out, d);
        }
    }
}

static void divide(const fr_attn_query *query, size_t head_dim, float l) {
    for (size_t d = 0; d < head_dim; d += 16) {
        __mmask16 mask = lanes(head_dim - d);
        __m512 o = _mm512_div_ps(load_lanes(query->out + d, mask), _mm512_set1_ps(l));
        _mm512_mask_storeu_ps(query->out + d, mask, o);
    }
}

void fr_attn_avx512(const fr_attn *attn) {
    progress *states = (progress *)(void *)attn->scratch;
    int64_t first = INT64_MAX, last = 0;
    for (size_t j = 0; j < attn->count; j++) {
        if (attn->queries[j].first < first) first = attn->queries[j].first;
        if (attn->queries[j].last > last) last = attn->queries[j].last;
    }
    for (int64_t block = first - first % BLOCK; block <= last; block += BLOCK) take_block(attn, states, block);
    for (size_t j = 0; j < attn->count; j++) divide(&attn->queries[j], attn->head_dim, states[j].l);
}
