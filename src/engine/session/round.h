/* The round: draft, verify in one forward, accept. All branching of generation is on one page, fr_round_run.
 *
 * In: sessions of one engine (state.h), each at most once, with room for ids. Out: ids that a prompt's forward
 * predicted or that a verification accepted, and every session in its next state, as drawn in state.h. A session whose
 * part of the round fails is as it was before; all other sessions continue. */
#ifndef FR_SRC_ENGINE_SESSION_ROUND_H
#define FR_SRC_ENGINE_SESSION_ROUND_H

#include "src/engine/session/state.h"

/* Runs fr_engine_step of forerun.h, without its checks of arguments and the floating-point environment. */
void fr_round_run(fr_engine *engine, fr_round *rounds, size_t count);

/* Runs fr_session_step of forerun.h, without its checks of arguments: first all pending ids of a prompt, and then a
 * round of one session. */
fr_status fr_round_step(fr_session *session, int32_t *ids, size_t limit, size_t *count, size_t *accepted);

#endif
