/* The command as a rank of a job of several processes (mpirun -n 2 forerun ...): rank 0 alone is seen. */
#ifndef FR_TOOLS_CLI_RANKS_H
#define FR_TOOLS_CLI_RANKS_H

#include "tools/cli/options.h"

/* Joins the job that the process was started in, if it is one of several processes: before anything else of the
 * command. What ranks but the first write goes nowhere from then on, and a process that exits leaves the job. Gives the
 * exit status. */
int fr_ranks_enter(void);

/* What is to be done before a process is ended by a failure of the job in the middle of its work: by a thread of its
 * own, within some tenths of a second. NULL: nothing. */
void fr_ranks_before_end(void (*act)(void *context), void *context);

/* What a verb was given, before it runs: refused where ranks can't do it; files are written by rank 0 alone. */
int fr_ranks_check_arguments(const fr_verb *verb, fr_arguments *args);

#endif
