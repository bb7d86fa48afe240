/* Gives the log-probabilities of a prompt's own ids, slice by slice while rounds run the prompt.
 *
 * In: the slices of a forward that has run, for those sessions whose prompt is scored. Out: the log-probability of each
 * id given the ids before it. Log-probabilities are given in the order of the ids. Each id gets its log-probability
 * only once, even if a part of the prompt is run again. */
#ifndef FR_SRC_ENGINE_SESSION_PROMPT_SCORE_H
#define FR_SRC_ENGINE_SESSION_PROMPT_SCORE_H

#include "src/engine/session/batch.h"

/* Puts ids on the session's timeline, from its beginning, and scores them as they run. Ids of an earlier prompt are not
 * reused, because rows that do not run give no logits. */
fr_status fr_prompt_score_put(fr_session *session, const int32_t *ids, size_t count, fr_score_fn *sink, void *context);

/* Scores the id after each of the slice's rows. No id follows a prompt's last row, so nothing is scored there. The
 * logits computed here overwrite those of the forward, so all sessions of the round must have read theirs before. If
 * the sink returns anything but FR_OK, that status is returned and the scoring ends, but the prompt continues. */
fr_status fr_prompt_score_take(const fr_batch_slice *part);

/* A sink that accepts everything and stores nothing. */
fr_score_fn fr_prompt_score_drop;

#endif
