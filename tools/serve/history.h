/* Records the last rounds of a scheduler. For each session in a round, it records the number of the session's rows and
 * of the ids that the session got.
 *
 * In: the engine's thread gives each session's entry of a round, before and after the round. Out: JSON, which any
 * thread may ask for. Rounds are counted from 1; the last FR_HISTORY_ROUNDS rounds are kept. */
#ifndef FR_TOOLS_SERVE_HISTORY_H
#define FR_TOOLS_SERVE_HISTORY_H

#include <jansson.h>

#include "forerun.h"

#define FR_HISTORY_ROUNDS 128

typedef struct fr_history fr_history;

fr_history *fr_history_new(size_t slots);
void fr_history_free(fr_history *history);

/* Counts the ids of a prompt that the session must still run. Ids that were found in the cache or have been run don't
 * count. */
double fr_history_left(const fr_session *session);

/* fr_history_before records the session of a slot before a round. fr_history_behind records it after the round; it must
 * be called for the slots in the same order. fr_history_end ends the round. */
void fr_history_before(fr_history *history, size_t slot, const fr_round *round);
void fr_history_behind(fr_history *history, size_t slot, const fr_round *round);
void fr_history_end(fr_history *history, double seconds);

/* Gives the rounds that came after the round with the number `after`, the oldest first, as a new value: {"slots",
 * "total", "rounds": [{"ms", "rows": [[slot, rows, ids, prompt], ...]}, ...]}. total: the number of the last round.
 * rows: number of rows that the session ran. ids: number of ids that the session got. prompt: true if the rows belong
 * to a prompt. */
json_t *fr_history_json(fr_history *history, unsigned long long after);

#endif
