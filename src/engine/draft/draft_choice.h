/* The next draft of a chain, from the scores of its last row: what all methods that score do alike.
 *
 * In: a proposal and a row of scores. Out: one more id in the proposal, or the end of its chain. */
#ifndef FR_SRC_ENGINE_DRAFT_DRAFT_CHOICE_H
#define FR_SRC_ENGINE_DRAFT_DRAFT_CHOICE_H

#include "src/engine/draft/draft.h"

typedef struct fr_scorer {
    const fr_kernels *kernels;
    size_t vocab;     /* of the target */
    const char *path; /* the file, in a failure's line */
    const char *what; /* whose logits, in the same line */
} fr_scorer;

/* The id with the largest score, of equal ones the lowest; or where the target's tokens are drawn, the one that is
 * drawn from these scores. Gives whether the chain goes on: not behind the last draft, where one would be less likely
 * than p->p_min or not worth its row (it is none then), behind one that another would not be worth its time, where
 * every id is banned, or behind scores that are not finite, which is the proposal's failure. */
bool fr_draft_choice_add(fr_proposal *proposal, const fr_scores *scores, const fr_scorer *scorer);

#endif
