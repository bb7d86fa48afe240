/* Tests the end of the server. After a signal the server must refuse new requests. Running requests may finish within
 * 10 seconds. After a second signal the server must end at once. */
/* suite: threads native */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/asking.h"
#include "tests/support/command.h"
#include "tests/support/server.h"
#include "tests/support/suite.h"

static const int signals[] = {SIGTERM, SIGINT};
enum { SIGNALS = sizeof signals / sizeof *signals, TEXTS = 3 };

static fr_server server;

static json_t *body_of(int most) {
    return fr_body("{s:s, s:i, s:i, s:b, s:b, s:i}", "prompt", "The cat sat on the mat, and", "n_predict", most,
                   "temperature", 0, "ignore_eos", 1, "stream", 1, "speculative.n_max", 0);
}

/* Starts a stream and waits until its text has begun. */
static fr_events begin(int most) {
    json_t *body = body_of(most);
    fr_events events = fr_ask_stream(server.port, NATIVE, body);
    json_decref(body);
    return events;
}

static void await_waiting(void) {
    char *page = NULL;
    for (int i = 0; !page || !strstr(page, "\nllamacpp:requests_deferred 1\n"); i++) {
        free(page);
        ck_assert_int_lt(i, 4000);
        ck_assert_int_eq(fr_client_once(server.port, "GET", "/metrics", NULL, NULL, &page), 200);
        usleep(2000);
    }
    free(page);
}

/* Checks that the server accepts no more requests. A request on a new connection or on an open one must be refused, or
 * its connection must be closed. */
static void await_refusal(fr_client *client) {
    int status = 200;
    for (int i = 0; status == 200; i++) {
        ck_assert_int_lt(i, 4000);
        usleep(2000);
        status = fr_client_once(server.port, "GET", "/health", NULL, NULL, NULL);
    }
    ck_assert_msg(status == 0 || status == 503, "%d", status);
    status = fr_client_ask(client, "GET", "/v1/models", NULL, NULL) ? fr_client_head(client) : 0;
    ck_assert_msg(status == 0 || status == 503, "%d", status);
}

/* After the signal, running texts must be completed. A text that waits for a slot must be completed too. */
START_TEST(texts_come_to_their_end) {
    server = fr_server_start(DEMO "-t 1 -np 2 --metrics");
    fr_events texts[TEXTS];
    json_t *body = body_of(200);
    json_object_set_new(body, "stream", json_false());
    json_t *alone = fr_ask_ok(server.port, NATIVE, body);
    json_object_del(json_object_get(alone, "0"), "tokens");
    for (int i = 0; i < TEXTS - 1; i++) texts[i] = begin(200);
    json_object_set_new(body, "stream", json_true());
    char *text = json_dumps(body, 0);
    texts[TEXTS - 1] = (fr_events){.client = fr_client_open(server.port)};
    ck_assert(fr_client_ask(texts[TEXTS - 1].client, "POST", NATIVE, NULL, text));
    fr_client *other = fr_client_open(server.port);
    ck_assert_ptr_nonnull(other);
    await_waiting();
    ck_assert_int_eq(kill(server.process, signals[_i]), 0);
    await_refusal(other);
    ck_assert_int_eq(fr_client_head(texts[TEXTS - 1].client), 200);
    for (int i = 0; i < TEXTS; i++) {
        json_t *said = fr_events_said(&texts[i]);
        ck_assert(texts[i].whole);
        json_object_del(json_object_get(said, "0"), "tokens");
        fr_same_said(alone, said, "at a server's end");
        json_decref(said);
        fr_events_close(&texts[i]);
    }
    ck_assert_int_eq(fr_server_wait(&server), 0);
    fr_client_close(other);
    json_decref(alone);
    json_decref(body);
    free(text);
}
END_TEST

START_TEST(a_second_signal_ends_it_at_once) {
    server = fr_server_start(DEMO "-t 1 -np 2");
    fr_events texts[2] = {begin(-1), begin(-1)};
    fr_client *other = fr_client_open(server.port);
    ck_assert_int_eq(kill(server.process, signals[_i]), 0);
    await_refusal(other);
    ck_assert_int_eq(kill(server.process, signals[_i]), 0);
    ck_assert_int_eq(fr_server_wait(&server), 128 + signals[_i]);
    for (int i = 0; i < 2; i++) {
        json_decref(fr_events_said(&texts[i]));
        ck_assert(!texts[i].whole);
        fr_events_close(&texts[i]);
    }
    fr_client_close(other);
}
END_TEST

/* The signal comes while the server is still loading the model: as soon as the server listens, or a little later. */
START_TEST(a_server_that_loads_ends_well) {
    server = fr_server_begin(DEMO);
    usleep(2000 * (useconds_t)_i);
    fr_server_stop(&server);
}
END_TEST

/* These texts would take much longer than 10 seconds. After 10 seconds they must end, and each answer must have its
 * text so far. */
START_TEST(texts_without_end_are_ended) {
    enum { MANY = 32 };
    server = fr_server_start(DEMO "-t 1 -np %d", MANY);
    fr_events texts[MANY];
    struct timespec start, end;
    for (int i = 0; i < MANY; i++) texts[i] = begin(-1);
    clock_gettime(CLOCK_MONOTONIC, &start);
    ck_assert_int_eq(kill(server.process, SIGTERM), 0);
    for (int i = 0; i < MANY; i++) {
        json_t *said = fr_events_said(&texts[i]), *choice = fr_json_get(said, "0");
        ck_assert(texts[i].whole);
        ck_assert(json_is_true(fr_json_get(choice, "truncated")));
        ck_assert_int_lt(json_integer_value(fr_json_get(choice, "tokens_predicted")), 4000);
        ck_assert_uint_gt(json_string_length(fr_json_get(choice, "content")), 100);
        json_decref(said);
        fr_events_close(&texts[i]);
    }
    ck_assert_int_eq(fr_server_wait(&server), 0);
    clock_gettime(CLOCK_MONOTONIC, &end);
    ck_assert_msg(end.tv_sec - start.tv_sec >= 9 && end.tv_sec - start.tv_sec < 20, "%lld seconds",
                  (long long)(end.tv_sec - start.tv_sec));
}
END_TEST

FR_SUITE("serve_ends") {
    TCase *cases = tcase_create("serve_ends");
    tcase_set_timeout(cases, 300);
    tcase_add_loop_test(cases, texts_come_to_their_end, 0, SIGNALS);
    tcase_add_loop_test(cases, a_second_signal_ends_it_at_once, 0, SIGNALS);
    tcase_add_loop_test(cases, a_server_that_loads_ends_well, 0, 6);
    if (getenv("FULL")) tcase_add_test(cases, texts_without_end_are_ended);
    suite_add_tcase(suite, cases);
}
