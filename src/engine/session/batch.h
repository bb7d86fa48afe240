/* Rows of several sessions in one forward.
 *
 * In: for each session how many rows of its timeline from the frontier on, and of how many logits are wanted. Out: K/V
 * in their caches, hidden rows, logits. No row's bits depend on its neighbours.
 *
 *     batch    rows without logits: session 0's, session 1's, ... | rows with logits: session 0's, session 1's, ...
 *
 * Those in front end behind the last layer that owns K/V, unless somebody reads their hidden rows. */
#ifndef FR_SRC_ENGINE_SESSION_BATCH_H
#define FR_SRC_ENGINE_SESSION_BATCH_H

#include "src/engine/session/state.h"

/* One session's rows of a batch. */
typedef struct fr_batch_slice {
    fr_session *session;
    size_t rows;  /* with ids on its timeline, or drafted behind it; out: without those that pages were missing for */
    size_t heads; /* the last of them, whose logits are wanted; out: those of the rows that were run */
    size_t at, heads_at; /* out: where in the batch those without logits begin, and those with */
} fr_batch_slice;

/* Takes the page of the slice's first rows. FR_MEMORY: there is none, and the slice can't be run. */
fr_status fr_batch_admit(const fr_batch_slice *slice);

/* Of one engine's sessions, all admitted, no session twice; at most engine->rows rows, engine->head_rows of them with
 * logits. The sessions' logits and best are then those of their rows with logits. */
void fr_batch_run(fr_engine *engine, fr_batch_slice *slices, size_t count);

/* Gives what a draft method sees of the slice's row of that index, until the next forward; those without logits are
 * seen where the session's method follows. */
const float *fr_batch_slice_hidden(const fr_batch_slice *slice, size_t row);

/* `count` ids of a session's timeline from a position on as rows of its engine's batch, from `at` on. parent: the first
 * one's, or -1. */
void fr_batch_rows(fr_session *session, size_t position, size_t count, size_t at, int32_t parent);

/* A forward over the first `count` rows of the engine's batch. */
fr_forward fr_batch_forward(fr_engine *engine, size_t count);

#endif
