/* Runs forerun bench kernels with the options of the command line, and draws its picture. */
#ifndef FR_TOOLS_CLI_BENCH_KERNELS_H
#define FR_TOOLS_CLI_BENCH_KERNELS_H

#include "bench/table.h"
#include "tools/cli/options.h"

/* Gives the exit status, which is 1 if a kernel's bits differ from the definition's. */
int fr_bench_kernels_part(const fr_arguments *args, fr_bench_report *report);

#endif
