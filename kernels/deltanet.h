/* Declares gated DeltaNet for SIMD: the walk over strips and rows that all instruction sets share (deltanet.c), and the
 * two steps that each instruction set implements.
 *
 * In: fr_deltanet. Out: the rows' results and the state, as kernels.h defines them. kernels.h also defines s, m, delta
 * and o. The step of a row also computes s * decay and m for the next row. So each row needs one walk over its strip,
 * with one load and one store per element and two chains per column in flight. The strip stays in the L1 cache over all
 * rows. The states of all heads and layers do not fit any cache, so the last row of a strip prefetches the strips that
 * come next. */
#ifndef FR_KERNELS_DELTANET_H
#define FR_KERNELS_DELTANET_H

#include "kernels/kernels.h"

enum { FR_DELTANET_COLUMNS_MAX = FR_DELTANET_TOGETHER * FR_DELTANET_STRIP };

/* Holds the arguments of a step, which takes one row through strips that are key_dim * FR_DELTANET_STRIP floats apart.
 * value and out have all columns of these strips. */
typedef struct fr_deltanet_step {
    size_t key_dim;
    const float *key, *query, *value;
    float beta;
    const float *from; /* s * decay of this row */
    float *kept;       /* gets s after this row; NULL if s is not needed, in which case `next` is given */
    float *next;       /* gets s * decay for the next row; NULL if this is the last row */
    const fr_deltanet_row *next_row;
    float *m;           /* has m of this row; the step replaces it by m of the next row */
    float *out;         /* gets o, the row's output */
    const float *ahead; /* memory that the last row prefetches: the next strips of the state, or memory after its end */
} fr_deltanet_step;

typedef struct fr_deltanet_steps {
    size_t together; /* number of strips that a step takes, at most FR_DELTANET_TOGETHER */

    /* Begins the first row: sets `to` to from * decay, and computes m. `to` may be `from`. */
    void (*begin)(float *to, const float *from, const fr_deltanet_row *row, size_t key_dim, float *m);

    /* Finishes a row and begins the next row. step->from may be the same array as step->kept, or the same array as
     * step->next. step->kept and step->next must be different arrays. */
    void (*advance)(const fr_deltanet_step *step);
} fr_deltanet_steps;

/* Takes strips from `strip` on through all rows, steps->together strips at a time. Stops when fewer strips than that
 * are left, and returns the first of those. The last strip of a head may be partly filled. */
size_t fr_deltanet_advance(const fr_deltanet *run, const fr_deltanet_steps *steps, size_t strip);

#endif
