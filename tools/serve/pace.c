/* Rows of prompts by measured time (pace.h). */
#include "tools/serve/pace.h"

enum { FIRST = 16, LEAST = 8 };

/* Of a round's own time, what prompts may add: less than all of it, since times vary. */
#define SHARE 0.8

/* The newest reading's weight. A slow one may have met another program: it counts for less. */
static double mean(double usual, double reading) {
    double weight = reading > usual ? 0.1 : 0.3;
    return usual == 0 ? reading : usual + weight * (reading - usual);
}

size_t fr_pace_rows(const fr_pace *pace, size_t texts) {
    if (texts == 0) return 0;
    if (pace->plain == 0 || pace->row == 0) return FIRST;
    double rows = SHARE * pace->plain / pace->row;
    if (rows > 4096) return 4096;
    return rows < LEAST ? LEAST : (size_t)rows / LEAST * LEAST;
}

void fr_pace_learn(fr_pace *pace, double seconds, size_t texts, size_t prompt_rows) {
    if (texts && !prompt_rows) pace->plain = mean(pace->plain, seconds);
    double own = texts ? pace->plain : 0;
    if (prompt_rows >= LEAST && seconds > own && (own > 0 || !texts))
        pace->row = mean(pace->row, (seconds - own) / (double)prompt_rows);
}
