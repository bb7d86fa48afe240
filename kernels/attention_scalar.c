/* Defines flash attention of one KV head. The contract is fr_attn_fn in kernels.h. */
#include "kernels/alibi.h"
#include "kernels/key_means.h"
#include "kernels/scalar.h"

enum { BLOCK = 64 };

/* Decodes the key of a position into `scratch` as float32. */
static const float *key_of(const fr_attn *attn, int64_t position, float *scratch) {
    const uint8_t *keys = attn->k_pages[position / BLOCK] + attn->k_at;
    fr_dtype_decode(attn->k_type, keys + (size_t)(position % BLOCK) * attn->k_stride, scratch, attn->head_dim);
    return scratch;
}

static const float *value_of(const fr_attn *attn, int64_t position, float *scratch) {
    const uint8_t *values = attn->v_pages[position / BLOCK] + attn->v_at;
    fr_dtype_decode(attn->v_type, values + (size_t)(position % BLOCK) * attn->v_stride, scratch, attn->value_dim);
    return scratch;
}

/* Multiplies a position's key by the query. `codes`: the quantized query if keys are codes, otherwise NULL. With a
 * scale of 1 a block's values are its integers. */
static float product(const fr_attn *attn, const fr_attn_query *query, const fr_qblock *codes, int64_t position,
                     float *scratch) {
    if (!codes) return dot(load_f32, query->q, key_of(attn, position, scratch), attn->head_dim);
    static const uint16_t one = 0x3c00;
    const uint8_t *key = attn->k_pages[position / BLOCK] + attn->k_at + (size_t)(position % BLOCK) * attn->k_stride;
    size_t bytes = fr_dtype_row_bytes(attn->k_type, 32);
    uint8_t block[34];
    float acc = 0;
    for (size_t b = 0; b < attn->head_dim / 32; b++, key += bytes) {
        int32_t sum = 0;
        memcpy(block, key, bytes);
        memcpy(block, &one, sizeof one);
        fr_dtype_decode(attn->k_type, block, scratch, 32);
        for (size_t i = 0; i < 32; i++) sum += (int32_t)scratch[i] * codes[b].q[i];
        acc = fmaf(load_f16(key, 0) * codes[b].d, (float)sum, acc);
    }
    return acc;
}

/* Adds to a position's score what is missing because a mean was subtracted from the stored key. */
static float add_mean_score(const fr_attn *attn, const fr_attn_query *query, const float *factors, int64_t position,
                            float s) {
    const fr_key_means *means = attn->key_means;
    const float *columns = means->columns + position % BLOCK;
    if (position == 0) return s + dot(load_f32, query->plain, means->first, means->head_dim) * attn->scale;
    for (size_t k = 0; k < means->used_count; k++) s = fmaf(factors[k], columns[means->used[k] * BLOCK], s);
    return s;
}

/* Makes the factors of a query for a block of positions (key_means.h). */
static void mean_factors(const fr_attn *attn, const fr_attn_query *query, size_t block, float *factors) {
    fr_key_means_block at;
    fr_key_means_enter(attn->key_means, block, &at);
    float level = dot(load_f32, query->plain, at.rows[0], attn->head_dim) * attn->scale;
    float slope = dot(load_f32, query->plain, at.rows[1], attn->head_dim) * attn->scale;
    fr_key_means_factors(attn->key_means, &at, query->plain, level, slope, attn->scale, factors);
}

/* Computes e = exp(s - m) for the scores s of positions from..last; e is indexed by the position in the block. Sets *m
 * to the largest s and *l to the sum of all e, added in dot's order. */
static void block_weights(const fr_attn *attn, const fr_attn_query *query, int64_t from, int64_t last, float *scratch,
                          float *e, float *m, float *l) {
    fr_qblock *codes = fr_attn_coded(attn) ? (fr_qblock *)(void *)(scratch + attn->head_dim) : NULL;
    if (codes) FR_SCALAR(quantize)(codes, query->q, attn->head_dim);
    float p[16] = {0}, factors[FR_KEY_MEANS_USED];
    if (attn->key_means) mean_factors(attn, query, (size_t)(from / BLOCK), factors);
    *m = -INFINITY;
    for (int64_t i = from; i <= last; i++) {
        float s = product(attn, query, codes, i, scratch) * attn->scale;
        if (attn->key_means) s = add_mean_score(attn, query, factors, i, s);
        if (attn->softcap != 0.0f) s = scalar_tanh(s / attn->softcap) * attn->softcap;
        if (query->slope != 0.0f) s += fr_alibi_added(attn, query, i);
        e[i % BLOCK] = s;
        *m = s > *m ? s : *m;
    }
    for (int64_t i = from; i <= last; i++) {
        e[i % BLOCK] = scalar_exp(e[i % BLOCK] - *m);
        p[i % 16] += e[i % BLOCK];
    }
    *l = sum16(p);
}

static void block_output(const fr_attn *attn, const float *e, int64_t from, int64_t last, float *scratch, float *o) {
    for (size_t d = 0; d < attn->value_dim; d++) o[d] = 0;
    for (int64_t i = from; i <= last; i++) {
        const float *v = value_of(attn, i, scratch);
        for (size_t d = 0; d < attn->value_dim; d++) o[d] = fmaf(e[i % BLOCK], v[d], o[d]);
    }
}

static int64_t last_of_block(int64_t position, int64_t last) {
    int64_t end = position - position % BLOCK + BLOCK - 1;
    return end < last ? end : last;
}

static void attend(const fr_attn *attn, const fr_attn_query *query) {
    size_t n = attn->value_dim;
    float *o = query->out, *e = attn->scratch, *o_b = e + BLOCK, *scratch = o_b + n, m, l, m_b, l_b;
    int64_t last = last_of_block(query->first, query->last);
    block_weights(attn, query, query->first, last, scratch, e, &m, &l);
    block_output(attn, e, query->first, last, scratch, o);
    for (int64_t from = last + 1; from <= query->last; from = last + 1) {
        last = last_of_block(from, query->last);
        block_weights(attn, query, from, last, scratch, e, &m_b, &l_b);
        block_output(attn, e, from, last, scratch, o_b);
        float higher = m_b > m ? m_b : m;
        float a = scalar_exp(m - higher), b = scalar_exp(m_b - higher);
        l = fmaf(l, a, l_b * b);
        for (size_t d = 0; d < n; d++) o[d] = fmaf(o[d], a, o_b[d] * b);
        m = higher;
    }
    if (query->sink) l += scalar_exp(*query->sink - m);
    for (size_t d = 0; d < n; d++) o[d] /= l;
}

static void attend_partial(const fr_attn *attn, const fr_attn_query *query) {
    float *e = attn->scratch, *scratch = e + BLOCK, *o = query->out;
    for (int64_t from = query->first, last; from <= query->last; from = last + 1, o += attn->partial_stride) {
        last = last_of_block(from, query->last);
        block_weights(attn, query, from, last, scratch, e, &o[attn->value_dim], &o[attn->value_dim + 1]);
        block_output(attn, e, from, last, scratch, o);
    }
}

void FR_SCALAR(attn)(const fr_attn *attn) {
    for (size_t j = 0; j < attn->count; j++)
        if (attn->partial_stride)
            attend_partial(attn, &attn->queries[j]);
        else
            attend(attn, &attn->queries[j]);
}
