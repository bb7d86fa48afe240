/* Where a timeline of recurrent layers can be gone back to.
 *
 * In: a session whose forward is about to run, how far its rows are certain. Out: checkpoints (kv_checkpoints.h) that
 * this forward fills. In the order in which they are wanted, of each kind the last ones: those that others wait for
 * (await.h); at a prompt's end, where it leaves what others have run, and behind the first message, with which other
 * conversations begin; behind the end of each message, where templates may take the rest of a prompt back; and in front
 * of the last of every 256 positions, for texts without messages. These are spare: they take no page that others need.
 *
 * A state takes fr_recurrent_page_bytes; an engine has pages for FR_OPT_CTX_CHECKPOINTS and one of each session. */
#ifndef FR_SRC_RECURRENT_POINTS_H
#define FR_SRC_RECURRENT_POINTS_H

#include "src/session/state.h"

/* Positions before `certain` stand, whatever comes of the forward that was claimed last. */
void fr_recurrent_points_plan(fr_session *session, size_t certain);

#endif
