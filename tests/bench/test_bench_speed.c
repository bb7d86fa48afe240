/* Tests the bench's figures of this machine. They must agree with a calculation by hand from cycles, instructions and
 * lanes. The suite uses one thread and takes the best of many short timings, because other programs can only make a
 * timing slower. */
/* suite: speed links=bench */
#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "bench/limits.h"
#include "tests/support/suite.h"

enum { TRIES = 40 };

static fr_pool *one;

/* Opens a pool of this many threads; 0 means one thread per core. */
static fr_pool *open_pool(size_t threads) {
    fr_machine machine;
    fr_plan plan;
    fr_pool *pool;
    ck_assert_int_eq(fr_machine_read(&machine), FR_OK);
    fr_plan_make(&machine, threads, true, true, &plan);
    ck_assert_int_eq(fr_pool_open(&plan, &pool), FR_OK);
    return pool;
}

static void open_one(void) {
    one = open_pool(1);
}

static void close_one(void) {
    fr_pool_close(one);
}

static void look(void *context, const fr_team *team) {
    (void)team;
    double *best = context;
    *best = fmax(*best, fr_bench_clock_rate());
}

static double clock_rate(void) {
    double best = 0;
    for (int i = 0; i < TRIES; i++) fr_pool_run(one, look, &best);
    return best;
}

/* Measures how many multiplications per second a thread does if each multiplication needs the result of the one
 * before. */
static void multiply(void *context, const fr_team *team) {
    (void)team;
    double *best = context;
    const size_t count = 30000;
    size_t product = 1, factor = 3;
    double start = fr_clock();
    for (size_t i = 0; i < count; i++) {
        __asm__ volatile("" : "+r"(product), "+r"(factor));
        product *= factor;
    }
    __asm__ volatile("" : : "r"(product));
    *best = fmax(*best, (double)count / (fr_clock() - start));
}

/* On every known processor a multiplication takes a whole number of cycles, which is 3 or a few more. */
START_TEST(the_clock_agrees_with_a_chain_of_multiplications) {
    double clock = clock_rate(), rate = 0;
    for (int i = 0; i < TRIES; i++) fr_pool_run(one, multiply, &rate);
    double cycles = clock / rate;
    ck_assert_msg(fabs(cycles - rint(cycles)) < 0.15 && cycles > 2.5 && cycles < 5.5, "%.2f cycles", cycles);
}
END_TEST

/* The multiply-adds per cycle, calculated by hand. In every cycle two units (four on AArch64) start one instruction
 * each. AMX has a single unit, which needs 16 cycles per instruction. Without VNNI or dotprod, each int8 product needs
 * two instructions of these units, so its number is halved. */
static const struct {
    fr_bench_operation operation;
    const char *isa;
    double most;
} by_hand[] = {
    {FR_BENCH_INT8, "avx2", 2 * 32 / 2},   {FR_BENCH_INT8, "avxvnni", 2 * 32},    {FR_BENCH_INT8, "avx512", 2 * 64 / 2},
    {FR_BENCH_INT8, "avx512vnni", 2 * 64}, {FR_BENCH_INT8, "amx", 16384 / 16},    {FR_BENCH_FP32, "avx2", 2 * 8},
    {FR_BENCH_FP32, "avx512", 2 * 16},     {FR_BENCH_BF16, "avx512bf16", 2 * 32}, {FR_BENCH_BF16, "amx", 8192 / 16},
    {FR_BENCH_INT8, "neon", 4 * 8 / 2},    {FR_BENCH_INT8, "dotprod", 4 * 16},    {FR_BENCH_INT8, "i8mm", 4 * 32},
    {FR_BENCH_FP32, "neon", 4 * 4},        {FR_BENCH_BF16, "bf16", 4 * 16},
};

static double most_by_hand(const fr_bench_peak *peak) {
    for (size_t i = 0; i < sizeof by_hand / sizeof *by_hand; i++)
        if (by_hand[i].operation == peak->operation && strcmp(by_hand[i].isa, peak->isa) == 0) return by_hand[i].most;
    ck_abort_msg("%s is not calculated by hand", peak->isa);
    return 0;
}

/* No processor multiplies faster than most_by_hand says. Some processors have half as many multiplying units (on
 * AArch64 a quarter). On a shared machine the clock may change by a third within moments. So each rate is divided by
 * the clock that was measured right after it, and the median of these ratios is compared. */
START_TEST(peaks_are_units_times_lanes_times_the_clock) {
    for (size_t i = 0; i < fr_bench_peak_count; i++) {
        const fr_bench_peak *peak = &fr_bench_peaks[i];
        double most = most_by_hand(peak), least = peak->level < FR_ISA_NEON ? most / 2 : most / 4, ratios[TRIES];
        if (!fr_bench_peak_runs(peak)) continue;
        for (int t = 0; t < TRIES; t++) {
            ratios[t] = fr_bench_multiply(one, peak, 200000);
            ratios[t] /= fr_bench_clock_rate();
        }
        double a_cycle = fr_bench_median(ratios, TRIES);
        ck_assert_msg(a_cycle < 1.05 * most && a_cycle > 0.9 * least, "%s: %.1f a cycle, by hand %.0f to %.0f",
                      peak->instruction, a_cycle, least, most);
    }
}
END_TEST

