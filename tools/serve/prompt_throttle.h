/* Limits the prompt rows of a round so that running streams slow down at most twofold.
 *
 * In: how long rounds took. Out: rows of prompts for the next one: so many that it takes at most twice what a round
 * without them takes, by what they took so far; all there are where nobody waits for an id. */
#ifndef FR_TOOLS_SERVE_PROMPT_THROTTLE_H
#define FR_TOOLS_SERVE_PROMPT_THROTTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fr_prompt_throttle {
    double plain; /* seconds of a round without prompts; 0: none was measured yet */
    double row;   /* seconds that a row of a prompt adds */
    size_t last;  /* rows of the last round that had both; 0: none */
} fr_prompt_throttle;

/* Rows for a round in which so many texts get ids, at least one. 0: no limit. */
size_t fr_prompt_throttle_rows(const fr_prompt_throttle *throttle, size_t texts);

/* A round has run: of so many texts, and rows of prompts. */
void fr_prompt_throttle_learn(fr_prompt_throttle *throttle, double seconds, size_t texts, size_t prompt_rows);

/* A text that has its first id. */
typedef struct fr_prompt_throttle_first {
    double began, ready; /* seconds: when its prompt was begun, and it had that id */
    uint64_t behind;     /* the last request that had arrived by then */
} fr_prompt_throttle_first;

/* Whether it waits for prompts that arrived before it had that id, of these requests: run at once, they take less time
 * than in pieces beside it, and all of a burst are sooner done. Not longer than they would need who could have come
 * with it, one for each slot. */
bool fr_prompt_throttle_waits(const fr_prompt_throttle_first *text, double now, size_t slots, const uint64_t *prompts,
                              size_t count);

#endif
