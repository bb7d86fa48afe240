/* Tests a model with multiple-choice tasks. The model's answer is the choice that it finds most likely. The tests are
 * HellaSwag, Winogrande, and questions with several answers.
 *
 * In: the command line of perplexity, with the option of one of these tests. Out: the percentage of right answers. */
#ifndef FR_TOOLS_CLI_TASKS_H
#define FR_TOOLS_CLI_TASKS_H

#include "tools/cli/options.h"

/* Returns true if an option for multiple-choice tasks was given: the option of a kind of test, or --tasks. */
bool fr_tasks_asked(const fr_arguments *args);

/* Gives the exit status. */
int fr_tasks_run(const fr_arguments *args);

#endif