static double read_best(size_t size, size_t passes) {
    fr_bench_memory memory = fr_bench_memory_take(one, size, FR_BENCH_HUGE);
    double best = 0;
    ck_assert_ptr_nonnull(memory.bytes);
    for (int i = 0; i < TRIES; i++) best = fmax(best, fr_bench_memory_reread(one, &memory, passes));
    fr_bench_memory_close(&memory);
    return best;
}

/* 16 KiB fit into every core's first-level cache, and 256 MiB exceed almost every last-level cache. A core can do two
 * loads of at most 64 bytes per cycle. Some cores do three loads of 32 or 16 bytes. */
START_TEST(the_first_cache_is_read_faster_than_memory_and_not_faster_than_loads_allow) {
    double cache = read_best((size_t)16 << 10, 4000), memory = read_best((size_t)256 << 20, 1);
    ck_assert_msg(cache > 2 * memory, "%.1f and %.1f GB/s", cache / 1e9, memory / 1e9);
    double a_cycle = cache / clock_rate();
    ck_assert_msg(a_cycle < 1.05 * 2 * 64 && a_cycle > 0.75 * 16, "%.1f bytes a cycle", a_cycle);
}
END_TEST

/* If all cores read, even the narrower loops wait for memory. So they must be as fast as the widest loop. The loops are
 * timed alternately, so that other programs slow down all loops equally. */
START_TEST(every_loop_reads_memory_as_fast_as_the_widest) {
    const fr_bench_reader *widest = fr_bench_widest_reader(NULL);
    fr_pool *all = open_pool(0);
    for (const fr_bench_reader *reader = fr_bench_readers; reader < widest; reader++) {
        fr_bench_memory memory = fr_bench_memory_take(all, (size_t)256 << 20, FR_BENCH_HUGE);
        double ratios[TRIES];
        ck_assert_ptr_nonnull(memory.bytes);
        for (int i = 0; i < TRIES; i++) {
            memory.reader = reader;
            ratios[i] = fr_bench_memory_read(all, &memory);
            memory.reader = widest;
            ratios[i] /= fr_bench_memory_read(all, &memory);
        }
        fr_bench_memory_close(&memory);
        double ratio = fr_bench_median(ratios, TRIES);
        ck_assert_msg(fabs(ratio - 1) < 0.05, "%s: %.3f of the widest", fr_isa_word(reader->level), ratio);
    }
    fr_pool_close(all);
}
END_TEST

typedef struct walk {
    const void *at;
    double least;
} walk;

static void chase(void *context, const fr_team *team) {
    (void)team;
    walk *way = context;
    const size_t loads = 20000;
    double start = fr_clock();
    way->at = fr_bench_memory_chase(way->at, loads);
    way->least = fmin(way->least, (fr_clock() - start) / (double)loads);
}

static double load_seconds(size_t size) {
    fr_bench_memory memory = fr_bench_memory_take(one, size, FR_BENCH_HUGE);
    ck_assert_ptr_nonnull(memory.bytes);
    fr_bench_memory_link(&memory);
    walk walking = {.at = memory.bytes, .least = INFINITY};
    for (int i = 0; i < TRIES; i++) fr_pool_run(one, chase, &walking);
    fr_bench_memory_close(&memory);
    return walking.least;
}

START_TEST(the_first_cache_answers_in_3_to_6_cycles_and_memory_far_later) {
    double cache = load_seconds((size_t)16 << 10), memory = load_seconds((size_t)256 << 20);
    double cycles = cache * clock_rate();
    ck_assert_msg(cycles > 2.8 && cycles < 6.5, "%.1f cycles", cycles);
    ck_assert_msg(memory > 8 * cache, "%.1f and %.1f ns", cache * 1e9, memory * 1e9);
}
END_TEST

FR_SUITE("bench_speed") {
    TCase *cases = tcase_create("bench_speed");
    tcase_set_timeout(cases, 300);
    tcase_add_checked_fixture(cases, open_one, close_one);
    tcase_add_test(cases, the_clock_agrees_with_a_chain_of_multiplications);
    tcase_add_test(cases, peaks_are_units_times_lanes_times_the_clock);
    tcase_add_test(cases, the_first_cache_is_read_faster_than_memory_and_not_faster_than_loads_allow);
    tcase_add_test(cases, every_loop_reads_memory_as_fast_as_the_widest);
    tcase_add_test(cases, the_first_cache_answers_in_3_to_6_cycles_and_memory_far_later);
    suite_add_tcase(suite, cases);
}
