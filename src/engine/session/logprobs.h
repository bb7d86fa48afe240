/* Gives log-probabilities of the tokens of a step. They are the log softmax of the target's logits as they are, or,
 * with FR_OPT_LOGPROBS_DRAWN, of the distribution from which each token was drawn.
 *
 * In: rows of logits and the tokens that came after them. Out: each token's own log-probability, and those of the most
 * probable tokens in its place. */
#ifndef FR_SRC_ENGINE_SESSION_LOGPROBS_H
#define FR_SRC_ENGINE_SESSION_LOGPROBS_H

#include "base/arena.h"
#include "kernels/kernels.h"
#include "src/engine/session/accept.h"

/* One row for each token of a step, and one more for scoring an id of a text. So scoring doesn't overwrite the step's
 * rows. */
enum { FR_LOGPROBS_ROWS = FR_STEP_MAX + 1 };

typedef struct fr_logprobs {
    const fr_kernels *kernels;
    size_t vocab, best; /* best: number of best tokens for each row */
    bool on;
    bool drawn; /* the draws give the log-probabilities, row by row; otherwise fr_logprobs_take computes them */
    float own[FR_LOGPROBS_ROWS];
    size_t count;     /* tokens of the last step that have log-probabilities */
    int32_t *ids;     /* [FR_LOGPROBS_ROWS, best] the most likely tokens of each row */
    float *values;    /* [FR_LOGPROBS_ROWS, best] the log-probabilities of the tokens in `ids` */
    int32_t *scratch; /* [vocab] room for finding the best tokens */
    float *row;       /* [vocab] log-probabilities of one draw; NULL if `drawn` is not set */
} fr_logprobs;

/* Takes the memory for log-probabilities from the arena, which may only count bytes (base/arena.h). best: the value of
 * FR_OPT_LOGPROBS; -1: no log-probabilities. */
void fr_logprobs_layout(fr_logprobs *logprobs, fr_arena *arena, int64_t best, bool drawn, const fr_kernels *kernels,
                        size_t vocab);

/* Computes the log-probabilities of row `row` from p, the distribution from which the row's token is drawn. Tokens that
 * p excludes are ordered by their logits. After this, the caller calls fr_logprobs_drew with the token that was
 * drawn. */
void fr_logprobs_draw(fr_logprobs *logprobs, size_t row, const fr_distribution *p, const float *logits);
void fr_logprobs_drew(fr_logprobs *logprobs, size_t row, int32_t id);

/* Computes the log-probabilities of `count` tokens from the rows before them, [count, vocab]. Does nothing if `drawn`
 * is set. */
void fr_logprobs_take(fr_logprobs *logprobs, const float *logits, const int32_t *ids, size_t count);

/* Scores an id of a text: computes the id's log-probability from the row before the id, and gives the log-probability
 * to the sink. */
fr_status fr_logprobs_score(fr_logprobs *logprobs, const float *logits, int32_t id, fr_score_fn *sink, void *context);

/* Forgets the last step's log-probabilities, because a step gave no token. */
void fr_logprobs_forget(fr_logprobs *logprobs);

#endif
