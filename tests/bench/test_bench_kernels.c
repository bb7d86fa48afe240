/* Tests `forerun bench kernels`. Its figures must follow from the bytes and multiply-adds of each shape, which are
 * counted here by hand. Every kernel must be listed. A kernel whose results differ in a bit must be found. The hardware
 * counters that the bench reads are tested too. */
/* suite: native no-valgrind links=bench */
#include <check.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <regex.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/counters.h"
#include "bench/kernel_timing.h"
#include "tests/support/command.h"
#include "tests/support/parts.h"
#include "tests/support/suite.h"

/* These options make the weights small, so that the tests are short. They also allow any spread, so that no figure is
 * marked. */
#define SHORT "bench kernels --quiet --weights 4 -t 1 -r 2 --max-spread 1000000 "

static json_t *rows_of(const char *options) {
    fr_command command = fr_command_ok(SHORT "-o json %s", options);
    json_error_t error;
    json_t *rows = json_loads(command.out, 0, &error);
    ck_assert_msg(json_is_array(rows), "line %d: %s", error.line, error.text);
    fr_command_free(&command);
    return rows;
}

static const char *text(const json_t *row, const char *key) {
    return json_string_value(json_object_get(row, key));
}

static double number(const json_t *row, const char *key) {
    json_t *value = json_object_get(row, key);
    ck_assert_msg(json_is_number(value), "%s has no %s", text(row, "kernel"), key);
    return json_number_value(value);
}

static bool is_table(const json_t *row, const char *name) {
    return strcmp(text(row, "table"), name) == 0;
}

/* Returns true if this machine has kernels other than scalar ones. */
static bool has_vectors(void) {
    return (fr_cpu_levels() & ~(1u << FR_ISA_SCALAR | 1u << FR_ISA_SCALAR_FMA)) != 0;
}

static void check_near(double got, double expected, const char *what) {
    ck_assert_msg(fabs(got - expected) <= 1e-6 * fabs(expected), "%s is %.9g, not %.9g", what, got, expected);
}

/* Checks the figures of a kernel that are calculated from its seconds. They are the same for all kinds of kernels. */
static void check_rates(const json_t *row) {
    double seconds = number(row, "seconds"), bytes = number(row, "bytes"), macs = number(row, "macs");
    check_near(number(row, "gb_s") * seconds * 1e9, bytes, "bytes");
    if (macs > 0) check_near(number(row, "gmac_s") * seconds * 1e9, macs, "multiply-adds");
    ck_assert_str_eq(text(row, "bits"), "equal");
    if (json_is_number(json_object_get(row, "instructions_block")))
        return; /* the cycles were counted, so they may differ from those that follow from the clock's rate */
    check_near(number(row, "cycles_block") * number(row, "blocks"),
               seconds * number(row, "clock_ghz") * 1e9 * number(row, "threads"), "cycles");
}

/* A block of Q4_0 has 32 weights in 18 bytes. */
START_TEST(a_product_is_its_weights_and_their_multiplications) {
    json_t *rows = rows_of("--filter fr_matmul_q4_0_ --rows 1,4"), *row;
    size_t index, checked = 0;
    json_array_foreach (rows, index, row) {
        unsigned long features, cols;
        if (is_table(row, "limits")) continue;
        ck_assert_int_eq(sscanf(text(row, "shape"), "%lu x %lu", &features, &cols), 2);
        double weights = (double)features * (double)cols;
        check_near(number(row, "bytes"), weights / 32 * 18, "bytes");
        check_near(number(row, "macs"), weights * number(row, "rows"), "multiply-adds");
        check_near(number(row, "blocks"), weights / 32, "blocks");
        check_rates(row);
        checked++;
    }
    ck_assert_uint_ge(checked, 3 * 2); /* three shapes with two numbers of rows each */
    json_decref(rows);
}
END_TEST

/* If the weights stay in the caches, the bandwidth of memory is no limit. */
START_TEST(what_is_cached_is_bound_by_arithmetic) {
    json_t *rows = rows_of("--filter matmul_bf16 --rows 8"), *row;
    size_t index, checked = 0;
    json_array_foreach (rows, index, row) {
        if (is_table(row, "limits") || strcmp(text(row, "isa"), "scalar") == 0) continue;
        ck_assert_str_eq(text(row, "limit"), "arithmetic");
        ck_assert_str_eq(text(row, "where"), "cache");
        ck_assert_double_gt(number(row, "of_limit"), 0);
        ck_assert_double_ge(number(row, "of_limit_spread"), 0);
        checked++;
    }
    ck_assert_msg(checked > 0 || !has_vectors(), "no kernel has a limit");
    json_decref(rows);
}
END_TEST

