/* Chooses the positions to which a timeline with recurrent layers can go back.
 *
 * In: a session whose forward is about to run, and the position up to which its rows are certain to stay. Out:
 * checkpoints (kv_checkpoints.h) that this forward fills. Points are wanted in this order, later positions first
 * within each kind: those for which other sessions wait (await.h); a prompt's end, the end of the ids that were run
 * before, and the end of the first message, with which other conversations begin; the end of each message, as
 * templates may take back the rest of a prompt; and the position before every 256th, and among the first 256 before
 * every 64th and the 32nd, for texts without messages. Points of the last kind are spare: they take no page that
 * another point needs.
 *
 * The states of a point take fr_recurrent_page_bytes. An engine has pages for FR_OPT_CTX_CHECKPOINTS points, and one
 * more for each session. */
#ifndef FR_SRC_ENGINE_SESSION_RECURRENT_POINTS_H
#define FR_SRC_ENGINE_SESSION_RECURRENT_POINTS_H

#include "src/engine/session/state.h"

/* Plans the checkpoints of the forward that was claimed last. certain: positions before it stay on the timeline,
 * whatever the forward's outcome. */
void fr_recurrent_points_plan(fr_session *session, size_t certain);

#endif
