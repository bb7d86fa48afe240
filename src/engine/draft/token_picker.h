/* Chooses tokens from scores, so that a draft method chooses them in the same way as the target.
 *
 * In: a row of scores, and the tokens before it. Out: a token. The session's sampler implements this. */
#ifndef FR_SRC_ENGINE_DRAFT_TOKEN_PICKER_H
#define FR_SRC_ENGINE_DRAFT_TOKEN_PICKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The scores of candidates. Candidate i is token ids[i], or token i if ids is NULL. Its score is logits[i]; -infinity
 * means that it can't be drawn. *best is the index of the largest score (of equal scores, the first), or -1 if a score
 * is not finite. If `best` is NULL, it was not computed. */
typedef struct fr_scores {
    const float *logits;
    const int32_t *ids;
    size_t count;
    const int64_t *best;
} fr_scores;

/* The tokens before the token that is drawn. That token's position is length + drafted. */
typedef struct fr_past {
    const int32_t *ids, *drafts;
    size_t length, drafted;
} fr_past;

/* The functions of a sampler that a draft method calls. compares: the drafter's distributions are compared with the
 * target's distributions, so the length of a proposal must not depend on the ids that were drawn.
 *
 * pick: gives the token at depth past->drafted of a proposal, or -1 if no token can be drawn.
 *
 * keep: drops all distributions except those of the first `depths` drafts of the last proposal. A draft without a
 * distribution counts as drawn with probability 1.
 *
 * tell: stores the distribution of the draft at `depth`: the weight of each token, and the sum of these weights. The
 * array must stay in memory until the next proposal. */
typedef struct fr_token_picker {
    bool compares;
    int32_t (*pick)(void *sampler, const fr_scores *scores, const fr_past *past);
    void (*keep)(void *sampler, size_t depths);
    void (*tell)(void *sampler, size_t depth, const float *weight, double sum);
    void *sampler;
} fr_token_picker;

#endif
