/* Runs forerun bench ranks: fills the plan of bench/gathers.h from the command line. */
#include "tools/cli/bench_gathers.h"

#include "bench/gathers.h"
#include "tools/cli/output.h"

enum { REPETITIONS = 15, SPREAD = 20 };

int fr_bench_gathers_part(const fr_arguments *args, fr_bench_report *report) {
    fr_bench_gathers_plan plan = {
        .repetitions =
            args->given[FR_ARG_BENCH_REPETITIONS] ? (size_t)args->number[FR_ARG_BENCH_REPETITIONS] : REPETITIONS,
        .max_spread = args->given[FR_ARG_BENCH_SPREAD] ? args->real[FR_ARG_BENCH_SPREAD] : SPREAD,
        .delay_us = args->given[FR_ARG_RANK_DELAY] ? (double)args->number[FR_ARG_RANK_DELAY] : 0,
    };
    return fr_exit_status(fr_bench_gathers(report, &plan));
}
