/* Declares SIMD flash attention of one KV head: the walk through the cache that all instruction sets share
 * (attention.c), and the steps that each instruction set implements.
 *
 * In: fr_attn. Out: the queries' outputs, as kernels.h defines them. The scratch memory holds a tile of decoded or
 * transposed rows, then a state for each query, and then, if keys are codes, the quantized queries. */
#ifndef FR_KERNELS_ATTENTION_H
#define FR_KERNELS_ATTENTION_H

#include "kernels/compiler.h"
#include "kernels/kernels.h"
#include "quant/turbo.h"

#include <stdalign.h>

enum {
    FR_ATTN_BLOCK = 64,   /* positions of a block */
    FR_ATTN_SCORES = 4,   /* positions whose scores one call of `scores` computes for a query */
    FR_ATTN_WEIGHED = 8,  /* the largest number of queries whose scores are turned into weights together */
    FR_ATTN_TILE = 8,     /* positions of K that are decoded at a time */
    FR_ATTN_CODES = 16,   /* positions whose codes are transposed at a time */
    FR_ATTN_TOGETHER = 8, /* the largest number of queries that take a step together */
    FR_ATTN_STRIP = 64    /* the largest number of columns of V in one step */
};

/* Holds a query's state, which is kept from one block of positions to the next. It has the greatest score m, the sum l
 * of the weights, and the weighted sum of V. kernels.h calls the weighted sum o; here `out` points to it. */
typedef struct fr_attn_state {
    alignas(64) const float *q;
    const fr_qblock *codes; /* q quantized; NULL unless keys are blocks of codes */
    float *out;
    float m, l;
    float a, b;        /* factors that join the block's weighted sum o_b to o: o = fma(o, a, o_b * b); for the first
                        * block o = o_b */
    int32_t from, to;  /* the query sees positions i of this block with from <= i < to */
    bool first;        /* this block is the first with a position that the query sees, or blocks are not joined */
    uint32_t together; /* number of queries in the group; set only for the group's first query */
    float weights[FR_ATTN_BLOCK]; /* scores of this block's positions; `weigh` replaces each score by its weight e */
} fr_attn_state;

_Static_assert(sizeof(fr_attn_state) == FR_ATTN_STATE * sizeof(float), "fr_attn_scratch makes room for it");

/* Describes rows of keys or values, `stride` bytes apart. They are in the cache itself, or decoded to float32. */
typedef struct fr_attn_rows {
    fr_dtype type;
    const void *data;
    size_t stride;
} fr_attn_rows;

/* Holds one block of 32 columns of FR_ATTN_CODES keys, transposed. An instruction set whose products need unsigned
 * codes stores code + 128. */
typedef struct fr_attn_codes {
    alignas(64) int8_t codes[8][FR_ATTN_CODES][4]; /* codes[c] has columns 4 c to 4 c + 3 of each position */
    float d[FR_ATTN_CODES];                        /* the scale of each position's block */
} fr_attn_codes;

/* Describes the cache lines that a step prefetches for a later step while it computes. A step prefetches only a few
 * lines, because a core can wait for only a limited number of lines at once. Beyond that number the core's own loads
 * would wait too. */
typedef struct fr_attn_ahead {
    const uint8_t *at, *end; /* at: the next line to prefetch; end: the end of the lines */
} fr_attn_ahead;

/* Holds the steps that an instruction set implements. Each call of a step takes `count` queries, which all see the same
 * positions of the block. `count` is at most `together` or `few`. */
