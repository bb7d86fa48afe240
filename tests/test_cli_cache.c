/* tools/: --prompt-cache, and the options of a session's memory, as users call them: the text is the same, and less is
 * run. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/command.h"

#define START "-p 'The cat sat on the mat, and the dog' "

static char folder[] = "/tmp/forerun-cache-XXXXXX", file[64];

static json_t *run_json(const char *options) {
    fr_command c =
        fr_command_ok("generate " DEMO "-n 40 --ignore-eos --output json %s --prompt-cache %s", options, file);
    json_t *object = json_loads(c.out, 0, NULL);
    ck_assert_ptr_nonnull(object);
    fr_command_free(&c);
    return object;
}

static json_int_t stat_of(const json_t *object, const char *name) {
    return json_integer_value(fr_json_get(fr_json_get(object, "stats"), name));
}

START_TEST(a_cached_prompt_is_not_run_again) {
    json_t *plain = run_json(START), *again = run_json(START DEMO_DRAFTER "-t 1 --isa scalar --chunk 7 -c 300"),
           *longer = run_json("-p 'The cat sat on the mat, and the dog was not amused' ");
    ck_assert(json_equal(fr_json_get(plain, "ids"), fr_json_get(again, "ids")));
    json_int_t prompt = stat_of(plain, "prompt_tokens");
    ck_assert_int_eq(stat_of(plain, "reused_tokens"), 0);
    ck_assert_int_eq(stat_of(again, "reused_tokens"), prompt);
    ck_assert_int_eq(stat_of(again, "prompt_tokens"), 0);
    ck_assert_int_le(stat_of(again, "rerun_tokens"), 1);
    ck_assert_int_ge(stat_of(longer, "reused_tokens"), prompt);
    unlink(file);
    json_t *fresh = run_json("-p 'The cat sat on the mat, and the dog was not amused' ");
    ck_assert(json_equal(fr_json_get(longer, "ids"), fr_json_get(fresh, "ids")));
    json_decref(plain);
    json_decref(again);
    json_decref(longer);
    json_decref(fresh);
}
END_TEST

/* -n 0 runs the prompt and says nothing; who comes next finds it run. */
START_TEST(a_cache_is_filled_without_generating) {
    fr_command c = fr_command_ok("generate " DEMO START "-n 0 --prompt-cache %s", file);
    ck_assert_str_eq(c.out, "");
    ck_assert_int_eq(access(file, F_OK), 0);
    fr_command_free(&c);
    json_t *filled = run_json(START);
    ck_assert_int_gt(stat_of(filled, "reused_tokens"), 0);
    ck_assert_int_eq(stat_of(filled, "prompt_tokens"), 0);
    ck_assert_int_le(stat_of(filled, "rerun_tokens"), 1);
    unlink(file);
    json_t *fresh = run_json(START);
    ck_assert(json_equal(fr_json_get(filled, "ids"), fr_json_get(fresh, "ids")));
    json_int_t prompt = stat_of(fresh, "prompt_tokens");
    ck_assert_int_eq(stat_of(filled, "reused_tokens"), prompt);
    c = fr_command_ok("generate " DEMO START "-n 0 --output json");
    json_t *nothing = json_loads(c.out, 0, NULL);
    ck_assert_uint_eq(json_array_size(fr_json_get(nothing, "ids")), 0);
    ck_assert_str_eq(json_string_value(fr_json_get(nothing, "text")), "");
    ck_assert_str_eq(json_string_value(fr_json_get(nothing, "stop")), "length");
    ck_assert_int_eq(stat_of(nothing, "prompt_tokens"), prompt);
    ck_assert_int_eq(stat_of(nothing, "generated_tokens"), 0);
    fr_command_free(&c);
    json_decref(filled);
    json_decref(fresh);
    json_decref(nothing);
}
END_TEST

START_TEST(a_chat_begins_with_what_is_cached) {
    fr_command first, again;
    first = fr_command_feed("Hello.\nAnd more?\n", "chat " DEMO "-n 30 --prompt-cache %s", file);
    ck_assert_int_eq(access(file, F_OK), 0);
    again = fr_command_feed("Hello.\nAnd more?\n", "chat " DEMO "-n 30 --prompt-cache %s --stats", file);
    ck_assert_str_eq(first.out, again.out);
    ck_assert_ptr_nonnull(strstr(again.err, "reused "));
    fr_command_free(&first);
    fr_command_free(&again);
}
END_TEST

START_TEST(a_file_that_is_no_cache_of_this_is_exit_1) {
    fr_command c;
    char line[256];
    json_decref(run_json(START));
    snprintf(line, sizeof line, "generate " MODEL "--ids 2,3 -n 4 --prompt-cache %s", file);
    c = fr_command_run(line, NULL);
    ck_assert_int_eq(c.status, 1);
    ck_assert_ptr_nonnull(strstr(c.err, "another model"));
    ck_assert_ptr_eq(strchr(c.err, '\n'), c.err + c.err_length - 1);
    fr_command_free(&c);
    snprintf(line, sizeof line, "generate " DEMO START "-n 4 -ctk q8_0 --prompt-cache %s", file);
    c = fr_command_run(line, NULL);
    ck_assert_int_eq(c.status, 1);
    ck_assert_ptr_nonnull(strstr(c.err, "other types"));
    fr_command_free(&c);
    c = fr_command_run("generate " DEMO START "-n 4 --prompt-cache tests", NULL);
    ck_assert_int_eq(c.status, 1);
    fr_command_free(&c);
}
END_TEST

START_TEST(what_is_kept_changes_no_text) {
    static const char *const options[] = {"--swa-full", "--ctx-checkpoints 0", "--swa-checkpoints 3"};
    const char *turns = "The function returns a list.\nWhat is a dictionary of bytes?\nAnd more?\n";
    fr_command usual = fr_command_feed(turns, "chat " DEMO "-n 40"), other;
    for (size_t i = 0; i < 3; i++) {
        other = fr_command_feed(turns, "chat " DEMO "-n 40 %s", options[i]);
        ck_assert_str_eq(usual.out, other.out);
        fr_command_free(&other);
    }
    fr_command_free(&usual);
}
END_TEST

static void make_folder(void) {
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/cache", folder);
}

static void remove_folder(void) {
    unlink(file);
    rmdir(folder);
}

int main(void) {
    TCase *cases = tcase_create("cli_cache");
    tcase_set_timeout(cases, 300);
    tcase_add_checked_fixture(cases, make_folder, remove_folder);
    tcase_add_test(cases, a_cached_prompt_is_not_run_again);
    tcase_add_test(cases, a_cache_is_filled_without_generating);
    tcase_add_test(cases, a_chat_begins_with_what_is_cached);
    tcase_add_test(cases, a_file_that_is_no_cache_of_this_is_exit_1);
    tcase_add_test(cases, what_is_kept_changes_no_text);
    Suite *suite = suite_create("cli_cache");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
