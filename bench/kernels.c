/* Prints tables of all kernels (kernels.h). */
#include "bench/kernels.h"

#include <math.h>
#include <regex.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/word_list.h"
#include "bench/facts.h"
#include "bench/kernel_timing.h"
#include "bench/roofline.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { BLOCK = 32 };

/* Names the kinds of numbers that kernels multiply. Each kind has its own peak of multiply-adds. */
typedef struct bench {
    const fr_bench_kernels_plan *plan;
    fr_bench_report *report;
    regex_t filter;
    unsigned levels;
    fr_machine machine;

    /* the members below are for the current number of threads */
    size_t threads;
    fr_bench_bed *bed;
    fr_bench_roofline *roofline;                 /* NULL: no picture */
    fr_bench_roofs roofs[FR_ISA_SCALAR_FMA + 1]; /* peaks of the instruction sets whose kernels are wanted */
    bool counted;                                /* the processor's counters can be read */

    size_t done, total;
    size_t wrong, doubtful; /* wrong: number of kernels with wrong bits; doubtful: number of table cells whose spread is
                             * too large */
} bench;

/* --------------------------------------------------------------------------------------------------- wanted kernels */

static const char *word_of(fr_isa_level level) {
    return fr_isa_word(level == FR_ISA_SCALAR_FMA ? FR_ISA_SCALAR : level);
}

/* multiplies_integers returns true if a kernel multiplies integers of 8 bits, and multiplies_floats if it multiplies
 * floats. Attention does both: scores of keys that are codes come from integers. */
static bool multiplies_integers(const fr_bench_kernel *kernel) {
    size_t first = offsetof(fr_kernels, matmul_block);
    size_t last = offsetof(fr_kernels, matmul_biased) + sizeof((fr_kernels *)0)->matmul_biased;
    return (kernel->slot >= first && kernel->slot < last) || kernel->slot == offsetof(fr_kernels, attn);
}

static bool multiplies_floats(const fr_bench_kernel *kernel) {
    return !multiplies_integers(kernel) || kernel->slot == offsetof(fr_kernels, attn);
}

static bool wanted(const bench *b, const fr_bench_kernel *kernel) {
    return (b->levels >> kernel->level & 1) && regexec(&b->filter, kernel->name, 0, NULL, 0) == 0;
}

/* Gives the next wanted kernel of a slot after `build`, or NULL if there is none. If build is NULL, gives the first
 * wanted kernel. */
static const fr_bench_kernel *next_build(const bench *b, size_t slot, const fr_bench_kernel *build) {
    const fr_bench_kernel *end = fr_bench_kernels + fr_bench_kernel_count;
    for (build = build ? build + 1 : fr_bench_kernels; build < end; build++)
        if (build->slot == slot && wanted(b, build)) return build;
    return NULL;
}

/* Adds an instruction set by its name. On x86 the name `scalar` adds two levels: with and without fused
 * multiply-add. */
static fr_status add_level(bench *b, const char *word, size_t length) {
    unsigned here = fr_cpu_levels();
    for (fr_isa_level level = 0; fr_isa_word(level); level++) {
        if (strlen(fr_isa_word(level)) != length || memcmp(fr_isa_word(level), word, length) != 0) continue;
        if (!(here >> level & 1)) return fr_fail(FR_MACHINE, "this machine has no %.*s", (int)length, word);
        if (!fr_cpu_permits(level)) return fr_fail(FR_MACHINE, "the system does not permit %.*s", (int)length, word);
        b->levels |= 1u << level;
        if (level == FR_ISA_SCALAR) b->levels |= here & 1u << FR_ISA_SCALAR_FMA;
        return FR_OK;
    }
    return fr_fail(FR_USAGE, "isa %.*s is not known (%s)", length < 40 ? (int)length : 40, word,
                   fr_list_words(fr_isa_word).text);
}

static fr_status read_levels(bench *b) {
    const char *word = b->plan->isas;
    if (!word) b->levels = fr_cpu_levels();
    for (fr_isa_level level = 0; fr_isa_word(level); level++)
        if ((b->levels >> level & 1) && !fr_cpu_permits(level)) b->levels &= ~(1u << level);
    while (word) {
        size_t length = strcspn(word, ",");
        FR_TRY(add_level(b, word, length));
        word = word[length] ? word + length + 1 : NULL;
    }
    return FR_OK;
}

