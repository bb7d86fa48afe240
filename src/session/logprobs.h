/* Log-probabilities of the tokens that a step gave, from the target's logits as they are: log softmax.
 *
 * In: rows of logits and the tokens that came after them. Out: each token's own, and the best ones. */
#ifndef FR_SRC_LOGPROBS_H
#define FR_SRC_LOGPROBS_H

#include "base/arena.h"
#include "kernels/kernels.h"

typedef struct fr_logprobs {
    const fr_kernels *kernels;
    size_t vocab, best; /* how many of the best */
    bool on;
    float own[FR_STEP_MAX];
    size_t count;     /* tokens of the last step that have them */
    int32_t *ids;     /* [FR_STEP_MAX, best] */
    float *values;    /* [FR_STEP_MAX, best] */
    int32_t *scratch; /* [vocab] */
} fr_logprobs;

/* best: FR_OPT_LOGPROBS, -1 for none at all. */
void fr_logprobs_layout(fr_logprobs *logprobs, fr_arena *arena, int64_t best, const fr_kernels *kernels, size_t vocab);

/* Of `count` tokens and the rows before them, [count, vocab]. */
void fr_logprobs_take(fr_logprobs *logprobs, const float *logits, const int32_t *ids, size_t count);

/* No token was given. */
void fr_logprobs_forget(fr_logprobs *logprobs);

#endif
