/* Tests the verb features and fr_session_rows. The hidden rows must equal those that transformers computes from the
 * same weights (tests/references/layer_rows.py). Every way of running must give the same folder. An interrupted run
 * must be able to continue in its folder. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/safetensors.h"
#include "tests/support/brief.h"
#include "tests/support/command.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

#define LLAMA "llama-odd"

static char folder[64];

static void make_folder(void) {
    snprintf(folder, sizeof folder, "%s/forerun-features-XXXXXX", P_tmpdir);
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

/* ------------------------------------------------------------------------------------------------------------- rows */

START_TEST(rows_are_what_transformers_gives_its_layers) {
    fr_reference r;
    fr_session *session;
    fr_map map;
    fr_tensors tensors = {0}, unread = {0};
    const size_t layers[] = {0, 1, 2, 3};
    size_t count;
    fr_reference_open(&r, LLAMA, NULL);
    require(fr_session_open(r.model, NULL, NULL, &session));
    require(fr_map_open(&map, "tests/data/llama/rows.safetensors", true));
    require(fr_safetensors_read(&map, 0, &tensors, &unread));
    const fr_tensor *expected = fr_tensors_find(&tensors, "prompt.2.rows");
    ck_assert_ptr_nonnull(expected);
    int32_t *ids = fr_json_ids_of(json_array_get(json_object_get(r.info, "prompts"), 2), &count);
    fr_rows got = {malloc(expected->bytes), 0, expected->bytes / sizeof(float)};
    require(fr_session_rows(session, ids, count, layers, 4, fr_rows_collect, &got));
    ck_assert_uint_eq(got.count, expected->bytes / sizeof(float));
    for (size_t layer = 0; layer < 4; layer++) /* the bound is relative to each layer's largest value */
        for (size_t p = 0, hidden = got.count / count / 4; p < count; p++)
            fr_rows_compare(got.values + (p * 4 + layer) * hidden,
                            (const float *)expected->data + (p * 4 + layer) * hidden, hidden);
    free(got.values);
    free(ids);
    fr_tensors_free(&tensors);
    fr_map_close(&map);
    fr_session_close(session);
    fr_reference_close(&r);
}
END_TEST

START_TEST(layers_are_asked_for_by_number) {
    fr_reference r;
    fr_session *session;
    fr_rows got = {0};
    const int32_t id = 2;
    const size_t beyond = 4, first = 0;
    fr_reference_open(&r, LLAMA, NULL);
    require(fr_session_open(r.model, NULL, NULL, &session));
    ck_assert_int_eq(fr_session_rows(session, &id, 1, &beyond, 1, fr_rows_collect, &got), FR_USAGE);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "layer 4 is beyond the model's 3"));
    ck_assert_int_eq(fr_session_rows(session, &id, 1, &first, 0, fr_rows_collect, &got), FR_USAGE);
    ck_assert_int_eq(fr_session_rows(session, &id, 1, &first, 9, fr_rows_collect, &got), FR_USAGE);
    ck_assert_int_eq(fr_session_rows(session, &id, 1, NULL, 1, fr_rows_collect, &got), FR_USAGE);
    ck_assert_int_eq(fr_session_rows(session, &id, 1, &first, 1, NULL, NULL), FR_USAGE);
    ck_assert_int_eq(fr_session_rows(NULL, &id, 1, &first, 1, fr_rows_collect, &got), FR_USAGE);
    fr_session_close(session);
    fr_reference_close(&r);
}
END_TEST

/* ----------------------------------------------------------------------------------------------------------- folder */

#define FEATURES "features " DEMO "-f - -n 9 "

static const char prompts[] = "{\"id\": \"a\", \"prompt\": \"Once upon a time\"}\n"
                              "{\"prompt\": \"import os\", \"temp\": 0.9, \"seed\": 7, \"n\": 30}\n"
                              "{\"ids\": [2, 5, 9, 300], \"n\": 0}\n"
                              "{\"ids\": [2, 99999999]}\n"
                              "{\"id\": 4, \"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], \"n\": 12}\n";
enum { PROMPTS = 5, FAILS = 3 };

static const char *in_folder(const char *of, const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s/%s", folder, of, name);
    return path;
}

static char *bytes_of(const char *of, const char *name, size_t *length) {
    FILE *in = fopen(in_folder(of, name), "rb");
    ck_assert_ptr_nonnull(in);
    fseek(in, 0, SEEK_END);
    *length = (size_t)ftell(in);
    rewind(in);
    char *bytes = calloc(*length + 1, 1);
    ck_assert_uint_eq(fread(bytes, 1, *length, in), *length);
    fclose(in);
    return bytes;
}

static void expect_alike(const char *of, const char *other) {
    static const char *const names[] = {"features.json", "index.jsonl", "rows.bf16"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length, other_length;
        char *bytes = bytes_of(of, names[i], &length), *others = bytes_of(other, names[i], &other_length);
        ck_assert_uint_eq(length, other_length);
        ck_assert_mem_eq(bytes, others, length);
        free(bytes);
        free(others);
    }
}

