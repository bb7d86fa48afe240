/* Walks through the cache for SIMD flash attention: see attention.h.
 *
 * Blocks of 64 positions are the outer loop, so that K and V are read from memory once for all queries. Within a block,
 * three steps follow each other. First every query computes its scores with a tile of K that stays in the L1 cache. The
 * tile has 8 positions, of which four are multiplied at a time. With enough queries the tile has 16 or 32 positions,
 * and is transposed. Keys that are codes are always transposed, and multiplied as integers. Then each query's scores
 * become weights. Last, every query adds up the 64 positions of V in registers, one strip of columns after the other; a
 * strip stays in L1. Some types are decoded into a tile first, once for all queries: those that the instruction set
 * cannot multiply directly, or not fast enough for so many queries. Neighbouring queries that see the same positions of
 * a block take a step together, so that one load of K or V is used for several sums. Meanwhile memory is prefetched: V
 * during the scores, the next block's K while V is added up. */
#include "kernels/attention.h"

#include "kernels/alibi.h"
#include "kernels/compiler.h"
#include "kernels/key_means.h"

/* With at most this many queries, stream_keys reads the keys of a block before they are transposed. */
enum { STREAMED = 16 };

/* Holds the arguments that all steps of the walk over one block share. */
typedef struct walk {
    const fr_attn *attn;
    const fr_attn_steps *steps;
    float *tile;
    fr_attn_state *states; /* [attn->count] */
    int64_t first, last;   /* all queries see the positions from `first` to `last`; if first > last there are none */
    int64_t block;         /* the block's first position */
    bool inside;           /* all queries see the whole block, and see earlier positions too */
    const uint8_t *k, *v;  /* the block's keys and values, from its first position on */
    const uint8_t *next_k; /* keys of the next block; NULL if no query sees any of its positions */
    bool asked;            /* the keys `k` were prefetched during the previous block */
    uint64_t seen;         /* bit i: at least one query sees position i of the block */
} walk;

/* Returns a mask in which bits `from` to `to` - 1 are set. */
static uint64_t bits(int32_t from, int32_t to) {
    return from < to ? UINT64_MAX >> (FR_ATTN_BLOCK - (to - from)) << from : 0;
}

static bool alike(const fr_attn_state *a, const fr_attn_state *b) {
    return a->from == b->from && a->to == b->to && a->first == b->first;
}

/* Groups neighbouring queries that see the same positions, so that each step computes a whole group. The groups are
 * made as equal in size as possible. */
static void group_queries(const walk *w) {
    size_t most = w->attn->count <= w->steps->few ? w->steps->few : w->steps->together;
    for (size_t j = 0, end; j < w->attn->count; j = end) {
        fr_attn_state *state = w->states;
        for (end = j + 1; end < w->attn->count && alike(&state[j], &state[end]);) end++;
        for (size_t groups = (end - j + most - 1) / most; groups > 0; j += state[j].together, groups--)
            state[j].together = (uint32_t)((end - j + groups - 1) / groups);
    }
}

/* Sets what each query sees of the block, and which queries see the same. Gives true if a query sees a position of the
 * next block. */
static bool place_queries(walk *w) {
    const fr_attn *attn = w->attn;
    int64_t next = w->block + FR_ATTN_BLOCK;
    bool sees_next = false;
    w->seen = 0;
    for (size_t j = 0; j < attn->count; j++) {
        const fr_attn_query *query = &attn->queries[j];
        fr_attn_state *state = &w->states[j];
        int64_t from = query->first - w->block, to = query->last - w->block + 1;
        state->first = from >= 0 || attn->partial_stride;
        state->from = (int32_t)(from < 0 ? 0 : from < FR_ATTN_BLOCK ? from : FR_ATTN_BLOCK);
        state->to = (int32_t)(to < 0 ? 0 : to < FR_ATTN_BLOCK ? to : FR_ATTN_BLOCK);
        w->seen |= bits(state->from, state->to);
        sees_next |= query->first < next + FR_ATTN_BLOCK && query->last >= next;
    }
    group_queries(w);
    return sees_next;
}

