/* Limits the prompt rows of a round so that running streams slow down at most twofold.
 *
 * In: the measured times of rounds. Out: the number of prompt rows for the next round, chosen so that it takes at most
 * twice as long as a round without prompts; no limit if no text waits for an id. */
#ifndef FR_TOOLS_SERVE_PROMPT_THROTTLE_H
#define FR_TOOLS_SERVE_PROMPT_THROTTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fr_prompt_throttle {
    double plain; /* seconds of a round without prompts; 0: not measured yet */
    double row;   /* seconds that a row of a prompt adds */
    size_t last;  /* prompt rows of the last round that had both texts and prompts; 0: none */
} fr_prompt_throttle;

/* Gives the number of prompt rows, at least one, for a round in which `texts` texts get ids. 0: no limit. */
size_t fr_prompt_throttle_rows(const fr_prompt_throttle *throttle, size_t texts);

/* Learns from a round that has run: its seconds, its texts and its prompt rows. */
void fr_prompt_throttle_learn(fr_prompt_throttle *throttle, double seconds, size_t texts, size_t prompt_rows);

/* A text that has its first id. */
typedef struct fr_prompt_throttle_first {
    double began, ready; /* seconds when its prompt was begun, and when it had its first id */
    uint64_t behind;     /* the last request that had arrived when it had its first id */
} fr_prompt_throttle_first;

/* Returns true if the text should wait for the given prompts, which arrived before it had its first id. Prompts take
 * less time if they are run at once than in pieces beside this text, so all texts of a burst are finished sooner. The
 * text waits at most as long as one prompt for each slot would take. */
bool fr_prompt_throttle_waits(const fr_prompt_throttle_first *text, double now, size_t slots, const uint64_t *prompts,
                              size_t count);

#endif
