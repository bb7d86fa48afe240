/* The round: draft, verify in one forward, accept. All branching of generation is on one page, fr_round_run.
 *
 * In: sessions of one engine (state.h), each of them at most once, and room for the ids that they give. Out: ids that a
 * prompt's forward predicted or that a verification accepted, and every session in its next state, as drawn in state.h.
 * If a session's part of the round fails, that session is as it was before the round. All other sessions continue. */
#ifndef FR_SRC_ENGINE_SESSION_ROUND_H
#define FR_SRC_ENGINE_SESSION_ROUND_H

#include "src/engine/session/state.h"

/* Does the work of fr_engine_step in forerun.h, without its checks of arguments and the floating-point environment. */
void fr_round_run(fr_engine *engine, fr_round *rounds, size_t count);

/* Does the work of fr_session_step in forerun.h, without its checks of arguments. All pending ids of a prompt are run
 * first, and then a round of this one session. */
fr_status fr_round_step(fr_session *session, int32_t *ids, size_t limit, size_t *count, size_t *accepted);

#endif