/* Enters the next block. From one block that all queries see to the next such block, their states do not change. */
static void enter_block(walk *w, int64_t block) {
    const fr_attn *attn = w->attn;
    int64_t next = block + FR_ATTN_BLOCK;
    bool inside = block > w->first && next <= w->last;
    bool sees_next = true;
    w->block = block;
    if (!inside || !w->inside) sees_next = place_queries(w);
    w->inside = inside;
    if (w->seen == 0) return;
    w->k = attn->k_pages[block / FR_ATTN_BLOCK] + attn->k_at;
    w->v = attn->v_pages[block / FR_ATTN_BLOCK] + attn->v_at;
    w->asked = w->k == w->next_k;
    w->next_k = sees_next ? attn->k_pages[next / FR_ATTN_BLOCK] + attn->k_at : NULL;
}

/* Returns true if the steps read values of this type directly from the cache. Otherwise they read a decoded tile. */
static bool as_it_lies(const walk *w, fr_dtype type) {
    return !w->steps->decode[type] || w->attn->count <= w->steps->undecoded[type];
}

/* Returns columns [d, d + width) of positions [from, from + count) of the block. They are in the cache itself, or
 * decoded into the tile. Positions that no query sees are not read. */
static fr_attn_rows rows_of(const walk *w, fr_dtype type, const uint8_t *block, size_t stride, int32_t from,
                            int32_t count, size_t d, size_t width) {
    const uint8_t *data = block + (size_t)from * stride + fr_dtype_row_bytes(type, d);
    if (as_it_lies(w, type)) return (fr_attn_rows){type, data, stride};
    for (int32_t i = 0; i < count; i++)
        if (w->seen >> (from + i) & 1)
            w->steps->decode[type](w->tile + (size_t)i * width, data + (size_t)i * stride, width);
    return (fr_attn_rows){FR_F32, w->tile, width * sizeof(float)};
}

/* Gives the cache lines to prefetch during steps [begin, end). The first `bytes` bytes at `from` are divided evenly
 * among `parts` steps. */
static fr_attn_ahead part_of(const uint8_t *from, size_t bytes, size_t begin, size_t end, size_t parts) {
    size_t at = (bytes * begin / parts + 63) / 64 * 64;
    return (fr_attn_ahead){from + at, from + bytes * end / parts};
}

/* Reads one value of each cache line of the visible keys, in order. These reads make the processor's prefetchers stream
 * the keys, which prefetch hints do not. If the keys are in memory, these reads and the scores after them are together
 * 2.5 times as fast as scores alone that miss the caches (Zen 5). With many queries the reads are not needed, because
 * computing takes longer than prefetched lines need to arrive. */
static void stream_keys(const walk *w) {
    const fr_attn *attn = w->attn;
    size_t row_bytes = fr_dtype_row_bytes(attn->k_type, attn->head_dim);
    for (size_t i = 0; i < FR_ATTN_BLOCK; i++) {
        const volatile uint8_t *row = w->k + i * attn->k_stride;
        if ((w->seen >> i & 1) == 0) continue;
        for (size_t at = 0; at < row_bytes; at += 64) (void)row[at];
    }
}

/* Computes the scores of the j-th query and of those grouped with it, for the tile of K whose first position is
 * `first`. Meanwhile V is prefetched. If the values are the first columns of the keys (MLA), nothing is prefetched. */
static void score_tile(const walk *w, size_t j, fr_attn_rows k, int32_t first) {
    const fr_attn *attn = w->attn;
    fr_attn_state *state = &w->states[j];
    for (int32_t i = first; i < first + FR_ATTN_TILE; i += FR_ATTN_SCORES) {
        fr_attn_rows four = {k.type, (const uint8_t *)k.data + (size_t)(i - first) * k.stride, k.stride};
        size_t bytes = FR_ATTN_SCORES * attn->v_stride;
        fr_attn_ahead v = {0};
        if (w->v != w->k) v = part_of(w->v + (size_t)i * attn->v_stride, bytes, j, j + state->together, attn->count);
        if (i + FR_ATTN_SCORES > state->from && i < state->to)
            w->steps->scores(state, state->together, four, i, attn->head_dim, attn->scale, v);
    }
}

/* Returns the number of positions whose keys are transposed at a time, or 0 if scores are faster without transposing.
 * Codes are always transposed: even for one query this takes no longer than adding up sums across lanes. For other
 * keys, transposing pays only if each transposed value is used by enough queries. Without transposing, each sum is
 * added up with shuffles. Wider keys have longer sums, which hide these shuffles better, so they need more queries
 * before transposing pays. A tile of keys of more than 256 values does not fit the L1 cache. (Measured on Zen 4, heads
 * of 64 to 512 values.) */
