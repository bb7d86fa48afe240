/* Chooses the next draft of a chain from the scores of its last row, in the same way for all methods that score.
 *
 * In: a proposal and a row of scores. Out: one more id in the proposal, or the end of its chain. */
#ifndef FR_SRC_ENGINE_DRAFT_DRAFT_CHOICE_H
#define FR_SRC_ENGINE_DRAFT_DRAFT_CHOICE_H

#include "src/engine/draft/draft.h"

typedef struct fr_scorer {
    const fr_kernels *kernels;
    size_t vocab;     /* number of the target's ids */
    const char *path; /* the drafter's file, for error lines */
    const char *what; /* the model that the logits belong to, for error lines */
    /* the chance that the drafter itself gives its best id; NULL: the chance follows from the scores */
    const double *chance;
} fr_scorer;

/* Adds one more draft. If the target's tokens are drawn, an id is drawn from these scores; otherwise it is the id with
 * the largest score, the lowest of equal ones. Returns true if the chain goes on. The draft is left out, and the chain
 * ends, if the draft is less likely than p_min or not worth its row. The chain ends after the draft if another draft
 * is not worth its time or not wanted. The chain also ends if every id is banned. If a score is not finite, the chain
 * ends and the proposal fails. */
bool fr_draft_choice_add(fr_proposal *proposal, const fr_scores *scores, const fr_scorer *scorer);

#endif
