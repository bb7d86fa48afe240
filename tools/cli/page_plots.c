/* Draws the plots of a trace's page (page.h). */
#include <math.h>
#include <stdlib.h>

#include "tools/cli/page.h"
#include "tools/cli/plot.h"

enum { BINS_MAX = 40, ROUNDS_PER_BIN = 8, MARGIN_BINS = 6, QUARTILES_FROM = 4 };

static const fr_axis percent = {0, 100, "drafts accepted", "%"};

static void begin_figure(FILE *out, const char *title, const char *says) {
    fprintf(out, "<figure><figcaption><b>%s</b> %s</figcaption>\n", title, says);
}

/* ------------------------------------------------------------------------------------------------------- acceptance */

/* Draws a bar for the share of n drafts that was accepted, with its confidence interval. The bar's tooltip shows the
 * numbers. */
static void share_bar(const fr_plot *plot, double x, double width, double accepted, double n) {
    char tip[96];
    double low, high;
    fr_wilson(accepted, n, &low, &high);
    snprintf(tip, sizeof(tip), "%.0f of %.0f accepted: %.1f%% (%.1f to %.1f)", accepted, n, 100 * accepted / n,
             100 * low, 100 * high);
    fr_plot_bar(plot, "accepted", x, width, 100 * accepted / n, tip);
    fr_plot_whisker(plot, x, 100 * low, 100 * high);
}

static void plot_depths(const fr_sums *sums, FILE *out) {
    size_t depths = 0;
    while (depths < FR_STEP_MAX - 1 && sums->at_depth[depths][FR_DEPTH_DRAFTED] > 0) depths++;
    if (depths == 0) return;
    begin_figure(out, "Acceptance by depth",
                 "Solid: of the drafts whose predecessors all stood. Pale: of all that were drafted.");
    fr_axis axis = {0.4, (double)depths + 0.6, "depth of the draft", ""};
    fr_plot plot = fr_plot_begin(out, "Acceptance by depth", axis, percent);
    for (size_t d = 0; d < depths; d++) {
        const double *of = sums->at_depth[d];
        char name[24], under[32], tip[96];
        snprintf(name, sizeof(name), "%zu", d + 1);
        snprintf(under, sizeof(under), depths > 8 ? "%.0f" : "n = %.0f", of[FR_DEPTH_COMPARED]);
        snprintf(tip, sizeof(tip), "%.0f of %.0f drafted were accepted", of[FR_DEPTH_ACCEPTED], of[FR_DEPTH_DRAFTED]);
        fr_plot_bar(&plot, "pale", (double)d + 1.2, 0.36, 100 * of[FR_DEPTH_ACCEPTED] / of[FR_DEPTH_DRAFTED], tip);
        if (of[FR_DEPTH_COMPARED] > 0)
            share_bar(&plot, (double)d + 0.82, 0.36, of[FR_DEPTH_ACCEPTED], of[FR_DEPTH_COMPARED]);
        fr_plot_x_name(&plot, (double)d + 1, name, under);
    }
    fr_plot_end(&plot);
    fprintf(out, "<p class=\"foot\">n: drafts compared with the target. Whiskers: 95%% intervals.</p></figure>\n");
}

typedef struct fr_bins {
    double x[BINS_MAX], share[BINS_MAX], low[BINS_MAX], high[BINS_MAX], drafted[BINS_MAX];
    size_t count, rounds; /* count: number of bins; rounds: number of rounds in each bin */
} fr_bins;

static size_t bin_size(const fr_record *record) {
    size_t rounds = record->round_count / BINS_MAX + 1;
    return rounds < ROUNDS_PER_BIN ? ROUNDS_PER_BIN : rounds;
}

static size_t bin_end(const fr_record *record, size_t from) {
    size_t end = from + bin_size(record);
    return end < record->round_count ? end : record->round_count;
}

/* Splits the rounds into bins of the same number of rounds. A bin without drafts is left out. */
static fr_bins bin_rounds(const fr_record *record) {
    fr_bins bins = {0};
    double tokens = 0;
    bins.rounds = bin_size(record);
    for (size_t from = 0; from < record->round_count; from += bins.rounds) {
        fr_sums sums = fr_record_sums(record, from, bin_end(record, from));
        size_t i = bins.count;
        bins.x[i] = tokens + sums.tokens / 2;
        tokens += sums.tokens;
        if (sums.drafted == 0) continue;
        fr_wilson(sums.accepted, sums.drafted, &bins.low[i], &bins.high[i]);
        bins.low[i] *= 100;
        bins.high[i] *= 100;
        bins.share[i] = 100 * sums.accepted / sums.drafted;
        bins.drafted[i] = sums.drafted;
        bins.count++;
    }
    return bins;
}

