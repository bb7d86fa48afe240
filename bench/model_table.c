/* Writes the tables of a model's bench: the cells with which each line begins, and the marks of doubtful figures
 * (model_run.h). */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "bench/measure.h"
#include "bench/model_run.h"

/* The columns with which all tables begin. If llama-bench has a column of the same meaning, its name is used. */
static const fr_bench_column common[] = {
    {"test", "test", 0},     {"isa", NULL, 0},           {"n_threads", NULL, 0},     {"n_prompt", NULL, 0},
    {"n_gen", NULL, 0},      {"n_depth", NULL, 0},       {"median_ns", NULL, 0},     {NULL, "ms", 3},
    {"avg_ns", NULL, 0},     {"stddev_ns", NULL, 0},     {"median_ts", "t/s", 2},    {"avg_ts", "mean t/s", 2},
    {"stddev_ts", "±", 2},   {"spread", "spread, %", 1}, {"others", "others, %", 0}, {"samples_ns", NULL, 0},
    {"samples_ts", NULL, 2},
};
enum { COMMON = sizeof common / sizeof *common };

/* Other programs are mentioned below the table if they took at least this percentage of the CPUs. */
#define NOTABLE 3

void fr_bench_begin(fr_bench_run *run, const char *name, const char *title, const fr_bench_column *own, size_t count) {
    static fr_bench_column columns[FR_BENCH_COLUMNS];
    char whole[160];
    memcpy(columns, common, sizeof common);
    for (size_t i = 0; i < count; i++) columns[COMMON + i] = own[i];
    snprintf(whole, sizeof whole, "%s%s", title, run->how);
    fr_bench_table(run->report, name, whole, columns, COMMON + count);
    run->doubtful = 0;
    run->others = 0;
}

fr_bench_figure fr_bench_figure_kept(const double *values, size_t n) {
    double sorted[FR_BENCH_TIMINGS];
    if (n == 0) return (fr_bench_figure){.middle = NAN, .least = NAN, .most = NAN, .spread = NAN};
    memcpy(sorted, values, n * sizeof *values);
    return fr_bench_figure_of(sorted, n);
}

void fr_bench_put(fr_bench_run *run, const fr_bench_figure *figure, double value) {
    run->doubtful += isfinite(figure->middle) && fr_bench_is_doubtful(figure, run->plan->max_spread);
    fr_bench_from(run->report, figure, value, run->plan->max_spread);
}

/* Gives the mean and the standard deviation of a sample. If there is a single value, the deviation is 0, as in
 * llama-bench. */
static void mean_of(const double *values, size_t n, double *mean, double *deviation) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) sum += values[i];
    *mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) squares += (values[i] - *mean) * (values[i] - *mean);
    *deviation = n > 1 ? sqrt(squares / (double)(n - 1)) : *mean - *mean;
}

/* Adds the share of the CPUs that other programs took during the measurement. */
static void put_others(fr_bench_run *run) {
    double others = fr_bench_busy_others(&run->busy);
    run->others = fmax(run->others, others);
    fr_bench_number(run->report, others);
}

/* Adds the timings in whole nanoseconds, and the rates that follow from them. */
static void put_times(fr_bench_run *run, const fr_bench_test *test) {
    double ns[FR_BENCH_TIMINGS], rates[FR_BENCH_TIMINGS], mean, deviation, limit = run->plan->max_spread;
    for (size_t i = 0; i < test->count; i++) {
        ns[i] = rint(test->seconds[i] * 1e9);
        rates[i] = 1e9 * (double)test->tokens / ns[i];
    }
    fr_bench_figure time = fr_bench_figure_kept(ns, test->count);
    fr_bench_put(run, &time, time.middle);
    fr_bench_from(run->report, &time, time.middle / 1e6, limit);
    mean_of(ns, test->count, &mean, &deviation);
    fr_bench_from(run->report, &time, rint(mean), limit);
    fr_bench_from(run->report, &time, rint(deviation), limit);
    fr_bench_figure rate = fr_bench_figure_kept(rates, test->count);
    fr_bench_from(run->report, &time, rate.middle, limit);
    mean_of(rates, test->count, &mean, &deviation);
    fr_bench_from(run->report, &time, mean, limit);
    fr_bench_from(run->report, &time, deviation, limit);
    fr_bench_number(run->report, time.spread);
    put_others(run);
    fr_bench_numbers(run->report, ns, test->count);
    fr_bench_numbers(run->report, rates, test->count);
}

void fr_bench_begin_row(fr_bench_run *run, const fr_bench_test *test) {
    fr_bench_doing(run, NULL);
    fr_bench_text(run->report, test->name);
    fr_bench_text(run->report, fr_model_isa(run->model));
    fr_bench_number(run->report, (double)run->model->plan.threads);
    fr_bench_number(run->report, (double)test->prompt);
    fr_bench_number(run->report, (double)test->generate);
    fr_bench_number(run->report, (double)test->depth);
    put_times(run, test);
}

void fr_bench_end(fr_bench_run *run) {
    if (run->others > NOTABLE)
        fr_bench_remark(run->report, "Other programs took up to %.0f%% of all CPUs meanwhile.", run->others);
    if (run->doubtful)
        fr_bench_remark(run->report,
                        "Figures that are marked with ?, as their spread is above %g%% or, of one timing, not known: "
                        "%zu. Stop what else runs here, time more often by -r, or allow more by --max-spread.",
                        run->plan->max_spread, run->doubtful);
}

void fr_bench_name(char *name, size_t size, const char *what, size_t depth) {
    if (depth)
        snprintf(name, size, "%s @ d%zu", what, depth);
    else
        snprintf(name, size, "%s", what);
}

void fr_bench_doing(fr_bench_run *run, const char *what) {
    if (what) run->busy = fr_bench_busy_now();
    if (run->plan->doing) run->plan->doing(run->plan->context, what);
}

fr_status fr_bench_session(const fr_bench_run *run, int64_t drafts, size_t context, fr_session **session) {
    fr_options *options = run->plan->options;
    const char *words = run->plan->spec_type;
    FR_TRY(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    FR_TRY(fr_options_set(options, FR_OPT_CONTEXT, (int64_t)context));
    FR_TRY(fr_options_set(options, FR_OPT_DRAFT_MAX, drafts));
    if (words || !run->drafter) FR_TRY(fr_options_set_text(options, FR_OPT_SPEC_TYPE, words ? words : "none"));
    return fr_session_open(run->model, drafts ? run->drafter : NULL, options, session);
}
