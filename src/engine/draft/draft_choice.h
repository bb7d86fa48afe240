/* Chooses the next draft of a chain from the scores of the chain's last row, in the same way for all methods that give
 * scores.
 *
 * In: a proposal and a row of scores. Out: one more id in the proposal, or the end of the proposal's chain. */
#ifndef FR_SRC_ENGINE_DRAFT_DRAFT_CHOICE_H
#define FR_SRC_ENGINE_DRAFT_DRAFT_CHOICE_H

#include "src/engine/draft/draft.h"

typedef struct fr_scorer {
    const fr_kernels *kernels;
    size_t vocab;     /* number of the target's ids */
    const char *path; /* the drafter's file, for error lines */
    const char *what; /* the model that gave the logits, for error lines */
    /* the probability that the drafter itself gives for its best id; NULL: the probability is computed from the
     * scores */
    const double *chance;
} fr_scorer;

/* Adds one more draft. If the target's tokens are drawn at random, the draft is drawn from these scores. Otherwise the
 * draft is the id with the largest score, and the lowest of equal ones. Returns true if the chain goes on.
 *
 * The chain ends without the draft if the draft is less likely than p_min or not worth its row. The chain ends after
 * the draft if another draft is not wanted or not worth its time. The chain also ends if every id is banned. If a score
 * is not finite, the chain ends and the proposal fails. */
bool fr_draft_choice_add(fr_proposal *proposal, const fr_scores *scores, const fr_scorer *scorer);

#endif
