/* Runs the command as a rank of a job of several processes (mpirun -n 2 forerun ...). Only the output of rank 0 is
 * shown. */
#ifndef FR_TOOLS_CLI_RANKS_H
#define FR_TOOLS_CLI_RANKS_H

#include "tools/cli/options.h"

/* Joins the job in which the process was started, if that job has several processes. Call it before anything else.
 * From then on the output of all ranks but rank 0 is dropped, and the process leaves the job when it exits. Gives the
 * exit status. */
int fr_ranks_enter(void);

/* Sends this process's exit status to the other ranks, and returns it. Call it last in main. If a process exits without
 * this call, the other ranks get the status 1. */
int fr_ranks_leave_with(int code);

/* Sets a callback for the case that another rank fails and ends this process in the middle of its work. The callback
 * runs before the process ends. It runs in a thread of its own and must return within some tenths of a second. NULL: no
 * callback. */
void fr_ranks_before_end(void (*act)(void *context), void *context);

/* Checks a verb's arguments before the verb runs. Refuses arguments that do not work with ranks, and makes all ranks
 * but rank 0 write no files. */
int fr_ranks_check_arguments(const fr_verb *verb, fr_arguments *args);

#endif
