/* Times verifying K rows and drafting, and computes how many drafts must be accepted for speculation to pay.
 *
 * In: an opened model, perhaps a drafter. Out: a table of T(K)/T(1) at each depth, and a table of the draft step. T(K)
 * is the time of one forward of K rows with all their logits. T(K) and T(1) are measured in turn. The first table also
 * has L(K), the lowest value of T(K)/T(1) that this machine allows. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/sizes.h"
#include "bench/caches.h"
#include "bench/limits.h"
#include "bench/measure.h"
#include "bench/model_run.h"

#define BANDWIDTH  ((size_t)1 << 30) /* bytes that are read to measure the bandwidth */
/* If the weights have fewer bytes than this, they may be in a cache. L(K) is then unknown, because the bandwidth of
 * caches is not measured. */
#define MEMORY     2.5e8
#define PAIRS_MORE 3 /* the repetitions are multiplied by this number, because a pair of forwards is short */

/* ------------------------------------------------------------------------------------------------------- draft step */

enum { BEFORE = 128 }; /* number of ids that fr_bench_begin_drafts runs */

/* Returns true if a forward of the target reads so many bytes that the weights of a draft step do not stay in the
 * caches. */
static bool forward_clears_caches(const fr_bench_run *run) {
    fr_bench_cache caches[FR_BENCH_CACHES];
    double largest = MEMORY / 2;
    size_t count = fr_bench_caches(caches);
    if (count > 0) largest = (double)caches[count - 1].bytes;
    return fr_bench_cost_of(run->session, 1, 0).bytes >= 2 * largest;
}

/* Measures the bandwidth of memory just before draft steps are timed. Returns NaN if the drafter's weights may be in a
 * cache. */
static double bandwidth_of_step(fr_bench_run *run, fr_pool *pool) {
    if (!forward_clears_caches(run)) return NAN;
    fr_bench_doing(run, "memory's bandwidth");
    double bandwidth = fr_bench_read_bandwidth(pool, BANDWIDTH, 5);
    fr_bench_doing(run, "draft step");
    return bandwidth > 0 ? bandwidth : NAN;
}

/* Holds timings of drafting.
 *     steps   seconds of one draft step, computed from proposals of 5 drafts and of `drafts` drafts
 *     starts  seconds of starting a proposal, computed from the same two proposals
 *     all     seconds of proposing `drafts` drafts, which is the largest number in one round
 *     firsts  seconds of proposing a single draft right after a forward */
typedef struct step_timings {
    double steps[FR_BENCH_TIMINGS], starts[FR_BENCH_TIMINGS], all[FR_BENCH_TIMINGS], firsts[FR_BENCH_TIMINGS];
    size_t count, drafts; /* count: number of timings; drafts: number of drafts in a proposal */
} step_timings;

/* Adds the line about draft steps to the table. Starting a proposal may take almost no time. So the spread of that time
 * is given in seconds, as the distance between the quartiles, and not in per cent. */
static void put_drafts(fr_bench_run *run, const step_timings *t, double bandwidth) {
    static const fr_bench_column own[] = {{"step_ns", NULL, 0},
                                          {NULL, "a step, ms", 3},
                                          {"step_spread", "spread, %", 1},
                                          {NULL, "starting, ms", 3},
                                          {NULL, "±, ms", 3},
                                          {"start_ns", NULL, 0},
                                          {"start_spread_ns", NULL, 0},
                                          {"step_bytes", NULL, 0},
                                          {NULL, "MB a step", 1},
                                          {"first_ns", NULL, 0},
                                          {NULL, "one after a forward, ms", 3},
                                          {"first_bytes", NULL, 0},
                                          {NULL, "MB of it", 1},
                                          {"read_gb_s", "memory, GB/s", 1},
                                          {"step_over_read", "step over reading", 3}};
    double bytes = fr_bench_draft_bytes(run->drafter), first_bytes = fr_bench_first_draft_bytes(run->drafter);
    fr_bench_figure step = fr_bench_figure_kept(t->steps, t->count), start = fr_bench_figure_kept(t->starts, t->count);
    fr_bench_figure first = fr_bench_figure_kept(t->firsts, t->count);
    double limit = run->plan->max_spread, after = first.middle;
    fr_bench_begin(run, "draft", "Drafting", own, sizeof own / sizeof *own);
    char name[sizeof "draft" + 3 * sizeof t->drafts];
    snprintf(name, sizeof name, "draft%zu", t->drafts);
    fr_bench_test test = {.name = name, .depth = BEFORE, .tokens = t->drafts, .seconds = t->all, .count = t->count};
    fr_bench_begin_row(run, &test);
    fr_bench_put(run, &step, rint(run->draft_step * 1e9));
    fr_bench_from(run->report, &step, run->draft_step * 1e3, limit);
    fr_bench_number(run->report, step.spread);
    double apart = fabs(start.spread * start.middle / 100);
    fr_bench_from(run->report, &step, run->draft_start * 1e3, limit);
    fr_bench_number(run->report, apart * 1e3);
    fr_bench_number(run->report, rint(run->draft_start * 1e9));
    fr_bench_number(run->report, rint(apart * 1e9));
    fr_bench_number(run->report, bytes);
    fr_bench_number(run->report, bytes / 1e6);
    fr_bench_number(run->report, rint(after * 1e9));
    fr_bench_number(run->report, after * 1e3);
    fr_bench_number(run->report, first_bytes);
    fr_bench_number(run->report, first_bytes / 1e6);
    fr_bench_number(run->report, bandwidth / 1e9);
    fr_bench_number(run->report, after * bandwidth / first_bytes);
    fr_bench_end(run);
    if (!isnan(bandwidth))
        fr_bench_remark(run->report, "A draft step over reading: the time of one draft after a forward, which leaves "
                                     "none of its weights in a cache, over that of their bytes alone, as fast as "
                                     "memory was read right before.");
}