/* ----------------------------------------------------------------------------------------------------------- limits */

static const fr_bench_column limit_columns[] = {
    {"limit", "limit", 0}, {"isa", "instruction set", 0}, {"threads", "threads", 0},
    {"gb_s", "GB/s", 2},   {"gmac_s", "GMAC/s", 2},
};

static void tell_limit(bench *b, const char *name, const char *isa, double gb, double gmac) {
    fr_bench_text(b->report, name);
    fr_bench_text(b->report, isa);
    fr_bench_number(b->report, (double)b->threads);
    fr_bench_number(b->report, gb);
    fr_bench_number(b->report, gmac);
}

/* Makes a loop for the peak of multiply-adds. Its number of rounds is chosen so that one timing takes a millisecond or
 * two. */
static fr_bench_roof make_roof(fr_pool *pool, const fr_bench_peak *peak) {
    fr_bench_roof roof = {peak, 1000};
    for (double start, took = 0; took < 1e-3; roof.rounds *= 2) {
        start = fr_clock();
        fr_bench_multiply(pool, peak, roof.rounds);
        took = fr_clock() - start;
    }
    return roof;
}

static void measure_roof(bench *b, fr_pool *pool, fr_bench_operation operation, fr_isa_level level) {
    const fr_bench_peak *peak = fr_bench_peak_of(operation, word_of(level));
    bool floats = operation == FR_BENCH_FP32;
    char name[64];
    if (!peak) return;
    *(floats ? &b->roofs[level].floats : &b->roofs[level].integers) = make_roof(pool, peak);
    double rate = floats ? fr_bench_fma_peak(pool, word_of(level)) : fr_bench_dot_peak(pool, word_of(level));
    tell_limit(b, floats ? "float32 multiply-adds" : "int8 dot products", word_of(level), NAN, rate * 1e-9);
    snprintf(name, sizeof name, "%s %s", word_of(level), floats ? "float32" : "int8");
    if (b->roofline) fr_bench_roofline_peak(b->roofline, word_of(level), name, rate);
}

/* Measures the peaks of the instruction sets whose kernels are wanted. */
static void measure_roofs(bench *b, fr_pool *pool) {
    memset(b->roofs, 0, sizeof b->roofs);
    for (fr_isa_level level = 0; level < FR_ISA_SCALAR_FMA; level++) {
        bool floats = false, integers = false;
        for (size_t i = 0; i < fr_bench_kernel_count; i++) {
            const fr_bench_kernel *kernel = &fr_bench_kernels[i];
            if (kernel->level != level || !wanted(b, kernel)) continue;
            floats |= multiplies_floats(kernel);
            integers |= multiplies_integers(kernel);
        }
        if (floats) measure_roof(b, pool, FR_BENCH_FP32, level);
        if (integers) measure_roof(b, pool, FR_BENCH_INT8, level);
    }
}

static void measure_limits(bench *b, fr_pool *pool) {
    enum { READINGS = 9 };
    double readings[READINGS];
    char title[64];
    for (size_t i = 0; i < READINGS; i++) readings[i] = fr_bench_bed_bandwidth(b->bed);
    double bandwidth = fr_bench_median(readings, READINGS);
    snprintf(title, sizeof title, "forerun's kernels, %zu thread%s", b->threads, b->threads == 1 ? "" : "s");
    if (b->plan->plot) b->roofline = fr_bench_roofline_open(title, bandwidth);
    fr_bench_table(b->report, "limits", "Limits, measured now", limit_columns, COUNT(limit_columns));
    tell_limit(b, "reading memory", NULL, bandwidth * 1e-9, NAN);
    measure_roofs(b, pool);
}

/* ------------------------------------------------------------------------------------------------------------- rows */

/* The columns of the table. All figures are totals of one call on every thread. Columns without a heading are only in
 * the output for programs. They say how the other figures were computed. */
