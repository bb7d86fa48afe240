/* Subtracts the mean of a head's keys from each key before the key is stored as turbo4 or turbo3, and gives the part
 * of a query's scores that is missing because of this.
 *
 * Before their rotation to positions, the keys of most heads lie around a mean that is several times as long as their
 * distance from it (in Qwen2 it is mostly the bias). A code's error is a share of what is coded, so keys are stored
 * without their mean. The mean is turned to the key's position as keys are. So its part of a score differs between
 * positions, and must be added to the score. The key at position 0 gets much of the attention. It lies far from the
 * other keys, so it has a mean of its own.
 *
 * Most pairs of values turn so slowly that within a block of 64 positions their mean moves along a straight line. For
 * these pairs the mean is replaced by a line, and a query needs only two dot products for a whole block. A few pairs of
 * each head turn fast. Their mean is turned to each position.
 *
 * What is left of a key differs in size from pair to pair of its values that turn together, and so do the queries. The
 * codes' errors are about as large for all values, since heads are rotated for the codes. So keys are multiplied by
 * `key_scale` before, and queries by `query_scale`, its reciprocal: errors become small where queries are large.
 *
 *     r, t:                  a position's place in its block of 64, from 0 to 63, and r - 31.5
 *     mean of position 0:    `first`
 *     of another position:   level + t * slope + the fast pairs of `mean` turned by the angles of r, where `level`,
 *                            `slope` and `mean` are turned by the angles of the block's first position before
 *     its score:             the sum over k of factor k * column used[k] at r. Columns 0 and 1 are 1 and t; the others
 *                            are cosines and sines of the angles of r. The factors depend on the query and the block.
 *
 * Means and scales may be any numbers: whatever they are, the sum of both scores is that of the whole key, but for
 * rounding. Values that turn together have one scale, so scales may follow the rotation to positions.
 *
 * In: heads, means, positions in the cache. Out: heads without means, scaled; factors of scores. */
#ifndef FR_KERNELS_KEY_MEANS_H
#define FR_KERNELS_KEY_MEANS_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FR_KEY_MEANS_BLOCK = 64,
    FR_KEY_MEANS_WIDEST = 512,
    FR_KEY_MEANS_FAST = 32,                        /* the most fast pairs of a head */
    FR_KEY_MEANS_USED = 2 + 2 * FR_KEY_MEANS_FAST, /* the most columns that a head uses */
    FR_KEY_MEANS_ROWS = 3                          /* vectors that are multiplied by a query for a block */
};

typedef struct fr_key_means {
    size_t head_dim;      /* at most FR_KEY_MEANS_WIDEST */
    size_t dims;          /* the number of values of a head that turn with its position; 0: none */
    bool neox;            /* value i turns with value i + dims / 2, otherwise value 2 i with value 2 i + 1 */
    float *first, *mean;  /* [head_dim]; of `mean` only the values of fast pairs are used */
    float *level, *slope; /* [head_dim]; 0 in fast pairs */
    const float *starts;  /* [blocks][dims] for the first position of each block: cosines, then sines */
    const float *columns; /* [2 + dims][64] 1, t, then the cosines and the sines of r; aligned to 64 bytes */
    uint16_t *used;       /* [FR_KEY_MEANS_USED] columns of the head: 0, 1, and for each fast pair cosine and sine */
    size_t used_count;
    float *key_scale, *query_scale; /* [head_dim] */
} fr_key_means;

/* The means at the beginning of a block. */
typedef struct fr_key_means_block {
    alignas(64) float rows[FR_KEY_MEANS_ROWS][FR_KEY_MEANS_WIDEST]; /* level, slope and `first` */
    float x[FR_KEY_MEANS_FAST], y[FR_KEY_MEANS_FAST];               /* the two values of each fast pair */
} fr_key_means_block;

/* Gives the places of the two values of pair i, which turn together; i is below dims / 2. */
static inline void fr_key_means_pair(const fr_key_means *means, size_t i, size_t *a, size_t *b) {
    *a = means->neox ? i : 2 * i;
    *b = means->neox ? i + means->dims / 2 : 2 * i + 1;
}

/* Returns t of place r. */
static inline float fr_key_means_t(size_t r) {
    return (float)r - 31.5F;
}

/* Fills in a row of `starts`: the cosines of dims / 2 angles, then their sines. */
void fr_key_means_fill(float *row, const float *cosine, const float *sine, size_t dims);

/* Fills in all columns at place r of a block, whose angles have these cosines and sines. */
void fr_key_means_fill_columns(float *columns, size_t r, const float *cosine, const float *sine, size_t dims);

/* Begins the list of columns with those of the line. */
void fr_key_means_begin(fr_key_means *means);

/* Adds a pair to the fast ones, of which there must be fewer than FR_KEY_MEANS_FAST. */
void fr_key_means_add_fast(fr_key_means *means, size_t pair);

/* Gives the means at the beginning of a block. */
void fr_key_means_enter(const fr_key_means *means, size_t block, fr_key_means_block *at);

/* Gives the mean at a position, [head_dim]. */
void fr_key_means_at(const fr_key_means *means, size_t position, float *mean);

/* Subtracts the mean at a position from a key there, and scales what is left. */
void fr_key_means_remove(const fr_key_means *means, size_t position, float *key);

/* Makes the factors of a query for a block, [used_count]. query: as it was before it was scaled. level, slope: the
 * query's scores with the first two rows of the block. */
void fr_key_means_factors(const fr_key_means *means, const fr_key_means_block *at, const float *query, float level,
                          float slope, float scale, float *factors);

#endif