/* The expected numbers are those of attention over float16 keys and values. A key has 512 or 64 numbers, and a value
 * has as many. Each row has 8 queries. A query is multiplied with every position that its row sees. The last row sees
 * all positions, and the row before it sees one fewer. */
START_TEST(attention_is_its_cache_and_its_queries) {
    json_t *rows = rows_of("--filter attn_[^s] --rows 1,2"), *row;
    size_t index, checked = 0, small = 0;
    json_array_foreach (rows, index, row) {
        unsigned long positions, width;
        if (is_table(row, "limits") || sscanf(text(row, "shape"), "F16, %lu x %lu", &positions, &width) != 2) continue;
        ck_assert(width == 512 || width == 64);
        double threads = number(row, "threads"), values = threads * 2 * (double)positions * (double)width;
        check_near(number(row, "bytes"), 2 * values, "bytes");
        double seen = number(row, "rows") == 1 ? (double)positions : (double)(2 * positions - 1);
        check_near(number(row, "macs"), threads * 2 * (double)width * 8 * seen, "multiply-adds");
        check_rates(row);
        checked++;
        small += width == 64;
    }
    ck_assert((checked > 0 && small > 0) || !has_vectors());
    json_decref(rows);
}
END_TEST

/* Every kernel of kernels.def and block_kernels.def that this processor can run must be in the table. Most kernels are
 * block products (fr_matmul_*), which differ only in their type. So without FULL only the block products of three types
 * are timed. */
START_TEST(every_kernel_that_runs_here_is_checked_and_timed) {
    const char *filter = fr_test_full() ? "." : "^fr_([^m]|m[^a]|matmul_(bf16|q4_0|q8_0)_)";
    char options[128];
    regex_t chosen;
    ck_assert_int_eq(regcomp(&chosen, filter, REG_EXTENDED | REG_NOSUB), 0);
    snprintf(options, sizeof options, "--rows 1 --filter '%s'", filter);
    json_t *rows = rows_of(options), *row;
    size_t index, timed = 0;
    for (size_t i = 0; i < fr_bench_kernel_count; i++) {
        const fr_bench_kernel *kernel = &fr_bench_kernels[i];
        if (regexec(&chosen, kernel->name, 0, NULL, 0) != 0) continue;
        bool here = fr_cpu_levels() >> kernel->level & 1, found = false;
        json_array_foreach (rows, index, row) {
            if (is_table(row, "limits") || strcmp(text(row, "kernel"), kernel->name) != 0) continue;
            found = true;
            check_rates(row);
        }
        ck_assert_msg(found == here, "%s is %s", kernel->name, found ? "there" : "not there");
        timed += here;
    }
    ck_assert_uint_gt(timed, 20);
    regfree(&chosen);
    json_decref(rows);
}
END_TEST

START_TEST(only_what_is_asked_for_is_timed) {
    json_t *rows = rows_of("--filter ^fr_(add|mul)_ --isa scalar --rows 1,2"), *row;
    size_t index;
    json_array_foreach (rows, index, row) {
        if (is_table(row, "limits")) continue;
        ck_assert_msg(strncmp(text(row, "kernel"), "fr_add_scalar", 13) == 0 ||
                          strncmp(text(row, "kernel"), "fr_mul_scalar", 13) == 0,
                      "%s", text(row, "kernel"));
        ck_assert_str_eq(text(row, "isa"), "scalar");
        check_near(number(row, "bytes"), 3 * 4 * 1536, "bytes");
        ck_assert(json_is_null(json_object_get(row, "rows")));
        ck_assert(json_is_null(json_object_get(row, "limit")));
    }
    json_decref(rows);
}
END_TEST