static void plot_over_time(const fr_record *record, const fr_sums *sums, FILE *out) {
    fr_bins bins = bin_rounds(record);
    if (bins.count < 2) return;
    begin_figure(out, "Acceptance over time", "Accepted of drafted, along the text.");
    fr_axis axis = {0, sums->tokens, "tokens generated", ""};
    fr_plot plot = fr_plot_begin(out, "Acceptance over time", axis, percent);
    fr_plot_x_ticks(&plot);
    fr_plot_band(&plot, "band", bins.x, bins.low, bins.high, bins.count);
    fr_plot_line(&plot, "line", bins.x, bins.share, bins.count);
    for (size_t i = 0; i < bins.count; i++) {
        char tip[64];
        snprintf(tip, sizeof(tip), "%.1f%% of %.0f drafts", bins.share[i], bins.drafted[i]);
        fr_plot_dot(&plot, "dot", bins.x[i], bins.share[i], tip);
    }
    fr_plot_rule_across(&plot, 100 * sums->accepted / sums->drafted);
    fr_plot_end(&plot);
    fprintf(out,
            "<p class=\"foot\">%zu points of %zu rounds. Dashed: all, %.1f%%. Band: 95%% intervals, drafts "
            "taken as independent.</p></figure>\n",
            bins.count, bins.rounds, 100 * sums->accepted / sums->drafted);
}

/* Plots acceptance against the target's margin, which is the difference of its two largest logits. The last bin has no
 * upper limit. */
static void plot_margins(const fr_record *record, FILE *out) {
    static const double ends[MARGIN_BINS] = {0.5, 1, 2, 4, 8, INFINITY};
    static const char *const names[MARGIN_BINS] = {"0&#8211;0.5", "0.5&#8211;1", "1&#8211;2",
                                                   "2&#8211;4",   "4&#8211;8",   "8+"};
    double n[MARGIN_BINS] = {0}, accepted[MARGIN_BINS] = {0}, all = 0;
    for (size_t i = 0; i < record->round_count; i++) {
        const fr_record_round *round = &record->rounds[i];
        for (size_t d = 0; d < round->drafted && d < round->count; d++) {
            size_t bin = 0;
            if (isnan(round->margins[d])) continue;
            while (bin < MARGIN_BINS - 1 && round->margins[d] >= ends[bin]) bin++;
            n[bin]++;
            accepted[bin] += d < round->accepted;
            all++;
        }
    }
    if (all == 0) return;
    begin_figure(out, "Acceptance by margin", "How sure the target was: its best logit minus the next.");
    fr_plot plot =
        fr_plot_begin(out, "Acceptance by margin", (fr_axis){0.4, MARGIN_BINS + 0.6, "margin, logits", ""}, percent);
    for (size_t bin = 0; bin < MARGIN_BINS; bin++) {
        char under[32];
        snprintf(under, sizeof(under), "n = %.0f", n[bin]);
        if (n[bin] > 0) share_bar(&plot, (double)bin + 1, 0.5, accepted[bin], n[bin]);
        fr_plot_x_name(&plot, (double)bin + 1, names[bin], under);
    }
    fr_plot_end(&plot);
    fprintf(out, "<p class=\"foot\">n: drafts compared with the target. Whiskers: 95%% intervals.</p></figure>\n");
}

/* ------------------------------------------------------------------------------------------------------------ calls */

