/* Tests texts that the demo model generates under 40 of the schemas in tests/schemas, without drafts and with the
 * model's drafter. Python's jsonschema accepted these texts earlier, and tests/schemas/check.py stored them. The model
 * must generate the same texts again.
 *
 * In: tests/data/grammars/outputs.jsonl. Each of its lines has a job and its text. */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/command.h"
#include "tests/support/suite.h"

#define STORED "tests/data/grammars/outputs.jsonl"
enum { LINES = 40 };

static json_t *stored[LINES];

static void read_stored(void) {
    FILE *file = fopen(STORED, "r");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < LINES; i++) {
        stored[i] = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL);
        ck_assert_msg(stored[i] != NULL, STORED ": line %d", i + 1);
    }
    fclose(file);
}

static void free_stored(void) {
    for (int i = 0; i < LINES; i++) json_decref(stored[i]);
}

static void write_jobs(const char *path) {
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < LINES; i++) {
        json_dumpf(json_object_get(stored[i], "job"), file, JSON_COMPACT);
        fputc('\n', file);
    }
    ck_assert_int_eq(fclose(file), 0);
}

static void compare(const char *path) {
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < LINES; i++) {
        json_t *answer = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL);
        const char *text = json_string_value(json_object_get(answer, "text"));
        const char *wanted = json_string_value(json_object_get(stored[i], "text"));
        ck_assert_msg(text && strcmp(text, wanted) == 0, "line %d: %s, not %s", i + 1, text, wanted);
        json_decref(answer);
    }
    fclose(file);
}

START_TEST(texts_of_schemas) {
    static const char *const drafting[] = {"--draft-max 0", "-md tools/demo/assistant --draft-max 5"};
    char folder[] = "/tmp/forerun-schemas-XXXXXX", jobs[64], out[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(jobs, sizeof jobs, "%s/jobs.jsonl", folder);
    snprintf(out, sizeof out, "%s/out.jsonl", folder);
    write_jobs(jobs);
    fr_command c = fr_command_ok("batch -m tools/demo/target -f %s -o %s -np 8 %s", jobs, out, drafting[_i]);
    compare(out);
    fr_command_free(&c);
    unlink(jobs);
    unlink(out);
    rmdir(folder);
}
END_TEST

FR_SUITE("schemas") {
    TCase *c = tcase_create("schemas");
    tcase_add_unchecked_fixture(c, read_stored, free_stored);
    tcase_set_timeout(c, 300);
    tcase_add_loop_test(c, texts_of_schemas, 0, 2);
    suite_add_tcase(suite, c);
}
