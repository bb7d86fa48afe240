/* Counts the bytes of weights in the process's own memory and in mapped files, and decides what happens if memory
 * doesn't hold all of them.
 *
 * In: bound weights, the available memory. Out: bytes; a decision, which the weights keep. The system can drop pages of
 * a mapped file and read them again. The process's own pages have to stay. If a model's own pages need more memory than
 * there is, the model is refused, before the system would kill the process. */
#ifndef FR_SRC_ENGINE_WEIGHTS_MEMORY_USE_H
#define FR_SRC_ENGINE_WEIGHTS_MEMORY_USE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "forerun.h"

typedef struct fr_matrix fr_matrix;
typedef struct fr_weights fr_weights;

typedef struct fr_memory_use {
    uint64_t own;     /* copies: packed, transposed, decoded to float32, or read because the file is not mapped */
    uint64_t mapped;  /* weights that are used directly in mapped files */
    uint64_t every;   /* the part of `own` and `mapped` that every token reads: all but experts and tables */
    uint64_t stays;   /* the part that must stay in memory: `own`, and the mapped weights that every token reads */
    uint64_t experts; /* the part of `own` and `mapped` that is experts; a token reads only some of them */
    uint64_t token;   /* the part of the experts' weights that a token reads */
} fr_memory_use;

/* Adds up the memory of two models that are in memory at the same time. */
fr_memory_use fr_memory_use_sum(const fr_memory_use *a, const fr_memory_use *b);

/* The number of experts, and how many of them a token chooses; count 0: no mixture. */
typedef struct fr_mixture_size {
    size_t count, chosen;
} fr_mixture_size;

/* Decides whether memory of `available` bytes holds the bound weights, and adds a note if it does not. Sets
 * weights->memory_use, weights->available and weights->exceed. beside: other weights that are used at the same time and
 * were compared before, such as those of a drafter's target; NULL: none. */
void fr_weights_compare(fr_weights *weights, fr_mixture_size experts, const fr_weights *beside, uint64_t available);

/* Adds the memory that other ranks' rows of a divided matrix take. This rank needs these rows if something on this rank
 * reads the whole matrix (fr_weights_bring_rest). */
void fr_weights_count_rest(fr_weights *weights, const fr_weights *of, const fr_matrix *matrix);

/* Fails with FR_MEMORY if the weights that must stay in memory, together with `others` bytes, exceed the limit. limit
 * 0: there is no limit. */
fr_status fr_weights_check_limit(const fr_weights *weights, uint64_t others, uint64_t limit);

/* Fails with FR_MEMORY if there is not enough memory for the process's own copies. The error line names both sizes and
 * what to do. */
fr_status fr_weights_check_memory(const fr_weights *weights);

#endif
