/* Tests a model with tasks whose answers are chosen by likelihood: HellaSwag, Winogrande, and questions with several
 * answers.
 *
 * In: the command line of perplexity, with one of these options. Out: the percentage of right answers. */
#ifndef FR_TOOLS_CLI_TASKS_H
#define FR_TOOLS_CLI_TASKS_H

#include "tools/cli/options.h"

/* Returns true if one of these options, or a number of tasks, was given. */
bool fr_tasks_asked(const fr_arguments *args);

/* Gives the exit status. */
int fr_tasks_run(const fr_arguments *args);

#endif
