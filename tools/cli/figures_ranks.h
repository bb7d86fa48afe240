/* What ranks of a job have sent, and what each has taken of memory: of statistics.
 *
 * In: this rank's peak, in bytes; all ranks ask alike, as they tell each other. Out: JSON, or two lines: of rank 0. */
#ifndef FR_TOOLS_CLI_FIGURES_RANKS_H
#define FR_TOOLS_CLI_FIGURES_RANKS_H

#include <jansson.h>
#include <stdio.h>

json_t *fr_ranks_json(double peak);
void fr_ranks_print(double peak, FILE *out);

#endif
