/* Limits the prompt rows of a round so that running streams slow down at most twofold.
 *
 * In: the measured times of rounds. Out: the number of prompt rows for the next round, chosen so that the round takes
 * at most twice as long as one without prompts. There is no limit if no text is being generated. */
#ifndef FR_TOOLS_SERVE_PROMPT_THROTTLE_H
#define FR_TOOLS_SERVE_PROMPT_THROTTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fr_prompt_throttle {
    double plain; /* seconds of a round without prompts; 0: not measured yet */
    double row;   /* seconds that each row of a prompt adds to a round */
    size_t last;  /* number of prompt rows in the last round, if texts were generated in it too; else 0 */
} fr_prompt_throttle;

/* Gives the number of prompt rows for a round in which `texts` texts get ids: at least one, or 0 for no limit. */
size_t fr_prompt_throttle_rows(const fr_prompt_throttle *throttle, size_t texts);

/* Learns from a round that has been run: its seconds, its number of texts and its prompt rows. */
void fr_prompt_throttle_learn(fr_prompt_throttle *throttle, double seconds, size_t texts, size_t prompt_rows);

/* A text that has got its first id. */
typedef struct fr_prompt_throttle_first {
    double began, ready; /* times in seconds: when the text's prompt was begun, and when the text could have generated
                          * its second id */
    uint64_t behind;     /* number of the last request that had arrived when the text's first id came */
} fr_prompt_throttle_first;

/* Returns true if the text should pause until other prompts have been run. `prompts` are the numbers of the requests
 * of those prompts; only those that arrived before the text's first id count. Prompts take less time if they are run
 * at once than in slices beside this text. So all texts of a burst end sooner. The text pauses no longer than one
 * prompt for each slot would take. */
bool fr_prompt_throttle_waits(const fr_prompt_throttle_first *text, double now, size_t slots, const uint64_t *prompts,
                              size_t count);

#endif
