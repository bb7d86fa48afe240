/* Runs texts for values that the model computes: logits, log-probabilities, inputs of layers, a drafter's logits.
 *
 * In: a session (state.h), whose timeline is cleared first, and ids. Out: calls of a sink, which gets the rows in
 * order, in each call as many as one forward has. Each function is one of forerun.h; src/api/ calls it after checking
 * the arguments and setting the floating-point environment. */
#ifndef FR_SRC_ENGINE_SESSION_SCORING_H
#define FR_SRC_ENGINE_SESSION_SCORING_H

#include "src/engine/session/state.h"

/* Does the work of fr_session_next_logits. The timeline stays as it is. */
fr_status fr_scoring_next_logits(fr_session *session, const float **logits);

/* These do the work of fr_session_logits, fr_session_score, fr_session_rows and fr_session_draft_logits. */
fr_status fr_scoring_logits(fr_session *session, const int32_t *ids, size_t count, size_t first_row, fr_logits_fn *sink,
                            void *context);
fr_status fr_scoring_ids(fr_session *session, const int32_t *ids, size_t count, fr_score_fn *sink, void *context);
fr_status fr_scoring_rows(fr_session *session, const int32_t *ids, size_t count, const fr_aux_layers *layers,
                          fr_rows_fn *sink, void *context);
fr_status fr_scoring_drafts(fr_session *session, const int32_t *ids, size_t count, size_t steps, fr_logits_fn *sink,
                            void *context);

#endif