/* The limit on the spread is 0, and timings that differ always exceed it. */
START_TEST(a_figure_that_spread_too_much_is_marked) {
    json_t *rows = rows_of("--filter fr_quantize_scalar --max-spread 0 -r 5"), *row;
    size_t index, marked = 0;
    json_array_foreach (rows, index, row) {
        if (is_table(row, "limits")) continue;
        ck_assert_str_eq(text(row, "bits"), "equal");
        if (number(row, "spread") == 0) continue;
        static const char *const figures[] = {"seconds", "gb_s", "gmac_s", "of_limit", "cycles_block", "limit"};
        for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
            ck_assert_msg(json_object_get(row, figures[i]), "%s has no place", figures[i]);
        ck_assert(number(row, "seconds") > 0);
        marked++;
    }
    ck_assert_uint_gt(marked, 0);
    json_decref(rows);
    fr_command command = fr_command_ok("bench kernels --filter fr_quantize_scalar -t 1 --max-spread 0 -r 5 --quiet");
    ck_assert_ptr_nonnull(strstr(command.out, "Figures marked with ?, as their spread is above 0 %"));
    fr_command_free(&command);
}
END_TEST

/* Returns a size of the weights in MiB. It is more than twice the size of this machine's last-level cache, so that the
 * weights are read from memory. */
static long weights_in_memory(void) {
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return 256 + (cache > 0 ? 2 * cache >> 20 : 0);
}

/* The table has figures that were measured from memory and have a limit. The picture must have a mark for each of
 * them. */
START_TEST(the_picture_has_what_the_table_has) {
    char path[128], options[256], line[512];
    snprintf(path, sizeof path, "%s/forerun-roofline-%d.svg", P_tmpdir, (int)getpid());
    snprintf(options, sizeof options, "--weights %ld --filter matmul_q8_0_ --rows 1,2 --plot %s", weights_in_memory(),
             path);
    json_t *rows = rows_of(options), *row;
    size_t index, told = 0, marks = 0;
    json_array_foreach (rows, index, row)
        told += !is_table(row, "limits") && text(row, "limit") && strcmp(text(row, "where"), "memory") == 0;
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file)) marks += strstr(line, "<circle") != NULL;
    fclose(file);
    unlink(path);
    ck_assert(told > 0 || !has_vectors());
    ck_assert_uint_eq(marks, told);
    json_decref(rows);
}
END_TEST

static const struct {
    const char *line;
    const char *reason;
} refused[] = {
    {"bench kernels --filter nothing", "no kernel"},
    {"bench kernels --filter (", "no regular expression"},
    {"bench kernels -m model", "takes no -m"},
    {"bench kernels -p 512", "takes no -p"},
};

START_TEST(what_means_nothing_is_refused) {
    fr_command command = fr_command_run(refused[_i].line, NULL);
    ck_assert_int_eq(command.status, 2);
    ck_assert_msg(strstr(command.err, refused[_i].reason) != NULL, "%s", command.err);
    fr_command_free(&command);
}
END_TEST

/* --------------------------------------------------------------------------------------------------- broken kernels */

static const fr_bench_kernel *find(const char *name) {
    for (size_t i = 0; i < fr_bench_kernel_count; i++)
        if (strcmp(fr_bench_kernels[i].name, name) == 0) return &fr_bench_kernels[i];
    ck_abort_msg("no kernel %s", name);
}

/* Changes the last bit of one result, as a broken kernel would. */
static void nudge(float *value) {
    uint32_t bits;
    memcpy(&bits, value, sizeof bits);
    bits ^= 1;
    memcpy(value, &bits, sizeof bits);
}

static void nearly_matmul(const fr_matmul_block *job) {
    fr_matmul_q4_0_scalar(job);
    nudge(&job->y[(job->rows - 1) * job->y_stride + 5]);
}

static void nearly_add(float *y, const float *x, size_t n) {
    fr_add_scalar(y, x, n);
    nudge(&y[n - 1]);
}

static int64_t nearly_argmax(const float *x, size_t n) {
    return fr_argmax_scalar(x, n) + 1;
}

static const struct {
    const char *name;
    fr_bench_function *broken;
} broken_kernels[] = {{"fr_matmul_q4_0_scalar", (fr_bench_function *)nearly_matmul},
                      {"fr_add_scalar", (fr_bench_function *)nearly_add},
                      {"fr_argmax_scalar", (fr_bench_function *)nearly_argmax}};