typedef struct fr_attn_steps {
    size_t together, few, strip; /* together: the largest number of queries in a call of a step. few: if there are at
                                  * most this many queries in all, queries that see the same positions are all in one
                                  * call. strip: the largest number of columns of V in a call of `add`, a multiple of 32
                                  * up to FR_ATTN_STRIP */

    /* Decodes n values of the cache to float32; n is a multiple of the type's block. If it is NULL, `scores` and `add`
     * read the type directly, for any number of queries. */
    void (*decode[FR_TYPES_END])(float *y, const void *x, size_t n);

    /* If there are at most this many queries in all, `scores` and `add` read the type directly. If there are more,
     * decoding each row once for all queries is faster. */
    size_t undecoded[FR_TYPES_END];

    /* Sets weights[first + i] = dot(q, k row i) * scale for i < FR_ATTN_SCORES. At least one of these positions is
     * visible. The row of a position that is not visible must not be read: the row of the nearest visible position is
     * read instead. */
    void (*scores)(fr_attn_state *states, size_t count, fr_attn_rows k, int32_t first, size_t head_dim, float scale,
                   fr_attn_ahead ahead);

    /* The next two functions compute scores in another way, for any number of queries. `transpose` transposes rows of K
     * once for all queries, so that positions are side by side: tile[d * width + i] = value d of rows[i]. A tile is
     * aligned to 64 bytes. `width` is columns_width, or half of it if a tile of that width is too large.
     * `scores_of_columns` then computes weights[first + i] for i < width; the weights of positions that a query does
     * not see are never read. This way is faster if there are at least head_dim^2 / columns_from queries. */
    size_t columns_width, columns_from;
    void (*transpose)(float *tile, size_t width, fr_dtype type, const void *const *rows, size_t head_dim);
    void (*scores_of_columns)(fr_attn_state *states, size_t count, const float *tile, size_t width, int32_t first,
                              size_t head_dim, float scale, fr_attn_ahead ahead);

    /* The next three functions compute the scores of keys that are blocks of codes, for any number of queries, by
     * products of integers. `quantize` quantizes a query. `transpose_codes` transposes FR_ATTN_CODES rows of K once for
     * all queries, so that positions are side by side. `scores_of_codes` then computes weights[first + i] for i <
     * FR_ATTN_CODES; the weights of positions that a query does not see are never read. */
    fr_quantize_fn *quantize;
    void (*transpose_codes)(fr_attn_codes *tile, fr_dtype type, const void *const *rows, size_t head_dim);
    void (*scores_of_codes)(fr_attn_state *states, size_t count, const fr_attn_codes *tile, int32_t first,
                            size_t head_dim, float scale, fr_attn_ahead ahead);

    /* Adds the scores of means (key_means.h): weights[i] = fma(factors[k], columns[64 * used[k] + i], weights[i]) for i
     * < FR_ATTN_BLOCK, and for k from 0 to count - 1 in this order. */
    void (*add_columns)(float *weights, const float *factors, const float *columns, const uint16_t *used, size_t count);

    /* Turns the scores of a block into weights e for `count` queries, at most FR_ATTN_WEIGHED. Merges the block's m
     * and l into the m and l of each query, and sets each query's factors a and b. Each of these queries sees at least
     * one position of the block. */
    void (*weigh)(fr_attn_state *states, size_t count);

    /* Computes columns [d, d + width) of o_b, the block's weighted sum of V, and joins them to o by the factors a and
     * b. Row i of v is position i of the block, from column d on. */
    void (*add)(const fr_attn_state *states, size_t count, fr_attn_rows v, size_t d, size_t width, fr_attn_ahead ahead);

    fr_softcap_fn *softcap; /* applied to a block's scores if there is a cap */
    fr_exp_fn *exp;
    fr_div_fn *divide;
} fr_attn_steps;

/* Computes attention, by calling the functions in `steps` for each block of positions. */
void fr_attend(const fr_attn *attn, const fr_attn_steps *steps);

/* Prefetches up to `lines` more lines. The function must be inlined: gcc removes calls of a function that only
 * prefetches. */
FR_INLINE void fr_attn_ask(fr_attn_ahead *ahead, size_t lines) {
    for (; lines > 0 && ahead->at < ahead->end; lines--, ahead->at += 64) __builtin_prefetch(ahead->at, 0, 2);
}

/* Returns the K row of position first + i, or of the nearest position that the query sees. */
static inline const void *fr_attn_seen_row(const fr_attn_state *state, fr_attn_rows k, int32_t first, int32_t i) {
    int32_t at = first + i < state->from ? state->from : first + i < state->to ? first + i : state->to - 1;
    return (const uint8_t *)k.data + (size_t)(at - first) * k.stride;
}

#endif