static void plot_calls(const fr_sums *sums, FILE *out) {
    size_t most = 0;
    double highest = 0;
    for (size_t i = 0; i <= FR_STEP_MAX; i++) {
        if (sums->given[i] > 0) most = i;
        highest = fmax(highest, 100 * sums->given[i] / sums->calls);
    }
    begin_figure(out, "Tokens per target call", "How many tokens a forward of the target gave.");
    fr_plot plot = fr_plot_begin(out, "Tokens per target call", (fr_axis){0.4, (double)most + 0.6, "tokens", ""},
                                 (fr_axis){0, highest * 1.12, "share of calls", "%"});
    for (size_t i = 1; i <= most; i++) {
        char name[24], under[32], tip[64];
        snprintf(name, sizeof(name), "%zu", i);
        snprintf(under, sizeof(under), most > 8 ? "%.0f" : "n = %.0f", sums->given[i]);
        snprintf(tip, sizeof(tip), "%.0f of %.0f calls", sums->given[i], sums->calls);
        fr_plot_bar(&plot, "calls", (double)i, 0.6, 100 * sums->given[i] / sums->calls, tip);
        fr_plot_x_name(&plot, (double)i, name, under);
    }
    fr_plot_rule_up(&plot, sums->tokens / sums->calls);
    fr_plot_end(&plot);
    fprintf(out, "<p class=\"foot\">n: calls, %.0f in all. Dashed: the mean, %.2f tokens.</p></figure>\n", sums->calls,
            sums->tokens / sums->calls);
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Collects the times, in milliseconds, of all forwards with this many rows, and sorts them. Gives their number. */
static size_t collect(const fr_record *record, size_t rows, double *milliseconds) {
    size_t count = 0;
    for (size_t i = 0; i < record->round_count; i++)
        if (record->rounds[i].rows == rows) milliseconds[count++] = 1e3 * record->rounds[i].verify;
    qsort(milliseconds, count, sizeof(*milliseconds), compare_doubles);
    return count;
}

typedef struct fr_cost {
    size_t rows, n;
    double quarter, median, three_quarters;
} fr_cost;

/* Computes the median and the quartiles of the forward's time. They are computed for each number of rows with which a
 * forward was run. Gives the number of entries in `costs`. */
static size_t take_costs(const fr_record *record, fr_cost costs[FR_STEP_MAX]) {
    size_t count = 0;
    double *sorted = fr_resize(NULL, record->round_count, sizeof(*sorted));
    for (size_t rows = 1; rows <= FR_STEP_MAX; rows++) {
        size_t n = collect(record, rows, sorted);
        if (n > 0) costs[count++] = (fr_cost){rows, n, sorted[n / 4], sorted[n / 2], sorted[3 * n / 4]};
    }
    free(sorted);
    return count;
}

static void plot_costs(const fr_record *record, FILE *out) {
    fr_cost costs[FR_STEP_MAX];
    size_t count = take_costs(record, costs);
    double highest = 0;
    for (size_t i = 0; i < count; i++) highest = fmax(highest, costs[i].three_quarters);
    if (highest <= 0) return;
    begin_figure(out, "What a target call costs", "Its median time, by the rows that it ran: drafts and one more.");
    fr_plot plot = fr_plot_begin(out, "What a target call costs", (fr_axis){0.4, (double)count + 0.6, "rows", ""},
                                 (fr_axis){0, highest * 1.12, "milliseconds", ""});
    for (size_t i = 0; i < count; i++) {
        const fr_cost *cost = &costs[i];
        char name[24], under[32], tip[96];
        snprintf(name, sizeof(name), "%zu", cost->rows);
        snprintf(under, sizeof(under), count > 8 ? "%zu" : "n = %zu", cost->n);
        snprintf(tip, sizeof(tip), "median %.3f ms, quartiles %.3f and %.3f", cost->median, cost->quarter,
                 cost->three_quarters);
        fr_plot_bar(&plot, "verify", (double)i + 1, 0.6, cost->median, tip);
        if (cost->n >= QUARTILES_FROM) fr_plot_whisker(&plot, (double)i + 1, cost->quarter, cost->three_quarters);
        fr_plot_x_name(&plot, (double)i + 1, name, under);
    }
    fr_plot_end(&plot);
    fprintf(out, "<p class=\"foot\">n: calls. Whiskers: quartiles, of %d calls or more.</p></figure>\n",
            QUARTILES_FROM);
}

/* ------------------------------------------------------------------------------------------------------------- time */

typedef struct fr_phase {
    const char *class, *name;
    double seconds, n;
} fr_phase;

enum { PHASES = 5 };

/* Writes a duration with three digits. The unit is the largest one in which the duration is at least 1. */
static void put_duration(double seconds, FILE *out) {
    double value = seconds >= 1 ? seconds : seconds >= 1e-3 ? 1e3 * seconds : 1e6 * seconds;
    const char *unit = seconds >= 1 ? "s" : seconds >= 1e-3 ? "ms" : "&#181;s";
    fprintf(out, "%.*f %s", value >= 100 ? 0 : value >= 10 ? 1 : 2, value, unit);
}

static void put_phase_bar(const fr_phase phases[PHASES], double whole, FILE *out) {
    double at = 0;
    fprintf(out, "<svg class=\"flat\" viewBox=\"0 0 1000 36\" preserveAspectRatio=\"none\" role=\"img\" "
                 "aria-label=\"Where the time went\">\n");
    for (int i = 0; i < PHASES; i++) {
        double width = 1000 * phases[i].seconds / whole;
        fprintf(out, "<rect class=\"%s\" x=\"%.2f\" y=\"0\" width=\"%.2f\" height=\"36\">", phases[i].class, at, width);
        fprintf(out, "<title>%s</title></rect>\n", phases[i].name);
        at += width;
    }
    fprintf(out, "</svg>\n");
}

static void plot_time(const fr_record *record, const fr_sums *sums, FILE *out) {
    double rest = fmax(0, sums->seconds - sums->draft - sums->verify - sums->accept), whole = 0;
    const fr_phase phases[PHASES] = {
        {"prompt", "prompt", record->prompt_seconds, (double)record->prompt_forwards},
        {"draft", "draft", sums->draft, sums->drafting},
        {"verify", "verify", sums->verify, sums->calls},
        {"accept", "accept", sums->accept, sums->calls},
        {"other", "rest", rest, sums->calls},
    };
    for (int i = 0; i < PHASES; i++) whole += phases[i].seconds;
    if (whole <= 0) return;
    fprintf(out, "<figure class=\"wide\"><figcaption><b>Where the time went</b> Of ");
    put_duration(whole, out);
    fprintf(out, ": the prompt's forwards; proposing drafts; the target's forwards, by which drafts are verified; "
                 "comparing and committing; the rest of the steps.</figcaption>\n");
    put_phase_bar(phases, whole, out);
    fprintf(out, "<table><tr><th>phase</th><th>time</th><th>share</th><th>each</th><th>n</th></tr>\n");
    for (int i = 0; i < PHASES; i++) {
        fprintf(out, "<tr><td><i class=\"key %s\"></i>%s</td><td>", phases[i].class, phases[i].name);
        put_duration(phases[i].seconds, out);
        fprintf(out, "</td><td>%.1f%%</td><td>", 100 * phases[i].seconds / whole);
        if (phases[i].n > 0) put_duration(phases[i].seconds / phases[i].n, out);
        fprintf(out, "</td><td>%.0f</td></tr>\n", phases[i].n);
    }
    fprintf(out, "</table><p class=\"foot\">n: prompt forwards, rounds with drafts, target calls; each: the mean of "
                 "one.</p></figure>\n");
}

/* Plots the tokens per second along the text. Each point is the mean of a fixed number of rounds. */
static void plot_speed(const fr_record *record, const fr_sums *sums, FILE *out) {
    double x[BINS_MAX], y[BINS_MAX], tokens = 0, highest = 0;
    size_t rounds = bin_size(record), count = 0;
    for (size_t from = 0; from < record->round_count; from += rounds) {
        fr_sums part = fr_record_sums(record, from, bin_end(record, from));
        tokens += part.tokens;
        if (part.seconds <= 0) continue;
        x[count] = tokens - part.tokens / 2;
        y[count] = part.tokens / part.seconds;
        highest = fmax(highest, y[count++]);
    }
    if (count < 2) return;
    begin_figure(out, "Speed over time", "Tokens a second, along the text.");
    fr_plot plot = fr_plot_begin(out, "Speed over time", (fr_axis){0, sums->tokens, "tokens generated", ""},
                                 (fr_axis){0, highest * 1.12, "tokens a second", ""});
    fr_plot_x_ticks(&plot);
    fr_plot_line(&plot, "line speed", x, y, count);
    for (size_t i = 0; i < count; i++) {
        char tip[64];
        snprintf(tip, sizeof(tip), "%.1f tokens a second", y[i]);
        fr_plot_dot(&plot, "dot speed", x[i], y[i], tip);
    }
    fr_plot_rule_across(&plot, sums->tokens / sums->seconds);
    fr_plot_end(&plot);
    fprintf(out, "<p class=\"foot\">%zu points of %zu rounds. Dashed: all, %.1f tokens a second.</p></figure>\n", count,
            rounds, sums->tokens / sums->seconds);
}

void fr_page_plots(const fr_record *record, FILE *out) {
    fr_sums sums = fr_record_sums(record, 0, record->round_count);
    plot_time(record, &sums, out);
    if (sums.calls == 0) return;
    plot_depths(&sums, out);
    plot_over_time(record, &sums, out);
    plot_calls(&sums, out);
    plot_costs(record, out);
    plot_margins(record, out);
    plot_speed(record, &sums, out);
}
