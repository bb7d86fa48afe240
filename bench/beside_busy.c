/* Measures decoding while other programs run (beside_busy.h). */
#include "bench/beside_busy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/topology.h"
#include "bench/busy_processes.h"
#include "bench/sample.h"

enum { SETTINGS = 64, REPETITIONS = 1000 };

/* Each setting decodes for a warm-up before its counted seconds, so that the default number of threads has time to
 * adapt to the other programs. WARM_UP is the length of the warm-up as a share of the counted seconds. */
#define WARM_UP 0.33

/* Describes a way to decode. threads: number of threads, or 0 for the default; pin: 1 or 0, or -1 for the default. */
typedef struct setting {
    int64_t threads, pin;
} setting;

typedef struct bench {
    fr_bench_report *report;
    const fr_bench_beside_busy_plan *plan;
    size_t cpus;
    setting settings[SETTINGS]; /* the default first */
    size_t count;
    double rates[SETTINGS][REPETITIONS]; /* tokens per second in each repetition */
} bench;

/* --------------------------------------------------------------------------------------------------------- settings */

static void add_setting(bench *b, int64_t threads, int64_t pin) {
    if (b->count < SETTINGS) b->settings[b->count++] = (setting){threads, pin};
}

static void add_fixed(bench *b, size_t threads) {
    add_setting(b, (int64_t)threads, 0);
    add_setting(b, (int64_t)threads, 1);
}

static fr_status make_settings(bench *b) {
    fr_machine machine;
    fr_plan all;
    FR_TRY(fr_machine_read(&machine));
    fr_plan_make(&machine, 0, false, true, &all);
    b->cpus = all.threads;
    add_setting(b, 0, -1);
    for (size_t i = 0; i < b->plan->thread_count; i++) add_fixed(b, (size_t)b->plan->threads[i]);
    for (size_t n = 1; b->plan->thread_count == 0 && n < b->cpus; n *= 2) add_fixed(b, n);
    if (b->plan->thread_count == 0) add_fixed(b, b->cpus);
    return FR_OK;
}

static fr_options *options_of(const bench *b, const setting *s) {
    fr_options *options = fr_options_copy(b->plan->options);
    if (!options) return NULL;
    fr_options_set(options, FR_OPT_IGNORE_EOS, 1);
    fr_options_set(options, FR_OPT_DRAFT_MAX, 0);
    fr_options_set(options, FR_OPT_PIN, s->pin);
    if (s->threads) fr_options_set(options, FR_OPT_THREADS, s->threads);
    return options;
}

/* ------------------------------------------------------------------------------------------------------------ turns */

static fr_status decode_for(fr_bench_decoder *decoder, double seconds, double *rate) {
    double start = fr_clock(), now = start;
    size_t tokens = 0;
    for (; now - start < seconds; now = fr_clock(), tokens++) FR_TRY(fr_bench_decoder_step(decoder));
    *rate = (double)tokens / (now - start);
    return FR_OK;
}

static fr_status take_turn(const bench *b, fr_bench_decoder *decoder, const setting *s, double *rate) {
    fr_options *options = options_of(b, s);
    if (!options) return fr_fail(FR_MEMORY, "out of memory");
    fr_status status = fr_bench_decoder_begin(decoder, options);
    if (status == FR_OK) status = decode_for(decoder, WARM_UP * b->plan->seconds, rate);
    if (status == FR_OK) status = decode_for(decoder, b->plan->seconds, rate);
    fr_options_free(options);
    return status;
}

