/* Subtracts the mean of a head's keys from each key before the key is stored as turbo4 or turbo3, and gives the part
 * of a query's scores that is missing because of this.
 *
 * Before their rotation to positions, the keys of most heads lie around a mean that is several times as long as their
 * distance from it (in Qwen2 it is mostly the bias). A code's error is a share of what is coded, so keys are stored
 * without their mean. The mean is turned to the key's position as keys are. So its part of a score differs between
 * positions, and must be added to the score. The key at position 0 gets much of the attention. It lies far from the
 * other keys, so it has a mean of its own.
 *
 * What is left of a key differs in size from pair to pair of its values that turn together, and so do the queries. The
 * codes' errors are about as large for all values, since heads are rotated for the codes. So keys are multiplied by
 * `key_scale` before, and queries by `query_scale`, its reciprocal: errors become small where queries are large.
 *
 *     angle j of position p:   the angle j of position p - p mod 64, then that of p mod 64
 *     mean of position p:      `mean`, turned by both, one after the other; that of position 0 is `first`
 *     its score:               dot(query, mean of the position); for all but position 0 it is computed as
 *                              dot(u, turns[p mod 64]), where u is made of the query and the mean at the block's start
 *
 * Means and scales may be any numbers: whatever they are, the sum of both scores is that of the whole key, but for
 * rounding. Values that turn together have one scale, so scales may follow the rotation to positions. All of it is
 * plain C with products and sums that are rounded one by one, the same for every instruction set.
 *
 * In: heads, means, positions in the cache. Out: heads without means, scaled; vectors whose dots are scores. */
#ifndef FR_KERNELS_KEY_MEANS_H
#define FR_KERNELS_KEY_MEANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FR_KEY_MEANS_BLOCK = 64, FR_KEY_MEANS_WIDEST = 512 };

typedef struct fr_key_means {
    size_t head_dim;     /* at most FR_KEY_MEANS_WIDEST */
    size_t dims;         /* the number of values of a head that turn with its position; 0: none */
    bool neox;           /* value i turns with value i + dims / 2, otherwise value 2 i with value 2 i + 1 */
    float *first, *mean; /* [head_dim] */
    const float *starts; /* [blocks][dims] for the first position of each block of 64: cosines, then sines */
    const float *turns;  /* [64][head_dim] for positions 0 to 63: cosines, then sines; the rest of a row is 1 */
    const float *across; /* [4][head_dim][16] `turns` transposed, for 16 positions at a time, aligned to 64 bytes */
    float *key_scale, *query_scale; /* [head_dim] */
} fr_key_means;

/* Gives the places of the two values of pair i, which turn together; i is below dims / 2. */
static inline void fr_key_means_pair(const fr_key_means *means, size_t i, size_t *a, size_t *b) {
    *a = means->neox ? i : 2 * i;
    *b = means->neox ? i + means->dims / 2 : 2 * i + 1;
}

/* Fills in a row of `starts` or `turns`, which has `width` values: the cosines of dims / 2 angles, then their sines.
 * The rest of the row is set to 1. */
void fr_key_means_fill(float *row, const float *cosine, const float *sine, size_t dims, size_t width);

/* Transposes `turns` of heads of head_dim values to `across`. */
void fr_key_means_transpose(float *across, const float *turns, size_t head_dim);

/* Gives the mean at the first position of a block, [head_dim]. */
void fr_key_means_start(const fr_key_means *means, size_t block, float *start);

/* Gives the mean at a position, [head_dim]. */
void fr_key_means_at(const fr_key_means *means, size_t position, float *mean);

/* Subtracts the mean at a position from a key there, and scales what is left. */
void fr_key_means_remove(const fr_key_means *means, size_t position, float *key);

/* Makes the vector u that the head of this file describes, [head_dim]. query: as it was before it was scaled. start:
 * the mean at the first position of the block in which the keys are. */
void fr_key_means_query(const fr_key_means *means, const float *start, const float *query, float *u);

#endif
