/* Runs forerun bench model: fills the plan of bench/model.h from the command line. Draws T(K)/T(1), which is the time
 * of a forward of K rows divided by the time of a forward of one row. */
#include "tools/cli/bench_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/model.h"
#include "tools/cli/loaded.h"
#include "tools/cli/output.h"
#include "tools/cli/plot.h"

/* --------------------------------------------------------------------------------------------------------- progress */

typedef struct watcher {
    fr_progress loading;
    bool quiet, verbose;
} watcher;

static void say_doing(void *context, const char *what) {
    watcher *w = context;
    fr_progress_end(&w->loading);
    if (!w->quiet && isatty(STDERR_FILENO)) fprintf(stderr, "\r\033[K%s", what ? what : "");
}

static void say_line(void *context, fr_log_level level, const char *line) {
    const watcher *w = context;
    if (!w->quiet && level >= (w->verbose ? FR_LOG_INFO : FR_LOG_WARN)) fr_note("%s", line);
}

/* ----------------------------------------------------------------------------------------------------------- a plan */

/* Reads an option's list of numbers. If the option was not given, takes the defaults. */
static int take_list(fr_bench_list *list, const fr_arguments *args, fr_arg arg, const int64_t *defaults, size_t count) {
    list->count = fr_arguments_numbers(args, arg, list->at, FR_BENCH_LIST);
    if (list->count == FR_BENCH_LIST) return fr_wrong_usage("a list of %d numbers or more", FR_BENCH_LIST);
    if (args->given[arg]) return 0;
    for (; list->count < count; list->count++) list->at[list->count] = defaults[list->count];
    return 0;
}

static int take_lists(fr_bench_model_plan *plan, const fr_arguments *args) {
    static const int64_t prompts[] = {512}, generate[] = {128}, depths[] = {0, 4096, 16384};
    static const int64_t rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 16}, drafts[] = {1, 2, 3, 4, FR_DRAFT_AUTO};
    /* With made-up (synthetic) acceptance rates each number of drafts is measured. Without them only the automatic
     * number is measured. */
    bool sweep = args->given[FR_ARG_BENCH_SYNTH_RATES];
    int code = take_list(&plan->threads, args, FR_ARG_BENCH_THREADS, NULL, 0);
    if (!code) code = take_list(&plan->prompts, args, FR_ARG_BENCH_PROMPT, prompts, 1);
    if (!code) code = take_list(&plan->generate, args, FR_ARG_BENCH_GENERATE, generate, 1);
    if (!code) code = take_list(&plan->depths, args, FR_ARG_BENCH_DEPTH, depths, 3);
    if (!code) code = take_list(&plan->drafts, args, FR_ARG_BENCH_DRAFTS, sweep ? drafts : drafts + 4, sweep ? 5 : 1);
    if (!code) code = take_list(&plan->rows, args, FR_ARG_BENCH_ROWS, rows, 9);
    size_t kept = 0; /* --rows 0 switches the measurement off, so a 0 is left out */
    for (size_t i = 0; !code && i < plan->rows.count; i++) {
        if (plan->rows.at[i] > FR_STEP_MAX) return fr_wrong_usage("bench model takes --rows up to %d", FR_STEP_MAX);
        if (plan->rows.at[i] > 0) plan->rows.at[kept++] = plan->rows.at[i];
    }
    plan->rows.count = kept;
    return code;
}

static int take_rates(fr_bench_model_plan *plan, const char *text) {
    for (const char *item = text; item;) {
        char *end;
        double rate = strtod(item, &end);
        if (end == item || (*end && *end != ',') || !(rate >= 0 && rate <= 1) || plan->rate_count == FR_STEP_MAX - 1)
            return fr_wrong_usage("--spec-synth-rates %s: up to %d numbers from 0 to 1, such as 0.8,0.6,0.5", text,
                                  FR_STEP_MAX - 1);
        plan->rates[plan->rate_count++] = rate;
        item = *end ? end + 1 : NULL;
    }
    return 0;
}

/* Gives the number of tokens that the speculation test generates after each prompt. The default is less than the 128
 * tokens of the plain generation test, because each text is run many times. */