/* Runs all settings in turn. Each repetition begins with another setting. */
static fr_status take_turns(bench *b, fr_bench_decoder *decoder) {
    for (size_t round = 0; round < b->plan->repetitions; round++) {
        for (size_t i = 0; i < b->count; i++) {
            size_t at = (i + round) % b->count;
            FR_TRY(take_turn(b, decoder, &b->settings[at], &b->rates[at][round]));
        }
    }
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------------------- a table */

/* Gives the median of a / b over the repetitions. Each ratio is of two values from the same repetition. */
static double ratio_of(const double *a, const double *b, size_t count) {
    double ratios[REPETITIONS];
    for (size_t i = 0; i < count; i++) ratios[i] = a[i] / b[i];
    return fr_bench_median(ratios, count);
}

static fr_bench_figure figure_of(const double *rates, size_t count) {
    double sorted[REPETITIONS];
    memcpy(sorted, rates, count * sizeof *rates);
    return fr_bench_figure_of(sorted, count);
}

static size_t best_fixed(const bench *b) {
    size_t best = 1;
    double most = 0;
    for (size_t i = 1; i < b->count; i++) {
        double middle = figure_of(b->rates[i], b->plan->repetitions).middle;
        if (middle <= most) continue;
        best = i;
        most = middle;
    }
    return best;
}

static void put_name(bench *b, const setting *s) {
    char name[64] = "default";
    if (s->threads) snprintf(name, sizeof name, "-t %lld%s", (long long)s->threads, s->pin ? " --pin" : " --no-pin");
    fr_bench_text(b->report, name);
}

static void put_table(bench *b, const char *name, const char *title) {
    static const fr_bench_column columns[] = {{"setting", "setting", 0},
                                              {"median_ts", "t/s", 2},
                                              {"spread", "spread, %", 1},
                                              {"of_best", "of the best fixed", 3}};
    size_t best = best_fixed(b), count = b->plan->repetitions;
    fr_bench_table(b->report, name, title, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < b->count; i++) {
        fr_bench_figure figure = figure_of(b->rates[i], count);
        put_name(b, &b->settings[i]);
        fr_bench_from(b->report, &figure, figure.middle, b->plan->max_spread);
        fr_bench_number(b->report, figure.spread);
        fr_bench_from(b->report, &figure, ratio_of(b->rates[i], b->rates[best], count), b->plan->max_spread);
    }
}

/* ------------------------------------------------------------------------------------------------------------ loads */

typedef enum load { ALONE, ONE_LOOP, LOOPS, DECODER, LOADS } load_kind;

static fr_status start_load(const bench *b, load_kind load, fr_bench_busy_processes *busy) {
    if (load == ONE_LOOP || load == LOOPS) return fr_bench_busy_processes_add_loops(busy, load == LOOPS ? b->cpus : 1);
    if (load == ALONE) return FR_OK;
    fr_options *options = options_of(b, &b->settings[0]);
    if (!options) return fr_fail(FR_MEMORY, "out of memory");
    fr_status status = fr_bench_busy_processes_add_decoder(busy, b->plan->model, options);
    fr_options_free(options);
    return status;
}

static fr_status measure(bench *b, load_kind load) {
    static const char *const names[LOADS] = {"alone", "one_loop", "loops", "decoder"};
    static const char *const titles[LOADS] = {"alone", "beside one busy loop", "beside a busy loop on each CPU",
                                              "beside another forerun"};
    fr_bench_busy_processes busy = {.count = 0};
    fr_bench_decoder decoder = {.session = NULL};
    b->plan->doing(b->plan->context, titles[load]);
    fr_status status = start_load(b, load, &busy);
    if (status == FR_OK) status = fr_model_open(b->plan->model, b->plan->options, &decoder.model);
    if (status == FR_OK) status = take_turns(b, &decoder);
    fr_bench_decoder_end(&decoder);
    fr_bench_busy_processes_end(&busy);
    b->plan->doing(b->plan->context, NULL);
    if (status == FR_OK) put_table(b, names[load], titles[load]);
    return status;
}

fr_status fr_bench_beside_busy(fr_bench_report *report, const fr_bench_beside_busy_plan *plan) {
    static bench b;
    b = (bench){.report = report, .plan = plan};
    if (plan->repetitions > REPETITIONS) return fr_fail(FR_USAGE, "at most %d repetitions", REPETITIONS);
    FR_TRY(make_settings(&b));
    FR_TRY(fr_bench_machine_facts(report, NULL, 0));
    for (load_kind load = ALONE; load < LOADS; load++) FR_TRY(measure(&b, load));
    return FR_OK;
}
