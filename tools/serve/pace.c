/* Rows of prompts by measured time (pace.h). */
#include "tools/serve/pace.h"

enum { FIRST = 8 };

/* Of a round's own time, what prompts may add: less than all of it, since times vary. */
#define SHARE 0.8

/* A slow reading may have met another program: it counts for less. */
static double mean(double usual, double reading) {
    double weight = reading > usual ? 0.1 : 0.3;
    return usual == 0 ? reading : usual + weight * (reading - usual);
}

/* At most twice as many as the last time: what more of them take is a guess. */
size_t fr_pace_rows(const fr_pace *pace, size_t texts) {
    if (texts == 0) return 0;
    if (pace->plain == 0 || pace->row == 0) return FIRST;
    double most = pace->last ? 2 * (double)pace->last : FIRST, rows = SHARE * pace->plain / pace->row;
    if (rows > most) rows = most;
    if (rows < 1) return 1;
    return rows > FIRST ? (size_t)rows / FIRST * FIRST : (size_t)rows;
}

void fr_pace_learn(fr_pace *pace, double seconds, size_t texts, size_t prompt_rows) {
    if (texts && !prompt_rows) pace->plain = mean(pace->plain, seconds);
    if (texts && prompt_rows) pace->last = prompt_rows;
    if (!texts) pace->last = 0;
    if (!prompt_rows || (texts && pace->plain == 0)) return;
    double own = texts ? pace->plain : 0, reading = (seconds - own) / (double)prompt_rows;
    pace->row = mean(pace->row, reading > 0 ? reading : 0);
}

bool fr_pace_waits(const fr_pace_first *text, double now, size_t slots, const uint64_t *prompts, size_t count) {
    if (now - text->began > (double)slots * (text->ready - text->began)) return false;
    for (size_t i = 0; i < count; i++)
        if (prompts[i] <= text->behind) return true;
    return false;
}
