/* Runs forerun bench neighbours with the options of the command line. */
#ifndef FR_TOOLS_CLI_BENCH_NEIGHBOURS_H
#define FR_TOOLS_CLI_BENCH_NEIGHBOURS_H

#include "bench/table.h"
#include "tools/cli/options.h"

/* Gives the exit status. */
int fr_bench_neighbours_part(const fr_arguments *args, fr_bench_report *report);

#endif
