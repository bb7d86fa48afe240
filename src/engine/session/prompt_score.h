/* Gives the log-probabilities of a prompt's own ids, piece by piece while rounds run the prompt.
 *
 * In: parts of a forward that has run, of sessions whose prompt is scored. Out: the log-probability of each id given
 * the ids before it, in order and each once, even if a part of the prompt is run again. */
#ifndef FR_SRC_ENGINE_SESSION_PROMPT_SCORE_H
#define FR_SRC_ENGINE_SESSION_PROMPT_SCORE_H

#include "src/engine/session/batch.h"

/* Puts ids on the session's timeline, from its beginning, and scores them as they run: nothing of an earlier prompt is
 * reused, because its rows would give no logits. */
fr_status fr_prompt_score_put(fr_session *session, const int32_t *ids, size_t count, fr_score_fn *sink, void *context);

/* Scores the id after each of the part's rows, except a prompt's last row, which has none after it. It writes its
 * logits over those of the forward, so all sessions of the round must have read theirs before. If the sink returns
 * anything but FR_OK, this is returned and ends the scoring; the prompt goes on. */
fr_status fr_prompt_score_take(const fr_batch_slice *part);

/* A sink that takes all and keeps nothing. */
fr_score_fn fr_prompt_score_drop;

#endif
