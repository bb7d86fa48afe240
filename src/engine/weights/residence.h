/* Where weights will lie: what of them takes memory of the process's own, what stays in mapped files, and what that
 * means where memory doesn't hold it all.
 *
 * In: bound weights, how much memory there is. Out: bytes; a verdict, which the weights keep. A file's pages come and
 * go with what is read; the process's own have to stay, so that more of them than there is memory is refused before the
 * system ends somebody. */
#ifndef FR_SRC_ENGINE_WEIGHTS_RESIDENCE_H
#define FR_SRC_ENGINE_WEIGHTS_RESIDENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "forerun.h"

typedef struct fr_matrix fr_matrix;
typedef struct fr_weights fr_weights;

typedef struct fr_residence {
    uint64_t own;     /* copies: packed, transposed, decoded to float32, or read because nothing is mapped */
    uint64_t mapped;  /* read from files as it lies */
    uint64_t every;   /* of both, what every token reads: all but experts and tables */
    uint64_t stays;   /* what must stay in memory: that, and what else is the process's own */
    uint64_t experts; /* of both, stacks of which a token chooses some */
    uint64_t token;   /* how much of those a token reads */
} fr_residence;

/* Of both, in memory at a time. */
fr_residence fr_residence_sum(const fr_residence *a, const fr_residence *b);

/* Of how many experts a token chooses how many; count 0: no mixture. */
typedef struct fr_mixture_size {
    size_t count, chosen;
} fr_mixture_size;

/* Compares bound weights with `available` bytes of memory: weights->residence, ->available and ->exceed, and a note
 * where they don't hold them. beside: others that have been compared and stay in use, such as a drafter's target; NULL:
 * none. */
void fr_weights_compare(fr_weights *weights, fr_mixture_size experts, const fr_weights *beside, uint64_t available);

/* Adds what the rest of a matrix takes that ranks share and these read whole: see fr_weights_bring_rest. */
void fr_weights_count_rest(fr_weights *weights, const fr_weights *of, const fr_matrix *matrix);

/* FR_MEMORY where what must stay is more than the limit leaves beside `others` bytes; limit 0: none. */
fr_status fr_weights_check_limit(const fr_weights *weights, uint64_t others, uint64_t limit);

/* FR_MEMORY where that doesn't hold the process's own part; the line names both sizes, and what to do. */
fr_status fr_weights_check_memory(const fr_weights *weights);

#endif