START_TEST(a_kernel_with_other_bits_is_caught_and_not_timed) {
    const fr_bench_kernel *right = find(broken_kernels[_i].name);
    fr_bench_kernel wrong = *right;
    const fr_bench_shape *shapes;
    fr_bench_timing timing;
    fr_bench_bed *bed;
    fr_pool *pool;
    fr_plan plan = {.threads = 1, .cpu = {-1}, .nodes = 1};
    wrong.function = broken_kernels[_i].broken;
    ck_assert_int_eq(fr_pool_open(&plan, &pool), FR_OK);
    ck_assert_int_eq(fr_bench_bed_open(pool, 1, 1 << 20, 1, &bed), FR_OK);
    fr_bench_shapes(right, &shapes);
    fr_bench_case c = fr_bench_case_make(right, &shapes[0], 2, 1, fr_bench_bed_room(bed));
    ck_assert_int_eq(fr_bench_bed_load(bed, right, &c, false, true), FR_OK);
    fr_bench_bed_time(bed, right, &(fr_bench_roofs){0}, &timing);
    ck_assert(timing.same_bits);
    ck_assert(timing.seconds.middle > 0);
    fr_bench_bed_time(bed, &wrong, &(fr_bench_roofs){0}, &timing);
    ck_assert(!timing.same_bits);
    ck_assert(timing.seconds.middle == 0);
    fr_bench_bed_close(bed);
    fr_pool_close(pool);
}
END_TEST

/* Two times limit a kernel's speed: the time of reading its bytes, and the time of its multiply-adds. A kernel needs at
 * least the longer one. Both times follow from the peaks that were measured together with the kernel. Weights that are
 * in the caches have no reading time. */
START_TEST(a_share_is_of_the_limit_that_takes_longer) {
    const fr_bench_kernel *kernel = find("fr_matmul_q8_0_scalar");
    size_t p = 0, rows = _i / 2 ? 64 : 1;
    bool cached = _i % 2;
    while (p < fr_bench_peak_count && !fr_bench_peak_runs(&fr_bench_peaks[p])) p++;
    if (p == fr_bench_peak_count) {
        fr_test_skipped("this machine has no vectors");
        return;
    }
    const fr_bench_shape *shapes;
    fr_bench_timing t;
    fr_bench_bed *bed;
    fr_pool *pool;
    fr_plan plan = {.threads = 1, .cpu = {-1}, .nodes = 1};
    ck_assert_int_eq(fr_pool_open(&plan, &pool), FR_OK);
    ck_assert_int_eq(fr_bench_bed_open(pool, 1, (size_t)64 << 20, 1, &bed), FR_OK);
    size_t s = 0, count = fr_bench_shapes(kernel, &shapes);
    while (s < count && shapes[s].group != (cached ? FR_BENCH_CACHED : FR_BENCH_STREAMED)) s++;
    ck_assert_uint_lt(s, count);
    fr_bench_case c = fr_bench_case_make(kernel, &shapes[s], rows, 1, fr_bench_bed_room(bed));
    ck_assert_int_eq(fr_bench_bed_load(bed, kernel, &c, cached, true), FR_OK);
    fr_bench_bed_time(bed, kernel, &(fr_bench_roofs){.integers = {&fr_bench_peaks[p], 10000}}, &t);
    double reading = t.from_memory ? t.bytes / t.bandwidth : 0, multiplying = t.macs / t.peak;
    ck_assert(!cached || reading == 0);
    ck_assert_str_eq(t.limit, reading > multiplying ? "bandwidth" : "arithmetic");
    check_near(t.of_limit.middle, fmax(reading, multiplying) / t.seconds.middle, "share");
    ck_assert(isnan(t.of_limit.spread));
    fr_bench_bed_close(bed);
    fr_pool_close(pool);
}
END_TEST

/* Scores of cached keys that are codes multiply integers, and sums of values multiply floats. So the limit of attention
 * over codes is known only if both peaks are known. Over float16 the peak of floats is enough. */
