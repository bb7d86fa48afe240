/* A session's timeline: ids put at its end and run as prompts are, and ids taken back.
 *
 * In: ids of a prompt, or how much of the timeline stays. Out: a session as it is after a fresh run of the same ids,
 * bit for bit, whatever was on the timeline before. What is still in the cache is not run again: a frontier whose
 * lookback the cache holds is moved back, one beyond it starts from a checkpoint (kv_checkpoints.h). */
#ifndef FR_SRC_ENGINE_SESSION_TIMELINE_H
#define FR_SRC_ENGINE_SESSION_TIMELINE_H

#include "src/engine/session/batch.h"

/* fr_session_prompt, fr_session_put, fr_session_set_prompt and fr_session_truncate of forerun.h. */
fr_status fr_timeline_append(fr_session *session, const int32_t *ids, size_t count);
fr_status fr_timeline_put(fr_session *session, const int32_t *ids, size_t count);
fr_status fr_timeline_put_anew(fr_session *session, const int32_t *ids, size_t count); /* reuses nothing */
fr_status fr_timeline_set(fr_session *session, const int32_t *ids, size_t count);
fr_status fr_timeline_truncate(fr_session *session, size_t length);

/* Makes a session that nothing was run in what another of its engine is, by holding its pages. FR_INPUT: it would have
 * to run pictures again, which are gone. */
fr_status fr_timeline_copy(fr_session *copy, const fr_session *session);

/* Checks ids and copies them to the end of the timeline, where they are pending. A failure changes nothing. */
fr_status fr_timeline_extend(fr_session *session, const int32_t *ids, size_t count);

/* Runs what is pending: afterwards the session is as after a prompt. Once aborted, it goes on where it was. */
fr_status fr_timeline_run(fr_session *session);

/* A forward has run whose outcome was a failure: recurrent states that it moved on past the frontier go back to where
 * they are known, and what is behind waits to be run again. */
void fr_timeline_recover(fr_session *session);

/* What the target says after the timeline is to be said anew: the last id waits to be run once more, by what is set by
 * then. Nothing where some of the timeline waits already. FR_INPUT: the last id is an image's. */
fr_status fr_timeline_again(fr_session *session);

/* The pictures of a prompt are part of the timeline now. */
void fr_timeline_forget_pictures(fr_session *session);

/* Moves the frontier forward over what a forward wrote. */
void fr_timeline_advance(fr_session *session, size_t length, bool prompt_end);

/* Chooses the rotary frequencies that the length of the text asks for, before any of it is run or looked up. If the
 * keys in the cache were rotated by the other ones, all of it is run again: a cache never has both. */
void fr_timeline_choose_rope(fr_session *session);

/* How many drafts may follow at most so that no row of theirs is rotated by other frequencies than those before it. */
size_t fr_timeline_drafts(const fr_session *session);

/* Runs what is pending in slices of a forward (batch.h) of at most `rows` rows: fr_timeline_begin stands before each,
 * fr_timeline_finish comes once it has run. */
fr_status fr_timeline_begin(fr_session *session);
fr_batch_slice fr_timeline_next_slice(fr_session *session, size_t rows);
fr_status fr_timeline_finish(const fr_batch_slice *slice, double seconds);

#endif
