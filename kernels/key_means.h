/* Subtracts the mean of a head's keys from each key before the key is stored as turbo4 or turbo3, and gives the part of
 * a query's scores that is missing because of this.
 *
 * In most heads the keys, before they are rotated to their positions, are close to a mean that is several times as long
 * as their distance from it (in Qwen2 the mean is mostly the bias). A code's error is a share of the stored value, so
 * keys are stored without their mean. The mean is rotated to the key's position as keys are. So the mean's part of a
 * score differs between positions, and must be added to the score. The key at position 0 gets much of the attention. It
 * is far from the other keys, so it has a mean of its own.
 *
 * A pair is two values of a head that are rotated together. The remainder of a key differs in size from pair to pair,
 * and so do the queries. The codes' errors are about as large for all values, since heads are rotated for the codes
 * (turbo.h). So keys are multiplied by `key_scale` before they are stored, and queries by `query_scale`, its
 * reciprocal: errors become small where queries are large.
 *
 *     angle j of position p:   the angle j of position p - p mod 64, then that of p mod 64
 *     mean of position p:      `mean`, rotated by both angles, one after the other; for position 0 it is `first`
 *     the mean's score:        dot(query, mean of the position); for all but position 0 it is computed as
 *                              dot(u, turns[p mod 64]), where u is computed from the query and the block's first mean
 *
 * Means and scales may be any numbers: whatever they are, the sum of the two scores is that of the whole key, except
 * for rounding. The two values of a pair have one scale, so scales may be applied after the rotation to positions. All
 * of this is plain C with products and sums that are rounded one by one, the same for every instruction set.
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
    size_t dims;         /* the number of values of a head that are rotated with its position; 0 if none are */
    bool neox;           /* true: value i pairs with value i + dims / 2; false: value 2 i with value 2 i + 1 */
    float *first, *mean; /* [head_dim] */
    const float *starts; /* [blocks][dims] the angles of the first position of each block of 64: cosines, then sines */
    const float *turns;  /* [64][head_dim] angles of positions 0 to 63: cosines, then sines; the rest of a row is 1 */
    const float *across; /* [4][head_dim][16] `turns` transposed, for 16 positions at a time, aligned to 64 bytes */
    float *key_scale, *query_scale; /* [head_dim] */
} fr_key_means;

/* Gives the indices of the two values of pair i, which are rotated together; i is below dims / 2. */
static inline void fr_key_means_pair(const fr_key_means *means, size_t i, size_t *a, size_t *b) {
    *a = means->neox ? i : 2 * i;
    *b = means->neox ? i + means->dims / 2 : 2 * i + 1;
}

/* Fills a row of `starts` or `turns`, which has `width` values: the cosines of dims / 2 angles, then their sines. The
 * rest of the row is set to 1. */
void fr_key_means_fill(float *row, const float *cosine, const float *sine, size_t dims, size_t width);

/* Transposes `turns`, for heads of head_dim values, and stores the result in `across`. */
void fr_key_means_transpose(float *across, const float *turns, size_t head_dim);

/* Gives the mean at the first position of a block, [head_dim]. */
void fr_key_means_start(const fr_key_means *means, size_t block, float *start);

/* Gives the mean at a position, [head_dim]. */
void fr_key_means_at(const fr_key_means *means, size_t position, float *mean);

/* Subtracts the mean at a position from the key of that position, and scales the difference. */
void fr_key_means_remove(const fr_key_means *means, size_t position, float *key);

/* Computes the vector u that the head of this file describes, [head_dim]. query: the query before it was scaled. start:
 * the mean at the first position of the block that the keys are in. */
void fr_key_means_query(const fr_key_means *means, const float *start, const float *query, float *u);

#endif
