/* Runs rows of several sessions in one forward.
 *
 * In: for each session, the number of rows from its frontier on, and the number of these whose logits are wanted. Out:
 * K/V in the sessions' caches, hidden rows, logits. The bits of a row do not depend on the other rows of the batch.
 *
 *     batch    rows without logits: session 0's, session 1's, ... | rows with logits: session 0's, session 1's, ...
 *
 * A row without logits is not run beyond the last layer that owns K/V, unless something reads its hidden row. */
#ifndef FR_SRC_ENGINE_SESSION_BATCH_H
#define FR_SRC_ENGINE_SESSION_BATCH_H

#include "src/engine/session/state.h"

/* Describes one session's rows of a batch. */
typedef struct fr_batch_slice {
    fr_session *session;
    size_t rows;         /* in: number of rows, one for each of the timeline's ids and each draft; out: how many of
                          * these rows got pages */
    size_t heads;        /* in: how many of the last rows need logits; out: how many of these were run */
    size_t at, heads_at; /* out. at: batch index of the first row without logits; heads_at: batch index of the first row
                          * with logits */
} fr_batch_slice;

/* Limits the number of the session's next ids that a forward runs, so that the forward cuts no picture whose rows must
 * be run together. rows: the wanted number. If `rows` ids would cut such a picture, the result is the number of ids
 * before the picture. If the picture comes first, the result is the number of the picture's rows. The result may be
 * more than `rows`, but it is at most engine->prompt_rows. */
size_t fr_batch_cut(const fr_session *session, size_t rows);

/* Takes the pages of the slice's first rows. Fails with FR_MEMORY if no page is free; the slice can't be run then. */
fr_status fr_batch_admit(const fr_batch_slice *slice);

/* Runs the slices of one engine's sessions in one forward. All slices must be admitted, and no session may occur twice.
 * All slices together have at most engine->rows rows; at most engine->head_rows of these have logits. After the call,
 * each session's `logits` and `best` are those of its own rows with logits. */
void fr_batch_run(fr_engine *engine, fr_batch_slice *slices, size_t count);

/* Gives the batch index of the slice's row `row`. If that row has no logits, the values that draft methods read exist
 * only if the session's method follows all rows (fr_draft.follows). */
size_t fr_batch_slice_row(const fr_batch_slice *slice, size_t row);

/* Puts `count` ids of a session's timeline, from a position on, into the rows of its engine's batch from `at` on.
 * parent: batch index of the row before the first one; -1: that row is not in the batch. */
void fr_batch_rows(fr_session *session, size_t position, size_t count, size_t at, int32_t parent);

/* Describes a forward over the first `count` rows of the engine's batch. */
fr_forward fr_batch_forward(fr_engine *engine, size_t count);

#endif
