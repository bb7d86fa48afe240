/* Runs the command as a rank of a job of several processes (mpirun -n 2 forerun ...). Only the output of rank 0 is
 * shown. */
#ifndef FR_TOOLS_CLI_RANKS_H
#define FR_TOOLS_CLI_RANKS_H

#include "tools/cli/options.h"

/* Joins the job in which the process was started, if that job has several processes. Call it before anything else.
 * From then on the output of all ranks but rank 0 is dropped, and the process leaves the job when it exits. Gives the
 * exit status. */
int fr_ranks_enter(void);

/* Tells the other ranks this process's exit status, and returns it. Call it last in main. If a process exits without
 * this call, the other ranks are told the status 1. */
int fr_ranks_leave_with(int code);

/* Sets a callback that runs before a failure of another rank ends this process in the middle of its work. It runs in a
 * thread of its own and must return within some tenths of a second. NULL: no callback. */
void fr_ranks_before_end(void (*act)(void *context), void *context);

/* Checks a verb's arguments before the verb runs: refuses those that do not work with ranks, and lets only rank 0
 * write files. */
int fr_ranks_check_arguments(const fr_verb *verb, fr_arguments *args);

#endif