static const fr_bench_column columns[] = {
    {"kernel", "kernel", 0},
    {"isa", NULL, 0},
    {"shape", "shape", 0},
    {"rows", "rows", 0},
    {"threads", NULL, 0},
    {"where", NULL, 0},
    {"bits", "bits", 0},
    {"bytes", NULL, 0},
    {"macs", NULL, 0},
    {"blocks", NULL, 0},
    {"seconds", NULL, 0},
    {NULL, "µs", 1},
    {"spread", "spread %", 1},
    {"gb_s", "GB/s", 2},
    {"gmac_s", "GMAC/s", 2},
    {"limit", "limit", 0},
    {"of_limit", "of it %", 0},
    {"of_limit_spread", "spread %", 1},
    {"bandwidth_gb_s", NULL, 0},
    {"peak_gmac_s", NULL, 0},
    {"clock_ghz", NULL, 0},
    {"cycles_block", "cycles a block", 2},
    /* the columns below hold events that the processor counted */
    {"instructions_block", "instructions", 2},
    {"ipc", "a cycle", 2},
    {"l1_misses_block", "L1 misses", 3},
    {"l2_misses_block", "L2 misses", 3},
    {"llc_misses_block", "last misses", 3},
};
enum { COLUMNS = COUNT(columns), COUNTED = 5 };

static void tell_counts(const bench *b, const fr_bench_timing *t, double blocks) {
    double estimate = t->seconds.middle * t->clock * (double)b->threads;
    bool told = isfinite(blocks), counted = isfinite(t->counts[FR_BENCH_CYCLES]);
    fr_bench_number(b->report, (counted ? t->counts[FR_BENCH_CYCLES] : estimate) / blocks);
    fr_bench_number(b->report, t->counts[FR_BENCH_INSTRUCTIONS] / blocks);
    fr_bench_number(b->report, told ? t->counts[FR_BENCH_INSTRUCTIONS] / t->counts[FR_BENCH_CYCLES] : NAN);
    fr_bench_number(b->report, t->counts[FR_BENCH_L1_MISSES] / blocks);
    fr_bench_number(b->report, t->counts[FR_BENCH_L2_MISSES] / blocks);
    fr_bench_number(b->report, t->counts[FR_BENCH_LLC_MISSES] / blocks);
}

static void tell_figures(bench *b, const fr_bench_timing *t) {
    double seconds = t->same_bits ? t->seconds.middle : NAN, blocks = t->values / BLOCK, most = b->plan->max_spread;
    bool told = isfinite(seconds);
    b->doubtful += told && fr_bench_is_doubtful(&t->seconds, most);
    fr_bench_number(b->report, t->bytes);
    fr_bench_number(b->report, t->macs);
    fr_bench_number(b->report, blocks);
    fr_bench_from(b->report, &t->seconds, seconds, most);
    fr_bench_from(b->report, &t->seconds, seconds * 1e6, most);
    fr_bench_number(b->report, t->same_bits ? t->seconds.spread : NAN);
    fr_bench_from(b->report, &t->seconds, t->bytes / seconds * 1e-9, most);
    fr_bench_from(b->report, &t->seconds, t->macs > 0 ? t->macs / seconds * 1e-9 : NAN, most);
    fr_bench_text(b->report, told ? t->limit : NULL);
    fr_bench_from(b->report, &t->of_limit, told ? 100 * t->of_limit.middle : NAN, most);
    fr_bench_number(b->report, t->same_bits ? t->of_limit.spread : NAN);
    fr_bench_number(b->report, told ? t->bandwidth * 1e-9 : NAN);
    fr_bench_number(b->report, told ? t->peak * 1e-9 : NAN);
    fr_bench_number(b->report, told ? t->clock * 1e-9 : NAN);
    tell_counts(b, t, told ? blocks : NAN);
}

/* Adds a result to the roofline picture. A result is left out if its operands come from caches, if it is doubtful, or
 * if its limit is unknown. */
