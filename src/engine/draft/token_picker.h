/* How tokens are picked from scores: what a draft method has to do it with as the target will.
 *
 * In: a row of scores, and the tokens before it. Out: a token. The session's sampler is behind it. */
#ifndef FR_SRC_ENGINE_DRAFT_TOKEN_PICKER_H
#define FR_SRC_ENGINE_DRAFT_TOKEN_PICKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Candidate i is token ids[i] and has logits[i]; ids NULL: token i. -infinity: can't be drawn. *best: the largest one,
 * the first of equals, -1: not all are finite; best NULL: nobody has looked. */
typedef struct fr_scores {
    const float *logits;
    const int32_t *ids;
    size_t count;
    const int64_t *best;
} fr_scores;

/* The tokens before a draw, whose position is length + drafted. */
typedef struct fr_past {
    const int32_t *ids, *drafts;
    size_t length, drafted;
} fr_past;

/* compares: the drafter's distributions with the target's, so that whether a draft is proposed must not depend on what
 * was drawn.
 * keep: of the last proposal the first `depths` drafts' distributions still count; other drafts are certain. tell: that
 * of a draft, by token, of this sum; it stays where it is until the next proposal.
 * pick: the token at depth past->drafted of a proposal, -1 if none is left. */
typedef struct fr_token_picker {
    bool compares;
    int32_t (*pick)(void *sampler, const fr_scores *scores, const fr_past *past);
    void (*keep)(void *sampler, size_t depths);
    void (*tell)(void *sampler, size_t depth, const float *weight, double sum);
    void *sampler;
} fr_token_picker;

#endif
