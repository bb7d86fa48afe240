/* Prompts that begin alike and come together: one runs what they have in common, the others wait for its pages.
 *
 * In: a session whose prompt waits, and the slices that a round has so far. Out: whether one of those is just
 * computing pages that the session would begin with next. It is left out of the round then, and finds them once they
 * are whole (fr_session_reuse). It waits for nobody but who runs in the same round and stands before it there, and it
 * is asked anew in each: where that one ends, fails or is left out, whoever is next goes on behind the pages that
 * there are. */
#ifndef FR_SRC_ENGINE_SESSION_AWAIT_H
#define FR_SRC_ENGINE_SESSION_AWAIT_H

#include "src/engine/session/batch.h"

/* Of recurrent layers the slice's session leaves the states that are waited for (recurrent_points.h). */
bool fr_await_pages(const fr_session *session, const fr_batch_slice *slices, const fr_batch_slice *end);

#endif