/* Times the forward of a block drafter, which makes all drafts of a round at once. All of its time counts as the time
 * of starting a proposal, because no draft takes a step of its own. */
static fr_status time_blocks(fr_session *session, step_timings *t) {
    FR_TRY(fr_bench_time_drafts(session, t->drafts, t->all));
    for (size_t i = 0; i < t->count; i++) {
        fr_bench_forward(session, 1, session->cache.kv.length);
        FR_TRY(fr_bench_time_drafts(session, t->drafts, &t->all[i]));
        t->steps[i] = isnan(t->all[i]) ? NAN : 0;
        t->starts[i] = t->firsts[i] = t->all[i];
    }
    return FR_OK;
}

/* Gives the largest fixed number of drafts in the plan (FR_DRAFT_AUTO is not a fixed number), or 0 if there is none. */
static size_t most_drafts(const fr_bench_list *drafts) {
    int64_t most = 0;
    for (size_t i = 0; i < drafts->count; i++)
        if (drafts->at[i] > most) most = drafts->at[i];
    return (size_t)most;
}

/* Times drafts. The session itself runs the forward before each timing, so that the same team of threads runs the
 * forward and the drafts, as in a round. most: the largest number of drafts that the plan names, or 0 if it names
 * none. */
static fr_status time_drafts(fr_session *session, size_t most, step_timings *t) {
    double five;
    size_t block = session->drafting.draft->block;
    FR_TRY(fr_bench_begin_drafts(session));
    t->drafts = block && most ? fr_smaller(block, most) : block ? block : FR_STEP_MAX - 1;
    if (block) return time_blocks(session, t);
    /* the first proposal also allocates pages, so it does not count */
    FR_TRY(fr_bench_time_drafts(session, t->drafts, t->all));
    for (size_t i = 0; i < t->count; i++) {
        FR_TRY(fr_bench_time_drafts(session, 5, &five));
        FR_TRY(fr_bench_time_drafts(session, t->drafts, &t->all[i]));
        t->steps[i] = (t->all[i] - five) / (double)(t->drafts - 5);
        t->starts[i] = five - 5 * t->steps[i];
        fr_bench_forward(session, 1, session->cache.kv.length);
        FR_TRY(fr_bench_time_drafts(session, 1, &t->firsts[i]));
    }
    return FR_OK;
}

static fr_status time_draft_step(fr_bench_run *run, fr_session *session) {
    static step_timings t;
    t.count = PAIRS_MORE * run->plan->repetitions;
    double bandwidth = bandwidth_of_step(run, session->engine->pool);
    FR_TRY(time_drafts(session, most_drafts(&run->plan->drafts), &t));
    if (isnan(t.steps[0])) return FR_OK;
    fr_bench_figure step = fr_bench_figure_kept(t.steps, t.count), start = fr_bench_figure_kept(t.starts, t.count);
    run->draft_step = step.middle;
    run->draft_start = fmax(0, start.middle);
    put_drafts(run, &t, bandwidth);
    return FR_OK;
}

