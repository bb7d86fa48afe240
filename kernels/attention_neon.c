/* Flash attention of one KV head. Contract fr_attn_fn in kernels.h.
 *
 * Blocks are the outer loop, so that K and V come from memory once for all queries. Within a block, four positions of
 * K stay in the L1 cache while every query takes its four scores; then each query's weights are made; then 64 columns
 * of V (16 KB) stay there while every query adds them up, in registers over the 64 positions. */
#include "kernels/simd_neon.h"

#include <math.h>

enum { BLOCK = 64, SCORES = 4, COLUMNS = 16 };

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
    const char *rows[SCORES];
    for (int64_t i = 0; i < SCORES; i++) {
        int64_t at = first + i < seen.from ? seen.from : first + i > seen.last ? seen.last : first + i;
        rows[i] = (const char *)(k + (size_t)at * attn->stride);
    }
    dots(load_f32, sizeof *q, s + first, 0, q, 0, 1, rows, SCORES, SCORES, attn->head_dim);
    vst1q_f32(s + first, vmulq_n_f32(vld1q_f32(s + first), attn->scale));
}

/* Lanes of positions i..i + 3 that are seen. */
FR_INLINE uint32x4_t seen_lanes(span seen, int64_t i) {
    return vbicq_u32(lanes_below((size_t)i, (size_t)seen.last + 1), lanes_below((size_t)i, (size_t)seen.from));
}

/* m_b, e and l_b from the scores. A NaN score is no maximum, but its e is NaN. A sum of e is never -0: adding 0 for a
 * position that is not seen leaves it as it is. */
static void weigh(progress *state, span seen, float *m, float *l) {
    float32x4_t highest = vdupq_n_f32(-INFINITY), p[4] = {{0}};
    for (int64_t i = 0; i < BLOCK; i += 4) {
        float32x4_t s = vld1q_f32(state->weights + i);
        highest = vbslq_f32(vandq_u32(vcgtq_f32(s, highest), seen_lanes(seen, i)), s, highest);
    }
    *m = vmaxvq_f32(highest);
    for (int64_t i = 0; i < BLOCK; i += 4) {
        float32x4_t e = exp4(vsubq_f32(vld1q_f32(state->weights + i), vdupq_n_f32(*m)));
        e = vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(e), seen_lanes(seen, i)));
        p[i / 4 % 4] = vaddq_f32(p[i / 4 % 4], e);
        vst1q_f32(state->weights + i, e);
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
    float32x4_t both = vsetq_lane_f32(state->m, vdupq_n_f32(m_b), 0);
    float32x4_t factors = exp4(vsubq_f32(both, vdupq_n_f32(higher)));
    state->a = vgetq_lane_f32(factors, 0);
    state->b = vgetq_lane_f32(factors, 1);
    state->l = fmaf(state->l, state->a, l_b * state->b);
    state->m = higher;
}

/* o_b of `count` registers of columns, a constant, and its merging into o; `left` columns are left. */
FR_INLINE void columns(const progress *state, bool first_block, span seen, const float *v, size_t stride, float *o,
                       size_t count, size_t left) {
    float32x4_t sum[COLUMNS] = {{0}};
    for (int64_t i = seen.from; i <= seen.last; i++) {
        float32x4_t e = vdupq_n_f32(state->weights[i]);
        const float *row = v + (size_t)i * stride;
        FR_UNROLLED for (size_t c = 0; c < count; c++) sum[c] = vfmaq_f32(sum[c], e, load_lanes(row + 4 * c, left));
    }
    float32x4_t a = vdupq_n_f32(state->a), b = vdupq_n_f32(state->b);
    FR_UNROLLED for (size_t c = 0; c < count; c++) {
        if (!first_block) sum[c] = vfmaq_f32(vmulq_f32(sum[c], b), load_lanes(o + 4 * c, left), a);
        store_lanes(o + 4 * c, sum[c], left);
    }
}

/* Columns d.. of one query; gives how many it took: 64, 16, or 4 or the last few. */
static size_t add_values(const progress *state, bool first_block, span seen, const float *v, const fr_attn *attn,
                         float *o, size_t d) {
    size_t left = attn->head_dim - d;
    if (left >= 4 * COLUMNS) {
        columns(state, first_block, seen, v + d, attn->stride, o + d, COLUMNS, 4);
        return 4 * COLUMNS;
    }
    if (left >= 16) {
        columns(state, first_block, seen, v + d, attn->stride, o + d, 4, 4);
        return 16;
    }
    columns(state, first_block, seen, v + d, attn->stride, o + d, 1, left);
    return 4;
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
        taken = 4;
        for (size_t j = 0; j < attn->count; j++) {
            const fr_attn_query *query = &attn->queries[j];
            span seen = visible(query, block);
            if (seen.from > seen.last) continue;
            taken = add_values(&states[j], query->first >= block, seen, v, attn, query->out, d);
        }
    }
}

FR_INLINE float32x4_t divide(float32x4_t a, float32x4_t b, float32x4_t factor) {
    (void)b;
    return vdivq_f32(a, factor);
}

void fr_attn_neon(const fr_attn *attn) {
    progress *states = (progress *)(void *)attn->scratch;
    int64_t first = INT64_MAX, last = 0;
    for (size_t j = 0; j < attn->count; j++) {
        if (attn->queries[j].first < first) first = attn->queries[j].first;
        if (attn->queries[j].last > last) last = attn->queries[j].last;
    }
    for (int64_t block = first - first % BLOCK; block <= last; block += BLOCK) take_block(attn, states, block);
    for (size_t j = 0; j < attn->count; j++)
        map(divide, attn->queries[j].out, attn->queries[j].out, NULL, attn->head_dim, states[j].l);
}
