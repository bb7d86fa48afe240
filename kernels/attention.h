/* Flash attention of one KV head as every SIMD instruction set runs it: the walk that they share (attention.c), and the
 * steps that each of them brings.
 *
 * In: fr_attn. Out: the queries' outputs, as kernels.h defines them. The scratch holds a tile, then a state for each
 * query. */
#ifndef FR_KERNELS_ATTENTION_H
#define FR_KERNELS_ATTENTION_H

#include "kernels/compiler.h"
#include "kernels/kernels.h"

#include <stdalign.h>

enum {
    FR_ATTN_BLOCK = 64, /* positions */
    FR_ATTN_SCORES = 4, /* positions whose scores a query takes in one step */
    FR_ATTN_TILE = 8,   /* positions of K that are decoded at a time */
    FR_ATTN_STRIP = 64  /* columns of V in one step, at most */
};

/* Holds what a query carries from block to block; its o is `out`. */
typedef struct fr_attn_state {
    alignas(64) const float *q;
    float *out;
    float m, l;
    float a, b;                   /* how this block joins: o = fma(o, a, o_b * b), or o_b where it is the first */
    int32_t from, to;             /* positions of this block that the query sees, from <= i < to */
    bool first;                   /* nothing was seen before this block */
    uint32_t together;            /* queries from this one on that take a step together, where it is their first */
    float weights[FR_ATTN_BLOCK]; /* scores, then e, of this block */
} fr_attn_state;

_Static_assert(sizeof(fr_attn_state) == FR_ATTN_STATE * sizeof(float), "fr_attn_scratch makes room for it");

/* Rows of a cache, as they lie or decoded to float32, `stride` bytes apart. */
typedef struct fr_attn_rows {
    fr_dtype type;
    const void *data;
    size_t stride;
} fr_attn_rows;

/* Lines of memory that a step asks for while it computes, because they are needed soon: a few at a time, for as many as
 * a core can wait for at once are soon asked for, and whoever comes then waits too. */
typedef struct fr_attn_ahead {
    const uint8_t *at, *end; /* line by line */
} fr_attn_ahead;

/* The steps of an instruction set. `count` is 1 to `together`: queries that see the same positions of the block. */
typedef struct fr_attn_steps {
    size_t together, strip; /* strip: a multiple of 32, at most FR_ATTN_STRIP */

    /* n values of a cache as float32; n is a multiple of the type's block. NULL for types that `scores` and `add` read
     * as they lie for any number of queries, FR_F32 among them. */
    void (*decode[FR_KV_TYPES])(float *y, const void *x, size_t n);

    /* For up to so many queries in all they read a type as it lies; for more, decoding it once for all is faster. */
    size_t undecoded[FR_KV_TYPES];

    /* weights[first + i] = dot(q, k row i) * scale, i < FR_ATTN_SCORES. Some of these positions are seen; one that is
     * not takes its nearest seen neighbour's row, because its own is not to be read. */
    void (*scores)(fr_attn_state *states, size_t count, fr_attn_rows k, int32_t first, size_t head_dim, float scale,
                   fr_attn_ahead ahead);

    /* weights from scores to e; the block's m and l join the query's; a and b. */
    void (*weigh)(fr_attn_state *state);

    /* o_b of columns [d, d + width), and how it joins o; v row i, from its column d, is position i of the block. */
    void (*add)(const fr_attn_state *states, size_t count, fr_attn_rows v, size_t d, size_t width, fr_attn_ahead ahead);

    fr_softcap_fn *softcap; /* of a block's scores, where there is one */
    fr_exp_fn *exp;
    fr_div_fn *divide;
} fr_attn_steps;

/* Attention by these steps. */
void fr_attend(const fr_attn *attn, const fr_attn_steps *steps);

/* Asks for up to so many lines more. Inline always: gcc drops calls of functions that only ask. */
FR_INLINE void fr_attn_ask(fr_attn_ahead *ahead, size_t lines) {
    for (; lines > 0 && ahead->at < ahead->end; lines--, ahead->at += 64) __builtin_prefetch(ahead->at, 0, 2);
}

/* Row i of four scores' K rows: its place, or its nearest seen neighbour's. */
static inline const void *fr_attn_seen_row(const fr_attn_state *state, fr_attn_rows k, int32_t first, int32_t i) {
    int32_t at = first + i < state->from ? state->from : first + i < state->to ? first + i : state->to - 1;
    return (const uint8_t *)k.data + (size_t)(at - first) * k.stride;
}

#endif