fr_status fr_bench_model_drafts(fr_bench_run *run) {
    fr_session *session;
    if (!run->drafter) return FR_OK;
    fr_bench_doing(run, "draft step");
    FR_TRY(fr_bench_session(run, FR_STEP_MAX - 1, BEFORE + 2 * FR_STEP_MAX, &session));
    fr_status status = time_draft_step(run, session);
    fr_session_close(session);
    return status;
}

/* ------------------------------------------------------------------------------------------------------------- T(K) */

/* Gives E(a) = 1 + a + ... + a^drafts, the expected number of tokens of a round if each draft is accepted with
 * probability a. */
static double expected(size_t drafts, double a) {
    double sum = 1;
    for (size_t i = 0; i < drafts; i++) sum = 1 + a * sum;
    return sum;
}

double fr_bench_break_even(size_t drafts, double cost) {
    double low = 0, high = 1;
    if (cost <= 1) return 0;
    if (!(cost <= expected(drafts, 1))) return NAN;
    for (int i = 0; i < 60; i++) {
        double middle = 0.5 * (low + high);
        if (expected(drafts, middle) < cost)
            low = middle;
        else
            high = middle;
    }
    return high;
}

typedef struct limits {
    fr_bench_limits most; /* the machine's limits; NaN if unknown */
    fr_bench_cost one;    /* cost of one row at position 0, or at the measured depth if the model attends to latents */
} limits;

static limits measure_limits(fr_bench_run *run) {
    limits l = {{NAN, NAN, NAN}, fr_bench_cost_of(run->session, 1, 0)};
    if (l.one.bytes < MEMORY) return l;
    fr_bench_doing(run, "the machine's limits");
    double bandwidth = fr_bench_read_bandwidth(run->session->engine->pool, BANDWIDTH, 5);
    fr_bench_limits most = fr_bench_limits_now(run->session, bandwidth);
    if (bandwidth > 0 && most.peak > 0) l.most = most;
    return l;
}

/* Gives L(rows) at a depth. Only for attention over latents does a forward's cost include the reads of attention. So
 * for any other attention the limit is known only for an empty context. */
static double limit_at(const fr_bench_run *run, size_t depth, const fr_bench_cost *cost, const limits *l) {
    if (isnan(l->most.peak) || (depth && l->one.attention == 0)) return NAN;
    fr_bench_cost one = depth ? fr_bench_cost_of(run->session, 1, depth) : l->one;
    return fr_bench_row_limit(&one, cost, &l->most);
}

/* Holds the times T(rows) and the ratios T(rows)/T(1). T(1) is measured right before each T(rows), so that changes of
 * the machine's speed affect both. */
typedef struct row_timings {
    double seconds[FR_BENCH_TIMINGS], ones[FR_BENCH_TIMINGS], ratios[FR_BENCH_TIMINGS];
    size_t count;
} row_timings;

static void time_rows(const fr_bench_run *run, size_t rows, size_t depth, row_timings *t) {
    t->count = PAIRS_MORE * run->plan->repetitions;
    fr_bench_forward(run->session, rows, depth);
    for (size_t i = 0; i < t->count; i++) {
        t->ones[i] = fr_bench_forward(run->session, 1, depth);
        t->seconds[i] = rows == 1 ? t->ones[i] : fr_bench_forward(run->session, rows, depth);
        t->ratios[i] = t->seconds[i] / t->ones[i];
    }
}

/* Stores the figures of the first depth. The picture shows them, and the gain of speculation is predicted from
 * them. */
static void keep(fr_bench_run *run, size_t rows, const row_timings *t, double limit) {
    fr_bench_figure ratio = fr_bench_figure_kept(t->ratios, t->count), one = fr_bench_figure_kept(t->ones, t->count);
    fr_bench_curve *curve = run->curve;
    run->ratio[rows] = ratio.middle;
    run->one = one.middle;
    if (strcmp(curve->how, run->how) != 0 || curve->count == FR_STEP_MAX) return;
    size_t at = curve->count++;
    curve->rows[at] = (double)rows;
    curve->ratio[at] = ratio.middle;
    curve->spread[at] = ratio.spread;
    curve->limit[at] = limit;
}

