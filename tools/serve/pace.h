/* How much of prompts a round may run, so that texts under way keep their pace.
 *
 * In: how long rounds took. Out: rows of prompts for the next one: so many that it takes at most twice what a round
 * without them takes, by what they took so far; all there are where nobody waits for an id. */
#ifndef FR_TOOLS_SERVE_PACE_H
#define FR_TOOLS_SERVE_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fr_pace {
    double plain; /* seconds of a round without prompts; 0: none was measured yet */
    double row;   /* seconds that a row of a prompt adds */
    size_t last;  /* rows of the last round that had both; 0: none */
} fr_pace;

/* Rows for a round in which so many texts get ids, at least one. 0: no limit. */
size_t fr_pace_rows(const fr_pace *pace, size_t texts);

/* A round has run: of so many texts, and rows of prompts. */
void fr_pace_learn(fr_pace *pace, double seconds, size_t texts, size_t prompt_rows);

/* A text that has its first id. */
typedef struct fr_pace_first {
    double began, ready; /* seconds: when its prompt was begun, and it had that id */
    uint64_t behind;     /* the last request that had arrived by then */
} fr_pace_first;

/* Whether it waits for prompts that arrived before it had that id, of these requests: run at once, they take less time
 * than in pieces beside it, and all of a burst are sooner done. Not longer than they would need who could have come
 * with it, one for each slot. */
bool fr_pace_waits(const fr_pace_first *text, double now, size_t slots, const uint64_t *prompts, size_t count);

#endif
