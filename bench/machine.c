/* Measures this machine's limits and prints them (machine.h). */
#include "bench/machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "bench/caches.h"
#include "bench/limits.h"

#define PAGE         ((size_t)4096)
/* if the machine has at least four times as much memory, at least this many bytes are read */
#define LEAST_MEMORY ((size_t)512 << 20)
/* Seconds of one timing. It is short, so that other programs disturb only few of the timings. */
#define A_WHILE      0.003
#define COUNT(array) (sizeof(array) / sizeof *(array))

typedef struct bench {
    fr_bench_report *report;
    const fr_bench_machine_options *options;
    fr_machine machine;
    size_t threads[FR_THREADS_MAX], thread_count;
    fr_pool *one, *all;
    size_t most; /* number of threads of the pool `all` */
    fr_bench_cache caches[FR_BENCH_CACHES];
    size_t cache_count, memory_bytes;
    const fr_bench_reader *reader; /* the widest reading loop that the options allow */
    /* the highest rate at which memory was read so far, in bytes per second; 0 before the first reading */
    double bandwidth;
    double *values, *cycles, *clocks; /* [repetitions] */
} bench;

/* --------------------------------------------------------------------------------------------------------- sampling */

/* Describes a measurement: the pool that runs it, its number of rounds, and the memory or the loop that it uses. */
typedef struct timing {
    fr_pool *pool;
    size_t count;
    const fr_bench_memory *memory;
    const fr_bench_peak *peak;
    const void **at; /* the cache line at which a chain of loads continues */
} timing;

typedef double measure_fn(const timing *task);

/* Gives the shortest of three timings, because another program may have disturbed one of them. */
static double shortest(measure_fn *measure, const timing *task) {
    double least = INFINITY;
    for (int i = 0; i < 3; i++) {
        double start = fr_clock();
        measure(task);
        least = fmin(least, fr_clock() - start);
    }
    return least;
}

/* Finds a number of rounds that takes long enough to be timed. The trial runs also warm up the caches and the clock. */
static void calibrate(measure_fn *measure, timing *task) {
    double took = 0;
    for (task->count = 1; (took = shortest(measure, task)) < A_WHILE / 4;) task->count *= 2;
    task->count = (size_t)fmax(1, (double)task->count * A_WHILE / took);
}

static fr_bench_figure sample(bench *b, measure_fn *measure, timing *task) {
    calibrate(measure, task);
    for (size_t i = 0; i < b->options->repetitions; i++) b->values[i] = measure(task);
    return fr_bench_figure_of(b->values, b->options->repetitions);
}

static void look_at_clock(void *context, const fr_team *team) {
    (void)team;
    *(double *)context = fr_bench_clock_rate();
}

/* Holds the figures of one thread: the measured value, the same value in cycles, and the core's clock, which is
 * measured after each timing. */
typedef struct core_figures {
    fr_bench_figure value, cycles, clock;
} core_figures;

/* Measures one core repeatedly. If `rates` is true, the value is an amount per second, and its figure in cycles is the
 * amount per cycle. Otherwise the value is a time, and its figure in cycles is the number of cycles. */
static core_figures sample_core(bench *b, measure_fn *measure, timing *task, bool rates) {
    calibrate(measure, task);
    for (size_t i = 0; i < b->options->repetitions; i++) {
        double value = measure(task), clock;
        fr_pool_run(b->one, look_at_clock, &clock);
        b->values[i] = value;
        b->cycles[i] = rates ? value / clock : value * clock;
        b->clocks[i] = clock;
    }
    return (core_figures){fr_bench_figure_of(b->values, b->options->repetitions),
                          fr_bench_figure_of(b->cycles, b->options->repetitions),
                          fr_bench_figure_of(b->clocks, b->options->repetitions)};
}

static void put_alone(bench *b, const fr_bench_figure *figure, double factor) {
    fr_bench_from(b->report, figure, figure->middle * factor, b->options->max_spread);
}

/* Prints a value that was computed from two figures. The value is doubtful if either figure is doubtful. */
static void put_both(bench *b, const fr_bench_figure *baseline, const fr_bench_figure *figure, double value) {
    bool first = fr_bench_is_doubtful(baseline, b->options->max_spread);
    fr_bench_from(b->report, first ? baseline : figure, value, b->options->max_spread);
}

static void put_from(bench *b, const fr_bench_figure *baseline, const fr_bench_figure *figure, double factor) {
    put_both(b, baseline, figure, figure->middle * factor);
}

