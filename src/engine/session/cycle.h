/* The cycle: prompt -> (draft -> verify -> accept -> commit) again and again. All branching is here; drafting,
 * forwards and acceptance are told what to do.
 *
 * In: a session (state.h). Out: ids, of which a prompt's forward or a round's gave the logits. The functions are
 * fr_engine_step, fr_session_step, _next_logits, _logits, _rows and _draft_logits of forerun.h without the checks and
 * the floating-point environment of src/api/. */
#ifndef FR_SRC_ENGINE_SESSION_CYCLE_H
#define FR_SRC_ENGINE_SESSION_CYCLE_H

#include "src/engine/session/state.h"

void fr_cycle_round(fr_engine *engine, fr_round *rounds, size_t count);
fr_status fr_cycle_step(fr_session *session, int32_t *ids, size_t limit, size_t *count, size_t *accepted);
fr_status fr_cycle_next_logits(fr_session *session, const float **logits);
fr_status fr_cycle_score(fr_session *session, const int32_t *ids, size_t count, size_t first_row, fr_logits_fn *sink,
                         void *context);
fr_status fr_cycle_score_ids(fr_session *session, const int32_t *ids, size_t count, fr_score_fn *sink, void *context);
fr_status fr_cycle_score_rows(fr_session *session, const int32_t *ids, size_t count, const fr_aux_layers *layers,
                              fr_rows_fn *sink, void *context);
fr_status fr_cycle_score_drafts(fr_session *session, const int32_t *ids, size_t count, size_t steps, fr_logits_fn *sink,
                                void *context);

#endif