static void draw(bench *b, const fr_bench_kernel *kernel, const fr_bench_case *c, const fr_bench_timing *t) {
    char shape[64], series[128], tip[160];
    if (!b->roofline || !t->same_bits || !t->from_memory || !t->limit ||
        fr_bench_is_doubtful(&t->seconds, b->plan->max_spread))
        return;
    fr_bench_case_name(c, c->units, b->threads, shape, sizeof shape);
    snprintf(series, sizeof series, "%s, %s", kernel->name, shape);
    snprintf(tip, sizeof tip, "%s, %zu rows: %.1f GMAC/s", series, c->rows, t->macs / t->seconds.middle * 1e-9);
    fr_bench_roofline_point(b->roofline, word_of(kernel->level), series, tip, t->macs / t->bytes,
                            t->macs / t->seconds.middle);
}

static void time_kernel(bench *b, const fr_bench_kernel *kernel, const fr_bench_case *c, bool has_rows) {
    fr_bench_timing t;
    char shape[64];
    b->plan->progress(b->plan->context, kernel->name, b->done++, b->total);
    fr_bench_bed_time(b->bed, kernel, &b->roofs[kernel->level], &t);
    b->plan->progress(b->plan->context, NULL, b->done, b->total);
    fr_bench_case_name(c, t.units, b->threads, shape, sizeof shape);
    fr_bench_text(b->report, kernel->name);
    fr_bench_text(b->report, word_of(kernel->level));
    fr_bench_text(b->report, shape);
    fr_bench_number(b->report, has_rows ? (double)c->rows : NAN);
    fr_bench_number(b->report, (double)b->threads);
    fr_bench_text(b->report, t.from_memory ? "memory" : "cache");
    fr_bench_text(b->report, t.same_bits ? "equal" : "DIFFER");
    tell_figures(b, &t);
    draw(b, kernel, c, &t);
    b->wrong += !t.same_bits;
}

/* -------------------------------------------------------------------------------------------------------- all cases */

typedef fr_status shape_fn(bench *b, const fr_bench_kernel *definition, const fr_bench_shape *shape);

/* Calls `visit` for each pair of a shape of the group and a slot that has a wanted kernel. */
static fr_status each_shape(bench *b, fr_bench_group group, shape_fn *visit) {
    for (size_t k = 0; k < fr_bench_kernel_count; k++) {
        const fr_bench_kernel *definition = &fr_bench_kernels[k];
        const fr_bench_shape *shapes;
        size_t count = fr_bench_shapes(definition, &shapes);
        if (definition->level != FR_ISA_SCALAR || !next_build(b, definition->slot, NULL)) continue;
        for (size_t i = 0; i < count; i++)
            if (shapes[i].group == group) FR_TRY(visit(b, definition, &shapes[i]));
    }
    return FR_OK;
}

/* Gives the number of rows at index i of a shape's list of row counts, or 0 after the list's end. If the shape does not
 * work on rows, the list has a single entry, 1. */
static size_t rows_at(const bench *b, const fr_bench_shape *shape, size_t i) {
    if (shape->most_rows == 0) return i == 0;
    return (size_t)b->plan->rows[i] <= shape->most_rows ? (size_t)b->plan->rows[i] : 0;
}

static fr_status count_shape(bench *b, const fr_bench_kernel *definition, const fr_bench_shape *shape) {
    for (size_t i = 0; i < b->plan->row_count; i++)
        for (const fr_bench_kernel *k = NULL; (k = next_build(b, definition->slot, k));)
            b->total += rows_at(b, shape, i) > 0;
    return FR_OK;
}

static fr_status time_shape(bench *b, const fr_bench_kernel *definition, const fr_bench_shape *shape) {
    bool filled = false;
    for (size_t i = 0; i < b->plan->row_count; i++) {
        size_t rows = rows_at(b, shape, i);
        if (rows == 0) continue;
        fr_bench_case c = fr_bench_case_make(definition, shape, rows, b->threads, fr_bench_bed_room(b->bed));
        FR_TRY(fr_bench_bed_load(b->bed, definition, &c, shape->group == FR_BENCH_CACHED, !filled));
        filled = true;
        for (const fr_bench_kernel *k = NULL; (k = next_build(b, definition->slot, k));)
            time_kernel(b, k, &c, shape->most_rows > 0);
    }
    return FR_OK;
}

