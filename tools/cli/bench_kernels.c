/* Runs forerun bench kernels: fills the plan of bench/kernels.h from the command line, and shows the progress. */
#include "tools/cli/bench_kernels.h"

#include <string.h>
#include <unistd.h>

#include "bench/kernels.h"
#include "tools/cli/output.h"

enum { LIST = 64, REPETITIONS = 5, SPREAD = 20 };

/* If standard error is a terminal, rewrites the line of progress. The line stays until the line of the next kernel
 * replaces it. */
static void show_kernel(void *context, const char *kernel, size_t done, size_t total) {
    const bool *shown = context;
    if (!*shown) return;
    fprintf(stderr, "\r\033[K");
    if (kernel) fprintf(stderr, "%zu of %zu: %s", done + 1, total, kernel);
    fflush(stderr);
}

static int run(const fr_arguments *args, fr_bench_report *report, FILE *plot) {
    int64_t rows[LIST] = {1, 2, 4, 8, 64, 512}, threads[LIST];
    size_t wrong = 0, row_count = fr_arguments_numbers(args, FR_ARG_BENCH_ROWS, rows, LIST);
    bool shown = !args->given[FR_ARG_QUIET] && isatty(STDERR_FILENO);
    fr_bench_kernels_plan plan = {
        .filter = args->text[FR_ARG_BENCH_FILTER],
        .isas = args->text[FR_ARG_BENCH_ISA],
        .rows = rows,
        .row_count = args->given[FR_ARG_BENCH_ROWS] ? row_count : 6,
        .threads = threads,
        .thread_count = fr_arguments_numbers(args, FR_ARG_BENCH_THREADS, threads, LIST),
        .pin = !args->given[FR_ARG_NO_PIN],
        .numa = !args->given[FR_ARG_NUMA] || strcmp(args->text[FR_ARG_NUMA], "off") != 0,
        .repetitions =
            args->given[FR_ARG_BENCH_REPETITIONS] ? (size_t)args->number[FR_ARG_BENCH_REPETITIONS] : REPETITIONS,
        .max_spread = args->given[FR_ARG_BENCH_SPREAD] ? args->real[FR_ARG_BENCH_SPREAD] : SPREAD,
        .weight_bytes = args->given[FR_ARG_BENCH_WEIGHTS] ? (size_t)args->number[FR_ARG_BENCH_WEIGHTS] << 20 : 0,
        .plot = plot,
        .progress = show_kernel,
        .context = &shown,
    };
    int code = fr_exit_status(fr_bench_kernels_run(&plan, report, &wrong));
    if (code || !wrong) return code;
    return fr_bad_input("a kernel does not give its definition's bits: %zu row%s", wrong, wrong == 1 ? "" : "s");
}

int fr_bench_kernels_part(const fr_arguments *args, fr_bench_report *report) {
    bool draws = args->given[FR_ARG_BENCH_PLOT];
    fr_writer picture = {.file = NULL};
    int64_t rows[LIST];
    size_t row_count = fr_arguments_numbers(args, FR_ARG_BENCH_ROWS, rows, LIST);
    for (size_t i = 0; i < row_count; i++)
        if (rows[i] == 0) return fr_wrong_usage("bench kernels takes --rows from 1");
    int code = draws ? fr_writer_open(&picture, args->text[FR_ARG_BENCH_PLOT]) : 0;
    if (code) return code;
    code = run(args, report, picture.file);
    if (!draws) return code;
    if (!code) return fr_writer_close(&picture);
    fr_writer_abandon(&picture);
    return code;
}
