/* Runs forerun bench neighbours: fills the plan of bench/beside_busy.h from the command line. */
#include "tools/cli/bench_neighbours.h"

#include <unistd.h>

#include "bench/beside_busy.h"
#include "tools/cli/loaded.h"
#include "tools/cli/output.h"

enum { LIST = 31, REPETITIONS = 5, SPREAD = 20 };

#define SECONDS 1.5

static void show(void *context, const char *what) {
    const bool *shown = context;
    if (*shown) fprintf(stderr, "\r\033[K%s", what ? what : "");
}

int fr_bench_neighbours_part(const fr_arguments *args, fr_bench_report *report) {
    int64_t threads[LIST];
    bool shown = !args->given[FR_ARG_QUIET] && isatty(STDERR_FILENO);
    if (!args->given[FR_ARG_MODEL]) return fr_wrong_usage("bench neighbours needs -m MODEL");
    fr_bench_beside_busy_plan plan = {
        .model = args->text[FR_ARG_MODEL],
        .threads = threads,
        .thread_count = fr_arguments_numbers(args, FR_ARG_BENCH_THREADS, threads, LIST),
        .repetitions =
            args->given[FR_ARG_BENCH_REPETITIONS] ? (size_t)args->number[FR_ARG_BENCH_REPETITIONS] : REPETITIONS,
        .seconds = SECONDS,
        .max_spread = args->given[FR_ARG_BENCH_SPREAD] ? args->real[FR_ARG_BENCH_SPREAD] : SPREAD,
        .doing = show,
        .context = &shown,
    };
    if (plan.thread_count == LIST) return fr_wrong_usage("a list of %d numbers or more", LIST);
    int code = fr_loaded_options(&plan.options, args);
    if (code) return code;
    code = fr_exit_status(fr_bench_beside_busy(report, &plan));
    fr_options_free(plan.options);
    return code;
}
