/* Where a timeline of recurrent layers can be gone back to.
 *
 * In: a session whose forward is about to run, how far its rows are certain. Out: checkpoints (kv_checkpoints.h) that
 * this forward fills: one in front of the last of every 1024 positions, which a page of keys and values ends with,
 * behind the end of each message, where templates may take the rest of a prompt back, and at the prompt's end; and
 * those that others wait for (await.h), which come first. Of many others in one forward the last. */
#ifndef FR_SRC_RECURRENT_POINTS_H
#define FR_SRC_RECURRENT_POINTS_H

#include "src/session/state.h"

/* Positions before `certain` stand, whatever comes of the forward that was claimed last. */
void fr_recurrent_points_plan(fr_session *session, size_t certain);

#endif
