/* Checks kernels and times them (kernel_timing.h). */
#include "bench/kernel_timing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/error.h"
#include "bench/caches.h"

static const size_t least_memory = (size_t)1 << 28;
static const double batch_seconds = 0.004; /* the shortest duration of a timing, in seconds */
/* If a product takes more seconds than this, it is made smaller. The limit is lower for kernels whose peak of
 * multiply-adds is unknown, such as scalar ones. */
static const double slow_seconds = 0.2, slow_scalar_seconds = 0.004;

/* Describes memory for operands. The system gives the memory filled with zeros. */
typedef struct area {
    uint8_t *bytes;
    size_t size;
} area;

struct fr_bench_bed {
    fr_pool *pool;
    size_t threads, repetitions;
    size_t cache_bytes; /* bytes of all last-level caches that the threads use */
    fr_bench_memory memory;
    area streams, input, outputs, scratch, expected;
    size_t slice;                /* bytes of weights or cached positions that belong to one thread */
    fr_bench_counting *counting; /* [threads] */
    int no_counters;             /* 0 if the counters can be read; otherwise the errno that says why they can't */
    double *samples;             /* [5][repetitions] seconds, bandwidths, peaks, clocks, shares of the limit */

    const fr_bench_case *c;      /* the case whose operands are loaded */
    size_t copies;               /* number of copies of a thread's weights or cached positions; the same for each
                                  * thread */
    fr_bench_function *function; /* the function that the team calls */
    /* A timing runs a batch of `rounds` calls of `units` units each. turn: number of calls so far. Each call uses the
     * next copy of the operands. */
    size_t units, rounds, turn;
    double (*counts)[FR_BENCH_COUNTERS]; /* [threads] events counted during a batch */
};

/* --------------------------------------------------------------------------------------------------------- operands */

static void release(area *a) {
    if (a->bytes) munmap(a->bytes, a->size);
    *a = (area){0};
}

static fr_status grow(area *a, size_t size) {
    if (size <= a->size) return FR_OK;
    release(a);
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED) return fr_fail(FR_MEMORY, "no memory for %zu MiB of operands", size >> 20);
    madvise(bytes, size, MADV_HUGEPAGE);
    *a = (area){bytes, size};
    return FR_OK;
}

/* Rounds up to whole pages. So no two threads write to the same cache line. */
static size_t pages(size_t bytes) {
    return (bytes + 4095) / 4096 * 4096;
}

static fr_bench_operands operands_of(const fr_bench_bed *bed, size_t thread) {
    return (fr_bench_operands){.stream = bed->streams.bytes + thread * bed->slice,
                               .input = bed->input.bytes,
                               .output = bed->outputs.bytes + thread * pages(bed->c->output_bytes),
                               .scratch = bed->scratch.bytes + thread * pages(bed->c->scratch_bytes)};
}

/* Copies a thread's weights or cached positions as often as needed. The thread that will use the copies makes them, so
 * that they are in its NUMA node. The first copy of the first thread already exists. */
static void copy_streams(void *context, const fr_team *team) {
    const fr_bench_bed *bed = context;
    uint8_t *to = operands_of(bed, team->index).stream;
    for (size_t copy = 0; copy < bed->copies; copy++, to += bed->c->stream_bytes)
        if (to != bed->streams.bytes) memcpy(to, bed->streams.bytes, bed->c->stream_bytes);
}

static void fill_outputs(void *context, const fr_team *team) {
    const fr_bench_bed *bed = context;
    fr_bench_fill_output(bed->c, operands_of(bed, team->index).output);
}

fr_status fr_bench_bed_load(fr_bench_bed *bed, const fr_bench_kernel *kernel, const fr_bench_case *c, bool cached,
                            bool refill) {
    FR_TRY(grow(&bed->input, pages(c->input_bytes)));
    FR_TRY(grow(&bed->outputs, bed->threads * pages(c->output_bytes)));
    FR_TRY(grow(&bed->scratch, bed->threads * pages(c->scratch_bytes)));
    FR_TRY(grow(&bed->expected, pages(c->output_bytes)));
    bed->c = c;
    bed->copies = c->stream_bytes == 0 || cached ? 1 : bed->slice / c->stream_bytes;
    bed->turn = 0;
    fr_bench_operands first = operands_of(bed, 0);
    if (c->stream_bytes > 0 && refill) {
        fr_bench_fill_stream(c, first.stream);
        fr_pool_run(bed->pool, copy_streams, bed);
    }
    fr_bench_fill_input(c, first.input);
    fr_bench_define(c, kernel, &first, bed->expected.bytes);
    return FR_OK;
}

