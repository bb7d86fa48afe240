/* Records the last rounds of a scheduler: for each session in a round, the number of its rows, and the ids that it
 * got.
 *
 * In: each session's entry of a round, before and after the round, from the engine's thread. Out: JSON, for any
 * thread. Rounds are counted from 1; the last FR_HISTORY_ROUNDS rounds are kept. */
#ifndef FR_TOOLS_SERVE_HISTORY_H
#define FR_TOOLS_SERVE_HISTORY_H

#include <jansson.h>

#include "forerun.h"

#define FR_HISTORY_ROUNDS 128

typedef struct fr_history fr_history;

fr_history *fr_history_new(size_t slots);
void fr_history_free(fr_history *history);

/* Gives the number of ids of a prompt that the session has neither run nor found in the cache yet. */
double fr_history_left(const fr_session *session);

/* fr_history_before records a slot's session before a round. fr_history_behind records it after the round, for the
 * slots in the same order. fr_history_end ends the round. */
void fr_history_before(fr_history *history, size_t slot, const fr_round *round);
void fr_history_behind(fr_history *history, size_t slot, const fr_round *round);
void fr_history_end(fr_history *history, double seconds);

/* Gives the rounds that came after round number `after`, the oldest first, as a new value: {"slots", "total",
 * "rounds": [{"ms", "rows": [[slot, rows, ids, prompt], ...]}, ...]}. ids: ids that the session got; prompt: true if
 * the rows belong to a prompt; total: the number of the last round. */
json_t *fr_history_json(fr_history *history, unsigned long long after);

#endif
