/* The walk of SIMD flash attention through the cache: see attention.h.
 *
 * Blocks of 64 positions are the outer loop, so that K and V come from memory once for all queries. Within a block,
 * four positions of K stay in the L1 cache while every query takes its four scores; then each query's weights are made;
 * then a strip of V's columns stays there while every query adds them up, in registers over the 64 positions. What an
 * instruction set does not multiply as it lies is decoded on the way, once for all queries, into a tile that is as
 * small. Neighbouring queries that see the same of a block take a step together, so that one load of K or V serves
 * several sums. */
#include "kernels/attention.h"

#include "kernels/compiler.h"

/* What the walk knows in a block. */
typedef struct walk {
    const fr_attn *attn;
    const fr_attn_steps *steps;
    float *tile;
    fr_attn_state *states; /* [attn->count] */
    const uint8_t *k, *v;  /* of the block's first position */
    uint64_t seen;         /* bit i: some query sees position i of the block */
} walk;

/* Bits from <= i < to. */
static uint64_t bits(int32_t from, int32_t to) {
    return from < to ? UINT64_MAX >> (FR_ATTN_BLOCK - (to - from)) << from : 0;
}

static void enter_block(walk *w, int64_t block) {
    w->seen = 0;
    for (size_t j = 0; j < w->attn->count; j++) {
        const fr_attn_query *query = &w->attn->queries[j];
        fr_attn_state *state = &w->states[j];
        int64_t from = query->first - block, to = query->last - block + 1;
        state->first = from >= 0 || w->attn->partial_stride;
        state->from = (int32_t)(from < 0 ? 0 : from < FR_ATTN_BLOCK ? from : FR_ATTN_BLOCK);
        state->to = (int32_t)(to < 0 ? 0 : to < FR_ATTN_BLOCK ? to : FR_ATTN_BLOCK);
        w->seen |= bits(state->from, state->to);
    }
    if (w->seen == 0) return;
    w->k = w->attn->k_pages[block / FR_ATTN_BLOCK] + w->attn->k_at;
    w->v = w->attn->v_pages[block / FR_ATTN_BLOCK] + w->attn->v_at;
}

/* How many queries from the j-th on can take a step together. */
static size_t alike(const walk *w, size_t j) {
    const fr_attn_state *state = &w->states[j];
    size_t most = w->attn->count - j < w->steps->together ? w->attn->count - j : w->steps->together, count = 1;
    while (count < most && state[count].from == state->from && state[count].to == state->to &&
           state[count].first == state->first)
        count++;
    return count;
}

/* Columns [d, d + width) of positions [from, from + count) of the block: where they lie, or decoded into the tile.
 * Positions that nobody sees stay unread. */
static fr_attn_rows rows_of(const walk *w, fr_dtype type, const uint8_t *block, size_t stride, int32_t from,
                            int32_t count, size_t d, size_t width) {
    const uint8_t *data = block + (size_t)from * stride + fr_dtype_row_bytes(type, d);
    if (!w->steps->decode[type]) return (fr_attn_rows){type, data, stride};
    for (int32_t i = 0; i < count; i++)
        if (w->seen >> (from + i) & 1)
            w->steps->decode[type](w->tile + (size_t)i * width, data + (size_t)i * stride, width);
    return (fr_attn_rows){FR_F32, w->tile, width * sizeof(float)};
}

/* Asks for `bytes` bytes ahead of their time: the share of them that falls to queries [j, j + count), so that requests
 * go out between steps, not in a burst that would wait for itself. Inline always: gcc drops calls of functions that
 * only ask. */
FR_INLINE void prefetch(const walk *w, const char *from, size_t bytes, size_t j, size_t count) {
    size_t at = bytes * j / w->attn->count, end = bytes * (j + count) / w->attn->count;
    for (at = (at + 63) / 64 * 64; at < end; at += 64) __builtin_prefetch(from + at, 0, 2);
}

