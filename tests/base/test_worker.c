/* Tests worker threads. A failure in a worker must be reported once to the thread that asks for it, and to no other
 * thread. */
/* suite: threads */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/worker.h"
#include "tests/support/suite.h"

static fr_status go_wrong(void *context) {
    return fr_fail(FR_NUMERIC, "%s went wrong", (const char *)context);
}

static fr_status succeed(void *context) {
    *(int *)context += 1;
    return FR_OK;
}

START_TEST(a_failure_is_told_once) {
    fr_worker *worker;
    int done = 0;
    ck_assert_int_eq(fr_worker_open(&worker), FR_OK);
    fr_worker_start(worker, go_wrong, "the first");
    ck_assert_int_eq(fr_worker_join(worker), FR_NUMERIC);
    ck_assert_str_eq(fr_last_error(), "the first went wrong");
    fr_fail(FR_INPUT, "something else");
    ck_assert_int_eq(fr_worker_join(worker), FR_OK);
    fr_worker_start(worker, succeed, &done);
    ck_assert_int_eq(fr_worker_join(worker), FR_OK);
    ck_assert_int_eq(done, 1);
    fr_worker_close(worker);
    ck_assert_str_eq(fr_last_error(), "something else");
}
END_TEST

START_TEST(what_is_dropped_or_closed_says_nothing) {
    fr_worker *worker;
    ck_assert_int_eq(fr_worker_open(&worker), FR_OK);
    fr_fail(FR_INPUT, "something else");
    fr_worker_start(worker, go_wrong, "what was cancelled");
    fr_worker_drop(worker);
    ck_assert_str_eq(fr_last_error(), "something else");
    ck_assert_int_eq(fr_worker_join(worker), FR_OK);
    fr_worker_start(worker, go_wrong, "what was closed");
    fr_worker_close(worker);
    ck_assert_str_eq(fr_last_error(), "something else");
}
END_TEST

/* The threads of a pool read the weights. This callback truncates the file after loading has begun. */
static bool cut_file(void *context, uint64_t done, uint64_t total) {
    (void)done, (void)total;
    ck_assert_int_eq(truncate(context, 2 << 20), 0);
    return true;
}

START_TEST(a_loading_thread_says_what_was_wrong) {
    char path[] = "/tmp/test_worker_XXXXXX", words[64];
    char bytes[4096];
    size_t count;
    fr_model *model;
    int file = mkstemp(path);
    FILE *in = fopen("tests/data/glm-ocr/model-bf16.gguf", "rb");
    ck_assert(file >= 0 && in);
    while ((count = fread(bytes, 1, sizeof bytes, in))) ck_assert_int_eq(write(file, bytes, count), (ssize_t)count);
    fclose(in);
    close(file);
    fr_options *options = fr_options_new();
    fr_options_set(options, FR_OPT_MMAP, 0);
    fr_options_set(options, FR_OPT_THREADS, 2);
    fr_options_set_progress(options, cut_file, path);
    ck_assert_int_eq(fr_model_open(path, options, &model), FR_INPUT);
    snprintf(words, sizeof words, "%s ends at byte ", path);
    ck_assert_msg(strncmp(fr_last_error(), words, strlen(words)) == 0, "%s", fr_last_error());
    fr_options_free(options);
    unlink(path);
}
END_TEST

FR_SUITE("worker") {
    TCase *tests = tcase_create("worker");
    tcase_add_test(tests, a_failure_is_told_once);
    tcase_add_test(tests, what_is_dropped_or_closed_says_nothing);
    tcase_add_test(tests, a_loading_thread_says_what_was_wrong);
    suite_add_tcase(suite, tests);
}