/* Runs the verb on the prompts, one of which must fail. */
static void run(const char *of, const char *options) {
    char line[512];
    snprintf(line, sizeof line, FEATURES "-o %s/%s %s", folder, of, options);
    fr_command c = fr_command_run(line, prompts);
    ck_assert_msg(c.status == 1 && strstr(c.err, "1 of 5 lines could not be run"), "%s", c.err);
    fr_command_free(&c);
}

static json_t *line_of(const char *of, size_t number) {
    size_t length;
    char *bytes = bytes_of(of, "index.jsonl", &length), *line = bytes;
    for (; number; number--) line = strchr(line, '\n') + 1;
    json_t *text = json_loadb(line, (size_t)(strchr(line, '\n') - line), 0, NULL);
    ck_assert_ptr_nonnull(text);
    free(bytes);
    return text;
}

static long number_of(const json_t *text, const char *key) {
    return (long)json_integer_value(fr_json_get(text, key));
}

/* The texts must be those that batch gives. The rows of all texts must be stored one after the other. */
START_TEST(texts_are_batchs) {
    run("one", "--quiet");
    fr_command batch = fr_command_run("batch " DEMO "-f - -o - -n 9", prompts);
    const char *line = batch.out;
    long at = 0;
    for (size_t i = 0; i < PROMPTS; i++, line = strchr(line, '\n') + 1) {
        json_t *text = line_of("one", i), *answer = json_loadb(line, strcspn(line, "\n"), 0, NULL);
        ck_assert_int_eq(number_of(text, "line"), (long)i);
        ck_assert(json_equal(json_object_get(text, "id"), json_object_get(answer, "id")));
        ck_assert_int_eq(json_object_get(text, "error") != NULL, i == FAILS);
        if (i != FAILS) {
            const json_t *ids = fr_json_get(text, "ids"), *own = fr_json_get(answer, "ids");
            size_t prompt = (size_t)number_of(text, "prompt");
            ck_assert_uint_eq(json_array_size(ids), prompt + json_array_size(own));
            for (size_t k = 0; k < json_array_size(own); k++)
                ck_assert(json_equal(json_array_get(ids, prompt + k), json_array_get(own, k)));
            ck_assert_int_eq(number_of(text, "at"), at);
            at += (long)json_array_size(ids);
        }
        json_decref(text);
        json_decref(answer);
    }
    fr_command_free(&batch);
    struct stat info;
    ck_assert_int_eq(stat(in_folder("one", "rows.bf16"), &info), 0);
    ck_assert_int_eq(info.st_size, at * 4 * 256 * 2);
}
END_TEST

START_TEST(one_folder_in_every_manner_of_running) {
    run("one", "-np 1 -t 1");
    run("two", "-np 4 -t 2 --chunk 7");
    run("three", "-np 2 -c 100 " DEMO_DRAFTER);
    expect_alike("one", "two");
    expect_alike("one", "three");
}
END_TEST

/* The stored rows must be those of the library, rounded to the nearest bfloat16. */
START_TEST(rows_are_the_librarys) {
    fr_model *model;
    fr_session *session;
    size_t length, layers[] = {1, 6}, count;
    run("one", "--taps 1,6");
    json_t *text = line_of("one", 1);
    int32_t *ids = fr_json_ids_of(fr_json_get(text, "ids"), &count);
    uint16_t *halves = (uint16_t *)(void *)bytes_of("one", "rows.bf16", &length);
    require(fr_model_open("tools/demo/target", NULL, &model));
    require(fr_session_open(model, NULL, NULL, &session));
    fr_rows got = {malloc(count * 2 * 256 * sizeof(float)), 0, count * 2 * 256};
    require(fr_session_rows(session, ids, count, layers, 2, fr_rows_collect, &got));
    const uint16_t *rows = halves + number_of(text, "at") * 2 * 256;
    for (size_t i = 0; i < got.count; i++) {
        uint32_t below, bits = (uint32_t)rows[i] << 16;
        float stored, next;
        memcpy(&stored, &bits, sizeof stored);
        memcpy(&below, &got.values[i], sizeof below);
        below &= 0xffff0000u;
        memcpy(&next, &below, sizeof next);
        ck_assert(stored == next || rows[i] == (below >> 16) + 1); /* one of the two nearest bfloat16 values */
        bits = (below >> 16) + (rows[i] == below >> 16 ? 1u : 0u);
        bits <<= 16;
        memcpy(&next, &bits, sizeof next);
        float own = got.values[i] - stored, others = got.values[i] - next;
        ck_assert(own * own <= others * others);
    }
    free(got.values);
    free(halves);
    free(ids);
    json_decref(text);
    fr_session_close(session);
    fr_model_close(model);
}
END_TEST

/* --------------------------------------------------------------------------------------------------- continued runs */

