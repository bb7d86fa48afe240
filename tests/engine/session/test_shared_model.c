/* Several threads share one model and its drafter, and each runs its own session. Each session must generate the text
 * that it generates alone, and run on its own cores. */
/* suite: threads native */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/process_registry.h"
#include "base/cores.h"
#include "src/engine/session/state.h"
#include "tests/support/reference.h"
#include "tests/support/suite.h"

#define SESSIONS 3
#define COUNT    60
#define TURNS    3

typedef struct work {
    const fr_reference *reference;
    const fr_options *options;
    int seed;
    int32_t ids[TURNS][COUNT];
    fr_status status;
    char error[512];
} work;

static fr_status generate(fr_session *session, int32_t *ids) {
    size_t got, accepted;
    fr_status status = FR_OK;
    for (size_t made = 0; made < COUNT && status == FR_OK; made += got)
        status = fr_session_step(session, ids + made, COUNT - made, &got, &accepted);
    return status;
}

/* Runs several prompts with the same beginning. In between a call fails, whose error line must be visible only in this
 * thread. Errors are returned and not asserted, because Check's assertions work only in Check's own thread. */
static void *converse(void *context) {
    work *w = context;
    int32_t prompt[40];
    fr_session *session;
    w->status = fr_session_open(w->reference->model, w->reference->drafter, w->options, &session);
    if (w->status != FR_OK) return NULL;
    for (int i = 0; i < 40; i++) prompt[i] = (i * i * w->seed + 7 * i) % 400;
    for (int turn = 0; turn < TURNS && w->status == FR_OK; turn++) {
        prompt[30 + turn] = turn;
        w->status = fr_session_set_prompt(session, prompt, 40);
        if (w->status == FR_OK) w->status = generate(session, w->ids[turn]);
    }
    fr_session_prompt(session, (int32_t[]){1000 + w->seed}, 1);
    memcpy(w->error, fr_last_error(), strlen(fr_last_error()) + 1);
    fr_session_close(session);
    return NULL;
}

START_TEST(sessions_in_threads_say_what_they_say_alone) {
    fr_reference reference;
    pthread_t threads[SESSIONS];
    static work alone[SESSIONS], together[SESSIONS];
    fr_options *options = fr_options_new();
    ck_assert(fr_options_set(options, FR_OPT_THREADS, 1 + _i) == FR_OK);
    ck_assert(fr_options_set(options, FR_OPT_IGNORE_EOS, 1) == FR_OK);
    ck_assert(fr_options_set(options, FR_OPT_CONTEXT, 256) == FR_OK);
    fr_reference_open(&reference, "gemma4-e", options);
    for (int i = 0; i < SESSIONS; i++) {
        alone[i] = together[i] = (work){.reference = &reference, .options = options, .seed = 3 + i};
        converse(&alone[i]);
        ck_assert_int_eq(alone[i].status, FR_OK);
    }
    for (int i = 0; i < SESSIONS; i++) ck_assert(pthread_create(&threads[i], NULL, converse, &together[i]) == 0);
    for (int i = 0; i < SESSIONS; i++) ck_assert(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < SESSIONS; i++) {
        ck_assert_int_eq(together[i].status, FR_OK);
        ck_assert_mem_eq(together[i].ids, alone[i].ids, sizeof alone[i].ids);
        ck_assert_str_eq(together[i].error, alone[i].error);
    }
    ck_assert_str_ne(alone[0].error, alone[1].error);
    fr_reference_close(&reference);
    fr_options_free(options);
}
END_TEST

/* While cores are free, each session gets its own core. When the first session is closed, its core goes to the next
 * session that is opened. In this test, cores that other processes have claimed count as free. */
START_TEST(sessions_are_on_cores_of_their_own) {
    fr_reference reference;
    fr_session *first, *second, *third;
    fr_options *options = fr_options_new();
    fr_process_registry_use("");
    ck_assert(fr_options_set(options, FR_OPT_THREADS, 1) == FR_OK);
    ck_assert(fr_options_set(options, FR_OPT_PIN, 1) == FR_OK);
    fr_reference_open(&reference, "gemma4-e", options);
    size_t cpus = reference.model->machine.count;
    ck_assert(fr_session_open(reference.model, NULL, options, &first) == FR_OK);
    ck_assert(fr_session_open(reference.model, NULL, options, &second) == FR_OK);
    int core = first->engine->plan.cpu[0];
    ck_assert_int_eq(core, reference.model->plan.cpu[0]);
    ck_assert_msg(second->engine->plan.cpu[0] != core || cpus == 1, "both sessions are on CPU %d of %zu", core, cpus);
    ck_assert(fr_core_is_shared(core) == (cpus == 1));
    fr_session_close(first);
    ck_assert(fr_session_open(reference.model, NULL, options, &third) == FR_OK);
    ck_assert_int_eq(third->engine->plan.cpu[0], core);
    fr_session_close(second);
    fr_session_close(third);
    fr_reference_close(&reference);
    fr_options_free(options);
}
END_TEST

/* A log callback. Appends a letter for the line's level to `levels`. */
static void keep_level(void *context, fr_log_level level, const char *line) {
    char *levels = context;
    size_t length = strlen(levels);
    ck_assert_ptr_null(strchr(line, '\n'));
    ck_assert_uint_lt(length, 15);
    levels[length] = "diw"[level];
}

START_TEST(the_log_tells_what_was_opened_and_cut) {
    fr_reference reference;
    char levels[16] = "";
    fr_session *session;
    fr_options *options = fr_options_new();
    fr_options_set_log(options, keep_level, levels);
    fr_reference_open(&reference, "gemma4-e", options);
    ck_assert_str_eq(levels, "ii");
    ck_assert(fr_session_open(reference.model, reference.drafter, options, &session) == FR_OK);
    ck_assert_str_eq(levels, "iii");
    ck_assert(fr_session_prompt(session, (int32_t[]){2, 3, 4}, 3) == FR_OK);
    ck_assert(fr_session_truncate(session, 2) == FR_OK);
    ck_assert_str_eq(levels, "iiid");
    fr_session_close(session);
    fr_reference_close(&reference);
    fr_options_free(options);
}
END_TEST

FR_SUITE("shared_model") {
    TCase *sessions = tcase_create("shared_model");
    tcase_set_timeout(sessions, 300);
    tcase_add_loop_test(sessions, sessions_in_threads_say_what_they_say_alone, 0, 2);
    tcase_add_test(sessions, sessions_are_on_cores_of_their_own);
    tcase_add_test(sessions, the_log_tells_what_was_opened_and_cut);
    suite_add_tcase(suite, sessions);
}