static size_t text_tokens(const fr_bench_model_plan *plan, const fr_arguments *args) {
    int64_t most = 0;
    for (size_t i = 0; i < plan->generate.count; i++)
        if (plan->generate.at[i] > most) most = plan->generate.at[i];
    return args->given[FR_ARG_BENCH_GENERATE] || plan->rate_count ? (size_t)most : 64;
}

_Static_assert((int)FR_PAIRS_MAX <= (int)FR_BENCH_LIST, "a plan holds every -pg");

static int make_plan(fr_bench_model_plan *plan, const fr_arguments *args) {
    *plan = (fr_bench_model_plan){.model = args->text[FR_ARG_MODEL],
                                  .drafter = args->text[FR_ARG_DRAFTER],
                                  .spec_type = args->text[FR_ARG_BENCH_SPEC_TYPE],
                                  .prompt_folder = args->text[FR_ARG_BENCH_PROMPTS],
                                  .drafts_asked = args->given[FR_ARG_BENCH_DRAFTS],
                                  .depths_fit = !args->given[FR_ARG_BENCH_DEPTH],
                                  .phases =
                                      args->given[FR_ARG_BENCH_PHASES] ? (size_t)args->number[FR_ARG_BENCH_PHASES] : 0,
                                  .repetitions = 5,
                                  .max_spread = 20};
    if (args->given[FR_ARG_BENCH_REPETITIONS]) plan->repetitions = (size_t)args->number[FR_ARG_BENCH_REPETITIONS];
    if (args->given[FR_ARG_BENCH_SPREAD]) plan->max_spread = args->real[FR_ARG_BENCH_SPREAD];
    for (const char *list = args->text[FR_ARG_BENCH_ISA]; list && plan->isa_count < FR_BENCH_LIST;) {
        size_t length = strcspn(list, ",");
        snprintf(plan->isas[plan->isa_count++], sizeof plan->isas[0], "%.*s", (int)length, list);
        list = list[length] ? list + length + 1 : NULL;
    }
    for (size_t i = 0; i < args->pair_count; i++)
        plan->both[plan->both_count++] = (fr_bench_both){(size_t)args->pairs[i][0], (size_t)args->pairs[i][1]};
    int code = take_lists(plan, args);
    if (!code) code = take_rates(plan, args->text[FR_ARG_BENCH_SYNTH_RATES]);
    plan->text_tokens = text_tokens(plan, args);
    return code;
}

/* -------------------------------------------------------------------------------------------------------- a picture */

static const char style[] = "<style>text{font-family:system-ui,sans-serif;fill:#5d6675;font-size:13px}"
                            ".grid{stroke:#e2e0da}.axis{stroke:#5d6675}.rule{stroke:#1c2330;stroke-dasharray:4 4}"
                            ".line{fill:none;stroke:#1b8a5a;stroke-width:2}.dot{fill:#1b8a5a}"
                            ".band{fill:#1b8a5a;opacity:.15}.limit{fill:none;stroke:#b86e00;stroke-width:2}"
                            ".limits{fill:#b86e00}</style>\n"
                            "<rect width=\"380\" height=\"284\" fill=\"#fff\"/>\n";

/* Collects the points of one quantity of the curve. Unknown values, which are NaN, become no points. */
static size_t points_of(const fr_bench_curve *curve, const double *figure, double *x, double *y) {
    size_t count = 0;
    for (size_t i = 0; i < curve->count; i++) {
        if (isnan(curve->ratio[i]) || isnan(figure[i])) continue;
        x[count] = curve->rows[i];
        y[count++] = figure[i];
    }
    return count;
}

static void draw_line(const fr_plot *plot, const char *line, const char *dot, const char *name, const double *x,
                      const double *y, size_t count) {
    char text[64];
    if (count) fr_plot_line(plot, line, x, y, count);
    for (size_t i = 0; i < count; i++) {
        snprintf(text, sizeof text, "%s at K = %.0f: %.3f", name, x[i], y[i]);
        fr_plot_dot(plot, dot, x[i], y[i], text);
    }
}