/* Reads a line after the other of the K that is seen. Processors stream what is read in order: from memory this and the
 * scores behind it are 2.5 times as fast as scores that find nothing in the caches (Zen 5), and asking ahead without
 * reading doesn't set it going. */
static void stream_keys(const walk *w) {
    const fr_attn *attn = w->attn;
    size_t row_bytes = fr_dtype_row_bytes(attn->k_type, attn->head_dim);
    for (size_t i = 0; i < FR_ATTN_BLOCK; i++) {
        const volatile uint8_t *row = w->k + i * attn->k_stride;
        if ((w->seen >> i & 1) == 0) continue;
        for (size_t at = 0; at < row_bytes; at += 64) (void)row[at];
    }
}

/* All scores; meanwhile V is asked for. */
static void score_block(const walk *w) {
    const fr_attn *attn = w->attn;
    stream_keys(w);
    for (int32_t i = 0; i < FR_ATTN_BLOCK; i += FR_ATTN_SCORES) {
        if ((w->seen & bits(i, i + FR_ATTN_SCORES)) == 0) continue;
        fr_attn_rows k = rows_of(w, attn->k_type, w->k, attn->k_stride, i, FR_ATTN_SCORES, 0, attn->head_dim);
        const char *v = (const char *)w->v + (size_t)i * attn->v_stride;
        for (size_t j = 0, count; j < attn->count; j += count) {
            fr_attn_state *state = &w->states[j];
            count = alike(w, j);
            prefetch(w, v, FR_ATTN_SCORES * attn->v_stride, j, count);
            if (i + FR_ATTN_SCORES > state->from && i < state->to)
                w->steps->scores(state, count, k, i, attn->head_dim, attn->scale);
        }
    }
}

/* All outputs. */
static void add_block(const walk *w) {
    const fr_attn *attn = w->attn;
    size_t n = attn->value_dim;
    for (size_t d = 0, width; d < n; d += width) {
        width = n - d < w->steps->strip ? n - d : w->steps->strip;
        fr_attn_rows v = rows_of(w, attn->v_type, w->v, attn->v_stride, 0, FR_ATTN_BLOCK, d, width);
        for (size_t j = 0, count; j < attn->count; j += count) {
            const fr_attn_state *state = &w->states[j];
            count = alike(w, j);
            if (state->from < state->to) w->steps->add(state, count, v, d, width);
        }
    }
}

/* The block's partial result: its m and l behind its o, the next one's place behind both. */
static void store_partial(const walk *w) {
    const fr_attn *attn = w->attn;
    for (size_t j = 0; j < attn->count; j++) {
        fr_attn_state *state = &w->states[j];
        if (state->from >= state->to) continue;
        state->out[attn->value_dim] = state->m;
        state->out[attn->value_dim + 1] = state->l;
        state->out += attn->partial_stride;
    }
}

void fr_attend(const fr_attn *attn, const fr_attn_steps *steps) {
    walk w = {.attn = attn, .steps = steps, .tile = attn->scratch};
    w.states = (fr_attn_state *)(void *)(attn->scratch + fr_attn_tile(attn->head_dim));
    int64_t first = INT64_MAX, last = 0;
    for (size_t j = 0; j < attn->count; j++) {
        const fr_attn_query *query = &attn->queries[j];
        w.states[j].q = query->q;
        w.states[j].out = query->out;
        if (query->first < first) first = query->first;
        if (query->last > last) last = query->last;
    }
    for (int64_t block = first - first % FR_ATTN_BLOCK; block <= last; block += FR_ATTN_BLOCK) {
        enter_block(&w, block);
        if (w.seen == 0) continue;
        score_block(&w);
        for (size_t j = 0; j < attn->count; j++)
            if (w.states[j].from < w.states[j].to) steps->weigh(&w.states[j]);
        add_block(&w);
        if (attn->partial_stride) store_partial(&w);
    }
    if (attn->partial_stride) return;
    for (size_t j = 0; j < attn->count; j++) steps->divide(attn->queries[j].out, attn->value_dim, w.states[j].l);
}
