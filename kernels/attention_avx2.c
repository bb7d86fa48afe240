/* Flash attention of one KV head. Contract fr_attn_fn in kernels.h.
 *
 * Blocks are the outer loop, so that K and V come from memory once for all queries. Within a block, four positions of
 * K stay in the L1 cache while every query takes its four scores; then each query's weights are made; then 64 columns
 * of V (16 KB) stay there while every query adds them up, in registers over the 64 positions. */
#include "kernels/simd_avx2.h"

#include <math.h>

enum { BLOCK = 64, SCORES = 4, COLUMNS = 8 };

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

/* s = dot(q, k) * scale of four positions. One that is not seen takes its place's nearest seen neighbour: its score is
 * never used, and memory that nobody may see is not read. */
static void scores(const fr_attn *attn, const float *q, const float *k, int64_t first, span seen, float *s) {
    __m256 p[SCORES][2];
    const float *rows[SCORES];
    for (int64_t i = 0; i < SCORES; i++) {
        int64_t at = first + i < seen.from ? seen.from : first + i > seen.last ? seen.last : first + i;
        rows[i] = k + (size_t)at * attn->stride;
        p[i][0] = p[i][1] = _mm256_setzero_ps();
    }
    size_t d = 0;
    for (; d + 16 <= attn->head_dim; d += 16)
#pragma GCC unroll 2
        for (size_t h = 0; h < 2; h++) {
            __m256 values = _mm256_loadu_ps(q + d + 8 * h);
#pragma GCC unroll 4
            for (int i = 0; i < SCORES; i++)
                p[i][h] = _mm256_fmadd_ps(_mm256_loadu_ps(rows[i] + d + 8 * h), values, p[i][h]);
        }
    for (size_t h = 0; d < attn->head_dim; d += 8, h++) {
        size_t left = attn->head_dim - d;
        __m256 values = load_lanes(q + d, left), mask = lane_mask(left < 8 ? (int)left : 8);
        for (int i = 0; i < SCORES; i++)
            p[i][h] = _mm256_blendv_ps(p[i][h], _mm256_fmadd_ps(load_lanes(rows[i] + d, left), values, p[i][h]), mask);
    }
    for (int i = 0; i < SCORES; i++) s[first + i] = sum16(p[i][0], p[i][1]) * attn->scale;
}

/* Lanes of positions i..i + 7 that are seen. */
FR_INLINE __m256 seen_lanes(span seen, int64_t i) {
    __m256 up_to_last = lane_mask((int)(seen.last + 1 - i));
    return _mm256_andnot_ps(lane_mask((int)(seen.from - i)), up_to_last);
}

/* m_b, e and l_b from the scores. A NaN score is no maximum, but its e is NaN. */
static void weigh(progress *state, span seen, float *m, float *l) {
    __m256 highest = _mm256_set1_ps(-INFINITY), p[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (int64_t i = 0; i < BLOCK; i += 8) {
        __m256 s = _mm256_loadu_ps(state->weights + i);
        highest = _mm256_blendv_ps(highest, _mm256_max_ps(s, highest), seen_lanes(seen, i));
    }
    float lanes[8];
    _mm256_storeu_ps(lanes, highest);
    *m = lanes[0];
    for (int i = 1; i < 8; i++) *m = lanes[i] > *m ? lanes[i] : *m;
    for (int64_t i = 0; i < BLOCK; i += 8) {
        __m256 *sum = &p[i / 8 % 2];
        __m256 e = exp8(_mm256_sub_ps(_mm256_loadu_ps(state->weights + i), _mm256_set1_ps(*m)));
        *sum = _mm256_blendv_ps(*sum, _mm256_add_ps(*sum, e), seen_lanes(seen, i));
        _mm256_storeu_ps(state->weights + i, e);
    }
    *l = sum16(p[0], p[1]);
}

/* Takes a block's m_b and l_b into m and l, and prepares a and b for its o_b. */
static void merge(progress *state, bool first_block, float m_b, float l_b) {
    if (first_block) {
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

/* o_b of `count` registers of columns, a constant, and its merging into o; `left` columns are left. */
FR_INLINE void columns(const progress *state, bool first_block, span seen, const float *v, size_t stride, float *o,
                       size_t count, size_t left) {
    __m256 sum[COLUMNS];
#pragma GCC unroll 8
    for (size_t c = 0; c < count; c++) sum[c] = _mm256_setzero_ps();
    for (int64_t i = seen.from; i <= seen.last; i++) {
        __m256 e = _mm256_set1_ps(state->weights[i]);
        const float *row = v + (size_t)i * stride;
#pragma GCC unroll 8
        for (size_t c = 0; c < count; c++) sum[c] = _mm256_fmadd_ps(e, load_lanes(row + 8 * c, left), sum[c]);
    }
    __m256 a = _mm256_set1_ps(state->a), b = _mm256_set1_ps(state->b);
#pragma GCC unroll 8
    for (size_t c = 0; c < count; c++) {
        if (!first_block) sum[c] = _mm256_fmadd_ps(load_lanes(o + 8 * c, left), a, _mm256_mul_ps(sum[c], b));
        store_lanes(o + 8 * c, left, sum[c]);
    }
}

/* Columns d.. of one query; gives how many it took: 64, 8 or the last few. */
static size_t add_values(const progress *state, bool first_block, span seen, const float *v, const fr_attn *attn,
                         float *o, size_t d) {
    size_t left = attn->head_dim - d;
    if (left >= 8 * COLUMNS) {
        columns(state, first_block, seen, v + d, attn->stride, o + d, COLUMNS, 8);
        return 8 * COLUMNS;
    }
    columns(state, first_block, seen, v + d, attn->stride, o + d, 1, left);
    return 8;
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
        taken = 8;
        for (size_t j = 0; j < attn->count; j++) {
            const fr_attn_query *query = &attn->queries[j];
            span seen = visible(query, block);
            if (seen.from > seen.last) continue;
            taken = add_values(&states[j], query->first >= block, seen, v, attn, query->out, d);
        }
    }
}

static void divide(const fr_attn_query *query, size_t head_dim, float l) {
    for (size_t d = 0; d < head_dim; d += 8) {
        __m256 o = _mm256_div_ps(load_lanes(query->out + d, head_dim - d), _mm256_set1_ps(l));
        store_lanes(query->out + d, head_dim - d, o);
    }
}

void fr_attn_avx2(const fr_attn *attn) {
    progress *states = (progress *)(void *)attn->scratch;
    int64_t first = INT64_MAX, last = 0;
    for (size_t j = 0; j < attn->count; j++) {
        if (attn->queries[j].first < first) first = attn->queries[j].first;
        if (attn->queries[j].last > last) last = attn->queries[j].last;
    }
    for (int64_t block = first - first % BLOCK; block <= last; block += BLOCK) take_block(attn, states, block);
    for (size_t j = 0; j < attn->count; j++) divide(&attn->queries[j], attn->head_dim, states[j].l);
}
