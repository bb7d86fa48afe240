/* Tests the bench of neighbours. It must measure every setting together with every load, and end its busy processes
 * afterwards. Its times are not checked, because tests run on busy machines. */
/* suite: native no-valgrind links=bench */
#include <check.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "bench/beside_busy.h"
#include "bench/busy_processes.h"
#include "tests/support/command.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

#define NONE "tests/data/none"

static void do_nothing(void *context, const char *what) {
    (void)context;
    (void)what;
}

/* Runs the bench with very short measurements. Returns the lines of its table. */
static json_t *rows_of(const char *model, fr_status expected) {
    int64_t threads[] = {1, 2};
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    fr_bench_report *report = fr_bench_report_open(out, FR_BENCH_JSON);
    fr_bench_beside_busy_plan plan = {.model = model,
                                      .threads = threads,
                                      .thread_count = 2,
                                      .repetitions = 2,
                                      .seconds = 0.02,
                                      .max_spread = 1e9,
                                      .options = fr_options_new(),
                                      .doing = do_nothing};
    ck_assert_int_eq(fr_bench_beside_busy(report, &plan), expected);
    fr_bench_report_close(report);
    fclose(out);
    fr_options_free(plan.options);
    json_t *rows = json_loads(text, 0, NULL);
    free(text);
    return rows;
}

static void nobody_is_left(void) {
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
}

START_TEST(every_setting_beside_every_load) {
    enum { LOADS = 4, SETTINGS = 5 };
    json_t *rows = rows_of(FOLDER, FR_OK);
    ck_assert_uint_eq(json_array_size(rows), LOADS * SETTINGS);
    for (size_t load = 0; load < LOADS; load++) {
        size_t best = 0;
        for (size_t i = 0; i < SETTINGS; i++) {
            const json_t *row = json_array_get(rows, SETTINGS * load + i);
            ck_assert_double_gt(json_number_value(json_object_get(row, "median_ts")), 0);
            best += i > 0 && json_number_value(json_object_get(row, "of_best")) == 1;
        }
        const char *first = json_string_value(json_object_get(json_array_get(rows, SETTINGS * load), "setting"));
        ck_assert_str_eq(first, "default");
        ck_assert_uint_ge(best, 1);
    }
    json_decref(rows);
    nobody_is_left();
}
END_TEST

START_TEST(a_model_that_does_not_open) {
    json_decref(rows_of(NONE, FR_INPUT));
    nobody_is_left();
}
END_TEST

START_TEST(busy_processes_end) {
    fr_bench_busy_processes busy = {.count = 0};
    fr_options *options = fr_options_new();
    require(fr_bench_busy_processes_add_loops(&busy, 2));
    require(fr_bench_busy_processes_add_decoder(&busy, FOLDER, options));
    ck_assert_uint_eq(busy.count, 3);
    for (size_t i = 0; i < 3; i++) ck_assert_int_eq(waitpid(busy.at[i], NULL, WNOHANG), 0);
    fr_bench_busy_processes_end(&busy);
    ck_assert_int_eq(fr_bench_busy_processes_add_decoder(&busy, NONE, options), FR_MACHINE);
    fr_bench_busy_processes_end(&busy);
    fr_options_free(options);
    nobody_is_left();
}
END_TEST

static const struct {
    const char *line, *said;
    int status;
} refused[] = {
    {"bench neighbours", "needs -m MODEL", 2},
    {"bench neighbours " MODEL "--pin", "bench neighbours takes no --pin", 2},
    {"bench neighbours -m " NONE, NONE, 1},
};

START_TEST(what_is_refused) {
    fr_command ran = fr_command_run(refused[_i].line, NULL);
    ck_assert_int_eq(ran.status, refused[_i].status);
    ck_assert_ptr_nonnull(strstr(ran.err, refused[_i].said));
    fr_command_free(&ran);
}
END_TEST

FR_SUITE("bench_neighbours") {
    TCase *cases = tcase_create("neighbours");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, every_setting_beside_every_load);
    tcase_add_test(cases, a_model_that_does_not_open);
    tcase_add_test(cases, busy_processes_end);
    tcase_add_loop_test(cases, what_is_refused, 0, sizeof refused / sizeof *refused);
    suite_add_tcase(suite, cases);
}
