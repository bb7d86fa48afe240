/* Flash attention of one KV head. Contract fr_attn_fn in kernels.h.
 *
 * Blocks are the outer loop, so that K and V come from memory once for all queries. Within a block, eight positions of
 * K stay in the L1 cache while every query takes its eight scores; then each query's weights are made; then 128 columns
 * of V stay there while every query adds them up, in registers over the 64 positions. Up to three queries that see the
 * same of a block go through it together: 24 sums in flight for each load of K or V. The heads of one row always do. */
#include "kernels/simd_avx512.h"

#include <math.h>

enum { BLOCK = 64, SCORES = 8, COLUMNS = 8, TOGETHER = 3 };

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

/* How many queries from the j-th on, at most TOGETHER, see the same positions. */
static size_t alike(const fr_attn *attn, size_t j) {
    const fr_attn_query *query = &attn->queries[j];
    size_t count = 1;
    while (count < TOGETHER && j + count < attn->count && query[count].first == query->first &&
           query[count].last == query->last)
        count++;
    return count;
}

/* s = dot(q, k) * scale of eight positions for `count` queries, a constant. A position that is not seen takes its
 * nearest seen neighbour's place: its score is never used, and memory that nobody may see is not read. */
FR_INLINE void scores(const fr_attn *attn, const fr_attn_query *queries, progress *states, size_t count, const float *k,
                      int64_t first, span seen) {
    __m512 p[TOGETHER][SCORES], values[TOGETHER];
    const float *rows[SCORES];
    for (int64_t i = 0; i < SCORES; i++) {
        int64_t at = first + i < seen.from ? seen.from : first + i > seen.last ? seen.last : first + i;
        rows[i] = k + (size_t)at * attn->stride;
    }
#pragma GCC unroll 3
    for (size_t j = 0; j < count; j++)
#pragma GCC unroll 8
        for (size_t i = 0; i < SCORES; i++) p[j][i] = _mm512_setzero_ps();
    for (size_t d = 0; d < attn->head_dim; d += 16) {
        __mmask16 mask = lanes(attn->head_dim - d);
#pragma GCC unroll 3
        for (size_t j = 0; j < count; j++) values[j] = load_lanes(queries[j].q + d, mask);
#pragma GCC unroll 8
        for (size_t i = 0; i < SCORES; i++) {
            __m512 row = load_lanes(rows[i] + d, mask);
#pragma GCC unroll 3
            for (size_t j = 0; j < count; j++) p[j][i] = _mm512_mask3_fmadd_ps(row, values[j], p[j][i], mask);
        }
    }
    __m128 scale = _mm_set1_ps(attn->scale);
#pragma GCC unroll 3
    for (size_t j = 0; j < count; j++) {
        float *s = states[j].weights + first;
        _mm_storeu_ps(s, _mm_mul_ps(sum16_of_4(p[j][0], p[j][1], p[j][2], p[j][3]), scale));
        _mm_storeu_ps(s + 4, _mm_mul_ps(sum16_of_4(p[j][4], p[j][5], p[j][6], p[j][7]), scale));
    }
}

static void score_queries(const fr_attn *attn, progress *states, const float *k, int64_t block, int64_t first) {
    for (size_t j = 0, count; j < attn->count; j += count) {
        const fr_attn_query *queries = &attn->queries[j];
        span seen = visible(queries, block);
        count = alike(attn, j);
        if (first + SCORES <= seen.from || first > seen.last) continue;
        if (count == 1) scores(attn, queries, &states[j], 1, k, first, seen);
        else if (count == 2) scores(attn, queries, &states[j], 2, k, first, seen);
        else scores(attn, queries, &states[j], TOGETHER, k, first, seen);
    }
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

/* o_b of `width` registers of columns from d on for `count` queries, both constants, and its merging into o. */
FR_INLINE void columns(const fr_attn_query *queries, const progress *states, size_t count, bool first_block, span seen,
                       const float *v, size_t stride, size_t d, size_t width, __mmask16 mask) {
    __m512 sum[TOGETHER][COLUMNS], e[TOGETHER];
#pragma GCC unroll 3
    for (size_t j = 0; j < count; j++)
#pragma GCC unroll 8
        for (size_t c = 0; c < width; c++) sum[j][c] = _mm512_setzero_ps();
    for (int64_t i = seen.from; i <= seen.last; i++) {
        const float *row = v + (size_t)i * stride + d;
#pragma GCC unroll 3
        for (size_t j = 0; j < count; j++) e[j] = _mm512_set1_ps(states[j].weights[i]);
#pragma GCC unroll 8
        for (size_t c = 0; c < width; c++) {
            __m512 values = load_lanes(row + 16 * c, mask);
#pragma GCC unroll 3
            for (size_t j = 0; j < count; j++) sum[j][c] = _mm512_fmadd_ps(e[j], values, sum[j][c]);
        }
    }
#pragma GCC unroll 3
    for (size_t j = 0; j < count; j++) {
        __m512 a = _mm512_set1_ps(states[j].a), b = _mm512_set1_ps(states[j].b);
#pragma GCC unroll 8
        for (size_t c = 0; c < width; c++) {
            float *o = queries[j].out + d + 16 * c;
            if (!first_block) sum[j][c] = _mm512_fmadd_ps(load_lanes(o, mask), a, _mm512_mul_ps(sum[j][c], b));
            _mm512_mask_storeu_ps(o, mask, sum[j][c]);
        }
    }
}

/* Columns d.. of one width, for every query that sees anything of the block. */
FR_INLINE void add_values(const fr_attn *attn, const progress *states, const float *v, int64_t block, size_t d,
                          size_t width, __mmask16 mask) {
    for (size_t j = 0, count; j < attn->count; j += count) {
        const fr_attn_query *queries = &attn->queries[j];
        const progress *state = &states[j];
        span seen = visible(queries, block);
        bool first = queries->first >= block;
        count = alike(attn, j);
        if (seen.from > seen.last) continue;
        if (count == 1) columns(queries, state, 1, first, seen, v, attn->stride, d, width, mask);
        else if (count == 2) columns(queries, state, 2, first, seen, v, attn->stride, d, width, mask);
        else columns(queries, state, TOGETHER, first, seen, v, attn->stride, d, width, mask);
    }
}

static void take_block(const fr_attn *attn, progress *states, int64_t block) {
    size_t offset = (size_t)block % attn->slots * attn->stride, d = 0;
    const float *k = attn->k + offset, *v = attn->v + offset;
    for (int64_t i = 0; i < BLOCK; i += SCORES) score_queries(attn, states, k, block, i);
    for (size_t j = 0; j < attn->count; j++) {
        span seen = visible(&attn->queries[j], block);
        if (seen.from > seen.last) continue;
        float m_b, l_b;
        weigh(&states[j], seen, &m_b, &l_b);
        merge(&states[j], attn->queries[j].first >= block, m_b, l_b);
    }
    for (; d + 16 * COLUMNS <= attn->head_dim; d += 16 * COLUMNS)
        add_values(attn, states, v, block, d, COLUMNS, 0xffff);
    for (; d + 64 <= attn->head_dim; d += 64) add_values(attn, states, v, block, d, 4, 0xffff);
    for (; d < attn->head_dim; d += 16) add_values(attn, states, v, block, d, 1, lanes(attn->head_dim - d));
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
