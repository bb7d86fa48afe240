/* Tests `forerun bench machine` as users call it. Its tables are printed in four formats, which must have the same
 * values. */
/* suite: native no-valgrind links=bench */
#include <check.h>
#include <stdbool.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/read.h"
#include "bench/sample.h"
#include "tests/support/command.h"
#include "tests/support/suite.h"

/* The commands run with one thread, one timing and one instruction set, because the tests check only the structure of
 * the output. */
#define QUICK "bench machine -r 1 -t 1 --isa avx2,neon "

static const char *const facts[] = {"cpu_info", "cores",   "cpus",     "cpu_quota", "numa_nodes",
                                    "os",       "version", "compiler", "test_time"};
static const char *const tables[] = {"memory", "caches", "peaks", "barriers"};
enum { FACTS = sizeof facts / sizeof *facts, TABLES = sizeof tables / sizeof *tables };

static const char *text_of(const json_t *row, const char *key) {
    const char *text = json_string_value(fr_json_get(row, key));
    ck_assert_ptr_nonnull(text);
    return text;
}

static size_t count_rows(const json_t *rows, const char *table) {
    size_t count = 0, i;
    json_t *row;
    json_array_foreach (rows, i, row) count += strcmp(text_of(row, "table"), table) == 0;
    return count;
}

START_TEST(json_is_one_array_of_rows_that_each_have_every_fact) {
    fr_command c = fr_command_ok(QUICK "-o json");
    json_t *rows = json_loads(c.out, JSON_REJECT_DUPLICATES, NULL), *row;
    size_t i;
    ck_assert_msg(json_is_array(rows), "%s", c.out);
    json_array_foreach (rows, i, row) {
        for (size_t f = 0; f < FACTS; f++) {
            json_t *fact = fr_json_get(row, facts[f]);
            ck_assert(json_equal(fact, fr_json_get(json_array_get(rows, 0), facts[f])));
        }
        const char *key;
        json_t *value;
        json_object_foreach (row, key, value) ck_assert_msg(!json_is_object(value) && !json_is_array(value), "%s", key);
    }
    for (size_t t = 0; t < TABLES; t++) ck_assert_uint_ge(count_rows(rows, tables[t]), 1);
    ck_assert_str_eq(c.err, "");
    json_decref(rows);
    fr_command_free(&c);
}
END_TEST

START_TEST(jsonl_is_an_object_a_line) {
    fr_command c = fr_command_ok(QUICK "-o jsonl");
    size_t rows = 0;
    for (char *line = c.out, *end; *line; line = end + 1, rows++) {
        end = strchr(line, '\n');
        ck_assert_ptr_nonnull(end);
        json_t *row = json_loadb(line, (size_t)(end - line), JSON_REJECT_DUPLICATES, NULL);
        ck_assert_msg(json_is_object(row), "%s", line);
        text_of(row, "table");
        json_decref(row);
    }
    ck_assert_uint_ge(rows, TABLES);
    fr_command_free(&c);
}
END_TEST

/* Counts the cells of a line of CSV, which are the commas outside quotes, plus one. */
static size_t csv_cells(const char *line) {
    size_t cells = 1;
    for (int quoted = 0; *line && *line != '\n'; line++) {
        if (*line == '"') quoted = !quoted;
        cells += *line == ',' && !quoted;
    }
    return cells;
}

/* Counts the columns of a list in brackets, which are the commas outside quotes, plus one. Quotes may be single or
 * double. */
static size_t sql_columns(const char *list) {
    size_t columns = 1;
    char quote = '\0';
    for (const char *c = list + 1; quote || *c != ')'; c++) {
        ck_assert_msg(*c && *c != '\n', "%s", list);
        if (quote ? *c == quote : *c == '"' || *c == '\'') quote = quote ? '\0' : *c;
        columns += *c == ',' && !quote;
    }
    return columns;
}

