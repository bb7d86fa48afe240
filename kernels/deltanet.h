/* Gated DeltaNet's state as every SIMD instruction set runs it: the walk over strips and rows that they share
 * (deltanet.c), and the two steps that each of them brings.
 *
 * In: fr_deltanet. Out: the rows' results and the state, as kernels.h defines them. Between two rows a strip holds what
 * the later one begins with, s * decay, whose m is already summed: so a row is one walk over its strip, a load and a
 * store an element, with two chains a column in flight, and a strip stays in the L1 cache over all rows. No cache holds
 * the states of all heads and layers, so the last row prefetches the strips behind its own. */
#ifndef FR_KERNELS_DELTANET_H
#define FR_KERNELS_DELTANET_H

#include "kernels/kernels.h"

enum { FR_DELTANET_COLUMNS_MAX = FR_DELTANET_TOGETHER * FR_DELTANET_STRIP };

/* One row over strips side by side, key_dim * FR_DELTANET_STRIP floats apart. value and out have all their columns. */
typedef struct fr_deltanet_step {
    size_t key_dim;
    const float *key, *query, *value;
    float beta;
    const float *from; /* s * decay */
    float *kept;       /* takes s behind the row; NULL: nobody wants it, there is a next row */
    float *next;       /* takes the next row's s * decay; NULL: this is the last row */
    const float *next_key;
    float next_decay;
    float *m;           /* this row's; replaced by the next one's */
    float *out;         /* o */
    const float *ahead; /* what the last row prefetches: as many strips, behind these or past the state */
} fr_deltanet_step;

typedef struct fr_deltanet_steps {
    size_t together; /* strips that a step takes, at most FR_DELTANET_TOGETHER */

    /* The first row's beginning: to = from * decay, and m. to may be from. */
    void (*begin)(float *to, const float *from, const float *key, float decay, size_t key_dim, float *m);

    /* The rest of a row, and the beginning of the next. from may be kept or next, which differ. */
    void (*advance)(const fr_deltanet_step *step);
} fr_deltanet_steps;

/* Takes strips through the rows by these steps, as long as there are as many as these take, the last one perhaps in
 * part. Gives the strip where it stopped; begins at strip `strip`. */
size_t fr_deltanet_advance(const fr_deltanet *run, const fr_deltanet_steps *steps, size_t strip);

#endif