/* Adds two cells: a figure times `factor`, and the figure's spread. */
static void put(bench *b, const fr_bench_figure *figure, double factor) {
    put_alone(b, figure, factor);
    fr_bench_number(b->report, figure->spread);
}

static fr_status open_pool(const bench *b, const fr_machine *machine, size_t threads, fr_pool **pool, size_t *count) {
    fr_plan plan;
    fr_plan_make(machine, threads, b->options->pin, b->options->numa, &plan);
    *count = plan.threads;
    return fr_pool_open(&plan, pool);
}

/* ----------------------------------------------------------------------------------------------------------- memory */

static double read_again(const timing *task) {
    return fr_bench_memory_reread(task->pool, task->memory, task->count);
}

/* Measures reading memory, and adds the results as the last cells of a line of the table. */
static void put_reading(bench *b, fr_pool *pool, size_t threads, const fr_bench_memory *memory) {
    timing reading = {.pool = pool, .memory = memory};
    fr_bench_figure figure = sample(b, read_again, &reading);
    b->bandwidth = fmax(b->bandwidth, figure.middle);
    fr_bench_number(b->report, (double)threads);
    put(b, &figure, 1e-9);
    fr_bench_from(b->report, &figure, figure.most * 1e-9, b->options->max_spread);
    fr_bench_from(b->report, &figure, figure.middle * 1e-9 / (double)threads, b->options->max_spread);
}

static const char *const page_words[] = {[FR_BENCH_SMALL] = "small", [FR_BENCH_HUGE] = "huge"};

static fr_bench_memory take_bytes(const bench *b, fr_pool *pool, size_t bytes, fr_bench_pages pages) {
    fr_bench_memory memory = fr_bench_memory_take(pool, bytes, pages);
    memory.reader = b->reader;
    return memory;
}

/* Takes memory in pages of the kind `pages`. *given becomes false if the system gave other pages. */
static fr_status take(const bench *b, fr_pool *pool, fr_bench_pages pages, fr_bench_memory *memory, bool *given) {
    *memory = take_bytes(b, pool, b->memory_bytes, pages);
    *given = pages == FR_BENCH_SMALL || memory->huge;
    return memory->bytes ? FR_OK : fr_fail_memory("memory to read", b->memory_bytes);
}

static fr_status read_by_threads(bench *b, fr_pool *pool, size_t threads, bool *no_huge) {
    for (fr_bench_pages pages = FR_BENCH_SMALL; pages <= FR_BENCH_HUGE; pages++) {
        fr_bench_memory memory;
        bool given;
        FR_TRY(take(b, pool, pages, &memory, &given));
        if (given) {
            fr_bench_text(b->report, page_words[pages]);
            put_reading(b, pool, threads, &memory);
        }
        *no_huge |= !given;
        fr_bench_memory_close(&memory);
    }
    return FR_OK;
}

static const fr_bench_column memory_columns[] = {
    {"pages", "pages", 0},
    {"n_threads", "threads", 0},
    {"gb_per_s", "GB/s", 1},
    {"spread_percent", "spread, %", 1},
    {"gb_per_s_best", "best, GB/s", 1},
    {"gb_per_s_per_thread", "a thread, GB/s", 1},
};

