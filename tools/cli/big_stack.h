/* The command on a stack that is large enough, whatever ulimit -s says.
 *
 * In: the function that is the command, and its words. Out: its exit status. Where the limit is low it runs on a thread
 * of its own, whose stack no limit of that kind bounds. */
#ifndef FR_TOOLS_CLI_BIG_STACK_H
#define FR_TOOLS_CLI_BIG_STACK_H

typedef int fr_command_fn(int count, char **words);

int fr_run_on_big_stack(fr_command_fn *run, int count, char **words);

#endif