/* Draws the title above the plot, and a legend of the colours. */
static void draw_head(const fr_bench_curve *curve, FILE *out) {
    fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 380 284\">\n%s", style);
    fprintf(out, "<text x=\"56\" y=\"18\">T(K)/T(1)%s, context %zu</text>\n", curve->how, curve->depth);
    fprintf(out, "<text class=\"dot\" x=\"56\" y=\"36\">measured, with its spread</text>\n");
    if (curve->count && !isnan(curve->limit[0]))
        fprintf(out, "<text class=\"limits\" x=\"240\" y=\"36\">L(K), the limit</text>\n");
}

static void draw(const fr_bench_curve *curve, FILE *out) {
    double x[FR_STEP_MAX], y[FR_STEP_MAX], spread[FR_STEP_MAX], low[FR_STEP_MAX], top[FR_STEP_MAX];
    double widest = 1, highest = 1;
    size_t count = points_of(curve, curve->ratio, x, y);
    points_of(curve, curve->spread, x, spread);
    for (size_t i = 0; i < count; i++) {
        low[i] = y[i] * (1 - spread[i] / 200);
        top[i] = y[i] * (1 + spread[i] / 200);
        widest = fmax(widest, x[i]);
        highest = fmax(highest, top[i]);
    }
    draw_head(curve, out);
    fprintf(out, "<svg y=\"44\" height=\"240\">\n");
    fr_plot plot = fr_plot_begin(out, "T(K)/T(1) over K", (fr_axis){0.5, widest + 0.5, "rows K", ""},
                                 (fr_axis){0, 1.1 * highest, "T(K)/T(1)", ""});
    fr_plot_x_ticks(&plot);
    fr_plot_rule_across(&plot, 1);
    if (count) fr_plot_band(&plot, "band", x, low, top, count);
    size_t limits = points_of(curve, curve->limit, x, low);
    draw_line(&plot, "limit", "limits", "L(K)", x, low, limits);
    count = points_of(curve, curve->ratio, x, y);
    draw_line(&plot, "line", "dot", "T(K)/T(1)", x, y, count);
    fr_plot_end(&plot);
    fprintf(out, "</svg>\n</svg>\n");
}

/* ------------------------------------------------------------------------------------------------------ the command */

static int run(const fr_arguments *args, fr_bench_model_plan *plan, fr_bench_report *report, fr_bench_curve *curve) {
    bool quiet = args->given[FR_ARG_QUIET];
    watcher w = {fr_progress_begin("loading", quiet), quiet, args->given[FR_ARG_VERBOSE]};
    int code = fr_loaded_options(&plan->options, args);
    if (code) return code;
    fr_options_set_progress(plan->options, fr_progress_show, &w.loading);
    fr_options_set_log(plan->options, say_line, &w);
    plan->doing = say_doing;
    plan->context = &w;
    fr_status status = fr_bench_model(plan, report, curve);
    say_doing(&w, NULL);
    fr_options_free(plan->options);
    return fr_exit_status(status);
}

int fr_bench_model_part(const fr_arguments *args, fr_bench_report *report) {
    fr_bench_model_plan plan;
    fr_bench_curve curve;
    fr_writer picture;
    bool draws = args->given[FR_ARG_BENCH_PLOT];
    if (!args->given[FR_ARG_MODEL]) return fr_wrong_usage("bench model needs -m MODEL");
    if (args->given[FR_ARG_BENCH_PROMPTS] && args->given[FR_ARG_BENCH_SYNTH_RATES])
        return fr_wrong_usage("--prompts and --spec-synth-rates exclude each other: rates need no text");
    int code = make_plan(&plan, args);
    if (!code && draws) code = fr_writer_open(&picture, args->text[FR_ARG_BENCH_PLOT]);
    if (code) return code;
    code = run(args, &plan, report, &curve);
    if (!draws) return code;
    if (code) {
        fr_writer_abandon(&picture);
        return code;
    }
    draw(&curve, picture.file);
    return fr_writer_close(&picture);
}
