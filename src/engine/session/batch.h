/* Runs rows of several sessions in one forward.
 *
 * In: for each session, the number of rows from its frontier on, and the number of these whose logits are wanted. Out:
 * K/V in the sessions' caches, hidden rows, logits. No row's bits depend on the rows beside it.
 *
 *     batch    rows without logits: session 0's, session 1's, ... | rows with logits: session 0's, session 1's, ...
 *
 * Rows without logits end after the last layer that owns K/V, unless their hidden rows are read. */
#ifndef FR_SRC_ENGINE_SESSION_BATCH_H
#define FR_SRC_ENGINE_SESSION_BATCH_H

#include "src/engine/session/state.h"

/* Describes one session's rows of a batch. */
typedef struct fr_batch_slice {
    fr_session *session;
    size_t rows;         /* in: ids on the timeline, or drafts after it; out: only the rows that got a page */
    size_t heads;        /* in: number of last rows whose logits are wanted; out: how many of these were run */
    size_t at, heads_at; /* out: index in the batch of the first row without logits, and with logits */
} fr_batch_slice;

/* Counts how many of the session's next `rows` ids on its timeline a forward may run, without cutting a picture whose
 * rows must be run together. These are the ids before such a picture, or, if it comes next, all of its rows, which may
 * be more than `rows` but at most engine->prompt_rows. */
size_t fr_batch_cut(const fr_session *session, size_t rows);

/* Takes the pages of the slice's first rows. Returns FR_MEMORY if there are none; then the slice can't be run. */
fr_status fr_batch_admit(const fr_batch_slice *slice);

/* Runs the slices of one engine's sessions in one forward. All must be admitted, and no session may occur twice; there
 * are at most engine->rows rows, engine->head_rows of them with logits. Afterwards each session's logits and best are
 * those of its rows with logits. */
void fr_batch_run(fr_engine *engine, fr_batch_slice *slices, size_t count);

/* Gives the batch index of the slice's row `row`. For rows without logits, the values that draft methods read exist
 * only if the session's method follows all rows (fr_draft.follows). */
size_t fr_batch_slice_row(const fr_batch_slice *slice, size_t row);

/* Puts `count` ids of a session's timeline, from a position on, into the rows of its engine's batch from `at` on.
 * parent: batch index of the row before the first one; -1: that row is not in the batch. */
void fr_batch_rows(fr_session *session, size_t position, size_t count, size_t at, int32_t parent);

/* Describes a forward over the first `count` rows of the engine's batch. */
fr_forward fr_batch_forward(fr_engine *engine, size_t count);

#endif
