/* Gives the statistics of a job's ranks: their traffic and their memory.
 *
 * In: this rank's peak of memory, in bytes. All ranks must call the same functions, because they exchange their
 * figures.
 * Out: JSON, or two lines, on rank 0. */
#ifndef FR_TOOLS_CLI_FIGURES_RANKS_H
#define FR_TOOLS_CLI_FIGURES_RANKS_H

#include <jansson.h>
#include <stdio.h>

json_t *fr_ranks_json(double peak);
void fr_ranks_print(double peak, FILE *out);

#endif
