/* Limits the prompt rows of a round, so that the round takes at most twice as long for the texts that are being
 * generated.
 *
 * In: the measured times of rounds. Out: the number of prompt rows for the next round. If no text is being generated,
 * there is no limit. */
#ifndef FR_TOOLS_SERVE_PROMPT_THROTTLE_H
#define FR_TOOLS_SERVE_PROMPT_THROTTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fr_prompt_throttle {
    double plain; /* seconds of a round without prompts; 0: not measured yet */
    double row;   /* seconds that each row of a prompt adds to a round */
    /* number of prompt rows in the last round in which texts were generated too; 0: there were no texts, or no prompt
     * rows */
    size_t last;
} fr_prompt_throttle;

/* Gives the number of prompt rows for a round in which `texts` texts get ids. The number is at least 1. 0 means that
 * there is no limit. */
size_t fr_prompt_throttle_rows(const fr_prompt_throttle *throttle, size_t texts);

/* Takes the measurements of a round that has been run: its seconds, the number of its texts and the number of its
 * prompt rows. */
void fr_prompt_throttle_learn(fr_prompt_throttle *throttle, double seconds, size_t texts, size_t prompt_rows);

/* A text that has got its first id. */
typedef struct fr_prompt_throttle_first {
    double began, ready; /* times in seconds. began: when the text's prompt was begun. ready: when the text could have
                          * generated its second id */
    uint64_t behind;     /* number of the last request that had arrived when the text's first id came */
} fr_prompt_throttle_first;

/* Returns true if the text should pause until other prompts have been run. prompts: the numbers of the requests to
 * which those prompts belong. Only requests that arrived before the text's first id count. Prompts take less time if
 * they are run without this text than if each round runs a few of their rows together with this text. So if many
 * requests arrive at once, all their texts end sooner. The text pauses no longer than one prompt for each slot would
 * take. */
bool fr_prompt_throttle_waits(const fr_prompt_throttle_first *text, double now, size_t slots, const uint64_t *prompts,
                              size_t count);

#endif