/* A table must be created before its lines, and each line must have as many values as the table has columns. */
START_TEST(sql_makes_tables_and_fills_them) {
    fr_command c = fr_command_ok(QUICK "-o sql");
    size_t made = 0, rows = 0, columns = 0;
    for (char *line = c.out; *line; line = strchr(line, '\n') + 1) {
        bool makes = strncmp(line, "CREATE TABLE IF NOT EXISTS \"forerun_", 36) == 0;
        ck_assert_msg(makes || strncmp(line, "INSERT INTO \"forerun_", 21) == 0, "%s", line);
        ck_assert_msg(strncmp(strchr(line, '\n') - 2, ");", 2) == 0, "%s", line);
        size_t names = sql_columns(strchr(line, '('));
        if (makes) columns = names;
        ck_assert_uint_eq(names, columns);
        if (!makes) ck_assert_uint_eq(sql_columns(strstr(line, ") VALUES (") + 9), columns);
        made += makes;
        rows += !makes;
    }
    ck_assert_uint_eq(made, TABLES);
    ck_assert_uint_ge(rows, TABLES);
    fr_command_free(&c);
}
END_TEST

START_TEST(csv_tables_begin_with_names_and_have_as_many_cells_in_each_row) {
    fr_command c = fr_command_ok(QUICK "-o csv");
    size_t names = 0, rows = 0, begun = 0;
    for (char *line = c.out; *line; line = strchr(line, '\n') + 1) {
        ck_assert_ptr_nonnull(strchr(line, '\n'));
        if (*line == '\n') {
            ck_assert_uint_ge(rows, 1);
            names = rows = 0;
        } else if (names == 0) {
            ck_assert_int_eq(strncmp(line, "\"cpu_info\",\"cores\",", 19), 0);
            names = csv_cells(line);
            begun++;
        } else {
            ck_assert_uint_eq(csv_cells(line), names);
            rows++;
        }
    }
    ck_assert_uint_eq(begun, TABLES);
    fr_command_free(&c);
}
END_TEST

static size_t bars(const char *line) {
    size_t count = 0;
    for (; *line != '\n'; line++) count += *line == '|';
    return count;
}

START_TEST(markdown_has_the_facts_once_and_a_title_over_each_table) {
    fr_command c = fr_command_ok(QUICK);
    size_t titles = 0, columns = 0, listed = 0;
    for (char *line = c.out; *line; line = strchr(line, '\n') + 1) {
        ck_assert_ptr_nonnull(strchr(line, '\n'));
        titles += strncmp(line, "## ", 3) == 0;
        listed += strncmp(line, "- CPU: ", 7) == 0;
        if (*line != '|')
            columns = 0;
        else if (columns == 0)
            columns = bars(line);
        else
            ck_assert_uint_eq(bars(line), columns);
    }
    ck_assert_uint_eq(titles, TABLES);
    ck_assert_uint_eq(listed, 1);
    fr_command_free(&c);
}
END_TEST

/* The limit on the spread is 0, and the spread of several timings always exceeds it. Such figures must be marked in
 * tables for people. Output for programs must give the spread instead. */
START_TEST(figures_that_spread_more_than_the_limit_are_marked) {
    fr_command c = fr_command_ok("bench machine -r 9 -t 1 --isa avx2,neon --max-spread 0 -o json");
    json_t *rows = json_loads(c.out, 0, NULL), *row;
    size_t i;
    json_array_foreach (rows, i, row) {
        if (strcmp(text_of(row, "table"), "memory") != 0) continue;
        ck_assert(json_number_value(fr_json_get(row, "gb_per_s")) > 0);
        ck_assert(json_number_value(fr_json_get(row, "gb_per_s_best")) > 0);
        ck_assert(json_number_value(fr_json_get(row, "spread_percent")) > 0);
    }
    json_decref(rows);
    fr_command_free(&c);
}
END_TEST

/* The expected values are calculated by hand. Quartiles are interpolated between the two nearest values, as R and numpy
 * do by default. The spread of a single value is unknown. Medians of differences can be negative. The spread must never
 * be negative, even if the median is. */
START_TEST(a_figure_is_the_median_and_the_quartiles_distance) {
    double odd[] = {5, 1, 3, 2, 4}, even[] = {4, 1, 3, 2}, two[] = {7, 13}, one[] = {5}, below[] = {-1, 0, -3};
    fr_bench_figure a = fr_bench_figure_of(odd, 5), b = fr_bench_figure_of(even, 4), c = fr_bench_figure_of(two, 2),
                    d = fr_bench_figure_of(one, 1), e = fr_bench_figure_of(below, 3);
    ck_assert(a.middle == 3 && a.least == 1 && a.most == 5);
    ck_assert_double_eq_tol(a.spread, 100 * (4.0 - 2.0) / 3, 1e-9);
    ck_assert(b.middle == 2.5);
    ck_assert_double_eq_tol(b.spread, 100 * (3.25 - 1.75) / 2.5, 1e-9);
    ck_assert(c.middle == 10 && d.middle == 5 && isnan(d.spread));
    ck_assert_double_eq_tol(c.spread, 60, 1e-9);
    ck_assert(e.middle == -1);
    ck_assert_double_eq_tol(e.spread, 150, 1e-9);
    ck_assert(fr_bench_is_doubtful(&a, 66) && !fr_bench_is_doubtful(&a, 67));
    ck_assert(fr_bench_is_doubtful(&c, 59) && !fr_bench_is_doubtful(&c, 61) && fr_bench_is_doubtful(&d, INFINITY));
}
END_TEST

