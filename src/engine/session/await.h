/* Lets prompts that begin alike and come together share the work: one session runs the common part, and the other
 * sessions wait for its pages.
 *
 * In: a session whose prompt waits, and the slices (batch.h) that a round has so far. Out: true if one of these slices
 * computes the pages that the session needs next. The session is then left out of the round, and finds the pages once
 * they are whole (fr_session_reuse). A session waits only for sessions that come before it in the same round. Each
 * round decides anew. If the session that computes the pages ends, fails or is left out of a round, the first waiting
 * session continues after the pages that exist. */
#ifndef FR_SRC_ENGINE_SESSION_AWAIT_H
#define FR_SRC_ENGINE_SESSION_AWAIT_H

#include "src/engine/session/batch.h"

/* Returns true if the session should wait. If the session has recurrent layers, it also needs the recurrent states at
 * the end of the common part. Then the function asks the session that runs this part to store these states
 * (recurrent_points.h). */
bool fr_await_pages(const fr_session *session, const fr_batch_slice *slices, const fr_batch_slice *end);

#endif
