/* Decides from measured times how many prompt rows a round may run (prompt_throttle.h). */
#include "tools/serve/prompt_throttle.h"

enum { FIRST = 8 };

/* The rows of prompts may lengthen a round by this share of the time that the round takes without them. A share of 1
 * would double the round's time. The share is less than 1 because the times of rounds vary, and a round should rarely
 * take more than double. */
#define SHARE 0.8

/* Averages measured times. A time above the average gets a smaller weight, because another program may have slowed down
 * the round that was measured. */
static double mean(double usual, double reading) {
    double weight = reading > usual ? 0.1 : 0.3;
    return usual == 0 ? reading : usual + weight * (reading - usual);
}

/* Gives at most twice as many rows as the last round had, because the time of many rows can't be predicted well from
 * the time of a few. If no text is being generated, it gives 0, which means no limit. */
size_t fr_prompt_throttle_rows(const fr_prompt_throttle *throttle, size_t texts) {
    if (texts == 0) return 0;
    if (throttle->plain == 0 || throttle->row == 0) return FIRST;
    double most = throttle->last ? 2 * (double)throttle->last : FIRST, rows = SHARE * throttle->plain / throttle->row;
    if (rows > most) rows = most;
    if (rows < 1) return 1;
    return rows > FIRST ? (size_t)rows / FIRST * FIRST : (size_t)rows;
}

void fr_prompt_throttle_learn(fr_prompt_throttle *throttle, double seconds, size_t texts, size_t prompt_rows) {
    if (texts && !prompt_rows) throttle->plain = mean(throttle->plain, seconds);
    if (texts && prompt_rows) throttle->last = prompt_rows;
    if (!texts) throttle->last = 0;
    if (!prompt_rows || (texts && throttle->plain == 0)) return;
    double own = texts ? throttle->plain : 0, reading = (seconds - own) / (double)prompt_rows;
    throttle->row = mean(throttle->row, reading > 0 ? reading : 0);
}

bool fr_prompt_throttle_waits(const fr_prompt_throttle_first *text, double now, size_t slots, const uint64_t *prompts,
                              size_t count) {
    if (now - text->began > (double)slots * (text->ready - text->began)) return false;
    for (size_t i = 0; i < count; i++)
        if (prompts[i] <= text->behind) return true;
    return false;
}