static size_t columns_of(const walk *w) {
    size_t n = w->attn->head_dim, width = w->steps->columns_width, room = fr_attn_tile(n);
    if (fr_attn_coded(w->attn)) return FR_ATTN_CODES;
    if (!w->steps->transpose || n > 256 || w->attn->count * w->steps->columns_from < n * n) return 0;
    return n * width <= room ? width : width / 2;
}

/* Gives the rows of positions first..first + width - 1. At least one query sees at least one of these positions. The
 * row of a position that no query sees must not be read, so `rows` has the row of a seen position instead. */
static void seen_rows(const walk *w, int32_t first, size_t width, const void **rows) {
    int32_t seen = first;
    while ((w->seen >> seen & 1) == 0) seen++;
    for (size_t i = 0; i < width; i++) {
        if (w->seen >> ((size_t)first + i) & 1) seen = first + (int32_t)i;
        rows[i] = w->k + (size_t)seen * w->attn->k_stride;
    }
}

/* Computes the scores of all queries from transposed keys, `width` positions at a time. Meanwhile V is prefetched. */
static void score_columns(const walk *w, size_t width) {
    const fr_attn *attn = w->attn;
    const fr_attn_steps *steps = w->steps;
    fr_attn_codes *codes = fr_attn_coded(attn) ? (fr_attn_codes *)(void *)w->tile : NULL;
    const void *rows[FR_ATTN_BLOCK];
    if (!w->asked || attn->count <= STREAMED) stream_keys(w);
    for (int32_t i = 0; i < FR_ATTN_BLOCK; i += (int32_t)width) {
        fr_attn_ahead v = {0};
        if ((w->seen & bits(i, i + (int32_t)width)) == 0) continue;
        seen_rows(w, i, width, rows);
        if (w->v != w->k)
            v = part_of(w->v, FR_ATTN_BLOCK * attn->v_stride, (size_t)i, (size_t)i + width, FR_ATTN_BLOCK);
        if (codes) {
            steps->transpose_codes(codes, attn->k_type, rows, attn->head_dim);
            steps->scores_of_codes(w->states, attn->count, codes, i, attn->head_dim, attn->scale, v);
        } else {
            steps->transpose(w->tile, width, attn->k_type, rows, attn->head_dim);
            steps->scores_of_columns(w->states, attn->count, w->tile, width, i, attn->head_dim, attn->scale, v);
        }
    }
}

static void score_block(const walk *w) {
    const fr_attn *attn = w->attn;
    size_t width = columns_of(w);
    if (width > 0) {
        score_columns(w, width);
        return;
    }
    if (!w->asked || as_it_lies(w, attn->k_type)) stream_keys(w);
    for (int32_t i = 0; i < FR_ATTN_BLOCK; i += FR_ATTN_TILE) {
        if ((w->seen & bits(i, i + FR_ATTN_TILE)) == 0) continue;
        fr_attn_rows k = rows_of(w, attn->k_type, w->k, attn->k_stride, i, FR_ATTN_TILE, 0, attn->head_dim);
        for (size_t j = 0; j < attn->count; j += w->states[j].together) score_tile(w, j, k, i);
    }
}

/* Adds to the block's scores the part that is missing because means were subtracted from the stored keys. */
static void add_mean_scores(const walk *w, size_t block) {
    const fr_attn *attn = w->attn;
    const fr_key_means *means = attn->key_means;
    fr_key_means_block at;
    float factors[FR_KEY_MEANS_USED];
    fr_attn_state states[FR_ATTN_TOGETHER];
    const fr_attn_rows rows = {FR_F32, at.rows, sizeof at.rows[0]};
    fr_key_means_enter(means, block, &at);
    for (size_t i = 0; i < FR_ATTN_TOGETHER; i++) {
        states[i].from = 0;
        states[i].to = FR_KEY_MEANS_ROWS;
    }
    for (size_t j = 0, count; j < attn->count; j += count) {
        count = attn->count - j < w->steps->together ? attn->count - j : w->steps->together;
        for (size_t i = 0; i < count; i++) states[i].q = attn->queries[j + i].plain;
        w->steps->scores(states, count, rows, 0, attn->head_dim, attn->scale, (fr_attn_ahead){0});
        for (size_t i = 0; i < count; i++) {
            const float *dots = states[i].weights;
            float *weights = w->states[j + i].weights, of_first = weights[0] + dots[2];
            fr_key_means_factors(means, &at, attn->queries[j + i].plain, dots[0], dots[1], attn->scale, factors);
            w->steps->add_columns(weights, factors, means->columns, means->used, means->used_count);
            if (block == 0) weights[0] = of_first;
        }
    }
}

