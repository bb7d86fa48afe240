/* Chooses the positions to which a timeline with recurrent layers can go back.
 *
 * In: a session whose forward is about to run, and the position up to which the forward's rows will certainly stay on
 * the timeline. Out: checkpoints (kv_checkpoints.h) that this forward fills, at most FR_RECURRENT_POINTS. If more
 * positions are wanted, they are chosen in the following order; of one kind, later positions come first:
 *   - positions for which other sessions wait (await.h)
 *   - the end of a prompt, the end of the ids that some session has run before, and the end of the first message,
 *     with which other conversations begin too
 *   - the end of each message, because templates may take back the rest of a prompt
 *   - positions 31, 63, 127, 191, 255, 511 and so on, every 256th from there, for texts without messages; these points
 *     are spare: they take no page that another point needs
 *
 * The states of a point take fr_recurrent_page_bytes. An engine has pages for FR_OPT_CTX_CHECKPOINTS points, and one
 * more for each session. */
#ifndef FR_SRC_ENGINE_SESSION_RECURRENT_POINTS_H
#define FR_SRC_ENGINE_SESSION_RECURRENT_POINTS_H

#include "src/engine/session/state.h"

/* Plans the checkpoints of the forward whose pages were claimed last. certain: all positions before this one stay on
 * the timeline, whatever the forward's outcome is. */
void fr_recurrent_points_plan(fr_session *session, size_t certain);

#endif
