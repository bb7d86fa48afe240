/* Runs the command on a stack that is large enough, even if `ulimit -s` sets a low limit.
 *
 * In: the command's function, and its arguments. Out: its exit status. If the limit is low, the function runs on a
 * thread of its own, because the limit does not apply to such a thread's stack. */
#ifndef FR_TOOLS_CLI_BIG_STACK_H
#define FR_TOOLS_CLI_BIG_STACK_H

typedef int fr_command_fn(int count, char **words);

int fr_run_on_big_stack(fr_command_fn *run, int count, char **words);

#endif