static void cut(const char *of, const char *name, long less) {
    struct stat info;
    ck_assert_int_eq(stat(in_folder(of, name), &info), 0);
    ck_assert_int_eq(truncate(in_folder(of, name), info.st_size - less), 0);
}

/* Truncates the index and the rows as if a run had been killed. The end is in the middle of an index line, or after a
 * line whose rows are missing, or in the middle of rows that no line counts yet. The continued run must give the same
 * folder. */
START_TEST(a_folder_that_was_cut_off_is_gone_on_with) {
    static const long ends[][2] = {{5, 0}, {0, 3000}, {400, 1000}, {100000, 100000000}};
    run("one", "");
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char of[16];
        struct stat info;
        snprintf(of, sizeof of, "cut%zu", i);
        run(of, "");
        for (size_t file = 0; file < 2; file++) {
            const char *name = file ? "rows.bf16" : "index.jsonl";
            ck_assert_int_eq(stat(in_folder(of, name), &info), 0);
            cut(of, name, ends[i][file] < info.st_size ? ends[i][file] : info.st_size);
        }
        char line[512];
        snprintf(line, sizeof line, FEATURES "-o %s/%s --resume", folder, of);
        fr_command c = fr_command_run(line, prompts);
        ck_assert_msg(c.status == 0 || c.status == 1, "%s", c.err);
        fr_command_free(&c);
        expect_alike("one", of);
    }
}
END_TEST

START_TEST(another_folder_is_not_gone_on_with) {
    char line[512];
    run("one", "");
    snprintf(line, sizeof line, FEATURES "-o %s/one", folder);
    fr_command c = fr_command_run(line, prompts);
    ck_assert_msg(c.status == 1 && strstr(c.err, "has features already"), "%s", c.err);
    fr_command_free(&c);
    snprintf(line, sizeof line, FEATURES "-o %s/one --resume --taps 1", folder);
    c = fr_command_run(line, prompts);
    ck_assert_msg(c.status == 1 && strstr(c.err, "of other layers"), "%s", c.err);
    fr_command_free(&c);
    expect_alike("one", "one");
}
END_TEST

/* While this process writes a folder, the command must refuse it before it looks at the folder's files, because they
 * may change at any time: also a run that would begin anew, or that has features of other layers. */
START_TEST(a_folder_is_written_by_one_process_at_a_time) {
    static const char *const options[] = {"--resume", "", "--resume --taps 1"};
    run("one", "");
    run("busy", "");
    int index = open(in_folder("busy", "index.jsonl"), O_RDWR);
    ck_assert_int_eq(flock(index, LOCK_EX), 0);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        char line[512];
        snprintf(line, sizeof line, FEATURES "-o %s/busy %s", folder, options[i]);
        fr_command c = fr_command_run(line, prompts);
        ck_assert_msg(c.status == 1 && strstr(c.err, "another process writes there"), "%s", c.err);
        fr_command_free(&c);
    }
    close(index);
    expect_alike("one", "busy");
}
END_TEST

START_TEST(what_means_nothing_is_refused) {
    static const struct {
        const char *options, *says;
        int status;
    } cases[] = {{"-o x", "features needs -f", 2},
                 {"-f -", "features needs -f", 2},
                 {"-f - -o -", "writes a folder", 2},
                 {"-f - -o /dev/null/x", "Not a directory", 1},
                 {"-f - -o build/never --taps 7", "layer 7 is beyond the model's 6", 1},
                 {"-f - -o build/never --taps 0..8", "at most 8 layers", 2},
                 {"-f - -o build/never --taps -1", "--taps", 2},
                 {"-f no/such/file -o build/never", "no/such/file", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[512];
        snprintf(line, sizeof line, "features " DEMO "%s", cases[i].options);
        fr_command c = fr_command_run(line, prompts);
        ck_assert_msg(c.status == cases[i].status && strstr(c.err, cases[i].says), "%s: %d %s", line, c.status, c.err);
        fr_command_free(&c);
    }
    ck_assert_int_ne(access("build/never", F_OK), 0);
}
END_TEST

FR_SUITE("features") {
    TCase *rows = tcase_create("rows"), *folders = tcase_create("folders");
    tcase_add_test(rows, rows_are_what_transformers_gives_its_layers);
    tcase_add_test(rows, layers_are_asked_for_by_number);
    tcase_add_checked_fixture(folders, make_folder, remove_folder);
    tcase_set_timeout(folders, 120);
    tcase_add_test(folders, texts_are_batchs);
    tcase_add_test(folders, one_folder_in_every_manner_of_running);
    tcase_add_test(folders, rows_are_the_librarys);
    tcase_add_test(folders, a_folder_that_was_cut_off_is_gone_on_with);
    tcase_add_test(folders, another_folder_is_not_gone_on_with);
    tcase_add_test(folders, a_folder_is_written_by_one_process_at_a_time);
    tcase_add_test(folders, what_means_nothing_is_refused);
    suite_add_tcase(suite, rows);
    suite_add_tcase(suite, folders);
}