/* Adds the weighted values of the block to all outputs. Meanwhile the K of the next block is prefetched. */
static void add_block(const walk *w) {
    const fr_attn *attn = w->attn;
    size_t n = attn->value_dim, bytes = FR_ATTN_BLOCK * attn->k_stride, asked = 0, end;
    for (size_t d = 0, width; d < n; d += width) {
        width = n - d < w->steps->strip ? n - d : w->steps->strip;
        fr_attn_rows v = rows_of(w, attn->v_type, w->v, attn->v_stride, 0, FR_ATTN_BLOCK, d, width);
        for (size_t j = 0; j < attn->count; j += w->states[j].together, asked = end) {
            const fr_attn_state *state = &w->states[j];
            fr_attn_ahead k = {0};
            end = asked + state->together * width;
            if (w->next_k) k = part_of(w->next_k, bytes, asked, end, n * attn->count);
            if (state->from < state->to) w->steps->add(state, state->together, v, d, width, k);
        }
    }
}

/* Stores the block's partial result: o, then m and l. Moves each query's `out` to the address of the next block's
 * result. */
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

/* Adds the contribution of query j's slope to the query's scores of the block. */
static void add_slope(const walk *w, size_t j) {
    fr_attn_state *state = &w->states[j];
    for (int32_t i = state->from; i < state->to; i++)
        state->weights[i] += fr_alibi_added(w->attn, &w->attn->queries[j], w->block + i);
}

/* Turns the scores of the block into weights. */
static void weigh_block(const walk *w) {
    float cap = w->attn->softcap;
    for (size_t j = 0, count = 0; j < w->attn->count; j++) {
        fr_attn_state *state = &w->states[j];
        bool seen = state->from < state->to;
        if (seen && cap != 0.0f)
            w->steps->softcap(state->weights + state->from, (size_t)(state->to - state->from), cap);
        if (seen && w->attn->queries[j].slope != 0.0f) add_slope(w, j);
        if (seen) count++;
        if (count > 0 && (!seen || count == FR_ATTN_WEIGHED || j + 1 == w->attn->count)) {
            w->steps->weigh(state + seen - count, count);
            count = 0;
        }
    }
}

void fr_attend(const fr_attn *attn, const fr_attn_steps *steps) {
    walk w = {.attn = attn, .steps = steps, .tile = attn->scratch, .last = INT64_MAX};
    w.states = (fr_attn_state *)(void *)(attn->scratch + fr_attn_tile(attn->head_dim));
    float *row = (float *)(void *)(w.states + attn->count);
    int64_t first = INT64_MAX, last = 0;
    for (size_t j = 0; j < attn->count; j++) {
        const fr_attn_query *query = &attn->queries[j];
        w.states[j].q = query->q;
        w.states[j].codes = NULL;
        w.states[j].out = query->out;
        if (fr_attn_coded(attn)) {
            fr_qblock *codes = (fr_qblock *)(void *)row;
            steps->quantize(codes, query->q, attn->head_dim);
            w.states[j].codes = codes;
            row += fr_attn_row(attn->head_dim);
        }
        if (query->first < first) first = query->first;
        if (query->last > last) last = query->last;
        if (query->first > w.first) w.first = query->first;
        if (query->last < w.last) w.last = query->last;
    }
    for (int64_t block = first - first % FR_ATTN_BLOCK; block <= last; block += FR_ATTN_BLOCK) {
        enter_block(&w, block);
        if (w.seen == 0) continue;
        score_block(&w);
        if (attn->key_means) add_mean_scores(&w, (size_t)(block / FR_ATTN_BLOCK));
        weigh_block(&w);
        add_block(&w);
        if (attn->partial_stride) store_partial(&w);
    }
    if (attn->partial_stride) return;
    for (size_t j = 0; j < attn->count; j++) {
        float l = fr_attn_with_sink(steps->exp, &attn->queries[j], w.states[j].m, w.states[j].l);
        steps->divide(attn->queries[j].out, attn->value_dim, l);
    }
}