/* ----------------------------------------------------------------------------------------------------------- timing */

static void call_rounds(void *context, const fr_team *team) {
    const fr_bench_bed *bed = context;
    fr_bench_operands o = operands_of(bed, team->index);
    uint8_t *streams = o.stream;
    fr_bench_counting_start(&bed->counting[team->index]);
    for (size_t r = 0; r < bed->rounds; r++) {
        o.stream = streams + (bed->turn + r) % bed->copies * bed->c->stream_bytes;
        fr_bench_call(bed->c, bed->function, &o, 0, bed->units);
    }
    fr_bench_counting_stop(&bed->counting[team->index], bed->counts[team->index]);
}

/* Runs a batch and gives the seconds that it took. */
static double run_batch(fr_bench_bed *bed) {
    double start = fr_clock();
    fr_pool_run(bed->pool, call_rounds, bed);
    double seconds = fr_clock() - start;
    bed->turn += bed->rounds;
    return seconds;
}

/* Doubles the number of units in a call until the call takes more than `moment` seconds, or has all units of the
 * case. */
static void choose_units(fr_bench_bed *bed, double moment) {
    bed->rounds = 1;
    for (bed->units = 1; bed->units < bed->c->units; bed->units *= 2)
        if (run_batch(bed) > moment) return;
    bed->units = bed->c->units;
}

/* Finds the number of calls in a batch. The trial runs also warm up the caches and the clock. */
static void choose_rounds(fr_bench_bed *bed) {
    for (bed->rounds = 1; run_batch(bed) < batch_seconds;) bed->rounds *= 2;
}

/* Gives the shortest time in seconds that a call can take. It is the longer of two times: the time to read the call's
 * bytes, and the time to do its multiply-adds. */
static double limit_seconds(fr_bench_timing *timing, double bandwidth, double peak) {
    if (timing->macs == 0 || isnan(peak)) return NAN;
    double reading = timing->from_memory ? timing->bytes / bandwidth : 0, multiplying = timing->macs / peak;
    timing->limit = reading > multiplying ? "bandwidth" : "arithmetic";
    return fmax(reading, multiplying);
}

static void add_counts(const fr_bench_bed *bed, fr_bench_timing *timing) {
    double calls = (double)(bed->rounds * bed->repetitions);
    for (size_t t = 0; t < bed->threads; t++)
        for (size_t i = 0; i < FR_BENCH_COUNTERS; i++) timing->counts[i] += bed->counts[t][i] / calls;
}

/* Gives the seconds that a number of multiply-adds take at the peak of a loop, which is measured now. Gives 0 if there
 * are none, and NaN if no peak is known. */
static double seconds_at(fr_bench_bed *bed, fr_bench_roof roof, double macs) {
    if (macs == 0) return 0;
    return roof.peak ? macs / fr_bench_multiply(bed->pool, roof.peak, roof.rounds) : NAN;
}

static void repeat(fr_bench_bed *bed, const fr_bench_roofs *roofs, fr_bench_timing *timing) {
    size_t n = bed->repetitions;
    double *seconds = bed->samples, *bandwidth = seconds + n, *peak = bandwidth + n, *clock = peak + n;
    double *of_limit = clock + n;
    for (size_t i = 0; i < n; i++) {
        bandwidth[i] = timing->from_memory ? fr_bench_bed_bandwidth(bed) : NAN;
        peak[i] = timing->macs / (seconds_at(bed, roofs->floats, timing->macs - timing->integer_macs) +
                                  seconds_at(bed, roofs->integers, timing->integer_macs));
        seconds[i] = run_batch(bed) / (double)bed->rounds;
        clock[i] = fr_bench_clock_rate();
        of_limit[i] = limit_seconds(timing, bandwidth[i], peak[i]) / seconds[i];
        add_counts(bed, timing);
    }
    timing->seconds = fr_bench_figure_of(seconds, n);
    timing->bandwidth = fr_bench_median(bandwidth, n);
    timing->peak = fr_bench_median(peak, n);
    timing->clock = fr_bench_median(clock, n);
    timing->of_limit = fr_bench_figure_of(of_limit, n);
}

