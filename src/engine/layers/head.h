/* The LM head of a batch: logits and the largest one's id.
 *
 * In: fr_forward's hidden rows, a family's head. Out: fr_forward's logits and best. */
#ifndef FR_SRC_ENGINE_LAYERS_HEAD_H
#define FR_SRC_ENGINE_LAYERS_HEAD_H

#include "src/engine/layers/forward.h"

/* Computes the logits of hidden rows [head_first, head_first + head_rows), 1 to best_stride of them, with the whole
 * team. Any thread may have computed the rows; `best` is complete when the run ends. */
void fr_head_rows(const fr_team *team, const fr_head *head, fr_forward *forward);

#endif
