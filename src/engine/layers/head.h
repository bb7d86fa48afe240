/* The LM head of a batch: logits and the largest one's id.
 *
 * In: a team at fr_forward's hidden rows, and what a family says of its head. Out: fr_forward's logits and best. */
#ifndef FR_SRC_ENGINE_LAYERS_HEAD_H
#define FR_SRC_ENGINE_LAYERS_HEAD_H

#include "src/engine/layers/forward.h"

/* By the whole team, for hidden rows [head_first, head_first + head_rows), 1 to best_stride of them, whoever made them;
 * best stands when the run ends. */
void fr_head_rows(const fr_team *team, const fr_head *head, fr_forward *forward);

#endif