void fr_bench_bed_time(fr_bench_bed *bed, const fr_bench_kernel *kernel, const fr_bench_roofs *roofs,
                       fr_bench_timing *timing) {
    const fr_bench_case *c = bed->c;
    fr_bench_operands first = operands_of(bed, 0);
    bed->function = kernel->function;
    fr_pool_run(bed->pool, fill_outputs, bed);
    choose_units(bed, roofs->floats.peak || roofs->integers.peak ? slow_seconds : slow_scalar_seconds);
    double all = (double)bed->threads * (double)bed->units / (double)c->units;
    *timing = (fr_bench_timing){.units = bed->units,
                                .bytes = all * c->bytes,
                                .macs = all * c->macs,
                                .integer_macs = all * c->integer_macs,
                                .values = all * c->values};
    timing->from_memory = all * (double)(bed->copies * c->stream_bytes) >= 2 * (double)bed->cache_bytes;
    timing->same_bits = fr_bench_same_bits(c, kernel->function, &first, bed->units, bed->expected.bytes);
    if (!timing->same_bits) return;
    choose_rounds(bed);
    repeat(bed, roofs, timing);
}

/* ---------------------------------------------------------------------------------------------------------- the bed */

/* Returns the bytes of all last-level caches that the threads use. */
static size_t last_caches(size_t threads) {
    fr_bench_cache caches[FR_BENCH_CACHES];
    size_t count = fr_bench_caches(caches);
    if (count == 0) return least_memory / 4;
    const fr_bench_cache *last = &caches[count - 1];
    return last->bytes * ((threads + last->cores - 1) / last->cores);
}

static void open_counting(void *context, const fr_team *team) {
    fr_bench_bed *bed = context;
    fr_bench_event events[FR_BENCH_COUNTERS];
    fr_bench_events(events);
    int reason = fr_bench_counting_open(&bed->counting[team->index], events);
    if (team->index == 0) bed->no_counters = reason;
}

static fr_status furnish(fr_bench_bed *bed, size_t stream_bytes) {
    size_t memory = 4 * bed->cache_bytes > least_memory ? 4 * bed->cache_bytes : least_memory;
    bed->counting = calloc(bed->threads, sizeof *bed->counting);
    bed->counts = calloc(bed->threads, sizeof *bed->counts);
    bed->samples = calloc(5 * bed->repetitions, sizeof *bed->samples);
    if (!bed->counting || !bed->counts || !bed->samples) return fr_fail(FR_MEMORY, "no memory for timings");
    fr_pool_run(bed->pool, open_counting, bed);
    bed->memory = fr_bench_memory_open(bed->pool, memory);
    if (!bed->memory.bytes) return fr_fail(FR_MEMORY, "no memory: %zu MiB to measure its bandwidth", memory >> 20);
    bed->slice = pages((stream_bytes ? stream_bytes : memory) / bed->threads);
    if (bed->slice < FR_BENCH_LEAST_ROOM) bed->slice = FR_BENCH_LEAST_ROOM;
    return grow(&bed->streams, bed->threads * bed->slice);
}

fr_status fr_bench_bed_open(fr_pool *pool, size_t threads, size_t stream_bytes, size_t repetitions,
                            fr_bench_bed **result) {
    fr_bench_bed *bed = *result = calloc(1, sizeof *bed);
    if (!bed) return fr_fail(FR_MEMORY, "no memory for timings");
    *bed = (fr_bench_bed){.pool = pool, .threads = threads, .repetitions = repetitions};
    bed->cache_bytes = last_caches(threads);
    fr_status status = furnish(bed, stream_bytes);
    if (status == FR_OK) return FR_OK;
    fr_bench_bed_close(bed);
    *result = NULL;
    return status;
}

void fr_bench_bed_close(fr_bench_bed *bed) {
    if (!bed) return;
    for (size_t t = 0; bed->counting && t < bed->threads; t++) fr_bench_counting_close(&bed->counting[t]);
    area *areas[] = {&bed->streams, &bed->input, &bed->outputs, &bed->scratch, &bed->expected};
    for (size_t i = 0; i < sizeof areas / sizeof areas[0]; i++) release(areas[i]);
    fr_bench_memory_close(&bed->memory);
    free(bed->counting);
    free(bed->counts);
    free(bed->samples);
    free(bed);
}

size_t fr_bench_bed_room(const fr_bench_bed *bed) {
    return bed->slice;
}

int fr_bench_bed_no_counters(const fr_bench_bed *bed) {
    return bed->no_counters;
}

double fr_bench_bed_bandwidth(const fr_bench_bed *bed) {
    return fr_bench_memory_read(bed->pool, &bed->memory);
}
