/* Log-probabilities of the tokens that a step gave: log softmax of the target's logits as they are, or what the draw of
 * each had (FR_OPT_LOGPROBS_DRAWN).
 *
 * In: rows of logits and the tokens that came after them. Out: each token's own, and the best ones. */
#ifndef FR_SRC_ENGINE_SESSION_LOGPROBS_H
#define FR_SRC_ENGINE_SESSION_LOGPROBS_H

#include "base/arena.h"
#include "kernels/kernels.h"
#include "src/engine/session/accept.h"

/* The rows of a step, and one more for an id of a text that is scored: the step's stay as they are. */
enum { FR_LOGPROBS_ROWS = FR_STEP_MAX + 1 };

typedef struct fr_logprobs {
    const fr_kernels *kernels;
    size_t vocab, best; /* how many of the best */
    bool on;
    bool drawn; /* the draws give them, row by row; otherwise fr_logprobs_take computes them */
    float own[FR_LOGPROBS_ROWS];
    size_t count;     /* tokens of the last step that have them */
    int32_t *ids;     /* [FR_LOGPROBS_ROWS, best] */
    float *values;    /* [FR_LOGPROBS_ROWS, best] */
    int32_t *scratch; /* [vocab] */
    float *row;       /* [vocab] of a draw; NULL unless `drawn` */
} fr_logprobs;

/* best: FR_OPT_LOGPROBS, -1 for none at all. */
void fr_logprobs_layout(fr_logprobs *logprobs, fr_arena *arena, int64_t best, bool drawn, const fr_kernels *kernels,
                        size_t vocab);

/* Takes the log-probabilities of row `row` from p, by which its token was drawn; the logits order the tokens that p
 * excludes. fr_logprobs_drew then names the token that the row gave. */
void fr_logprobs_draw(fr_logprobs *logprobs, size_t row, const fr_distribution *p, const float *logits);
void fr_logprobs_drew(fr_logprobs *logprobs, size_t row, int32_t id);

/* Of `count` tokens and the rows before them, [count, vocab]. */
void fr_logprobs_take(fr_logprobs *logprobs, const float *logits, const int32_t *ids, size_t count);

/* Computes the log-probability of an id of a text that is scored, from the row before it, and gives it to the sink. */
fr_status fr_logprobs_score(fr_logprobs *logprobs, const float *logits, int32_t id, fr_score_fn *sink, void *context);

/* No token was given. */
void fr_logprobs_forget(fr_logprobs *logprobs);

#endif