/* Adds the cells of the line about forwards of `rows` rows. read: the cost of a forward of that many rows. */
static void put_cells(fr_bench_run *run, size_t rows, const row_timings *t, const fr_bench_cost *read, double limit) {
    double spread = run->plan->max_spread, drafts = (double)rows - 1;
    fr_bench_figure time = fr_bench_figure_kept(t->seconds, t->count), one = fr_bench_figure_kept(t->ones, t->count);
    fr_bench_figure ratio = fr_bench_figure_kept(t->ratios, t->count);
    /* seconds of making all drafts of a round */
    double draft = rows > 1 ? run->draft_start + drafts * run->draft_step : NAN;
    double cost = ratio.middle + (run->drafter ? draft / one.middle : 0);
    double even = rows > 1 ? fr_bench_break_even(rows - 1, cost) : NAN;
    double rate = read->bytes / time.middle / 1e9;
    fr_bench_from(run->report, &time, rate, spread);
    fr_bench_number(run->report, (double)rows);
    fr_bench_put(run, &ratio, ratio.middle);
    fr_bench_number(run->report, ratio.spread);
    fr_bench_number(run->report, limit);
    fr_bench_from(run->report, &ratio, ratio.middle / limit, spread);
    fr_bench_number(run->report, drafts);
    fr_bench_number(run->report, draft * 1e3);
    fr_bench_from(run->report, &ratio, even, spread);
    if (!isnan(read->experts)) fr_bench_number(run->report, read->experts);
}

/* Adds the line about forwards of `rows` rows to the table. first: true if `depth` is the plan's first depth. */
static void put_row(fr_bench_run *run, size_t rows, size_t depth, bool first, const limits *l) {
    char name[64], words[32];
    row_timings t;
    fr_bench_cost cost = fr_bench_cost_of(run->session, rows, depth);
    double limit = limit_at(run, depth, &cost, l);
    snprintf(words, sizeof words, "T(%zu)", rows);
    fr_bench_name(name, sizeof name, words, depth);
    fr_bench_doing(run, name);
    time_rows(run, rows, depth, &t);
    if (first) keep(run, rows, &t, limit);
    fr_bench_begin_row(
        run, &(fr_bench_test){.name = name, .depth = depth, .tokens = rows, .seconds = t.seconds, .count = t.count});
    put_cells(run, rows, &t, &cost, limit);
}

static void put_remarks(const fr_bench_run *run, const limits *l) {
    if (!isnan(l->most.peak))
        fr_bench_remark(run->report,
                        "Memory is read at %.1f GB/s, measured before: a step reads %.3f GB of weights. Products are "
                        "at most %.0f GMAC/s: a row has %.3f GMAC.",
                        l->most.bandwidth / 1e9, l->one.bytes / 1e9, l->most.peak / 1e9, l->one.macs / 1e9);
    if (!isnan(l->most.peak) && l->one.attention > 0)
        fr_bench_remark(run->report,
                        "Attention among latents is at most %.0f GMAC/s. L(K) has its multiply-adds, one after the "
                        "other with reading: of the latents once for all rows and heads.",
                        l->most.attention / 1e9);
    if (!isnan(l->one.experts))
        fr_bench_remark(run->report,
                        "Of a mixture's experts those count as read that the K rows chose: how many of a layer, the "
                        "mean over its layers, is in the last column.");
    fr_bench_remark(run->report, "Break-even: the chance of each draft to stand, where those before it stood, from "
                                 "which on K - 1 drafts a round are faster than none. Empty: they never are.");
}

void fr_bench_model_rows(fr_bench_run *run) {
    static const fr_bench_column own[] = {{"weights_gb_s", "GB/s of weights", 1},
                                          {"rows", "K", 0},
                                          {"over_one", "T(K)/T(1)", 3},
                                          {"over_one_spread", "spread, %", 1},
                                          {"limit", "L(K)", 3},
                                          {"over_limit", "over L(K)", 3},
                                          {"drafts", "drafts, K-1", 0},
                                          {"draft_ms", "drafting, ms", 3},
                                          {"break_even", "break-even acceptance", 3},
                                          {"experts_mean", "experts read", 1}};
    const fr_bench_list *rows = &run->plan->rows;
    if (rows->count == 0) return;
    limits l = measure_limits(run);
    fr_bench_begin(run, "rows", "Verifying K rows", own, sizeof own / sizeof *own - isnan(l.one.experts));
    for (size_t d = 0; d < run->depths.count; d++) {
        fr_bench_fill(run->session, (size_t)run->depths.at[d]);
        for (size_t k = 0; k < rows->count; k++)
            put_row(run, (size_t)rows->at[k], (size_t)run->depths.at[d], d == 0, &l);
    }
    fr_bench_end(run);
    put_remarks(run, &l);
}