START_TEST(attention_over_codes_has_two_peaks) {
    const fr_bench_kernel *kernel = find("fr_attn_scalar");
    const fr_dtype type = _i ? FR_Q8_0 : FR_F16;
    const fr_bench_peak *peak = &fr_bench_peaks[0];
    const fr_bench_shape *shapes;
    fr_bench_timing with_both, with_floats;
    fr_bench_bed *bed;
    fr_pool *pool;
    fr_plan plan = {.threads = 1, .cpu = {-1}, .nodes = 1};
    if (!fr_bench_peak_runs(peak)) {
        fr_test_skipped("this machine has no vectors");
        return;
    }
    ck_assert_int_eq(fr_pool_open(&plan, &pool), FR_OK);
    ck_assert_int_eq(fr_bench_bed_open(pool, 1, (size_t)8 << 20, 1, &bed), FR_OK);
    size_t s = 0, count = fr_bench_shapes(kernel, &shapes);
    while (s < count && shapes[s].type != type) s++;
    ck_assert_uint_lt(s, count);
    fr_bench_case c = fr_bench_case_make(kernel, &shapes[s], 1, 1, fr_bench_bed_room(bed));
    ck_assert(c.integer_macs == (type == FR_Q8_0 ? c.macs / 2 : 0));
    ck_assert_int_eq(fr_bench_bed_load(bed, kernel, &c, false, true), FR_OK);
    fr_bench_bed_time(bed, kernel, &(fr_bench_roofs){{peak, 1000}, {peak, 1000}}, &with_both);
    fr_bench_bed_time(bed, kernel, &(fr_bench_roofs){.floats = {peak, 1000}}, &with_floats);
    ck_assert(with_both.peak > 0 && with_both.limit != NULL);
    ck_assert((with_floats.limit == NULL) == (type == FR_Q8_0));
    fr_bench_bed_close(bed);
    fr_pool_close(pool);
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- counters */

/* The counted event is the page fault, which exists on every system with perf_event_open. Each page causes one fault
 * when it is touched for the first time. */
START_TEST(counters_count_what_happens_between_start_and_stop) {
    enum { PAGES = 300 };
    fr_bench_event events[FR_BENCH_COUNTERS];
    fr_bench_counting counting;
    double counts[FR_BENCH_COUNTERS];
    for (int i = 0; i < FR_BENCH_COUNTERS; i++)
        events[i] = (fr_bench_event){PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS};
    events[1].config = UINT32_MAX; /* an event that does not exist; its count must be NaN */
    int reason = fr_bench_counting_open(&counting, events);
    if (reason) {
        ck_assert_msg(reason == EACCES || reason == EPERM || reason == ENOSYS, "%s", strerror(reason));
        fr_test_skipped("the system does not let a program count events");
        return;
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, 2 * PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    madvise(memory, 2 * PAGES * page, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < PAGES; i++) memory[i * page] = 1; /* page faults before the start must not be counted */
    for (int turn = 0; turn < 2; turn++) {                   /* each turn counts from 0 */
        fr_bench_counting_start(&counting);
        for (size_t i = 0; i < PAGES / 2; i++) memory[(PAGES + turn * PAGES / 2 + i) * page] = 1;
        fr_bench_counting_stop(&counting, counts);
        ck_assert_msg(counts[0] >= PAGES / 2 && counts[0] < PAGES / 2 + 20, "%g page faults", counts[0]);
        ck_assert(isnan(counts[1]));
    }
    munmap(memory, 2 * PAGES * page);
    fr_bench_counting_close(&counting);
}
END_TEST

FR_SUITE("bench kernels") {
    TCase *tests = tcase_create("bench kernels");
    tcase_set_timeout(tests, 600); /* the tests take much longer if other programs use the machine */
    tcase_add_test(tests, a_product_is_its_weights_and_their_multiplications);
    tcase_add_test(tests, what_is_cached_is_bound_by_arithmetic);
    tcase_add_test(tests, attention_is_its_cache_and_its_queries);
    tcase_add_test(tests, every_kernel_that_runs_here_is_checked_and_timed);
    tcase_add_test(tests, only_what_is_asked_for_is_timed);
    tcase_add_test(tests, a_figure_that_spread_too_much_is_marked);
    tcase_add_test(tests, the_picture_has_what_the_table_has);
    tcase_add_loop_test(tests, what_means_nothing_is_refused, 0, sizeof refused / sizeof refused[0]);
    tcase_add_loop_test(tests, a_kernel_with_other_bits_is_caught_and_not_timed, 0,
                        sizeof broken_kernels / sizeof broken_kernels[0]);
    tcase_add_loop_test(tests, a_share_is_of_the_limit_that_takes_longer, 0, 4);
    tcase_add_loop_test(tests, attention_over_codes_has_two_peaks, 0, 2);
    tcase_add_test(tests, counters_count_what_happens_between_start_and_stop);
    suite_add_tcase(suite, tests);
}