static fr_status time_group(bench *b, fr_bench_group group) {
    static const struct {
        const char *name, *title, *block;
    } tables[FR_BENCH_GROUPS] = {
        {"streamed", "Products, weights from memory", "weights with all rows"},
        {"cached", "Products, weights in the L2 cache", "weights with all rows"},
        {"attention", "Attention, 8 heads a row sharing keys and values, from memory",
         "cached values with all queries"},
        {"arrays", "Rows and arrays, in the caches", "values"},
    };
    fr_bench_column shown[COLUMNS];
    size_t before = b->total;
    b->total = 0;
    FR_TRY(each_shape(b, group, count_shape));
    bool empty = b->total == 0;
    b->total = before;
    if (empty) return FR_OK;
    memcpy(shown, columns, sizeof shown);
    for (size_t i = COLUMNS - COUNTED; i < COLUMNS && !b->counted; i++) shown[i].head = NULL;
    b->doubtful = 0;
    fr_bench_table(b->report, tables[group].name, tables[group].title, shown, COLUMNS);
    FR_TRY(each_shape(b, group, time_shape));
    fr_bench_remark(b->report, "A block is %d %s; cycles are of one core.", BLOCK, tables[group].block);
    if (b->doubtful)
        fr_bench_remark(b->report,
                        "Figures marked with ?, as their spread is above %g %% or, of one timing, not "
                        "known: %zu.",
                        b->plan->max_spread, b->doubtful);
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------------------- threads */

static void tell_counters(bench *b, int reason) {
    char text[128] = "instructions, cycles and misses, by perf_event_open";
    if (reason) snprintf(text, sizeof text, "none: perf_event_open: %s", strerror(reason));
    b->counted = reason == 0;
    fr_bench_fact_text(b->report, "counters", "the processor's counters", text);
}

static fr_status time_team(bench *b, fr_pool *pool, bool last) {
    FR_TRY(fr_bench_bed_open(pool, b->threads, b->plan->weight_bytes, b->plan->repetitions, &b->bed));
    if (b->done == 0) tell_counters(b, fr_bench_bed_no_counters(b->bed));
    measure_limits(b, pool);
    fr_status status = FR_OK;
    for (fr_bench_group group = 0; group < FR_BENCH_GROUPS && status == FR_OK; group++) status = time_group(b, group);
    if (b->roofline && last && status == FR_OK) fr_bench_roofline_write(b->roofline, b->plan->plot);
    fr_bench_roofline_close(b->roofline);
    fr_bench_bed_close(b->bed);
    b->roofline = NULL;
    b->bed = NULL;
    return status;
}

static fr_status time_threads(bench *b, size_t threads, bool last) {
    fr_pool *pool;
    fr_plan plan;
    fr_plan_make(&b->machine, threads, b->plan->pin, b->plan->numa, &plan);
    FR_TRY(fr_pool_open(&plan, &pool));
    b->threads = plan.threads;
    fr_status status = time_team(b, pool, last);
    fr_pool_close(pool);
    return status;
}

static fr_status time_all(bench *b) {
    size_t runs = b->plan->thread_count ? b->plan->thread_count : 1;
    for (fr_bench_group group = 0; group < FR_BENCH_GROUPS; group++) FR_TRY(each_shape(b, group, count_shape));
    if (b->total == 0) return fr_fail(FR_USAGE, "no kernel of these instruction sets and rows is called like that");
    b->total *= runs;
    FR_TRY(fr_machine_read(&b->machine));
    FR_TRY(fr_bench_machine_facts(b->report, NULL, 0));
    for (size_t i = 0; i < runs; i++)
        FR_TRY(time_threads(b, b->plan->thread_count ? (size_t)b->plan->threads[i] : 0, i + 1 == runs));
    return FR_OK;
}

fr_status fr_bench_kernels_run(const fr_bench_kernels_plan *plan, fr_bench_report *report, size_t *wrong) {
    static bench b;
    b = (bench){.plan = plan, .report = report};
    FR_TRY(read_levels(&b));
    if (regcomp(&b.filter, plan->filter ? plan->filter : "", REG_EXTENDED | REG_NOSUB))
        return fr_fail(FR_USAGE, "'%s' is no regular expression", plan->filter);
    fr_status status = time_all(&b);
    regfree(&b.filter);
    *wrong = b.wrong;
    return status;
}