static fr_status memory_table(bench *b) {
    bool no_huge = false;
    fr_bench_table(b->report, "memory", "Reading memory", memory_columns, COUNT(memory_columns));
    for (size_t i = 0; i < b->thread_count; i++) {
        fr_pool *pool;
        size_t threads;
        FR_TRY(open_pool(b, &b->machine, b->threads[i], &pool, &threads));
        fr_status status = read_by_threads(b, pool, threads, &no_huge);
        fr_pool_close(pool);
        FR_TRY(status);
    }
    fr_bench_remark(b->report,
                    "%.0f MiB, read by a loop of %s, each page first touched by the thread that reads it; "
                    "pages of 4 KiB, and transparent huge pages%s.",
                    (double)b->memory_bytes / 0x1p20, fr_isa_word((size_t)b->reader->level),
                    no_huge ? ", which this system does not give" : "");
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------ nodes */

/* Opens a pool with threads on all cores of a NUMA node. */
static fr_status open_node(const bench *b, int node, fr_pool **pool, size_t *threads) {
    fr_machine part = {.nodes = 1};
    for (size_t i = 0; i < b->machine.count; i++) {
        if (b->machine.places[i].node != node) continue;
        part.places[part.count] = b->machine.places[i];
        part.places[part.count++].node = 0;
    }
    return open_pool(b, &part, 0, pool, threads);
}

static const fr_bench_column node_columns[] = {
    {"node", "threads on node", 0},
    {"memory_node", "memory on node", 0},
    {"pages", "pages", 0},
    {"n_threads", "threads", 0},
    {"gb_per_s", "GB/s", 1},
    {"spread_percent", "spread, %", 1},
    {"gb_per_s_best", "best, GB/s", 1},
    {"gb_per_s_per_thread", "a thread, GB/s", 1},
};

static fr_status read_across(bench *b, int readers_node, int memory_node, fr_pool *owners) {
    fr_pool *readers;
    size_t threads;
    FR_TRY(open_node(b, readers_node, &readers, &threads));
    fr_status status = FR_OK;
    for (fr_bench_pages pages = FR_BENCH_SMALL; status == FR_OK && pages <= FR_BENCH_HUGE; pages++) {
        fr_bench_memory memory;
        bool given;
        status = take(b, owners, pages, &memory, &given);
        if (status == FR_OK && given) {
            fr_bench_number(b->report, readers_node);
            fr_bench_number(b->report, memory_node);
            fr_bench_text(b->report, page_words[pages]);
            put_reading(b, readers, threads, &memory);
        }
        fr_bench_memory_close(&memory);
    }
    fr_pool_close(readers);
    return status;
}

static fr_status node_table(bench *b) {
    fr_bench_table(b->report, "nodes", "Reading memory across NUMA nodes", node_columns, COUNT(node_columns));
    for (int memory_node = 0; memory_node < b->machine.nodes; memory_node++) {
        fr_pool *owners;
        size_t threads;
        fr_status status = open_node(b, memory_node, &owners, &threads);
        for (int node = 0; status == FR_OK && node < b->machine.nodes; node++)
            status = read_across(b, node, memory_node, owners);
        fr_pool_close(owners);
        FR_TRY(status);
    }
    return FR_OK;
}

/* ----------------------------------------------------------------------------------------------------------- caches */

static void chase(void *context, const fr_team *team) {
    (void)team;
    const timing *task = context;
    *task->at = fr_bench_memory_chase(*task->at, task->count);
}

static double seconds_of_load(const timing *task) {
    timing chasing = *task;
    double start = fr_clock();
    fr_pool_run(task->pool, chase, &chasing);
    return (fr_clock() - start) / (double)task->count;
}

/* Gives the number of bytes that a core reads to measure a cache level: the core's share of the next nearer cache, plus
 * half of the core's share of the cache of this level. A core that reads this many bytes finds few of the lines in the
 * nearer caches. This holds for caches that keep copies of the nearer caches' lines, and for caches that do not. */
static size_t working_set(const fr_bench_cache *caches, size_t level) {
    size_t nearer = level ? caches[level - 1].bytes / caches[level - 1].cores : 0;
    return (nearer + caches[level].bytes / caches[level].cores / 2) / PAGE * PAGE;
}

static const fr_bench_column cache_columns[] = {
    {"level", "level", 0},
    {"kib", "KiB", 0},
    {"line", "line, bytes", 0},
    {"sharing_cores", "cores", 0},
    {"set_kib", "read by a core, KiB", 0},
    {"gb_per_s_core", "1 core, GB/s", 1},
    {"spread_percent_core", "spread, %", 1},
    {"bytes_per_cycle", "bytes a cycle", 1},
    {"gb_per_s", "all threads, GB/s", 1},
    {"spread_percent", "spread, %", 1},
    {"latency_ns", "latency, ns", 1},
    {"latency_spread_percent", "spread, %", 1},
    {"latency_cycles", "cycles", 0},
};

/* Adds the last cells of a line of the table. First one core alone reads `alone` bytes and follows a chain of loads
 * through them. Then all cores read `each` bytes at the same time. */
static fr_status put_level(bench *b, size_t alone, size_t each) {
    fr_bench_memory own = take_bytes(b, b->one, alone, FR_BENCH_HUGE),
                    shared = take_bytes(b, b->all, each * b->most, FR_BENCH_HUGE);
    bool taken = own.bytes && shared.bytes;
    if (taken) {
        const void *line = own.bytes;
        timing single = {.pool = b->one, .memory = &own, .at = &line}, together = {.pool = b->all, .memory = &shared};
        core_figures reading = sample_core(b, read_again, &single, true);
        fr_bench_figure all = sample(b, read_again, &together);
        fr_bench_memory_link(&own);
        core_figures load = sample_core(b, seconds_of_load, &single, false);
        put(b, &reading.value, 1e-9);
        put_from(b, &reading.value, &reading.cycles, 1);
        put(b, &all, 1e-9);
        put(b, &load.value, 1e9);
        put_from(b, &load.value, &load.cycles, 1);
    }
    fr_bench_memory_close(&own);
    fr_bench_memory_close(&shared);
    return taken ? FR_OK : fr_fail_memory("memory to read", alone + each * b->most);
}

static fr_status put_cache(bench *b, size_t level) {
    const fr_bench_cache *cache = &b->caches[level];
    size_t set = working_set(b->caches, level);
    char name[16];
    snprintf(name, sizeof name, "L%u", cache->level);
    fr_bench_text(b->report, name);
    fr_bench_number(b->report, (double)cache->bytes / 1024);
    fr_bench_number(b->report, cache->line ? (double)cache->line : NAN);
    fr_bench_number(b->report, (double)cache->cores);
    fr_bench_number(b->report, (double)set / 1024);
    return put_level(b, set, set);
}

static fr_status cache_table(bench *b) {
    fr_bench_table(b->report, "caches", "Caches", cache_columns, COUNT(cache_columns));
    for (size_t i = 0; i < b->cache_count; i++) FR_TRY(put_cache(b, i));
    fr_bench_text(b->report, "memory");
    for (int i = 0; i < 4; i++) fr_bench_number(b->report, NAN);
    FR_TRY(put_level(b, b->memory_bytes / 2, b->memory_bytes / b->most));
    if (!b->cache_count) fr_bench_remark(b->report, "The caches' sizes are not known: this build has no hwloc.");
    fr_bench_remark(b->report,
                    "Sizes are those of one cache, cores those of this process that share it. Latency: each "
                    "load waits for the one before, lines in random order. Cycles: by additions that wait for each "
                    "other, timed just after.");
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------ peaks */

static double multiply(const timing *task) {
    return fr_bench_multiply(task->pool, task->peak, task->count);
}

static const fr_bench_column peak_columns[] = {
    {"operation", "operation", 0},           {"isa", "instruction set", 0},
    {"instruction", "instructions", 0},      {"gmac_per_s_core", "1 core, GMAC/s", 0},
    {"spread_percent_core", "spread, %", 1}, {"mac_per_cycle", "MAC a cycle", 1},
    {"clock_ghz", "clock, GHz", 2},          {"gmac_per_s", "all threads, GMAC/s", 0},
    {"spread_percent", "spread, %", 1},      {"times_one_core", "times 1 core", 2},
    {"mac_per_byte", "MAC a byte", 1},
};

static void put_peak(bench *b, const fr_bench_peak *peak) {
    static const char *const words[] = {[FR_BENCH_INT8] = "int8", [FR_BENCH_FP32] = "fp32", [FR_BENCH_BF16] = "bf16"};
    timing alone = {.pool = b->one, .peak = peak}, together = {.pool = b->all, .peak = peak};
    core_figures one = sample_core(b, multiply, &alone, true);
    fr_bench_figure all = sample(b, multiply, &together);
    fr_bench_text(b->report, words[peak->operation]);
    fr_bench_text(b->report, peak->isa);
    fr_bench_text(b->report, peak->instruction);
    put(b, &one.value, 1e-9);
    put_from(b, &one.value, &one.cycles, 1);
    put_from(b, &one.value, &one.clock, 1e-9);
    put(b, &all, 1e-9);
    put_both(b, &one.value, &all, all.middle / one.value.middle);
    put_alone(b, &all, 1 / b->bandwidth); /* the factor is not finite if the bandwidth is unknown */
}

static void peak_table(bench *b) {
    fr_bench_table(b->report, "peaks", "Multiplying and adding", peak_columns, COUNT(peak_columns));
    size_t rows = 0;
    for (size_t i = 0; i < fr_bench_peak_count; i++) {
        const fr_bench_peak *peak = &fr_bench_peaks[i];
        if (!fr_bench_listed(b->options->isas, peak->isa) || !fr_bench_peak_runs(peak)) continue;
        put_peak(b, peak);
        rows++;
    }
    if (!rows) fr_bench_remark(b->report, "None of these instruction sets multiplies by vectors here.");
    fr_bench_remark(b->report,
                    "MAC: a multiplication and an addition. On registers alone. MAC a byte: what all "
                    "threads do while a byte comes from memory; a kernel that does fewer with each waits for memory.");
}

/* --------------------------------------------------------------------------------------------------------- barriers */

static void meet(void *context, const fr_team *team) {
    const timing *meeting = context;
    for (size_t i = 0; i < meeting->count; i++) fr_team_sync(team);
}

static void nothing(void *context, const fr_team *team) {
    (void)context, (void)team;
}

static double seconds_of_barrier(const timing *what) {
    timing meeting = *what;
    double start = fr_clock();
    fr_pool_run(meeting.pool, meet, &meeting);
    return (fr_clock() - start) / (double)meeting.count;
}

static double seconds_of_run(const timing *task) {
    double start = fr_clock();
    for (size_t i = 0; i < task->count; i++) fr_pool_run(task->pool, nothing, NULL);
    return (fr_clock() - start) / (double)task->count;
}

static const fr_bench_column barrier_columns[] = {
    {"n_threads", "threads", 0},
    {"barrier_ns", "barrier, ns", 0},
    {"barrier_spread_percent", "spread, %", 1},
    {"run_ns", "fork and join, ns", 0},
    {"run_spread_percent", "spread, %", 1},
};

static fr_status barrier_table(bench *b) {
    fr_bench_table(b->report, "barriers", "Threads meeting", barrier_columns, COUNT(barrier_columns));
    for (size_t i = 0; i < b->thread_count; i++) {
        timing meeting = {0};
        size_t threads;
        FR_TRY(open_pool(b, &b->machine, b->threads[i], &meeting.pool, &threads));
        fr_bench_figure barrier = sample(b, seconds_of_barrier, &meeting), run = sample(b, seconds_of_run, &meeting);
        fr_pool_close(meeting.pool);
        fr_bench_number(b->report, (double)threads);
        put(b, &barrier, 1e9);
        put(b, &run, 1e9);
    }
    return FR_OK;
}

/* -------------------------------------------------------------------------------------------- the whole measurement */

/* Returns a number of bytes that exceeds all caches, but is small enough for the machine's memory. */
static size_t memory_to_read(const bench *b) {
    size_t bytes = LEAST_MEMORY, installed = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    if (b->cache_count) {
        const fr_bench_cache *last = &b->caches[b->cache_count - 1];
        size_t all = last->bytes * ((b->most + last->cores - 1) / last->cores);
        if (bytes < 4 * all) bytes = 4 * all;
    }
    if (bytes > installed / 4) bytes = installed / 4;
    return bytes / PAGE * PAGE;
}

static fr_status measure_all(bench *b) {
    FR_TRY(open_pool(b, &b->machine, 1, &b->one, &b->most));
    FR_TRY(open_pool(b, &b->machine, b->threads[b->thread_count - 1], &b->all, &b->most));
    b->cache_count = fr_bench_caches(b->caches);
    b->memory_bytes = memory_to_read(b);
    FR_TRY(memory_table(b));
    if (b->options->numa && b->machine.nodes > 1) FR_TRY(node_table(b));
    FR_TRY(cache_table(b));
    peak_table(b);
    FR_TRY(barrier_table(b));
    fr_bench_remark(b->report,
                    "Figures are medians of %zu timings; spread is between the quartiles. A figure that "
                    "spread more than %g %%, or is of one timing, is marked with ?, and what follows from it.",
                    b->options->repetitions, b->options->max_spread);
    return FR_OK;
}

static void add_threads(bench *b, size_t threads) {
    if (threads > FR_THREADS_MAX || b->thread_count == FR_THREADS_MAX) return;
    b->threads[b->thread_count++] = threads;
}

static int ascending(const void *a, const void *b) {
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

static void choose_threads(bench *b) {
    fr_plan plan;
    for (size_t i = 0; i < b->options->thread_count; i++) add_threads(b, (size_t)b->options->threads[i]);
    if (!b->thread_count) {
        fr_plan_make(&b->machine, 0, b->options->pin, b->options->numa, &plan);
        for (size_t n = 1; n < plan.threads; n *= 2) add_threads(b, n);
        add_threads(b, plan.threads);
    }
    qsort(b->threads, b->thread_count, sizeof *b->threads, ascending);
}

fr_status fr_bench_machine(fr_bench_report *report, const fr_bench_machine_options *options) {
    bench *b = calloc(1, sizeof *b);
    double *values = calloc(3 * options->repetitions, sizeof *values);
    fr_status status = b && values ? FR_OK : fr_fail_memory("the bench", sizeof *b);
    if (status == FR_OK) {
        *b = (bench){.report = report, .options = options, .values = values};
        b->reader = fr_bench_widest_reader(options->isas);
        b->cycles = values + options->repetitions;
        b->clocks = values + 2 * options->repetitions;
        status = fr_machine_read(&b->machine);
    }
    if (status == FR_OK) status = fr_bench_machine_facts(report, NULL, 0);
    if (status == FR_OK) {
        choose_threads(b);
        status = measure_all(b);
        fr_pool_close(b->one);
        fr_pool_close(b->all);
    }
    free(values);
    free(b);
    return status;
}
