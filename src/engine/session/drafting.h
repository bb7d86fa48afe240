/* The drafts of a round: decides how many drafts each session is asked for (draft_depth.h), and lets the methods
 * propose all of them together.
 *
 * In: rounds whose sessions are about to verify, each with a limit of its own. Out: drafts after their timelines, or a
 * session's own failure. Sessions with a fixed number of drafts get their drafts first, as far as the batch has rows
 * with logits for them. Drafts that were submitted before the round are taken as they are. */
#ifndef FR_SRC_ENGINE_SESSION_DRAFTING_H
#define FR_SRC_ENGINE_SESSION_DRAFTING_H

#include "src/engine/session/state.h"

/* Sets `drafts` and `draft_seconds` of all sessions in FR_STAGE_VERIFY, and `draft_failure` of those whose drafts
 * failed. */
void fr_drafting_run(fr_engine *engine, fr_round *rounds, size_t count);

/* Reports the outcome of a round's drafts to the depth controller. seconds: the time that verifying took; 0 if this
 * time is unknown because the same forward ran prompts. */
void fr_drafting_report(fr_engine *engine, fr_round *rounds, size_t count, double seconds);

/* Gives a session's part in a round, in which at most `limit` drafts may be made by any of its drafters. */
fr_draft_depth_part fr_drafting_part(fr_session *session, size_t limit);

/* Gives a session's part for drafts that are submitted before a round. The parts of other sessions are not known then.
 * So the choice assumes that as many sessions draft as in the last round, and that all of them are like this
 * session. */
fr_draft_depth_part fr_drafting_submit(fr_session *session, size_t limit);

#endif