/* The reading loops return the exclusive or of all words that they read. With an odd number of passes this must be the
 * value of one pass. With an even number it must be 0. So the test notices a word that a loop leaves out. */
START_TEST(every_loop_reads_every_byte) {
    enum { SIZE = 3 * 4096 };
    uint8_t *bytes = aligned_alloc(4096, SIZE);
    uint64_t all = 0, word;
    uint32_t state = 1;
    for (size_t i = 0; i < SIZE; i++) bytes[i] = (uint8_t)((state = state * 1664525 + 1013904223) >> 24);
    for (size_t i = 0; i < SIZE; i += sizeof word) {
        memcpy(&word, bytes + i, sizeof word);
        all ^= word;
    }
    for (size_t i = 0; i < fr_bench_reader_count; i++) {
        const fr_bench_reader *reader = &fr_bench_readers[i];
        if (!(fr_cpu_levels() >> reader->level & 1)) continue;
        for (size_t passes = 0; passes < 4; passes++)
            ck_assert_uint_eq(reader->loop(bytes, SIZE, passes), passes % 2 ? all : 0);
        bytes[SIZE - 1] ^= 1;
        ck_assert_uint_ne(reader->loop(bytes, SIZE, 1), all);
        bytes[SIZE - 1] ^= 1;
    }
    free(bytes);
}
END_TEST

START_TEST(the_word_chooses_the_loop) {
    ck_assert_int_eq(fr_bench_widest_reader("scalar")->level, FR_ISA_SCALAR);
    for (size_t i = 0; fr_isa_word(i); i++) {
        unsigned runs = fr_cpu_levels() & fr_isa_allows((fr_isa_level)i);
        const fr_bench_reader *reader = fr_bench_widest_reader(fr_isa_word(i)), *any = fr_bench_widest_reader(NULL);
        ck_assert(runs >> reader->level & 1 || reader->level == FR_ISA_SCALAR);
        ck_assert_int_le(reader->level, any->level);
        if (runs >> FR_ISA_AVX2 & 1) ck_assert_int_ge(reader->level, FR_ISA_AVX2);
        if (runs >> FR_ISA_NEON & 1) ck_assert_int_eq(reader->level, FR_ISA_NEON);
    }
}
END_TEST

START_TEST(a_wrong_command_line_is_exit_2_and_prints_no_table) {
    static const char *const lines[] = {"bench machine -o xml", "bench machine --isa sse2", "bench machine -t 0",
                                        "bench machine -r 0", "bench"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        fr_command c = fr_command_run(lines[i], NULL);
        ck_assert_int_eq(c.status, 2);
        ck_assert_str_eq(c.out, "");
        fr_command_free(&c);
    }
}
END_TEST

FR_SUITE("bench") {
    TCase *cases = tcase_create("bench");
    tcase_set_timeout(cases, 300);
    tcase_add_test(cases, json_is_one_array_of_rows_that_each_have_every_fact);
    tcase_add_test(cases, jsonl_is_an_object_a_line);
    tcase_add_test(cases, sql_makes_tables_and_fills_them);
    tcase_add_test(cases, csv_tables_begin_with_names_and_have_as_many_cells_in_each_row);
    tcase_add_test(cases, markdown_has_the_facts_once_and_a_title_over_each_table);
    tcase_add_test(cases, figures_that_spread_more_than_the_limit_are_marked);
    tcase_add_test(cases, a_figure_is_the_median_and_the_quartiles_distance);
    tcase_add_test(cases, every_loop_reads_every_byte);
    tcase_add_test(cases, the_word_chooses_the_loop);
    tcase_add_test(cases, a_wrong_command_line_is_exit_2_and_prints_no_table);
    suite_add_tcase(suite, cases);
}
