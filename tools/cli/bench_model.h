/* Runs forerun bench model with the options of the command line, and draws its picture. */
#ifndef FR_TOOLS_CLI_BENCH_MODEL_H
#define FR_TOOLS_CLI_BENCH_MODEL_H

#include "bench/table.h"
#include "tools/cli/options.h"

/* Gives the exit status. */
int fr_bench_model_part(const fr_arguments *args, fr_bench_report *report);

#endif
