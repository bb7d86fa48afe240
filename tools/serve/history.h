/* The last rounds of a scheduler: how many rows each had, whose, and what they gave.
 *
 * In: each session's part in a round before it is run and behind it, from the engine's thread. Out: JSON for any
 * thread. Rounds are counted from 1; the last FR_HISTORY_ROUNDS are kept. */
#ifndef FR_TOOLS_SERVE_HISTORY_H
#define FR_TOOLS_SERVE_HISTORY_H

#include <jansson.h>

#include "forerun.h"

#define FR_HISTORY_ROUNDS 128

typedef struct fr_history fr_history;

fr_history *fr_history_new(size_t slots);
void fr_history_free(fr_history *history);

/* Ids that a session is still to run, and those that it need never run: a round takes from the former what it runs, and
 * what it finds. */
double fr_history_left(const fr_session *session);

/* The part of the session at a slot; the same in the same order once the round has been run, and its end. */
void fr_history_before(fr_history *history, size_t slot, const fr_round *round);
void fr_history_behind(fr_history *history, size_t slot, const fr_round *round);
void fr_history_end(fr_history *history, double seconds);

/* Those behind round `after`, a new value: {"slots", "total", "rounds": [{"ms", "rows": [[slot, rows, ids, prompt],
 * ...]}, ...]}, the oldest first; prompt: its rows were a prompt's; total: the number of the last one. */
json_t *fr_history_json(fr_history *history, unsigned long long after);

#endif
