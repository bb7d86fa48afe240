/* Gives a session's statistics as a JSON object ("stats" of an answer) and as a table for people. */
#ifndef FR_TOOLS_CLI_FIGURES_H
#define FR_TOOLS_CLI_FIGURES_H

#include <jansson.h>
#include <stdio.h>

#include "forerun.h"

typedef struct fr_figures {
    double of[FR_STAT_COUNT];
    double depth[FR_STEP_MAX - 1][FR_DEPTH_COUNT];
} fr_figures;

/* Reads the session's current figures. The figures of memory are those of this moment. All other figures are counts and
 * times, which only grow until the session is reset. */
fr_figures fr_figures_take(const fr_session *session);

/* Subtracts earlier figures. Counts and times become differences; figures of memory stay as they are in `now`. */
fr_figures fr_figures_since(fr_figures now, const fr_figures *before);

/* Adds earlier figures. Counts and times become sums; figures of memory stay as they are in `now`. */
fr_figures fr_figures_plus(fr_figures now, const fr_figures *before);

/* Makes the JSON object. "accepted_lengths" covers the whole session, not only these figures. */
json_t *fr_figures_json(const fr_figures *figures, const fr_session *session);
void fr_figures_print(const fr_figures *figures, FILE *out);

#endif
