/* Tests formats/json_read. It must give the same values as jansson's own reader, or refuse the text. The texts are
 * every JSON file of the tests, texts at the limits of the grammar, and every beginning of one text. Further tests are
 * about numbers that Python reads but jansson refuses. */
#include "formats/json_read.h"

#include <check.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/json_wide.h"
#include "tests/support/suite.h"

/* Reads a text with formats/json_read and with jansson, and compares the values. Returns true if formats/json_read
 * accepts the text. */
static bool compare(const char *text, size_t size, size_t flags) {
    json_error_t error;
    bool lost;
    json_t *own = fr_json_read_text(text, size, flags, &lost), *jansson = json_loadb(text, size, flags, &error);
    bool read = own;
    int shown = size < 100 ? (int)size : 100;
    ck_assert(!lost);
    ck_assert_msg(!own || jansson, "%.*s: read, but jansson says: %s", shown, text, error.text);
    ck_assert_msg(!own || json_equal(own, jansson), "%.*s: another value", shown, text);
    json_decref(own);
    json_decref(jansson);
    return read;
}

static const struct {
    const char *text;
    size_t flags;
    bool read;
} texts[] = {
    {"{}", 0, true},
    {" [ ] ", 0, true},
    {"{\"a\": [1, -2, 0, -0, 3.5, -1e-5, 2E+3, 999999999999999999], \"b\": {\"c\": null, \"d\": [true]}}", 0, true},
    {"[0.1, 1e-400, 123456.789e3, 5e-324, 1.7976931348623157e308]", 0, true},
    {"[\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\", \"\\\"\\\\\\/\\b\\f\\n\\r\\t\", \"W\xc3\xb6rter\", \"\"]", 0, true},
    {"[\"a\\u0000b\"]", JSON_ALLOW_NUL, true},
    {"[\"a\\u0000b\"]", 0, false},
    {"{\"a\": 1, \"a\": 2}", 0, true},
    {"{\"a\": 1, \"a\": 2}", JSON_REJECT_DUPLICATES, false},
    {"\"text\"", JSON_DECODE_ANY, true},
    {"\"text\"", 0, false},
    {"12", JSON_DECODE_ANY, true},
    {"", 0, false},
    {"[1,]", 0, false},
    {"[,1]", 0, false},
    {"{\"a\" 1}", 0, false},
    {"{\"a\": 1,}", 0, false},
    {"{a: 1}", 0, false},
    {"[01]", 0, false},
    {"[-]", 0, false},
    {"[1.]", 0, false},
    {"[.5]", 0, false},
    {"[1e]", 0, false},
    {"[+1]", 0, false},
    {"[1e999]", 0, false},
    {"[nul]", 0, false},
    {"[truefalse]", 0, false},
    {"[\"\\ud83d\"]", 0, false},
    {"[\"\\ude00\"]", 0, false},
    {"[\"\\ud83d\\u0041\"]", 0, false},
    {"[\"\\x\"]", 0, false},
    {"[\"\\u12g4\"]", 0, false},
    {"[\"a\nb\"]", 0, false},
    {"[\"\xff\"]", 0, false},
    {"[\"\xc0\x80\"]", 0, false},
    {"[\"\xed\xa0\x80\"]", 0, false},
    {"[\"\xf4\x90\x80\x80\"]", 0, false},
    {"[1] 2", 0, false},
    {"[1", 0, false},
    {"[9223372036854775807, -9223372036854775808, 1234567890123456789]", 0, true},
    {"[9223372036854775808]", 0, false}, /* an integer beyond int64; the reader returns NULL for it */
    {"[12345678901234567890]", 0, false},
    {"[NaN]", 0, false},
    {"[-Infinity]", 0, false},
};

START_TEST(edges_of_the_grammar) {
    ck_assert_int_eq(compare(texts[_i].text, strlen(texts[_i].text), texts[_i].flags), texts[_i].read);
}
END_TEST

START_TEST(beginnings_of_a_text) {
    const char *text = texts[2 + 2 * _i].text;
    for (size_t size = 0; size < strlen(text); size++) ck_assert(!compare(text, size, 0));
}
END_TEST

START_TEST(every_file_that_there_is) {
    static const char *const patterns[] = {"tests/data/*/*.json", "tests/data/*/*/*.json", "tests/data/*.json"};
    size_t read = 0;
    for (size_t p = 0; p < 3; p++) {
        glob_t found;
        ck_assert_int_eq(glob(patterns[p], 0, NULL, &found), 0);
        for (size_t i = 0; i < found.gl_pathc; i++) {
            FILE *file = fopen(found.gl_pathv[i], "rb");
            ck_assert_ptr_nonnull(file);
            fseek(file, 0, SEEK_END);
            size_t size = (size_t)ftell(file);
            rewind(file);
            char *text = malloc(size + 1);
            ck_assert_uint_eq(fread(text, 1, size, file), size);
            fclose(file);
            read += compare(text, size, JSON_REJECT_DUPLICATES);
            read += compare(text, size, JSON_ALLOW_NUL);
            free(text);
        }
        globfree(&found);
    }
    ck_assert_uint_ge(read, 200);
}
END_TEST

/* Python's json writes and reads numbers that JSON does not have: json.loads('[NaN, Infinity, -Infinity, 1e999,
 * -1e999]') gives [nan, inf, -inf, inf, -inf]. Its integers may be arbitrarily large. */
START_TEST(numbers_of_python) {
    static const char *const words[] = {"NaN", "Infinity", "-Infinity", "Infinity", "-Infinity"};
    static const char text[] = "[NaN, Infinity,-Infinity,1e999, -1e999, 1e30, 12345678901234567890, "
                               "-9223372036854775808]";
    static const char *const wrong[] = {"[nan]", "[Inf]", "[-NaN]", "[+Infinity]", "[Infinityy]", "[- Infinity]"};
    bool lost;
    json_t *all = fr_json_read_text(text, sizeof text - 1, FR_JSON_PYTHON_NUMBERS, &lost);
    ck_assert_uint_eq(json_array_size(all), 8);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_str_eq(fr_json_not_finite(json_array_get(all, i)), words[i]);
        ck_assert(!fr_json_is_text(json_array_get(all, i)));
    }
    ck_assert(json_real_value(json_array_get(all, 5)) == 1e30);
    ck_assert(json_real_value(json_array_get(all, 6)) == 12345678901234567890.0);
    ck_assert_int_eq(json_integer_value(json_array_get(all, 7)), INT64_MIN);
    json_decref(all);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_ptr_null(fr_json_read_text(wrong[i], strlen(wrong[i]), FR_JSON_PYTHON_NUMBERS, &lost));
}
END_TEST

START_TEST(as_deep_as_it_may_be) {
    char text[2 * FR_JSON_READ_DEPTH + 4];
    for (size_t depth = FR_JSON_READ_DEPTH; depth <= FR_JSON_READ_DEPTH + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        ck_assert_int_eq(compare(text, 2 * depth, 0), depth == FR_JSON_READ_DEPTH);
    }
}
END_TEST

FR_SUITE("json_read") {
    TCase *cases = tcase_create("json_read");
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, edges_of_the_grammar, 0, sizeof texts / sizeof *texts);
    tcase_add_loop_test(cases, beginnings_of_a_text, 0, 2);
    tcase_add_test(cases, every_file_that_there_is);
    tcase_add_test(cases, numbers_of_python);
    tcase_add_test(cases, as_deep_as_it_may_be);
    suite_add_tcase(suite, cases);
}
