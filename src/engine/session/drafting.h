/* The drafts of a round: decides how many each session is asked for (draft_depth.h), and has all of them proposed
 * together.
 *
 * In: rounds whose sessions are about to verify, each with a limit of its own. Out: drafts after their timelines, or a
 * session's own failure. Sessions with a fixed number of drafts get theirs first, as far as there are rows with logits.
 * Drafts that were submitted before the round are taken as they are. */
#ifndef FR_SRC_ENGINE_SESSION_DRAFTING_H
#define FR_SRC_ENGINE_SESSION_DRAFTING_H

#include "src/engine/session/state.h"

/* Sets s->drafts and s->draft_seconds of all sessions in FR_STAGE_VERIFY, and s->draft_failure of those whose drafts
 * failed. */
void fr_drafting_run(fr_engine *engine, fr_round *rounds, size_t count);

/* Tells the depth controller what became of a round's drafts. seconds: time of the whole forward, 0 where it had other
 * work too. */
void fr_drafting_report(fr_engine *engine, fr_round *rounds, size_t count, double seconds);

/* Returns how many drafts a session asks for that submits them before a round: as many as if all sessions that drafted
 * in the last round were like it. */
size_t fr_drafting_depth(fr_session *session, size_t limit);

#endif
