/* Changes a session's timeline: puts ids at its end, runs them as prompts are run, and takes ids back.
 *
 * In: ids of a prompt, or how much of the timeline stays. Out: a session as it is after a fresh run of the same ids,
 * bit for bit, whatever was on the timeline before. Ids that are still in the cache are not run again. The frontier
 * moves back to the wanted position if the cache holds all positions that rows there look back to; otherwise it goes
 * back to a checkpoint (kv_checkpoints.h). */
#ifndef FR_SRC_ENGINE_SESSION_TIMELINE_H
#define FR_SRC_ENGINE_SESSION_TIMELINE_H

#include "src/engine/session/batch.h"

/* These do the work of fr_session_prompt, fr_session_put, fr_session_set_prompt and fr_session_truncate of
 * forerun.h. */
fr_status fr_timeline_append(fr_session *session, const int32_t *ids, size_t count);
fr_status fr_timeline_put(fr_session *session, const int32_t *ids, size_t count);
fr_status fr_timeline_put_anew(fr_session *session, const int32_t *ids, size_t count); /* reuses no cached ids */
fr_status fr_timeline_set(fr_session *session, const int32_t *ids, size_t count);
fr_status fr_timeline_truncate(fr_session *session, size_t length);

/* Copies a session's timeline to another session of the same engine, in which nothing was run yet. The two sessions
 * then share pages. Fails with FR_INPUT if pictures that are no longer stored would have to be run again. */
fr_status fr_timeline_copy(fr_session *copy, const fr_session *session);

/* Checks ids and copies them to the end of the timeline, where they are pending. A failure changes nothing. */
fr_status fr_timeline_extend(fr_session *session, const int32_t *ids, size_t count);

/* Runs the pending ids, as a prompt. After an abort, another call continues where the aborted call stopped. */
fr_status fr_timeline_run(fr_session *session);

/* Recovers from a forward that ran and failed afterwards. If the forward moved recurrent states past the frontier, the
 * frontier goes back to a position whose states are known. The ids after that position wait to be run again. */
void fr_timeline_recover(fr_session *session);

/* Makes the last id pending again, so that the token after it is chosen by the settings at that time. Does nothing if
 * ids are pending already. Fails with FR_INPUT if the last id belongs to an image. */
fr_status fr_timeline_again(fr_session *session);

/* Frees the rows of a prompt's pictures once they have been run. */
void fr_timeline_forget_pictures(fr_session *session);

/* Moves the frontier forward to `length`, over positions that a forward wrote. */
void fr_timeline_advance(fr_session *session, size_t length, bool prompt_end);

/* Chooses the rotary frequencies for the length of the text, before any of it is run or looked up. If the keys in the
 * cache were rotated by the other frequencies, the whole text is run again, because a cache must not have both. */
void fr_timeline_choose_rope(fr_session *session);

/* Gives the largest number of drafts for which all rows of the round are rotated by the same frequencies as the rows
 * before the round. */
size_t fr_timeline_drafts(const fr_session *session);

/* These three functions run the pending ids in slices of at most `rows` rows of a forward (batch.h). fr_timeline_begin
 * comes before each slice, fr_timeline_finish after it has run. A slice has more rows only if they belong to one
 * picture that may not be cut (fr_batch_cut). */
fr_status fr_timeline_begin(fr_session *session);
fr_batch_slice fr_timeline_next_slice(fr_session *session, size_t rows);
fr_status fr_timeline_finish(const fr_batch_slice *slice, double seconds);

#endif
