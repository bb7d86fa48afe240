/* The drafts of a round: how many each session is asked for (draft_depth.h), and all of them proposed together.
 *
 * In: rounds whose sessions are about to verify, each with a limit of its own. Out: drafts behind their timelines, or
 * a session's own failure. Sessions of a fixed number of drafts get theirs first, as far as there are rows with logits;
 * drafts that were submitted are taken as they are. */
#ifndef FR_SRC_ENGINE_SESSION_DRAFTING_H
#define FR_SRC_ENGINE_SESSION_DRAFTING_H

#include "src/engine/session/state.h"

/* For the rounds in FR_STAGE_VERIFY: s->drafts and s->draft_seconds; a session whose drafts failed has
 * s->draft_failure. */
void fr_drafting_run(fr_engine *engine, fr_round *rounds, size_t count);

/* What became of them, for those that come. seconds: of the whole forward, 0 where it had other work too. */
void fr_drafting_report(fr_engine *engine, fr_round *rounds, size_t count, double seconds);

/* How many drafts a session asks for that submits them: as many as if all that drafted in the last round were like
 * it. */
size_t fr_drafting_depth(fr_session *session, size_t limit);

#endif
