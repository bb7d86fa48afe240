/* Tests the bench of grammars. It runs each grammar over its text, first in states that are computed anew, and then in
 * states that are in the cache. Its times are not checked, because tests run on busy machines. */
/* suite: native no-valgrind links=bench */
#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "bench/grammar.h"
#include "tests/support/command.h"
#include "tests/support/suite.h"

#define LLAMA "tests/data/llama/q4_0.gguf"
#define NONE  "tests/data/none"

static json_t *rows_of(const char *model, size_t repetitions, fr_status expected) {
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    fr_bench_report *report = fr_bench_report_open(out, FR_BENCH_JSON);
    fr_bench_grammar_plan plan = {
        .model = model, .repetitions = repetitions, .max_spread = 1e9, .options = fr_options_new()};
    ck_assert_int_eq(fr_bench_grammar(report, &plan), expected);
    fr_bench_report_close(report);
    fclose(out);
    fr_options_free(plan.options);
    json_t *rows = json_loads(text, 0, NULL);
    free(text);
    return rows;
}

static double figure(const json_t *row, const char *name) {
    return json_number_value(json_object_get(row, name));
}

/* The bench returns an error if a text does not follow its grammar. So this test shows that every text follows its
 * grammar. */
START_TEST(every_grammar) {
    static const char *names[] = {"any_object", "record", "strings", "regex", "arithmetic"};
    json_t *rows = rows_of(LLAMA, 3, FR_OK);
    ck_assert_uint_eq(json_array_size(rows), sizeof names / sizeof *names);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *row = json_array_get(rows, i);
        ck_assert_str_eq(json_string_value(json_object_get(row, "grammar")), names[i]);
        ck_assert_double_gt(figure(row, "rows"), 20);
        ck_assert_double_gt(figure(row, "made_us"), 0);
        ck_assert_double_gt(figure(row, "known_us"), 0);
        ck_assert_double_ge(figure(row, "worst_us"), figure(row, "new_us"));
        double step = figure(row, "new_us") / figure(row, "new_of_step");
        ck_assert_double_eq_tol(figure(row, "known_us") / figure(row, "known_of_step"), step, step / 1000);
    }
    json_decref(rows);
}
END_TEST

START_TEST(what_is_refused_by_itself) {
    json_decref(rows_of(NONE, 1, FR_INPUT));
    json_decref(rows_of(LLAMA, 1001, FR_USAGE));
}
END_TEST

static const struct {
    const char *line, *said;
    int status;
} refused[] = {
    {"bench grammar", "needs -m MODEL", 2},
    {"bench grammar -m " LLAMA " -p 512", "bench grammar takes no -p", 2},
    {"bench grammar -m " NONE, NONE, 1},
};

START_TEST(what_is_refused) {
    fr_command ran = fr_command_run(refused[_i].line, NULL);
    ck_assert_int_eq(ran.status, refused[_i].status);
    ck_assert_msg(strstr(ran.err, refused[_i].said) != NULL, "%s", ran.err);
    fr_command_free(&ran);
}
END_TEST

FR_SUITE("bench_grammar") {
    TCase *cases = tcase_create("grammar");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, every_grammar);
    tcase_add_test(cases, what_is_refused_by_itself);
    tcase_add_loop_test(cases, what_is_refused, 0, sizeof refused / sizeof *refused);
    suite_add_tcase(suite, cases);
}
