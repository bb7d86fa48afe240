/* Tests of a model whose answers are chosen by likelihood: HellaSwag, Winogrande, and questions with several answers.
 *
 * In: the command line of perplexity, with one of these options. Out: how many are right, in percent. */
#ifndef FR_TOOLS_CLI_TASKS_H
#define FR_TOOLS_CLI_TASKS_H

#include "tools/cli/options.h"

/* True where one of them is asked for, or a number of tasks. */
bool fr_tasks_asked(const fr_arguments *args);

/* Gives the exit status. */
int fr_tasks_run(const fr_arguments *args);

#endif
