/* The LM head of a batch: computes logits, and finds the id with the largest logit.
 *
 * In: fr_forward's hidden rows, a family's head. Out: fr_forward's logits and best. */
#ifndef FR_SRC_ENGINE_LAYERS_HEAD_H
#define FR_SRC_ENGINE_LAYERS_HEAD_H

#include "src/engine/layers/forward.h"

/* Computes the logits of hidden rows [head_first, head_first + head_rows) with the whole team. There must be 1 to
 * best_stride such rows, and any thread may have computed them. `best` is complete when the run ends. */
void fr_head_rows(const fr_team *team, const fr_head *head, fr_forward *forward);

#endif
