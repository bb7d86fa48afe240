/* Lets prompts that begin alike and come together share the work: one session runs the common part, the others wait
 * for its pages.
 *
 * In: a session whose prompt waits, and the slices that a round has so far. Out: true if one of these is computing
 * pages that the session would begin with next. The session is then left out of the round, and finds the pages once
 * they are whole (fr_session_reuse). A session waits only for one that runs in the same round and comes before it
 * there, and the question is asked anew in each round: if the other session ends, fails or is left out, the next one
 * goes on after the pages that there are. */
#ifndef FR_SRC_ENGINE_SESSION_AWAIT_H
#define FR_SRC_ENGINE_SESSION_AWAIT_H

#include "src/engine/session/batch.h"

/* Returns true if the session should wait. If it has recurrent layers, the session that it waits for is asked to leave
 * the states that are needed (recurrent_points.h). */
bool fr_await_pages(const fr_session *session, const fr_batch_slice *slices, const fr_batch_slice *end);

#endif
